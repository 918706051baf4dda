"""A plan tried out on the side: the change it would make, the view that would be left, the facts that would be kept.

Blocking, to be run off the event loop. Changes nothing; `run` puts it in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from ctxchat.core.applying import apply_plan
from ctxchat.core.clip import head
from ctxchat.core.context_usage import ContextUsage, overhead
from ctxchat.core.facts import Memory, collect, kept_facts, line_of, render
from ctxchat.core.head import Head
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group
from ctxchat.core.quantities import short
from ctxchat.core.record import FactCount
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.folding import tolerance
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import Count
from ctxchat.core.view import View, problems

EVIDENCE_TOKENS = 20_000
"""The most a record holds of facts as text."""

GROUPS_AT_ONCE = 50
"""Groups that are looked through for facts in one go."""

MAX_LOST_FACTS = 200
"""Lost facts a record names, the newest."""


class DryRun(msgspec.Struct, frozen=True):
    """What a plan would come to. `folded` are groups that it touches for the first time, `messages` those of theirs that it takes
    out of the view or makes shorter, `shortened` the latter alone; `problem` says in words why the view would be invalid, empty
    where it is not."""

    change: Change
    view: View
    changes: int
    problem: str
    folded: tuple[Group, ...]
    messages: int
    shortened: int
    facts: FactCount
    evidence: str
    lost: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that would be shown as they are now."""
        return next((e.digest.files for e in self.change.edits if e.digest), ())

    @property
    def summary(self) -> str:
        """What the summary group says apart from the facts."""
        digest = next((e.digest for e in self.change.edits if e.digest), None)
        return "\n\n".join(p for p in (digest.summary, digest.recap) if p) if digest else ""


async def look_ahead(memory: Memory, ledger: Ledger, groups: Sequence[str]) -> None:
    """Find the facts of these groups, a little at a time: a thread that is busy for long is felt by whoever types."""

    def find(some: Sequence[str]) -> None:
        for name in some:
            memory.find_facts(ledger.group(name))

    for start in range(0, len(groups), GROUPS_AT_ONCE):
        await asyncio.to_thread(find, groups[start : start + GROUPS_AT_ONCE])
        await asyncio.sleep(0)


def tried(
    ledger: Ledger,
    plan: Plan,
    change_id: str,
    options: PlanOptions,
    compiled: Callable[[Ledger], View],
    *,
    summary: str,
    at: str,
    head: Head | None = None,
) -> DryRun:
    """The trial of a plan with this text for its summary, and with the head that requests may begin with then.

    Raises LedgerError for a plan the ledger does not take.
    """
    change = apply_plan(ledger, plan, change_id, options, summary=summary, at=at, head=head)
    after = ledger.apply(change)
    view = compiled(after)
    covered = [ledger.group(g) for edit in change.edits for g in edit.covers]
    staying = ledger.staying(g.id for g in covered)
    evidence = collect(covered, None, options.memory, per_kind=None, staying=staying)
    facts, lost = kept_facts(evidence, view, change, ledger, options.memory)
    digest = next((e.digest for e in change.edits if e.digest), None)
    folded = _fresh(ledger, covered)
    messages, shortened = ledger.touches(change.edits, {g.id for g in folded})
    return DryRun(
        change=change,
        view=view,
        changes=len(after.compactions),
        problem=next(iter(problems(view)), ""),
        folded=folded,
        messages=messages,
        shortened=shortened,
        facts=facts,
        evidence=render(digest.evidence if digest else evidence, EVIDENCE_TOKENS, options.counter.count_text),
        lost=tuple(line_of(fact) for fact in lost[-MAX_LOST_FACTS:]),
    )


def gains(plan: Plan, scale: float, freed: int) -> list[int]:
    """Tokens that each step frees as the gauge counts (`scale` to a raw token). They add up to `freed`: the rest is the
    summary's, whose length nobody knew before, or else the last step's."""
    found = [round(s.tokens_freed * scale) for s in plan.steps]
    unsure = next((i for i, s in enumerate(plan.steps) if s.needs_summary), len(found) - 1)
    rest = freed - sum(found) + found[unsure]
    return [max(0, rest) if i == unsure else gain for i, gain in enumerate(found)]


def missed(plan: Plan, view: View, after: ContextUsage, scale: float) -> str:
    """By how much a plan misses its target, and what stands in the way, biggest first; empty where it is met. `view` is the one
    after it, `scale` gauge tokens for a raw one."""
    target, used = round(plan.target * scale), after.used - after.tokens("draft")
    if not plan.target or used - target <= tolerance(after.limit, target):
        return ""
    kept = {"user", "assistant", "tool_results", "pinned"}
    largest = max((item for item in view.items if item.section in kept), key=lambda item: item.tokens, default=None)
    alone = f" ({largest.message.id} alone {short(round(largest.tokens * scale))})" if largest else ""
    parts = sorted(
        [
            (sum(map(after.tokens, kept)), f"in the messages that stay{alone}"),
            (after.tokens("summary"), "in the summary with the facts"),
            (overhead(after), "around the conversation"),
        ],
        reverse=True,
    )
    held = ", ".join(f"{short(tokens)} {where}" for tokens, where in parts if tokens)
    return f"That is {short(used - target)} above the target of {short(target)}: {held}."


def _fresh(ledger: Ledger, groups: list[Group]) -> tuple[Group, ...]:
    """Those that no summary stood for before; what we noted ourselves is none of them."""
    before = {g for e in ledger.live() if e.kind in {"digest", "drop"} for g in e.covers}
    return tuple(g for g in groups if g.id not in before and not all(m.synthetic for m in g.messages))


USUAL_SUMMARY_SHARE = 0.7
"""What a model's summary takes of what it may where none of it was seen yet: it is asked to use its room."""

LEAST_FILLED, MOST_FILLED = 0.2, 0.95
"""What it may take then: some write a few lines, whatever they are asked."""

LEARNED_FROM_COMPACTIONS = 3
"""Compactions by which it is told how much of what they may take the next summaries will."""


def seen_to_fill(ledger: Ledger, writer: str, usual: float) -> float:
    """The share of its room that the next summary of this model will probably take: as its last ones of the session, or else as
    is `usual` for it; 0 where none was seen."""
    records = (c.record for c in ledger.compactions if c.record)
    shares = [r.filled for r in records if r.filled and r.model == writer][-LEARNED_FROM_COMPACTIONS:]
    return sum(shares) / len(shares) if shares else usual


def expected_summary(step: Step, filled: float) -> int:
    """Tokens that a summary for this step will probably take, where such ones were `filled` so far (0: none was seen)."""
    return max(1, int(step.summary_tokens * (filled or USUAL_SUMMARY_SHARE)))


def doubt(plan: Plan, filled: float) -> tuple[int, int]:
    """Tokens by which less and more than expected may be left, where nobody has seen how long such a summary is."""
    room = 0 if filled else sum(s.summary_tokens for s in plan.steps if s.needs_summary)
    return int(room * (USUAL_SUMMARY_SHARE - LEAST_FILLED)), int(room * (MOST_FILLED - USUAL_SUMMARY_SHARE))


def estimated(
    ledger: Ledger,
    plan: Plan,
    options: PlanOptions,
    compiled: Callable[[Ledger], View],
    text: str = "",
    filled: float = 0.0,
    head: Head | None = None,
) -> DryRun:
    """The trial of a plan with this summary, or one of the size to be expected where nobody has written it yet. Raises
    LedgerError for a plan that the ledger does not take."""
    folding = next((step for step in plan.steps if step.needs_summary), None)
    text = text or _stand_in(expected_summary(folding, filled) if folding else 0, options.counter.count_text)
    return tried(ledger, plan, "estimate", options, compiled, summary=text, at="", head=head)


def unneeded(plan: Plan, filled: float) -> int:
    """Tokens that a plan sets aside for summaries and that they will probably not take."""
    return sum(s.summary_tokens - expected_summary(s, filled) for s in plan.steps if s.needs_summary)


def _stand_in(tokens: int, count: Count) -> str:
    return head("word " * tokens * 2, tokens, count) or "…"
