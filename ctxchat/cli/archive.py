"""`ctxchat archive`: what compactions put away, search over everything ever said, and putting things back."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click
import msgspec

from ctxchat.agent.changes import Changes
from ctxchat.bootstrap.program import Program
from ctxchat.cli import completing
from ctxchat.cli.common import common_options, emit, flags, index_completed, narrate, run_async, table, written
from ctxchat.cli.context import context_json
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import UsageError
from ctxchat.core.facts import facts_of_change
from ctxchat.core.messages import Role
from ctxchat.core.openai import recorded
from ctxchat.core.quantities import count, short
from ctxchat.core.sanitize import clean
from ctxchat.core.search import Scope
from ctxchat.core.secrets import masked
from ctxchat.presentation.compactions import REASONS
from ctxchat.presentation.usage_text import gauge_words
from ctxchat.storage import archive, exporting

INDEXING_TIMEOUT_S = 10.0
"""Seconds that a search first takes in what waits, where the index was made anew or much was imported."""


@click.group("archive")
@common_options
def command() -> None:
    """Look into compactions, search, and put things back."""


@command.command("list")
@click.argument("session", required=False, default="", shell_complete=completing.sessions)
@common_options
def list_(session: str) -> None:
    """The compactions of a session, or of all."""

    async def list_compactions() -> list[archive.CompactionRow]:
        async with Program.started(flags()) as program:
            wanted = session or flags().session
            found = await program.find(wanted) if wanted else ""
            return await program.database.run(archive.compactions, program.database, found)

    rows = run_async(list_compactions())
    if flags().json:
        emit(rows)
        return
    table(
        ("id", "session", "when", "why", "how", "before", "after", "messages"),
        [
            (
                r.id,
                r.session,
                r.at[:16].replace("T", " "),
                _why(r),
                r.strategy,
                short(r.before),
                short(r.after),
                f"{r.messages:,}",
            )
            for r in rows
        ],
        right=(5, 6, 7),
        empty="No compactions yet.",
    )


def _why(row: archive.CompactionRow) -> str:
    """Why it was made; what came back of it since."""
    back = "undone" if row.undone else f"{row.put_back:,} put back" if row.put_back else ""
    why = next((words for reason, words in REASONS.items() if reason == row.reason), row.reason)
    return f"{why}, {back}" if back else why


@command.command("show")
@click.argument("id", shell_complete=completing.compactions)
@common_options
def show_compaction(id: str) -> None:
    """Show one compaction: its record, summary, facts, and the messages as they were."""

    async def load() -> archive.Archived:
        async with Program.started(flags()) as program:
            return await program.database.run(archive.load_compaction, program.database, id, await _session(program))

    found = run_async(load())
    record = found.change.record
    facts = facts_of_change(found.change, found.groups).facts
    if flags().json:
        emit(
            exporting.masked_json(
                {
                    "record": msgspec.to_builtins(record, enc_hook=list) if record else {"id": found.change.id},
                    "undone": found.undone,
                    "summary": record.summary if record else "",
                    "ledger": [
                        {"kind": f.kind, "text": f.key, "value": f.value, "message": f"m{f.seq}"} for f in facts
                    ],
                    "messages": [recorded(message) for message in found.messages],
                }
            )
        )
        return
    if record:
        back = f"  ({count(record.back.messages, 'message')} put back)" if record.back.messages else ""
        undone = "  (undone)" if found.undone else back
        click.echo(
            clean(f"{record.id}  {record.at}  {REASONS[record.reason]}  {record.strategy}  {record.detail}{undone}")
        )
        click.echo(clean(masked(f"\n{record.summary}\n\n{record.evidence}\n")).rstrip() + "\n")
    for message in found.messages:
        calls = "".join(f"\n  calls {c.name} {c.arguments}" for c in message.calls)
        click.echo(clean(masked(f"{message.id} {message.role}: {message.text}{calls}")))


@command.command("search")
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 1000), default=20)
@click.option("--role", type=click.Choice(get_args(Role)), help="Only what was said by these; tool: results.")
@click.option("--tool", default="", metavar="NAME", help="Only calls of this tool, and their results.")
@click.option(
    "--before", default="", metavar="ID", help="Only what was said before this compaction (last: the newest)."
)
@click.option("--after", default="", metavar="ID", help="Only what was said since this compaction (last: the newest).")
@common_options
def search(query: str, limit: int, role: Role | None, tool: str, before: str, after: str) -> None:
    """Everything ever said in all sessions (or in --session), with what putting it back would cost.

    "…" keeps words together. Filters may stand among the words: who:me (agent, tool, system), tool:shell, since:3d (12h, 2w,
    2026-11-01), until:2026-12, file:src/app.py; without words, the newest of what they leave.
    """
    if not (query.strip() or role or tool or before or after):
        raise UsageError("There is nothing to search for.", "Give a word, or a filter such as since:3d.")

    async def find() -> list[archive.Hit]:
        async with Program.started(flags()) as program:
            database = program.database
            scope = Scope(await _session(program), role or "", tool, before, after)
            await index_completed(database, INDEXING_TIMEOUT_S)
            return await database.run(lambda: archive.search(database, written(query), scope=scope, limit=limit))

    hits = run_async(find())
    if flags().json:
        emit(exporting.masked_json(msgspec.to_builtins(hits)))
        return
    for hit in hits:
        who = f"{'note' if hit.note else hit.role}{f' ({hit.tool})' if hit.tool else ''}"
        where = f"{hit.session} {hit.message} {who}, turn {hit.turn}, {short(hit.tokens)} tokens"
        click.echo(
            clean(f"{where}{', archived by ' + hit.compaction if hit.compaction else ''}\n  {masked(hit.snippet)}")
        )
    if not hits:
        click.echo("Nothing found.", err=True)


@command.command("restore")
@click.argument("id", shell_complete=completing.compactions)
@click.option("--message", default="", metavar="M", help="Put back only this message's group, as a marked quotation.")
@click.option("--part", is_flag=True, help="Only the newest messages, as many as fit without another compaction.")
@common_options
def restore(id: str, message: str, part: bool) -> None:
    """Undo a compaction, or put one message of it back."""
    if message and part:
        raise UsageError("--message and --part exclude each other.", "Give one of them.")

    async def apply_change() -> tuple[str, ContextUsage]:
        async with Program.started(flags()) as program:
            found = await program.database.run(archive.load_compaction, program.database, id, await _session(program))
            group = _group(found, message) if message else ""
            session = await program.open(found.session, interactive=False)
            try:
                if group:
                    context_usage = await session.changes.restore(group)
                else:
                    context_usage = await _undone(session.changes, found, part)
                return session.id, context_usage
            finally:
                await session.close()

    changed, context_usage = run_async(apply_change())
    if flags().json:
        emit(context_json(changed, context_usage))
    else:
        click.echo(f"Put back: {gauge_words(context_usage)[0]}")


def _group(found: archive.Archived, message: str) -> str:
    """The group of a message that a compaction put away. Raises UsageError where it did not."""
    for group in found.groups:
        if any(m.id == message for m in group.messages):
            return group.id
    raise UsageError(
        f"Compaction {found.change.id} did not archive {message!r}.",
        f"`ctxchat archive show {found.change.id}` lists its messages.",
    )


async def _undone(changes: Changes, found: archive.Archived, part: bool) -> ContextUsage:
    """Take it back, as far as is wanted. What does not fit is told. Raises UsageError where it was done before."""
    if found.undone:
        raise UsageError(f"Compaction {found.change.id} was undone already.", "The model sees its messages.")
    preview = await changes.preview_undo(found.change.id)
    if part and not preview.fits:
        if not preview.part_groups:
            raise UsageError(f"No part of compaction {found.change.id} fits.", "--message puts one message back.")
        narrate(f"Of {count(preview.messages, 'message')} the newest {preview.part_messages:,} can come back, and did.")
        return await changes.undo(found.change.id, preview.part_groups)
    context_usage = await changes.undo(found.change.id)
    if context_usage.excess:
        ways = f"`ctxchat compact {found.session}` frees up some."
        narrate(f"That is {short(context_usage.excess)} tokens too much for the window. {ways}")
    elif not preview.fits:
        narrate("The window is past its trigger: the next message will start a compaction.")
    return context_usage


@command.command("export")
@click.argument("folder", type=click.Path(file_okay=False), default=exporting.FOLDER)
@common_options
def export(folder: str) -> None:
    """One JSON-lines file for each compaction (of --session, or of all) into FOLDER, `ctxchat-archive` here without one.

    Nothing is overwritten: where another file stands, the new one gets a number.
    """
    target = Path(folder).absolute()

    async def export_all() -> list[Path]:
        async with Program.started(flags()) as program:
            session = await _session(program)
            return await program.database.run(exporting.archive_export, program.database, target, session)

    written = run_async(export_all())
    if flags().json:
        emit([str(path) for path in written])
    else:
        for path in written:
            click.echo(str(path))
    narrate(f"{count(len(written), 'file')} in {target}" if written else "No compactions yet: nothing was written.")


async def _session(program: Program) -> str:
    return await program.find(flags().session) if flags().session else ""
