"""Taking changes back and making them again: what that would bring, how much of it fits, and the change for a part of it.

Pure: a ledger in, a change or a look out. Compiling is slow, so a look is to be made off the event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import msgspec

from ctxchat.core.errors import LedgerError
from ctxchat.core.figures import Figures
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.record import PutBack
from ctxchat.core.view import View

Measured = Callable[[Ledger], tuple[View, Figures]]
"""The view a ledger has, and the gauge it would show."""

TRIES = 6
"""Looks at a part before it is given up."""


class Undoing(msgspec.Struct, frozen=True):
    """A change that could be taken back.

    `before` and `after` are the gauge now and when all of it has been undone; `messages` come back then. Where that is too full,
    `part` is the gauge when only the newest that fit come back: `groups`, with `part_messages`. No groups: no part of it
    fits, or none can be had alone. `roof` is where too full begins: at the trigger, or past the limit where the trigger is
    passed already.
    """

    change: Change
    before: Figures
    after: Figures
    messages: int
    part: Figures | None = None
    groups: tuple[str, ...] = ()
    part_messages: int = 0

    @property
    def roof(self) -> int:
        """The first number of tokens that is too many."""
        before = self.before
        return before.trigger_tokens if before.used < before.trigger_tokens else before.limit + 1

    @property
    def fits(self) -> bool:
        """All of it can come back, or it brings nothing back; so does all where no window is known."""
        return self.after.used < max(self.roof, self.before.used + 1) or self.before.limit <= 0


def found(ledger: Ledger, change_id: str = "") -> Change:
    """The change with this id, the last one without. Raises LedgerError where there is none in force."""
    for change in reversed(ledger.changes):
        if change_id in {"", change.id}:
            return change
    raise LedgerError(f"Change {change_id} is not in force." if change_id else "There is nothing to undo.")


def look(ledger: Ledger, change_id: str, measured: Measured) -> Undoing:
    """What undoing a change would do, and the part of it that fits where not all does. Raises LedgerError."""
    change = found(ledger, change_id)
    covered = {g for entry in ledger.live() if entry.change == change.id for g in entry.covers}
    held = tuple(g.id for g in ledger.groups if g.id in covered)
    (_, before), (view, after) = measured(ledger), measured(ledger.undo(change.id))
    whole = Undoing(change, before, after, _messages(ledger, held))
    if whole.fits or change.kind != "compaction" or later(ledger, change):
        return whole
    weights = Counter[str]()
    for item in view.items:
        weights[item.group] += item.tokens
    room = (whole.roof - before.used) * view.raw // max(1, after.used)
    groups = _newest(held, weights, room)
    for _ in range(TRIES):
        groups = _from_a_turn(ledger, groups)
        if not groups:
            break
        _, part = measured(ledger.undo(change.id).apply(narrowed(ledger, change, groups)))
        if part.used < whole.roof:
            return msgspec.structs.replace(whole, part=part, groups=groups, part_messages=_messages(ledger, groups))
        groups = groups[max(1, len(groups) // 8) :]
    return whole


def in_part(ledger: Ledger, change_id: str, groups: Collection[str], measured: Measured) -> Change:
    """The compaction without these groups, to be put in its place; its record tells what came back. Raises LedgerError where
    they cannot come back alone."""
    change = found(ledger, change_id)
    if above := later(ledger, change):
        raise LedgerError(f"{_words(above)} made on top of it: no part of it can come back alone.", "Undo that first.")
    if change.kind != "compaction" or not any(g in groups for e in change.edits for g in e.covers):
        raise LedgerError(f"Change {change.id} put none of these messages away.")
    left = narrowed(ledger, change, groups)
    (_, now), (_, then) = measured(ledger), measured(ledger.undo(change.id).apply(left))
    return _with_tokens(left, max(0, then.used - now.used))


def narrowed(ledger: Ledger, change: Change, groups: Collection[str]) -> Change:
    """The change as if it had never touched these groups."""
    back = set(groups)
    edits = tuple(edit for edit in (_without(edit, back) for edit in change.edits) if edit.covers)
    record = change.record
    if record:
        again = [g for g in record.folded if g in back]
        messages = _messages(ledger, again)
        record = msgspec.structs.replace(
            record,
            folded=tuple(g for g in record.folded if g not in back),
            folded_messages=max(0, record.folded_messages - messages),
            back=PutBack(record.back.messages + messages, record.back.tokens),
        )
    return msgspec.structs.replace(change, edits=edits, record=record)


def _with_tokens(change: Change, tokens: int) -> Change:
    """The change, its record telling that so many more came back."""
    record = change.record
    if record is None:
        return change
    back = PutBack(record.back.messages, record.back.tokens + tokens)
    return msgspec.structs.replace(change, record=msgspec.structs.replace(record, back=back))


def redone(undone: Sequence[Change], ledger: Ledger, change_id: str = "") -> Change:
    """A change that was undone, to be made again exactly as it was; the one last undone without an id. Raises LedgerError
    where there is none, or where something was made since of what it touched."""
    change = next((c for c in reversed(undone) if change_id in {"", c.id}), None)
    if change is None:
        raise LedgerError("There is nothing to redo." if not change_id else f"Change {change_id} was not undone.")
    since = [c for c in ledger.changes if not c.at or c.at >= change.at]
    if above := next((c for c in since if _touched(c) & _touched(change)), None):
        raise LedgerError(
            f"{_words(above)} made of the same messages: it cannot be redone as it was.", "Undo that first."
        )
    return change


def later(ledger: Ledger, change: Change) -> Change | None:
    """The next change in force that was made on top of this one, None for none."""
    place = next(i for i, c in enumerate(ledger.changes) if c.id == change.id)
    return next((c for c in ledger.changes[place + 1 :] if _touched(c) & _touched(change)), None)


def _words(change: Change) -> str:
    return f"Since then a {change.kind} ({change.id}) was"


def _touched(change: Change) -> set[str]:
    return {g for e in change.edits for g in e.covers}.union(change.pins)


def _without(edit: Edit, back: set[str]) -> Edit:
    return msgspec.structs.replace(edit, covers=tuple(g for g in edit.covers if g not in back))


def _newest(held: Sequence[str], weights: Counter[str], room: int) -> tuple[str, ...]:
    """As many from the end as fit into so many raw tokens."""
    first = len(held)
    while first and weights[held[first - 1]] <= room:
        first -= 1
        room -= weights[held[first]]
    return tuple(held[first:])


def _from_a_turn(ledger: Ledger, groups: Sequence[str]) -> tuple[str, ...]:
    """The groups from the first question among them, where there is one: an answer says little without it."""
    first = next((i for i, g in enumerate(groups) if ledger.group(g).kind == "user"), 0)
    return tuple(groups[first:])


def _messages(ledger: Ledger, groups: Sequence[str]) -> int:
    return sum(not m.synthetic for g in groups for m in ledger.group(g).messages)
