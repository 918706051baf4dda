"""Several strategies one after another, each planned on what the ones before would leave, until the target is met."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.base import Plan, Step, Strategy
from ctxchat.core.strategies.planning import after_step
from ctxchat.core.strategies.results import saved_as
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import View


class Pipeline:
    """Lossless steps first and a summary last, if built in that order. A step that needs a summary ends the plan.

    Gains are those of each step in its place: leaving one out or adding one means planning again, with `with_steps`.
    """

    label = "one step after another until it fits"

    def __init__(
        self,
        strategies: Sequence[Strategy],
        counter: TokenCounter,
        name: str = "pipeline",
        beyond: Collection[str] = (),
    ) -> None:
        self.name = name
        self.strategies = tuple(strategies)
        self.counter = counter
        self._beyond = frozenset(beyond)  # steps that free all they can, also where the target is met

    def with_steps(self, names: Collection[str], beyond: Collection[str] = ()) -> Pipeline:
        """The same pipeline with these steps only, for a preview where they are ticked. Those in `beyond` free all they can,
        whether the target is met or not."""
        return Pipeline([s for s in self.strategies if s.name in names], self.counter, self.name, beyond)

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        steps: list[Step] = []
        now, state, raw, keep = view, ledger, view.raw, 0
        for strategy in self.strategies:
            aim = msgspec.structs.replace(budget, target=0) if strategy.name in self._beyond else budget
            if raw <= aim.target:
                continue
            plan = strategy.plan(now, state, aim)
            if plan is None:
                continue
            keep = keep or plan.keep_recent
            for step in plan.steps:
                steps.append(step)
                raw -= step.tokens_freed
                if step.needs_summary:
                    return self._plan(steps, view, raw, keep)
                now, state = after_step(now, state, step, self.counter)
        return self._plan(steps, view, raw, keep) if steps else None

    def _plan(self, steps: Sequence[Step], view: View, after: int, keep: int) -> Plan:
        return Plan(self.name, needed_spills(steps), before=view.raw, after=after, keep_recent=keep)


def needed_spills(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps without the texts of results that a later fold takes out of the view anyway."""
    folded = {name for step in steps for name in step.fold}
    gone = {
        name
        for step in steps
        for edit in step.edits
        if edit.replacement and folded.issuperset(edit.covers)
        for message in edit.replacement.messages
        for name in saved_as(message)
    }
    if not gone:
        return tuple(steps)
    return tuple(msgspec.structs.replace(s, spills=tuple(t for t in s.spills if t.name not in gone)) for s in steps)
