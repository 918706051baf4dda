"""The ledger: the full record of a conversation, and the changes that decide what of it a model still sees.

Immutable: each method returns a new ledger. What is live (shown to the model) is derived from groups and changes, never stored,
so an undo is exact, and a change cannot lose a group that it does not name. Derived values are computed once and carried over by
`append`, so that a turn costs by its own length, not by that of the record. Knows nothing of tokens or of time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain
from operator import lt
from typing import Literal, cast

import msgspec

from ctxchat.core.errors import LedgerError
from ctxchat.core.group_ids import GroupIds, Runs, difference, pairs, runs, searchable, union
from ctxchat.core.head import Head
from ctxchat.core.messages import Group, Message
from ctxchat.core.record import CompactionRecord, Digest

EditKind = Literal["digest", "shrink", "drop"]
ChangeKind = Literal["compaction", "drop", "shrink", "pin", "restore", "rewind", "memo"]
DeferredKind = Literal["drop", "shrink"]

RESTORE_NOTE, MEMO_NOTE = "restore:", "memo:"
"""Prefixes of the `source` of a note that a change added at the end of the record: with text that was put back (an id follows),
or with a memo that the person changed (its name follows)."""

_IDS_A_NUMBER = 8
"""Groups are named by ranges of positions, not by ids, where there are at least this many ids for each number of the ranges."""


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One replacement in the view: some groups of the record, and what is shown in their place.

    `covers` are ids of groups of the record, in its order. Groups that an earlier compaction covered are named one by one, so
    that undoing that one leaves this edit whole; where they are many, a ledger stores them as ranges (`GroupIds`).
    `replacement` is what a view shows instead, None for nothing. `digest` is there where that is a summary: the parts it was
    made of.
    """

    kind: EditKind
    covers: tuple[str, ...]
    replacement: Group | None = None
    digest: Digest | None = None


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step that can be undone: a compaction, or something a person did by hand.

    `pins` are groups that stay verbatim from now on. `adds` are notes that the change put at the end of the record. `record` is
    set for compactions, and `head` where a compaction set a new head for all later requests. A rewind covers everything from one
    user message to the end of the record at that time; while it is in force, earlier changes to what it covers are not.
    """

    id: str
    kind: ChangeKind
    at: str = ""
    edits: tuple[Edit, ...] = ()
    pins: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    record: CompactionRecord | None = None
    head: Head | None = None


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One item of the live conversation: the groups it stands for, and the group that is shown for them (None: nothing).

    `change` is the id of the change that put it there, empty for an unchanged group; `digest` is set for a summary.
    """

    covers: tuple[str, ...]
    group: Group | None
    change: str = ""
    kind: EditKind | None = None
    pinned: bool = False
    digest: Digest | None = None


class Ledger(msgspec.Struct, frozen=True, dict=True):
    """The record of a conversation: all groups that ever were, in order, and the changes that were made and not undone, oldest
    first. Encodes to JSON without loss: `msgspec.json.encode(ledger, enc_hook=list)`.

    `base_head` is the head that was last set outside a change, None before the first request; `before_head` are the ids of the
    changes made before it, whose own heads no longer count. `thoughts_left_out` are ranges of message numbers (first, end) whose
    reasoning is not sent back: a change before them made it invalid for providers that sign it.
    """

    groups: tuple[Group, ...] = ()
    changes: tuple[Change, ...] = ()
    base_head: Head | None = None
    before_head: tuple[str, ...] = ()
    thoughts_left_out: tuple[tuple[int, int], ...] = ()

    def append(self, *groups: Group) -> Ledger:
        """The ledger with these groups at its end. Raises LedgerError for an id that is already in the record."""
        places = {group.id: place for place, group in enumerate(groups, len(self.groups))}
        if len(places) < len(groups) or any(map(self.holds, places)):
            raise LedgerError(f"a group of {sorted(places)} is in the record already")
        ledger = msgspec.structs.replace(self, groups=self.groups + groups)
        derived, before = vars(ledger), vars(self)
        derived["_ids"], derived["_places"] = self._named_with(places)
        derived["current"] = _said_now((*map(self.group, self.current), *groups))
        derived["next_seq"] = max((m.seq + 1 for g in groups for m in g.messages), default=1)
        derived["next_seq"] = max(derived["next_seq"], self.next_seq)
        kept = ("pinned", "compactions", "in_force", "rewound", "head")
        derived |= {name: before[name] for name in kept if name in before}
        derived["_notes"] = (*self._notes, *(group.id for group in groups if _added(group)))
        if "_live" in before:
            derived["_live"] = self._live + tuple(_entry(group, _added(group)) for group in groups)
        return ledger

    def _named_with(self, more: dict[str, int]) -> tuple[list[str], dict[str, int]]:
        """The list of ids and the map from id to position, with `more` added. Ledgers that grew out of one another share both;
        each reads only as far as its own length."""
        ids, places = self._ids, self._places
        if len(places) > len(self.groups):  # another ledger grew out of this one already and has extended them
            ids = ids[: len(self.groups)]
            places = {name: place for place, name in enumerate(ids)}
        ids.extend(more)
        places.update(more)
        return ids, places

    def holds(self, group_id: str) -> bool:
        """True where the group is in the record."""
        return self._position(group_id) is not None

    def _position(self, group_id: str) -> int | None:
        place = self._places.get(group_id)
        return place if place is not None and place < len(self.groups) else None

    def apply(self, change: Change) -> Ledger:
        """The ledger with this change in force.

        Raises LedgerError where it names a group that is not in the record, or twice the same group, or one that must not change:
        pinned, taken back by a rewind, or a user message of the current turn (which may be shortened, but not removed).
        """
        if any(c.id == change.id for c in self.changes):
            raise LedgerError(f"change {change.id} is in force already")
        edits = tuple([self._checked(edit, rewind=change.kind == "rewind") for edit in change.edits])
        if len(edits) > 1 and (twice := _repeated(chain.from_iterable(edit.covers for edit in edits))):
            raise LedgerError(f"group {min(twice)} is covered twice by one change")
        if change.kind == "rewind" and any(e.replacement for e in change.edits):
            raise LedgerError("a rewind puts nothing in place of what it takes back")
        if unknown := [p for p in (*change.pins, *change.adds) if not self.holds(p)]:
            raise LedgerError(f"group {unknown[0]} is not in the record")
        change = msgspec.structs.replace(change, edits=edits)
        ledger = self._with_changes((*self.changes, change))
        if live := self._live_after(change):
            vars(ledger)["_live"] = live
        return ledger

    def _checked(self, edit: Edit, *, rewind: bool) -> Edit:
        """The edit, validated, in the form in which it is stored. Has no Python loop in the usual case: a journal of two hundred
        compactions names millions of groups."""
        covers = edit.covers
        if not covers:
            raise LedgerError("an edit must cover at least one group")
        ranges = self._runs_of(covers)
        if not rewind and (pinned := _among(self.pinned, covers)):
            raise LedgerError(f"Message {self.group(min(pinned)).first.id} is pinned.", "Unpin it first (F4, p).")
        if not rewind and (gone := _among(self.rewound, covers)):
            # else the group would stay covered once the rewind is undone
            raise LedgerError(f"group {min(gone)} was taken back by a rewind", "Undo that first.")
        current = frozenset[str]() if rewind else _among(self.current, covers)
        if current and (len(current) > 1 or edit.replacement is None or edit.replacement.kind != "user"):
            raise LedgerError(
                "the current user message must stay in view", "It can be shortened, or dropped a turn later."
            )
        if len(ranges) * _IDS_A_NUMBER > len(covers):
            return edit
        return msgspec.structs.replace(edit, covers=self._named(ranges))

    def _runs_of(self, names: Sequence[str]) -> Runs:
        """The positions of these groups, as ranges. Raises LedgerError for a group that is not in the record or named twice, and
        where they are not in the order of the record."""
        end = len(self.groups)
        stored = names.runs_in(self._ids) if isinstance(names, GroupIds) else None
        if stored is not None and sum(stored[-2:]) <= end:
            return stored
        positions = [place for place in map(self._places.get, names) if place is not None and place < end]
        if len(positions) < len(names):
            unknown = next(g for g in names if not self.holds(g))
            raise LedgerError(f"group {unknown} is not in the record")
        if not all(map(lt, positions, positions[1:])):
            if twice := _repeated(names):
                raise LedgerError(f"group {min(twice)} is covered twice by one change")
            raise LedgerError("an edit must cover groups in the order of the record")
        return runs(positions)

    def _named(self, ranges: Runs) -> tuple[str, ...]:
        return cast("tuple[str, ...]", GroupIds(self._ids, ranges, self._places))

    def together(self, several: Iterable[Sequence[str]]) -> tuple[str, ...]:
        """The union of several lists of group ids, in the order of the record. Raises LedgerError for ids that `groups_of` would
        refuse."""
        return self._named(union(map(self._runs_of, several)))

    def without(self, names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
        """The ids in `names` that are not in `others`; both in the order of the record. Raises LedgerError as `groups_of`
        does."""
        return self._named(difference(self._runs_of(names), self._runs_of(others)))

    def groups_of(self, names: Sequence[str]) -> tuple[Group, ...]:
        """The original groups with these ids. Raises LedgerError for an id that is not in the record or given twice, and where
        the ids are not in the order of the record."""
        spans = [self.groups[first : first + many] for first, many in pairs(self._runs_of(names))]
        return spans[0] if len(spans) == 1 else tuple(chain.from_iterable(spans))

    def _live_after(self, change: Change) -> tuple[Entry, ...] | None:
        """The live entries after one more change, computed from those of now, which is faster than from the start. None where
        those are not computed yet, or where the change covers only a part of an entry."""
        if "_live" not in vars(self) or change.kind == "rewind" or change.adds:
            return None
        single = {edit.covers[0]: edit for edit in change.edits if len(edit.covers) == 1}
        several = [edit for edit in change.edits if len(edit.covers) > 1]
        pins = set(change.pins)
        taken: Counter[int] = Counter()
        entries: list[Entry] = []
        for entry in self._live:
            name = entry.covers[0]
            edit = single.get(name) or next((one for one in several if name in one.covers), None)
            if edit is None:
                if name in pins and not entry.change:
                    pins.remove(name)
                    entry = msgspec.structs.replace(entry, pinned=True)
                entries.append(entry)
                continue
            if len(entry.covers) > 1 and len(self.together((entry.covers, edit.covers))) > len(edit.covers):
                return None
            if id(edit) not in taken:
                entries.append(Entry(edit.covers, edit.replacement, change.id, edit.kind, digest=edit.digest))
            taken[id(edit)] += len(entry.covers)
        whole = all(taken[id(edit)] == len(edit.covers) for edit in change.edits)
        return tuple(entries) if whole and not pins else None

    def with_changes_of(self, grown: Ledger, names: Collection[str]) -> Ledger:
        """This record with the changes of these ids from `grown`, a ledger that grew out of this one. They must include every
        change that a live entry of `grown` comes from."""
        ledger = self._with_changes(tuple(change for change in grown.changes if change.id in names))
        vars(ledger)["_live"] = tuple(entry for entry in grown.live() if self.holds(entry.covers[0]))
        return ledger

    def undo(self, change_id: str) -> Ledger:
        """The ledger as if this change had never been made; later changes stay. Raises LedgerError where it is not active."""
        if all(c.id != change_id for c in self.changes):
            raise LedgerError(f"change {change_id} is not in force")
        return self._with_changes(tuple(c for c in self.changes if c.id != change_id))

    def _with_changes(self, changes: tuple[Change, ...]) -> Ledger:
        """The ledger with other changes. Derived values that depend on the groups alone are carried over."""
        ledger = msgspec.structs.replace(self, changes=changes)
        same = {
            "_ids",
            "_places",
            "_notes",
            "current",
            "next_seq",
        }  # these depend on the groups alone, which are the same
        if any(c.kind == "rewind" for c in (*self.changes, *changes)):
            same.remove("current")
        vars(ledger).update({name: value for name, value in vars(self).items() if name in same})
        return ledger

    @cached_property
    def head(self) -> Head | None:
        """The head of each request now, before the conversation: the newest of `base_head` and those that changes in force set.
        None before the first request."""
        of_changes = (c.head for c in reversed(self.in_force) if c.head and c.id not in self.before_head)
        return next(of_changes, self.base_head)

    def with_head(self, head: Head) -> Ledger:
        """The ledger with this head from now on, in place of any that earlier changes set."""
        return self._derived(
            msgspec.structs.replace(self, base_head=head, before_head=tuple(c.id for c in self.changes))
        )

    def without_thoughts(self, since: int, until: int) -> Ledger:
        """The ledger whose messages `since` to `until` (numbers, the second excluded) are sent without their reasoning, for
        good."""
        spans = tuple(span for span in self.thoughts_left_out if not (since <= span[0] and span[1] <= until))
        return self._derived(msgspec.structs.replace(self, thoughts_left_out=(*spans, (since, until))))

    def sends_thoughts_of(self, seq: int) -> bool:
        """True where the reasoning of this message may be sent back to its model."""
        return all(not since <= seq < until for since, until in self.thoughts_left_out)

    def _derived(self, ledger: Ledger) -> Ledger:
        """A ledger with the same record and changes, given the values that were already derived from those."""
        vars(ledger).update({name: value for name, value in vars(self).items() if name != "head"})
        return ledger

    def live(self) -> tuple[Entry, ...]:
        """The live entries, which a model may see, in the order of the record. They cover every group exactly once.

        Where several changes cover a group, the latest decides. An entry stands where the first group it covers stood. A pinned
        group is shown unchanged, whatever covered it before.
        """
        return self._live

    def touches(self, edits: Iterable[Edit], groups: Collection[str]) -> tuple[int, int]:
        """How many messages of `groups` these edits would remove from the view or shorten, and how many of them only shorten."""
        out = shorter = 0
        shown = {m.seq: m for e in self._live if e.group and e.group.kind != "summary" for m in e.group.messages}
        for edit in edits:
            made = edit.replacement if edit.kind == "shrink" else None
            if made:
                shorter += sum(m.seq in shown and shown[m.seq] != m for m in made.messages)
            else:
                out += sum(not m.synthetic for g in edit.covers if g in groups for m in self.group(g).messages)
        return out + shorter, shorter

    def staying(self, fold: Iterable[str]) -> tuple[Group, ...]:
        """The groups of the record of which a view still shows something once the groups `fold` are folded; summaries do not
        count as showing."""
        gone = searchable(fold)
        shown = (
            e for e in self._live if e.group and e.group.kind != "summary" and not any(n in gone for n in e.covers)
        )
        return tuple(self.group(name) for entry in shown for name in entry.covers)

    @cached_property
    def _live(self) -> tuple[Entry, ...]:
        """Compute the live entries: each group, or in place of the groups that an edit covers, the edit's replacement where the
        first of them stood."""
        pinned, hidden, owner = self.pinned, self.hidden_notes, self._owners()
        covered: dict[int, list[str]] = {}
        shown: list[Group | tuple[Change, Edit]] = []
        for name, group in zip(self._ids, self.groups, strict=False):  # the ids may be longer: ledgers share them
            owned = None if name in pinned else owner.get(name)
            if owned is None:
                shown.append(group)
            elif (place := id(owned[1])) in covered:
                covered[place].append(name)
            else:
                covered[place] = [name]
                shown.append(owned)
        entries: list[Entry] = []
        for one in shown:
            if isinstance(one, Group):
                entries.append(_entry(one, one.id in hidden, one.id in pinned))
                continue
            change, edit = one
            covers = covered[id(edit)]
            named = edit.covers if len(covers) == len(edit.covers) else tuple(covers)
            entries.append(Entry(named, edit.replacement, change.id, edit.kind, digest=edit.digest))
        return tuple(entries)

    def _owners(self) -> dict[str, tuple[Change, Edit]]:
        """The latest change and edit that cover each group, by group id; uncovered groups are missing."""
        owner: dict[str, tuple[Change, Edit]] = {}
        widest: Sequence[str] = ()
        for change in reversed(self.in_force):
            for edit in reversed(change.edits):
                if isinstance(widest, GroupIds) and widest.begins_with(edit.covers):
                    continue  # a later compaction covers all of these; a check of each would grow with every compaction
                for covered in edit.covers:
                    owner.setdefault(covered, (change, edit))
                widest = max(widest, edit.covers, key=len)
        return owner

    @property
    def hidden_notes(self) -> frozenset[str]:
        """Ids of the notes whose change was undone: they are in the record, but no longer shown."""
        return frozenset(self._notes).difference(a for c in self.in_force for a in c.adds)

    @cached_property
    def _notes(self) -> tuple[str, ...]:
        """Ids of the notes that changes added."""
        return tuple(g.id for g in self.groups if g.source and _added(g))

    @cached_property
    def _ids(self) -> list[str]:
        return [g.id for g in self.groups]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._ids)}

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Ids of the pinned groups, which stay verbatim."""
        return frozenset(p for c in self.in_force for p in c.pins)

    @cached_property
    def in_force(self) -> tuple[Change, ...]:
        """The changes that decide what is live: all but those to groups that a later rewind took back."""
        if not any(c.kind == "rewind" for c in self.changes):
            return self.changes
        found: list[Change] = []
        gone: set[str] = set()
        for change in reversed(self.changes):
            if change.kind == "rewind":
                gone.update(g for e in change.edits for g in e.covers)
            elif gone.intersection((*change.pins, *change.adds, *(g for e in change.edits for g in e.covers))):
                continue
            found.append(change)
        return tuple(reversed(found))

    @cached_property
    def rewound(self) -> frozenset[str]:
        """Ids of the groups that a rewind took back."""
        return frozenset(g for c in self.changes if c.kind == "rewind" for e in c.edits for g in e.covers)

    @cached_property
    def groups_in_force(self) -> tuple[Group, ...]:
        """The record without what a rewind took back."""
        return tuple(g for g in self.groups if g.id not in self.rewound) if self.rewound else self.groups

    @cached_property
    def current(self) -> frozenset[str]:
        """Ids of the user messages of the current turn: the one that began it, and those sent while it ran."""
        return _said_now(self.groups_in_force)

    @property
    def turn(self) -> int:
        """The current turn; 0 before the first user message."""
        return self.groups[-1].turn if self.groups else 0

    @cached_property
    def next_seq(self) -> int:
        """The number of the next message of the record."""
        return max((m.seq for g in self.groups for m in g.messages), default=0) + 1

    @cached_property
    def compactions(self) -> tuple[Change, ...]:
        """The compactions in force, oldest first."""
        return tuple(c for c in self.in_force if c.kind == "compaction")

    def messages(self) -> tuple[Message, ...]:
        """The whole record, message by message, in its order."""
        return tuple(sorted((m for g in self.groups for m in g.messages), key=lambda m: m.seq))

    def group(self, group_id: str) -> Group:
        """The original group. Raises LedgerError where there is none of that id."""
        place = self._position(group_id)
        if place is None:
            raise LedgerError(f"group {group_id} is not in the record")
        return self.groups[place]


def _entry(group: Group, hidden: bool, pinned: bool = False) -> Entry:
    """The live entry of a group that no change covers; `hidden`: nothing is shown of it."""
    return Entry(covers=(group.id,), group=None if hidden else group, pinned=pinned)


def _said_now(groups: Iterable[Group]) -> frozenset[str]:
    """Ids of the user messages of the last turn among these."""
    said = [g for g in groups if g.kind == "user"]
    return frozenset(g.id for g in said if g.turn == said[-1].turn)


def _added(group: Group) -> bool:
    """True for a note that a change added: it is shown as long as that change is in force."""
    return group.source.startswith((RESTORE_NOTE, MEMO_NOTE))


def _among(some: frozenset[str], covers: Sequence[str]) -> frozenset[str]:
    """The ids in `some` that are in `covers`; for `GroupIds` without a loop over all of `covers`."""
    return frozenset(name for name in some if name in covers) if isinstance(covers, GroupIds) else some & {*covers}


def _repeated(ids: Iterable[str]) -> set[str]:
    return {i for i, times in Counter(ids).items() if times > 1}


NOTHING_OPEN = "There is nothing to continue: the last reply is whole."


def open_end(ledger: Ledger) -> Group | None:
    """The last group of a turn that was cut off: a half reply, a round without a reply to it, a user message without one. None
    where the last reply is whole, or the conversation is empty."""
    last = next((group for group in reversed(ledger.groups_in_force) if group.kind in {"user", "reply", "round"}), None)
    return None if last is None or (last.kind == "reply" and not last.first.interrupted) else last
