"""Collects the exact facts that code keeps when messages are folded (the "evidence"), since summaries lose paths, commands and
names.

Facts are read from the original groups, never from a summary's text, so they do not drift from compaction to compaction. Of
several values of one thing the newest is kept; errors that were solved are dropped.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import msgspec

from ctxchat.core.facts.find import CUT, facts_of, has_failed, recalled
from ctxchat.core.facts.gone import FORBIDS, gone_of, newest, still_true
from ctxchat.core.facts.numbers import subject_of
from ctxchat.core.facts.order import KINDS, SPEAKERS, ranked
from ctxchat.core.facts.page import line_of, stands, unfolded
from ctxchat.core.facts.shared import FILES, name_in, plain
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.record import Evidence, Fact, FactCount, FactKind, Gone
from ctxchat.core.tooluse import command_line, part_checked, use_of
from ctxchat.core.view import View

MAX_FACTS_OF_A_KIND = 300
"""The most facts of one kind that are kept, by importance; what a model is shown is also limited in tokens."""

KEPT_GATHERINGS = 4
"""How many results of `Memory.gathered` are kept for each function, since planning tries one end of a fold after another."""

OPEN_ERROR_TURNS = 2
"""The number of turns after which an error or a failed run is taken for solved or unimportant, unless it came up again."""

OPEN_ERROR_MESSAGES = 80
"""The number of messages after which it is, inside a long turn; only where another command has succeeded since."""

_ROOTS = frozenset(
    {"etc", "home", "mnt", "opt", "private", "root", "srv", "tmp", "usr", "var", "Users", "Volumes", "workspace"}
)
"""Top-level folders of most machines."""

_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|no longer(?: use)?|switch(?:ed|ing)? (?:away )?from)"
    r" (?:the |our )?[`'\"]?([\w][\w./-]+\w)",
    re.IGNORECASE,
)
"""A thing that is given up for another: "Postgres instead of SQLite"."""
_NAME = re.compile(r"[A-Za-z_$][\w$]{2,}")
_FILE = re.compile(r"[\w./-]*\w\.\w{1,5}(?![\w.])")
_WORD = re.compile(r"[A-Za-z0-9]+")
_CHANGING: frozenset[FactKind] = frozenset({"rule", "decision", "command", "error", "number"})
"""The kinds of facts that a later message can make untrue."""

Asked = TypeVar("Asked", bound=Hashable)
Answer = TypeVar("Answer")


class Found(msgspec.Struct, frozen=True, gc=False):
    """The findings in one group: its facts, what it makes untrue (`gone`), and whether it changed or ran something (`done`)."""

    facts: tuple[Fact, ...] = ()
    gone: tuple[Gone, ...] = ()
    done: bool = False


_NOTHING, _DONE = Found(), Found(done=True)
"""The findings in most groups, shared to save memory."""


class Memory:
    """A cache of the facts found in each group, so that a compaction need not search the whole record again.

    `shown` gives a group as a model may see it (with secrets masked). `names` are the names in code that each file has now, by
    the path with which a call named the file."""

    def __init__(self, shown: Callable[[Group], Group] = lambda group: group) -> None:
        self.shown = shown
        self.names: Mapping[str, frozenset[str]] = {}
        self._found: dict[Message, Found] = {}
        self._once: dict[object, object] = {}
        self._gathered: dict[object, list[tuple[Sequence[Group], object]]] = {}

    def once(self, work: Callable[[Asked], Answer], asked: Asked) -> Answer:
        """The result of `work(asked)`, computed once and then remembered. `work` must give the same result each time."""
        key = (work, asked)
        if key not in self._once:
            self._once[key] = work(asked)
        return cast("Answer", self._once[key])

    def gathered(
        self, work: Callable[[Memory, Answer | None, Sequence[Group]], Answer], groups: Sequence[Group]
    ) -> Answer:
        """The result of `work` for these groups. `work(memory, before, more)` extends `before`, its remembered result for the
        first of the groups (None where there is none), by the groups `more`. It must not change `before`."""
        kept = cast("list[tuple[Sequence[Group], Answer]]", self._gathered.setdefault(work, []))
        groups = tuple(groups)
        longest_first = sorted(kept, key=lambda result: -len(result[0]))
        known = next((result for result in longest_first if groups[: len(result[0])] == result[0]), None)
        start = len(known[0]) if known else 0
        if known and start == len(groups):
            return known[1]
        result = work(self, known[1] if known else None, groups[start:])
        kept[:] = [*kept[1 - KEPT_GATHERINGS :], (groups, result)]
        return result

    def find_facts(self, group: Group) -> Found:
        """The findings in a group of the record, remembered after the first search."""
        known = self._found.get(group.first)
        if known is None:
            shown = self.shown(group)
            done = any(use_of(call).kind in {"change", "run"} for call in shown.first.calls)
            known = Found(facts_of(shown), tuple(gone_of(shown)), done)
            if not known.facts and not known.gone:
                known = _DONE if done else _NOTHING
            self._found[group.first] = known
        return known

    def stands(self, fact: Fact) -> bool:
        """False for a symbol that its file is known to have no longer; True for any other fact."""
        names = self.names.get(fact.value) if fact.kind == "symbol" else None
        return names is None or fact.key in names or not _NAME.fullmatch(fact.key)


def collect(
    groups: Iterable[Group],
    previous: Evidence | None = None,
    memory: Memory | None = None,
    per_kind: int | None = MAX_FACTS_OF_A_KIND,
    staying: Iterable[Group] = (),
) -> Evidence:
    """The facts of these groups merged with those of an earlier compaction (`previous`): each thing once with its newest value,
    at most `per_kind` facts of a kind. A fact that the agent looked up with recall counts as mentioned again. Facts that groups
    `staying` in view contradict are left out.
    """
    memory = memory or Memory()
    facts: list[Fact] = []
    gone: list[Gone] = []
    again: dict[int, int] = {}
    newer: list[Fact] = []
    later: list[Gone] = []
    for group in groups:
        found = memory.find_facts(group)
        facts += found.facts
        gone += found.gone
        again.update((place, group.turn) for place in recalled(group))
    for group in staying:
        found = memory.find_facts(group)
        newer += (fact for fact in found.facts if fact.kind in _CHANGING or fact.kind == "changed")
        later += found.gone
    facts.sort(key=lambda fact: (fact.turn, fact.seq))  # a late result has a number that is out of order
    fresh = Evidence(tuple(facts), gone=tuple(gone))
    evidence = merged([previous, fresh] if previous else [fresh], per_kind)
    if memory.names:
        evidence = msgspec.structs.replace(evidence, facts=tuple(filter(memory.stands, evidence.facts)))
    if later:
        evidence = msgspec.structs.replace(evidence, facts=tuple(still_true(evidence.facts, later)))
    if newer:
        evidence = _still_true(evidence, Evidence(tuple(newer)))
    if not again:
        return evidence
    return msgspec.structs.replace(evidence, facts=tuple(_needed(f, again.get(f.seq, 0)) for f in evidence.facts))


def _needed(fact: Fact, turn: int) -> Fact:
    return msgspec.structs.replace(fact, turn=turn, turns=fact.turns + 1) if turn > fact.turn else fact


def _still_true(evidence: Evidence, newer: Evidence) -> Evidence:
    """The facts without those that newer ones contradict: by another value, a later outcome, a solved error, another decision."""
    now = {_thing(fact): fact.value for fact in merged([evidence, newer], None).facts}
    facts = (f for f in evidence.facts if f.kind not in _CHANGING or now.get(_thing(f)) == f.value)
    return msgspec.structs.replace(evidence, facts=tuple(facts))


def merged(several: Iterable[Evidence], per_kind: int | None = MAX_FACTS_OF_A_KIND) -> Evidence:
    """Several collections of facts as one, whatever their order: of each thing the newest fact is kept, at most `per_kind` facts
    of a kind (None: all)."""
    several = list(several)
    gone = newest(one for evidence in several for one in evidence.gone)
    kept: dict[tuple[FactKind, str], Fact] = {}
    dropped = 0
    for evidence in several:
        dropped += evidence.dropped
        for fact in still_true(evidence.facts, gone):
            thing = _thing(fact)
            kept[thing] = _merged(kept[thing], fact) if thing in kept else fact
    standing = _standing(kept.values())
    many = Counter(fact.kind for fact in standing)
    too_many = [fact for fact in standing if per_kind is not None and many[fact.kind] > per_kind]
    left = {fact for some in ranked(too_many).values() for fact in some[per_kind:]}
    facts = sorted((fact for fact in standing if fact not in left), key=lambda f: f.seq)
    dropped += sum(fact.by != "tool" for fact in left)
    return Evidence(tuple(facts), dropped, gone)


def _thing(fact: Fact) -> tuple[FactKind, str]:
    """The key of the thing that a fact is about; of two facts with the same key the newer is kept. Runs of one program in one
    folder share a key whatever their options, except that failed and other runs, and runs of a part of the tests, have their
    own."""
    if fact.kind == "command":
        line = command_line(fact.key)
        if line.program == "git commit" and not _failed(fact):
            return "command", fact.key  # every commit is kept
        how = f"{'failed' if _failed(fact) else 'ran'}{' in part' if part_checked(fact.key) else ''}"
        return "command", f"{how} {name_in(line.folder)}: {line.program or fact.key}"
    if fact.kind == "number" and (not fact.value or fact.value.endswith("%")):
        return "number", subject_of(f"{fact.key} {fact.value}")
    return ("path" if fact.kind in FILES else fact.kind), fact.key


def _standing(facts: Iterable[Fact]) -> list[Fact]:
    """The facts without outdated values, overturned decisions, failed runs that succeeded since, and solved errors."""
    some = list(facts)
    newest = max((f.turn for f in some), default=0)
    end = max((f.seq for f in some), default=0)
    roots = _ROOTS.union(_root(f.key) for f in some if f.kind in FILES and f.by != "tool")
    alone = {f.key: f.seq for f in some if f.kind == "number" and f.value and " " not in f.key}
    overturned = _overturned(some)
    runs = _Runs(f for f in some if f.kind == "command")
    edits = [f for f in some if f.kind == "changed"]

    def is_past(fact: Fact) -> bool:
        long_ago = fact.seq < end - OPEN_ERROR_MESSAGES and fact.seq < runs.checked
        return fact.turn < newest - OPEN_ERROR_TURNS or long_ago

    def gone(fact: Fact) -> bool:
        match fact.kind:
            case "command":
                return _failed(fact) and (is_past(fact) or runs.since(fact, fact.key, well=True))
            case "error":
                return is_past(fact) or _solved(fact, runs, edits)
            case "path" if fact.by == "tool":  # a sub-agent may write the project's folder as `/`
                return fact.key.startswith("/") and _root(fact.key) not in roots
            case "rule" | "decision":
                return any(seq > fact.seq and stands(name, fact.key.lower()) for name, seq in overturned.items())
            case "number":
                return alone.get(fact.key.rpartition(" ")[2], 0) > fact.seq
            case _:
                return False

    return [f for f in some if not gone(f)]


def _root(path: str) -> str:
    """The first folder of an absolute path; empty for another."""
    return path.split("/", 2)[1] if path.startswith("/") else ""


def _overturned(facts: Iterable[Fact]) -> dict[str, int]:
    """The things that a decision or a rule gave up for another, with the message number of the newest that says so."""
    newest: dict[str, int] = {}
    for fact in facts:
        if fact.kind in {"rule", "decision"} and not FORBIDS.search(fact.key):
            for match in _INSTEAD.finditer(fact.key):
                newest[match[1].lower()] = max(fact.seq, newest.get(match[1].lower(), 0))
    return newest


def _failed(command: Fact) -> bool:
    return has_failed(command.value)


class _Runs:
    """The message numbers at which each command last ran, and last ran without failing, by its program, its folder and the part
    of the tests that it ran."""

    def __init__(self, commands: Iterable[Fact]) -> None:
        self._last: defaultdict[tuple[str, bool], dict[tuple[str, str], int]] = defaultdict(dict)
        self._well: list[Fact] = []
        self.checked = 0
        """The message number of the last success of a command that does more than move files about."""
        for run in commands:
            line, well = command_line(run.key), not _failed(run)
            for what in ((line.program or run.key, False), *([(line.program or run.key, True)] if well else [])):
                place = (name_in(line.folder), part_checked(run.key))
                self._last[what][place] = max(run.seq, self._last[what].get(place, 0))
            if well and not line.only_files:
                self.checked = max(run.seq, self.checked)
            if well and run.value:
                self._well.append(run)

    def passed_since(self, error: Fact) -> bool:
        """True where a test or a file that an error names was run successfully since, by any program."""
        names = {name_in(path) for path in _FILE.findall(error.key)}
        return any(run.seq > error.seq and self._is_about(run.key, error.key, names) for run in self._well)

    @staticmethod
    def _is_about(command: str, error: str, names: set[str]) -> bool:
        """True where a command names a file that an error names, or ran just the test that the error names."""
        test = re.split(r"::|/| ", part_checked(command))[-1]
        return any(stands(name, command) for name in names) or bool(_NAME.fullmatch(test) and stands(test, error))

    def since(self, fact: Fact, command: str, *, well: bool) -> bool:
        """True where the command's program ran again after this fact, in the same folder as far as that is known; for tests: all
        of them or the same part. `well`: only runs that did not fail count."""
        line, part = command_line(command), part_checked(command)
        here = name_in(line.folder)
        found = self._last.get((line.program or command, well), {})
        return any(
            seq > fact.seq
            for (folder, other), seq in found.items()
            if other in {"", part} and (not folder or not here or folder == here)
        )


def _solved(fact: Fact, runs: _Runs, edits: Iterable[Fact]) -> bool:
    """True for an error whose command ran again since, or whose file was changed before another command succeeded. (If the error
    had come up again, it would be a newer fact.)"""
    if runs.since(fact, fact.value, well=False):
        return True
    if any(fact.seq < e.seq < runs.checked and name_in(e.key) in fact.key for e in edits):
        return True
    return runs.passed_since(fact)


def _merged(before: Fact, fact: Fact) -> Fact:
    """Two mentions of one thing as one fact: with the newer value, the more important speaker, and each turn counted once."""
    new = fact if fact.seq >= before.seq else before
    kind = before.kind if KINDS.index(before.kind) < KINDS.index(fact.kind) else fact.kind
    by = max(before.by, fact.by, key=SPEAKERS.__getitem__)
    turns = before.turns + fact.turns if fact.turn > before.turn else max(before.turns, fact.turns)
    old = before if new is fact else fact
    value = new.value or old.value if kind == "symbol" else new.value  # only some calls tell a symbol's file
    times = new.times  # counts runs of exactly this command line
    if before.key == fact.key and CUT not in fact.key:  # two commands that were cut may differ in what was cut
        times = before.times + fact.times if fact.seq > before.seq else max(before.times, fact.times)
    return Fact(
        kind, new.key, value, new.seq, by, max(before.turn, fact.turn), turns, times if kind == "command" else 1
    )


def survival(evidence: Evidence, view: View) -> tuple[FactCount, tuple[Fact, ...]]:
    """How many of these facts a view still shows, and the lost ones. Names that were only seen in a file that was read do not
    count: the file still has them."""
    shown = _Shown(view)
    own = [fact for fact in evidence.facts if fact.by != "tool"]
    lost = tuple(fact for fact in own if not _is_shown(fact, shown))
    return FactCount(found=len(own), kept=len(own) - len(lost)), lost


def kept_facts(
    evidence: Evidence, view: View, change: Change, ledger: Ledger, memory: Memory
) -> tuple[FactCount, tuple[Fact, ...]]:
    """How many facts the view shows or can reach with one read, and the lost ones. A shortened message points to its full text,
    so the facts in it can be reached."""
    held, missing = survival(evidence, view)
    shorter = [ledger.group(g) for e in change.edits if e.kind == "shrink" and e.replacement for g in e.covers]
    near = {(fact.kind, fact.key) for group in shorter for fact in memory.find_facts(group).facts}
    lost = tuple(fact for fact in missing if (fact.kind, fact.key) not in near)
    return FactCount(held.found, held.found - len(lost), len(missing) - len(lost)), lost


def facts_of_change(change: Change, groups: Iterable[Group]) -> Evidence:
    """The facts of all that a compaction touched, of which its record counts those that were kept: the facts that its summary
    carries on, and those found in groups that only became shorter or left without a summary. `groups` are all that it covers."""
    digests = [e for e in change.edits if e.digest and e.digest.evidence.facts]
    summarised = {name for edit in digests for name in edit.covers}
    carried = [edit.digest.evidence for edit in digests if edit.digest]
    rest = collect((g for g in groups if g.id not in summarised), per_kind=None)
    return merged([*carried, rest], None)


class _Shown:
    """An index of the texts of a view by their words, so that a fact is searched for only in texts that have its words."""

    def __init__(self, view: View) -> None:
        self._texts = [text for text in map(plain, _view_texts(view)) if text]
        self._places: dict[str, list[int]] = {}
        for place, text in enumerate(
            self._texts
        ):  # one by one, since a single search would block other threads for long
            for word in set(_WORD.findall(text)):
                self._places.setdefault(word, []).append(place)

    def has(self, words: str) -> bool:
        found = [self._places.get(word, ()) for word in _WORD.findall(words)]
        places = min(found, key=len) if found else range(len(self._texts))
        return any(stands(words, self._texts[place]) for place in places)


def _view_texts(view: View) -> Iterator[str]:
    """The texts of a view in which facts are looked for, with folded paths written out."""
    for item in view.items:
        yield item.message.text
        yield from unfolded(item.message.text)
        for call in item.message.calls:
            yield call.arguments
            yield use_of(call).target


def _is_shown(fact: Fact, shown: _Shown) -> bool:
    """True where a fact stands in the shown texts; of a number both its name and its value."""
    key = plain(fact.key)
    if key.endswith(CUT) or (fact.kind == "command" and CUT in key):
        key = key.partition(CUT)[0].rpartition(" ")[0] or key  # the last word may be cut
    if fact.kind != "number" or not fact.value:
        return shown.has(key)
    return shown.has(plain(line_of(fact))) or (shown.has(key) and shown.has(plain(fact.value)))
