"""Finds where characters begin and end as people see them: an emoji of several code points, a letter with its accents; and tells
text from control keys. Imports nothing heavy before a text needs it, as the first frame uses it."""

from __future__ import annotations

_MAX_GRAPHEME_CHARS = 64
"""Characters that one sign is looked for in."""


def is_text(character: str) -> bool:
    """Whether a character that is typed belongs into a text: Python counts neither the spaces of other scripts nor what joins
    characters nor the emoji of newer years as printable."""
    return character.isprintable() or (character >= "\xa0" and not "\ud800" <= character <= "\udfff")


def sign_before(text: str, at: int) -> int:
    """The index where the character that ends at `at` begins; 0 at the beginning."""
    if at < 2 or text[at - 1].isascii():
        return max(0, at - 1)
    return at - len(_signs(text[max(0, at - _MAX_GRAPHEME_CHARS) : at])[-1])


def sign_after(text: str, at: int) -> int:
    """The index where the character that begins at `at` ends; the length of the text at its end."""
    if at + 1 >= len(text) or text[at + 1].isascii():
        return min(len(text), at + 1)
    return at + len(_signs(text[at : at + _MAX_GRAPHEME_CHARS])[0])


def _signs(text: str) -> list[str]:
    import regex

    return regex.findall(r"\X", text)
