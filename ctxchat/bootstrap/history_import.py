"""Imports the sessions of other agents: finds them on this machine, reads a file by its format and stores each of its sessions,
and runs whole imports in a child process of low priority beside a chat.

What was stored stays when an import is stopped. `import_file` may take long and needs no event loop: run it in a thread or a
process.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import chain
from pathlib import Path

import msgspec

from ctxchat.core.calibration import Mix
from ctxchat.core.errors import CtxchatError, SessionBusy, StorageError
from ctxchat.core.journal import Record
from ctxchat.core.messages import Message
from ctxchat.core.tokens import TokenCounter
from ctxchat.importing import formats
from ctxchat.importing.formats import Format, FoundSessions
from ctxchat.importing.journal_records import Building, Totals
from ctxchat.importing.json_stream import Progress, silent
from ctxchat.importing.outcome import Importable, Imported, ImportNews, ImportOutcome
from ctxchat.importing.steps import Begin, Damaged, Said, Step
from ctxchat.models.tokenizers import counter
from ctxchat.own_processes import module_command
from ctxchat.storage import origins, private_files
from ctxchat.storage.database import Database
from ctxchat.storage.faults import faults
from ctxchat.storage.origins import SessionOrigin
from ctxchat.storage.session_files import attach

IMPORT_END_TIMEOUT_S = 5.0
"""Seconds an import that is stopped gets to end its transaction, before it is killed."""

_MAX_LINE_BYTES = 10_000_000  # bytes of a line: one session, with the names of all its damaged lines
_OFFERED = "told of other agents' sessions"
_FOLLOW_ANSWERED = "asked whether to follow other agents' sessions"
"""Rows of the store's `meta` table."""

_LOCK_POLL_S = 0.5

_news = msgspec.json.Decoder(ImportNews)


def unchanged_since_import(database: Database) -> Callable[[Path], bool]:
    """A test of whether a file has the size and time it had when it was imported last."""
    known = origins.imported_files(database)

    def same(file: Path) -> bool:
        try:
            stat = file.stat()
        except OSError:
            return False
        return known.get(str(file.absolute())) == (stat.st_size, stat.st_mtime_ns)

    return same


def import_file(database: Database, form: Format, file: Path, progress: Progress = silent) -> Iterator[Imported]:
    """Import every session of a file. Raises nothing: a file that cannot be read is a failed session, and what is wrong with one
    session affects only that one."""
    try:
        with faults(file):
            stat = file.stat()
            origin = SessionOrigin("", str(file.absolute()), stat.st_size, stat.st_mtime_ns)
            empty = True
            for begin, steps in _sessions(form.steps(file, progress)):
                one = _import_session(database, form, file, begin, steps, origin, lambda: progress(0))
                empty = empty and one.outcome == "empty"
                yield one
            if empty:
                origins.remember_file(database, origin)
    except CtxchatError as problem:
        yield Imported(str(file), form.name, "failed", problem=str(problem))
    except Exception as problem:  # nobody knows what a file of others may hold; the next ones are read all the same
        yield Imported(str(file), form.name, "failed", problem=f"{type(problem).__name__}: {problem}")


def _sessions(steps: Iterator[Step]) -> Iterator[tuple[Begin, Iterator[Step]]]:
    """The steps of each session. What the caller leaves unread of one is skipped before the next."""
    following: list[Begin] = []

    def until_next() -> Iterator[Step]:
        for step in steps:
            if isinstance(step, Begin):
                following.append(step)
                return
            yield step

    for first in steps:
        if isinstance(first, Begin):
            following.append(first)
            break
    while following:
        session = until_next()
        yield following.pop(), session
        for _ in session:
            pass


def _import_session(
    database: Database,
    form: Format,
    file: Path,
    begin: Begin,
    steps: Iterator[Step],
    origin: SessionOrigin,
    keep_going: Callable[[], None],  # called between pieces; what it raises ends the import
) -> Imported:
    read_ahead: list[Step] = []
    first = next((s for s in _appending_to(read_ahead, steps) if isinstance(s, Said)), None)
    if first is None:
        damaged = tuple(f"{s.where}: {s.why}" for s in read_ahead if isinstance(s, Damaged))
        return Imported(str(file), form.name, "empty", damaged=damaged)
    origin = msgspec.structs.replace(origin, source=f"{form.name}:{begin.id}:{_digest(first.message)}")
    built: list[Building] = []  # set by `records`, which `origins.import_session` calls once

    def records(session: str) -> Iterable[Record]:
        folder = private_files.session_folder(database.folder, session)
        building = Building(session, form.label, lambda name, data: attach(folder, name, data), _weigher())
        built.append(building)
        return _records(building, chain(read_ahead, steps))

    def about() -> origins.SessionListing:
        building = built[0]
        parent = building.about.parent or begin.parent
        return origins.SessionListing(
            building.totals.messages,
            building.totals.first,
            building.totals.last,
            building.about.folder,
            building.totals.model,
            f"{form.name}:{parent}" if parent else "",
            begin.delegated,
        )

    try:
        session, new = origins.import_session(database, origin, records, about, keep_going)
    except origins.NothingNew as same:
        origins.remember_file(database, origin)
        return _import_row(file, form, "known", same.session, built[0].totals)
    except CtxchatError as problem:
        return Imported(str(file), form.name, "failed", problem=str(problem))
    return _import_row(file, form, "new" if new else "grown", session, built[0].totals)


def _appending_to(read_ahead: list[Step], steps: Iterator[Step]) -> Iterator[Step]:
    """The steps, each also appended to `read_ahead`."""
    for step in steps:
        read_ahead.append(step)
        yield step


def _records(building: Building, steps: Iterable[Step]) -> Iterator[Record]:
    for step in steps:
        yield from building.add_step(step)
    yield from building.last_records()


def _import_row(file: Path, form: Format, outcome: ImportOutcome, session: str, totals: Totals) -> Imported:
    return Imported(
        str(file),
        form.name,
        outcome,
        session,
        totals.messages,
        totals.compactions,
        totals.branches,
        tuple(totals.damaged),
        totals.no_place,
    )


def _weigher() -> Callable[[str, Message], Mix]:
    """A function that weighs messages as the gauge does, per model."""
    counters: dict[str, TokenCounter] = {}

    def weigh(model: str, message: Message) -> Mix:
        if model not in counters:
            counters[model] = TokenCounter(counter(model))
        return counters[model].draft_mix(message)

    return weigh


def _digest(message: Message) -> str:
    """A digest of a session's first message, so that two files with the same id (one session in two parts) count as two."""
    words = f"{message.at} {message.role} {message.text[:2000]}"
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=5).hexdigest()


def as_importable(found: FoundSessions, sizes: Sequence[int] | None = None) -> Importable:
    """Sessions of one agent that could be imported: all of them, or those of its files with these `sizes` in bytes."""
    files, size = (len(found.files), found.size) if sizes is None else (len(sizes), sum(sizes))
    return Importable(found.form.label, files, size, found.form.kept_for(Path.home()))


async def importable(database: Database, path: Path | None) -> list[Importable]:
    """Sessions that are not here yet, or have changed: of all agents in their usual places, or in this file or folder."""
    same = await database.run(unchanged_since_import, database)

    def still_to_import() -> list[Importable]:
        every = formats.find_sessions(Path.home()) if path is None else formats.sessions_at(path)
        sizes = [(found, [size for _, size, _ in _changed(found.files, same)]) for found in every]
        return [as_importable(found, changed) for found, changed in sizes if changed]

    with suppress(OSError):
        return await asyncio.to_thread(still_to_import)
    return []


async def first_found(database: Database) -> Sequence[Importable]:
    """What `importable` finds in the usual places, the first time there is anything; nothing from then on."""
    with suppress(StorageError):
        if await database.run(database.remembered, _OFFERED):
            return ()
        if found := await importable(database, None):
            await database.run(database.remember, _OFFERED, "yes")
            return found
    return ()


async def may_offer_following(database: Database) -> bool:
    """Whether the person was not yet asked if other agents' sessions are to be followed."""
    with suppress(StorageError):
        return not database.only_read and not await database.run(database.remembered, _FOLLOW_ANSWERED)
    return False


async def following_answered(database: Database) -> None:
    """Remember that the person has answered, so that they are not asked again. Raises StorageError."""
    await database.run(database.remember, _FOLLOW_ANSWERED, "yes")


@asynccontextmanager
async def import_lock(database: Database, on_wait: Callable[[], None] = lambda: None) -> AsyncGenerator[None]:
    """Hold the lock for importing everything that is found. `on_wait` is called once where another process has it. Raises
    StorageError."""
    waited = False
    while (held := await asyncio.to_thread(_try_lock, database)) is None:
        if not waited:
            on_wait()
        waited = True
        await asyncio.sleep(_LOCK_POLL_S)
    with held:
        yield


def _try_lock(database: Database) -> private_files.Lock | None:
    with suppress(SessionBusy):
        return private_files.lock(database.folder / "import.lock")
    return None


class Following:
    """Imports new and grown sessions of other agents, pass by pass. Files that could not be imported are tried again only when
    one of them changes or another one appears."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tried: set[tuple[Path, int, int]] = set()  # files left over by the last pass, with size and time

    async def bring_new(self) -> AsyncGenerator[ImportNews, None]:
        """One pass, in a child process; nothing where no file is new, the store is read-only, or another import is under way.
        Closing the generator ends it. Raises CtxchatError."""
        if self._database.only_read:
            return
        same = await self._database.run(unchanged_since_import, self._database)
        waiting = await asyncio.to_thread(_waiting, same)
        if waiting <= self._tried:
            return
        free = await asyncio.to_thread(_try_lock, self._database)
        if free is None:
            return
        free.release()  # the process takes it; should another be quicker, it finds nothing left to do
        async with aclosing(run_import(None)) as news:
            async for each in news:
                yield each
        self._tried = waiting


def _waiting(same: Callable[[Path], bool]) -> set[tuple[Path, int, int]]:
    return {each for found in formats.find_sessions(Path.home()) for each in _changed(found.files, same)}


def _changed(files: Iterable[Path], same: Callable[[Path], bool]) -> Iterator[tuple[Path, int, int]]:
    """The files that are not here yet or have changed, each with its size and time; one that has gone meanwhile is left out."""
    for file in files:
        with suppress(OSError):
            if not same(file):
                stat = file.stat()
                yield file, stat.st_size, stat.st_mtime_ns


async def run_import(path: Path | None) -> AsyncGenerator[ImportNews, None]:
    """Import a file or folder, or all that is found; closing the generator ends it. Raises CtxchatError with what the process
    said where it failed."""
    what = ["--all"] if path is None else ["--", str(path)]
    process = await asyncio.create_subprocess_exec(
        *module_command("ctxchat", "sessions", "import", "--events", *what),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
    )
    assert process.stdout and process.stderr
    error_output = asyncio.create_task(process.stderr.read())
    any_news = False
    try:
        async for line in process.stdout:
            with suppress(msgspec.DecodeError):
                yield _news.decode(line)
                any_news = True
        if await process.wait() and not any_news:
            words = (await error_output).decode("utf-8", "replace").strip().removeprefix("ctxchat: ")
            raise CtxchatError(
                words or f"The import ended with exit code {process.returncode}.", "Nothing was brought in."
            )
    finally:
        if process.returncode is None:
            process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), IMPORT_END_TIMEOUT_S)
        if process.returncode is None:
            process.kill()
            await process.wait()
        error_output.cancel()
