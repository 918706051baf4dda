"""What every strategy plans with: the live entries with their size in the view, which of them may be changed, and the cut, before
which entries are old enough to be compacted. Calls no model and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from ctxchat.core.carried import carried_text
from ctxchat.core.facts import Memory
from ctxchat.core.ledger import Change, Edit, Entry, Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.options import StrategyOptions
from ctxchat.core.pending import pending
from ctxchat.core.record import Digest
from ctxchat.core.strategies.base import Plan, Spill, Step
from ctxchat.core.summaries import earlier, merged_digest, summary_group
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import Item, View, items_of, reasoning_filter
from ctxchat.core.working_set import CurrentFile, newest, not_in_view, working_set


class PlanOptions(StrategyOptions, frozen=True):
    """The options of a plan, for all strategies. All sizes are in raw tokens.

    `recap_tokens` limits the recap that code writes in place of folded groups. Results up to `result_tokens` and arguments of a
    call up to `argument_tokens` are not worth shortening. Messages over `oversize_tokens` are shortened; 0 means a quarter of the
    limit. `clip_current` allows even the current user message to be shortened (in emergencies). `by_model`: what is folded inside
    a long turn gets a summary by a model, else a recap by code. `files` are the files touched last, newest first, with their
    present text: those that nothing else in view shows are put beside a summary, in at most `files_tokens`. `recall`: the model
    has our recall tool, so it is told of it and its memos and skills are kept. `summary_share` is as in `SummaryTask.share`.
    """

    counter: TokenCounter = msgspec.field(default_factory=TokenCounter)
    memory: Memory = msgspec.field(default_factory=Memory)
    recap_tokens: int = 800
    result_tokens: int = 80
    argument_tokens: int = 300
    oversize_tokens: int = 0
    clip_current: bool = False
    by_model: bool = False
    files: tuple[CurrentFile, ...] = ()
    files_tokens: int = 0
    recall: bool = True
    summary_share: float = 0.0


class Basis:
    """A view and its ledger, prepared for planning: sizes by entry, the summaries in force, and `cut`, the index of the first
    entry that is recent enough to be kept. Changes nothing."""

    def __init__(self, view: View, ledger: Ledger, options: PlanOptions) -> None:
        self.view = view
        self.ledger = ledger
        self.options = options
        self.entries = ledger.live()
        self._items: dict[str, list[Item]] = {}
        for item in view.items:
            if item.group:
                self._items.setdefault(item.group, []).append(item)
        self._sends_reasoning = reasoning_filter(ledger, any(item.message.reasoning for item in view.items))
        self.cut = self._cut()

    @cached_property
    def summaries(self) -> tuple[Entry, ...]:
        """The summaries in force."""
        return earlier(self.ledger)

    @cached_property
    def summaries_weight(self) -> int:
        """Raw tokens that the summaries in force take in the view."""
        return sum(map(self.weight, self.summaries))

    @cached_property
    def written_tokens(self) -> int:
        """Tokens of the written text of the summaries in force, without the evidence."""
        return self.options.counter.count_text(merged_digest(self.summaries).summary)

    @cached_property
    def last_seen(self) -> Entry | None:
        """The round before the one under way, None where no round is. The agent works with its results now and would fetch them
        again."""
        last = [entry for entry in self.entries if entry.group and entry.group.kind != "note"][-2:]
        under_way = len(last) == 2 and all(entry.group and entry.group.kind == "round" for entry in last)
        return last[0] if under_way else None

    def items(self, entry: Entry) -> Sequence[Item]:
        """The items of the view that show an entry."""
        return self._items.get(entry.group.id, ()) if entry.group else ()

    def weight(self, entry: Entry) -> int:
        """Raw tokens that an entry takes in the view."""
        return sum(item.tokens for item in self.items(entry))

    def group_tokens(self, group: Group) -> int:
        """Raw tokens that a group would take in the view."""
        shown = items_of(Entry(covers=(), group=group), self._sends_reasoning, self.options.counter)
        return sum(item.tokens for item in shown)

    def movable(self, entry: Entry) -> bool:
        """True for an entry that a compaction may change: it is shown, not pinned, no system prompt, and no user message of the
        current turn."""
        group = entry.group
        if group is None or entry.pinned or group.kind == "system":
            return False
        return self.ledger.current.isdisjoint(entry.covers)

    def old(self, end: int | None = None) -> list[Entry]:
        """The entries before the cut (or before index `end`) that a compaction may change, without summaries and without the
        answer that ends the current turn: without that, the question it answers would come last, as if it were open."""
        before = self.entries[: self.cut if end is None else end]
        return [e for e in before if self.movable(e) and not is_summary(e) and not self._answers(e)]

    def _answers(self, entry: Entry) -> bool:
        return entry is self.entries[-1] and entry.group is not None and entry.group.kind == "reply"

    def as_it_was(self, entry: Entry, message: Message) -> bool:
        """True where an entry shows this message with the content it has in the record."""
        if not entry.change:
            return True
        original = self.originals(entry).get(message.seq)
        return original is not None and original.content == message.content

    def originals(self, entry: Entry) -> dict[int, Message]:
        """The original messages of an entry, by their number in the record."""
        return {m.seq: m for name in entry.covers for m in self.ledger.group(name).messages}

    def _cut(self) -> int:
        """The index of the first entry that is kept for being recent: `keep_recent` messages, summaries not counted."""
        kept = 0
        for place in range(len(self.entries) - 1, -1, -1):
            if kept >= self.options.keep_recent:
                return place + 1
            if not is_summary(self.entries[place]):
                kept += len(self.items(self.entries[place]))
        return 0


def fold_edit(
    ledger: Ledger,
    fold: Sequence[str],
    digest: Digest,
    evidence_tokens: int,
    options: PlanOptions,
    source: str = "",
    *,
    files_tokens: int = 0,
) -> Edit:
    """The edit that replaces the groups `fold` by one summary group, with the memos and files that nothing else in view shows.
    `source` is the id of the change; `files_tokens` is the room for the files, 0 for that of the options."""
    groups, count = ledger.groups_of(fold), options.counter.count_text
    shown, paths = working_set(
        not_in_view(options.files, ledger, fold), files_tokens or options.files_tokens, count, newest(ledger, fold)
    )
    memos = carried_text(ledger, fold, count, max(2 * options.files_tokens, evidence_tokens)) if options.recall else ""
    evidence_tokens = max(evidence_tokens // 2, evidence_tokens - count(memos))
    asked = pending(ledger, fold, evidence_tokens // 2, count)
    beside, memory, recall = f"{memos}\n{shown}", options.memory, options.recall
    kept = ledger.staying(fold)
    group = summary_group(
        digest, groups, evidence_tokens, count, source, beside, memory=memory, open_now=asked, kept=kept, recall=recall
    )
    more = tuple(Message(seq=0, role="user", content=text) for text in (memos, shown) if text)
    group = msgspec.structs.replace(group, messages=(*group.messages, *more))
    digest = msgspec.structs.replace(digest, files=paths)
    return Edit("digest", ledger.together([fold]), group, digest)


def is_summary(entry: Entry) -> bool:
    """True for an entry that is the summary of folded groups."""
    return entry.group is not None and entry.group.kind == "summary"


def one_step(strategy: str, basis: Basis, step: Step | None) -> Plan | None:
    """A plan of a single step, or none where it frees nothing."""
    if step is None or step.tokens_freed <= 0:
        return None
    raw = basis.view.raw
    return Plan(strategy, (step,), before=raw, after=raw - step.tokens_freed, keep_recent=basis.options.keep_recent)


Shortened = tuple[Entry, Sequence[Message], Sequence[Spill]]
"""An entry, the messages to be shown in place of its own, and the texts to be saved for them."""


def shrink_step(name: str, basis: Basis, shortened: Iterable[Shortened], needed: int) -> Step | None:
    """The step that shows these messages in place of the longer ones, as far as each frees anything, until `needed` tokens are
    free; None where none does. What the last of them frees too much is given back to others, the newest first."""
    made: list[tuple[int, Edit, Sequence[Spill]]] = []
    freed = 0
    for entry, messages, saved in shortened if needed > 0 else ():
        assert entry.group is not None
        group = msgspec.structs.replace(entry.group, messages=tuple(messages))
        gain = basis.weight(entry) - basis.group_tokens(group)
        if gain > 0:
            freed += gain
            made.append((gain, Edit(kind="shrink", covers=entry.covers, replacement=group), saved))
        if freed >= needed:
            break
    for each in made[::-1]:
        if freed - each[0] >= needed:
            freed -= each[0]
            made.remove(each)
    edits, spills = tuple(edit for _, edit, _ in made), tuple(spill for *_, saved in made for spill in saved)
    return Step(name, freed, len(edits), edits=edits, spills=spills) if edits else None


def after_step(view: View, ledger: Ledger, step: Step, counter: TokenCounter) -> tuple[View, Ledger]:
    """The view and the ledger as they would be after a step that needs no summary, for planning the next one.

    The order of the view stays; a new group stands where the first shown group that it covers stood.
    """
    change = Change(id=f"plan:{len(ledger.changes)}", kind="compaction", edits=step.edits)
    after = ledger.apply(change)
    gone = {covered for edit in step.edits for covered in edit.covers}
    shown = {e.group.id: e for e in ledger.live() if e.group and gone.intersection(e.covers)}
    fresh = {name: e for e in after.live() if e.change == change.id for name in e.covers}
    sends_reasoning = reasoning_filter(ledger, any(item.message.reasoning for item in view.items))
    items: list[Item] = []
    done: set[str] = set()
    for item in view.items:
        if item.group not in shown:
            items.append(item)
            continue
        for covered in shown[item.group].covers:
            if covered in fresh and fresh[covered].covers[0] not in done:
                done.add(fresh[covered].covers[0])
                items += items_of(fresh[covered], sends_reasoning, counter)
    raw = sum(item.tokens for item in items) + sum(view.tool_tokens)
    return msgspec.structs.replace(view, items=tuple(items), raw=raw, changes=len(after.changes)), after
