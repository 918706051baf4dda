"""Foreign text made safe for a screen, and figures made short for people.

Everything that comes from a model, a tool, a file or a server goes through here before a widget sees it: control
sequences go; brackets stay brackets, because the result is only ever used as `Content` or with markup off. Knows no widget.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from ctxchat.core.quantities import short as short
from ctxchat.core.sanitize import clean as clean  # handed on: widgets find all they need for foreign text here
from ctxchat.core.sanitize import harmless as harmless
from ctxchat.core.sanitize import visible as visible


def one_line(text: str, limit: int = 200) -> str:
    """The text cleaned, on one line, cut with `…` at `limit` characters."""
    flat = " ".join(clean(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


_MARKDOWN_MARKS = re.compile(
    r"(?<![\w*])\*\*(?=\S)([^*\n]+)(?<=\S)\*\*(?![\w*])|^(?:#{1,6} |> )|^```[^`\n]*$", re.MULTILINE
)
"""Signs of bold words, headings, quotations and code, which say nothing in a list; names (`2**8`, `__init__`) keep theirs."""


def prose_line(text: str, limit: int = 200) -> str:
    """An answer on one line, as `one_line`, without the signs of bold words, headings, quotations and blocks of code."""
    return one_line(_MARKDOWN_MARKS.sub(lambda found: found[1] or "", text[: limit * 8]), limit)


WHO: Mapping[str, str] = {"user": "you", "assistant": "answer", "tool": "result", "system": "system"}
"""Who said a message, by its role."""

NOTE = "note"
"""What is said of a note for the model, whatever its role: no person said it."""

MAX_LAID_OUT_CHARS = 20_000
"""Characters of one text that a screen lays out whole: much more, and nothing else happens for seconds."""


def cut(text: str, longest: int = MAX_LAID_OUT_CHARS, where: str = "") -> str:
    """The text cleaned; what is longer says how much more there is, and `where` that can be read."""
    rest = len(text) - longest
    return clean(text) if rest <= 0 else f"{clean(text[:longest])}\n… {rest:,} more characters{where}"


WIDEST, MAX_SHOWN_CHARS = 10_000, 100_000
"""Characters of one line, and of all lines, that an editor lays out while a person waits."""


def editable(text: str) -> int:
    """The number of characters, from the beginning of a text, that an editor can take."""
    end = 0
    for line in text[:MAX_SHOWN_CHARS].splitlines(keepends=True):
        if len(line) > WIDEST:
            return end + WIDEST
        end += len(line)
    return end


def elapsed(seconds: float) -> str:
    """A duration for people: 0.1 s, 12 s, 3 min 5 s."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def clock(at: str) -> str:
    """The local time of day of an ISO 8601 moment, `14:02`; empty where there is none."""
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%H:%M") if at else ""
    except ValueError:
        return ""
