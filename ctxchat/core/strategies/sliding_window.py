"""Show the last turns only; of what came before a recap by code and the facts stay, with the ids to recall it by."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.folding import recap_step
from ctxchat.core.strategies.planning import Basis, PlanOptions, is_summary, one_step
from ctxchat.core.view import View


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
