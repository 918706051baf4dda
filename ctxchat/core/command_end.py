"""Reads from a command's output how the command ended. The shell tool writes that at the end, as a line in brackets for the model
(`[exit code 1]`), and it is stored nowhere else. Pure."""

from __future__ import annotations

import re

import msgspec

MAX_END_CHARS = 3_000
"""Characters at the end of an output that are searched: the line about the end, and remarks behind it, in brackets as well."""

_END = re.compile(
    r"^\[(?:exit code (?P<code>-?\d{1,9})|ended by signal (?P<signal>\d{1,4})"
    r"|stopped after [\d.e+]{1,20} s: (?P<time>time-out))\](?:\n\[[^\n]*\])*\Z",
    re.MULTILINE,
)


class CommandEnd(msgspec.Struct, frozen=True):
    """How a command ended. `code` is the exit code; negative, the number of the signal that ended it; None where it timed out."""

    code: int | None = 0

    @property
    def words(self) -> str:
        """In words for a person: `exit 1`, `timed out`."""
        return "timed out" if self.code is None else f"exit {self.code}"


def command_end(output: str) -> CommandEnd:
    """How the command with this output ended; exit code 0 where the output does not say, since then it was a success."""
    end = _END.search(output.rstrip()[-MAX_END_CHARS:])
    if end is None:
        return CommandEnd()
    return CommandEnd(None if end["time"] else int(end["code"]) if end["code"] else -int(end["signal"]))
