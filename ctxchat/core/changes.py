"""Builds the changes a person makes to the ledger by hand (pin, drop, shrink, put back, edit a memo, rewind to a message), and
previews undoing and redoing any change, in whole or in part.

Pure: takes a ledger, returns a change or a preview, applies nothing. Compiling a view is slow, so compute previews off the event
loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import msgspec

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import LedgerError
from ctxchat.core.facts import Memory
from ctxchat.core.ledger import RESTORE_NOTE, Change, ChangeKind, DeferredKind, Edit, Entry, Ledger
from ctxchat.core.memos import checked_memo, memo_note, memos_of
from ctxchat.core.messages import Group, Image, Message, Part, Text, ToolCall
from ctxchat.core.record import PutBack
from ctxchat.core.strategies.arguments import leads
from ctxchat.core.summaries import of_less
from ctxchat.core.tokens import Count
from ctxchat.core.view import View

MAX_SHRUNK_CHARS = 120
"""Characters that a shrunk message keeps at most."""


def pin_change(ledger: Ledger, group_id: str, at: str) -> Change:
    """The change that pins a group: compactions leave it verbatim. Raises LedgerError where it is pinned or not in view
    unchanged."""
    if group_id in ledger.pinned:
        raise LedgerError(f"Message {ledger.group(group_id).first.id} is pinned already.")
    _unchanged_group(ledger, group_id)
    return Change(id=_new_id(ledger, "pin", at), kind="pin", at=at, pins=(group_id,))


def drop_change(ledger: Ledger, group_id: str, at: str) -> Change:
    """The change that takes a whole group out of the view, also one that is shown in a shorter form. Raises LedgerError for the
    instructions, and for a group that something else has replaced."""
    entry = _entry(ledger, group_id)
    shortened = entry.kind == "shrink" and entry.covers == (group_id,)
    if (ledger.group(group_id) if shortened else _unchanged_group(ledger, group_id)).kind == "system":
        raise LedgerError(f"{group_id} is this conversation's instructions: they stay in every request.", "Shrink it.")
    return Change(id=_new_id(ledger, "drop", at), kind="drop", at=at, edits=(Edit("drop", (group_id,)),))


def shrink_change(ledger: Ledger, group_id: str, at: str) -> Change:
    """The change that cuts each message of a group to its first line; calls keep their structure, with long texts in them cut.
    Raises LedgerError where nothing gets shorter."""
    group = _unchanged_group(ledger, group_id)
    small = msgspec.structs.replace(group, messages=tuple(_one_line(m) for m in group.messages))
    if small == group:
        raise LedgerError(f"Message {group.first.id} is as short as it gets.")
    return Change(id=_new_id(ledger, "shrink", at), kind="shrink", at=at, edits=(Edit("shrink", (group_id,), small),))


CAN_WAIT: Mapping[DeferredKind, Callable[[Ledger, str, str], Change]] = {"drop": drop_change, "shrink": shrink_change}
"""The changes that a person can put off until the next compaction: functions of the ledger, the group's id and the time."""


def deferred_edits(ledger: Ledger, deferred: Mapping[str, DeferredKind]) -> tuple[Edit, ...]:
    """The edits for the changes that were put off until the next compaction (`deferred`, by group id). Left out is what cannot be
    done now: the message under way, and what a rewind took back."""
    edits: list[Edit] = []
    for group_id, kind in deferred.items():
        with suppress(LedgerError):
            change = CAN_WAIT[kind](ledger, group_id, "")
            ledger.apply(change)
            edits += change.edits
    return tuple(edits)


def media_change(ledger: Ledger, at: str) -> tuple[Change, tuple[str, ...]] | None:
    """The change that puts a mark in place of images and files that a server refused, and their names; None where there are none.

    First those that the server has not answered yet are replaced; where there are none of these, all."""
    whole = [entry for entry in ledger.live() if not entry.change and entry.group]
    shown = [entry.group for entry in whole if entry.group and entry.group.kind != "summary"]
    answered = max((i for i, g in enumerate(shown) if any(m.role == "assistant" for m in g.messages)), default=0)
    for groups in (shown[answered:], shown):
        edits, names = list[Edit](), list[str]()
        for group in groups:
            marked = tuple(_without_media(message, names) for message in group.messages)
            if marked != group.messages:
                edits.append(Edit("shrink", (group.id,), msgspec.structs.replace(group, messages=marked)))
        if edits:
            return Change(id=_new_id(ledger, "shrink", at), kind="shrink", at=at, edits=tuple(edits)), tuple(names)
    return None


def _without_media(message: Message, names: list[str]) -> Message:
    """The message with a short text in place of each image and file; their names are added to `names`."""
    if isinstance(message.content, str):
        return message

    def marked(part: Part) -> Part:
        if isinstance(part, Text):
            return part
        names.append(part.name or "image" if isinstance(part, Image) else part.kind)
        words = part.words if isinstance(part, Image) else f"[{part.kind}]"
        return Text(f"{words[:-1]}: left out, the server refused it]")

    return msgspec.structs.replace(message, content=tuple(map(marked, message.content)))


def rewind_change(ledger: Ledger, group_id: str, at: str) -> Change:
    """The change that takes everything from this user message on out of the view. Raises LedgerError where it is no user message,
    or was rewound already."""
    group = ledger.group(group_id)
    if group.kind != "user" or group_id in ledger.rewound:
        raise LedgerError(f"{group_id} is no message to go back to.")
    gone = [g.id for g in ledger.groups[ledger.groups.index(group) :] if g.id not in ledger.rewound]
    return Change(id=_new_id(ledger, "rewind", at), kind="rewind", at=at, edits=(Edit("drop", tuple(gone)),))


def restore_change(ledger: Ledger, group_id: str, at: str) -> tuple[Group, Change]:
    """A note that quotes the group, for the record, and the change that puts the note into the view."""
    group = ledger.group(group_id)
    head = f"[put back from earlier in this conversation, turn {group.turn}]"
    return _note(ledger, _with_images(head, group), f"{RESTORE_NOTE}{group_id}", at)


def quote_change(ledger: Ledger, group: Group, source: str, at: str) -> tuple[Group, Change]:
    """A note that quotes a group of another session, and the change that puts it into the view. `source` is that session's
    title."""
    head = (
        f"[quoted from another conversation, {' '.join(source.split())[:80] or 'without a title'}, turn {group.turn}]"
    )
    return _note(ledger, _with_images(head, group), f"{RESTORE_NOTE}{group.id} of another session", at)


def _with_images(head: str, group: Group) -> str | tuple[Part, ...]:
    """The quotation, followed by the group's images, which a model has to see again."""
    parts = [part for m in group.messages if not isinstance(m.content, str) for part in m.content]
    images = tuple(part for part in parts if isinstance(part, Image))
    text = _quotation(head, group)
    return (Text(text), *images) if images else text


def _quotation(head: str, group: Group) -> str:
    """A group as a quotation in a note, below the line `head`."""
    lines = [head]
    for message in group.messages:
        lines += [f"{message.role}: {message.text}".rstrip()]
        lines += [f"  called {call.name} {call.arguments}" for call in message.calls]
    return "\n".join(lines)


def lost_facts_change(ledger: Ledger, change_id: str, at: str) -> tuple[Group, Change]:
    """A note with the facts that a compaction lost, and the change that puts it into the view. Raises LedgerError where none were
    lost, or they were put back already."""
    facts = lost_facts(ledger, change_id)
    if not facts:
        raise LedgerError(f"Compaction {change_id} lost no facts.")
    if change_id in restored_ids(ledger):
        raise LedgerError("These facts were put back already.", "Undo takes them out again.")
    head = "[facts from earlier in this conversation, put back because the summary does not have them]"
    return _note(ledger, "\n".join([head, *(f"- {fact}" for fact in facts)]), f"{RESTORE_NOTE}{change_id}", at)


def restored_ids(ledger: Ledger) -> frozenset[str]:
    """The ids of what was put back and is still in force: groups of the record, and compactions whose lost facts were put
    back."""
    sources = (ledger.group(added).source for change in ledger.changes for added in change.adds)
    return frozenset(source.removeprefix(RESTORE_NOTE) for source in sources if source.startswith(RESTORE_NOTE))


def lost_facts(ledger: Ledger, change_id: str) -> tuple[str, ...]:
    """The facts that a compaction did not carry over, a line each. Raises LedgerError where it is not in force."""
    for change in ledger.changes:
        if change.id == change_id:
            return change.record.lost if change.record else ()
    raise LedgerError(f"Compaction {change_id} is not active.")


def memo_change(ledger: Ledger, name: str, text: str, at: str) -> tuple[Group, Change]:
    """The note by which the person adds a memo, changes one or removes it (with an empty text), and the change that puts the note
    into the view. Raises ToolError for a text that is too long, LedgerError where the memo has this text already."""
    kept = {memo.name: memo.text for memo in memos_of(ledger).values()}
    name, text = checked_memo(name, text, kept)
    if kept.get(name) == text:
        raise LedgerError(f"The memo {name} says that already.")
    note = memo_note(ledger.next_seq, at, ledger.turn, name, text)
    return note, Change(id=_new_id(ledger, "memo", at), kind="memo", at=at, adds=(note.id,))


def _note(ledger: Ledger, content: str | tuple[Part, ...], source: str, at: str) -> tuple[Group, Change]:
    """A note as a group, and the change that adds it to the view."""
    seq = ledger.next_seq
    message = Message(seq=seq, role="user", content=content, at=at)
    note = Group(f"g{seq}", "note", (message,), ledger.turn, source)
    return note, Change(id=_new_id(ledger, "restore", at), kind="restore", at=at, adds=(note.id,))


def _unchanged_group(ledger: Ledger, group_id: str) -> Group:
    """The group of this id, which must be in view unchanged. Raises LedgerError."""
    entry = _entry(ledger, group_id)
    if entry.change or entry.group is None:
        raise LedgerError(f"{group_id} is not seen by the model as it was.", "Undo what replaced it, or put it back.")
    return ledger.group(group_id)


def _entry(ledger: Ledger, group_id: str) -> Entry:
    """The live entry that covers a group. Raises LedgerError where there is no such group."""
    entry = next((e for e in ledger.live() if group_id in e.covers), None)
    if entry is None:
        raise LedgerError(f"{group_id} is not in the record.")
    return entry


def _new_id(ledger: Ledger, kind: ChangeKind, at: str) -> str:
    """An id that is unique in this ledger: the kind, the time, and a number where two changes have the same time."""
    taken = {c.id for c in ledger.changes}
    base = f"{kind}-{''.join(ch for ch in at if ch.isdigit())[:17] or len(taken) + 1}"
    number = 1
    while (name := base if number == 1 else f"{base}-{number}") in taken:
        number += 1
    return name


def _one_line(message: Message) -> Message:
    """The message cut to its first line, with the arguments of its calls cut as well; unchanged where it has no more."""
    text = message.text.strip()
    first = text.split("\n", 1)[0][:MAX_SHRUNK_CHARS]
    calls = tuple(
        ToolCall(c.id, c.name, leads(c.arguments, MAX_SHRUNK_CHARS, f"the whole in the archive as {message.id}"))
        for c in message.calls
    )
    if first == text:
        return message if calls == message.calls else msgspec.structs.replace(message, calls=calls)
    mark = f"{first} [… {len(text) - len(first):,} more characters in the archive as {message.id}]"
    return msgspec.structs.replace(message, content=mark, calls=calls, reasoning=None)


Measure = Callable[[Ledger], tuple[View, ContextUsage]]
"""Compiles a ledger: its view, and how full the context would be."""

MAX_PART_TRIES = 6
"""How many parts of a change are tried before a partial undo is given up."""


class UndoPreview(msgspec.Struct, frozen=True):
    """What undoing a change would do.

    `before` and `after` are the context usage now and after a full undo, which brings back `messages` messages. Where that is too
    full, `after_part` is the usage when only the newest groups that fit come back: `part_groups`, with `part_messages` messages.
    `part_groups` is empty where no part fits, or none can come back alone.
    """

    change: Change
    before: ContextUsage
    after: ContextUsage
    messages: int
    after_part: ContextUsage | None = None
    part_groups: tuple[str, ...] = ()
    part_messages: int = 0

    @property
    def ceiling(self) -> int:
        """The smallest number of tokens that is too full: the trigger, or one past the limit where usage is over the trigger
        already."""
        before = self.before
        return before.trigger_tokens if before.used < before.trigger_tokens else before.limit + 1

    @property
    def fits(self) -> bool:
        """True when a full undo fits, adds no tokens, or the size of the context window is unknown."""
        return self.after.used < max(self.ceiling, self.before.used + 1) or self.before.limit <= 0


def find_change(ledger: Ledger, change_id: str = "") -> Change:
    """The change in force with this id, or the last one where the id is empty. Raises LedgerError where there is none."""
    for change in reversed(ledger.changes):
        if change_id in {"", change.id}:
            return change
    raise LedgerError(f"Change {change_id} is not active." if change_id else "There is nothing to undo.")


def preview_undo(ledger: Ledger, change_id: str, measure: Measure, count: Count, memory: Memory) -> UndoPreview:
    """What undoing a change would do and, where all of it does not fit, which part does. An empty `change_id` is the last change.
    Raises LedgerError where there is no such change."""
    change = find_change(ledger, change_id)
    covered = {g for entry in ledger.live() if entry.change == change.id for g in entry.covers}
    held = tuple(g.id for g in ledger.groups if g.id in covered)
    without = ledger.undo(change.id)
    (_, before), (view, after) = measure(ledger), measure(without)
    whole = UndoPreview(change, before, after, len(returning_messages(ledger, without)))
    if whole.fits or change.kind != "compaction" or change_on_top(ledger, change):
        return whole
    last = {e.group.id: e.covers[-1] for e in without.live() if e.group}
    weights = Counter[str]()
    for item in view.items:
        weights[last.get(item.group, item.group)] += item.tokens
    room = (whole.ceiling - before.used) * view.raw // max(1, after.used)
    groups = _newest_that_fit(held, weights, room)
    for _ in range(MAX_PART_TRIES):
        groups = _from_first_question(ledger, _whole_groups(without, groups))
        if not groups:
            break
        narrowed = without.apply(_without_groups(without, change, groups, count, memory))
        _, part = measure(narrowed)
        if part.used < whole.ceiling:
            back = len(returning_messages(ledger, narrowed))
            return msgspec.structs.replace(whole, after_part=part, part_groups=groups, part_messages=back)
        groups = groups[max(1, len(groups) // 8) :]
    return whole


def partial_undo(
    ledger: Ledger, change_id: str, groups: Collection[str], measure: Measure, count: Count, memory: Memory
) -> Change:
    """The compaction without these groups, to replace it; its record says what came back. Groups that one earlier summary stood
    for come back together or not at all. Raises LedgerError where the groups cannot come back alone."""
    change = find_change(ledger, change_id)
    if above := change_on_top(ledger, change):
        raise LedgerError(
            f"{_describe_change(above)} made on top of it: no part of it can come back alone.", "Undo that first."
        )
    without = ledger.undo(change.id)
    back = _whole_groups(without, groups)
    if change.kind != "compaction" or not any(g in back for e in change.edits for g in e.covers):
        raise LedgerError(f"Change {change.id} archived none of these messages.")
    left = _without_groups(without, change, back, count, memory)
    (_, now), (_, then) = measure(ledger), measure(without.apply(left))
    return _with_tokens(left, max(0, then.used - now.used))


def _without_groups(without: Ledger, change: Change, groups: Collection[str], count: Count, memory: Memory) -> Change:
    """The change as if it had never touched these groups; `without` is the ledger without it."""
    back = set(groups)
    edits = tuple(edit for e in change.edits if (edit := of_less(e, without, back, count, memory)).covers)
    record = change.record
    if record:
        before, left = (without.touches(some, frozenset(record.folded)) for some in (change.edits, edits))
        messages, shortened = (was - now for was, now in zip(before, left, strict=True))
        record = msgspec.structs.replace(
            record,
            folded=tuple(g for g in record.folded if g not in back),
            folded_messages=max(0, record.folded_messages - messages),
            shortened=max(0, record.shortened - shortened),
            back=PutBack(record.back.messages + messages, record.back.tokens),
        )
    return msgspec.structs.replace(change, edits=edits, record=record)


def _whole_groups(without: Ledger, groups: Collection[str]) -> tuple[str, ...]:
    """Those of the groups that can come back: an earlier summary comes back only with all the groups that it stands for."""
    wanted = frozenset(groups)
    return tuple(name for entry in without.live() if wanted.issuperset(entry.covers) for name in entry.covers)


def _with_tokens(change: Change, tokens: int) -> Change:
    """The change with this many more tokens recorded as having come back."""
    record = change.record
    if record is None:
        return change
    back = PutBack(record.back.messages, record.back.tokens + tokens)
    return msgspec.structs.replace(change, record=msgspec.structs.replace(record, back=back))


def redo_change(undone: Sequence[Change], ledger: Ledger, change_id: str = "") -> Change:
    """The undone change with this id (the one undone last where it is empty), to be applied again unchanged. Raises LedgerError
    where there is none, or a later change has touched the same groups."""
    change = next((c for c in reversed(undone) if change_id in {"", c.id}), None)
    last = ledger.changes[-1].record if ledger.changes else None
    if change is None and not change_id and last and last.back.messages:
        raise LedgerError("There is nothing to redo: the last undo was of a part only.", "F8 frees up again.")
    if change is None:
        raise LedgerError("There is nothing to redo." if not change_id else f"Change {change_id} was not undone.")
    since = [c for c in ledger.changes if not c.at or c.at >= change.at]
    if above := next((c for c in since if _touched(c) & _touched(change)), None):
        raise LedgerError(
            f"{_describe_change(above)} made of the same messages: it cannot be redone as it was.", "Undo that first."
        )
    return change


def change_on_top(ledger: Ledger, change: Change) -> Change | None:
    """The first later change in force that touches groups of this one, or None."""
    place = next(i for i, c in enumerate(ledger.changes) if c.id == change.id)
    return next((c for c in ledger.changes[place + 1 :] if _touched(c) & _touched(change)), None)


def _describe_change(change: Change) -> str:
    return f"Since then a {change.kind} ({change.id}) was"


def _touched(change: Change) -> set[str]:
    return {g for e in change.edits for g in e.covers}.union(change.pins)


def _newest_that_fit(held: Sequence[str], weights: Counter[str], room: int) -> tuple[str, ...]:
    """The longest tail of `held` whose weights fit into `room` raw tokens."""
    first = len(held)
    while first and weights[held[first - 1]] <= room:
        first -= 1
        room -= weights[held[first]]
    return tuple(held[first:])


def _from_first_question(ledger: Ledger, groups: Sequence[str]) -> tuple[str, ...]:
    """The groups from the first user message among them on, since an answer says little without its question; all of them where
    there is none."""
    first = next((i for i, g in enumerate(groups) if ledger.group(g).kind == "user"), 0)
    return tuple(groups[first:])


def returning_messages(now: Ledger, then: Ledger) -> frozenset[int]:
    """The numbers of the messages that `then` shows and `now` does not show, or shows shortened."""
    shown = _visible_messages(now)
    return frozenset(seq for seq, message in _visible_messages(then).items() if shown.get(seq) != message)


def _visible_messages(ledger: Ledger) -> dict[int, Message]:
    """The messages of the record that the view shows, by number."""
    entries = (e.group for e in ledger.live() if e.group and e.group.kind != "summary")
    return {m.seq: m for group in entries for m in group.messages if not m.synthetic}
