"""Reads what compactions took out of view, exactly as it was, and what was said last in a session. `search` is re-exported here.

The archive is no second copy: it reads the groups that a compaction covers from the journal. It only reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.journal import Changed, Sealed
from ctxchat.core.ledger import Change
from ctxchat.core.messages import Group, Message, Role
from ctxchat.core.search import Hit as Hit
from ctxchat.storage import entries, loading
from ctxchat.storage.database import Database
from ctxchat.storage.search import IS_NOTE
from ctxchat.storage.search import search as search


class CompactionRow(msgspec.Struct, frozen=True):
    """One compaction, as in `archive list --json`. `before` and `after` are in tokens, `messages` is the number of folded ones.
    `put_back` is the number of messages that undo in part brought back; the other numbers do not count these."""

    id: str
    session: str
    reason: str
    strategy: str
    at: str
    before: int
    after: int
    messages: int
    model: str
    seconds: float
    cost_usd: float
    undone: bool
    put_back: int


class Archived(msgspec.Struct, frozen=True):
    """The groups that a compaction folded, as they were, in the order of the record. `nested` are the ids of earlier compactions
    that covered only these groups, oldest first. `problems` are sentences about groups that cannot be read."""

    session: str
    change: Change
    groups: tuple[Group, ...]
    nested: tuple[str, ...] = ()
    undone: bool = False
    problems: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The archived messages in the order of the record, without results that ctxchat added to close a call."""
        original = (m for group in self.groups for m in group.messages if not m.synthetic)
        return tuple(sorted(original, key=lambda m: m.seq))


_ROW = ", ".join(CompactionRow.__struct_fields__)


def compactions(database: Database, session: str = "") -> list[CompactionRow]:
    """The compactions of a session (a full id), or of all, oldest first."""
    where = "WHERE session = ?" if session else ""
    rows = database.query(f"SELECT {_ROW} FROM compactions {where} ORDER BY at, entry", (session,) if session else ())
    return [CompactionRow(*row[:-2], undone=bool(row[-2]), put_back=row[-1]) for row in rows]


def load_compaction(database: Database, compaction: str, session: str = "") -> Archived:
    """Load a compaction, given by a unique beginning of its id, with the groups it folded. Where forks have copies of it, the
    original is loaded unless `session` names another. Raises UsageError for none or several, StorageError when it cannot be
    read."""
    owner, id, entry, undone = _find(database, compaction, session)
    change = _change(database, owner, entry)
    groups, lost = _groups(database, owner, _covered(change))
    return Archived(owner, change, groups, _nested(database, owner, id, entry), bool(undone), tuple(lost))


def _find(database: Database, compaction: str, session: str) -> tuple[str, str, int, int]:
    """The compaction whose id begins so: session, id, entry, and whether it is undone. Raises UsageError where there is none or
    several."""
    where, values = ("AND c.session = ?", [session]) if session else ("", [])
    rows = database.query(
        "SELECT c.session, c.id, c.entry, c.undone FROM compactions c JOIN sessions s ON s.id = c.session "
        f"WHERE substr(c.id, 1, ?) = ? {where} ORDER BY s.created, s.id",
        (len(compaction), compaction, *values),
    )
    exact = [row for row in rows if row[1] == compaction] or rows
    ids = list(dict.fromkeys(row[1] for row in exact))
    if not compaction or not ids:
        raise UsageError(f"There is no compaction {compaction!r}.", "`ctxchat archive list` shows them.")
    if len(ids) > 1:
        raise UsageError(f"{compaction!r} begins several compactions: {', '.join(ids[:3])}.", "Give more of the id.")
    owner, id, entry, undone = exact[0]
    return owner, id, entry, undone


def _change(database: Database, session: str, entry: int) -> Change:
    """The change in a journal entry. Raises StorageError where that is damaged."""
    body = database.query("SELECT body FROM journal WHERE session = ? AND seq = ?", (session, entry))
    ids = loading.group_ids(database, session)
    value = entries.decode(entry, body[0][0], lambda: ids) if body else None
    if not isinstance(value, Changed):
        raise StorageError(
            f"Entry {entry} of session {session} is damaged.", "The messages it folded are still in the record."
        )
    return value.change


def _covered(change: Change) -> list[str]:
    return list(dict.fromkeys(group for edit in change.edits for group in edit.covers))


def _groups(database: Database, session: str, wanted: Sequence[str]) -> tuple[tuple[Group, ...], list[str]]:
    """The groups with these ids, in their order, and a sentence for each that cannot be read."""
    entry_of = dict(database.query("SELECT id, entry FROM groups WHERE session = ?", (session,)))
    numbers = sorted({entry_of[id] for id in wanted if id in entry_of})
    group_by_id: dict[str, Group] = {}
    for first in range(0, len(numbers), 500):
        part = numbers[first : first + 500]
        marks = ", ".join("?" * len(part))
        for seq, body in database.query(
            f"SELECT seq, body FROM journal WHERE session = ? AND seq IN ({marks}) ORDER BY seq", (session, *part)
        ):
            value = entries.decode(seq, body, list)
            if isinstance(value, Sealed):
                group_by_id.update((group.id, group) for group in value.groups)
    lost = [f"group {id} is damaged and left out" for id in wanted if id not in group_by_id]
    return tuple(group_by_id[id] for id in wanted if id in group_by_id), lost


def _nested(database: Database, session: str, compaction: str, entry: int) -> tuple[str, ...]:
    """The ids of earlier compactions whose groups this one covers as well, oldest first."""
    rows = database.query(
        """SELECT c.id FROM compactions c WHERE c.session = ? AND c.entry < ? AND EXISTS
             (SELECT 1 FROM covers x WHERE x.session = c.session AND x.compaction = c.id) AND NOT EXISTS
             (SELECT 1 FROM covers inner_ WHERE inner_.session = c.session AND inner_.compaction = c.id AND NOT EXISTS
               (SELECT 1 FROM covers outer_ WHERE outer_.session = c.session AND outer_.compaction = ?
                AND outer_.first <= inner_.first AND outer_.last >= inner_.last))
           ORDER BY c.entry""",
        (session, entry, compaction),
    )
    return tuple(id for (id,) in rows)


def group_of(database: Database, session: str, message: str) -> Group:
    """The group of the record that a message (`m12`) belongs to. Raises UsageError when there is none, StorageError
    when it is damaged."""
    if not re.fullmatch(r"m[0-9]{1,12}", message):
        raise UsageError(f"{message!r} is no message id.", "They look like m12.")
    rows = database.query(
        "SELECT g.id FROM messages m JOIN groups g ON g.session = m.session AND g.place = m.place "
        "WHERE m.session = ? AND m.seq = ?",
        (session, int(message[1:])),
    )
    if not rows:
        raise UsageError(
            f"There is no message {message} in session {session}.",
            "`ctxchat archive search` finds messages by their words.",
        )
    groups, lost = _groups(database, session, [rows[0][0]])
    if lost:
        raise StorageError(f"Session {session}: {lost[0]}.")
    return groups[0]


def message(database: Database, session: str, message: str) -> Message:
    """One message of the record by its id (`m12`). Raises like `group_of`."""
    return next(m for m in group_of(database, session, message).messages if m.id == message)


_MAX_CHARS = 600  # characters of a message in `glance`


class LastSaid(msgspec.Struct, frozen=True):
    """The beginning of a recent message, and its time."""

    role: Role
    text: str
    at: str


def glance(database: Database, session: str, many: int = 6) -> list[LastSaid]:
    """The last `many` messages of the person and the model in a session (a full id), oldest first, without calls; empty where the
    session does not exist. Raises StorageError."""
    rows = database.query(
        f"SELECT role, substr(text, 1, {_MAX_CHARS}), at FROM messages m"
        f" WHERE session = ? AND role IN ('user', 'assistant') AND tool = '' AND NOT {IS_NOTE} ORDER BY seq DESC LIMIT ?",
        (session, many),
    )
    return [LastSaid(*row) for row in reversed(rows)]
