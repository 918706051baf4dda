"""How well a message answers a query: by its words and its neighbours' and its session's first, which the index alone can tell of
thousands; then by its text, which is read of the best few. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log

import msgspec

from ctxchat.core.stems import fold, stem
from ctxchat.storage.query import Query, Unit

_PROXIMITY_CHARS = 300
"""Characters within which words belong together."""

_MAX_PLACES_OF_A_WORD = 200
"""Places of one word in a message that are looked at."""

_MAX_FOLDED_CHARS = 50_000
"""Characters that are looked at without regard to accents, where nothing was found with it."""

_MAX_QUESTION_CHARS = 400
"""Characters of a message that may be nothing but a question."""

_SEARCHING = frozenset({"grep", "search", "find", "glob", "list", "ls", "rg"})

_NEARLY, _INSIDE = 0.85, 0.5
"""What another form of a word, and a part of one, are worth."""

_LONG, _TIMES = 400, 4.0
"""Tokens at which a message stops counting for the mean length, and how many times that a long one is taken for at most."""

_COMPARED, _ALIKE_FROM, _ALIKE = 20_000, 40, 0.6
"""Characters that are compared, words below which two texts are not, and the share of runs of three words that
makes them alike."""

_SPEAKER = re.compile(r"\s*(\w+(?: \w+)?): ")


class Weights(msgspec.Struct, frozen=True):
    """What counts how much. docs/search.md says what each does to the benchmark.

    `length`: how much a long message loses (BM25's b, at most to four times the mean length), `saturation` BM25's k1. `beside`:
    what a word counts for the messages one and two places from the one it stands in, where they lack it. `session` and `whole`:
    the mean of the session's three best messages, and the session taken as one text. `together`: words within 300 characters.
    `spelt`: a name or the whole query as it was typed. `named`: the query names who speaks. `person`: a short message of the
    person. What only repeats or asks keeps this share: `echo`, `searching`, `question`, `empty`.
    """

    length: float = 0.3
    saturation: float = 1.2
    beside: tuple[float, ...] = (0.6, 0.4)
    session: float = 0.6
    whole: float = 0.6
    together: float = 0.3
    spelt: float = 0.35
    named: float = 0.2
    person: float = 0.1
    echo: float = 0.3
    searching: float = 0.5
    question: float = 0.5
    empty: float = 0.5


WEIGHTS = Weights()


class MessagePlace(msgspec.Struct, frozen=True):
    """Where a message stands: its row, its session, and its length in tokens."""

    row: int
    session: str
    tokens: int


def scored(
    held: Mapping[Unit, set[int]],
    places: Sequence[MessagePlace],
    rarity: Mapping[Unit, float],
    weigh: Weights,
    *,
    sessions: bool,
) -> dict[int, float]:
    """The score of each of these places by the rows that hold each word, 1 for one that holds all in a message of mean length.
    Rows of a session are counted through as it was said. `sessions`: there are several, and they count as well."""
    at = {place.row: place for place in places}
    mean = sum(min(place.tokens, _LONG) for place in places) / max(1, len(places))
    ideal = sum(rarity.values()) or 1.0
    k, b = weigh.saturation, weigh.length
    worth = {
        place.row: (k + 1) / (1 + k * (1 - b + b * min(place.tokens / max(mean, 1), _TIMES))) / ideal
        for place in places
    }
    beside = list(enumerate(weigh.beside, 1))
    total: dict[int, float] = defaultdict(float)
    own: dict[int, float] = defaultdict(float)
    for unit, rows in held.items():
        best: dict[int, float] = {}
        for row in rows & at.keys():
            value = rarity[unit] * worth[row]
            own[row] += value
            best[row] = max(best.get(row, 0.0), value)
            for away, share in beside:
                for other in (row - away, row + away):
                    if other in at and at[other].session == at[row].session:
                        best[other] = max(best.get(other, 0.0), share * value)
        for row, value in best.items():
            total[row] += value
    if sessions:
        bonus = _of_sessions(held, at, own, weigh, ideal)
        return {row: value + bonus.get(at[row].session, 0.0) for row, value in total.items()}
    return dict(total)


def _of_sessions(
    held: Mapping[Unit, set[int]],
    at: Mapping[int, MessagePlace],
    own: Mapping[int, float],
    weigh: Weights,
    ideal: float,
) -> dict[str, float]:
    """What each session adds to all of its messages."""
    best: dict[str, list[float]] = defaultdict(list)
    for row, value in own.items():
        best[at[row].session].append(value)
    bonus = {session: weigh.session * sum(sorted(values)[-3:]) / 3 for session, values in best.items()}
    length = Counter[str]()
    for place in at.values():
        length[place.session] += place.tokens
    mean = sum(length.values()) / max(1, len(length))
    for rows in held.values():
        times = Counter(at[row].session for row in rows & at.keys())
        rare = rarity_of(len(times), len(length))
        for session, many in times.items():
            norm = 1.2 * (0.25 + 0.75 * length[session] / max(mean, 1))
            bonus[session] += weigh.whole * rare * many * 2.2 / (many + norm) / ideal
    return bonus


def rarity_of(holding: int, total: int) -> float:
    """BM25's: the rarer a word among all, the more it says. Never below 0."""
    return log(1 + (max(total - holding, 0) + 0.5) / (holding + 0.5))


def near_duplicates(texts: Iterable[tuple[int, str]]) -> dict[int, int]:
    """Which of these long texts, in order, says nearly the same as an earlier one: by their keys."""
    seen: list[tuple[int, frozenset[int]]] = []
    same: dict[int, int] = {}
    for key, text in texts:
        words = re.findall(r"\w+", text[:_COMPARED].lower())
        if len(words) < _ALIKE_FROM:
            continue
        runs = frozenset(hash(run) for run in zip(words, words[1:], words[2:], strict=False))
        first = next((k for k, others in seen if len(runs & others) >= _ALIKE * len(runs | others)), None)
        if first is None:
            seen.append((key, runs))
        else:
            same[key] = first
    return same


class Candidate(msgspec.Struct, frozen=True):
    """A message that may be what is looked for. `rank` is its score by the index alone; `kind` its group's."""

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
        return self.role == "user" and len(self.text) < _MAX_QUESTION_CHARS and self.text.rstrip().endswith(("?", "？"))

    @property
    def searching(self) -> bool:
        """It only asks: a call of a tool that searches, or its short word that there is nothing."""
        names = {part for name in self.tool.lower().split() for part in name.split("_")}
        asks = self.role == "assistant" or (self.role == "tool" and len(self.text) < _MAX_QUESTION_CHARS)
        return asks and bool(names & _SEARCHING)


class Match(msgspec.Struct, frozen=True):
    """A candidate weighed. `start` is where the best passage begins, in characters of its text; `empty` that it says no more than
    the query. `alike` are messages that say nearly the same, by id; `again` that it is one of them, and another stands for it."""

    candidate: Candidate
    score: float
    start: int = 0
    empty: bool = False
    alike: tuple[str, ...] = ()
    again: bool = False

    @property
    def good(self) -> bool:
        """It may be an answer, not only the question again."""
        return not (self.empty or self.candidate.echo or self.candidate.searching)


def ranked(
    candidates: Sequence[Candidate],
    query: Query,
    worth: Mapping[Unit, float],
    weights: Weights,
    *,
    answers: bool = False,
) -> list[Match]:
    """The candidates, the best first; of equals the newer. With `answers`, what only asks goes to the end."""
    matches = [rank_candidate(candidate, query, worth, weights, answers=answers) for candidate in candidates]
    return sorted(matches, key=lambda m: (-round(m.score, 3), -m.candidate.id))


def rank_candidate(
    candidate: Candidate, query: Query, worth: Mapping[Unit, float], weights: Weights, *, answers: bool = False
) -> Match:
    """Its rank, and what its text says: words close together, exact spelling, and who said it."""
    lower = candidate.text.lower()
    places = _places(lower, worth)
    if not places and not lower.isascii():
        places = _places(fold(lower[:_MAX_FOLDED_CHARS]), worth)
    together, start = _best(places)
    score = candidate.rank + weights.together * together + weights.spelt * _exact(lower, query)
    speaker = _SPEAKER.match(lower)
    score *= 1 + weights.named * bool(speaker and speaker[1] in {unit.word for unit in query.units})
    empty = _says_no_more(lower, query)
    for holds, share in (
        (candidate.echo, weights.echo),
        (candidate.searching, weights.searching),
        (empty, weights.empty),
        (answers and candidate.question, weights.question),
    ):
        score *= share if holds else 1.0
    if answers and candidate.kind == "user" and len(lower) < _MAX_QUESTION_CHARS and not candidate.question:
        score *= 1 + weights.person * together
    return Match(candidate, score, start, empty)


def _places(lower: str, worth: Mapping[Unit, float]) -> list[tuple[int, Unit, float]]:
    """Where the words stand, in order, with what each place is worth."""
    found: list[tuple[int, Unit, float]] = []
    for unit, value in worth.items():
        found += [(place, unit, value * share) for place, share in _of_unit(lower, unit)]
    return sorted(found, key=lambda p: p[0])


def _of_unit(lower: str, unit: Unit) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    inside = -1
    place = lower.find(unit.root)
    while place >= 0 and len(found) < _MAX_PLACES_OF_A_WORD:
        if not unit.spaced:
            found.append((place, 1.0))
        elif place and lower[place - 1].isalnum():
            inside = place
        elif share := _as(lower, place, unit):
            found.append((place, share))
        else:
            inside = place
        place = lower.find(unit.root, place + 1)
    return found if found or inside < 0 else [(inside, _INSIDE)]


def _as(lower: str, place: int, unit: Unit) -> float:
    """What the word at this place is worth as that word: all, or nearly as much as another form of it."""
    end = place + len(unit.root)
    while end < len(lower) and lower[end].isalnum() and end - place < 60:
        end += 1
    word = lower[place:end]
    return 1.0 if word == unit.word else _NEARLY * (stem(word) in unit.forms)


def _best(places: Sequence[tuple[int, Unit, float]]) -> tuple[float, int]:
    """The most that stands within `_PROXIMITY_CHARS` characters, and where it begins."""
    best, start, first = 0.0, places[0][0] if places else 0, 0
    held: dict[Unit, list[float]] = {}
    total = 0.0
    for place, unit, value in places:
        mine = held.setdefault(unit, [])
        total += max(0.0, value - max(mine, default=0.0))
        mine.append(value)
        while place - places[first][0] > _PROXIMITY_CHARS:
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
    return 0.6 * spelt + (0.4 if len(query.terms) > 1 and " ".join(query.terms).lower() in lower else 0.0)


def _says_no_more(lower: str, query: Query) -> bool:
    if len(query.units) < 3 or len(lower) > _MAX_QUESTION_CHARS:
        return False
    mine = {unit.word for unit in query.units} | {term.lower().strip("?!.,;:") for term in query.terms}
    return len({word.strip("?!.,;:\"'{}()[]") for word in lower.split()} - mine) < 3
