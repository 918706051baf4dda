"""A file read again, a command run again: the older result becomes a line, since the newer one says what holds now."""

from __future__ import annotations

from ctxchat.core.budget import Budget
from ctxchat.core.ledger import Entry, Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.strategies.base import Plan, Spill
from ctxchat.core.strategies.ground import Ground, PlanOptions, one_step
from ctxchat.core.strategies.results import shorten
from ctxchat.core.tooluse import Use, failed, use_of
from ctxchat.core.view import View

_Place = tuple[str, int]
"""A result: its group's id and its place in the group."""


class DropSuperseded:
    """Results before the cut whose very call was answered again later. A later failure to read supersedes nothing."""

    name = "drop_superseded"

    def __init__(self, options: PlanOptions) -> None:
        self.options = options

    def plan(self, view: View, ledger: Ledger, budget: Budget) -> Plan | None:
        ground = Ground(view, ledger, self.options)
        newer = self._superseded(ground)

        def line(entry: Entry, place: int, message: Message) -> tuple[str, tuple[Spill, ...]] | None:
            later = newer.get((entry.covers[0], place))
            return (f"[superseded by the same call in {later}; the old result is {message.id}]", ()) if later else None

        return one_step(self.name, ground, shorten(self.name, ground, ground.old(), line))

    def _superseded(self, ground: Ground) -> dict[_Place, str]:
        """Older results of calls that were answered again, with the id of the newest answer."""
        older: dict[_Place, str] = {}
        newest: dict[tuple[str, str], str] = {}
        for entry in reversed(ground.entries):
            group = entry.group
            if group is None or group.kind != "round" or not ground.items(entry):
                continue
            originals = ground.originals(entry)
            for place in range(len(group.messages) - 1, 0, -1):
                call, result = group.first.calls[place - 1], group.messages[place]
                original = originals.get(result.seq)
                use = use_of(call)
                if use.kind in {"other", "change"}:
                    continue
                key = _key(call, use)
                if key in newest:
                    older[entry.covers[0], place] = newest[key]
                elif original and result.content == original.content and not (failed(result) and use.kind != "run"):
                    newest[key] = result.id
        return older


def _key(call: ToolCall, use: Use) -> tuple[str, str]:
    return call.name, use.arguments
