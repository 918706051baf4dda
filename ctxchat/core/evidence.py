"""The evidence ledger: exact facts kept by code when messages are folded, since summaries lose paths, numbers and commands.

Facts come from the record's groups, never from a summary's text, so nothing nests and nothing drifts from pass to pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from ctxchat.core.facts import LISTED, facts_of, plain
from ctxchat.core.messages import Group, Message
from ctxchat.core.record import Evidence, Fact, FactCount, FactKind
from ctxchat.core.tokens import Count
from ctxchat.core.tooluse import use_of
from ctxchat.core.view import View

KINDS: tuple[FactKind, ...] = get_args(FactKind)
"""Every kind once, the dearest first; also the order on the page."""

PER_KIND = 300
"""Facts of one kind that are carried on, the newest; what is shown is capped in tokens besides."""

SHARES: dict[FactKind, float] = {
    "rule": 0.12,
    "decision": 0.12,
    "changed": 0.14,
    "command": 0.16,
    "error": 0.10,
    "number": 0.14,
    "read": 0.08,
    "path": 0.06,
    "url": 0.04,
    "identifier": 0.04,
}
"""What each kind may take of the cap before any kind gets what others left over."""

TITLES: dict[FactKind, str] = {
    "rule": "Rules from the user",
    "decision": "Decisions",
    "changed": "Files changed",
    "command": "Commands run",
    "error": "Errors seen",
    "number": "Numbers",
    "read": "Files read",
    "path": "Paths mentioned",
    "url": "Addresses",
    "identifier": "Identifiers",
}


_PLACES: frozenset[FactKind] = frozenset({"read", "path", "identifier"})
_PLACE = re.compile(r"[\w./~@+:-]+")


class Memory:
    """Facts found so far, by the group's first message, so that a pass need not look again. Holds nothing else."""

    def __init__(self) -> None:
        self._found: dict[Message, tuple[Fact, ...]] = {}

    def facts_of(self, group: Group) -> tuple[Fact, ...]:
        """As the function of that name, remembered; for groups of the record only."""
        known = self._found.get(group.first)
        if known is None:
            known = self._found[group.first] = facts_of(group)
        return known


def collect(
    groups: Iterable[Group],
    previous: Evidence | None = None,
    find: Callable[[Group], Iterable[Fact]] = facts_of,
) -> Evidence:
    """The facts of these groups after those of an earlier pass: each once, the newest value standing, capped by kind.

    A file that was changed is not listed as read as well. `find` may be a Memory's.
    """
    kept: dict[tuple[FactKind, str], Fact] = {(f.kind, f.key): f for f in previous.facts} if previous else {}
    for group in groups:
        for fact in find(group):
            before = kept.pop((fact.kind, fact.key), fact)
            listed = fact.value == LISTED and before.value != LISTED  # what was said once is more than listed
            kept[(fact.kind, fact.key)] = before if listed else fact
    facts = [f for f in kept.values() if not _said_better(f, kept)]
    over = {kind: sum(f.kind == kind for f in facts) - PER_KIND for kind in KINDS}
    gone: set[Fact] = set()
    for fact in sorted(facts, key=lambda f: f.value != LISTED):  # the oldest, and of paths those that were only listed
        if over[fact.kind] > 0:
            over[fact.kind] -= 1
            gone.add(fact)
    return Evidence(tuple(f for f in facts if f not in gone))


def fitting(evidence: Evidence, max_tokens: int, count: Count) -> Evidence:
    """The facts that fit a cap when rendered: of each kind the newest, within its share, then what others left over.

    A path or an identifier that stands in a chosen command or path word for word takes no room of its own.
    """
    newest: dict[FactKind, list[tuple[Fact, int]]] = {kind: [] for kind in KINDS}
    facts = evidence.facts[::-1]
    for fact in (*(f for f in facts if f.value != LISTED), *(f for f in facts if f.value == LISTED)):
        newest[fact.kind].append((fact, count(line_of(fact)) + 2))
    left = max_tokens - sum(count(TITLES[kind]) + 3 for kind in KINDS if newest[kind])
    shares = {kind: left * SHARES[kind] for kind in KINDS}
    chosen: set[Fact] = set()
    told: set[str] = set()
    for share in (shares, None):  # each its own share first, then whoever is dearest
        for kind in KINDS:
            room = share[kind] if share else left
            for fact, tokens in newest[kind]:
                if fact in chosen or tokens > min(room, left) or (kind in _PLACES and fact.key in told):
                    continue
                chosen.add(fact)
                told.update(_places_in(fact))
                room -= tokens
                left -= tokens
    return Evidence(tuple(f for f in evidence.facts if f in chosen))


def _places_in(fact: Fact) -> Iterator[str]:
    """The words of a fact that may be paths or identifiers, and the folders that those name."""
    if fact.kind in _PLACES or fact.kind in {"command", "changed"}:
        for word in _PLACE.findall(fact.key):
            yield word
            while "/" in word.rstrip("/"):
                word = word.rstrip("/").rsplit("/", 1)[0]
                yield from (word, f"{word}/")


def render(evidence: Evidence, max_tokens: int, count: Count) -> str:
    """The facts as compact text of at most `max_tokens`; empty where there are none."""
    fits = fitting(evidence, max_tokens, count)
    blocks: list[str] = []
    for kind in KINDS:
        lines = [line_of(f) for f in fits.facts if f.kind == kind]
        if not lines:
            continue
        if kind in {"rule", "decision", "error"}:
            blocks.append(f"{TITLES[kind]}:\n" + "\n".join(f"- {line}" for line in lines))
        else:
            blocks.append(f"{TITLES[kind]}: " + "; ".join(lines))
    return "\n".join(blocks)


def line_of(fact: Fact) -> str:
    """One fact as it is shown."""
    match fact.kind:
        case "command":
            return f"`{fact.key}` → {fact.value}" if fact.value else f"`{fact.key}`"
        case "number":
            return f"{fact.key}: {fact.value}" if fact.value else fact.key
        case _:
            return fact.key


def survival(evidence: Evidence, view: View) -> tuple[FactCount, tuple[Fact, ...]]:
    """How many of these facts a view still holds, and the lost ones."""
    text = " ".join(
        filter(None, map(plain, _shown(view)))
    )  # piece by piece: a split of it all would hold up other threads
    lost = tuple(fact for fact in evidence.facts if not _held(fact, text))
    return FactCount(found=len(evidence.facts), kept=len(evidence.facts) - len(lost)), lost


def _shown(view: View) -> Iterator[str]:
    for item in view.items:
        yield item.message.text
        for call in item.message.calls:
            yield call.arguments
            yield use_of(call).target


def _held(fact: Fact, text: str) -> bool:
    if plain(line_of(fact)) in text or (fact.kind != "number" and plain(fact.key) in text):
        return True
    return bool(
        fact.value
        and fact.kind == "number"
        and plain(fact.key) in text
        and re.search(rf"(?<![\w.]){re.escape(plain(fact.value))}(?!\w)", text)
    )


def _said_better(fact: Fact, kept: dict[tuple[FactKind, str], Fact]) -> bool:
    match fact.kind:
        case "read":
            return ("changed", fact.key) in kept
        case "path":
            return ("changed", fact.key) in kept or ("read", fact.key) in kept
        case _:
            return False
