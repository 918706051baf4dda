"""Converts the steps of an imported session into journal entries: groups of messages, compactions, rewinds and usage.

It works on one session as a stream. Messages are held in memory only while they are in the view of the agent's model; of all
others only their numbers are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, takewhile

import msgspec

from ctxchat.core.calibration import Anchor, Mix, total
from ctxchat.core.events import Usage
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.images import from_data_url, kind_of, size_in
from ctxchat.core.journal import Changed, Measured, Named, Record, Sealed, Undone
from ctxchat.core.ledger import Change, Edit
from ctxchat.core.masked_record import MaskedRecord
from ctxchat.core.messages import Group, Image, Message, Part, Text
from ctxchat.core.quantities import count
from ctxchat.core.recap import MAX_ACTIVITY_LINES, recap
from ctxchat.core.record import CompactionRecord, Digest, SideUsage, StepGain
from ctxchat.core.secrets import masked
from ctxchat.core.summaries import summary_group
from ctxchat.core.tokens import rough_count
from ctxchat.importing.steps import About, Back, Begin, Cleared, Compacted, Counted, Damaged, NoPlace, Said, Step

MAX_OPEN_MESSAGES = 400
"""Messages held back while calls have no result; beyond that the calls are closed without results."""

MAX_HELD_CHARS = 64_000_000
"""Characters of messages held at once, more than fit into any window. Of older ones only the numbers are held."""

RECAP_TOKENS = 4_000
"""Tokens of the text in place of messages whose summary only the agent's server can read."""

_SEPARATOR = "\n\n"

Attach = Callable[[str, bytes], str]
"""A function that saves data under a name like the given one; the path in the session's folder."""

Weigh = Callable[[str, Message], Mix]
"""A function that sizes a message for the model with a name, as the gauge does."""


class Totals(msgspec.Struct, omit_defaults=True):
    """What was imported of a session. Messages are counted as the record has them; `damaged` has a text for each unreadable part,
    `no_place` a count for each kind of content that cannot be represented."""

    messages: int = 0
    compactions: int = 0
    branches: int = 0
    first: str = ""
    last: str = ""
    model: str = ""
    damaged: list[str] = []
    no_place: dict[str, int] = {}


class _Place(msgspec.Struct, gc=False):
    """A group without its text: its kind, its turn, the numbers `seqs` of its messages, the id of the group `before` it in its
    branch, and its `depth` in that branch, from 1."""

    kind: str
    turn: int
    seqs: tuple[int, ...]
    before: str
    depth: int


class _Compaction(msgspec.Struct, frozen=True):
    """A compaction in force, with all that is needed to undo it: the id of its change; `tip`, the newest group then; `taken`, the
    groups it took out of view; `back`, the groups it released from the summary before; and that `summary`."""

    change: str
    tip: str
    taken: tuple[str, ...]
    back: tuple[str, ...]
    summary: Group | None


class Building:
    """Builds the journal of one imported session from steps. `session` is its id in the journal and `agent` the other agent's
    name as shown to people. With `weigh` the last count of a server becomes the gauge's anchor. `totals` and `about` grow."""

    def __init__(self, session: str, agent: str, attach: Attach, weigh: Weigh | None = None) -> None:
        self._session = session
        self._agent = agent
        self._attach = attach
        self._weigh = weigh
        self.totals = Totals(damaged=[], no_place={})
        self.about = About()
        self._pending: list[Said] = []
        self._open = Counter[str]()
        self._seq = 1
        self._turn = 0
        self._places: dict[str, _Place] = {}
        self._firsts: dict[str, int] = {}  # the number of each group's first message
        self._group_of: dict[str, str] = {}  # group ids by the keys of their messages
        self._view: dict[str, Group | None] = {}  # the groups in view; None where only the `_Place` is held
        self._held = 0
        self._folded: dict[str, None] = {}
        self._summary: Group | None = None
        self._compactions: list[_Compaction] = []
        self._hidden: dict[str, str] = {}  # groups of abandoned branches, each with the id of its rewind
        self._rewinds: dict[str, tuple[str, ...]] = {}
        self._tip = ""
        self._changes = 0
        self._counted: dict[str, Counted] = {}
        self._measured: tuple[Measured, str] | None = None
        self._overhead: int | None = None
        self._used = 0

    def add_step(self, step: Step) -> Iterator[Record]:
        """The entries that this step completes."""
        match step:
            case Said():
                yield from self._add_message(step)
            case Counted():
                if self._pending:
                    reply = next((s for s in reversed(self._pending) if s.message.role == "assistant"), None)
                    if reply:
                        self._counted[reply.key] = step
            case Compacted():
                yield from self._flush()
                yield from self._add_compaction(step)
            case Cleared():
                yield from self._flush()
                yield from self._add_clearing(step)
            case Back():
                yield from self._flush()
                yield from self._add_rewind(step)
            case About():
                self._add_about(step)
            case Damaged(where=where, why=why):
                self.totals.damaged.append(f"{where}: {why}")
            case NoPlace(what=what):
                self.totals.no_place[what] = self.totals.no_place.get(what, 0) + 1
            case Begin():
                pass

    def last_records(self) -> Iterator[Record]:
        """The entries at the end of the session."""
        yield from self._flush()
        yield from self._write_usage(turn_end=True, last=True)
        if self.about.title:
            yield Named(self.about.title)

    # ── messages ──

    def _add_message(self, said: Said) -> Iterator[Record]:
        message = said.message
        if message.role == "assistant" and (index := self._pending_reply(said.key)) is not None:
            self._pending[index] = Said(said.key, _merged_message(self._pending[index].message, message))
        else:
            if message.role != "tool" and (not self._open.total() or len(self._pending) > MAX_OPEN_MESSAGES):
                yield from self._flush()
            self._pending.append(said)
        self._open.update(call.id for call in message.calls)
        if message.role == "tool" and self._open[message.call_id]:
            self._open[message.call_id] -= 1

    def _pending_reply(self, key: str) -> int | None:
        """The index of the pending reply with this key, to which a further piece belongs; None where there is none."""
        for index in range(len(self._pending) - 1, -1, -1):
            if self._pending[index].key == key and self._pending[index].message.role == "assistant":
                return index
        return None

    def _flush(self) -> Iterator[Record]:
        """Group the pending messages and seal each group."""
        pending, self._pending = self._pending, []
        self._open.clear()
        keys: dict[int, str] = {}
        kinds: dict[int, str] = {}
        messages: list[Message] = []
        for said in pending:
            if said.message.empty and not said.message.reasoning and said.message.role != "tool":
                self._count_no_place("messages without a word")
                continue
            message = msgspec.structs.replace(said.message, seq=self._seq, content=self._stored_content(said.message))
            keys[self._seq], kinds[self._seq] = said.key, said.kind
            messages.append(message)
            self._seq += 1
        if not messages:
            return
        groups = [
            *group_messages((m for m in messages if not kinds[m.seq]), self._seq),
            *(
                single("note" if kinds[m.seq] == "note" else "summary", m, 0, self._agent)
                for m in messages
                if kinds[m.seq]
            ),
        ]
        turns_before, self._seq = self._turn, messages[0].seq
        for group in sorted(groups, key=lambda g: g.first.seq):
            group_keys = [keys[m.seq] for m in group.messages if m.seq in keys]
            first_key = keys.get(group.first.seq, "")
            group = self._numbered(group)
            for key in group_keys:
                self._group_of.setdefault(key, group.id)
            self._turn = max(self._turn, turns_before + group.turn)
            kind = "note" if group.kind == "system" and self._turn else group.kind
            group = msgspec.structs.replace(group, kind=kind, turn=self._turn)
            yield from self._write_usage(turn_end=kind == "user")
            self._keep_group(group)
            yield Sealed((group,), imported=True)
            self._add_count(group, first_key)

    def _numbered(self, group: Group) -> Group:
        """The group with its messages numbered in the order of the record. Until now they had the order of their arrival, which
        differs where results came in another order than their calls, or after other messages."""
        messages = tuple(msgspec.structs.replace(m, seq=self._seq + index) for index, m in enumerate(group.messages))
        self._seq += len(messages)
        return msgspec.structs.replace(group, id=f"g{messages[0].seq}", messages=messages)

    def _keep_group(self, group: Group) -> None:
        """Put a group into view, and drop the text of the oldest ones beyond `MAX_HELD_CHARS`."""
        depth = self._places[self._tip].depth + 1 if self._tip else 1
        self._places[group.id] = _Place(group.kind, group.turn, tuple(m.seq for m in group.messages), self._tip, depth)
        self._firsts[group.id] = group.first.seq
        self._tip = group.id
        self._view[group.id] = group
        self._held += _length(group)
        if self._held > MAX_HELD_CHARS:
            for name, held in self._view.items():
                if held and name != group.id:
                    self._view[name] = None
                    self._held -= _length(held)
                    if self._held < MAX_HELD_CHARS // 2:
                        break
        messages = [m for m in group.messages if not m.synthetic]
        self.totals.messages += len(messages)
        times = [m.at for m in messages if m.at]
        if times:
            self.totals.first = min(self.totals.first or times[0], *times)
            self.totals.last = max(self.totals.last, *times)

    def _stored_content(self, message: Message) -> str | tuple[Part, ...]:
        """The content of a message, with images saved as files in the session's folder."""
        if isinstance(message.content, str):
            return message.content
        return tuple(self._image(part) if isinstance(part, Image) else part for part in message.content)

    def _image(self, image: Image) -> Part:
        if not image.url.startswith("data:"):
            return image
        data = from_data_url(image.url)
        if data is None:
            self._count_no_place("images that cannot be read")
            return Text(image.words)
        path = self._attach(image.name or f"image.{kind_of(data)}", data)
        return Image(path, *size_in(data), name=image.name)

    # ── what servers counted ──

    def _add_count(self, group: Group, key: str) -> None:
        counted = self._counted.pop(key, None)
        if counted is None:
            return
        usage, model = counted.usage, counted.model
        self._used = usage.prompt + usage.completion
        self.totals.model = model or self.totals.model
        if self._overhead is None:
            self._overhead = self._fixed_tokens(group, usage)
        measured = Measured(model or self.totals.model, usage, self._used, at=group.first.at)
        self._measured = measured, group.id

    def _fixed_tokens(self, group: Group, usage: Usage) -> int:
        """Tokens of the first request besides its messages: the agent's own instructions and tools. -1 where that is unknown."""
        before = list(takewhile(lambda name: name != group.id, self._in_order()))
        if self._weigh is None or self._changes or any(self._places[name].kind == "summary" for name in before):
            return -1
        return max(0, usage.prompt - self._mix(before).raw)

    def _mix(self, names: Iterable[str]) -> Mix:
        """The size of these groups, as far as their messages are held."""
        groups, weigh, model = (self._view[name] for name in names), self._weigh, self.totals.model
        return total(weigh(model, m) for g in groups if g for m in g.messages) if weigh else Mix()

    def _write_usage(self, *, turn_end: bool, last: bool = False) -> Iterator[Record]:
        """The entry for the last count of a server, once it is known whether a turn ends behind it."""
        if self._measured is None:
            return
        (measured, group), self._measured = self._measured, None
        anchor = self._anchor(measured, group) if last else None
        yield msgspec.structs.replace(measured, turn_end=turn_end, anchor=anchor)

    def _anchor(self, measured: Measured, name: str) -> Anchor | None:
        """The last count, without the tokens of the other agent's instructions and tools: those of ctxchat are counted anew."""
        reply = self._view.get(name)
        before = list(takewhile(lambda other: other != name, self._in_order()))
        if self._overhead is None or self._overhead < 0 or not reply or not all(map(self._view.get, before)):
            return None
        mix = self._mix(before)
        if self._weigh:
            ahead = (self._summary.first,) if self._summary else ()
            mix = total([mix, *(self._weigh(measured.model, m) for m in (*ahead, reply.first))])
        tokens = max(0, measured.used - self._overhead)
        return Anchor(tokens, mix, len(self._compactions) + len(self._rewinds), measured.model)

    # ── what the agent did to its view ──

    def _add_compaction(self, step: Compacted) -> Iterator[Record]:
        kept = {self._group_of[key] for key in step.kept if key in self._group_of}
        if step.kept_from in self._group_of:
            start = self._order(self._group_of[step.kept_from])
            kept.update(name for name in self._view if self._order(name) >= start)
        kept = {name for name in kept if self._places[name].kind != "summary"}  # the new summary replaces it
        kept |= self._current_user_messages()
        covers = [name for name in (*self._folded, *self._view) if name not in kept]
        covers.sort(key=self._order)
        if not covers:
            if step.summary:  # the messages it stands for are in another file
                yield from self._add_message(
                    Said(f"summary-{self._seq}", Message(0, "user", step.summary, at=step.at), "summary")
                )
            return
        yield from self._write_usage(turn_end=step.manual)
        if step.summary:
            digest, room = Digest(summary=step.summary), 0
        else:
            visible = [g for cover in covers if (g := self._view.get(cover))][-MAX_ACTIVITY_LINES:]
            visible = [*map(MaskedRecord(masked).group, visible)]
            digest, room = Digest(recap=recap(visible, RECAP_TOKENS // 2, rough_count)), RECAP_TOKENS
        name = f"{self._session}-c{self.totals.compactions + 1}"
        folded = tuple(cover for cover in covers if cover in self._view)
        covered = [self._slim(cover) for cover in dict.fromkeys((covers[0], *folded, covers[-1]))]
        seqs = chain.from_iterable(self._places[cover].seqs for cover in covers)
        group = summary_group(digest, covered, room, rough_count, name, seqs=seqs)
        edits = (Edit("digest", tuple(covers), group, digest),)
        folded_messages = sum(len(self._places[cover].seqs) for cover in folded)
        change = self._compaction_change(name, step, edits, folded, folded_messages, group)
        yield Changed(change)
        for cover in folded:
            if held := self._view.pop(cover, None):
                self._held -= _length(held)
        back = tuple(name for name in kept if name in self._folded)
        self._compactions.append(_Compaction(name, self._tip, folded, back, self._summary))
        self._folded = dict.fromkeys(covers)
        self._summary = group
        self.totals.compactions += 1

    def _compaction_change(
        self,
        name: str,
        step: Compacted,
        edits: tuple[Edit, ...],
        folded: tuple[str, ...],
        messages: int,
        summary: Group,
    ) -> Change:
        """The change of a compaction with its record; tokens that the agent did not tell are estimated. `messages` is the number
        of those compacted."""
        freed = sum(rough_count(m.text) for cover in folded if (g := self._view.get(cover)) for m in g.messages)
        before = step.before or self._used or freed
        after = step.after or max(0, before - freed) + rough_count(summary.first.text)
        after = min(after, max(0, before - 1))
        sides = SideUsage(before, len(self._view)), SideUsage(after, len(self._view) - len(folded) + 1)
        reason = "manual" if step.manual else "auto"
        detail = f"{count(messages, 'message')} compacted by {self._agent}"
        if not step.summary:
            detail += "; only its server can read the summary, so the record says what was asked and done"
        gain = (StepGain("summary", before - after, len(folded)),)
        record = CompactionRecord(
            id=name,
            reason=reason,
            strategy=self._agent,
            outcome="compacted",
            at=step.at,
            steps=gain,
            model=step.model or self.totals.model,
            author=self._agent,
            before=sides[0],
            after=sides[1],
            folded=folded,
            folded_messages=messages,
            summary=step.summary,
            detail=detail,
        )
        change = Change(name, "compaction", step.at, edits, record=record)
        self._changes += 1
        self._used = after
        return change

    def _add_clearing(self, step: Cleared) -> Iterator[Record]:
        """Results that the agent cleared, as a compaction of their own: the calls stay in view."""
        edits: list[Edit] = []
        for name in self._in_order():
            group = self._view[name]
            if group and group.kind == "round" and any(m.call_id in step.calls for m in group.messages[1:]):
                messages = (
                    msgspec.structs.replace(m, content=step.text) if m.call_id in step.calls and m.role == "tool" else m
                    for m in group.messages
                )
                shown = msgspec.structs.replace(group, messages=tuple(messages))
                edits.append(Edit("shrink", (name,), shown))
        if not edits:
            return
        yield from self._write_usage(turn_end=False)
        name = f"{self._session}-c{self.totals.compactions + 1}"
        covers = tuple(edit.covers[0] for edit in edits)
        stub = msgspec.structs.replace(single("note", Message(0, "user", step.text), 0))
        change = self._compaction_change(
            name,
            Compacted(step.text, step.at),
            tuple(edits),
            covers,
            sum(len(self._places[c].seqs) for c in covers),
            stub,
        )
        yield Changed(change)
        self._compactions.append(_Compaction(name, self._tip, (), (), self._summary))
        self.totals.compactions += 1

    def _add_rewind(self, step: Back) -> Iterator[Record]:
        target = self._group_of.get(step.to, "")
        if step.to and not target:
            return
        leaving, entering = self._path_to(target)
        yield from self._write_usage(turn_end=True)
        removed = dict.fromkeys(name for name in leaving if name in self._view)
        for rewind in dict.fromkeys(self._hidden[name] for name in entering if name in self._hidden):
            yield Undone(rewind, step.at)  # it goes back to an abandoned branch
            for name in self._rewinds.pop(rewind):
                del self._hidden[name]
                self._view[name] = None
                removed[name] = None
        while self._compactions and self._compactions[-1].tip in leaving:
            undone = self._compactions.pop()
            yield Undone(undone.change, step.at)
            self._summary = undone.summary
            for name in undone.taken:
                del self._folded[name]
                self._view[name] = None
                if name in leaving:
                    removed[name] = None
            self._folded.update(dict.fromkeys(undone.back))
        self._tip = target
        removed = sorted((name for name in removed if name not in entering), key=self._order)
        if not removed:
            return
        self._changes += 1
        self.totals.branches += 1
        rewind = Change(f"rewind-{self._changes}", "rewind", step.at, (Edit("drop", tuple(removed)),))
        yield Changed(rewind)
        self._rewinds[rewind.id] = tuple(removed)
        self._hidden.update(dict.fromkeys(removed, rewind.id))
        for name in removed:
            if held := self._view.pop(name, None):
                self._held -= _length(held)

    def _path_to(self, target: str) -> tuple[dict[str, None], dict[str, None]]:
        """The groups of the current branch after the point where the branch of `target` parts from it, and those of that branch
        from there to `target`; both from the newest to the oldest."""
        leaving, entering = dict[str, None](), dict[str, None]()
        tip = self._tip
        while tip != target:
            if (self._places[tip].depth if tip else 0) >= (self._places[target].depth if target else 0):
                leaving[tip] = None
                tip = self._places[tip].before
            else:
                entering[target] = None
                target = self._places[target].before
        return leaving, entering

    def _current_user_messages(self) -> set[str]:
        """The user messages of the current turn, which stay in view as in any compaction."""
        user_groups = [name for name in self._view if self._places[name].kind == "user"]
        newest = max(user_groups, key=self._order, default="")
        return {name for name in user_groups if self._places[name].turn == self._places[newest].turn}

    def _order(self, name: str) -> int:
        """The sort key of a group in the order of the record."""
        return self._firsts[name]

    def _in_order(self) -> list[str]:
        """The groups in view in the order of the record: `_view` has those that came back at its end."""
        return sorted(self._view, key=self._order)

    def _slim(self, name: str) -> Group:
        """A group with its text where it is a user message that is held, else only with the numbers of its messages."""
        held, place = self._view.get(name), self._places[name]
        if held and held.kind == "user":
            return held
        return Group(name, "note", tuple(Message(seq, "user") for seq in place.seqs), place.turn)

    # ── about the session ──

    def _add_about(self, about: About) -> None:
        known = self.about
        newer = about.title.strip() and about.rank >= known.rank
        self.about = About(
            title=" ".join(about.title.split()) if newer else known.title,
            rank=about.rank if newer else known.rank,
            folder=known.folder or about.folder,
            parent=about.parent or known.parent,
        )

    def _count_no_place(self, what: str) -> None:
        self.totals.no_place[what] = self.totals.no_place.get(what, 0) + 1


def _merged_message(before: Message, more: Message) -> Message:
    """One message of two pieces of a reply. A call that both have (first as it began, then complete) is one call."""
    calls = {call.id: call for call in (*before.calls, *more.calls)}
    reasoning = before.reasoning or more.reasoning
    if before.reasoning and more.reasoning:
        text = _SEPARATOR.join(filter(None, (before.reasoning.text, more.reasoning.text)))
        reasoning = msgspec.structs.replace(before.reasoning, text=text)
    return msgspec.structs.replace(
        before,
        content=_joined_content(before.content, more.content),
        calls=tuple(calls.values()),
        reasoning=reasoning,
        interrupted=before.interrupted or more.interrupted,
    )


def _joined_content(before: str | tuple[Part, ...], more: str | tuple[Part, ...]) -> str | tuple[Part, ...]:
    if not before or not more:
        return before or more
    if isinstance(before, str) and isinstance(more, str):
        return f"{before}{_SEPARATOR}{more}"
    return tuple(
        part for content in (before, more) for part in ((Text(content),) if isinstance(content, str) else content)
    )


def _length(group: Group) -> int:
    """Characters of its texts and calls."""
    return sum(len(m.text) + sum(len(c.arguments) for c in m.calls) for m in group.messages)
