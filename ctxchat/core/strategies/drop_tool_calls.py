"""Old tool rounds leave the view whole: the call, what the model said beside it, and every result. A recap tells of them."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.folding import recap_to_target
from ctxchat.core.strategies.planning import Basis, PlanOptions, one_step
from ctxchat.core.view import View


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
