"""Makes text from outside (of models, tools, files) harmless for a terminal: removes control sequences, or writes them out where
removing one could mislead a person.

Leaves markup alone: whoever draws a text must see to it that foreign text is not parsed as markup.
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
"""Matches characters that a terminal must not be sent: control characters, direction marks, halves of surrogate pairs."""

_HALVES = re.compile("[\ud800-\udfff]")
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters for which nothing is drawn: Unicode's default-ignorable ones (DerivedCoreProperties 17.0)."""

_BLANK = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000"
"""Characters that look like a blank and are none."""

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
    """The text with all characters written out that are invisible (`\\x1b`, `\\u202e`) or look like a Latin letter in a Latin
    word (`g\\u0456t`). For approvals: nothing may be hidden from the person who decides."""
    text = _HIDDEN.sub(_escape, text)
    return text if text.isascii() else _LETTERS.sub(lambda word: "".join(_escape_lookalikes(word[0])), text)


def has_lookalikes(word: str) -> bool:
    """True for a word with invisible characters, or with letters of another alphabet that look like Latin ones; no program has
    such a name."""
    return not word.isascii() and any(_passes_for_latin(letter) or _HIDDEN.match(letter) for letter in word)


def _escape_lookalikes(word: str) -> list[str]:
    """The letters of a word; in a word with a Latin letter, those that only look like one are escaped."""
    latin = any(map(_is_latin, word))
    return [escaped(letter) if latin and _passes_for_latin(letter) else letter for letter in word]


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN ")


def _passes_for_latin(letter: str) -> bool:
    """True for a letter that can be taken for a Latin one: of another alphabet with capitals, of Lisu, or a Latin letter in
    another form (fullwidth, mathematical)."""
    if _is_latin(letter) or not letter.isalpha():
        return False
    cased = letter.lower() != letter.upper()
    return cased or unicodedata.name(letter, "").startswith("LISU") or unicodedata.normalize("NFKC", letter).isascii()


def whole_text(text: str) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which cannot be written to a file or a database."""
    return _HALVES.sub("\ufffd", text)


def harmless_json(text: str) -> str:
    """JSON text with escapes for the characters in `CONTROL`; it stands for the same value."""
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 13: "\\r"}.get(code) or escaped(match[0])


def escaped(character: str) -> str:
    """One character as `\\x1b`, `\\u202e` or `\\U000e0041`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
