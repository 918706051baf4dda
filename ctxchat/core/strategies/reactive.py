"""Room inside a long turn: the oldest groups, tool rounds of the current turn included, become a summary, or a recap by code.

The user's message and the newest rounds stay as they are.
"""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.folding import recap_step, summary_step
from ctxchat.core.strategies.planning import Basis, PlanOptions, is_summary, one_step
from ctxchat.core.view import View


class ReactiveMicro:
    """The oldest `micro_batch_groups`, and as many more batches as it takes to come halfway down from trigger to target."""

    name = "reactive_micro"
    label = "oldest rounds of a long turn"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        goal = budget.halfway
        if view.raw <= goal:
            return None
        basis = Basis(view, ledger, self.options)
        entries = foldable(basis)
        size = max(1, self.options.micro_batch_groups)
        best: Step | None = None
        end, needed = 0, view.raw - goal
        while end < len(entries):
            end = self._batch_end(basis, entries, end + size, needed)
            step = _fold(self.name, basis, entries[:end], budget)
            best = step or best
            short = view.raw - goal - (step.tokens_freed if step else 0)
            if short <= 0:
                break
            needed += short  # what stands for them takes
        return one_step(self.name, basis, best)

    def _batch_end(self, basis: Basis, entries: list[Entry], least: int, needed: int) -> int:
        """The first end of a batch, from `least` on, where the entries before it weigh what is needed."""
        size = max(1, self.options.micro_batch_groups)
        weight = sum(basis.weight(e) for e in entries[:least])
        end = min(least, len(entries))
        while weight < needed and end < len(entries):
            weight += sum(basis.weight(e) for e in entries[end : end + size])
            end = min(end + size, len(entries))
        return end


class ReactiveFull:
    """All of the foldable prefix."""

    name = "reactive_full"
    label = "all but the newest rounds of a long turn"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        return one_step(self.name, basis, _fold(self.name, basis, foldable(basis), budget))


def _fold(name: str, basis: Basis, entries: list[Entry], budget: Budget) -> Step | None:
    return (summary_step if basis.options.by_model else recap_step)(name, basis, entries, budget)


def foldable(basis: Basis) -> list[Entry]:
    """What may be folded in the middle of a turn: everything before its newest rounds, earlier turns included."""
    turn, keep = basis.ledger.turn, basis.options.preserve_recent_rounds
    ours = [i for i, e in enumerate(basis.entries) if e.group and e.group.turn == turn and not is_summary(e)]
    rounds = [i for i in ours if (group := basis.entries[i].group) and group.kind == "round"]
    if keep <= 0:
        return basis.old(len(basis.entries))
    if keep <= len(rounds):
        return basis.old(rounds[-keep])
    return basis.old(ours[0] if ours else len(basis.entries))
