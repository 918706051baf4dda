"""Fold old turns into a recap of goal and recent activity, with the evidence: no model, no wait."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.folding import recap_to_target
from ctxchat.core.strategies.planning import Basis, PlanOptions, one_step
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
