"""Summaries made ahead of need, and fitted into a pass when it comes. The background work never blocks or fails a turn.

Holds the one prepared summary through `prefetch`; decides nothing about when a pass runs.
"""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.passes import Order, writing
from ctxchat.agent.planner import Planner
from ctxchat.agent.prepared import Prepared, PreparedSlot
from ctxchat.agent.trial import look_ahead
from ctxchat.core.events import Usage
from ctxchat.core.journal import Spent
from ctxchat.core.ports import Summariser
from ctxchat.core.strategies.base import Step
from ctxchat.core.triggers import due


class Prefetch:
    """Prepares the summary of what will go next."""

    def __init__(self, conversation: Conversation, planner: Planner, summariser: Summariser | None) -> None:
        self._talk = conversation
        self._planner = planner
        self._slot = PreparedSlot()
        self.summariser = summariser

    @property
    def prepared(self) -> Prepared | None:
        """The summary that stands ready."""
        return self._slot.ready(self._talk.ledger)

    def prepare(self) -> None:
        """Begin to make the next summary, once the soft mark is passed. If that fails the swap makes its own."""
        options = self._talk.options
        if not options.prepare or options.consent == "off" or self.summariser is None:
            return
        if due(self._talk.figures, options.soft_mark) in {"prepare", "compact"} and self.prepared is None:
            self._slot.start(self._made)

    async def _made(self) -> Prepared | None:
        talk, summariser = self._talk, self.summariser
        changes = tuple(c.id for c in talk.ledger.changes)
        plan = await self._planner.usual()
        step = next((s for s in plan.steps if s.needs_summary), None) if plan else None
        if plan is None or step is None or summariser is None:
            return None
        after = self._planner.after_used(plan)
        await look_ahead(self._planner.options().memory, talk.ledger, step.fold)
        text: list[str] = []
        cost = 0.0
        try:
            async with aclosing(writing(talk, step, summariser)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Usage):
                        cost += piece.cost_usd
                    elif isinstance(piece, str):
                        text.append(piece)
        finally:
            if cost:  # paid for, whatever becomes of it
                talk.note(Spent(summariser.model, cost))
        whole = "".join(text).strip()
        return Prepared(step.fold, changes, whole, after, cost) if whole else None

    async def fitted(self, order: Order) -> Order:
        """The order with the prepared summary, where one stands ready or is nearly made: as it is where it frees enough, else
        to be topped up with the rest."""
        step = next((s for s in order.plan.steps if s.needs_summary), None)
        if step is None or order.summary is not None or order.instructions.strip():
            return order
        if self._slot.busy:
            await self._slot.wait()
        prepared = self.prepared
        if prepared is None or not set(prepared.covers) <= set(step.fold):
            return order
        if order.reason != "manual":  # a person has seen what goes: no more, and no less
            order = self._narrowed(order, step, prepared)
        return msgspec.structs.replace(order, prepared=prepared)

    def _narrowed(self, order: Order, step: Step, prepared: Prepared) -> Order:
        """The order for what is prepared and no more, where that comes at least halfway from the trigger to the target.

        What it leaves out stays as it is: other steps counted on its being folded, and would not keep its texts.
        """
        left_out = set(step.fold).difference(prepared.covers)
        more = sum(item.tokens for item in self._talk.view.items if item.group in left_out)
        less = max(
            0, step.summary_tokens - self._talk.meter.text(prepared.text)
        )  # set aside for a summary, and not needed
        budget = self._planner.raw_budget()
        if not left_out or order.plan.after + more - less > (budget.target + budget.trigger) // 2:
            return order
        small = msgspec.structs.replace(step, fold=prepared.covers, tokens_freed=max(0, step.tokens_freed - more))
        steps = [small if s is step else _without(s, left_out) for s in order.plan.steps]
        plan = msgspec.structs.replace(order.plan, steps=tuple(s for s in steps if s.edits or s.fold))
        return msgspec.structs.replace(order, plan=plan)

    def clear(self) -> None:
        """A pass was made, with what was prepared or without."""
        self._slot.clear()

    async def close(self) -> None:
        """End what is being made."""
        await self._slot.close()


def _without(step: Step, groups: set[str]) -> Step:
    edits = tuple(edit for edit in step.edits if groups.isdisjoint(edit.covers))
    return msgspec.structs.replace(step, edits=edits)
