"""Foreign text made harmless for a terminal: control sequences go, or are written out where hiding one could mislead.

Says nothing about markup; whoever draws decides that foreign text is never markup.
"""

from __future__ import annotations

import re

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, clipboard, links
    r"|[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)?"
    r"|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""What no terminal should be sent: control characters, direction marks, halves of characters."""

_HALVES = re.compile("[\ud800-\udfff]")
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
    return harmless(text).expandtabs(4)


def harmless(text: str) -> str:
    """The text without control sequences, control characters and direction marks; its tabs and line ends (`\\n`) as they are."""
    return CONTROL.sub("", _ANSI.sub("", text))


def visible(text: str) -> str:
    """The text with everything that does not show written out (`\\x1b`, `\\u202e`), for approvals: nothing may hide in it."""
    return _HIDDEN.sub(_escape, text)


def whole_text(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which no file and no database takes."""
    return _HALVES.sub("\ufffd", text)


def harmless_json(text: str) -> str:
    """JSON with what no terminal should be sent as escapes; it reads back as the same value."""
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
