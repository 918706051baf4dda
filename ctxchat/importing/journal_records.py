"""From steps to journal entries: messages numbered and grouped, summaries as compactions, branches as rewinds, counts as usage.

One session at a time and in a stream: what is held of it is what its agent's model still saw, and of the rest its places.
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
from ctxchat.core.recap import MAX_ACTIVITY_TOKENS, recap
from ctxchat.core.record import CompactionRecord, Digest, SideUsage, StepGain
from ctxchat.core.secrets import masked
from ctxchat.core.summaries import summary_group
from ctxchat.core.tokens import rough_count
from ctxchat.importing.steps import About, Back, Begin, Cleared, Compacted, Counted, Damaged, NoPlace, Said, Step

MAX_OPEN_MESSAGES = 400
"""Messages that wait for the results of calls; then the calls are closed without."""

MAX_HELD_CHARS = 64_000_000
"""Characters of messages held at once: more than any window takes. Older ones are held by their place only."""

RECAP_TOKENS = 4_000
"""What stands for messages whose summary nobody but the agent's server can read."""

ALSO = "\n\n"

Attach = Callable[[str, bytes], str]
"""Saves an image under a name like this one; its path in the session's folder."""

Weigh = Callable[[str, Message], Mix]
"""What a message is on the scales of a model, by its name."""


class Totals(msgspec.Struct, omit_defaults=True):
    """What came of a session. Counts of messages as they are in the record; `damaged` in words, `no_place` by kind."""

    messages: int = 0
    compactions: int = 0
    branches: int = 0
    first: str = ""
    last: str = ""
    model: str = ""
    damaged: list[str] = []
    no_place: dict[str, int] = {}


class _Place(msgspec.Struct, gc=False):
    """A group by its places in the record: its kind, turn and messages, the group before it, and how many there are on the way to
    it."""

    kind: str
    turn: int
    seqs: tuple[int, ...]
    before: str
    depth: int


class _Compaction(msgspec.Struct, frozen=True):
    """A compaction in force: its change, the newest group then, what it took out of view and what came back out of the summary
    before it, and that summary."""

    change: str
    tip: str
    taken: tuple[str, ...]
    back: tuple[str, ...]
    summary: Group | None


class Building:
    """A session on its way into the journal. `session` is its id there, `agent` the other agent's name for people, `weigh` counts
    as the gauge does, so that a server's count can carry it."""

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
        self._firsts: dict[str, int] = {}  # the place of each group's first message
        self._of: dict[str, str] = {}  # the group of a key
        self._view: dict[str, Group | None] = {}  # what is in view as it was said; None where only its place is held
        self._held = 0
        self._folded: dict[str, None] = {}
        self._summary: Group | None = None
        self._compactions: list[_Compaction] = []
        self._hidden: dict[str, str] = {}  # groups of branches that were left, and the rewind that left each
        self._rewinds: dict[str, tuple[str, ...]] = {}
        self._tip = ""
        self._changes = 0
        self._counted: dict[str, Counted] = {}
        self._measured: tuple[Measured, str] | None = None
        self._overhead: int | None = None
        self._used = 0

    def add_step(self, step: Step) -> Iterator[Record]:
        """The entries that are complete with this step."""
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
                yield from self._compacted(step)
            case Cleared():
                yield from self._flush()
                yield from self._cleared(step)
            case Back():
                yield from self._flush()
                yield from self._back(step)
            case About():
                self._know(step)
            case Damaged(where=where, why=why):
                self.totals.damaged.append(f"{where}: {why}")
            case NoPlace(what=what):
                self.totals.no_place[what] = self.totals.no_place.get(what, 0) + 1
            case Begin():
                pass

    def last_records(self) -> Iterator[Record]:
        """What is left at the end of the session."""
        yield from self._flush()
        yield from self._write_usage(turn_end=True, last=True)
        if self.about.title:
            yield Named(self.about.title)

    # ── messages ──

    def _add_message(self, said: Said) -> Iterator[Record]:
        message = said.message
        if message.role == "assistant" and (place := self._waiting_reply(said.key)) is not None:
            self._pending[place] = Said(said.key, _merged_message(self._pending[place].message, message))
        else:
            if message.role != "tool" and (not self._open.total() or len(self._pending) > MAX_OPEN_MESSAGES):
                yield from self._flush()
            self._pending.append(said)
        self._open.update(call.id for call in message.calls)
        if message.role == "tool" and self._open[message.call_id]:
            self._open[message.call_id] -= 1

    def _waiting_reply(self, key: str) -> int | None:
        """The place of the reply among those waiting that this is a further piece of."""
        for place in range(len(self._pending) - 1, -1, -1):
            if self._pending[place].key == key and self._pending[place].message.role == "assistant":
                return place
        return None

    def _flush(self) -> Iterator[Record]:
        """All that waits, sealed."""
        pending, self._pending = self._pending, []
        self._open.clear()
        keys: dict[int, str] = {}
        kinds: dict[int, str] = {}
        messages: list[Message] = []
        for said in pending:
            if said.message.empty and not said.message.reasoning and said.message.role != "tool":
                self._nowhere("messages without a word")
                continue
            message = msgspec.structs.replace(said.message, seq=self._seq, content=self._stored(said.message))
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
        began, self._seq = self._turn, messages[0].seq
        for group in sorted(groups, key=lambda g: g.first.seq):
            known = [keys[m.seq] for m in group.messages if m.seq in keys]
            key = keys.get(group.first.seq, "")
            group = self._numbered(group)
            for one in known:
                self._of.setdefault(one, group.id)
            self._turn = max(self._turn, began + group.turn)
            kind = "note" if group.kind == "system" and self._turn else group.kind
            group = msgspec.structs.replace(group, kind=kind, turn=self._turn)
            yield from self._write_usage(turn_end=kind == "user")
            self._keep_group(group)
            yield Sealed((group,), imported=True)
            self._count(group, key)

    def _numbered(self, group: Group) -> Group:
        """The group with its messages numbered as they stand in the record: results that came in another order than their
        calls, or behind what was said meanwhile, were counted as they came."""
        fresh = tuple(msgspec.structs.replace(m, seq=self._seq + place) for place, m in enumerate(group.messages))
        self._seq += len(fresh)
        return msgspec.structs.replace(group, id=f"g{fresh[0].seq}", messages=fresh)

    def _keep_group(self, group: Group) -> None:
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
        said = [m for m in group.messages if not m.synthetic]
        self.totals.messages += len(said)
        times = [m.at for m in said if m.at]
        if times:
            self.totals.first = min(self.totals.first or times[0], *times)
            self.totals.last = max(self.totals.last, *times)

    def _stored(self, message: Message) -> str | tuple[Part, ...]:
        """Its content with images as files of the session's folder."""
        if isinstance(message.content, str):
            return message.content
        return tuple(self._image(part) if isinstance(part, Image) else part for part in message.content)

    def _image(self, image: Image) -> Part:
        if not image.url.startswith("data:"):
            return image
        data = from_data_url(image.url)
        if data is None:
            self._nowhere("images that cannot be read")
            return Text(image.words)
        path = self._attach(image.name or f"image.{kind_of(data)}", data)
        return Image(path, *size_in(data), name=image.name)

    # ── what servers counted ──

    def _count(self, group: Group, key: str) -> None:
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
        """Tokens of the first request beside what was said: the agent's own instructions and tools. -1 where nobody can tell."""
        before = list(takewhile(lambda name: name != group.id, self._in_order()))
        if self._weigh is None or self._changes or any(self._places[name].kind == "summary" for name in before):
            return -1
        return max(0, usage.prompt - self._mix(before).raw)

    def _mix(self, names: Iterable[str]) -> Mix:
        groups, weigh, model = (self._view[name] for name in names), self._weigh, self.totals.model
        return total(weigh(model, m) for g in groups if g for m in g.messages) if weigh else Mix()

    def _write_usage(self, *, turn_end: bool, last: bool = False) -> Iterator[Record]:
        if self._measured is None:
            return
        (measured, group), self._measured = self._measured, None
        anchor = self._anchor(measured, group) if last else None
        yield msgspec.structs.replace(measured, turn_end=turn_end, anchor=anchor)

    def _anchor(self, measured: Measured, name: str) -> Anchor | None:
        """The last count without what stood around the conversation then: what stands around it now is counted anew."""
        counted = self._view.get(name)
        before = list(takewhile(lambda other: other != name, self._in_order()))
        if self._overhead is None or self._overhead < 0 or not counted or not all(map(self._view.get, before)):
            return None
        mix = self._mix(before)
        if self._weigh:
            ahead = (self._summary.first,) if self._summary else ()
            mix = total([mix, *(self._weigh(measured.model, m) for m in (*ahead, counted.first))])
        tokens = max(0, measured.used - self._overhead)
        return Anchor(tokens, mix, len(self._compactions) + len(self._rewinds), measured.model)

    # ── what the agent did to its view ──

    def _compacted(self, step: Compacted) -> Iterator[Record]:
        kept = {self._of[key] for key in step.kept if key in self._of}
        if step.kept_from in self._of:
            start = self._order(self._of[step.kept_from])
            kept.update(name for name in self._view if self._order(name) >= start)
        kept = {name for name in kept if self._places[name].kind != "summary"}  # a newer one stands for it
        kept |= self._current()
        covers = [name for name in (*self._folded, *self._view) if name not in kept]
        covers.sort(key=self._order)
        if not covers:
            if step.summary:  # its originals are in another file
                yield from self._add_message(
                    Said(f"summary-{self._seq}", Message(0, "user", step.summary, at=step.at), "summary")
                )
            return
        yield from self._write_usage(turn_end=step.manual)
        if step.summary:
            digest, room = Digest(summary=step.summary), 0
        else:
            seen = [g for cover in covers if (g := self._view.get(cover))][-MAX_ACTIVITY_TOKENS:]
            seen = [*map(MaskedRecord(masked).group, seen)]
            digest, room = Digest(recap=recap(seen, RECAP_TOKENS // 2, rough_count)), RECAP_TOKENS
        name = f"{self._session}-c{self.totals.compactions + 1}"
        folded = tuple(cover for cover in covers if cover in self._view)
        seen = [self._slim(cover) for cover in dict.fromkeys((covers[0], *folded, covers[-1]))]
        places = chain.from_iterable(self._places[cover].seqs for cover in covers)
        group = summary_group(digest, seen, room, rough_count, name, seqs=places)
        edits = (Edit("digest", tuple(covers), group, digest),)
        folded_messages = sum(len(self._places[cover].seqs) for cover in folded)
        change = self._pass(name, step, edits, folded, folded_messages, group)
        yield Changed(change)
        for cover in folded:
            if held := self._view.pop(cover, None):
                self._held -= _length(held)
        back = tuple(name for name in kept if name in self._folded)
        self._compactions.append(_Compaction(name, self._tip, folded, back, self._summary))
        self._folded = dict.fromkeys(covers)
        self._summary = group
        self.totals.compactions += 1

    def _pass(
        self,
        name: str,
        step: Compacted,
        edits: tuple[Edit, ...],
        folded: tuple[str, ...],
        messages: int,
        summary: Group,
    ) -> Change:
        weight = sum(rough_count(m.text) for cover in folded if (g := self._view.get(cover)) for m in g.messages)
        before = step.before or self._used or weight
        after = step.after or max(0, before - weight) + rough_count(summary.first.text)
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

    def _cleared(self, step: Cleared) -> Iterator[Record]:
        """Results taken out of view as a compaction of its own: the calls stay."""
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
        change = self._pass(
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

    def _back(self, step: Back) -> Iterator[Record]:
        target = self._of.get(step.to, "")
        if step.to and not target:
            return
        leaving, entering = self._ways(target)
        yield from self._write_usage(turn_end=True)
        gone = dict.fromkeys(name for name in leaving if name in self._view)
        for rewind in dict.fromkeys(self._hidden[name] for name in entering if name in self._hidden):
            yield Undone(rewind, step.at)  # to a branch that was left before
            for name in self._rewinds.pop(rewind):
                del self._hidden[name]
                self._view[name] = None
                gone[name] = None
        while self._compactions and self._compactions[-1].tip in leaving:
            undone = self._compactions.pop()
            yield Undone(undone.change, step.at)
            self._summary = undone.summary
            for name in undone.taken:
                del self._folded[name]
                self._view[name] = None
                if name in leaving:
                    gone[name] = None
            self._folded.update(dict.fromkeys(undone.back))
        self._tip = target
        gone = sorted((name for name in gone if name not in entering), key=self._order)
        if not gone:
            return
        self._changes += 1
        self.totals.branches += 1
        rewind = Change(f"rewind-{self._changes}", "rewind", step.at, (Edit("drop", tuple(gone)),))
        yield Changed(rewind)
        self._rewinds[rewind.id] = tuple(gone)
        self._hidden.update(dict.fromkeys(gone, rewind.id))
        for name in gone:
            if held := self._view.pop(name, None):
                self._held -= _length(held)

    def _ways(self, target: str) -> tuple[dict[str, None], dict[str, None]]:
        """The groups from the newest one back to where the way to another parts from it, and those on that way from there."""
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

    def _current(self) -> set[str]:
        """The user messages of the current turn: they stay in view, as in any compaction."""
        asked = [name for name in self._view if self._places[name].kind == "user"]
        newest = max(asked, key=self._order, default="")
        return {name for name in asked if self._places[name].turn == self._places[newest].turn}

    def _order(self, name: str) -> int:
        return self._firsts[name]

    def _in_order(self) -> list[str]:
        """What is in view, as it was said: what came back into view came behind the rest."""
        return sorted(self._view, key=self._order)

    def _slim(self, name: str) -> Group:
        held, place = self._view.get(name), self._places[name]
        if held and held.kind == "user":
            return held
        return Group(name, "note", tuple(Message(seq, "user") for seq in place.seqs), place.turn)

    # ── about the session ──

    def _know(self, about: About) -> None:
        known = self.about
        newer = about.title.strip() and about.rank >= known.rank
        self.about = About(
            title=" ".join(about.title.split()) if newer else known.title,
            rank=about.rank if newer else known.rank,
            folder=known.folder or about.folder,
            parent=about.parent or known.parent,
        )

    def _nowhere(self, what: str) -> None:
        self.totals.no_place[what] = self.totals.no_place.get(what, 0) + 1


def _merged_message(before: Message, more: Message) -> Message:
    """Two pieces of one reply. A call told twice (as it began, and whole) is one."""
    calls = {call.id: call for call in (*before.calls, *more.calls)}
    reasoning = before.reasoning or more.reasoning
    if before.reasoning and more.reasoning:
        text = ALSO.join(filter(None, (before.reasoning.text, more.reasoning.text)))
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
        return f"{before}{ALSO}{more}"
    return tuple(
        part for content in (before, more) for part in ((Text(content),) if isinstance(content, str) else content)
    )


def _length(group: Group) -> int:
    return sum(len(m.text) + sum(len(c.arguments) for c in m.calls) for m in group.messages)
