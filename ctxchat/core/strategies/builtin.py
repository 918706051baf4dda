"""The strategies that come with ctxchat, by name: the short ones whole, the longer ones from modules of their own. Third parties
add theirs by entry point, elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctxchat.core.budget import Budget
from ctxchat.core.grouping import without_reasoning
from ctxchat.core.ledger import Edit, Ledger
from ctxchat.core.strategies.base import DEFERRED, Plan, Step, Strategy
from ctxchat.core.strategies.drop_superseded import DropSuperseded
from ctxchat.core.strategies.folding import recap_step, recap_to_target, summary_to_target
from ctxchat.core.strategies.oversize import KEPT, KEPT_LABEL, MIN_CLIP_TOKENS, Oversize, clip_step
from ctxchat.core.strategies.pipeline import Pipeline
from ctxchat.core.strategies.planning import Basis, PlanOptions, after_step, is_summary, one_step
from ctxchat.core.strategies.reactive import ReactiveFull, ReactiveMicro
from ctxchat.core.strategies.shrink_tool_results import ShrinkToolResults
from ctxchat.core.view import View


class Truncate:
    """Everything before the cut becomes one recap; an earlier summary is carried inside it."""

    name = "truncate"
    label = "recap of the older part, by code"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        return one_step(self.name, basis, recap_to_target(self.name, basis, budget))


class Summarize:
    """Everything before the cut, the summary in force included, becomes one fold step."""

    name = "summarize"
    label = "summary of the older part"
    nothing = "nothing old that a summary would be shorter than"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        return one_step(self.name, basis, summary_to_target(self.name, basis, budget))


class DropToolCalls:
    """Rounds before the cut, and results that never had a call, the oldest first. What the person and the model said stays."""

    name = "drop_tool_calls"
    label = "old tool calls, whole"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        rounds = [e for e in basis.old() if e.group and e.group.kind in {"round", "stray"}]
        return one_step(self.name, basis, recap_to_target(self.name, basis, budget, rounds))


class SlidingWindow:
    """The newest `keep_turns` turns stay whole, and so does a summary that is in force."""

    name = "sliding_window"
    label = "all but the last turns"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        first = ledger.turn - max(1, self.options.keep_turns) + 1
        gone = [e for e in basis.old(len(basis.entries)) if e.group and e.group.turn < first and not is_summary(e)]
        return one_step(self.name, basis, recap_step(self.name, basis, gone, budget))


class StripReasoning:
    """Reasoning before the cut, where the view shows it at all."""

    name = "strip_reasoning"
    label = "old reasoning"
    nothing = "no old reasoning"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        edits: list[Edit] = []
        freed = 0
        for entry in basis.old():
            if freed >= view.raw - budget.target:
                break
            group = entry.group
            if group is None or group.turn >= ledger.turn or not any(i.message.reasoning for i in basis.items(entry)):
                continue
            bare = without_reasoning(group)
            gain = basis.weight(entry) - basis.group_tokens(bare)
            if gain > 0:
                freed += gain
                edits.append(Edit(kind="shrink", covers=entry.covers, replacement=bare))
        step = Step(self.name, freed, len(edits), edits=tuple(edits)) if edits else None
        return one_step(self.name, basis, step)


CLIP = "token_budget: clip"
"""The step of `TokenBudget` that cuts messages."""


class TokenBudget:
    """Replaces the oldest groups by a recap until the target is met, whole turns where that is near; cuts long messages if it
    still is not."""

    name = "token_budget"
    label = "oldest messages until it fits"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        if view.raw <= budget.target:
            return None
        now, state, counter = view, ledger, self.options.counter
        if recap := recap_to_target(self.name, Basis(now, state, self.options), budget):
            now, state = after_step(now, state, recap, counter)
        clip: Step | None = None
        if now.raw > budget.target:
            basis, cap = Basis(now, state, self.options), max(MIN_CLIP_TOKENS, budget.target // 2)
            if clip := clip_step(CLIP, basis, basis.entries, cap, now.raw - budget.target):
                now, state = after_step(now, state, clip, counter)
        if now.raw >= view.raw:
            return None
        steps = tuple(step for step in (recap, clip) if step)
        return Plan(self.name, steps, before=view.raw, after=now.raw, keep_recent=self.options.keep_recent)


_SINGLE = (
    DropSuperseded,
    StripReasoning,
    ShrinkToolResults,
    Oversize,
    Summarize,
    Truncate,
    SlidingWindow,
    DropToolCalls,
    TokenBudget,
    ReactiveMicro,
    ReactiveFull,
)

LABELS: Mapping[str, str] = {strategy.name: strategy.label for strategy in _SINGLE} | {
    KEPT: KEPT_LABEL,
    DEFERRED: "what you put off until now",
    CLIP: "long messages cut to head and tail",
}
"""What each does, for people; a step of a plan has the name of its strategy."""

LOSSLESS = ("drop_superseded", "strip_reasoning", "shrink_tool_results", "oversize")
"""Steps whose full text stays a pointer away, in the order the pipeline takes them."""


def builtin_strategies(options: PlanOptions) -> dict[str, Strategy]:
    """Every built-in strategy by its name, the pipeline included (lossless steps, then a summary)."""
    found: dict[str, Strategy] = {strategy.name: strategy for strategy in (made(options) for made in _SINGLE)}
    return found | {"pipeline": Pipeline([found[name] for name in (*LOSSLESS, "summarize")], options.counter)}
