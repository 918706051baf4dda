"""Makes room inside a long turn: the oldest groups, tool rounds of the current turn included, are folded into a summary by the
model or a recap by code. The user's message and the newest rounds stay as they are.
"""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.folding import recap_step, summary_step
from ctxchat.core.strategies.planning import Basis, PlanOptions, is_summary, one_step
from ctxchat.core.view import View


class ReactiveMicro:
    """Folds the oldest `micro_batch_groups` groups, and more batches until the view is halfway from trigger to target."""

    name = "reactive_micro"
    label = "oldest rounds of a long turn"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options
        self._batch_size = max(1, options.micro_batch_groups)

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        goal = budget.halfway
        if view.raw <= goal:
            return None
        basis = Basis(view, ledger, self.options)
        entries = foldable(basis)
        best: Step | None = None
        end, needed = 0, view.raw - goal  # entries to fold; tokens they must weigh
        while end < len(entries):
            end = self._batch_end(basis, entries, end + self._batch_size, needed)
            step = _fold_step(self.name, basis, entries[:end], budget)
            best = step or best
            missing = view.raw - goal - (step.tokens_freed if step else 0)
            if missing <= 0:
                break
            needed += missing  # the summary takes room itself, so that much more has to be folded
        return one_step(self.name, basis, best)

    def _batch_end(self, basis: Basis, entries: list[Entry], least: int, needed: int) -> int:
        """How many of the first entries to fold, in whole batches: at least `least`, and as many as weigh `needed` tokens."""
        weight = sum(basis.weight(e) for e in entries[:least])
        end = min(least, len(entries))
        while weight < needed and end < len(entries):
            weight += sum(basis.weight(e) for e in entries[end : end + self._batch_size])
            end = min(end + self._batch_size, len(entries))
        return end


class ReactiveFull:
    """Folds everything that may be folded in the middle of a turn; see `foldable`."""

    name = "reactive_full"
    label = "all but the newest rounds of a long turn"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        return one_step(self.name, basis, _fold_step(self.name, basis, foldable(basis), budget))


def _fold_step(name: str, basis: Basis, entries: list[Entry], budget: Budget) -> Step | None:
    """The step that folds these entries, into a summary by the model or a recap by code."""
    return (summary_step if basis.options.by_model else recap_step)(name, basis, entries, budget)


def foldable(basis: Basis) -> list[Entry]:
    """The entries that may be folded in the middle of a turn, oldest first: everything before the newest rounds of the turn
    (`preserve_recent_rounds` of them), earlier turns included."""
    turn, keep = basis.ledger.turn, basis.options.preserve_recent_rounds
    current = [i for i, e in enumerate(basis.entries) if e.group and e.group.turn == turn and not is_summary(e)]
    rounds = [i for i in current if (group := basis.entries[i].group) and group.kind == "round"]
    if keep <= 0:
        return basis.old(len(basis.entries))
    if keep <= len(rounds):  # all before the newest of them
        return basis.old(rounds[-keep])
    return basis.old(current[0] if current else len(basis.entries))
