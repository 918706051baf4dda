"""The strategies that come with ctxchat, by name: the short ones are defined here, the longer ones in modules of their own. Those
of other packages come by entry point (`ctxchat.plugins`).

Each plans with a `Basis`: the live entries, and the cut, before which an entry is old enough to be compacted.
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
    """Replaces everything before the cut by one recap (what code writes without a model); an earlier summary is merged into
    it."""

    name = "truncate"
    label = "recap of the older part, by code"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        return one_step(self.name, basis, recap_to_target(self.name, basis, budget))


class Summarize:
    """Replaces everything before the cut, an earlier summary included, by one summary that a model writes."""

    name = "summarize"
    label = "summary of the older part"
    nothing = "nothing old that a summary would make shorter"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        return one_step(self.name, basis, summary_to_target(self.name, basis, budget))


class DropToolCalls:
    """Removes old rounds (a model's tool calls with their results), and results without a call, the oldest first. What the person
    and the model said stays."""

    name = "drop_tool_calls"
    label = "old tool calls, whole"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        rounds = [e for e in basis.old() if e.group and e.group.kind in {"round", "stray"}]
        return one_step(self.name, basis, recap_to_target(self.name, basis, budget, rounds))


class SlidingWindow:
    """Replaces all but the newest `keep_turns` turns by a recap; a summary in force stays as it is."""

    name = "sliding_window"
    label = "all but the last turns"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        first = ledger.turn - max(1, self.options.keep_turns) + 1
        earlier = [e for e in basis.old(len(basis.entries)) if e.group and e.group.turn < first and not is_summary(e)]
        return one_step(self.name, basis, recap_step(self.name, basis, earlier, budget))


class StripReasoning:
    """Removes the reasoning from messages before the cut, the oldest first, where the model is sent reasoning at all."""

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
"""The name of the step in which `TokenBudget` cuts long messages."""


class TokenBudget:
    """Replaces the oldest groups by a recap until the target is met, in whole turns where that frees little more; where it is
    still missed, cuts long messages as well."""

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
"""What each step of a plan does, in words for people, by the step's name: mostly that of the strategy that made it."""

LOSSLESS = ("drop_superseded", "strip_reasoning", "shrink_tool_results", "oversize")
"""The strategies after which the model can still look up every full text, in the order in which the pipeline runs them."""


def builtin_strategies(options: PlanOptions) -> dict[str, Strategy]:
    """All built-in strategies by name, including the pipeline: the lossless ones, then a summary."""
    single: dict[str, Strategy] = {strategy.name: strategy for strategy in (kind(options) for kind in _SINGLE)}
    return single | {"pipeline": Pipeline([single[name] for name in (*LOSSLESS, "summarize")], options.counter)}
