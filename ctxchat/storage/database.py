"""The one SQLite database of a data folder: opened, brought up to date, read and written in whole transactions.

One connection, used by one thread at a time; asynchronous callers hand their work to the one storage thread. Knows
no session.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

from ctxchat.core.errors import SessionBusy, StorageError, UsageError
from ctxchat.core.tokens import Count, rough_count
from ctxchat.storage import index, private_files, schema
from ctxchat.storage.faults import NotWritable, faults

P = ParamSpec("P")
T = TypeVar("T")

FILE = "ctxchat.db"
RESERVE_FILE = ".room"
"""A file that is there to be removed on a full disk, so that a session can be deleted then."""

_RESERVE_FILE_BYTES = 512_000  # bytes: what a deletion writes before it gives room
MAX_BACKUPS = 5
INDEX_MENDED = "the search index was damaged; it has been made anew from the messages"
_LOW_DISK_BYTES = 2_000_000  # free bytes below which the disk counts as full: a few long replies
_MAX_WAL_BYTES = 4_000_000  # bytes that the write-ahead log may keep once it is written back
_DELETED_ROWS_AT_ONCE = 400  # rows, of a deletion that is finished later
_LOCK_TIMEOUT_S = 30.0  # seconds another process may write before we give up
_ALONE_TIMEOUT_S = 2.0  # seconds where another one that is there stays for as long as it runs


def utc_now() -> str:
    """ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """An open store. Its functions may be called from any thread; `run` calls them in the storage thread.

    `folder` is the data folder, `backups` the copies made by migrations at this opening, `only_read` why nothing can be written
    here (empty where it can), `alone` that the folder's file system keeps no shared locks, so that no other process can open it
    at the same time. `count` gives the tokens that search shows beside a hit.
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
        """Open, make or bring up to date the database in `folder`; where nothing may be written there, for reading, with what
        must be written for that in a copy elsewhere. Raises StorageError, having overwritten nothing."""
        self.folder = private_files.private_folder(folder)
        self.path = folder / FILE
        self.now = now
        self.count = count
        self.backups: list[Path] = []
        self.only_read = ""
        self.alone = not private_files.shares_locks(folder)
        self._mutex = threading.RLock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="storage")
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        with faults(self.path, alone=self.alone):
            try:
                private_files.private_file(self.path)
                self._connection = self._opened(_connect(self.path, alone=self.alone), migrations)
            except NotWritable as refused:
                if not self.path.is_file():
                    raise
                self.only_read = str(refused)
                self._connection = self._for_reading(migrations)
            index.prepare(self._connection, wanted=full_text, mode="ro" if self.only_read else "rw")
        if not self.only_read:
            self._reserve()
            self.finish_deletions()

    @property
    def fts(self) -> bool:
        """Whether there is a full-text index at hand."""
        return index.attached(self._connection)

    @property
    def version(self) -> int:
        """The version of its tables."""
        return int(self.query("PRAGMA user_version")[0][0])

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query. Raises StorageError."""
        with self._mutex, faults(self.path):
            return self._connection.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def transaction(self, *, linked: bool = True) -> Generator[sqlite3.Connection]:
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

    def write(self, work: Callable[[sqlite3.Connection], T], *, linked: bool = True) -> T:
        """Work in one transaction (`linked` as there). Where the index proves to be damaged nothing is lost for it: the work is
        undone, and done again without, and the index made anew after it. Raises StorageError."""

        def written() -> T:
            with self.transaction(linked=linked) as connection:
                return work(connection)

        with self._mutex:  # nobody writes in between
            try:
                return written()
            except StorageError as problem:
                if not (self.fts and index.damaged(problem.__cause__)):
                    raise
            if index.attach(self._connection):  # another process made it anew meanwhile
                with contextlib.suppress(StorageError):
                    return written()
            index.detach(self._connection)
            done = written()
            self.renew_index()
            return done

    def renew_index(self) -> None:
        """Have the index made anew, or go on without one where that cannot be. `take_in_more` completes it."""
        with self._mutex:
            if self.only_read:
                index.detach(self._connection)
            else:
                index.make_anew(self._connection)

    def take_in_more(self) -> bool:
        """Take some of the messages that wait into the index, in a short transaction; whether more wait. Nobody waits for it:
        while another process writes it does nothing."""
        with self._mutex:
            if not self.fts or self.only_read:
                return False
            try:
                self.follow_index()
                self._connection.execute("PRAGMA busy_timeout = 0")
                return self.fts and bool(index.take_in_more(self._connection))
            except sqlite3.Error as problem:
                if index.damaged(problem):
                    self.renew_index()
                return getattr(problem, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {_LOCK_TIMEOUT_S * 1000:.0f}")

    @property
    def indexed(self) -> float:
        """The share of all messages that a search by the index finds, the newest first: 1.0 where none waits."""
        with self._mutex:
            try:
                left = index.waiting(self._connection) if self.fts else 0
                whole = self._connection.execute("SELECT max(id) FROM messages").fetchone()[0] or 0 if left else 0
            except sqlite3.Error:  # damaged, which the search itself finds and mends
                return 1.0
            return max(0.0, 1 - left / whole) if whole else 1.0

    def follow_index(self) -> None:
        """Go by the index in force, where another process made it anew or wrote without one."""
        with self._mutex:
            if self.fts and not index.current(self._connection) and not index.attach(self._connection):
                self.renew_index()

    def write_back(self) -> None:
        """Have the log written back into the database and emptied, which gives its room to others. Raises StorageError."""
        self.query("PRAGMA main.wal_checkpoint(TRUNCATE)")

    def give_room(self) -> None:
        """Remove what can be made anew, on a full disk: the file that is kept for this, and the index. The next opening with room
        makes them again."""
        with self._mutex:
            with contextlib.suppress(OSError):
                (self.folder / RESERVE_FILE).unlink(missing_ok=True)
            index.drop_index(self._connection)

    def _reserve(self) -> None:
        with contextlib.suppress(OSError):
            place = self.folder / RESERVE_FILE
            if not place.exists() and shutil.disk_usage(self.folder).free > 4 * _RESERVE_FILE_BYTES:
                private_files.write_private(place, bytes(_RESERVE_FILE_BYTES))

    @contextlib.contextmanager
    def _links(self, wanted: bool) -> Generator[None]:
        if wanted:
            yield
            return
        self._connection.execute("PRAGMA foreign_keys = OFF")
        try:
            yield
        finally:
            self._connection.execute("PRAGMA foreign_keys = ON")

    def remembered(self, key: str) -> str | None:
        """What was remembered under this name, None for nothing. Raises StorageError."""
        found = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return found[0][0] if found else None

    def remember(self, key: str, value: str) -> None:
        """Keep a value under this name, from one start to the next. Raises StorageError."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def missed(self) -> list[str]:
        """That writes are missing which were there once, in a sentence; empty where nothing speaks for it."""
        try:
            many = self.remembered(index.MISSED)
        except StorageError:
            many = None
        if many is None:
            return []
        why = f"{FILE}-wal was removed or cut short, or an older copy was put in place"
        return [
            f"The store is older than its search index: what was written last is missing ({many} writes or more). {why}; "
            "`ctxchat doctor --backups` lists copies."
        ]

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the storage thread, after all that was asked for before. Once asked for it is done, even where
        the one who waits is cancelled."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, lambda: function(*args, **kwargs)))

    def backup(self, name: str) -> Path:
        """A copy of the database under `backups/`, whole even while others write. Raises StorageError."""
        copy = private_files.private_folder(self.folder / "backups") / name
        private_files.private_file(copy)
        with faults(copy), contextlib.closing(sqlite3.connect(copy)) as target, self._mutex:
            self._connection.backup(target)
        return copy

    def cramped(self) -> str:
        """That the disk is all but full, in words; empty where it is not."""
        free = shutil.disk_usage(self.folder).free
        return f"the disk has only {free // 1000:,} kB left" if free < _LOW_DISK_BYTES else ""

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file, in words; empty when all is well. A damaged index is made anew, and told."""
        found: list[str] = []
        try:
            rows = self.query("PRAGMA main.integrity_check(20)")
            found += [line for (text,) in rows for line in str(text).splitlines() if _wrong(line)]
        except StorageError as problem:  # a page on which not even the looking goes on
            found.append(str(problem))
        if self.fts and not self.only_read:
            with contextlib.suppress(sqlite3.Error):  # damaged, which is told below
                self.follow_index()  # another process may have made it anew, or been killed between two commits
        if self.fts and not self.only_read and not self._index_sound():
            self.renew_index()
            found.append(INDEX_MENDED)
        return found

    def _index_sound(self) -> bool:
        try:
            with self.transaction() as connection:
                index.verify(connection)
        except StorageError as problem:
            if not index.damaged(problem.__cause__):
                raise
            return False
        return True

    def doomed(self) -> set[str]:
        """Sessions of which something may be there though they are deleted, or are not yet brought in to the end."""
        try:
            doomed = set(self.query("SELECT session FROM doomed NOT INDEXED"))
            # A page of another table in its place would name sessions that nobody deleted: both must say so.
            doomed &= set(self.query("SELECT session FROM doomed INDEXED BY sqlite_autoindex_doomed_1"))
            return {session for (session,) in doomed - set(self.query("SELECT id FROM sessions"))}
        except StorageError:  # on a damaged page
            return set()

    def finish_deletions(self) -> None:
        """Finish deleting the `doomed` sessions, unless another process is bringing one in; what cannot be removed is tried again
        next time. Rows on a damaged page keep no file from going."""
        for session in self.doomed():
            # UsageError: what stands there is no session's id
            with contextlib.suppress(StorageError, SessionBusy, UsageError):
                folder = private_files.session_folder(self.folder, session)
                left = self._rows_left(session)
                if left or (folder / private_files.ASIDE).exists():
                    with private_files.lock(private_files.lock_path(self.folder, session)):
                        if self.query("SELECT 1 FROM sessions WHERE id = ?", (session,)):
                            continue
                        self._forget_rows(session)
                        left = self._rows_left(session)
                private_files.remove_folder(folder)
                if not left:
                    with self.transaction() as connection:
                        connection.execute("DELETE FROM doomed WHERE session = ?", (session,))

    def _rows_left(self, session: str) -> bool:
        """Whether a table still has rows of the session, or cannot be read."""
        some = (f"SELECT 1 FROM {table} WHERE session = ? LIMIT 1" for table in schema.OF_A_SESSION)
        try:
            return any(self.query(one, (session,)) for one in some)
        except StorageError:
            return True

    def _forget_rows(self, session: str) -> None:
        """A little at a time, so that others can write between. A row that only a damaged index still names is left."""
        for table, key in schema.OF_A_SESSION.items():
            some = f"SELECT {key} FROM {table} WHERE session = ? LIMIT {_DELETED_ROWS_AT_ONCE}"
            with contextlib.suppress(StorageError):
                while rows := self.query(some, (session,)):
                    if not self.write(lambda c, table=table, key=key, rows=rows: _forget(c, table, key, session, rows)):
                        break

    def close(self) -> None:
        """Finish what was asked for, then close. A second time does nothing."""
        self._thread.shutdown(wait=True)
        with self._mutex:
            self._connection.close()
            if self._copy:
                self._copy.cleanup()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _share(self) -> None:
        """Let others in again, where this was opened alone for want of room and there is some now. Raises NotWritable where
        nothing may be written."""
        if self.only_read:
            raise NotWritable(self.only_read)
        short = not self.alone and self._connection.execute("PRAGMA locking_mode").fetchone()[0] == "exclusive"
        if short and shutil.disk_usage(self.folder).free > _LOW_DISK_BYTES:
            wanted = self.fts
            self._connection.close()
            self._connection = _connect(self.path)
            index.prepare(self._connection, wanted=wanted)

    def _opened(self, connection: sqlite3.Connection, migrations: Sequence[schema.Migration]) -> sqlite3.Connection:
        """The connection, to a database of the newest version."""
        self._connection = connection
        try:
            schema.check_ours(connection, self.path, len(migrations))
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            if self._copy:
                schema.migrate(connection, migrations, lambda number: self.path)
            elif schema.version(connection) != len(migrations) or mode != "wal":
                with private_files.lock(
                    self.folder / ".setup.lock", wait=_LOCK_TIMEOUT_S
                ):  # of two that start at once, one does it
                    connection.execute("PRAGMA journal_mode = WAL")
                    self.backups = schema.migrate(connection, migrations, self._backup_before)
        except BaseException:
            connection.close()
            raise
        return connection

    def _for_reading(self, migrations: Sequence[schema.Migration]) -> sqlite3.Connection:
        """A connection that only reads; over a copy where an older version or what a kill left can be read in no other way."""
        log = self.path.with_name(f"{FILE}-wal")
        settled = not log.exists() or not log.stat().st_size
        try:
            connection = _connect(self.path, "mode=ro&immutable=1" if settled else "mode=ro", alone=self.alone)
            if schema.version(connection) == len(migrations):
                return connection
            connection.close()
        except sqlite3.OperationalError:
            pass
        self._copy = tempfile.TemporaryDirectory(prefix="ctxchat-")
        for part in (self.path, log):
            if part.exists():
                shutil.copyfile(part, Path(self._copy.name) / part.name)
        return self._opened(_connect(Path(self._copy.name) / FILE), migrations)

    def _backup_before(self, number: int) -> Path:
        stamp = self.now().replace(":", "").replace("-", "")
        copy = self.backup(f"v{number}-{stamp}.db")
        for old in sorted(copy.parent.glob("v*.db"), key=lambda p: p.stat().st_mtime)[:-MAX_BACKUPS]:
            old.unlink()
        return copy


def _forget(connection: sqlite3.Connection, table: str, key: str, session: str, rows: Sequence[tuple[Any]]) -> int:
    """Remove these rows; how many there were."""
    if table == "messages":
        for (row,) in rows:
            index.remove_row(connection, row)
    some = f"DELETE FROM {table} WHERE session = ? AND {key} = ?"
    return connection.executemany(some, ((session, row) for (row,) in rows)).rowcount


def _wrong(line: str) -> bool:
    """A line of an integrity check tells of damage: not that all is well, where it looked, or of a page that nothing uses."""
    return line != "ok" and not line.startswith("***") and not line.endswith("never used") and line != ""


def _connect(path: Path, mode: str = "mode=rw", *, alone: bool = False) -> sqlite3.Connection:
    """On a full disk there is no room for the file that processes share beside the database; elsewhere it cannot be locked. One
    process alone can use what is there all the same: it keeps that file in memory."""
    uri = f"file:{quote(str(path.resolve()))}?{mode}"
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=_ALONE_TIMEOUT_S if alone else _LOCK_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA user_version")  # the first look is what wants that file
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = FAST")
        connection.execute(f"PRAGMA journal_size_limit = {_MAX_WAL_BYTES}")
        connection.execute(f"PRAGMA cache_size = {index.CACHE_KILOBYTES}")
    except BaseException as problem:
        connection.close()
        if not alone and getattr(problem, "sqlite_errorname", "").startswith("SQLITE_IOERR_SHM"):
            return _connect(path, mode, alone=True)
        raise
    return connection
