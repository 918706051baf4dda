"""Tries a plan on a copy: the change it would make, the view it would leave, the facts it would keep.

Blocking: call it off the event loop. Changes nothing; `run` carries plans out.
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
"""Tokens that the facts may have in a compaction's record."""

GROUPS_AT_ONCE = 50
"""Groups that are searched for facts in one piece of work."""

MAX_LOST_FACTS = 200
"""Lost facts that a record names; the newest ones."""


class DryRun(msgspec.Struct, frozen=True):
    """What a plan would do. `folded` are groups that it touches for the first time, `messages` the number of their messages that
    it takes out of the view or shortens, `shortened` the number of the latter alone; `problem` says why the view would be
    invalid, empty where it is valid."""

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
        """Paths of the files that would be shown as they are on disk now."""
        return next((e.digest.files for e in self.change.edits if e.digest), ())

    @property
    def summary(self) -> str:
        """The text of the summary group without the facts."""
        digest = next((e.digest for e in self.change.edits if e.digest), None)
        return "\n\n".join(p for p in (digest.summary, digest.recap) if p) if digest else ""


async def look_ahead(memory: Memory, ledger: Ledger, groups: Sequence[str]) -> None:
    """Find the facts of these groups, piece by piece: a thread that computes for long makes typing slow."""

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
    """Try a plan with this text for its summary; `head` is the head that requests may begin with afterwards.

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
    folded = _never_summarised(ledger, covered)
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
    """Gauge tokens that each step frees (`scale` of them per raw token). They add up to `freed`: what is left over is counted for
    the summary, whose length was unknown before, or else for the last step."""
    planned = [round(s.tokens_freed * scale) for s in plan.steps]
    unsure = next((i for i, s in enumerate(plan.steps) if s.needs_summary), len(planned) - 1)
    rest = freed - sum(planned) + planned[unsure]
    return [max(0, rest) if i == unsure else gain for i, gain in enumerate(planned)]


def missed(plan: Plan, view: View, after: ContextUsage, scale: float) -> str:
    """By how much a plan misses its target, and what takes the room, biggest first; empty where it is met. `view` is the view
    after it, `scale` are gauge tokens per raw token."""
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


def _never_summarised(ledger: Ledger, groups: list[Group]) -> tuple[Group, ...]:
    """The groups that no summary has covered before, without our own notes."""
    before = {g for e in ledger.live() if e.kind in {"digest", "drop"} for g in e.covers}
    return tuple(g for g in groups if g.id not in before and not all(m.synthetic for m in g.messages))


USUAL_SUMMARY_SHARE = 0.7
"""Share of its room that a summary is expected to take before one of this model was seen."""

LEAST_FILLED, MOST_FILLED = 0.2, 0.95
"""Least and largest share to be expected then: some models write a few lines, whatever they are asked."""

LEARNED_FROM_COMPACTIONS = 3
"""The last compactions by which the share of the next summary is predicted."""


def seen_to_fill(ledger: Ledger, writer: str, usual: float) -> float:
    """The share of its room that the next summary of this model will probably take: the mean of its last ones in the session, or
    else `usual`, which is 0 where none was ever seen."""
    records = (c.record for c in ledger.compactions if c.record)
    shares = [r.filled for r in records if r.filled and r.model == writer][-LEARNED_FROM_COMPACTIONS:]
    return sum(shares) / len(shares) if shares else usual


def expected_summary(step: Step, filled: float) -> int:
    """Tokens that a summary of this step will probably take; `filled` as `seen_to_fill` gives it."""
    return max(1, int(step.summary_tokens * (filled or USUAL_SUMMARY_SHARE)))


def doubt(plan: Plan, filled: float) -> tuple[int, int]:
    """Tokens by which the view may end up smaller and larger than expected, as long as no summary of this model was seen."""
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
    """Try a plan with this summary, or with a stand-in of the expected size. Raises LedgerError for a plan that the ledger does
    not take."""
    folding = next((step for step in plan.steps if step.needs_summary), None)
    text = text or _stand_in(expected_summary(folding, filled) if folding else 0, options.counter.count_text)
    return tried(ledger, plan, "estimate", options, compiled, summary=text, at="", head=head)


def unneeded(plan: Plan, filled: float) -> int:
    """Tokens that a plan reserves for summaries and that these will probably not take."""
    return sum(s.summary_tokens - expected_summary(s, filled) for s in plan.steps if s.needs_summary)


def _stand_in(tokens: int, count: Count) -> str:
    return head("word " * tokens * 2, tokens, count) or "…"
