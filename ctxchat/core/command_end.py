"""How a command ended, as the end of its output tells a model. Pure."""

from __future__ import annotations

import re

import msgspec

MAX_END_CHARS = 3_000
"""Characters of an output's end in which that is told: the line of how it ended, and notes on what was in its way."""

_END = re.compile(
    r"^\[(?:exit code (?P<code>-?\d{1,9})|ended by signal (?P<signal>\d{1,4})"
    r"|stopped after [\d.e+]{1,20} s: (?P<time>time-out))\](?:\n\[[^\n]*\])*\Z",
    re.MULTILINE,
)


class CommandEnd(msgspec.Struct, frozen=True):
    """`code` is the exit code, minus the signal that ended it; None where its time was up."""

    code: int | None = 0

    @property
    def words(self) -> str:
        """`exit 1`, `timed out`."""
        return "timed out" if self.code is None else f"exit {self.code}"


def command_end(output: str) -> CommandEnd:
    """How the command of an output ended: well, where it says nothing of that."""
    found = _END.search(output.rstrip()[-MAX_END_CHARS:])
    if found is None:
        return CommandEnd()
    return CommandEnd(None if found["time"] else int(found["code"]) if found["code"] else -int(found["signal"]))
