"""Lines with their places, as tools report them, and which of them answer a topic best.

Pure arithmetic on words: how rare a word is among what was found, how many fall together, what kind of file it is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ctxchat.models.offline.words import Topic, terms

REACH = 2
"""Lines above and below that count as the same place."""

MOST_LINES = 20_000
LONG_LINE = 2_000

_HIT = re.compile(r"^(?P<path>(?:[A-Za-z]:[\\/])?[^:\n]{1,400}):(?P<number>\d{1,8}):(?P<text>.*)$")
_NUMBERED = re.compile(r"^\s*(\d{1,8})(?:\t|[│|→:] ?| {2})(.*)$|^\s*(\d{1,8})$")
_DEFINES = re.compile(
    r"^\s*(?:export |public |static |async |pub )*(?:def|class|function|fn|func|const|let|var|type|struct)\b"
    r"|^\s*[\w.\"'-]+\s*(?::\s*\w+\s*)?[:=](?!=)|#define"
)
_COMMAND = re.compile(
    r"^\s*(?:\$ |> |```|- run:|[\w-]+:\s*$)|\b(?:pytest|npm|yarn|pnpm|make|cargo|go (?:test|run|build)|tox|uv|pip|docker|\./\w)"
)
_IMPORT = re.compile(r"\s*(?:from\s+\S+\s+import\b|import\b|#include\b|use\s+\w+::|(?:const|var)\s.*\brequire\()")
_NAMES = re.compile(r"\s*(?:export |public |async |pub )*(?:def|class|function|fn|func|struct)\b|#{1,4} ")
_POOR = re.compile(
    r"(?:^|/)(?:[\w.-]*lock(?:\.json|\.yaml)?|changelog[\w.]*|license[\w.]*|.*\.min\.\w+|.*\.svg|node_modules/.*)$",
    re.I,
)
_TESTS = re.compile(r"(?:^|/)(?:tests?|spec)(?:/|_|\.)|_test\.\w+$", re.I)
_PROSE = re.compile(r"\.(?:md|MD|markdown|rst|txt|adoc)$|(?:^|/)[A-Z]{4,}$")


class Line(msgspec.Struct, frozen=True):
    """One line of a file. `number` from 1."""

    path: str
    number: int
    text: str


class Wish(msgspec.Struct, frozen=True):
    """What makes a line fit beyond its words: `defines` (where something is set), `figures` (how many, when), `command` (how to
    run), `tests` (the question is about tests)."""

    defines: bool = False
    figures: bool = False
    command: bool = False
    tests: bool = False


class Passage(msgspec.Struct, frozen=True):
    """A place worth quoting: its best line, the lines around it that are known, and the terms it holds."""

    line: Line
    around: tuple[Line, ...]
    score: float
    matched: frozenset[str]

    @property
    def ref(self) -> str:
        """`path:line`."""
        return f"{self.line.path}:{self.line.number}"


def hits(output: str) -> list[Line]:
    """The lines of a grep's output that look like `path:line:text`."""
    found: list[Line] = []
    for row in output.split("\n")[:MOST_LINES]:
        if match := _HIT.match(row[:LONG_LINE]):
            path = match["path"].strip().removeprefix("./")
            found.append(Line(path, int(match["number"]), match["text"].rstrip("\r")))
    return found


def file_lines(output: str, path: str, start: int = 1) -> list[Line]:
    """The lines of a file as a tool printed it, numbered by the tool where it did, else from `start`."""
    rows = [row[:LONG_LINE].rstrip("\r") for row in output.split("\n")[:MOST_LINES]]
    numbered = [(m, row) for row in rows if (m := _NUMBERED.match(row))]
    path = path.removeprefix("./")
    if len(numbered) * 2 > len([r for r in rows if r.strip()]):
        return [Line(path, int(m[1] or m[3]), m[2] or "") for m, _ in numbered]
    return [Line(path, start + i, row) for i, row in enumerate(rows)]


def is_prose(path: str) -> bool:
    """True for a file people wrote to be read."""
    return bool(_PROSE.search(path))


class Ranking:
    """The lines of a pool, weighed for a topic. `weights` gives terms of lesser weight (of an earlier question, or synonyms)."""

    def __init__(
        self,
        topic: Topic,
        pool: Iterable[Line],
        *,
        weights: Mapping[str, float] | None = None,
        wish: Wish | None = None,
    ) -> None:
        self._wish = wish or Wish()
        self._own = frozenset(topic.terms)
        self._wanted = dict(weights or {}) | dict.fromkeys(topic.terms, 1.0)
        self._phrases = [tuple(terms(p)) for p in topic.phrases]
        self._names = [n.casefold() for n in topic.names]
        self._lines = {(line.path, line.number): line for line in pool}
        self._terms = {
            key: frozenset(terms(line.text[:LONG_LINE])) & self._wanted.keys() for key, line in self._lines.items()
        }
        self._paths = {path: frozenset(terms(path)) & self._wanted.keys() for path, _ in self._lines}
        self._rarity = self._rarities()

    def best(self, most: int) -> list[Passage]:
        """The best places, the best first, no two of them within a few lines of each other."""
        scored = [(self._score(key), key) for key in self._lines if self._terms[key] or self._named(key)]
        scored.sort(key=lambda s: (-s[0], s[1]))
        chosen: list[Passage] = []
        for score, key in scored:
            if len(chosen) == most:
                break
            if score > 0 and not any(_near(key, (p.line.path, p.line.number)) for p in chosen):
                chosen.append(self._passage(key, score))
        return chosen

    def coverage(self, passage: Passage) -> float:
        """The share of the topic's own weight that a passage holds, 0 to 1."""
        own = self._own or self._wanted.keys()
        whole = sum(self._weight(t) for t in own)
        return sum(self._weight(t) for t in passage.matched & own) / whole if whole else 1.0

    def _weight(self, term: str) -> float:
        return self._wanted[term] * self._rarity[term]

    def _rarities(self) -> dict[str, float]:
        counts = Counter(t for found in self._terms.values() for t in found)
        return {t: math.log(2 + len(self._lines) / (1 + counts[t])) for t in self._wanted}

    def _score(self, key: tuple[str, int]) -> float:
        path, number = key
        line, here = self._lines[key], self._terms[key]
        near = self._near_terms(path, number) - here
        beside = self._paths[path] - here - near
        score = sum(self._weight(t) for t in here)
        score += 0.5 * sum(self._weight(t) for t in near) + 0.3 * sum(self._weight(t) for t in beside)
        score += self._phrase_bonus(line.text) + 2.0 * self._named(key)
        if self._own and not self._own & here and not self._named(key):
            score *= 0.4  # only words of an earlier question, or of like meaning
        return score * self._fitness(line)

    def _near_terms(self, path: str, number: int) -> frozenset[str]:
        nothing: frozenset[str] = frozenset()
        keys = ((path, n) for n in range(number - REACH, number + REACH + 1))
        return nothing.union(*(self._terms.get(k, nothing) for k in keys))

    def _phrase_bonus(self, text: str) -> float:
        if not self._phrases:
            return 0.0
        run = " ".join(terms(text[:LONG_LINE]))
        return sum(0.5 * sum(self._rarity.get(t, 0.5) for t in p) for p in self._phrases if p and " ".join(p) in run)

    def _named(self, key: tuple[str, int]) -> int:
        text = self._lines[key].text.casefold()
        return sum(n in text or n in key[0].casefold() for n in self._names)

    def _fitness(self, line: Line) -> float:
        wish, factor = self._wish, 1.0
        factor *= 1.4 if wish.defines and _DEFINES.search(line.text[:300]) else 1.0
        factor *= 1.25 if wish.figures and re.search(r"\d", line.text) else 1.0
        factor *= 1.6 if wish.command and _COMMAND.search(line.text[:300]) else 1.0
        factor *= 0.3 if _IMPORT.match(line.text) else 1.0
        factor *= 1.15 if _NAMES.match(line.text) else 1.0
        factor *= 0.4 if _POOR.search(line.path) else 1.0
        factor *= 0.8 if _TESTS.search(line.path) and not wish.tests else 1.0
        factor *= 1.1 if is_prose(line.path) and not wish.defines else 1.0
        return factor * (0.5 if len(line.text) > 400 else 1.0)

    def _passage(self, key: tuple[str, int], score: float) -> Passage:
        path, number = key
        around = [self._lines[k] for n in range(number - 6, number + 7) if (k := (path, n)) in self._lines]
        held = self._near_terms(path, number) | self._paths[path]
        return Passage(self._lines[key], tuple(around), score, held)


def _near(one: tuple[str, int], other: tuple[str, int]) -> bool:
    return one[0] == other[0] and abs(one[1] - other[1]) <= REACH * 2


def by_file(passages: Sequence[Passage]) -> dict[str, list[Passage]]:
    """The same passages file by file, the best file first."""
    files: dict[str, list[Passage]] = {}
    for passage in passages:
        files.setdefault(passage.line.path, []).append(passage)
    return files
