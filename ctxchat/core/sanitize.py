"""Foreign text made harmless for a terminal: control sequences go, or are written out where hiding one could mislead.

Says nothing about markup; whoever draws decides that foreign text is never markup.
"""

from __future__ import annotations

import re
import unicodedata

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
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode calls default-ignorable: nothing is drawn for it (DerivedCoreProperties 17.0)."""

_BLANK = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000"
"""Looks like a blank and is none."""

_HIDDEN = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f{IGNORABLE}{_BLANK}\ufff9-\ufffb\ud800-\udfff]")
_LETTERS = re.compile(r"[^\W\d_]+")


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
    """The text with everything written out that does not show (`\\x1b`, `\\u202e`) or passes for a letter of the word it is in
    (`g\\u0456t`), for approvals: nothing may hide in it."""
    text = _HIDDEN.sub(_escape, text)
    return text if text.isascii() else _LETTERS.sub(lambda word: "".join(_in_word(word[0])), text)


def has_lookalikes(word: str) -> bool:
    """Whether it holds letters of an alphabet that can be taken for Latin ones, or what does not show: no name of a program."""
    return not word.isascii() and any(_passes_for_latin(sign) or _HIDDEN.match(sign) for sign in word)


def _in_word(word: str) -> list[str]:
    latin = any(map(_is_latin, word))
    return [escaped(sign) if latin and _passes_for_latin(sign) else sign for sign in word]


def _is_latin(sign: str) -> bool:
    return sign.isascii() or unicodedata.name(sign, "").startswith("LATIN ")


def _passes_for_latin(sign: str) -> bool:
    """A letter of another alphabet with capitals, of Lisu, or a Latin one dressed up (fullwidth, mathematical)."""
    if _is_latin(sign) or not sign.isalpha():
        return False
    cased = sign.lower() != sign.upper()
    return cased or unicodedata.name(sign, "").startswith("LISU") or unicodedata.normalize("NFKC", sign).isascii()


def whole_text(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which no file and no database takes."""
    return _HALVES.sub("\ufffd", text)


def harmless_json(text: str) -> str:
    """JSON with what no terminal should be sent as escapes; it reads back as the same value."""
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 13: "\\r"}.get(code) or escaped(match[0])


def escaped(sign: str) -> str:
    """One character as `\\x1b`, `\\u202e` or `\\U000e0041`."""
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
