"""Foreign text made safe for a screen, and figures made short for people.

Everything that comes from a model, a tool, a file or a server goes through here before a widget sees it: control
sequences go; brackets stay brackets, because the result is only ever used as `Content` or with markup off. Knows no widget.
"""

from __future__ import annotations

import re
from datetime import datetime

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, clipboard, links
    r"|[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)?"
    r"|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff]"
)
_HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\ud800-\udfff]"
)


def clean(text: str) -> str:
    """The text without control sequences, control characters and direction marks; of a line redrawn with `\\r` its last state.

    Linear in the length of the text; tabs become spaces, line ends `\\n`.
    """
    text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    return _CONTROL.sub("", _ANSI.sub("", text)).expandtabs(4)


def visible(text: str) -> str:
    """The text with everything that does not show written out (`\\x1b`, `\\u202e`), for approvals: nothing may hide in it."""
    return _HIDDEN.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def one_line(text: str, limit: int = 200) -> str:
    """The text cleaned, on one line, cut with `…` at `limit` characters."""
    flat = " ".join(clean(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def short(tokens: int) -> str:
    """Tokens for people: 412, 12.3k, 118.4k, 1.5M."""
    size = abs(tokens)
    if size < 1000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if size < 999_950 else f"{tokens / 1_000_000:.1f}M"


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
