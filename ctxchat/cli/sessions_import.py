"""`ctxchat sessions import`: histories of other agents, one file, a folder, or all that is found."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from ctxchat.bootstrap import history_import
from ctxchat.bootstrap.flags import settings_from
from ctxchat.bootstrap.program import Program
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.cli.common import (
    common_options,
    emit,
    flags,
    index_completed,
    narrate,
    own_settings_file,
    run_async,
    status,
    table,
)
from ctxchat.config import write
from ctxchat.core.errors import UsageError
from ctxchat.core.sanitize import harmless_json
from ctxchat.importing import formats
from ctxchat.importing.formats import FORMATS, Format
from ctxchat.importing.outcome import (
    FOLLOWING,
    Imported,
    ImportNews,
    ReadSoFar,
    deleted_there,
    not_kept,
    size_words,
    summary,
)
from ctxchat.storage import sessions
from ctxchat.storage.database import Database

MAX_NAMED_LINES = 5
"""Damaged lines of a file told one by one; more are a number, and all are in `--json`."""

NICENESS = 5
"""How much less of the processor it takes where a program reads its events."""


class FoundRow(msgspec.Struct, frozen=True):
    """The sessions of one agent found on this machine. `size` is in bytes, `newest` is ISO 8601 UTC; `new` files were not
    imported yet, or have changed since."""

    agent: str
    sessions: int
    new: int
    size: int
    newest: str
    folder: str


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[FILE | FOLDER]...")
@click.option(
    "--from", "agent", default="", metavar="NAME", help=f"Which agent's format it is: {', '.join(FORMATS)}, openai."
)
@click.option("--found", is_flag=True, help="List what is in the usual places on this machine, and import nothing.")
@click.option("--all", "every", is_flag=True, help="Import all that --found names (with --from, of that agent).")
@click.option(
    "--follow/--no-follow",
    default=None,
    help="Import all of it now, and from now on what is new while ctxchat is open; or no more from now on.",
)
@click.option("--events", is_flag=True, help="JSON lines as it goes, for programs: how far it is, and each session.")
@click.option("--title", default="", metavar="T", help="Its title; without one the first user message gives it.")
@common_options
def command(
    paths: Sequence[str], agent: str, found: bool, every: bool, follow: bool | None, events: bool, title: str
) -> None:
    """Bring in sessions of other agents, and OpenAI-style chat messages (JSON or JSON lines); prints the ids.

    Whose they are is recognised. What was brought in before is not brought in twice.
    """
    if events:
        with suppress(AttributeError, OSError):  # it runs beside a chat
            os.nice(NICENESS)
    form = formats.named(agent) if agent not in {"", "openai"} else None
    if follow is not None:
        if paths or agent or found or title:
            raise UsageError("--follow and --no-follow are for all agents there are.", "Give neither file nor --from.")
        _switch_following(follow)
        if not follow:
            return
        every = True
    if found:
        _tell_found(form)
    elif every:
        home = Path.home()
        files = [(f.form, file) for f in formats.find_sessions(home) if form in {None, f.form} for file in f.files]
        _import_all(files, only_new=True, events=events)
    elif not paths:
        raise UsageError("Nothing to import.", "Give a file or a folder, --found to see what there is, or --all.")
    elif agent == "openai" or (len(paths) == 1 and not form and _chat(Path(paths[0]))):
        _import_chat(Path(paths[0]), title, events=events)
    else:
        _import_all([pair for path in paths for pair in _files_of(Path(path), form)], events=events)


def _switch_following(on: bool) -> None:
    """Write it into the person's settings, and say what that means."""
    file = own_settings_file()
    if on:
        write.set_value(file, "sessions.follow", True)
    else:
        write.unset_value(file, "sessions.follow")
    loaded = settings_from(flags(), workspace_of(flags().cwd))
    narrate(f"{file}: sessions.follow = {str(on).lower()}")
    if (in_force := loaded.settings.sessions.follow) is not on:
        set_by = loaded.origins["sessions.follow"].text
        narrate(f"! {set_by} says otherwise, and counts: sessions.follow = {str(in_force).lower()}")
    elif on:
        narrate(FOLLOWING)
        deleted = deleted_there([history_import.as_importable(found) for found in formats.find_sessions(Path.home())])
        narrate(f"{deleted} `ctxchat sessions import --no-follow` ends it.".lstrip())
    else:
        narrate("No new sessions of other agents are brought in any more. Those that are here stay.")
        if flags().json:
            emit({"follow": False})


def _chat(path: Path) -> bool:
    return not path.is_dir() and (not path.is_file() or formats.recognised(path) is None)


def _files_of(path: Path, form: Format | None) -> list[tuple[Format, Path]]:
    """The files that a path of the command line stands for, each with its format. Raises UsageError where there is none."""
    if not path.exists():
        raise UsageError(f"{path} does not exist.", "Give the path of a file or a folder.")
    if path.is_file():
        known = form or formats.recognised(path)
        if known is None:
            raise UsageError(f"{path} is no session of an agent ctxchat knows.", f"It knows {', '.join(FORMATS)}.")
        return [(known, path), *((known, beside) for beside in known.beside(path))]
    inside = formats.files_in(path, form)
    if not inside:
        raise UsageError(f"{path} holds no sessions of an agent ctxchat knows.", f"It knows {', '.join(FORMATS)}.")
    return inside


def _import_chat(file: Path, title: str, *, events: bool) -> None:
    async def import_file() -> tuple[str, int]:
        async with Program.started(flags()) as program:
            session = await program.bring_in(file, title)
            return session, (await program.database.run(sessions.row, program.database, session)).messages

    session, messages = run_async(import_file())
    if events:
        _event(Imported(str(file), "openai", "new", session, messages))
    elif flags().json:
        emit({"id": session})
    else:
        click.echo(session)


def _import_all(todo: Sequence[tuple[Format, Path]], *, events: bool, only_new: bool = False) -> None:
    told: list[Imported] = []
    quiet = flags().json
    stopped = threading.Event()

    def tell(news: ImportNews) -> None:
        if isinstance(news, Imported):
            told.append(news)
        if events:
            _event(news)
        elif isinstance(news, ReadSoFar):
            status(f"{min(100, news.read * 100 // max(1, news.of))} % of {size_words(news.of)}")
        elif news.id and not quiet:
            status("")
            click.echo(news.id)

    def waits() -> None:
        status("another import is under way; this one waits for its end")

    async def import_found() -> None:
        async with Program.started(flags()) as program:
            async with history_import.import_lock(program.database, waits) if only_new else nullcontext():
                same = history_import.unchanged_since_import(program.database)
                left = [(form, file) for form, file in todo if not only_new or (file.exists() and not same(file))]
                try:
                    await program.database.run(_bring, program.database, left, tell, lambda: not stopped.is_set())
                except asyncio.CancelledError:
                    stopped.set()
                    raise
            if not events:  # whoever reads those has a search of its own to complete
                status("")
                _report(told)
                await index_completed(program.database, math.inf)

    try:
        run_async(import_found())
    finally:
        status("")
    if told and all(one.outcome == "failed" for one in told):
        click.get_current_context().exit(1)


def _event(news: ImportNews) -> None:
    sys.stdout.write(harmless_json(msgspec.json.encode(news).decode()) + "\n")
    sys.stdout.flush()


def _bring(
    database: Database,
    todo: Sequence[tuple[Format, Path]],
    tell: Callable[[ImportNews], None],
    going_on: Callable[[], bool],
) -> None:
    """Import one file after the other while `going_on` returns true."""
    sizes = [_size(file) for _, file in todo]
    whole, before = sum(sizes), 0
    for (form, file), size in zip(todo, sizes, strict=True):
        read = 0

        def progress(more: int, before: int = before) -> None:
            nonlocal read
            if not going_on():
                raise KeyboardInterrupt  # out of the file under way, whose session is not stored
            if read // 1_000_000 != (read := read + more) // 1_000_000:
                tell(ReadSoFar(before + read, whole))

        try:
            for one in history_import.import_file(database, form, file, progress):
                tell(one)
        except KeyboardInterrupt:
            return  # nobody waits for this any more
        before += size
        tell(ReadSoFar(before, whole))


def _size(file: Path) -> int:
    with suppress(OSError):  # it went since it was found
        return file.stat().st_size
    return 0


def _report(told: Sequence[Imported]) -> None:
    if flags().json:
        first = next((one.id for one in told if one.id), "")
        emit({"id": first, "sessions": told})
        return
    for one in told:
        name = Path(one.file).name
        if one.problem:
            narrate(f"! {name}: {one.problem}")
        for damage in one.damaged[:MAX_NAMED_LINES]:
            narrate(f"! {damage}; the line was left out")
        if more := len(one.damaged) - MAX_NAMED_LINES:
            narrate(f"! {name}: {more} more damaged lines were left out") if more > 0 else None
    narrate(summary(told))
    for kind, many in sorted(not_kept(told).items(), key=lambda pair: -pair[1])[:12]:
        narrate(f"  not kept: {many:,} {kind}")


def _tell_found(form: Format | None) -> None:
    async def list_found() -> list[FoundRow]:
        async with Program.started(flags()) as program:
            return await program.database.run(lambda: list(_found_rows(program.database, form)))

    rows = run_async(list_found())
    if flags().json:
        emit(rows)
        return
    table(
        ("agent", "sessions", "new", "size", "newest", "folder"),
        [
            (r.agent, f"{r.sessions:,}", f"{r.new:,}", size_words(r.size), r.newest[:16].replace("T", " "), r.folder)
            for r in rows
        ],
        empty="No sessions of other agents were found in the usual places.",
        right=(1, 2, 3),
    )
    if any(r.new for r in rows):
        narrate("`ctxchat sessions import --all` imports them, with --from NAME those of one agent.")


def _found_rows(database: Database, form: Format | None) -> Iterator[FoundRow]:
    same = history_import.unchanged_since_import(database)
    for found in formats.find_sessions(Path.home()):
        if form in {None, found.form}:
            yield FoundRow(
                found.form.name,
                len(found.files),
                sum(not same(file) for file in found.files),
                found.size,
                datetime.fromtimestamp(found.newest, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
                str(found.folder),
            )
