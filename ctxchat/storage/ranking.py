"""How well a message answers a query: how much of it stands close together, how exactly, and who said it. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log

import msgspec

from ctxchat.storage.query import Query, Unit

_SPAN = 300
"""Characters within which words belong together."""

_PLACES = 200
"""Places of one word in a message that are looked at."""

_FOLDED = 50_000
"""Characters that are looked at without regard to accents, where nothing was found with it."""

_SHORT = 400
"""Characters of a message that may be nothing but a question."""

_SEARCHING = frozenset({"grep", "search", "find", "glob", "list", "ls", "rg"})

_NEARLY, _INSIDE = 0.85, 0.5
"""What another form of a word, and a part of one, are worth."""


class Candidate(msgspec.Struct, frozen=True):
    """A message that may be what is looked for. `rank` is the index's own, the smaller the better; `kind` its group's."""

    id: int
    session: str
    seq: int
    role: str
    text: str
    tokens: int
    at: str
    place: int
    tool: str
    group: str
    kind: str
    turn: int
    title: str
    rank: float = 0.0

    @property
    def echo(self) -> bool:
        """It says again what was said elsewhere: something recalled, or a note that quotes."""
        return self.tool == "recall" or (self.kind == "note" and self.role == "user")

    @property
    def question(self) -> bool:
        """A person asks: the answer is elsewhere."""
        return self.role == "user" and len(self.text) < _SHORT and self.text.rstrip().endswith(("?", "？"))

    @property
    def searching(self) -> bool:
        """It only asks: a call of a tool that searches, or its short word that there is nothing."""
        names = {part for name in self.tool.lower().split() for part in name.split("_")}
        asks = self.role == "assistant" or (self.role == "tool" and len(self.text) < _SHORT)
        return asks and bool(names & _SEARCHING)


class Match(msgspec.Struct, frozen=True):
    """A candidate weighed. `start` is where the best passage begins, in characters of its text; `empty` that it says no more than
    the query."""

    candidate: Candidate
    score: float
    start: int = 0
    empty: bool = False

    @property
    def good(self) -> bool:
        """It may be an answer, not only the question again."""
        return not (self.empty or self.candidate.echo or self.candidate.searching)


def weights(units: Sequence[Unit], seen: Mapping[Unit, int], total: int) -> dict[Unit, float]:
    """What each word is worth, adding up to 1: the rarer it is among `total` messages, the more."""
    raw = {unit: log(1 + (total + 1) / (1 + seen.get(unit, 0))) for unit in units}
    whole = sum(raw.values()) or 1.0
    return {unit: value / whole for unit, value in raw.items()}


def ranked(
    candidates: Sequence[Candidate], query: Query, worth: Mapping[Unit, float], *, answers: bool = False
) -> list[Match]:
    """The candidates, the best first; of equals the one the index likes better, then the newer. With `answers`, what only asks
    goes to the end."""
    matches = [weigh(candidate, query, worth, answers=answers) for candidate in candidates]
    return sorted(matches, key=lambda m: (-round(m.score, 3), m.candidate.rank, -m.candidate.id))


def weigh(candidate: Candidate, query: Query, worth: Mapping[Unit, float], *, answers: bool = False) -> Match:
    """Coverage of the words in the best passage and in all of it, exact spelling, and who said it."""
    lower = candidate.text.lower()
    places = _places(lower, worth)
    if not places and not lower.isascii():
        places = _places(fold(lower[:_FOLDED]), worth)
    together, start = _best(places)
    anywhere = sum({unit: value for _, unit, value in sorted(places, key=lambda p: p[2])}.values())
    score = 0.65 * together + 0.35 * anywhere + _exact(lower, query)
    empty = _says_no_more(lower, query)
    score -= 0.6 * candidate.echo + 0.25 * candidate.searching + 0.4 * empty
    score -= 0.4 * (answers and candidate.question)
    return Match(candidate, score, start, empty)


def fold(text: str) -> str:
    """The text without accents, of the same length."""
    return text if text.isascii() else "".join(map(_base, text))


@lru_cache(maxsize=4096)
def _base(character: str) -> str:
    return unicodedata.normalize("NFD", character)[0]


def _places(lower: str, worth: Mapping[Unit, float]) -> list[tuple[int, Unit, float]]:
    """Where the words stand, in order, with what each place is worth."""
    found: list[tuple[int, Unit, float]] = []
    for unit, value in worth.items():
        found += [(place, unit, value * share) for place, share in _of_unit(lower, unit)]
    return sorted(found, key=lambda p: p[0])


def _of_unit(lower: str, unit: Unit) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    inside = -1
    place = lower.find(unit.stem)
    while place >= 0 and len(found) < _PLACES:
        if not unit.spaced:
            found.append((place, 1.0))
        elif place and lower[place - 1].isalnum():
            inside = place
        else:
            end = place + len(unit.word)
            same = lower.startswith(unit.word, place) and not lower[end : end + 1].isalnum()
            found.append((place, 1.0 if same else _NEARLY))
        place = lower.find(unit.stem, place + 1)
    return found if found or inside < 0 else [(inside, _INSIDE)]


def _best(places: Sequence[tuple[int, Unit, float]]) -> tuple[float, int]:
    """The most that stands within `_SPAN` characters, and where it begins."""
    best, start, first = 0.0, places[0][0] if places else 0, 0
    held: dict[Unit, list[float]] = {}
    total = 0.0
    for place, unit, value in places:
        mine = held.setdefault(unit, [])
        total += max(0.0, value - max(mine, default=0.0))
        mine.append(value)
        while place - places[first][0] > _SPAN:
            _, gone, its = places[first]
            rest = held[gone]
            rest.pop(0)
            total -= max(0.0, its - max(rest, default=0.0))
            first += 1
        if total > best + 1e-9:
            best, start = total, places[first][0]
    return best, start


def _exact(lower: str, query: Query) -> float:
    """The whole query as it was typed, and names with signs in them (a path, a flag) spelt as they are."""
    names = [term.lower() for term in query.terms if not term.isalnum() and len(term) > 3]
    spelt = sum(name in lower for name in names) / len(names) if names else 0.0
    return 0.2 * spelt + (0.15 if len(query.terms) > 1 and " ".join(query.terms).lower() in lower else 0.0)


def _says_no_more(lower: str, query: Query) -> bool:
    if len(query.units) < 3 or len(lower) > _SHORT:
        return False
    mine = {unit.word for unit in query.units} | {term.lower().strip("?!.,;:") for term in query.terms}
    return len({word.strip("?!.,;:\"'{}()[]") for word in lower.split()} - mine) < 3
