"""Old tool rounds leave the view whole: the call, what the model said beside it, and every result."""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Edit, Entry, Ledger
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.planning import Basis, PlanOptions, one_step
from ctxchat.core.view import View


def drop_step(name: str, basis: Basis, entries: Sequence[Entry]) -> Step | None:
    """One edit that shows nothing of these entries; those the view does not show anyway are left alone."""
    shown = [e for e in entries if basis.weight(e)]
    if not shown:
        return None
    names = {name for e in shown for name in e.covers}
    covers = tuple(g.id for g in basis.ledger.groups if g.id in names)
    freed = sum(basis.weight(e) for e in shown)
    return Step(name, freed, len(shown), edits=(Edit(kind="drop", covers=covers),))


class DropToolCalls:
    """Rounds before the cut, and results that never had a call."""

    name = "drop_tool_calls"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        rounds = [e for e in basis.old() if e.group and e.group.kind in {"round", "stray"}]
        return one_step(self.name, basis, drop_step(self.name, basis, rounds))
