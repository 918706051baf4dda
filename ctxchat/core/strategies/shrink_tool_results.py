"""Old tool results become the line that mattered and a pointer to the saved text; calls stay, with long arguments cut."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.prompt_files import SKILL_TOOL
from ctxchat.core.strategies.base import Plan, Spill
from ctxchat.core.strategies.planning import Basis, PlanOptions, one_step
from ctxchat.core.strategies.results import MAX_RECENT_SHARE, shorten, spill_of
from ctxchat.core.tooluse import gist, use_of
from ctxchat.core.view import View

LINE_CHARS, REPORT_CHARS = 160, 600
"""Characters that stand for a result, and for the report of an agent."""

MAX_OUTPUT_RATIO, OUTPUT_SHARE = 3, 1 / 400
"""How many times longer than another result the output of a command or an agent's report may be before it is cut, up to this
share of the limit: what a file says can be read again, what they said cannot."""


class ShrinkToolResults:
    """Results before the cut that are longer than `result_tokens`, arguments of calls longer than `argument_tokens`. The newest
    `recent_results` are left alone, but for one that takes more than an eighth of the limit; so are those that the agent has seen
    last inside a turn, unless the trigger is met otherwise."""

    name = "shrink_tool_results"
    label = "old tool results to one line, text kept on disk"
    nothing = "no old tool result is longer than a line"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        kept = recent_results(view, self.options, int(budget.limit * MAX_RECENT_SHARE))

        def line(entry: Entry, place: int, message: Message) -> tuple[str, tuple[Spill, ...]] | None:
            if message.seq in kept:
                return None
            said = (
                basis.originals(entry)[entry.group.first.seq].calls if entry.group else ()
            )  # whatever was cut of it since
            call = said[place - 1] if 0 < place <= len(said) else None
            return self._stub_line(entry, call, place, message, budget.limit)

        old = basis.old()
        needed, arguments = view.raw - budget.target, self.options.argument_tokens
        step = shorten(self.name, basis, [e for e in old if e is not basis.last_seen], line, needed, arguments)
        if view.raw - (step.tokens_freed if step else 0) > budget.trigger:
            step = shorten(self.name, basis, old, line, needed, arguments)
        return one_step(self.name, basis, step)

    def _stub_line(
        self, entry: Entry, call: ToolCall | None, place: int, message: Message, limit: int
    ) -> tuple[str, tuple[Spill, ...]] | None:
        counter = self.options.counter
        tokens = counter.message(message)
        kind = use_of(call).kind if call else "other"
        enough = self.options.result_tokens
        if kind in {"run", "ask"}:
            enough = max(enough, min(enough * MAX_OUTPUT_RATIO, int(limit * OUTPUT_SHARE)))
        if tokens <= enough or message.name == SKILL_TOOL:  # how the work is to be done
            return None
        pointer, spills = spill_of(message, tokens)
        if entry.group:
            message = self.options.memory.shown(entry.group).messages[place]
        return f"{gist(call, message, REPORT_CHARS if kind == 'ask' else LINE_CHARS)}\n[{pointer}]", spills


def recent_results(view: View, options: PlanOptions, max_tokens: int) -> frozenset[int]:
    """The places in the record of the newest results, which stay whole: so many, within their cap, and none of them longer than
    `max_tokens`."""
    newest = [item for item in view.items if item.message.role == "tool"][::-1][: options.recent_results]
    cap = options.recent_result_tokens
    kept: set[int] = set()
    held = 0
    for item in newest:
        held += item.tokens
        if cap and held > cap:
            break
        if item.tokens <= max_tokens:
            kept.add(item.message.seq)
    return frozenset(kept)
