"""`ctxchat context`: what the next request of a session would hold, part by part."""

from __future__ import annotations

import click
import msgspec

from ctxchat.bootstrap.program import Program
from ctxchat.cli.common import common_options, emit, flags, run_async, table
from ctxchat.core.figures import Figures


@click.command("context")
@click.argument("session", required=False, default="")
@common_options
def command(session: str) -> None:
    """The gauge of a session (the one used last without an id)."""

    async def work() -> tuple[str, Figures]:
        async with Program.started(flags()) as program:
            opened = await program.open(await program.find(session or flags().session), interactive=False)
            try:
                return opened.id, await opened.measure()
            finally:
                await opened.close()

    found, figures = run_async(work())
    if flags().json:
        emit(context_json(found, figures))
        return
    about = "~" if figures.estimated else ""
    click.echo(f"{about}{figures.used:,} of {figures.limit:,} tokens used ({about}{figures.pressure:.0%})")
    click.echo(f"window {figures.window:,}, {figures.window_source}; compaction from {figures.trigger_tokens:,}")
    rows = [(s.name, f"{'~' if s.estimated and s.tokens else ''}{s.tokens:,}") for s in figures.sections]
    table(("section", "tokens"), rows)


def context_json(session: str, figures: Figures) -> dict[str, object]:
    """The gauge as scripts read it."""
    fields: dict[str, object] = msgspec.to_builtins(figures)
    fields.pop("type")
    return {"session": session} | fields
