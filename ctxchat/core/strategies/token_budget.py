"""Oldest out until it fits: groups leave the view one after another, and what is too large for that is clipped."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.drops import drop_step
from ctxchat.core.strategies.oversize import LEAST, clip_step
from ctxchat.core.strategies.planning import Basis, PlanOptions, after_step
from ctxchat.core.view import View


class TokenBudget:
    """Drops whole groups, and whole turns where the cut allows, until the target is met. Then clips, if it still is not."""

    name = "token_budget"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        if view.raw <= budget.target:
            return None
        cap = max(LEAST, budget.target // 2)
        steps: list[Step] = []
        now, state = view, ledger
        for make in (_drop, _clip):
            step = make(self.name, Basis(now, state, self.options), budget, cap)
            if step is not None:
                steps.append(step)
                now, state = after_step(now, state, step, self.options.meter)
            if now.raw <= budget.target:
                break
        if now.raw >= view.raw:
            return None
        return Plan(self.name, tuple(steps), before=view.raw, after=now.raw, keep_recent=self.options.keep_recent)


def _drop(name: str, basis: Basis, budget: Budget, cap: int) -> Step | None:
    old = [e for e in basis.old() if basis.weight(e)]
    left = basis.view.raw
    gone: list[Entry] = []
    for place, entry in enumerate(old):
        if left <= budget.target and _starts_turn(old, place):
            break
        if _whole(basis, entry) > budget.target:
            continue  # clipped instead, or clipped before: a group that large does not vanish
        gone.append(entry)
        left -= basis.weight(entry)
    return drop_step(name, basis, gone)


def _whole(basis: Basis, entry: Entry) -> int:
    """What an entry's groups would take as they were."""
    return max(basis.weight(entry), *(basis.weigh(basis.ledger.group(name)) for name in entry.covers))


def _starts_turn(old: list[Entry], place: int) -> bool:
    """True when a cut before this entry parts no turn, or when nothing of its turn was taken."""
    group, before = old[place].group, old[place - 1].group if place else None
    return group is None or before is None or group.turn != before.turn


def _clip(name: str, basis: Basis, budget: Budget, cap: int) -> Step | None:
    return clip_step(f"{name}: clip", basis, basis.entries, cap)
