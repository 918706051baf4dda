"""Oldest out until it fits: groups give way to a recap one after another, and what is too large for that is clipped."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.folding import recap_to_target
from ctxchat.core.strategies.oversize import MIN_CLIP_TOKENS, clip_step
from ctxchat.core.strategies.planning import Basis, PlanOptions, after_step
from ctxchat.core.view import View


class TokenBudget:
    """Folds whole groups, and whole turns where that is near, until the target is met. Then clips, if it still is not."""

    name = "token_budget"
    label = "oldest messages until it fits"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        if view.raw <= budget.target:
            return None
        cap = max(MIN_CLIP_TOKENS, budget.target // 2)
        steps: list[Step] = []
        now, state = view, ledger
        for make in (_fold, _clip):
            step = make(self.name, Basis(now, state, self.options), budget, cap)
            if step is not None:
                steps.append(step)
                now, state = after_step(now, state, step, self.options.counter)
            if now.raw <= budget.target:
                break
        if now.raw >= view.raw:
            return None
        return Plan(self.name, tuple(steps), before=view.raw, after=now.raw, keep_recent=self.options.keep_recent)


def _fold(name: str, basis: Basis, budget: Budget, cap: int) -> Step | None:
    return recap_to_target(name, basis, budget)


def _clip(name: str, basis: Basis, budget: Budget, cap: int) -> Step | None:
    return clip_step(f"{name}: clip", basis, basis.entries, cap, basis.view.raw - budget.target)
