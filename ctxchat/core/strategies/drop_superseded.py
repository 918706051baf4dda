"""The strategy that shortens outdated tool results to a line: of a file that was read again, a command that was run again, a
to-do list that was written anew. The newer result is in view and tells what holds now."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.strategies.base import Plan, Spill
from ctxchat.core.strategies.planning import Basis, PlanOptions, one_step
from ctxchat.core.strategies.results import shorten
from ctxchat.core.tooluse import failed, gist, is_to_do, same_arguments, use_of
from ctxchat.core.view import View

_Place = tuple[str, int]
"""A tool result, as its group's id and its index in the group."""


class DropSuperseded:
    """Shortens results before the cut where the same call was answered again later, and to-do lists that a later one replaced. A
    later attempt that failed to read supersedes nothing."""

    name = "drop_superseded"
    label = "older results of the same file or command"
    nothing = "no file was read twice, no command run twice"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        basis = Basis(view, ledger, self.options)
        newer = self._superseded(basis)

        def line(entry: Entry, place: int, message: Message) -> tuple[str, tuple[Spill, ...]] | None:
            if (later := newer.get((entry.covers[0], place))) is None or entry.group is None:
                return None
            call = entry.group.first.calls[place - 1]
            outcome = (
                f"{gist(call, message, 120)}\n" if use_of(call).kind == "run" else ""
            )  # how a command went then is history
            return f"{outcome}[superseded by {later}; the old result is {message.id}]", ()

        return one_step(self.name, basis, shorten(self.name, basis, basis.old(), line, view.raw - budget.target))

    def why_nothing(self, view: View, ledger: Ledger) -> str:
        """Why there is no plan for this view, in a few words for a person."""
        basis = Basis(view, ledger, self.options)
        found = self._superseded(basis, by_shortened=True)
        repeated = {group for group, place in found if not is_to_do(ledger.group(group).first.calls[place - 1])}
        if not repeated:
            return self.nothing
        if not repeated.isdisjoint(entry.covers[0] for entry in basis.old()):
            return "what was read or run twice is short already"
        newest = (entry.covers[0] for entry in basis.entries[basis.cut :] if not entry.pinned)
        return f"what was read or run twice is {'pinned' if repeated.isdisjoint(newest) else 'among the newest'}"

    def _superseded(self, basis: Basis, *, by_shortened: bool = False) -> dict[_Place, str]:
        """The outdated results, each with a few words that name the newer one; found by going from the newest to the oldest.
        `by_shortened`: also those whose newer result is itself shortened in view."""
        older: dict[_Place, str] = {}
        newest: dict[tuple[str, str], str] = {}
        for entry in reversed(basis.entries):
            group = entry.group
            if group is None or group.kind != "round" or not basis.items(entry):
                continue
            calls = basis.originals(entry)[group.first.seq].calls  # whole, even where the view shows them shortened
            for place in range(len(group.messages) - 1, 0, -1):
                call, result = calls[place - 1], group.messages[place]
                key = (call.name, "" if is_to_do(call) else same_arguments(call.arguments))
                if key in newest:
                    if is_to_do(call):
                        older[entry.covers[0], place] = f"the list further on ({newest[key]})"
                    elif use_of(call).kind in _REPEATABLE:
                        older[entry.covers[0], place] = f"the same call further on ({newest[key]})"
                elif (by_shortened or basis.as_it_was(entry, result)) and _tells(call, result):
                    newest[key] = result.id
        return older


_REPEATABLE = frozenset({"read", "run", "search", "fetch"})
"""Kinds of tool use whose newer result makes the older one worthless."""


def _tells(call: ToolCall, result: Message) -> bool:
    """True for a result that can supersede an older one: any but a failure to read. A command's failure does: it is how things
    are."""
    return not failed(result) or use_of(call).kind == "run"
