"""Sessions as a whole: made, listed, found, named, branched, deleted."""

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
_ID_TICK_MS = 8  # milliseconds between two ids that sort by time
EMPTY_KEPT = timedelta(days=1)
"""How long a session in which nothing was written is kept where somebody else has its id, as an editor does."""

_ID_EPOCH_MS = 1_704_067_200_000  # 2024-01-01 in milliseconds


class SessionRow(msgspec.Struct, frozen=True):
    """A stored session, as in `sessions list --json`. Times ISO 8601 UTC, `used` tokens at its last reply
    or compaction (what its messages hold, where there was none), `estimated` unless a server counted them; `compactions` in
    force. `folder` is where it was begun, empty where nobody knows; `delegated`: an agent began it for a task of its `parent`."""

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


_RECKONED = {
    "used": f"iif(used BETWEEN 1 AND {MAX_TOKENS}, used,"
    " (SELECT coalesce(sum(tokens), 0) FROM messages WHERE session = sessions.id))",
    "estimated": f"estimated OR used NOT BETWEEN 1 AND {MAX_TOKENS}",
}
_LAST_USED = (
    "(SELECT id FROM journal WHERE session = sessions.id AND seq >"
    " coalesce((SELECT entries FROM origins WHERE origins.session = sessions.id), 0) ORDER BY seq DESC LIMIT 1) DESC,"
    " updated DESC, id DESC"
)
"""By what was written last and not by the clock, which may have been set back since; what was never used here comes last."""

_COLUMNS = ", ".join(_RECKONED.get(name, name) for name in SessionRow.__struct_fields__)


def new_id(at: str) -> str:
    """Twelve characters: eight of time, so that ids sort by age, and four of chance."""
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
    """A new session with these entries, all or nothing; its id. `title` and `model` are columns for the list: they belong
    among `records` too where the session itself shall know them. `unseen` is told the id before anyone else can see the
    session. Raises StorageError."""
    at = database.now()
    about = {
        "title": whole_text(title),
        "model": whole_text(model),
        "parent": parent,
        "folder": whole_text(folder),
        "delegated": delegated,
    }
    written = tuple(records)

    def insert_session(connection: sqlite3.Connection) -> str:
        session = insert(connection, at, about)
        entries.append(connection, session, written, at, database.count)
        unseen(session)
        return session

    return database.write(insert_session)


def insert(connection: sqlite3.Connection, at: str, about: Mapping[str, str | bool] = MappingProxyType({})) -> str:
    """The row of a new session, within the caller's transaction; its id."""
    about = {"created": at, "updated": at, **about}
    names, marks = ", ".join(about), ", ".join("?" * len(about))
    while True:
        session = new_id(at)
        made = connection.execute(
            f"INSERT OR IGNORE INTO sessions (id, {names}) VALUES (?, {marks})", (session, *about.values())
        )
        if made.rowcount:
            return session


def rows(database: Database) -> list[SessionRow]:
    """All sessions, the one used last first."""
    return _read_rows(database, f"ORDER BY {_LAST_USED}", (), "ORDER BY updated DESC, id DESC")


def _read_rows(database: Database, rest: str, values: Sequence[object], simpler: str) -> list[SessionRow]:
    """Without what other tables say (what was never counted, the order) where pages of those are damaged; around the damage where
    it is in the sessions' own."""
    plain = ", ".join(SessionRow.__struct_fields__)
    for columns, order in ((_COLUMNS, rest), (plain, simpler)):
        with suppress(StorageError, msgspec.ValidationError):  # it is a row of another table, on a page out of place
            return [_row(one) for one in database.query(f"SELECT {columns} FROM sessions {order}", values)]
    return around_damage(database)


def around_damage(database: Database) -> list[SessionRow]:
    """All sessions, the newest first, where pages of their table are damaged: those of the journal among them, as they say
    themselves. Raises StorageError where there is nothing to go by."""
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
    """A session without a row of its own."""
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


def _row(found: Sequence[Any]) -> SessionRow:
    """Raises msgspec.ValidationError where the values are none of a session's."""
    values = dict(zip(SessionRow.__struct_fields__, found, strict=True))
    return msgspec.convert(values | {name: bool(values[name]) for name in ("estimated", "delegated")}, SessionRow)


def row(database: Database, session: str) -> SessionRow:
    """One session by its full id. Raises StorageError when there is none."""
    found = [one for one in _read_rows(database, "WHERE id = ?", (session,), "WHERE id = ?") if one.id == session]
    if not found:
        raise StorageError(f"There is no session {session!r}.", "`ctxchat sessions list` shows them.")
    return found[0]


def find_session(database: Database, prefix: str) -> str:
    """The id that begins with `prefix`, which must tell it from all others. Raises UsageError for a crafted one, for
    none and for several."""
    wanted = prefix.strip().lower()
    if not wanted or len(wanted) > 12 or not set(wanted) <= set(private_files.ALPHABET):
        raise UsageError(f"{prefix!r} is no session id.", "`ctxchat sessions list` shows them.")
    try:
        found = database.query("SELECT id FROM sessions WHERE substr(id, 1, ?) = ? LIMIT 4", (len(wanted), wanted))
    except StorageError:
        found = [(row.id,) for row in around_damage(database) if row.id.startswith(wanted)]
    if not found:
        raise UsageError(f"There is no session {prefix!r}.", "`ctxchat sessions list` shows them.")
    if len(found) > 1:
        names = ", ".join(session for (session,) in found[:3])
        raise UsageError(
            f"{prefix!r} begins several sessions: {names}{', …' if found[3:] else ''}.", "Give more of the id."
        )
    return str(found[0][0])


def latest(database: Database, folder: str = "") -> str:
    """The id of the session a person used last, in that folder or in any; empty when there is none. One that nobody knows the
    folder of counts for every folder."""
    where = "NOT delegated AND (? IN ('', folder) OR folder = '')"
    found = _read_rows(
        database,
        f"WHERE {where} ORDER BY {_LAST_USED} LIMIT 1",
        (folder,),
        f"WHERE {where} ORDER BY updated DESC LIMIT 1",
    )
    mine = (row for row in found if not row.delegated and (not folder or row.folder in {folder, ""}))
    return next((row.id for row in mine), "")


@contextmanager
def hold_session(database: Database, session: str) -> Generator[None]:
    """Hold a session for a short while. Raises SessionBusy while another window or command has it, StorageError when
    it is gone."""
    row(database, session)
    with private_files.lock(private_files.lock_path(database.folder, session)):
        row(database, session)  # it may have been deleted while we reached for the lock
        yield


def rename(database: Database, session: str, title: str) -> None:
    """Give it a new title, as an entry of its journal. Raises SessionBusy and StorageError."""
    with hold_session(database, session):
        append(database, session, Named(" ".join(title.split())))


def append(database: Database, session: str, *records: Record, clear: bool = False) -> None:
    """Write entries for a session the caller holds; `clear` forgets the partial round with them. Raises StorageError."""
    at = database.now()

    def append_records(connection: sqlite3.Connection) -> None:
        entries.append(connection, session, records, at, database.count)
        if clear:
            connection.execute("DELETE FROM partials WHERE session = ?", (session,))

    database.write(append_records)


def reckon(database: Database, session: str, used: int) -> None:
    """Have lists show what the gauge reckons that a session holds, until a server counts it. Raises StorageError."""
    with database.transaction() as connection:
        counted = "used AND NOT estimated"
        connection.execute(
            f"UPDATE sessions SET used = ?, estimated = 1 WHERE id = ? AND NOT ({counted})", (used, session)
        )


def delete(database: Database, session: str) -> None:
    """Its rows, its index, its folder, and those of the sub-agents that worked for it; nothing else. Raises SessionBusy, for one
    of them as well, and StorageError; a folder that resists goes at a later start."""
    private_files.check_id(session)
    with ExitStack() as locks:
        doomed = [session]
        for one in doomed:
            locks.enter_context(hold_session(database, one))
            doomed += [below for below in sub_agents(database, one) if below not in doomed]
        for one in reversed(doomed):  # what is left where one resists is still found from above
            removal.remove(database, one)
    database.finish_deletions()


def sub_agents(database: Database, session: str) -> list[str]:
    """The sessions that an agent of this one began for a task; none where their table cannot be read."""
    with suppress(StorageError):
        return [id for (id,) in database.query("SELECT id FROM sessions WHERE parent = ? AND delegated", (session,))]
    return []


def forget_unused(database: Database, session: str) -> None:
    """Delete a session in which nothing was ever written, as when a window was opened and left again. For its writer."""
    with database.transaction() as connection:
        gone = connection.execute(
            "DELETE FROM sessions WHERE id = ? AND NOT EXISTS (SELECT 1 FROM journal WHERE session = sessions.id)"
            " AND NOT EXISTS (SELECT 1 FROM partials WHERE session = sessions.id)",
            (session,),
        ).rowcount
        if gone:
            connection.execute("INSERT OR IGNORE INTO doomed VALUES (?)", (session,))
    if gone:
        database.finish_deletions()


def forget_long_unused(database: Database) -> None:
    """Delete the sessions in which nothing was written for `EMPTY_KEPT`, but for those that are open."""
    before = (datetime.fromisoformat(database.now()) - EMPTY_KEPT).isoformat()
    found = database.query(
        "SELECT id FROM sessions WHERE created < ? AND NOT EXISTS (SELECT 1 FROM journal WHERE session = sessions.id)",
        (before,),
    )
    for (session,) in found:
        with suppress(StorageError), hold_session(database, session):
            forget_unused(database, session)


def fork(database: Database, session: str, up_to: str = "") -> str:
    """A new session with everything up to a message (`m12`) or a compaction (its id), or with all of it; its id.

    The group a message belongs to is copied whole. Changes that need a group that is not copied are left out, as are compactions
    without an end. Spilled files are copied too. Raises UsageError when `up_to` is nowhere.
    """
    source = row(database, session)
    records, _ = loading.read_records(database, session)
    records += loading.cut_off(database, session, fold(records))[0]
    copied = fitting(cut(records, up_to) if up_to else records)
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
        reckon(database, new, source.used)
    return new


def _numbered_title(database: Database, title: str, *forms: str) -> str:
    """What comes of a session is called, so that neither is taken for the other: the first of these forms that no session has, of
    the last with numbers from 2 on; empty for one without a title."""
    whole = _NUMBERED.sub("", title)
    names = {name for (name,) in database.query("SELECT title FROM sessions WHERE title LIKE '% of %'")}
    *plain, last = forms
    numbered = (f"{form} {whole}" for form in chain(plain, (last.format(n) for n in count(2))))
    return next(name for name in numbered if name not in names) if whole else ""


def hand_off(database: Database, session: str, title: str = "") -> str:
    """A new session for the work of another, with its model, agent and folder, and nothing said yet; its id. Without a title it
    is called `Part 2 of …`."""
    source, state = row(database, session), loading.load_state(database, session).state
    title = title or _numbered_title(database, source.title, "Part {} of")
    records: list[Record] = [Continues(session), Named(title)]
    records += [ModelChosen(state.model, state.address)] if state.model else []
    records += [AgentChosen(state.agent)] if state.agent is not None else []
    records += [EffortChosen(state.effort)] if state.effort else []
    return create(database, title=title, model=source.model, parent=session, folder=source.folder, records=records)


def cut(records: Iterable[Record], up_to: str) -> list[Record]:
    """The entries up to and with the one that holds a message or made a change. Raises UsageError when none does."""
    kept: list[Record] = []
    for record in records:
        if isinstance(record, Sealed):
            for place, group in enumerate(record.groups, 1):
                if any(message.id == up_to for message in group.messages):
                    return [*kept, msgspec.structs.replace(record, groups=record.groups[:place])]
        kept.append(record)
        if isinstance(record, Changed) and record.change.id == up_to:
            return kept
    raise UsageError(
        f"There is no message or compaction {up_to!r} in this session.", "`ctxchat sessions show` has the ids."
    )


def fitting(records: Iterable[Record]) -> list[Record]:
    """The entries without changes that name groups which are not among them, without undoings of those, and without
    compactions that
    have no end."""
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
