"""Which requests of the person are open: said and not answered by a whole reply yet, whatever was cut short in between."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from ctxchat.core.clip import clip
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, own_words
from ctxchat.core.tokens import Count

BRIEF_REQUEST_CHARS = 60
"""Characters up to which a request such as «go on» says by itself too little of what is wanted."""


class Pending(msgspec.Struct, frozen=True):
    """What a summary says of the requests at its end, and the ids of the groups whose words it has."""

    text: str = ""
    told: frozenset[str] = frozenset()


NOTHING_PENDING = Pending()


def open_requests(groups: Sequence[Group]) -> list[Group]:
    """The person's messages that no whole reply came after, the newest first. One that was cut off answers nothing, nor does what
    an agent says between two rounds of its work."""
    found: list[Group] = []
    works_on = False
    for group in reversed(groups):
        match group.kind:
            case "round":
                works_on = True
            case "reply" if not works_on and not group.first.interrupted:
                return found
            case "user":
                works_on = False
                if own_words(group.first):
                    found.append(group)
            case _:
                pass
    return found


def pending(ledger: Ledger, fold: Collection[str], max_tokens: int, count: Count) -> Pending:
    """What is open when these groups are folded: the newest request first and whole, where it goes with them, and those before it
    that were never answered. It is dated, since what follows below may answer it; where none is open that is said."""
    asked = open_requests(ledger.groups_in_force)
    if not asked:
        newest = next((g for g in _said_last(ledger) if g.kind == "user" and own_words(g.first)), None)
        if newest is None or newest.id not in fold:
            return Pending()
        answer = next(g for g in _said_last(ledger) if g.kind == "reply" and not g.first.interrupted)
        said = f"The person's last request up to {answer.first.id} was {newest.first.id}, which was answered there: none is open."
        return Pending(said)
    lines: list[str] = []
    told: set[str] = set()
    room = max_tokens
    for number, group in enumerate(asked):
        if group.id in fold:
            words = own_words(group.first)
            words = words if number == 0 or count(words) <= room else clip(words, max(60, room // 2), count, " […] ")
            room -= count(words)
            lines.append(f"- {group.first.id}: {words}")
            told.add(group.id)
        else:
            lines.append(f"- {group.first.id}, which stands below")
        if room < 0:
            break
    last = next(_said_last(ledger)).messages[-1].id
    return Pending(f"{_opening(asked, f' as of {last}')}:\n" + "\n".join(lines), frozenset(told))


def asked_now(ledger: Ledger, max_tokens: int, count: Count) -> str:
    """Which request governs the work, for whoever writes a summary."""
    asked = open_requests(ledger.groups_in_force)
    if not asked:
        newest = next((g.first.id for g in _said_last(ledger) if g.kind == "user"), "")
        return f"No request is open: {newest}, the person's newest, was answered." if newest else ""
    shown = [f"{g.first.id}: {clip(own_words(g.first), max_tokens, count, ' […] ')}" for g in asked[:3]]
    return f"{_opening(asked)}:\n" + "\n".join(shown)


def _opening(asked: Sequence[Group], when: str = "") -> str:
    """What is said of the open requests. Of several, each but the newest was cut short by the next: it may be settled all the
    same."""
    said = f"Asked by the person and not answered{when}"
    if len(asked) == 1:
        return said
    settled = "those before it may have been dealt with on the way"
    return f"{said} by a whole reply; the newest, which stands first, governs the work, {settled}"


def _said_last(ledger: Ledger) -> Iterator[Group]:
    """What was said and done, the newest first."""
    return (g for g in reversed(ledger.groups_in_force) if g.kind in {"user", "reply", "round"})
