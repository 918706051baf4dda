"""`ctxchat compact`: free up context in a stored session, or see what that would do."""

from __future__ import annotations

import math
from contextlib import aclosing
from typing import Any

import click

from ctxchat.agent.session import Session
from ctxchat.bootstrap.program import Program
from ctxchat.cli import completing
from ctxchat.cli.common import common_options, emit, flags, narrate, run_async, tell
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.events import Notice
from ctxchat.core.quantities import count, short
from ctxchat.core.record import CompactionRecord, SideUsage, StepGain
from ctxchat.core.sanitize import clean
from ctxchat.presentation.usage_text import gain


class _Share(click.FloatRange):
    """A number from 0 to 1. Click takes NaN for one, as it is neither below nor above."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        share = super().convert(value, param, ctx)
        return self.fail(f"{value} is not in the range 0<=x<=1.", param, ctx) if math.isnan(share) else share


@click.command("compact")
@click.argument("session", required=False, shell_complete=completing.sessions)
@click.option(
    "--strategy",
    default="",
    metavar="S",
    shell_complete=completing.strategies,
    help="Another strategy than in the settings.",
)
@click.option("--keep-recent", type=click.IntRange(min=0), metavar="N", help="Newest messages that stay as they are.")
@click.option("--target", type=_Share(0, 1), metavar="R", help="Free down to this share of the limit.")
@click.option("--instructions", default="", metavar="T", help="What the summary must keep.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@common_options
def command(
    session: str | None, strategy: str, keep_recent: int | None, target: float | None, instructions: str, dry_run: bool
) -> None:
    """Free up context in a session (the one used last without an id)."""

    async def compact() -> CompactionRecord:
        async with Program.started(flags()) as program:
            wanted = await program.find(_meant(session))
            tell(program.notices)
            opened = await program.open(wanted, interactive=False, only_read=dry_run)
            try:
                if opened.read_only and not dry_run:
                    raise CtxchatError(opened.read_only)
                return await _compact(opened, strategy, keep_recent, target, instructions, dry_run)
            finally:
                await opened.close()

    result = run_async(compact())
    if flags().json:
        emit(result.as_json())
    else:
        about = "~" if dry_run and result.steps else ""
        outcome = "would compact" if about else result.outcome
        click.echo(
            f"{outcome}: {short(result.before.used)} → {about}{short(result.after.used)} tokens. {result.detail}"
        )
        if result.missed:
            click.echo(f"  {clean(result.missed)}")
        for step in result.steps:
            click.echo(f"  {step.name}  {gain(step.tokens_freed)}  ({count(step.groups, 'group')})")
    click.get_current_context().exit(0 if result.outcome in {"compacted", "noop"} else 1)


def _meant(session: str | None) -> str:
    """The session that was named, or none was. An empty word, as of a variable that is not set, is no session: it must never
    change the one used last. Raises UsageError."""
    if session is not None and not session.strip():
        raise UsageError("The id of the session is empty.", "Leave it out for the session used last.")
    return session or flags().session


async def _compact(
    session: Session, strategy: str, keep_recent: int | None, target: float | None, instructions: str, dry_run: bool
) -> CompactionRecord:
    preview = await session.preview(instructions, keep_recent, strategy=strategy, target=target)
    used, messages = preview.before.used, len(session.view.items)
    plan = preview.plan
    planned = CompactionRecord(
        outcome="compacted" if plan else "noop",
        id="",
        reason="offline",
        strategy=plan.strategy if plan else strategy,
        steps=tuple(StepGain(s.name, s.tokens_freed, s.groups) for s in preview.steps),
        before=SideUsage(used, messages),
        after=SideUsage(preview.after.used, preview.after_messages or messages),
        folded_messages=preview.folded_messages,
        folded=tuple(plan.covers) if plan else (),
        facts=preview.facts,
        detail="Dry run: nothing was changed." if plan else preview.reason,
        missed=preview.missed,
    )
    if plan is None or dry_run:
        return planned
    async with aclosing(session.free_up(preview, reason="offline")) as events:
        async for stamped in events:
            if isinstance(stamped.event, CompactionRecord):
                planned = stamped.event
            elif isinstance(stamped.event, Notice):
                narrate(stamped.event.text)
    return planned
