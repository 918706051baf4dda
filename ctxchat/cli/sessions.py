"""`ctxchat sessions`: stored sessions, one by one or all, without opening the interface."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import msgspec

from ctxchat.bootstrap.flags import settings_from
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.cli import completing
from ctxchat.cli.common import common_options, emit, flags, narrate, run_async, table
from ctxchat.config import paths
from ctxchat.core.errors import UsageError
from ctxchat.core.journal import SessionState
from ctxchat.core.messages import Group
from ctxchat.core.quantities import count, short
from ctxchat.core.sanitize import clean
from ctxchat.models import dialects
from ctxchat.storage import exporting, loading, sessions
from ctxchat.storage.claude_code import ClaudeCodeLines
from ctxchat.storage.database import Database
from ctxchat.storage.private_files import write_private

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.bootstrap.program import Program

ANY_PROVIDER = dialects.Dialect("any", id_pattern="[a-zA-Z0-9]+", id_length=9, user_first=True, user_after_tool=False)
"""What every family takes, the strictest rule of each; a view is exported so that it can be sent anywhere."""


IMPORT = "import"
CLAUDE_CODE = "claude-code"


class _Sessions(click.Group):
    """The group of commands. It loads `import`, which knows seven agents' files, only if that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([IMPORT, *super().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == IMPORT:
            return import_module("ctxchat.cli.sessions_import").command
        return super().get_command(ctx, cmd_name)


@click.group("sessions", cls=_Sessions)
@common_options
def command() -> None:
    """List, show, export, import, fork, rename and delete sessions."""


def _started() -> AbstractAsyncContextManager[Program]:
    from ctxchat.bootstrap.program import Program  # no part of a listing

    return Program.started(flags())


@command.command("list")
@common_options
def list_() -> None:
    """All sessions, the one used last first; those of sub-agents are counted behind the one they worked for."""
    settings_from(flags(), workspace_of(flags().cwd))  # what is wrong with the options is told here as everywhere
    with Database(paths.data_dir()) as database:
        rows = sessions.rows(database)
    if flags().json:
        emit(rows)
        return
    ids, below = {r.id for r in rows}, Counter(r.parent for r in rows if r.delegated)
    table(
        ("id", "updated", "messages", "used", "compactions", "title"),
        [
            (
                r.id,
                r.updated[:16].replace("T", " "),
                f"{r.messages:,}",
                f"{'~' if r.estimated else ''}{short(r.used)}",
                r.compactions,
                f"{r.title}{_told_below(below[r.id])}",
            )
            for r in rows
            if not (r.delegated and r.parent in ids)
        ],
        empty="No sessions yet.",
        right=(2, 3, 4),
    )


def _told_below(sub_agents: int) -> str:
    return f"   +{count(sub_agents, 'sub-agent')}" if sub_agents else ""


@command.command("show")
@click.argument("session", required=False, default="", shell_complete=completing.sessions)
@common_options
def show_session(session: str) -> None:
    """What was said in a session (the one used last without an id)."""

    async def print_rows() -> None:
        async with _started() as program:
            found = await program.find(session or flags().session)
            row = await program.database.run(sessions.row, program.database, found)
            loaded = await program.database.run(loading.load_state, program.database, found)
        for problem in loaded.problems:
            narrate(f"! {problem}")
        if flags().json:
            record = list(exporting.record_lines(loaded.state.ledger.groups))
            more = {"record": exporting.masked_json(record), "problems": list(loaded.problems)}
            emit(msgspec.to_builtins(row) | more | {"checkpoints": msgspec.to_builtins(loaded.state.checkpoints)})
        else:
            sys.stdout.write(clean(exporting.export_record(loaded.state, "markdown")))

    run_async(print_rows())


@command.command("export")
@click.argument("session", shell_complete=completing.sessions)
@click.option("--view", type=click.Choice(["model", "record"]), default="record", help="What the model sees, or all.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["openai", "jsonl", "markdown", CLAUDE_CODE]),
    default="openai",
    show_default=True,
)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="A file instead of standard output.")
@common_options
def export(session: str, view: str, form: str, output: str | None) -> None:
    """Write a session: the record of everything, or the view a model is sent.

    claude-code is the record as Claude Code keeps its sessions, with compactions and branches; what has no place is counted.
    """
    if form == CLAUDE_CODE and view != "record":
        raise UsageError("Claude Code's form holds the record.", "Give --view record, or another --format.")
    if flags().json and form == "markdown":
        raise UsageError("--json and --format markdown are not the same thing.", "Leave one of them out.")

    async def export_text() -> str:
        async with _started() as program:
            if form == CLAUDE_CODE:
                found = await program.find(session)
                return await program.database.run(_claude_code, program.database, found)
            if view == "record":
                found = await program.find(session)
                loaded = await program.database.run(loading.load_state, program.database, found)
                state = await program.database.run(_with_images, program.database, found, loaded.state)
                return exporting.export_record(state, cast(exporting.Format, form))
            opened = await program.open(session, interactive=False, only_read=True)
            try:
                await opened.measure()
                return await program.database.run(_view, program.database, opened, cast(exporting.Format, form))
            finally:
                await opened.close()

    text = run_async(export_text())
    text = text if text.endswith("\n") else text + "\n"
    if output:
        write_private(Path(output), text.encode())
    else:
        sys.stdout.write(text)


def _claude_code(database: Database, session: str) -> str:
    """The session as lines of Claude Code's format, and sentences on what that format cannot hold."""
    state = _with_images(database, session, loading.load_state(database, session).state)
    lines = ClaudeCodeLines(session, state, sessions.row(database, session).folder)
    text = "".join(exporting.dump(line) + "\n" for line in lines)
    for kind, many in sorted(lines.left_out.items()):
        narrate(f"  not kept: {many:,} {kind}")
    return text


def _with_images(database: Database, session: str, state: SessionState) -> SessionState:
    """The session's messages with their images read in."""
    ledger = msgspec.structs.replace(state.ledger, groups=exporting.with_images(database, session, state.ledger.groups))
    return msgspec.structs.replace(state, ledger=ledger)


def _view(database: Database, session: Session, form: exporting.Format) -> str:
    shown = [Group("", "note", (item.message,)) for item in session.view.items]
    whole = exporting.with_images(database, session.id, shown)
    pairs = zip(session.view.items, whole, strict=True)
    items = [msgspec.structs.replace(item, message=group.first) for item, group in pairs]
    if form != "openai":
        return exporting.export_view(session.state, items, form)
    messages = dialects.shape(items, ANY_PROVIDER)
    return exporting.dump(exporting.masked_json(messages), indent=1)


@command.command("fork")
@click.argument("session", shell_complete=completing.sessions)
@click.option("--message", default="", metavar="M", help="The last message (m12) or compaction to take along.")
@common_options
def fork(session: str, message: str) -> None:
    """A new session with everything up to a message; prints its id."""

    async def fork_session() -> str:
        async with _started() as program:
            return await program.fork(await program.find(session), message)

    made = run_async(fork_session())
    if flags().json:
        emit({"id": made})
    else:
        click.echo(made)


async def _find_session(program: Program, session: str) -> str:
    """The session that is meant, by its id and nothing else: an empty word, as of a variable that is not set, must never change
    the one used last."""
    return await program.database.run(sessions.find_session, program.database, session)


@command.command("rename")
@click.argument("session", shell_complete=completing.sessions)
@click.argument("title")
@common_options
def rename(session: str, title: str) -> None:
    """Give a session another title."""

    async def rename_session() -> str:
        async with _started() as program:
            found = await _find_session(program, session)
            await program.database.run(sessions.rename, program.database, found, title)
            return found

    found = run_async(rename_session())
    if flags().json:
        emit({"id": found, "title": title})


@command.command("delete")
@click.argument("session", shell_complete=completing.sessions)
@common_options
def delete(session: str) -> None:
    """Delete a session and what belongs to it, its sub-agents' sessions too, for good."""

    async def delete_session() -> str:
        async with _started() as program:
            found = await _find_session(program, session)
            await program.delete(found)
            return found

    found = run_async(delete_session())
    if flags().json:
        emit({"id": found, "deleted": True})
