"""Shortens single very long messages to their head and tail, with a pointer to the full text on disk between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from ctxchat.core.budget import Budget
from ctxchat.core.clip import clip
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import Message, Text
from ctxchat.core.strategies.arguments import short_calls
from ctxchat.core.strategies.base import Plan, Spill, Step, Strategy
from ctxchat.core.strategies.planning import (
    Basis,
    PlanOptions,
    Shortened,
    after_step,
    is_summary,
    one_step,
    shrink_step,
)
from ctxchat.core.strategies.results import MAX_RECENT_SHARE, spill_of
from ctxchat.core.tokens import MESSAGE_OVERHEAD_TOKENS, TokenCounter
from ctxchat.core.view import View

KEPT = "shrink_kept"
"""The name of the step that shortens results among the messages that a plan keeps: those over the bound for a single result, and
others where the target is missed otherwise."""

KEPT_LABEL = "long results among the newest messages to head and tail, text kept on disk"

CAPS = (8, 16, 32, 64)
"""Divisors of the limit that give the cap for a result among the messages kept; tried in turn until the target is met."""

MIN_RESULT_TOKENS = 500
"""No cap is lower than this many tokens."""

MIN_CLIP_TOKENS = 64
"""The fewest tokens to shorten a message to; with fewer, only the pointer would be left."""


class Oversize:
    """The strategy that shortens every message over the cap; the current user message only where the options allow it, pinned
    messages never."""

    name = "oversize"
    label = "very long messages to head and tail, text kept on disk"
    nothing = "no message is so long that it should be cut"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        cap = max(MIN_CLIP_TOKENS, self.options.oversize_tokens or budget.limit // 4)
        return one_step(self.name, basis, clip_step(self.name, basis, basis.entries, cap, view.raw - budget.target))


def clip_step(name: str, basis: Basis, entries: Iterable[Entry], cap: int, needed: int) -> Step | None:
    """A step that shortens messages over `cap` tokens among these entries until `needed` tokens are free."""
    return shrink_step(name, basis, _clipped(basis, entries, cap), needed)


def bound_kept(basis: Basis, strategy: Strategy, planned: Plan, budget: Budget) -> Plan:
    """The plan of `strategy`, preceded by a step that shortens results over `MAX_RECENT_SHARE` of the limit among the messages it
    keeps. The rest is planned anew, since what that step frees need not be folded."""
    raw, cap, touched = basis.view.raw, int(budget.limit * MAX_RECENT_SHARE), frozenset(planned.covers)
    plan, stays = planned, True
    while stays and (step := clip_step(KEPT, basis, _kept(basis, touched), cap, raw)) is not None:
        view, ledger = after_step(basis.view, basis.ledger, step, basis.options.counter)
        again = strategy.plan(view, ledger, budget) or msgspec.structs.replace(planned, steps=(), after=view.raw)
        plan = msgspec.structs.replace(again, steps=(step, *again.steps), before=raw, target=budget.target)
        stays = not touched.issubset(again.covers)  # the new plan keeps more messages; these may be too long as well
        touched &= frozenset(again.covers)
    return plan


def clip_kept(basis: Basis, strategy: Strategy, planned: Plan | None, budget: Budget) -> Plan | None:
    """The plan of `strategy`, preceded, where it misses the target, by a step that shortens tool results and notes among the
    messages it keeps, with ever smaller caps until the target is met.

    The rest is planned anew on the result, since the room for a summary depends on it, and messages that are no longer folded may
    be shortened in turn; not where the new plan would miss the target by more. The person's messages stay whole, and so does the
    round under way, which the model has not seen yet."""
    raw, best = basis.view.raw, planned
    rest = planned or Plan("oversize", (), raw, raw, basis.options.keep_recent)
    while (step := _kept_step(basis, _removed_groups(rest), budget, rest.after - budget.target)) is not None:
        view, ledger = after_step(basis.view, basis.ledger, step, basis.options.counter)
        again = strategy.plan(view, ledger, budget) or msgspec.structs.replace(rest, steps=(), after=view.raw)
        after = rest.after - step.tokens_freed
        both = any(name in rest.covers for edit in step.edits for name in edit.covers)  # `rest` covers groups cut now
        if both or again.after <= max(budget.target, after):
            rest = msgspec.structs.replace(again, before=raw, after=again.after + step.tokens_freed)
            after = again.after
        if best is not None and after >= best.after:
            break
        steps = (step, *rest.steps)
        best = msgspec.structs.replace(rest, steps=steps, before=raw, after=after, target=budget.target)
    return best


def _removed_groups(plan: Plan) -> frozenset[str]:
    """The groups that a plan removes from the view. Those that it only shortens are not among them, since they can be shortened
    further."""
    gone = (c for step in plan.steps for edit in step.edits if edit.kind != "shrink" for c in edit.covers)
    return frozenset(gone).union(*(step.fold for step in plan.steps))


def _kept_step(basis: Basis, covers: Collection[str], budget: Budget, needed: int) -> Step | None:
    """The step that shortens results outside `covers`, with the largest cap that frees the `needed` tokens, else with the
    smallest. The results that the agent has seen last are shortened only where the view would stay above the trigger
    otherwise."""
    entries = _kept(basis, covers)
    older = [entry for entry in entries if entry is not basis.last_seen]
    step = _gentlest(basis, older, budget, needed)
    enough = min(needed, needed + budget.target - budget.trigger)
    if len(older) == len(entries) or (step.tokens_freed if step else 0) > max(0, enough):
        return step
    return _gentlest(basis, entries, budget, needed)


def _gentlest(basis: Basis, entries: Sequence[Entry], budget: Budget, needed: int) -> Step | None:
    """The step with the largest of the `CAPS` that frees `needed` tokens, else with the smallest cap that frees any; None where
    none does."""
    step: Step | None = None
    for cap in (cap for part in CAPS if (cap := budget.limit // part) >= MIN_RESULT_TOKENS):
        step = clip_step(KEPT, basis, entries, cap, needed) or step
        if step and step.tokens_freed >= needed:
            break
    return step


def _kept(basis: Basis, covers: Collection[str]) -> list[Entry]:
    """Rounds and notes outside `covers`, except the round under way, which the model has not seen yet."""
    return [
        entry
        for place, entry in enumerate(basis.entries, 1)
        if entry.group is not None
        and not any(name in covers for name in entry.covers)
        and entry.group.kind in {"round", "stray", "note"}
        and not (place == len(basis.entries) and entry.group.kind == "round")
    ]


def _clipped(basis: Basis, entries: Iterable[Entry], cap: int) -> Iterator[Shortened]:
    """The entries that hold a message over `cap` tokens, with such messages shortened and the texts to save for them."""
    for entry in entries:
        if not _clippable(basis, entry) or all(item.tokens <= cap for item in basis.items(entry)):
            continue
        assert entry.group is not None
        messages = list(entry.group.messages)
        originals = basis.originals(entry)
        saved: list[Spill] = []
        for place, message in enumerate(messages):
            fresh, texts = clip_message(message, originals.get(message.seq, message), cap, basis.options.counter)
            if fresh is not None:
                messages[place] = fresh
                saved += texts
        yield entry, messages, saved


def _clippable(basis: Basis, entry: Entry) -> bool:
    """True for an entry whose messages may be shortened: summaries never, the current user message only where the options say
    so."""
    if is_summary(entry) or entry.group is None:
        return False
    current = not basis.ledger.current.isdisjoint(entry.covers) and not entry.pinned
    return basis.movable(entry) or (current and basis.options.clip_current)


def clip_message(
    message: Message, original: Message, cap: int, counter: TokenCounter
) -> tuple[Message | None, tuple[Spill, ...]]:
    """The message shortened to at most `cap` tokens (its reasoning not counted), and the texts to save before it is replaced;
    None where that frees nothing. Images and other parts become placeholders, arguments of calls keep their structure."""
    before = counter.message(message)
    if before <= cap:
        return None, ()
    saved: tuple[Spill, ...] = ()
    if message.calls:
        message, saved = short_calls(message, original, max(MIN_CLIP_TOKENS, cap // (2 * len(message.calls))), counter)
    if counter.message(message) > cap and original.text:
        message, texts = _clip_text(message, original, cap, counter)
        saved = (*texts, *saved)
    return (message, saved) if counter.message(message) < before else (None, ())


def _clip_text(
    message: Message, original: Message, cap: int, counter: TokenCounter
) -> tuple[Message, tuple[Spill, ...]]:
    """The message with only head and tail of its text, and the texts to save; unchanged where that is no shorter."""
    whole = msgspec.structs.replace(original, reasoning=message.reasoning)
    pointer, spills = spill_of(whole, counter.message(whole))
    rest = counter.message(msgspec.structs.replace(message, content=""))
    room = max(MIN_CLIP_TOKENS // 2, cap - max(rest, MESSAGE_OVERHEAD_TOKENS))
    text = clip(original.text, room, counter.count_text, f"\n[… {{lines}}{{tokens}} tokens left out; {pointer}]\n")
    if isinstance(original.content, tuple) and not any(isinstance(p, Text) for p in original.content):
        text, spills = f"{text}\n[left out to make room; {message.id} in the record]", ()
    fresh = msgspec.structs.replace(message, content=text)
    return (fresh, spills) if counter.message(fresh) < counter.message(message) else (message, ())
