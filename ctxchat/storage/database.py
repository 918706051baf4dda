"""Opens, migrates, reads and writes the SQLite database of a data folder, always in whole transactions.

There is one connection, used by one thread at a time; asynchronous callers hand their work to the storage thread. This module
does not know what the rows of a session mean.
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
"""A file that only takes up space: removing it on a full disk leaves enough to delete a session."""

_RESERVE_FILE_BYTES = 512_000  # bytes: what a deletion writes before it frees space
MAX_BACKUPS = 5
INDEX_MENDED = "the search index was damaged; it has been made anew from the messages"
_LOW_DISK_BYTES = 2_000_000  # free bytes below which the disk counts as full: a few long replies
_MAX_WAL_BYTES = 4_000_000  # bytes that the write-ahead log may keep after a checkpoint
_DELETED_ROWS_AT_ONCE = 400  # rows per transaction, in a deletion that is finished later
_LOCK_TIMEOUT_S = 30.0  # seconds to wait for another process that writes
_ALONE_TIMEOUT_S = 2.0  # seconds to wait where a lock is held for as long as the other process runs


def utc_now() -> str:
    """The time now: ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Database:
    """An open database. Its methods may be called from any thread; `run` calls them in the storage thread.

    `folder` is the data folder and `backups` the copies that migrations made at this opening. `only_read` says why nothing can
    be written, and is empty where writing works. `alone` is True where the folder's file system has no shared locks, so that no
    other process can open the database at the same time. `count` counts the tokens that search shows beside a hit.
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
        """Open the database in `folder`, or create it, and migrate it to the newest version. Where nothing may be written there
        it is opened for reading, through a copy elsewhere if reading it needs writes. Raises StorageError, having overwritten
        nothing."""
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
                self._connection = self._migrated(_connect(self.path, alone=self.alone), migrations)
            except NotWritable as refused:
                if not self.path.is_file():
                    raise
                self.only_read = str(refused)
                self._connection = self._for_reading(migrations)
            index.prepare(self._connection, wanted=full_text, mode="ro" if self.only_read else "rw")
        if not self.only_read:
            self._write_reserve_file()
            self.finish_deletions()

    @property
    def fts(self) -> bool:
        """Whether a full-text index is attached."""
        return index.attached(self._connection)

    @property
    def version(self) -> int:
        """The version of the tables: the number of migrations applied."""
        return int(self.query("PRAGMA user_version")[0][0])

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query. Raises StorageError."""
        with self._mutex, faults(self.path):
            return self._connection.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def transaction(self, *, linked: bool = True) -> Generator[sqlite3.Connection]:
        """A transaction: all that is written inside is on disk at its end, or none of it. Without `linked`, foreign keys are not
        checked, so rows that others refer to can be deleted. Raises StorageError."""
        with self._mutex, faults(self.path), self._foreign_keys(linked):
            self._share_again()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def write(self, work: Callable[[sqlite3.Connection], T], *, linked: bool = True) -> T:
        """Do `work` in one `transaction` and return its result. If the index proves damaged meanwhile, the work is rolled back
        and done again without the index, which is then rebuilt. Raises StorageError."""

        def work_in_transaction() -> T:
            with self.transaction(linked=linked) as connection:
                return work(connection)

        with self._mutex:  # so that nothing else is written between the attempts
            try:
                return work_in_transaction()
            except StorageError as problem:
                if not (self.fts and index.damaged(problem.__cause__)):
                    raise
            if index.attach(self._connection):  # another process rebuilt it meanwhile
                with contextlib.suppress(StorageError):
                    return work_in_transaction()
            index.detach(self._connection)
            result = work_in_transaction()
            self.rebuild_index()
            return result

    def rebuild_index(self) -> None:
        """Rebuild the index, or go on without one where that fails. `index_pending` adds the messages that are still missing."""
        with self._mutex:
            if self.only_read:
                index.detach(self._connection)
            else:
                index.rebuild(self._connection)

    def index_pending(self) -> bool:
        """Add some of the pending messages to the index, in a short transaction; True where more are pending. Does nothing
        while another process writes."""
        with self._mutex:
            if not self.fts or self.only_read:
                return False
            try:
                self.attach_current_index()
                self._connection.execute("PRAGMA busy_timeout = 0")
                return self.fts and bool(index.index_pending(self._connection))
            except sqlite3.Error as problem:
                if index.damaged(problem):
                    self.rebuild_index()
                return getattr(problem, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {_LOCK_TIMEOUT_S * 1000:.0f}")

    @property
    def indexed(self) -> float:
        """The share of all messages that is in the index, from 0.0 to 1.0: the newest are added first."""
        with self._mutex:
            try:
                pending = index.pending_count(self._connection) if self.fts else 0
                total = self._connection.execute("SELECT max(id) FROM messages").fetchone()[0] or 0 if pending else 0
            except sqlite3.Error:  # the index is damaged: the next search notices and rebuilds it
                return 1.0
            return max(0.0, 1 - pending / total) if total else 1.0

    def attach_current_index(self) -> None:
        """Attach the index file in force, where another process rebuilt the index or wrote without one."""
        with self._mutex:
            if self.fts and not index.current(self._connection) and not index.attach(self._connection):
                self.rebuild_index()

    def write_back(self) -> None:
        """Write the write-ahead log back into the database and empty it, which frees its disk space. Raises StorageError."""
        self.query("PRAGMA main.wal_checkpoint(TRUNCATE)")

    def free_disk_space(self) -> None:
        """Free disk space: remove the index and the file that is kept for a full disk. The next opening that finds enough space
        makes both again."""
        with self._mutex:
            with contextlib.suppress(OSError):
                (self.folder / RESERVE_FILE).unlink(missing_ok=True)
            index.drop_index(self._connection)

    def _write_reserve_file(self) -> None:
        """Write a file that is deleted when the disk is full: deleting sessions writes to the disk before it frees anything."""
        with contextlib.suppress(OSError):
            reserve = self.folder / RESERVE_FILE
            if not reserve.exists() and shutil.disk_usage(self.folder).free > 4 * _RESERVE_FILE_BYTES:
                private_files.write_private(reserve, bytes(_RESERVE_FILE_BYTES))

    @contextlib.contextmanager
    def _foreign_keys(self, checked: bool) -> Generator[None]:
        """A context in which foreign keys are not checked, unless `checked`."""
        if checked:
            yield
            return
        self._connection.execute("PRAGMA foreign_keys = OFF")
        try:
            yield
        finally:
            self._connection.execute("PRAGMA foreign_keys = ON")

    def remembered(self, key: str) -> str | None:
        """The value stored under this key by `remember`, None where there is none. Raises StorageError."""
        rows = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def remember(self, key: str, value: str) -> None:
        """Store a value under a key, for later starts of the program. Raises StorageError."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def missing_writes(self) -> list[str]:
        """A warning that the database lost writes that its index knows of; empty where nothing indicates that."""
        try:
            lost_writes = self.remembered(index.MISSED)
        except StorageError:
            lost_writes = None
        if lost_writes is None:
            return []
        why = f"{FILE}-wal was removed or cut short, or an older copy was put in place"
        return [
            f"The store is older than its search index: what was written last is missing ({lost_writes} writes or more). {why}; "
            "`ctxchat doctor --backups` lists copies."
        ]

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the storage thread, after all earlier calls. The call is carried out even if the task that awaits it
        is cancelled."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, lambda: function(*args, **kwargs)))

    def backup(self, name: str) -> Path:
        """Copy the database to `backups/name`, consistently even while others write; the copy's path. Raises StorageError."""
        copy = private_files.private_folder(self.folder / "backups") / name
        private_files.private_file(copy)
        with faults(copy), contextlib.closing(sqlite3.connect(copy)) as target, self._mutex:
            self._connection.backup(target)
        return copy

    def low_disk_warning(self) -> str:
        """A warning that the disk is nearly full; empty where it is not."""
        free = shutil.disk_usage(self.folder).free
        return f"the disk has only {free // 1000:,} kB left" if free < _LOW_DISK_BYTES else ""

    def check(self) -> list[str]:
        """The damage that SQLite finds in the file, one text each; empty where there is none. A damaged index is rebuilt and
        reported as `INDEX_MENDED`."""
        faults_found: list[str] = []
        try:
            rows = self.query("PRAGMA main.integrity_check(20)")
            faults_found += [line for (text,) in rows for line in str(text).splitlines() if _tells_damage(line)]
        except StorageError as problem:  # a page so damaged that the check itself stops there
            faults_found.append(str(problem))
        if self.fts and not self.only_read:
            with contextlib.suppress(sqlite3.Error):  # the index is damaged, which is reported below
                self.attach_current_index()  # another process may have rebuilt it, or been killed between two commits
        if self.fts and not self.only_read and not self._index_sound():
            self.rebuild_index()
            faults_found.append(INDEX_MENDED)
        return faults_found

    def _index_sound(self) -> bool:
        """Whether the search index is undamaged."""
        try:
            with self.transaction() as connection:
                index.verify(connection)
        except StorageError as problem:
            if not index.damaged(problem.__cause__):
                raise
            return False
        return True

    def doomed(self) -> set[str]:
        """The ids of sessions whose deletion or import is not finished, so that rows or files of them may be left."""
        try:
            doomed = set(self.query("SELECT session FROM doomed NOT INDEXED"))
            # A damaged file can show another table's page here, naming sessions that nobody deleted: table and index must agree.
            doomed &= set(self.query("SELECT session FROM doomed INDEXED BY sqlite_autoindex_doomed_1"))
            return {session for (session,) in doomed - set(self.query("SELECT id FROM sessions"))}
        except StorageError:  # on a damaged page
            return set()

    def finish_deletions(self) -> None:
        """Finish deleting the `doomed` sessions, except those that another process is importing. What cannot be removed is tried
        again next time; a session's files are removed even where some of its rows are on a damaged page."""
        for session in self.doomed():
            # UsageError: the value in the table is no session id
            with contextlib.suppress(StorageError, SessionBusy, UsageError):
                folder = private_files.session_folder(self.folder, session)
                left = self._rows_left(session)
                if left or (folder / private_files.ASIDE).exists():
                    with private_files.lock(private_files.lock_path(self.folder, session)):
                        if self.query("SELECT 1 FROM sessions WHERE id = ?", (session,)):
                            continue
                        self._delete_rows(session)
                        left = self._rows_left(session)
                private_files.remove_folder(folder)
                if not left:
                    with self.transaction() as connection:
                        connection.execute("DELETE FROM doomed WHERE session = ?", (session,))

    def _rows_left(self, session: str) -> bool:
        """Whether a table still has rows of the session, or cannot be read."""
        queries = (f"SELECT 1 FROM {table} WHERE session = ? LIMIT 1" for table in schema.OF_A_SESSION)
        try:
            return any(self.query(sql, (session,)) for sql in queries)
        except StorageError:
            return True

    def _delete_rows(self, session: str) -> None:
        """Delete a session's rows in short transactions, so that others can write in between. A row that only a damaged index
        still names is left."""
        for table, key in schema.OF_A_SESSION.items():
            sql = f"SELECT {key} FROM {table} WHERE session = ? LIMIT {_DELETED_ROWS_AT_ONCE}"
            with contextlib.suppress(StorageError):
                while rows := self.query(sql, (session,)):
                    if not self.write(lambda c, table=table, key=key, rows=rows: _delete(c, table, key, session, rows)):
                        break

    def close(self) -> None:
        """Finish the calls that wait in the storage thread, then close. A second call does nothing."""
        self._thread.shutdown(wait=True)
        with self._mutex:
            self._connection.close()
            if self._copy:
                self._copy.cleanup()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _share_again(self) -> None:
        """Reopen the database with shared locks, where it was opened exclusively because the disk was full and there is space
        again. Raises NotWritable where nothing may be written."""
        if self.only_read:
            raise NotWritable(self.only_read)
        exclusive = not self.alone and self._connection.execute("PRAGMA locking_mode").fetchone()[0] == "exclusive"
        if exclusive and shutil.disk_usage(self.folder).free > _LOW_DISK_BYTES:
            wanted = self.fts
            self._connection.close()
            self._connection = _connect(self.path)
            index.prepare(self._connection, wanted=wanted)

    def _migrated(self, connection: sqlite3.Connection, migrations: Sequence[schema.Migration]) -> sqlite3.Connection:
        """The connection, after its database was migrated to the newest version. Closes it where that fails."""
        self._connection = connection
        try:
            schema.check_ours(connection, self.path, len(migrations))
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            if self._copy:
                schema.migrate(connection, migrations, lambda number: self.path)
            elif schema.version(connection) != len(migrations) or mode != "wal":
                # of two processes that start at once, one migrates
                with private_files.lock(self.folder / ".setup.lock", wait=_LOCK_TIMEOUT_S):
                    connection.execute("PRAGMA journal_mode = WAL")
                    self.backups = schema.migrate(connection, migrations, self._backup_before)
        except BaseException:
            connection.close()
            raise
        return connection

    def _for_reading(self, migrations: Sequence[schema.Migration]) -> sqlite3.Connection:
        """A connection that only reads. It reads a copy where the database is of an older version, or a killed process left a log
        that can only be read by writing."""
        log = self.path.with_name(f"{FILE}-wal")
        log_is_empty = not log.exists() or not log.stat().st_size
        try:
            connection = _connect(self.path, "mode=ro&immutable=1" if log_is_empty else "mode=ro", alone=self.alone)
            if schema.version(connection) == len(migrations):
                return connection
            connection.close()
        except sqlite3.OperationalError:
            pass
        self._copy = tempfile.TemporaryDirectory(prefix="ctxchat-")
        for part in (self.path, log):
            if part.exists():
                shutil.copyfile(part, Path(self._copy.name) / part.name)
        return self._migrated(_connect(Path(self._copy.name) / FILE), migrations)

    def _backup_before(self, number: int) -> Path:
        """Copy the database before the migration to version `number`; only the newest such copies are kept."""
        stamp = self.now().replace(":", "").replace("-", "")
        copy = self.backup(f"v{number}-{stamp}.db")
        for old in sorted(copy.parent.glob("v*.db"), key=lambda p: p.stat().st_mtime)[:-MAX_BACKUPS]:
            old.unlink()
        return copy


def _delete(connection: sqlite3.Connection, table: str, key: str, session: str, rows: Sequence[tuple[Any]]) -> int:
    """Delete the rows with these keys, from the index as well; how many there were."""
    if table == "messages":
        for (row,) in rows:
            index.remove_row(connection, row)
    sql = f"DELETE FROM {table} WHERE session = ? AND {key} = ?"
    return connection.executemany(sql, ((session, row) for (row,) in rows)).rowcount


def _tells_damage(line: str) -> bool:
    """Whether a line of SQLite's integrity check reports damage; others say that all is well, which database was checked, or that
    a page is unused."""
    return line != "ok" and not line.startswith("***") and not line.endswith("never used") and line != ""


def _connect(path: Path, mode: str = "mode=rw", *, alone: bool = False) -> sqlite3.Connection:
    """Open a connection. `alone` takes an exclusive lock, which needs no `-shm` file: that file cannot be made on a full disk
    (which is noticed here) and cannot be locked on some file systems."""
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
        connection.execute("PRAGMA user_version")  # the first read is what needs the `-shm` file
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
