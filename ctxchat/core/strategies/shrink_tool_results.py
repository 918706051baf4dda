"""Old tool results become their first line and a pointer to the saved text; the calls stay."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import Message
from ctxchat.core.strategies.base import Plan, Spill
from ctxchat.core.strategies.ground import Ground, PlanOptions, one_step
from ctxchat.core.strategies.results import shorten, spill_of
from ctxchat.core.tooluse import first_line
from ctxchat.core.view import View


class ShrinkToolResults:
    """Results before the cut that are longer than `result_tokens`."""

    name = "shrink_tool_results"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        ground = Ground(view, ledger, self.options)
        return one_step(self.name, ground, shorten(self.name, ground, ground.old(), self._line))

    def _line(self, entry: Entry, place: int, message: Message) -> tuple[str, tuple[Spill, ...]] | None:
        meter = self.options.meter
        tokens = meter.message(message)
        if tokens <= self.options.result_tokens:
            return None
        pointer, spills = spill_of(message, tokens)
        return f"{first_line(message.text, 120)}\n[{pointer}]", spills
