"""Fold old turns into a summary that a model (or an extractive summariser) writes; this names what it shall stand for."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.folding import summary_to_target
from ctxchat.core.strategies.planning import Basis, PlanOptions, one_step
from ctxchat.core.view import View


class Summarize:
    """Everything before the cut, the summary in force included, becomes one fold step."""

    name = "summarize"
    label = "summary of the older part"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        return one_step(self.name, basis, summary_to_target(self.name, basis, budget))
