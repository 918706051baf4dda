"""Changes a person makes by hand in the ledger: pin, drop, shrink, put back. Pure: a ledger in, a change out."""

from __future__ import annotations

import msgspec

from ctxchat.core.errors import LedgerError
from ctxchat.core.ledger import Change, ChangeKind, Edit, Entry, Ledger
from ctxchat.core.messages import Group, Image, Message, Part, Text, ToolCall
from ctxchat.core.strategies.arguments import leads

LINE = 120
"""Characters a shrunk message keeps."""

_RESTORE = "restore:"
"""Before the id of what a note puts back, in its source."""


def pinned(ledger: Ledger, group_id: str, at: str) -> Change:
    """The group stays verbatim."""
    if group_id in ledger.pinned:
        raise LedgerError(f"Message {ledger.group(group_id).first.id} is pinned already.")
    _live(ledger, group_id)
    return Change(id=_next(ledger, "pin", at), kind="pin", at=at, pins=(group_id,))


def dropped(ledger: Ledger, group_id: str, at: str) -> Change:
    """The group, whole, is shown no more; also one of which only a shorter form was left."""
    entry = _entry(ledger, group_id)
    shortened = entry.kind == "shrink" and entry.covers == (group_id,)
    if (ledger.group(group_id) if shortened else _live(ledger, group_id)).kind == "system":
        raise LedgerError(f"{group_id} is this conversation's instructions: they stay in every request.", "Shrink it.")
    return Change(id=_next(ledger, "drop", at), kind="drop", at=at, edits=(Edit("drop", (group_id,)),))


def shrunk(ledger: Ledger, group_id: str, at: str) -> Change:
    """Each message of the group keeps its first line; calls keep their shape, with long texts in them cut."""
    group = _live(ledger, group_id)
    small = msgspec.structs.replace(group, messages=tuple(_one_line(m) for m in group.messages))
    if small == group:
        raise LedgerError(f"Message {group.first.id} is as short as it gets.")
    return Change(id=_next(ledger, "shrink", at), kind="shrink", at=at, edits=(Edit("shrink", (group_id,), small),))


def rewound(ledger: Ledger, group_id: str, at: str) -> Change:
    """Everything from this user message on is out of the view, as if it had not been said. Raises LedgerError."""
    group = ledger.group(group_id)
    if group.kind != "user" or group_id in ledger.rewound:
        raise LedgerError(f"{group_id} is no message to go back to.")
    gone = [g.id for g in ledger.groups[ledger.groups.index(group) :] if g.id not in ledger.rewound]
    return Change(id=_next(ledger, "rewind", at), kind="rewind", at=at, edits=(Edit("drop", tuple(gone)),))


def restored(ledger: Ledger, group_id: str, at: str) -> tuple[Group, Change]:
    """A note that quotes the group, to be added to the record, and the change that shows it."""
    group = ledger.group(group_id)
    head = f"[put back from earlier in this conversation, turn {group.turn}]"
    return _note(ledger, _with_images(head, group), f"{_RESTORE}{group_id}", at)


def quoted(ledger: Ledger, group: Group, source: str, at: str) -> tuple[Group, Change]:
    """A note that quotes a group of another session, and the change that shows it. `source` says which, in words."""
    head = (
        f"[quoted from another conversation, {' '.join(source.split())[:80] or 'without a title'}, turn {group.turn}]"
    )
    return _note(ledger, _with_images(head, group), f"{_RESTORE}{group.id} of another session", at)


def _with_images(head: str, group: Group) -> str | tuple[Part, ...]:
    """The quotation, and after it the images that it names: a model has to see them again."""
    parts = [part for m in group.messages if not isinstance(m.content, str) for part in m.content]
    images = tuple(part for part in parts if isinstance(part, Image))
    text = _quotation(head, group)
    return (Text(text), *images) if images else text


def _quotation(head: str, group: Group) -> str:
    lines = [head]
    for message in group.messages:
        lines += [f"{message.role}: {message.text}".rstrip()]
        lines += [f"  called {call.name} {call.arguments}" for call in message.calls]
    return "\n".join(lines)


def reinserted(ledger: Ledger, change_id: str, at: str) -> tuple[Group, Change]:
    """One note with the facts that a compaction lost, and the change that shows it. Raises LedgerError where it lost none, or
    they were put back already."""
    facts = lost_facts(ledger, change_id)
    if not facts:
        raise LedgerError(f"Compaction {change_id} lost no facts.")
    if change_id in put_back(ledger):
        raise LedgerError("These facts were put back already.", "Undo takes them out again.")
    head = "[facts from earlier in this conversation, put back because the summary does not have them]"
    return _note(ledger, "\n".join([head, *(f"- {fact}" for fact in facts)]), f"{_RESTORE}{change_id}", at)


def put_back(ledger: Ledger) -> frozenset[str]:
    """The ids of what was put back and still is: groups of the record, and compactions whose lost facts were."""
    sources = (ledger.group(added).source for change in ledger.changes for added in change.adds)
    return frozenset(source.removeprefix(_RESTORE) for source in sources if source.startswith(_RESTORE))


def lost_facts(ledger: Ledger, change_id: str) -> tuple[str, ...]:
    """The facts a compaction did not carry over, a line each. Raises LedgerError when it is not in force."""
    for change in ledger.changes:
        if change.id == change_id:
            return change.record.lost if change.record else ()
    raise LedgerError(f"Compaction {change_id} is not in force.")


def _note(ledger: Ledger, content: str | tuple[Part, ...], source: str, at: str) -> tuple[Group, Change]:
    seq = ledger.next_seq
    message = Message(seq=seq, role="user", content=content, at=at)
    note = Group(f"g{seq}", "note", (message,), ledger.turn, source)
    return note, Change(id=_next(ledger, "restore", at), kind="restore", at=at, adds=(note.id,))


def _live(ledger: Ledger, group_id: str) -> Group:
    entry = _entry(ledger, group_id)
    if entry.change or entry.group is None:
        raise LedgerError(f"{group_id} is not in the view as it was.", "Undo what replaced it, or put it back.")
    return ledger.group(group_id)


def _entry(ledger: Ledger, group_id: str) -> Entry:
    entry = next((e for e in ledger.live() if group_id in e.covers), None)
    if entry is None:
        raise LedgerError(f"{group_id} is not in the record.")
    return entry


def _next(ledger: Ledger, kind: ChangeKind, at: str) -> str:
    """An id no change of this ledger has: the kind, its time, and a number where two fall on one instant."""
    taken = {c.id for c in ledger.changes}
    base = f"{kind}-{''.join(ch for ch in at if ch.isdigit())[:17] or len(taken) + 1}"
    number = 1
    while (name := base if number == 1 else f"{base}-{number}") in taken:
        number += 1
    return name


def _one_line(message: Message) -> Message:
    text = message.text.strip()
    first = text.split("\n", 1)[0][:LINE]
    calls = tuple(
        ToolCall(c.id, c.name, leads(c.arguments, LINE, f"the whole in the archive as {message.id}"))
        for c in message.calls
    )
    if first == text:
        return message if calls == message.calls else msgspec.structs.replace(message, calls=calls)
    mark = f"{first} [… {len(text) - len(first):,} more characters in the archive as {message.id}]"
    return msgspec.structs.replace(message, content=mark, calls=calls, reasoning=None)
