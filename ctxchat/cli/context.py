"""`ctxchat context`: what the next request of a session would hold, part by part."""

from __future__ import annotations

import time

import click
import msgspec

from ctxchat.bootstrap.program import Program
from ctxchat.cli import completing
from ctxchat.cli.common import common_options, emit, flags, run_async, table, tell, typed_in, written
from ctxchat.core.context_usage import ContextUsage, fixed, overhead
from ctxchat.core.quantities import short
from ctxchat.presentation.cache_text import cache_lines
from ctxchat.presentation.usage_text import (
    PARTS,
    gauge_words,
    is_measured,
    share,
    starts_words,
    window_words,
    working_limit_words,
)


@click.command("context")
@click.argument("session", required=False, default="", shell_complete=completing.sessions)
@click.option(
    "--draft", default="", metavar="TEXT", help="With this message about to be sent; - reads it from standard input."
)
@common_options
def command(session: str, draft: str) -> None:
    """The gauge of a session (the one used last without an id)."""
    message = typed_in() if draft == "-" else written(draft)

    async def measure() -> tuple[str, ContextUsage]:
        async with Program.started(flags()) as program:
            wanted = await program.find(session or flags().session)
            tell(program.notices)
            opened = await program.open(wanted, interactive=False, only_read=True)
            try:
                measured = await opened.measure()
                return opened.id, opened.attachments.with_draft(message) if message else measured
            finally:
                await opened.close()

    found, context_usage = run_async(measure())
    if flags().json:
        emit(context_json(found, context_usage))
        return
    click.echo(f"{gauge_words(context_usage)[0]} tokens")
    why = f" ({why})" if (why := working_limit_words(context_usage)) else ""
    click.echo(f"{window_words(context_usage)}; {starts_words(context_usage)}{why}")
    for line in cache_lines(context_usage.cache, time.time()):
        click.echo(f"cache: {line}")
    rows = [
        (
            PARTS[s.name].label,
            f"{'~' if s.estimated and s.tokens else ''}{short(s.tokens)}",
            "" if s.name == "reserved" or not is_measured(context_usage) else share(s.tokens, context_usage.limit),
            short(s.budget) if s.budget else "",
            f"{short(s.over)} over" if s.over else "",
        )
        for s in context_usage.sections
    ]
    if any(s.budget for s in context_usage.sections):
        table(("part", "tokens", "share", "budget", ""), rows, right=(1, 2, 3))
    else:
        table(("part", "tokens", "share"), [row[:3] for row in rows], right=(1, 2))
    if text := in_vain(context_usage):
        click.echo(text, err=True)


def in_vain(context_usage: ContextUsage) -> str:
    """A sentence on why no compaction could help; empty if one could."""
    if fixed(context_usage) < context_usage.trigger_tokens:
        return ""
    what = "system, tools and memory"
    if overhead(context_usage) < context_usage.trigger_tokens:
        what = f"pinned messages with {what}"
    return f"No compaction can help: {what} hold {short(fixed(context_usage))} of {short(context_usage.limit)} tokens."


def context_json(session: str, context_usage: ContextUsage) -> dict[str, object]:
    """The gauge as scripts read it: the fields of `ContextUsage`, and for each section by how much it is over its own budget."""
    fields: dict[str, object] = msgspec.to_builtins(context_usage)
    fields.pop("type")
    sections = [msgspec.to_builtins(s) | {"over": s.over} for s in context_usage.sections]
    cache = context_usage.cache.as_json(time.time())
    more: dict[str, object] = {"sections": sections, "saved_usd": round(context_usage.saved, 6), "cache": cache}
    return {"session": session} | fields | more
