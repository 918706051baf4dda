"""Histories of other agents brought in: what there is of them on this machine, a file read by its format with each of its
sessions stored on its own, and all of that beside a chat, in a process that takes the processor only when nobody else wants it.

What an import has stored stays when it is ended. `bring` may take long and needs no event loop: it runs in a thread or a process.
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
"""Seconds that an import which is to end has to leave its transaction."""

_MAX_LINE_BYTES = 10_000_000  # bytes of a line: one session, with the names of all its damaged lines
_OFFERED = "told of other agents' sessions"
_FOLLOW_ANSWERED = "asked whether to follow other agents' sessions"
"""Rows of the store's `meta` table."""

_LOCK_POLL_S = 0.5

_news = msgspec.json.Decoder(ImportNews)


def unchanged(database: Database) -> Callable[[Path], bool]:
    """Whether a file is as it was when it was brought in last, without a look into it."""
    known = origins.imported_files(database)

    def same(file: Path) -> bool:
        try:
            stat = file.stat()
        except OSError:
            return False
        return known.get(str(file.absolute())) == (stat.st_size, stat.st_mtime_ns)

    return same


def bring(database: Database, form: Format, file: Path, progress: Progress = silent) -> Iterator[Imported]:
    """Every session of a file as it is stored. Raises StorageError where the store cannot be written; what is wrong with one
    session costs that one. A file that cannot be read is a session that failed."""
    try:
        with faults(file):
            stat = file.stat()
            origin = SessionOrigin("", str(file.absolute()), stat.st_size, stat.st_mtime_ns)
            empty = True
            for begin, steps in _sessions(form.steps(file, progress)):
                one = _bring(database, form, file, begin, steps, origin, lambda: progress(0))
                empty = empty and one.outcome == "empty"
                yield one
            if empty:
                origins.seen(database, origin)
    except CtxchatError as problem:
        yield Imported(str(file), form.name, "failed", problem=str(problem))
    except Exception as problem:  # nobody knows what a file of others may hold; the next ones are read all the same
        yield Imported(str(file), form.name, "failed", problem=f"{type(problem).__name__}: {problem}")


def _sessions(steps: Iterator[Step]) -> Iterator[tuple[Begin, Iterator[Step]]]:
    """The steps of each session. One must be read to its end before the next is asked for; what is left is read over."""
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


def _bring(
    database: Database,
    form: Format,
    file: Path,
    begin: Begin,
    steps: Iterator[Step],
    origin: SessionOrigin,
    going_on: Callable[[], None],
) -> Imported:
    ahead: list[Step] = []
    first = next((s for s in _noted(steps, ahead) if isinstance(s, Said)), None)
    if first is None:
        damaged = tuple(f"{s.where}: {s.why}" for s in ahead if isinstance(s, Damaged))
        return Imported(str(file), form.name, "empty", damaged=damaged)
    origin = msgspec.structs.replace(origin, source=f"{form.name}:{begin.id}:{_digest(first.message)}")
    built: list[Building] = []

    def records(session: str) -> Iterable[Record]:
        folder = private_files.session_folder(database.folder, session)
        building = Building(session, form.label, lambda name, data: attach(folder, name, data), _weigh())
        built.append(building)
        return _records(building, chain(ahead, steps))

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
        session, new = origins.bring(database, origin, records, about, going_on)
    except origins.NothingNew as same:
        origins.seen(database, origin)
        return _import_row(file, form, "known", same.session, built[0].totals)
    except CtxchatError as problem:
        return Imported(str(file), form.name, "failed", problem=str(problem))
    return _import_row(file, form, "new" if new else "grown", session, built[0].totals)


def _noted(steps: Iterator[Step], ahead: list[Step]) -> Iterator[Step]:
    for step in steps:
        ahead.append(step)
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


def _weigh() -> Callable[[str, Message], Mix]:
    """Messages as the gauge weighs them for each model."""
    meters: dict[str, TokenCounter] = {}

    def weigh(model: str, message: Message) -> Mix:
        if model not in meters:
            meters[model] = TokenCounter(counter(model))
        return meters[model].draft_mix(message)

    return weigh


def _digest(message: Message) -> str:
    """Of what a session begins with: two halves of one, in files of their own, are two."""
    words = f"{message.at} {message.role} {message.text[:2000]}"
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=5).hexdigest()


def as_importable(found: FoundSessions, sizes: Sequence[int] | None = None) -> Importable:
    """Sessions of one agent that could be imported: all of them, or those of its files with these `sizes` in bytes."""
    many, size = (len(found.files), found.size) if sizes is None else (len(sizes), sum(sizes))
    return Importable(found.form.label, many, size, found.form.kept_for(Path.home()))


async def importable(database: Database, path: Path | None) -> list[Importable]:
    """Sessions that are not here yet, or have changed: of all agents in their usual places, or in this file or folder."""
    same = await database.run(unchanged, database)

    def still_to_import() -> list[Importable]:
        there: list[Importable] = []
        for found in formats.find_sessions(Path.home()) if path is None else formats.sessions_at(path):
            sizes = [file.stat().st_size for file in found.files if not same(file)]
            if sizes:
                there.append(as_importable(found, sizes))
        return there

    with suppress(OSError):
        return await asyncio.to_thread(still_to_import)
    return []


async def first_found(database: Database) -> Sequence[Importable]:
    """The same of the usual places, the first time that anything is there; nothing from then on."""
    with suppress(StorageError):
        if await database.run(database.remembered, _OFFERED):
            return ()
        if found := await importable(database, None):
            await database.run(database.remember, _OFFERED, "yes")
            return found
    return ()


async def may_offer_following(database: Database) -> bool:
    """Nobody was asked yet whether other agents' sessions are to be followed."""
    with suppress(StorageError):
        return not database.only_read and not await database.run(database.remembered, _FOLLOW_ANSWERED)
    return False


async def following_answered(database: Database) -> None:
    """Remember that somebody was: a question that was answered is not asked again. Raises StorageError."""
    await database.run(database.remember, _FOLLOW_ANSWERED, "yes")


@asynccontextmanager
async def alone(database: Database, waits: Callable[[], None] = lambda: None) -> AsyncGenerator[None]:
    """Be the only one on this store that imports all that is found; `waits` is told once that another is at it. Raises
    StorageError."""
    told = False
    while (held := await asyncio.to_thread(_hold, database)) is None:
        if not told:
            waits()
        told = True
        await asyncio.sleep(_LOCK_POLL_S)
    with held:
        yield


def _hold(database: Database) -> private_files.Lock | None:
    with suppress(SessionBusy):
        return private_files.lock(database.folder / "import.lock")
    return None


class Following:
    """New and grown sessions of other agents in their usual places, imported pass by pass. What could not be brought in is tried
    again once something else has come, or it has changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tried: set[tuple[Path, int, int]] = set()

    async def bring_new(self) -> AsyncGenerator[ImportNews, None]:
        """One pass, in a process of its own; none where nothing came, where nothing can be written, or where another window or
        command is at it. Closing the generator ends it. Raises CtxchatError."""
        if self._database.only_read:
            return
        same = await self._database.run(unchanged, self._database)
        waiting = await asyncio.to_thread(_waiting, same)
        if waiting <= self._tried:
            return
        free = await asyncio.to_thread(_hold, self._database)
        if free is None:
            return
        free.release()  # the process takes it; should another be quicker, it finds nothing left to do
        async with aclosing(run_import(None)) as news:
            async for each in news:
                yield each
        self._tried = waiting


def _waiting(same: Callable[[Path], bool]) -> set[tuple[Path, int, int]]:
    """The files that are not here yet or have changed, each with its size and time."""
    waiting: set[tuple[Path, int, int]] = set()
    for found in formats.find_sessions(Path.home()):
        for file in found.files:
            with suppress(OSError):
                if not same(file):
                    stat = file.stat()
                    waiting.add((file, stat.st_size, stat.st_mtime_ns))
    return waiting


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
    complaint = asyncio.create_task(process.stderr.read())
    known = False
    try:
        async for line in process.stdout:
            with suppress(msgspec.DecodeError):
                yield _news.decode(line)
                known = True
        if await process.wait() and not known:
            words = (await complaint).decode("utf-8", "replace").strip().removeprefix("ctxchat: ")
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
        complaint.cancel()
