"""Whether the model runs in circles: the same call, failing the same way, again and again. Pure counting."""

from __future__ import annotations

from collections import Counter

from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import ToolStatus
from ctxchat.core.messages import ToolCall
from ctxchat.core.tooluse import same_arguments

TOLD, STOPPED = 3, 5
"""How often the same call may fail the same way before the model is told, and before the turn is stopped."""

TELLING = (
    "[This same call has now failed in the same way {times} times. Do something else, or say what stands in the way.]"
)


class Stuck(CtxchatError):
    """The turn was stopped because it went in circles."""


class Repeats:
    """Counts for one turn. A call that works begins them anew: what failed before it may now go well."""

    def __init__(self) -> None:
        self._failed: Counter[tuple[str, str, str]] = Counter()
        self._stuck = ""

    def remark(self, call: ToolCall, status: ToolStatus, output: str) -> str:
        """What the model is told beside the result of a call, empty for nothing. Said once for each kind of failure."""
        if status == "ok":
            self._failed.clear()
            return ""
        kind = (call.name, same_arguments(call.arguments), output)
        self._failed[kind] += 1
        if self._failed[kind] >= STOPPED:
            self._stuck = call.name
        return TELLING.format(times=TOLD) if self._failed[kind] == TOLD else ""

    def check(self) -> None:
        """Between two rounds. Raises Stuck where a call has failed too often."""
        if self._stuck:
            raise Stuck(
                f"Stopped: {self._stuck} was called {STOPPED} times with the same arguments and failed the same way.",
                "Say what to do differently, or /continue.",
            )
