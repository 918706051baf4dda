"""`ctxchat archive`: what compactions put away, search over everything ever said, and putting things back."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ctxchat.bootstrap.program import Program
from ctxchat.cli.common import common_options, emit, flags, run_async, table
from ctxchat.cli.context import context_json
from ctxchat.core.evidence import collect
from ctxchat.core.openai import recorded
from ctxchat.core.plain import clean
from ctxchat.storage import archive, exporting


@click.group("archive")
@common_options
def command() -> None:
    """Look into compactions, search, and put things back."""


@command.command("list")
@click.argument("session", required=False, default="")
@common_options
def list_(session: str) -> None:
    """The compactions of a session, or of all."""

    async def work() -> list[archive.CompactionRow]:
        async with Program.started(flags()) as program:
            wanted = session or flags().session
            found = await program.find(wanted) if wanted else ""
            return await program.database.run(archive.compactions, program.database, found)

    rows = run_async(work())
    if flags().json:
        emit(rows)
        return
    table(
        ("id", "when", "why", "how", "before", "after", "messages"),
        [(r.id, r.at[:16].replace("T", " "), r.reason, r.strategy, r.before, r.after, r.messages) for r in rows],
        empty="No compactions yet.",
    )


@command.command("show")
@click.argument("id")
@common_options
def show(id: str) -> None:
    """One compaction: its record, summary, facts, and the messages as they were."""

    async def work() -> archive.Archived:
        async with Program.started(flags()) as program:
            return await program.database.run(archive.show, program.database, id, await _session(program))

    found = run_async(work())
    record = found.change.record
    facts = [fact for edit in found.change.edits if edit.digest for fact in edit.digest.evidence.facts]
    facts = facts or list(
        collect(found.groups).facts
    )  # a pass without a summary carries none; what it put away has them
    if flags().json:
        emit(
            {
                "record": msgspec.to_builtins(record) if record else {"id": found.change.id},
                "summary": record.summary if record else "",
                "ledger": [{"kind": f.kind, "text": f.key, "value": f.value, "message": f"m{f.seq}"} for f in facts],
                "messages": [recorded(message) for message in found.messages],
            }
        )
        return
    if record:
        click.echo(f"{record.id}  {record.at}  {record.reason}  {record.strategy}  {record.detail}")
        click.echo(clean(f"\n{record.summary}\n\n{record.evidence}\n").rstrip() + "\n")
    for message in found.messages:
        calls = "".join(f"\n  calls {c.name} {c.arguments}" for c in message.calls)
        click.echo(clean(f"{message.id} {message.role}: {message.text}{calls}"))


@command.command("search")
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 1000), default=20)
@common_options
def search(query: str, limit: int) -> None:
    """Everything ever said in all sessions (or in --session)."""

    async def work() -> list[archive.Hit]:
        async with Program.started(flags()) as program:
            database, session = program.database, await _session(program)
            return await database.run(lambda: archive.search(database, query, session, limit=limit))

    hits = run_async(work())
    if flags().json:
        emit(hits)
        return
    for hit in hits:
        where = f"{hit.session} {hit.message} {hit.role}, {hit.tokens} tokens"
        click.echo(clean(f"{where}{', put away by ' + hit.compaction if hit.compaction else ''}\n  {hit.snippet}"))
    if not hits:
        click.echo("Nothing found.", err=True)


@command.command("restore")
@click.argument("id")
@click.option("--message", default="", metavar="M", help="Put back only this message's group, as a marked quotation.")
@common_options
def restore(id: str, message: str) -> None:
    """Undo a compaction, or put one message of it back."""

    async def work() -> dict[str, object]:
        async with Program.started(flags()) as program:
            database = program.database
            found = await database.run(archive.show, database, id, await _session(program))
            session = await program.open(found.session, interactive=False)
            try:
                if message:
                    group = await database.run(archive.group_of, database, found.session, message)
                    figures = await session.restore(group.id)
                else:
                    figures = await session.undo(found.change.id)
                return context_json(session.id, figures)
            finally:
                await session.close()

    context = run_async(work())
    if flags().json:
        emit(context)
    else:
        click.echo(f"Put back: {context['used']} of {context['limit']} tokens are used now.")


@command.command("export")
@click.argument("folder", type=click.Path(file_okay=False), default=".")
@common_options
def export(folder: str) -> None:
    """One JSON-lines file for each compaction (of --session, or of all) into FOLDER."""

    async def work() -> list[Path]:
        async with Program.started(flags()) as program:
            session = await _session(program)
            return await program.database.run(exporting.archive_export, program.database, Path(folder), session)

    written = run_async(work())
    if flags().json:
        emit([str(path) for path in written])
    else:
        for path in written:
            click.echo(str(path))


async def _session(program: Program) -> str:
    return await program.find(flags().session) if flags().session else ""
