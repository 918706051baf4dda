"""Where the signs of a text begin and end as people see them: an emoji of several characters, a letter with its accents.

Imports nothing heavy before a text needs it: the first frame asks, too.
"""

from __future__ import annotations

JOINERS = frozenset(("\u200d", *map(chr, range(0xE0020, 0xE0080))))
"""What joins characters to one sign and does not count as printable: in families, professions and flags."""

_MAX_GRAPHEME_CHARS = 64
"""Characters that one sign is looked for in."""


def sign_before(text: str, at: int) -> int:
    """Where the sign begins that ends at `at`; 0 at the beginning."""
    if at < 2 or text[at - 1].isascii():
        return max(0, at - 1)
    return at - len(_signs(text[max(0, at - _MAX_GRAPHEME_CHARS) : at])[-1])


def sign_after(text: str, at: int) -> int:
    """Where the sign ends that begins at `at`; the length of the text at its end."""
    if at + 1 >= len(text) or text[at + 1].isascii():
        return min(len(text), at + 1)
    return at + len(_signs(text[at : at + _MAX_GRAPHEME_CHARS])[0])


def _signs(text: str) -> list[str]:
    import regex

    return regex.findall(r"\X", text)
