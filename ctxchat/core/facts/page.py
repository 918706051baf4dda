"""Writes the exact facts as text within a token limit: chooses which fit, and writes them compactly.

The files of one folder share it, `src/{a.py, b.py}`; facts that stand word for word in the summary beside are not repeated. Where
facts are left out, the text says so, and how to find them; their number is in the record of the compaction.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ctxchat.core.expressions import expression
from ctxchat.core.facts.find import CUT
from ctxchat.core.facts.order import KINDS, ranked
from ctxchat.core.facts.shared import FILES, plain
from ctxchat.core.record import Evidence, Fact, FactKind
from ctxchat.core.tokens import Count

SHARES: dict[FactKind, float] = {
    "rule": 0.08,
    "decision": 0.12,
    "changed": 0.14,
    "command": 0.11,
    "error": 0.06,
    "symbol": 0.32,
    "number": 0.04,
    "read": 0.07,
    "path": 0.03,
    "url": 0.02,
    "identifier": 0.01,
}
"""The share of the limit for each kind. What a kind does not need goes to the others, in proportion to their shares."""

SAID_SHARE = 0.75
"""The share of the limit reserved for facts that somebody said or did, before those that only stood in a result get any."""

TITLES: dict[FactKind, str] = {
    "rule": "Rules from the user",
    "decision": "Decisions",
    "changed": "Files changed",
    "command": "Commands run, the last form of each (×: how often)",
    "error": "Errors not known to be solved",
    "symbol": "Symbols worked with, by file",
    "number": "Numbers",
    "read": "Files read",
    "path": "Paths mentioned",
    "url": "Addresses",
    "identifier": "Identifiers",
}

_WITHIN: frozenset[FactKind] = frozenset({"read", "path", "identifier", "symbol"})
_QUOTED: frozenset[FactKind] = frozenset({"rule", "decision", "error", "number", "url"})
_SENTENCES: frozenset[FactKind] = frozenset({"rule", "decision", "error"})
_PLACE = expression(r"[\w./~@+:-]+")
_FOLDED = expression(r"(?<=/)\{([^{}\n]+)\}")
_FOLDER = expression(r"[^\s{};,]+/\Z")
_MAX_FOLDER_CHARS = (
    1_000  # looked back for from the brace: forward from anywhere, a long text without one would take for ever
)
_FOLDER_FIRST = expression(r"cd (\S+) && ")
_LETTER = expression(r"\w", re.ASCII)
_ODD = expression(r"[{},;\s]")
_MORE = "More facts are left out here"
_FINDS = ': recall("words of it") finds them'


Facts = dict[FactKind, list[Fact]]
"""Facts by kind, the most important first."""


class Page(msgspec.Struct, frozen=True):
    """The facts that were chosen, in the order of the record; `whole`: none was left out."""

    facts: tuple[Fact, ...]
    whole: bool


def fitting(evidence: Evidence, max_tokens: int, count: Count, beside: str = "") -> Page:
    """The facts that fit `max_tokens` when rendered: of each kind the most important, within its share.

    A fact that stands word for word in the text `beside` takes no room, nor does a path or an identifier that is part of a chosen
    command or path.
    """
    order: Facts = {kind: facts for kind, facts in ranked(evidence.facts).items() if facts}
    writing = _Writing(count, plain(beside))
    left = max_tokens - sum(count(TITLES[kind]) + 3 for kind in order) - count(f"{_MORE}{_FINDS}.") - 1
    said: Facts = {kind: [f for f in facts if f.by != "tool"] for kind, facts in order.items()}
    for facts, share in ((said, SAID_SHARE), (order, 1.0)):
        needs: dict[FactKind, int] = {
            kind: sum(writing.most(f) for f in some if not writing.has(f)) for kind, some in facts.items()
        }
        room = allotted(needs, int(left * share))
        left -= sum(writing.choose_facts(some, room[kind]) for kind, some in facts.items())
    for some in order.values():  # use the tokens that rounding and shared folders have left
        left -= writing.choose_facts(some, left)
    facts = tuple(f for f in evidence.facts if f in writing.taken)
    whole = not evidence.dropped and all(f.by == "tool" or writing.has(f) for f in evidence.facts)
    return Page(facts, whole)


def allotted(needs: dict[FactKind, int], room: int) -> dict[FactKind, int]:
    """The tokens for each kind: at most its need, by its share of `room`; what one kind does not need is shared by the others."""
    given: dict[FactKind, int] = {}
    open_kinds = dict(needs)
    while open_kinds:
        whole = sum(SHARES[kind] for kind in open_kinds)
        content: list[FactKind] = [kind for kind, need in open_kinds.items() if need <= room * SHARES[kind] / whole]
        if not content:
            given.update((kind, int(room * SHARES[kind] / whole)) for kind in open_kinds)
            break
        for kind in content:
            given[kind] = open_kinds.pop(kind)
            room -= given[kind]
    return given


def render(evidence: Evidence, max_tokens: int, count: Count, beside: str = "", *, recall: bool = True) -> str:
    """The facts as compact text of at most `max_tokens`, without those that stand in the text `beside`; empty where there are
    none or no room. `recall`: the reader has the recall tool to find the rest."""
    page = fitting(evidence, max_tokens, count, beside)
    blocks = [_block(kind, [f for f in page.facts if f.kind == kind]) for kind in KINDS]
    if not any(blocks):
        return ""
    more = [] if page.whole else [f"{_MORE}{_FINDS if recall else ''}."]
    return "\n".join([*filter(None, blocks), *more])


def line_of(fact: Fact) -> str:
    """One fact as it is shown."""
    match fact.kind:
        case "command":
            return f"`{fact.key}` → {fact.value}" if fact.value else f"`{fact.key}`"
        case "number":
            return f"{fact.key}: {fact.value}" if fact.value else fact.key
        case _:
            return fact.key


def unfolded(text: str) -> Iterator[str]:
    """The whole paths of the files that a text writes with a shared folder, as `src/{a.py, b.py}`."""
    for match in _FOLDED.finditer(text):
        if folder := _FOLDER.search(text, max(0, match.start() - _MAX_FOLDER_CHARS), match.start()):
            yield from (f"{folder[0]}{name}" for name in match[1].split(", "))


def stands(words: str, text: str) -> bool:
    """True where a text contains these words, not as a part of longer words."""
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        if not (_in_one_word(text[at - 1 : at], words[:1]) or _in_one_word(words[-1:], text[end : end + 1])):
            return True
        at = text.find(words, at + 1)
    return False


def _in_one_word(one: str, other: str) -> bool:
    return bool(_LETTER.match(one) and _LETTER.match(other))


class _Writing:
    """The facts chosen so far, and the words and folders that need not be written again."""

    def __init__(self, count: Count, beside: str) -> None:
        self._count = count
        self._beside = beside
        self.taken: set[Fact] = set()
        self._words = set(_PLACE.findall(beside))
        self._folders: set[tuple[FactKind, str]] = set()
        self._quoted: dict[Fact, bool] = {}
        self._weights: dict[Fact, int] = {}

    def most(self, fact: Fact) -> int:
        """The most tokens that a fact takes: with its separator, and where it shares no folder with others."""
        weight = self._weights.get(fact)
        if weight is None:
            weight = self._weights[fact] = self._count(_fact_line(fact)) + (4 if _split(fact)[0] else 2)
        return weight

    def has(self, fact: Fact) -> bool:
        """True for a fact that was chosen, or is part of a chosen one, or stands in the text beside."""
        if fact in self.taken:
            return True
        if fact.kind in _WITHIN:
            return fact.key in self._words
        if fact.kind not in _QUOTED or not self._beside:
            return False
        if fact not in self._quoted:
            self._quoted[fact] = any(self._is_beside(form) for form in _said_forms(fact))
        return self._quoted[fact]

    def _is_beside(self, line: str) -> bool:
        return line.removesuffix(CUT) in self._beside if line.endswith(CUT) else stands(line, self._beside)

    def choose_facts(self, facts: Sequence[Fact], room: int) -> int:
        """Choose, in order, those of the facts that fit into `room`; returns the tokens that they take."""
        spent = 0
        for fact in facts:
            if self.has(fact):
                continue
            tokens = self._price(fact)
            if spent + tokens > room:
                continue
            spent += tokens
            self.taken.add(fact)
            self._words.update(_places_in(fact))
            self._folders.add((fact.kind, _split(fact)[0]))
        return spent

    def _price(self, fact: Fact) -> int:
        folder, name = _split(fact)
        return self._count(name) + 2 if folder and (fact.kind, folder) in self._folders else self.most(fact)


def _said_forms(fact: Fact) -> tuple[str, ...]:
    """The forms in which a text may state a fact."""
    if fact.kind == "number" and fact.value:
        name = fact.key.rpartition(" ")[2]
        return tuple(f"{name}{sign}{fact.value}" for sign in (": ", "=", " = ", " "))
    return (line_of(fact),)


def _split(fact: Fact) -> tuple[str, str]:
    """A fact split into the part that it can share with others and its own part: the folder and the name of a file, the folder
    and the rest of a command, the file and the name of a symbol. The first is empty where nothing can be shared."""
    if fact.kind == "symbol":
        return fact.value, fact.key
    if fact.kind == "command" and (found := _FOLDER_FIRST.match(fact.key)):
        return found[1], fact.key[found.end() :]
    if fact.kind not in FILES or _ODD.search(fact.key):
        return "", fact.key
    folder, slash, name = fact.key.rpartition("/")
    return (folder + slash, name) if name and folder else ("", fact.key)


def _block(kind: FactKind, facts: Sequence[Fact]) -> str:
    """The lines of one kind of facts, with its title; empty where there are none."""
    if not facts:
        return ""
    if kind in FILES:
        lines = list(_folded(facts))
    elif kind == "symbol":
        lines = list(_by_file(facts))
    elif kind == "command":
        lines = list(_by_folder(facts))
    else:
        lines = [_fact_line(fact) for fact in facts]
    if kind in _SENTENCES:
        return f"{TITLES[kind]}:\n" + "\n".join(f"- {line}" for line in lines)
    return f"{TITLES[kind]}: " + "; ".join(lines)


def _fact_line(fact: Fact) -> str:
    """A fact as an item of the list."""
    if fact.kind != "command":
        return line_of(fact)
    often = f" ×{fact.times}" if fact.times > 1 else ""
    command = f"`{_split(fact)[1]}`{often}"
    if fact.value.startswith("exit 0"):
        return f"{command} ok{fact.value.removeprefix('exit 0')}"
    return f"{command} → {fact.value}" if fact.value else command


def _by_folder(commands: Iterable[Fact]) -> Iterator[str]:
    """Commands, joined by the folder they ran in."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for fact in commands:
        folders[_split(fact)[0]].append(_fact_line(fact))
    for folder, lines in sorted(folders.items()):
        yield (f"in {folder}: " if folder else "") + ", ".join(lines)


def _folded(facts: Iterable[Fact]) -> Iterator[str]:
    """Paths, those of one folder joined: `src/{a.py, b.py}`."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for fact in facts:
        folder, name = _split(fact)
        folders[folder].append(name)
    for folder, names in folders.items():
        if folder:
            yield f"{folder}{{{', '.join(names)}}}" if len(names) > 1 else folder + names[0]
        else:
            yield from names


def _by_file(facts: Iterable[Fact]) -> Iterator[str]:
    """Symbols, joined by their file."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for fact in facts:
        files[fact.value].append(fact.key)
    called = _told_apart(files)
    yield from (f"{called[file] or 'elsewhere'}: {', '.join(names)}" for file, names in files.items())


def _told_apart(paths: Iterable[str]) -> dict[str, str]:
    """A short name for each path: the fewest of its last parts that no other path ends with."""
    ends: defaultdict[str, set[str]] = defaultdict(set)
    parts = {path: path.split("/") for path in paths}
    for path, words in parts.items():
        for many in range(1, len(words) + 1):
            ends["/".join(words[-many:])].add(path)
    return {
        path: next((end for n in range(1, len(words)) if len(ends[end := "/".join(words[-n:])]) == 1), path)
        for path, words in parts.items()
    }


def _places_in(fact: Fact) -> Iterator[str]:
    """The words of a fact that may be paths or identifiers, and the folders above such paths; for a file also its last parts."""
    if fact.kind in FILES:
        parts = fact.key.split("/")
        yield from ("/".join(parts[place:]) for place in range(1, len(parts)))
    if fact.kind in _WITHIN or fact.kind in {"command", "changed"}:
        for word in _PLACE.findall(fact.key):
            yield word
            while "/" in word.rstrip("/"):
                word = word.rstrip("/").rsplit("/", 1)[0]
                yield from (word, f"{word}/")
