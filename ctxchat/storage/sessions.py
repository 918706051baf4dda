"""Creates, lists, finds, renames, forks and deletes whole sessions."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from itertools import chain, count
from types import MappingProxyType
from typing import Any

import msgspec

from ctxchat.core.calibration import MAX_TOKENS
from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.journal import (
    AgentChosen,
    Changed,
    CompactionBegun,
    Continues,
    Deferred,
    EffortChosen,
    ModeChosen,
    ModelChosen,
    Named,
    Record,
    Sealed,
    Undone,
    fold,
    without_end,
)
from ctxchat.core.messages import own_words
from ctxchat.core.sanitize import whole_text
from ctxchat.storage import around, entries, loading, private_files, removal
from ctxchat.storage.database import Database

_NUMBERED = re.compile(r"^(?:Branch (\d+ )?|Part \d+ )of ")
_ID_TICK_MS = 8  # milliseconds: ids of sessions created further apart than this sort by time
EMPTY_KEPT = timedelta(days=1)
"""How long a session without entries is kept where a program outside, such as an editor, has its id."""

_ID_EPOCH_MS = 1_704_067_200_000  # 2024-01-01 in milliseconds


class SessionRow(msgspec.Struct, frozen=True):
    """A stored session, as in `sessions list --json`. Times are ISO 8601 UTC. `used` is the tokens at its last reply or
    compaction (those of its messages, where there was none), `estimated` unless a server counted them; `compactions` counts those
    in force. `folder` is where the session was begun, empty where that is unknown; a `delegated` session was begun by an agent
    for a task of its `parent`."""

    id: str
    title: str
    created: str
    updated: str
    messages: int
    model: str
    used: int
    compactions: int
    parent: str
    estimated: bool = False
    folder: str = ""
    delegated: bool = False


_CALCULATED_COLUMNS = {
    "used": f"iif(used BETWEEN 1 AND {MAX_TOKENS}, used,"
    " (SELECT coalesce(sum(tokens), 0) FROM messages WHERE session = sessions.id))",
    "estimated": f"estimated OR used NOT BETWEEN 1 AND {MAX_TOKENS}",
}
_LAST_USED = (
    "(SELECT id FROM journal WHERE session = sessions.id AND seq >"
    " coalesce((SELECT entries FROM origins WHERE origins.session = sessions.id), 0) ORDER BY seq DESC LIMIT 1) DESC,"
    " updated DESC, id DESC"
)
"""The session written to last comes first, by row id and not by time, since the clock may have been set back. Imported sessions
in which nothing was written since come last."""

_COLUMNS = ", ".join(_CALCULATED_COLUMNS.get(name, name) for name in SessionRow.__struct_fields__)


def new_id(at: str) -> str:
    """A new session id of twelve characters: eight of the time `at`, so that ids sort by age, and four random ones."""
    milliseconds = int(datetime.fromisoformat(at).timestamp() * 1000)
    number = max(0, milliseconds - _ID_EPOCH_MS) // _ID_TICK_MS
    time = "".join(private_files.ALPHABET[number >> shift & 31] for shift in range(35, -1, -5))
    return time + "".join(secrets.choice(private_files.ALPHABET) for _ in range(4))


def create(
    database: Database,
    *,
    title: str = "",
    model: str = "",
    parent: str = "",
    folder: str = "",
    delegated: bool = False,
    records: Iterable[Record] = (),
    unseen: Callable[[str], None] = lambda session: None,
) -> str:
    """Create a session with these entries, all or nothing; its id. `title` and `model` are columns for the list: put them among
    `records` too if the session itself is to know them. `unseen` is called with the id before other processes can see the
    session. Raises StorageError."""
    at = database.now()
    about = {
        "title": whole_text(title),
        "model": whole_text(model),
        "parent": parent,
        "folder": whole_text(folder),
        "delegated": delegated,
    }
    entries_to_write = tuple(records)

    def insert_session(connection: sqlite3.Connection) -> str:
        session = insert(connection, at, about)
        entries.append(connection, session, entries_to_write, at, database.count)
        unseen(session)
        return session

    return database.write(insert_session)


def insert(connection: sqlite3.Connection, at: str, about: Mapping[str, str | bool] = MappingProxyType({})) -> str:
    """Insert the row of a new session with these columns, within the caller's transaction; its id."""
    about = {"created": at, "updated": at, **about}
    names, marks = ", ".join(about), ", ".join("?" * len(about))
    while True:
        session = new_id(at)
        cursor = connection.execute(
            f"INSERT OR IGNORE INTO sessions (id, {names}) VALUES (?, {marks})", (session, *about.values())
        )
        if cursor.rowcount:
            return session


def rows(database: Database) -> list[SessionRow]:
    """All sessions, the last used first."""
    return _read_rows(database, f"ORDER BY {_LAST_USED}", (), "ORDER BY updated DESC, id DESC")


def _read_rows(database: Database, rest: str, values: Sequence[object], simpler: str) -> list[SessionRow]:
    """The rows of the sessions table, with `rest` as the end of the query. Where other tables are damaged, calculated columns are
    left out and `simpler` is used for `rest`; where the sessions table itself is damaged, all rows that can be found."""
    plain = ", ".join(SessionRow.__struct_fields__)
    for columns, order in ((_COLUMNS, rest), (plain, simpler)):
        with suppress(StorageError, msgspec.ValidationError):  # ValidationError: damage showed a row of another table
            return [
                _row(values_of_row)
                for values_of_row in database.query(f"SELECT {columns} FROM sessions {order}", values)
            ]
    return around_damage(database)


def around_damage(database: Database) -> list[SessionRow]:
    """All sessions, the newest first, where the sessions table is damaged: sessions whose row is lost are restored from the
    journal. Raises StorageError where neither can be read."""
    columns = ", ".join(SessionRow.__struct_fields__)
    known = {
        row[0]: _row(row) for row in around.rows(database.query, columns, "sessions") if private_files.is_id(row[0])
    }
    try:
        written = {session for (session,) in database.query("SELECT DISTINCT session FROM journal")}
    except StorageError:
        written = {session for (session,) in around.rows(database.query, "session", "journal")}
    lost = written - set(known) - database.doomed()
    nameless = sorted(session for session in lost if isinstance(session, str) and private_files.is_id(session))
    rows = [*known.values(), *(_from_journal(database, session) for session in nameless)]
    return sorted(rows, key=lambda row: (row.updated, row.id), reverse=True)


def _from_journal(database: Database, session: str) -> SessionRow:
    """The row of a session that has lost its own, restored from its journal."""
    state = loading.load_state(database, session).state
    messages = [m for m in state.ledger.messages() if not m.synthetic]
    times = [m.at for m in messages if m.at] or [database.now()]
    opening = next((" ".join((own_words(m) or m.text)[:400].split())[:80] for m in messages if m.role == "user"), "")
    return SessionRow(
        session,
        state.title or opening,
        min(times),
        max(times),
        len(messages),
        state.model,
        state.used,
        len(state.ledger.compactions),
        "",
    )


def _row(columns: Sequence[Any]) -> SessionRow:
    """A row of the sessions table as a value. Raises msgspec.ValidationError where a value has the wrong type."""
    values = dict(zip(SessionRow.__struct_fields__, columns, strict=True))
    return msgspec.convert(values | {name: bool(values[name]) for name in ("estimated", "delegated")}, SessionRow)


def row(database: Database, session: str) -> SessionRow:
    """The session with this full id. Raises StorageError when there is none."""
    rows = [row for row in _read_rows(database, "WHERE id = ?", (session,), "WHERE id = ?") if row.id == session]
    if not rows:
        raise StorageError(f"There is no session {session!r}.", "`ctxchat sessions list` shows them.")
    return rows[0]


def find_session(database: Database, prefix: str) -> str:
    """The id of the only session whose id begins with `prefix`. Raises UsageError where none or several do, and for a prefix that
    no id can have."""
    wanted = prefix.strip().lower()
    if not wanted or len(wanted) > 12 or not set(wanted) <= set(private_files.ALPHABET):
        raise UsageError(f"{prefix!r} is no session id.", "`ctxchat sessions list` shows them.")
    try:
        rows = database.query("SELECT id FROM sessions WHERE substr(id, 1, ?) = ? LIMIT 4", (len(wanted), wanted))
    except StorageError:
        rows = [(row.id,) for row in around_damage(database) if row.id.startswith(wanted)]
    if not rows:
        raise UsageError(f"There is no session {prefix!r}.", "`ctxchat sessions list` shows them.")
    if len(rows) > 1:
        names = ", ".join(session for (session,) in rows[:3])
        raise UsageError(
            f"{prefix!r} begins several sessions: {names}{', …' if rows[3:] else ''}.", "Give more of the id."
        )
    return str(rows[0][0])


def latest(database: Database, folder: str = "") -> str:
    """The id of the session a person used last, in `folder` or (empty) in any folder; empty when there is none. A session whose
    folder is unknown counts for every folder."""
    where = "NOT delegated AND (? IN ('', folder) OR folder = '')"
    rows = _read_rows(
        database,
        f"WHERE {where} ORDER BY {_LAST_USED} LIMIT 1",
        (folder,),
        f"WHERE {where} ORDER BY updated DESC LIMIT 1",
    )
    of_person = (row for row in rows if not row.delegated and (not folder or row.folder in {folder, ""}))
    return next((row.id for row in of_person), "")


@contextmanager
def hold_session(database: Database, session: str) -> Generator[None]:
    """Hold the lock of a session for the duration of a block. Raises SessionBusy while another window or command has it,
    StorageError when the session is gone."""
    row(database, session)
    with private_files.lock(private_files.lock_path(database.folder, session)):
        row(database, session)  # it may have been deleted before the lock was taken
        yield


def rename(database: Database, session: str, title: str) -> None:
    """Give a session a new title, as an entry of its journal. Raises SessionBusy and StorageError."""
    with hold_session(database, session):
        append(database, session, Named(" ".join(title.split())))


def append(database: Database, session: str, *records: Record, clear: bool = False) -> None:
    """Append entries to a session that the caller holds; `clear` also deletes its unfinished round. Raises StorageError."""
    at = database.now()

    def append_records(connection: sqlite3.Connection) -> None:
        entries.append(connection, session, records, at, database.count)
        if clear:
            connection.execute("DELETE FROM partials WHERE session = ?", (session,))

    database.write(append_records)


def store_estimate(database: Database, session: str, used: int) -> None:
    """Store the gauge's estimate of a session's tokens for lists, unless a server has counted them. Raises StorageError."""
    with database.transaction() as connection:
        counted_by_server = "used AND NOT estimated"
        connection.execute(
            f"UPDATE sessions SET used = ?, estimated = 1 WHERE id = ? AND NOT ({counted_by_server})", (used, session)
        )


def delete(database: Database, session: str) -> None:
    """Delete a session and those of its sub-agents: their rows, index entries and folders. Raises StorageError, and SessionBusy
    while one of them is in use; a folder that cannot be removed now is removed at a later start."""
    private_files.check_id(session)
    with ExitStack() as locks:
        doomed = [session]
        for id in doomed:
            locks.enter_context(hold_session(database, id))
            doomed += [child for child in sub_agents(database, id) if child not in doomed]
        for id in reversed(doomed):  # children first: after a failure the rest is still found through its parent
            removal.remove(database, id)
    database.finish_deletions()


def sub_agents(database: Database, session: str) -> list[str]:
    """The ids of sessions that this one delegated tasks to; empty where the table cannot be read."""
    with suppress(StorageError):
        return [id for (id,) in database.query("SELECT id FROM sessions WHERE parent = ? AND delegated", (session,))]
    return []


def forget_unused(database: Database, session: str) -> None:
    """Delete a session if it has no entries, as after a window was opened and closed unused. The caller holds its lock."""
    with database.transaction() as connection:
        deleted = connection.execute(
            "DELETE FROM sessions WHERE id = ? AND NOT EXISTS (SELECT 1 FROM journal WHERE session = sessions.id)"
            " AND NOT EXISTS (SELECT 1 FROM partials WHERE session = sessions.id)",
            (session,),
        ).rowcount
        if deleted:
            connection.execute("INSERT OR IGNORE INTO doomed VALUES (?)", (session,))
    if deleted:
        database.finish_deletions()


def forget_long_unused(database: Database) -> None:
    """Delete the sessions that have had no entries for `EMPTY_KEPT`, except those that are open."""
    before = (datetime.fromisoformat(database.now()) - EMPTY_KEPT).isoformat()
    rows = database.query(
        "SELECT id FROM sessions WHERE created < ? AND NOT EXISTS (SELECT 1 FROM journal WHERE session = sessions.id)",
        (before,),
    )
    for (session,) in rows:
        with suppress(StorageError), hold_session(database, session):
            forget_unused(database, session)


def fork(database: Database, session: str, up_to: str = "") -> str:
    """Copy a session into a new one, as a whole or up to a message (`m12`) or compaction (its id); the id of the copy.

    The group that holds the message is copied whole. Changes of groups that are not copied are left out, as are compactions
    without an end. Files of tool results and attachments are copied too. Raises UsageError when the session has no `up_to`.
    """
    source = row(database, session)
    records, _ = loading.read_records(database, session)
    records += loading.cut_off(database, session, fold(records))[0]
    copied = consistent(entries_up_to(records, up_to) if up_to else records)
    title = _numbered_title(database, source.title, "Branch of", "Branch {} of")
    copied = [*copied, Named(title)] if title else copied
    new = create(database, title=title, model=source.model, parent=session, folder=source.folder, records=copied)
    try:
        old_folder, new_folder = (private_files.session_folder(database.folder, s) for s in (session, new))
        private_files.copy_folder(old_folder / "tool-results", new_folder / "tool-results")
        private_files.copy_folder(old_folder / "attachments", new_folder / "attachments")
        private_files.copy_file(
            old_folder / private_files.CHECKPOINTS / "kept", new_folder / private_files.CHECKPOINTS / "kept"
        )
    except StorageError:
        delete(database, new)
        raise
    if source.estimated and not up_to:
        store_estimate(database, new, source.used)
    return new


def _numbered_title(database: Database, title: str, *forms: str) -> str:
    """A title for a session that is derived from one with the title `title`: the first of `forms` that no session has yet. The
    last form takes a number, from 2 on. Empty for an empty title."""
    base = _NUMBERED.sub("", title)
    names = {name for (name,) in database.query("SELECT title FROM sessions WHERE title LIKE '% of %'")}
    *plain, last = forms
    numbered = (f"{form} {base}" for form in chain(plain, (last.format(n) for n in count(2))))
    return next(name for name in numbered if name not in names) if base else ""


def hand_off(database: Database, session: str, title: str = "") -> str:
    """Create a session that continues the work of another, with its model, agent, effort, mode and folder, but no messages;
    returns its id. Without a title it is called `Part 2 of …`."""
    source, state = row(database, session), loading.load_state(database, session).state
    title = title or _numbered_title(database, source.title, "Part {} of")
    records: list[Record] = [Continues(session), Named(title)]
    records += [ModelChosen(state.model, state.address)] if state.model else []
    records += [AgentChosen(state.agent)] if state.agent is not None else []
    records += [EffortChosen(state.effort)] if state.effort else []
    records += [ModeChosen(state.mode)] if state.mode else []
    return create(database, title=title, model=source.model, parent=session, folder=source.folder, records=records)


def entries_up_to(records: Iterable[Record], up_to: str) -> list[Record]:
    """The entries up to and including the message or change with the id `up_to`. Raises UsageError when there is none."""
    kept: list[Record] = []
    for record in records:
        if isinstance(record, Sealed):
            for number, group in enumerate(record.groups, 1):
                if any(message.id == up_to for message in group.messages):
                    return [*kept, msgspec.structs.replace(record, groups=record.groups[:number])]
        kept.append(record)
        if isinstance(record, Changed) and record.change.id == up_to:
            return kept
    raise UsageError(
        f"There is no message or compaction {up_to!r} in this session.", "`ctxchat sessions show` has the ids."
    )


def consistent(records: Iterable[Record]) -> list[Record]:
    """The entries that are consistent among themselves: without changes of groups they do not hold, without undoing such changes,
    and without compactions that have no end."""
    groups: set[str] = set()
    changes: set[str] = set()
    kept: list[Record] = []
    for record in records:
        match record:
            case Sealed():
                groups.update(group.id for group in record.groups)
            case Changed(change=change):
                if not groups.issuperset([*change.pins, *change.adds, *(g for e in change.edits for g in e.covers)]):
                    continue
                changes.add(change.id)
            case Undone(change=change) if change not in changes:
                continue
            case Deferred(group=group) if group not in groups:
                continue
            case _:
                pass
        kept.append(record)
    open_ = without_end(kept)
    return [record for record in kept if not (isinstance(record, CompactionBegun) and record.id in open_)]
