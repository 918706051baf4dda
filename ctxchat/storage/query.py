"""A person's or a model's words as a query: what has to be found, and how the index is asked for it; and the filters
among them: who said it, which tool, when, which file.

Pure; knows no database.
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
_MIN_QUESTION_WORDS = 5  # words: who gives more asks, and need not have said each of them


class Unit(msgspec.Struct, frozen=True):
    """One word to be found, in lower case. `forms` are the words of the index it may stand as: its stem in each language at hand;
    `root` the letters that all its forms begin with. `spaced` is False for scripts without spaces, whose words begin anywhere."""

    word: str
    forms: tuple[str, ...]
    root: str
    spaced: bool = True

    @property
    def expression(self) -> str:
        """FTS5's form of it, for the table of stems."""
        if self.spaced:
            return "(" + " OR ".join(f'"{form}"' for form in self.forms) + ")"
        return "(" + " AND ".join(f'"{character}"' for character in self.word) + ")"


class Query(msgspec.Struct, frozen=True):
    """`terms` as typed, what stands in double quotes as one; `phrases` those that were quoted; `units` the words worth looking
    for, each once. `question`: in whole words, so that a message need not hold them all. `typed`: the last word as it stands,
    which may be the beginning of one."""

    terms: tuple[str, ...]
    units: tuple[Unit, ...]
    phrases: tuple[str, ...] = ()
    question: bool = False
    typed: str = ""


def parse(text: str, languages: Sequence[str] = ("english",)) -> Query:
    """The query in a text, its words in these languages and its own. Without a letter or digit in it there are no terms, and
    nothing is looked for."""
    found = [(quoted.strip(), bare) for quoted, bare in _TERM.findall(text.replace("\0", " "))]
    kept = [(quoted, bare) for quoted, bare in found if re.search(r"[^\W_]", quoted or bare)]
    terms = tuple(quoted or bare for quoted, bare in kept)
    mine = language_of(text)
    spoken = tuple(dict.fromkeys([mine, *languages]))
    every = list(dict.fromkeys(unit for term in terms for unit in _units(term, spoken)))
    telling = [unit for unit in every if not any(empty(unit.word, language) for language in {mine, "english"})]
    phrases = tuple(quoted for quoted, _ in kept if quoted)
    asks = not phrases and (len(telling) < len(every) or len(telling) > _MIN_QUESTION_WORDS) and len(telling) > 1
    typed = kept[-1][1].lower() if kept and kept[-1][1].isalnum() and not text[-1:].isspace() else ""
    return Query(terms, tuple(telling or every), phrases, asks, typed if len(typed) > 2 else "")


def phrase(term: str) -> str:
    """FTS5's expression for words that stand together, for the table of words."""
    return '"' + apart(term).replace('"', " ") + '"'


def _units(term: str, languages: Sequence[str]) -> Iterator[Unit]:
    for name in _QUERY_WORD.findall(term):
        if not _RUN.fullmatch(name):
            for word in forms(name, ""):
                stems = tuple(dict.fromkeys(stem(word, language) for language in languages))
                yield Unit(word, (*stems, word) if word not in stems else stems, _shared(word, stems))
        elif len(name) <= 3:
            yield Unit(name, (name,), name, spaced=False)
        else:  # a phrase without spaces is rarely said twice alike; two characters of it are
            yield from (Unit(pair, (pair,), pair, spaced=False) for pair in map("".join, pairwise(name)))


def _shared(word: str, stems: Sequence[str]) -> str:
    """The letters that the word and its stems begin with."""
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
    """The words of a query without the filters typed in it, and the scope with them: they go before what it said. One without a
    value leaves nothing out, since it may still be being typed. `now` is in the time zone that days are meant in. Raises
    UsageError for a value that is none."""
    for name, typed in _FILTER.findall(query):
        if value := typed.strip('"'):
            scope = msgspec.structs.replace(scope, **_field(name, value, now))
    return " ".join(_FILTER.sub(" ", query).split()) + " " * query[-1:].isspace(), scope


def _field(name: str, value: str, now: datetime) -> dict[str, str]:
    if name == "who":
        if value.lower() not in _WHO:
            raise UsageError(f"who:{value} is nobody.", "Give who:me, who:agent, who:tool or who:system.")
        return {"role": _WHO[value.lower()]}
    return {name: value if name in {"tool", "file"} else _time(name, value, now)}


def _time(name: str, value: str, now: datetime) -> str:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    ago = re.fullmatch(r"(\d{1,4})([hdw])", value)
    date = re.fullmatch(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", value)
    try:
        if ago:
            found = now - int(ago[1]) * _UNITS[ago[2]]
        elif value in {"today", "yesterday"}:
            found = today - timedelta(days=value == "yesterday")
        elif date:
            found = today.replace(year=int(date[1]), month=int(date[2] or 1), day=int(date[3] or 1))
        else:
            raise ValueError
    except (ValueError, OverflowError):
        raise UsageError(
            f"{name}:{value} is no time.", f"Give a day such as {name}:2026-11-01, or {name}:3d, 12h, 2w, today."
        ) from None
    return found.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
