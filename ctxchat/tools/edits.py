"""Replacing an exact piece of a text, line ends included, and saying helpfully why it cannot be done. Pure; knows no files."""

from __future__ import annotations

import difflib
import re

from ctxchat.core.errors import ToolError

_SEARCHED = 20_000
"""Lines among which a resemblance is looked for."""


def replaced(text: str, old: str, new: str, every: bool = False) -> tuple[str, int]:
    """`text` with `old` replaced by `new`, and how often. A text whose lines all end in CRLF keeps them so, however old and new
    are written. Raises ToolError where `old` is not there, or there several times and not `every` one is meant."""
    if not old:
        raise ToolError("old is empty.", "Give the exact text to replace; write_file makes a new file.")
    if old == new:
        raise ToolError("old and new are the same; there is nothing to change.")
    if only_crlf(text):
        old, new = to_crlf(old), to_crlf(new)
    count = text.count(old)
    if not count:
        raise ToolError("The text of old is not in the file.", _resemblance(text, old))
    if count > 1 and not every:
        raise ToolError(
            f"The text of old is there {count} times, in lines {_places(text, old)}.",
            "Take in more lines around it so that it is unique, or set replace_all.",
        )
    return text.replace(old, new), count


def only_crlf(text: str) -> bool:
    """True when the text has line ends and all are CRLF."""
    return "\n" in text and text.count("\n") == text.count("\r\n")


def to_crlf(text: str) -> str:
    """Every line end as CRLF."""
    return re.sub(r"\r?\n", "\r\n", text)


def _places(text: str, old: str, most: int = 10) -> str:
    """Line numbers where `old` begins."""
    numbers: list[str] = []
    at, line = text.find(old), 1
    seen = 0
    while at >= 0 and len(numbers) < most:
        line += text.count("\n", seen, at)
        seen = at
        numbers.append(str(line))
        at = text.find(old, at + len(old))
    return ", ".join(numbers) + (", …" if at >= 0 else "")


def _resemblance(text: str, old: str) -> str:
    """The lines of the file most like `old`."""
    lines = text.split("\n")[:_SEARCHED]
    wanted = old.strip("\r\n").split("\n")
    bare = [line.strip() for line in lines]
    sought = [line.strip() for line in wanted]
    for at in range(len(lines) - len(sought) + 1):
        if bare[at] == sought[0] and bare[at : at + len(sought)] == sought:
            return "Only the white space differs from these lines:\n" + _numbered(lines, at, at + len(sought))
    first = next((line for line in sought if line), "")
    near = difflib.get_close_matches(first[:300], {line[:300] for line in bare if line}, 1, 0.6)
    if not near:
        return "Nothing there resembles it; read the file again."
    at = next(at for at, line in enumerate(bare) if line[:300] == near[0])
    return "The nearest lines are:\n" + _numbered(lines, at, at + len(sought))


def _numbered(lines: list[str], start: int, end: int) -> str:
    end = min(end, start + 20, len(lines))
    return "\n".join(f"{at + 1:>5}\t{lines[at].rstrip(chr(13))[:500]}" for at in range(start, end))
