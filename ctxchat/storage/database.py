"""The one SQLite database of a data folder: opened, brought up to date, read and written in whole transactions.

One connection, used by one thread at a time; asynchronous callers hand their work to the one storage thread. Knows
no session.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

from ctxchat.core.errors import StorageError
from ctxchat.core.tokens import Count, rough_count
from ctxchat.storage import files, index, schema
from ctxchat.storage.faults import faults

P = ParamSpec("P")
T = TypeVar("T")

FILE = "ctxchat.db"
BACKUPS_KEPT = 5
_ROOM = 2_000_000  # bytes, for a few long replies
_UNUSED = re.compile(r"(\*\*\* in database main \*\*\*\n?)?(Page \d+.* never used\n?)*")  # what quick_check names last
_PATIENCE = 30.0  # seconds another process may write before we give up


def utc_now() -> str:
    """ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """An open store. Its functions may be called from any thread; `run` calls them in the storage thread.

    `folder` is the data folder, `fts` whether there is a full-text index, `backups` the copies made by migrations at this
    opening. `count` gives the tokens that search shows beside a hit.
    """

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], str] = utc_now,
        count: Count = rough_count,
        full_text: bool = True,
        migrations: Sequence[schema.Migration] = schema.MIGRATIONS,
    ) -> None:
        """Open, make or bring up to date the database in `folder`. Raises StorageError, having overwritten nothing."""
        self.folder = files.private_folder(folder)
        self.path = files.private_file(folder / FILE)
        self.now = now
        self.count = count
        self._mutex = threading.RLock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="storage")
        with faults(self.path):
            self._connection = _connect(self.path)
            try:
                self.backups = self._bring_up_to_date(migrations)
                self.fts = index.prepare(self._connection, wanted=full_text)
            except BaseException:
                self._connection.close()
                raise
        self.finish_deletions()

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query. Raises StorageError."""
        with self._mutex, faults(self.path):
            return self._connection.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def transaction(self, *, linked: bool = True) -> Iterator[sqlite3.Connection]:
        """Everything inside is written, and is on disk at the end; or nothing is. Where it is not `linked`, rows may go that
        others point to. Raises StorageError."""
        with self._mutex, faults(self.path), self._links(linked):
            self._share()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def write(self, work: Callable[[sqlite3.Connection, bool], T]) -> T:
        """Work in one transaction; it is told whether there is an index to be kept. Where that proves to be damaged nothing
        is lost for it: the work is undone, and done again without, and the index made anew after it. Raises StorageError."""
        with self._mutex:  # nobody writes between the two
            try:
                with self.transaction() as connection:
                    return work(connection, self.fts)
            except StorageError as problem:
                if not (self.fts and index.damaged(problem.__cause__)):
                    raise
            with self.transaction() as connection:
                index.put_aside(connection)
                done = work(connection, False)
            try:
                self._make_index_anew()
            except StorageError:  # what was to be written is; the next opening tries again
                self.fts = False
            return done

    @contextlib.contextmanager
    def _links(self, wanted: bool) -> Iterator[None]:
        if wanted:
            yield
            return
        self._connection.execute("PRAGMA foreign_keys = OFF")
        try:
            yield
        finally:
            self._connection.execute("PRAGMA foreign_keys = ON")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the storage thread, after all that was asked for before. Once asked for it is done, even where
        the one who waits is cancelled."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, lambda: function(*args, **kwargs)))

    def backup(self, name: str) -> Path:
        """A copy of the database under `backups/`, whole even while others write. Raises StorageError."""
        copy = files.private_folder(self.folder / "backups") / name
        files.private_file(copy)
        with faults(copy), contextlib.closing(sqlite3.connect(copy)) as target, self._mutex:
            self._connection.backup(target)
        return copy

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file, and that the disk is all but full, in words; empty when all is well."""
        free = shutil.disk_usage(self.folder).free
        if free < _ROOM:
            return [f"the disk has only {free // 1000:,} kB left"]
        try:
            sound = not self.fts or self._index_sound()
            found = self._look()
            if _bad(found) and sound and self.fts and self._index_to_blame():
                sound, found = False, self._look()
            if found and not _bad(found):
                self._give_back()
        except StorageError as problem:
            return [str(problem)]
        found = _bad(found)
        return found if sound else [*found, "the search index was damaged; it has been made anew from the messages"]

    def _look(self) -> list[str]:
        try:
            return [str(row[0]) for row in self.read("PRAGMA quick_check(20)") if row[0] != "ok"]
        except StorageError as problem:  # a page on which not even the looking goes on
            return [str(problem)]

    def _index_sound(self) -> bool:
        """Whether the full-text index was until now; it is afterwards."""
        try:
            with self.transaction() as connection:
                index.verify(connection)
        except StorageError as problem:
            if not index.damaged(problem.__cause__):
                raise
            self._make_index_anew()
            return False
        return True

    def _index_to_blame(self) -> bool:
        """Whether all is well with the pages without this index, as where one of its own names others'; it is new then."""
        try:
            with self.transaction() as connection:
                index.make_anew(connection)
                if _bad(self._look()):
                    raise StorageError("The index is not to blame.")
        except StorageError:
            return False
        return True

    def _give_back(self) -> None:
        """The pages of an index put aside, with the words in them, where all others are well. Without room for that they do no
        harm."""
        with self._mutex, contextlib.suppress(sqlite3.DatabaseError):
            self._connection.execute("VACUUM")

    def _make_index_anew(self) -> None:
        with self.transaction() as connection:
            index.make_anew(connection)

    def finish_deletions(self) -> None:
        """Remove the folders of deleted sessions that are still there; what cannot be removed is tried again next time."""
        for (session,) in self.read("SELECT session FROM doomed"):
            with contextlib.suppress(StorageError):
                files.remove_folder(files.session_folder(self.folder, session))
                with self.transaction() as connection:
                    connection.execute("DELETE FROM doomed WHERE session = ?", (session,))

    def close(self) -> None:
        """Finish what was asked for, then close. A second time does nothing."""
        self._thread.shutdown(wait=True)
        with self._mutex:
            self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _share(self) -> None:
        """Let others in again, where this was opened alone for want of room and there is some now."""
        alone = self._connection.execute("PRAGMA locking_mode").fetchone()[0] == "exclusive"
        if alone and shutil.disk_usage(self.folder).free > _ROOM:
            self._connection.close()
            self._connection = _connect(self.path)
            self.fts = index.prepare(self._connection, wanted=self.fts)

    def _bring_up_to_date(self, migrations: Sequence[schema.Migration]) -> list[Path]:
        schema.check_ours(self._connection, self.path, len(migrations))
        mode = self._connection.execute("PRAGMA journal_mode").fetchone()[0]
        if schema.version(self._connection) == len(migrations) and mode == "wal":
            return []
        with files.lock(self.folder / ".setup.lock", wait=_PATIENCE):  # of two that start at once, one does it
            self._connection.execute("PRAGMA journal_mode = WAL")
            return schema.migrate(self._connection, migrations, self._backup_before)

    def _backup_before(self, number: int) -> Path:
        stamp = self.now().replace(":", "").replace("-", "")
        copy = self.backup(f"v{number}-{stamp}.db")
        for old in sorted(copy.parent.glob("v*.db"), key=lambda p: p.stat().st_mtime)[:-BACKUPS_KEPT]:
            old.unlink()
        return copy


def _bad(found: list[str]) -> list[str]:
    """What was found, unless it is only pages that nothing uses."""
    return [] if all(map(_UNUSED.fullmatch, found)) else found


def _connect(path: Path, *, alone: bool = False) -> sqlite3.Connection:
    """On a full disk there is no room for the file that processes share beside the database. What is there can be read all the
    same by one process alone, which keeps that in memory."""
    uri = f"file:{quote(str(path.resolve()))}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA user_version")  # the first look is what wants that file
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = FAST")
    except BaseException as problem:
        connection.close()
        if not alone and getattr(problem, "sqlite_errorname", "").startswith("SQLITE_IOERR_SHM"):
            return _connect(path, alone=True)
        raise
    return connection
