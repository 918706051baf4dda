"""The strategy that shortens old tool results to their most telling line and a pointer to the full text, saved on disk. The calls
stay, with long arguments cut."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.prompt_files import SKILL_TOOL
from ctxchat.core.strategies.base import Plan, Spill, Step
from ctxchat.core.strategies.planning import Basis, PlanOptions, after_step, one_step
from ctxchat.core.strategies.results import MAX_RECENT_SHARE, shorten, spill_of
from ctxchat.core.tooluse import gist, use_of
from ctxchat.core.view import View

LINE_CHARS, REPORT_CHARS = 160, 600
"""Characters that are kept of a result, and of a sub-agent's report."""

MAX_OUTPUT_RATIO, OUTPUT_SHARE = 3, 1 / 400
"""A command's output or a sub-agent's report is shortened only where it is this many times longer than another result would have
to be, but no more than this share of the limit: a file can be read again, they cannot."""


class ShrinkToolResults:
    """Shortens results before the cut over `result_tokens`, and arguments of calls over `argument_tokens`.

    The newest `recent_results` stay whole, except those over an eighth of the limit. So do the results that the agent has seen
    last inside a turn, unless the view would otherwise still be so full that a compaction starts.
    """

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
            # the originals, since the view may show the calls shortened
            calls = basis.originals(entry)[entry.group.first.seq].calls if entry.group else ()
            call = calls[place - 1] if 0 < place <= len(calls) else None
            return self._stub_line(entry, call, place, message, budget.limit)

        old, needed = basis.old(), view.raw - budget.target
        step = shorten(self.name, basis, [e for e in old if e is not basis.last_seen], line, needed)
        step = self._with_arguments(basis, step, needed)
        if view.raw - (step.tokens_freed if step else 0) > budget.trigger:
            step = self._with_arguments(basis, shorten(self.name, basis, old, line, needed), needed, all_old=True)
        return one_step(self.name, basis, step)

    def _with_arguments(self, basis: Basis, step: Step | None, needed: int, *, all_old: bool = False) -> Step | None:
        """The step, with arguments of old calls shortened as well where the results alone free too little: what a call wrote says
        more of the work than what others brought."""
        freed = step.tokens_freed if step else 0
        if freed >= needed:
            return step
        view, ledger = (
            after_step(basis.view, basis.ledger, step, self.options.counter) if step else (basis.view, basis.ledger)
        )
        after = Basis(view, ledger, self.options)
        old = [e for e in after.old() if all_old or e is not after.last_seen]
        most = self.options.argument_tokens
        more = shorten(self.name, after, old, _whole, needed - freed, most)
        if step is None or more is None:
            return step or more
        edits = {edit.covers: edit for edit in (*step.edits, *more.edits)}
        spills = (*step.spills, *more.spills)
        return Step(self.name, freed + more.tokens_freed, len(edits), edits=tuple(edits.values()), spills=spills)

    def _stub_line(
        self, entry: Entry, call: ToolCall | None, place: int, message: Message, limit: int
    ) -> tuple[str, tuple[Spill, ...]] | None:
        """The short text for a result, and the texts to save before; None where the result stays as it is. `place` is its index
        in the group, `limit` the budget's limit in tokens."""
        counter = self.options.counter
        tokens = counter.message(message)
        kind = use_of(call).kind if call else "other"
        short_enough = self.options.result_tokens
        if kind in {"run", "ask"}:
            short_enough = max(short_enough, min(short_enough * MAX_OUTPUT_RATIO, int(limit * OUTPUT_SHARE)))
        if tokens <= short_enough or message.name == SKILL_TOOL:  # a skill tells how the work is to be done
            return None
        pointer, spills = spill_of(message, tokens)
        if entry.group:
            message = self.options.memory.shown(entry.group).messages[place]
        return f"{gist(call, message, REPORT_CHARS if kind == 'ask' else LINE_CHARS)}\n[{pointer}]", spills


def _whole(entry: Entry, place: int, message: Message) -> None:
    """A `Short` that leaves each result as it is."""


def recent_results(view: View, options: PlanOptions, max_tokens: int) -> frozenset[int]:
    """The numbers of the messages that are the newest results and stay whole: `recent_results` of them at most, together at most
    `recent_result_tokens`, and none longer than `max_tokens`."""
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
