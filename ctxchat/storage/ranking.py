"""Scores how well messages answer a query, in two steps. First by the words of the message, its neighbours and its session, which
the index gives for thousands of messages; then by the texts of the best few. Pure functions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log

import msgspec

from ctxchat.core.stems import fold, stem
from ctxchat.storage.query import Query, Unit

_PROXIMITY_CHARS = 300
"""Words of a query within this many characters count as close together."""

_MAX_POSITIONS_OF_A_WORD = 200
"""Occurrences of one word in a message that are considered."""

_MAX_FOLDED_CHARS = 50_000
"""Characters of a text that are searched again without accents, where nothing was found with them."""

_MAX_QUESTION_CHARS = 400
"""A message shorter than this can count as a mere question, or as a mere repetition of the query."""

_SEARCHING = frozenset({"grep", "search", "find", "glob", "list", "ls", "rg"})

_OTHER_FORM_SHARE, _PART_SHARE = 0.85, 0.5
"""Weight of another form of a word, and of a part of a longer word; the word itself has 1."""

_MAX_COUNTED_TOKENS, _MAX_TIMES_MEAN = 400, 4.0
"""Tokens of a message that count at most for the mean length, and the most that a message counts as, in mean lengths."""

_COMPARED_CHARS, _MIN_COMPARED_WORDS, _MIN_SHARED = 20_000, 40, 0.6
"""For near duplicates: characters of a text that are compared, words below which a text is not compared, and the share of runs of
three words that two near duplicates have in common."""

_SPEAKER = re.compile(r"\s*(\w+(?: \w+)?): ")


class Weights(msgspec.Struct, frozen=True):
    """The weights of everything that counts for a score. docs/search.md says what each does to the benchmark.

    `length` is BM25's b, the penalty for long messages (limited to four times the mean length), and `saturation` BM25's k1.
    `beside` is the share of a word's value that the messages one and two away from its message get where they lack it. `session`
    weighs the mean of the session's three best messages, and `whole` the session as a single text. `together` weighs words within
    300 characters, `spelt` a name or the whole query exactly as typed, `named` a query that names the speaker, and `person` a
    short message of the person. `echo`, `searching`, `question` and `empty` are the shares of their scores that messages keep
    which only repeat or ask.
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
    """A message without its text: its row id, its session, and its length in tokens."""

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
    """The scores of messages by row id, from the rows `held` that contain each word: 1 for a message of mean length with all
    words. Successive row ids within a session are neighbours. With `sessions`, the score of its session counts for each message
    too."""
    place_of = {place.row: place for place in places}
    mean = sum(min(place.tokens, _MAX_COUNTED_TOKENS) for place in places) / max(1, len(places))
    total_rarity = sum(rarity.values()) or 1.0
    k, b = weigh.saturation, weigh.length
    length_factor = {
        place.row: (k + 1) / (1 + k * (1 - b + b * min(place.tokens / max(mean, 1), _MAX_TIMES_MEAN))) / total_rarity
        for place in places
    }
    neighbour_shares = list(enumerate(weigh.beside, 1))
    total: dict[int, float] = defaultdict(float)
    own_values: dict[int, float] = defaultdict(float)
    for unit, rows in held.items():
        best_values: dict[int, float] = {}
        for row in rows & place_of.keys():
            value = rarity[unit] * length_factor[row]
            own_values[row] += value
            best_values[row] = max(best_values.get(row, 0.0), value)
            for distance, share in neighbour_shares:
                for neighbour in (row - distance, row + distance):
                    if neighbour in place_of and place_of[neighbour].session == place_of[row].session:
                        best_values[neighbour] = max(best_values.get(neighbour, 0.0), share * value)
        for row, value in best_values.items():
            total[row] += value
    if sessions:
        bonus = _session_scores(held, place_of, own_values, weigh, total_rarity)
        return {row: value + bonus.get(place_of[row].session, 0.0) for row, value in total.items()}
    return dict(total)


def _session_scores(
    held: Mapping[Unit, set[int]],
    place_of: Mapping[int, MessagePlace],
    own_values: Mapping[int, float],
    weights: Weights,
    total_rarity: float,
) -> dict[str, float]:
    """The score that each session adds to all of its messages."""
    message_values: dict[str, list[float]] = defaultdict(list)
    for row, value in own_values.items():
        message_values[place_of[row].session].append(value)
    scores = {session: weights.session * sum(sorted(values)[-3:]) / 3 for session, values in message_values.items()}
    length = Counter[str]()
    for place in place_of.values():
        length[place.session] += place.tokens
    mean = sum(length.values()) / max(1, len(length))
    for rows in held.values():
        messages_with_word = Counter(place_of[row].session for row in rows & place_of.keys())
        rarity = rarity_of(len(messages_with_word), len(length))
        for session, number in messages_with_word.items():
            norm = 1.2 * (0.25 + 0.75 * length[session] / max(mean, 1))
            scores[session] += weights.whole * rarity * number * 2.2 / (number + norm) / total_rarity
    return scores


def rarity_of(holding: int, total: int) -> float:
    """BM25's inverse document frequency of a word that `holding` of `total` messages contain. Never below 0."""
    return log(1 + (max(total - holding, 0) + 0.5) / (holding + 0.5))


def near_duplicates(texts: Iterable[tuple[int, str]]) -> dict[int, int]:
    """The near duplicates among long texts with keys: the key of each one that says nearly the same as an earlier one,
    with the key of that one."""
    seen: list[tuple[int, frozenset[int]]] = []
    duplicate_of: dict[int, int] = {}
    for key, text in texts:
        words = re.findall(r"\w+", text[:_COMPARED_CHARS].lower())
        if len(words) < _MIN_COMPARED_WORDS:
            continue
        runs = frozenset(hash(run) for run in zip(words, words[1:], words[2:], strict=False))
        earlier = next((k for k, others in seen if len(runs & others) >= _MIN_SHARED * len(runs | others)), None)
        if earlier is None:
            seen.append((key, runs))
        else:
            duplicate_of[key] = earlier
    return duplicate_of


class Candidate(msgspec.Struct, frozen=True):
    """A message that may answer the query. `rank` is its score by the index alone, `kind` that of its group."""

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
        """Whether it repeats other messages: a result of recall, or a note that quotes."""
        return self.tool == "recall" or (self.kind == "note" and self.role == "user")

    @property
    def question(self) -> bool:
        """Whether it is a question of the person, so that the answer is elsewhere."""
        return self.role == "user" and len(self.text) < _MAX_QUESTION_CHARS and self.text.rstrip().endswith(("?", "？"))

    @property
    def searching(self) -> bool:
        """Whether it only searches: a call of a tool that searches, or its short result, which says that nothing was found."""
        names = {part for name in self.tool.lower().split() for part in name.split("_")}
        asks = self.role == "assistant" or (self.role == "tool" and len(self.text) < _MAX_QUESTION_CHARS)
        return asks and bool(names & _SEARCHING)


class Match(msgspec.Struct, frozen=True):
    """A candidate with its score. `start` is the offset of its best passage, in characters; `empty` that it says no more than the
    query. `alike` are the ids of its near duplicates; `again` marks a near duplicate that another match stands for."""

    candidate: Candidate
    score: float
    start: int = 0
    empty: bool = False
    alike: tuple[str, ...] = ()
    again: bool = False

    @property
    def good(self) -> bool:
        """Whether it may be an answer, and does not only repeat the question."""
        return not (self.empty or self.candidate.echo or self.candidate.searching)


def ranked(
    candidates: Sequence[Candidate],
    query: Query,
    worth: Mapping[Unit, float],
    weights: Weights,
    *,
    answers: bool = False,
) -> list[Match]:
    """The candidates as matches, the best first, of equal ones the newer. With `answers`, questions lose score."""
    matches = [rank_candidate(candidate, query, worth, weights, answers=answers) for candidate in candidates]
    return sorted(matches, key=lambda m: (-round(m.score, 3), -m.candidate.id))


def rank_candidate(
    candidate: Candidate, query: Query, worth: Mapping[Unit, float], weights: Weights, *, answers: bool = False
) -> Match:
    """Score a candidate by its rank and its text: words close together, exact spelling, and the speaker."""
    lower = candidate.text.lower()
    places = _positions(lower, worth)
    if not places and not lower.isascii():
        places = _positions(fold(lower[:_MAX_FOLDED_CHARS]), worth)
    together, start = _densest_window(places)
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


def _positions(lower: str, worth: Mapping[Unit, float]) -> list[tuple[int, Unit, float]]:
    """The positions of all words in a text, in order, each with its word and value."""
    positions: list[tuple[int, Unit, float]] = []
    for unit, value in worth.items():
        positions += [(place, unit, value * share) for place, share in _positions_of_word(lower, unit)]
    return sorted(positions, key=lambda p: p[0])


def _positions_of_word(lower: str, unit: Unit) -> list[tuple[int, float]]:
    """The positions of one word, each with the share of its value; parts of longer words count only where it stands nowhere
    else."""
    positions: list[tuple[int, float]] = []
    part_position = -1
    position = lower.find(unit.root)
    while position >= 0 and len(positions) < _MAX_POSITIONS_OF_A_WORD:
        if not unit.spaced:
            positions.append((position, 1.0))
        elif position and lower[position - 1].isalnum():
            part_position = position
        elif share := _form_share(lower, position, unit):
            positions.append((position, share))
        else:
            part_position = position
        position = lower.find(unit.root, position + 1)
    return positions if positions or part_position < 0 else [(part_position, _PART_SHARE)]


def _form_share(lower: str, place: int, unit: Unit) -> float:
    """The share of its value for the word at this position: 1 for the word itself, less for another form of it, 0 for another
    word."""
    end = place + len(unit.root)
    while end < len(lower) and lower[end].isalnum() and end - place < 60:
        end += 1
    word = lower[place:end]
    return 1.0 if word == unit.word else _OTHER_FORM_SHARE * (stem(word) in unit.forms)


def _densest_window(places: Sequence[tuple[int, Unit, float]]) -> tuple[float, int]:
    """The highest total value of different words within `_PROXIMITY_CHARS` characters, and the position where they begin."""
    best, start, first = 0.0, places[0][0] if places else 0, 0
    held: dict[Unit, list[float]] = {}
    total = 0.0
    for place, unit, value in places:
        values = held.setdefault(unit, [])
        total += max(0.0, value - max(values, default=0.0))
        values.append(value)
        while place - places[first][0] > _PROXIMITY_CHARS:
            _, left_unit, left_value = places[first]
            remaining = held[left_unit]
            remaining.pop(0)
            total -= max(0.0, left_value - max(remaining, default=0.0))
            first += 1
        if total > best + 1e-9:
            best, start = total, places[first][0]
    return best, start


def _exact(lower: str, query: Query) -> float:
    """How exactly the text has what was typed, from 0 to 1: names with punctuation in them (a path, a flag), and the whole
    query."""
    names = [term.lower() for term in query.terms if not term.isalnum() and len(term) > 3]
    spelt = sum(name in lower for name in names) / len(names) if names else 0.0
    return 0.6 * spelt + (0.4 if len(query.terms) > 1 and " ".join(query.terms).lower() in lower else 0.0)


def _says_no_more(lower: str, query: Query) -> bool:
    """Whether a short text has hardly any word that the query lacks."""
    if len(query.units) < 3 or len(lower) > _MAX_QUESTION_CHARS:
        return False
    mine = {unit.word for unit in query.units} | {term.lower().strip("?!.,;:") for term in query.terms}
    return len({word.strip("?!.,;:\"'{}()[]") for word in lower.split()} - mine) < 3
