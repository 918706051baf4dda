"""A person's or a model's words as a query: what has to be found, and the full-text expressions for all, most or some of it.

Pure; knows no database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

UNSPACED = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
"""Characters of scripts that are written without spaces; the index takes each for a word."""

_TERM = re.compile(r'"([^"]+)"|([^\s"]+)')
_APART = re.compile(f"({UNSPACED})")
_WORD = re.compile(f"{UNSPACED}+|(?:(?!{UNSPACED})[^\\W_])+")
_RUN = re.compile(f"{UNSPACED}+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ions", "ion", "ies", "ied", "ers", "er", "ed", "es", "s", "e", "y")

# Words a question is made of; they say nothing of where its answer stands.
_COMMON_WORDS = """
a about again all also an and any are as at be been but by can could did do does exactly for from had has have
how i if in into is it its many me much my of on or our please so tell than that the their them then there these they
this those to us was we were what when where which who why will with would you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


class Unit(msgspec.Struct, frozen=True):
    """One word to be found, in lower case. `stem` is the part of it that its other forms begin with; `spaced` is False for
    scripts without spaces, whose words begin anywhere."""

    word: str
    stem: str
    spaced: bool = True

    @property
    def expression(self) -> str:
        """FTS5's form of it."""
        return f'"{apart(self.stem)}" *' if self.spaced and len(self.stem) > 2 else f'"{apart(self.word)}"'


class Query(msgspec.Struct, frozen=True):
    """`terms` as typed, what stands in double quotes as one; `units` the words worth looking for, each once."""

    terms: tuple[str, ...]
    units: tuple[Unit, ...]
    quoted: bool = False


def parse(text: str) -> Query:
    """The query in a text. Without a letter or digit in it there are no terms, and nothing is looked for."""
    found = [(quoted or bare).strip() for quoted, bare in _TERM.findall(text.replace("\0", " "))]
    wanted = tuple(term for term in found if re.search(r"\w", term))
    units = list(dict.fromkeys(unit for term in wanted for unit in _units(term)))
    telling = [unit for unit in units if unit.word not in _COMMON]
    return Query(wanted, tuple(telling or units), '"' in text)


def apart(text: str) -> str:
    """The text with room around each character of a script without spaces, so that each counts as a word."""
    return text if text.isascii() else _APART.sub(r" \1 ", text)


def every(query: Query) -> str:
    """FTS5's expression for all of it. The last word may be the beginning of one, since it may still be being typed."""
    phrases = [f'"{apart(term)}"' for term in query.terms]
    return " AND ".join(phrases) + (" *" if len(query.terms[-1]) > 2 else "")


def at_least(units: Sequence[Unit], many: int) -> str:
    """FTS5's expression for at least so many of the words."""
    chosen = combinations([unit.expression for unit in units], many)
    return " OR ".join(f"({' AND '.join(few)})" for few in chosen)


def _units(term: str) -> Iterator[Unit]:
    for word in _WORD.findall(term.lower()):
        if not _RUN.fullmatch(word):
            yield Unit(word, _stem(word))
        elif len(word) <= 3:
            yield Unit(word, word, spaced=False)
        else:  # a phrase without spaces is rarely said twice alike; two characters of it are
            yield from (Unit(word[i : i + 2], word[i : i + 2], spaced=False) for i in range(len(word) - 1))


def _stem(word: str) -> str:
    """The word without an ending, where four characters stay; what has a digit in it is a name and stays whole."""
    if len(word) < 5 or not word.isalpha():
        return word
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 4), "")
    return word[: len(word) - len(ending)]
