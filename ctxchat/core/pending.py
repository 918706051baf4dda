"""Finds the person's open requests, those that no complete reply has answered yet, and says in a summary which they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from ctxchat.core.clip import clip
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, own_words
from ctxchat.core.tokens import Count


class Pending(msgspec.Struct, frozen=True):
    """The text at the end of a summary about open requests, and the ids of the groups that it quotes."""

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
    """The open requests when the groups `fold` are folded: the newest first and uncut where it is among them, then earlier ones
    that were never answered. The text says up to which message this holds, since later ones may answer; it also says where none
    is open."""
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
    """A text that tells the writer of a summary which requests are open; at most `max_tokens` of each are quoted."""
    asked = open_requests(ledger.groups_in_force)
    if not asked:
        newest = next((g.first.id for g in _said_last(ledger) if g.kind == "user"), "")
        return f"No request is open: {newest}, the person's newest, was answered." if newest else ""
    shown = [f"{g.first.id}: {clip(own_words(g.first), max_tokens, count, ' […] ')}" for g in asked[:3]]
    return f"{_opening(asked)}:\n" + "\n".join(shown)


def _opening(asked: Sequence[Group], when: str = "") -> str:
    """The line above the list of open requests. Of several, all but the newest were cut short by the next one, but may be settled
    nevertheless."""
    said = f"Asked by the person and not answered{when}"
    if len(asked) == 1:
        return said
    settled = "those before it may have been dealt with on the way"
    return f"{said} by a whole reply; the newest, which stands first, governs the work, {settled}"


def _said_last(ledger: Ledger) -> Iterator[Group]:
    """The groups of messages, replies and rounds, the newest first."""
    return (g for g in reversed(ledger.groups_in_force) if g.kind in {"user", "reply", "round"})
