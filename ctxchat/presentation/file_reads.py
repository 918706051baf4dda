"""Splits the result of a call that read a file into lines with their numbers in the file. Pure; knows no widget."""

from __future__ import annotations

import re

import msgspec

from ctxchat.core.messages import ToolCall
from ctxchat.core.sanitize import harmless
from ctxchat.core.tooluse import use_of

_NUMBERED = re.compile(r" {0,8}(\d{0,9})[\t→]")
"""What stands before a line: our tools number some of them, those of other agents all."""


class ReadLine(msgspec.Struct, frozen=True):
    """One line of a result. `number` is the line's number in the file, 0 if unknown; a line `about` the file is a remark and none
    of its lines."""

    text: str
    number: int = 0
    about: bool = False


def read_path(tool: str, arguments: dict[str, object] | str) -> str:
    """The file that a call reads; empty for any other call."""
    if isinstance(arguments, str):
        return ""
    use = use_of(ToolCall("", tool, msgspec.json.encode(arguments).decode()))
    return use.target if use.kind == "read" else ""


def read_lines(output: str) -> list[ReadLine]:
    """The lines without what the tool put before them; as they are where it put nothing there."""
    lines = harmless(output.replace("\r\n", "\n")).strip("\n").split("\n")
    first = _NUMBERED.match(lines[0])
    if first is None or not first[1]:
        return [ReadLine(line) for line in lines]
    found: list[ReadLine] = []
    number = 0
    for line in lines:
        if before := _NUMBERED.match(line):
            number = int(before[1]) if before[1] else number + 1
            found.append(ReadLine(line[before.end() :], number))
        elif not line and number:
            number += 1
            found.append(ReadLine("", number))
        else:
            found.append(ReadLine(line, about=True))
    return found
