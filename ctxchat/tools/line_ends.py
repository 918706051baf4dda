"""The line ends of a text, and a text with those of another. Pure."""

from __future__ import annotations

import re

from ctxchat.tools.diffs import matched

LINE_END = re.compile(r"\r\n|\n|\r")


def with_line_ends_of(old: str, new: str, usual: str = "") -> str:
    """`new` with the line ends of `old`: its own for a line that stays or takes another's place, that of the line before for one
    that is added. `usual` is for a text without any; where it is empty too, `new` stays as it is."""
    ends, wanted = LINE_END.findall(old), LINE_END.findall(new)
    usual = ends[0] if ends else usual
    if not wanted or not usual:
        return new
    lines = LINE_END.split(new)
    if len(set(ends)) < 2:
        return usual.join(lines)
    taken: list[str] = []
    for _, start, end, first, last in matched(LINE_END.split(old), lines):
        own = ends[start:end][: last - first]
        taken += own + [(own or taken or [usual])[-1]] * (last - first - len(own))
    return "".join(line + end for line, end in zip(lines, [*taken[: len(wanted)], ""], strict=True))


def only_crlf(text: str) -> bool:
    """True when the text has line ends and all are CRLF."""
    return "\n" in text and text.count("\n") == text.count("\r\n")
