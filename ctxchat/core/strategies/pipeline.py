"""The strategy that runs several others one after another until the target is met; each plans on the view that the ones before it
would leave."""

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
    """Plans with some strategies in the given order. A step that needs a summary ends the plan, since what the summary will leave
    is not known yet; so strategies without one come first.

    The tokens that a step frees depend on the steps before it: to leave one out or add one, plan again, with `with_steps`.
    Strategies named in `beyond` free all they can, even where the target is met already.
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
        self._beyond = frozenset(beyond)

    def with_steps(self, names: Collection[str], beyond: Collection[str] = ()) -> Pipeline:
        """The same pipeline with only the strategies of these `names`, for a preview in which a person includes steps or leaves
        them out."""
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
    """The steps without those texts to save that nothing will point to, because a later step folds the shortened messages."""
    folded = {group for step in steps for group in step.fold}
    needless = {
        name
        for step in steps
        for edit in step.edits
        if edit.replacement and folded.issuperset(edit.covers)
        for message in edit.replacement.messages
        for name in saved_as(message)
    }
    if not needless:
        return tuple(steps)
    return tuple(msgspec.structs.replace(s, spills=tuple(t for t in s.spills if t.name not in needless)) for s in steps)
