"""What the model thought in earlier turns leaves the view. The current turn's stays: providers want it back with its calls."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.grouping import without_reasoning
from ctxchat.core.ledger import Edit, Ledger
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.planning import Basis, PlanOptions, one_step
from ctxchat.core.view import View


class StripReasoning:
    """Reasoning before the cut, where the view shows it at all."""

    name = "strip_reasoning"
    label = "old reasoning"

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
            gain = basis.weight(entry) - basis.weigh(bare)
            if gain > 0:
                freed += gain
                edits.append(Edit(kind="shrink", covers=entry.covers, replacement=bare))
        step = Step(self.name, freed, len(edits), edits=tuple(edits)) if edits else None
        return one_step(self.name, basis, step)
