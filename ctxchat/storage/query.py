"""Parses the text of a search into words with their stems and phrases, and into filters: who said it, which tool, when, which
file.

Pure functions; knows no database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from typing import Literal

import msgspec

from ctxchat.core.errors import UsageError
from ctxchat.core.expressions import expression
from ctxchat.core.search import Scope
from ctxchat.core.stems import UNSPACED, apart, empty, forms, language_of, stem

_TERM = expression(r'"([^"]+)"|([^\s"]+)')
_QUERY_WORD = expression(f"{UNSPACED}+|(?:(?!{UNSPACED})[^\\W_])+(?:_+(?:(?!{UNSPACED})[^\\W_])+)*")
_RUN = expression(f"{UNSPACED}+")
_MIN_QUESTION_WORDS = 5  # words: a longer query is a question, whose words need not all be in a message


class Unit(msgspec.Struct, frozen=True):
    """One word to be found, in lower case. `forms` are its stems in the languages used, as they are in the index; `root` has the
    letters that all forms begin with. `spaced` is False for scripts without spaces, where a word may begin anywhere."""

    word: str
    forms: tuple[str, ...]
    root: str
    spaced: bool = True

    @property
    def expression(self) -> str:
        """The FTS5 expression for the word, for the table of stems."""
        if self.spaced:
            return "(" + " OR ".join(f'"{form}"' for form in self.forms) + ")"
        return "(" + " AND ".join(f'"{character}"' for character in self.word) + ")"


class Query(msgspec.Struct, frozen=True):
    """A parsed query. `terms` are its words as typed, quoted text as one term; `phrases` are the quoted ones; `units` are the
    words to look for, each once. In a `question` not every word must be found. `typed` is the last word, which may be
    unfinished; `marked` are the terms worth marking where they were found."""

    terms: tuple[str, ...]
    units: tuple[Unit, ...]
    phrases: tuple[str, ...] = ()
    question: bool = False
    typed: str = ""
    marked: tuple[str, ...] = ()


def parse(text: str, languages: Sequence[str] = ("english",)) -> Query:
    """Parse a text; words are stemmed in these languages and in its own. A text without letters and digits has no terms."""
    found = [(quoted.strip(), bare) for quoted, bare in _TERM.findall(text.replace("\0", " "))]
    kept = [(quoted, bare) for quoted, bare in found if re.search(r"[^\W_]", quoted or bare)]
    terms = tuple(quoted or bare for quoted, bare in kept)
    own_language = language_of(text)
    all_languages = tuple(dict.fromkeys([own_language, *languages]))
    all_units = list(dict.fromkeys(unit for term in terms for unit in _units(term, all_languages)))
    content_units = [
        unit for unit in all_units if not any(empty(unit.word, language) for language in {own_language, "english"})
    ]
    phrases = tuple(quoted for quoted, _ in kept if quoted)
    is_question = (
        not phrases
        and (len(content_units) < len(all_units) or len(content_units) > _MIN_QUESTION_WORDS)
        and len(content_units) > 1
    )
    typed = kept[-1][1].lower() if kept and kept[-1][1].isalnum() and not text[-1:].isspace() else ""
    known = set(content_units or all_units)
    marked = tuple(term for term in terms if term in phrases or known.intersection(_units(term, all_languages)))
    typed = typed if len(typed) > 2 else ""
    return Query(terms, tuple(content_units or all_units), phrases, is_question, typed, marked)


def phrase(term: str) -> str:
    """The FTS5 expression for words in this order, for the table of words."""
    return '"' + apart(term).replace('"', " ") + '"'


def _units(term: str, languages: Sequence[str]) -> Iterator[Unit]:
    """The words of a term, with their stems."""
    for name in _QUERY_WORD.findall(term):
        if not _RUN.fullmatch(name):
            for word in forms(name, ""):
                stems = tuple(dict.fromkeys(stem(word, language) for language in languages))
                yield Unit(word, (*stems, word) if word not in stems else stems, _common_prefix(word, stems))
        elif len(name) <= 3:
            yield Unit(name, (name,), name, spaced=False)
        else:  # text without spaces rarely recurs literally, but its pairs of characters do
            yield from (Unit(pair, (pair,), pair, spaced=False) for pair in map("".join, pairwise(name)))


def _common_prefix(word: str, stems: Sequence[str]) -> str:
    """The letters that a word and its stems all begin with; the word itself where there are none."""
    alike = (all(stem[i : i + 1] == letter for stem in stems) for i, letter in enumerate(word))
    return word[: sum(takewhile(bool, alike))] or word


_FILTER = re.compile(r'(?<!\S)(who|tool|since|until|file):("[^"]*"|\S*)')
_WHO: dict[str, Literal["user", "assistant", "tool", "system"]] = {
    **dict.fromkeys(("me", "user", "you"), "user"),
    **dict.fromkeys(("agent", "assistant", "answers", "answer"), "assistant"),
    **dict.fromkeys(("tool", "tools", "result", "results"), "tool"),
    "system": "system",
}
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def split_filters(query: str, scope: Scope, now: datetime) -> tuple[str, Scope]:
    """Split the filters off a query: the query without them, and the scope with their values in place of its own. A filter
    without a value is ignored, since it may be unfinished. `now` is in the time zone in which days are meant. Raises UsageError
    for an invalid value."""
    for name, typed in _FILTER.findall(query):
        if value := typed.strip('"'):
            scope = msgspec.structs.replace(scope, **_field(name, value, now))
    return " ".join(_FILTER.sub(" ", query).split()) + " " * query[-1:].isspace(), scope


def _field(name: str, value: str, now: datetime) -> dict[str, str]:
    """A filter of a query as a field of `Scope`. Raises UsageError for an invalid value."""
    if name == "who":
        if value.lower() not in _WHO:
            raise UsageError(f"who:{value} is nobody.", "Give who:me, who:agent, who:tool or who:system.")
        return {"role": _WHO[value.lower()]}
    return {name: value if name in {"tool", "file"} else _time(name, value, now)}


def _time(name: str, value: str, now: datetime) -> str:
    """The time that a filter such as `since:3d` states, as it is stored. Raises UsageError."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    ago = re.fullmatch(r"(\d{1,4})([hdw])", value)
    date = re.fullmatch(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", value)
    try:
        if ago:
            time = now - int(ago[1]) * _UNITS[ago[2]]
        elif value in {"today", "yesterday"}:
            time = today - timedelta(days=value == "yesterday")
        elif date:
            time = today.replace(year=int(date[1]), month=int(date[2] or 1), day=int(date[3] or 1))
        else:
            raise ValueError
    except (ValueError, OverflowError):
        raise UsageError(
            f"{name}:{value} is no time.", f"Give a day such as {name}:2026-11-01, or {name}:3d, 12h, 2w, today."
        ) from None
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
