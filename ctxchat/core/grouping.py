"""Builds groups from messages: joins the agent's calls with their results, and orders an imported history once, when it is
imported.

Later code never has to repair a history: every call in a group has its result, and a result without a call is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ctxchat.core.errors import UnpairedCall
from ctxchat.core.messages import Group, GroupKind, Message, ToolCall

NO_RESULT = "[no result: the call was never answered]"


def single(kind: GroupKind, message: Message, turn: int, source: str = "") -> Group:
    """A group of one message."""
    return Group(id=f"g{message.seq}", kind=kind, messages=(message,), turn=turn, source=source)


def seal_round(assistant: Message, results: Sequence[Message], turn: int) -> Group:
    """The group of one assistant message and the results of its calls, in the order of the calls.

    Raises UnpairedCall unless every call has exactly one result, paired per occurrence of its id.
    """
    left = list(results)
    ordered: list[Message] = []
    for call in assistant.calls:
        match = next((r for r in left if r.call_id == call.id), None)
        if match is None:
            raise UnpairedCall(f"call {call.id} ({call.name}) has no result")
        left.remove(match)
        ordered.append(match)
    if left:
        raise UnpairedCall(f"result for {left[0].call_id} answers no call of this round")
    return Group(id=f"g{assistant.seq}", kind="round", messages=(assistant, *ordered), turn=turn)


def close_round(assistant: Message, results: Sequence[Message], turn: int, next_seq: int, text: str) -> Group:
    """Like seal_round, for a round that was interrupted: calls without a result get one that says `text`.

    `next_seq` is the first free message number in the record.
    """
    answered = list(results)
    open_calls = _unanswered(assistant.calls, answered)
    closing = [
        Message(seq=next_seq + i, role="tool", content=text, call_id=call.id, name=call.name, at=assistant.at)
        for i, call in enumerate(open_calls)
    ]
    return seal_round(assistant, [*answered, *closing], turn)


def group_messages(messages: Iterable[Message], free: int = 1, turn: int = 0) -> tuple[Group, ...]:
    """The groups of a history from outside: results are moved to their calls, everything else stays in order.

    A result belongs to an earlier, unanswered call with its id: in the current turn, else in the latest turn before that has one.
    Where several calls have one id, results go to them in order; where there are fewer results than calls, the oldest calls
    stay unanswered. A result without such a call becomes a `stray`. Unanswered calls get a synthetic result, numbered after all
    messages and not below `free`. Groups are in the order of their first message. Messages before the first user message belong
    to turn number `turn`.
    """
    history = list(messages)
    owner = _pair(history)
    next_seq = max([free - 1, *(m.seq for m in history)]) + 1
    groups: list[Group] = []
    for index, message in enumerate(history):
        if message.role == "user":
            turn += 1
            groups.append(single("user", message, turn))
        elif message.role == "system":
            groups.append(single("note" if turn else "system", message, turn))
        elif message.role == "assistant" and message.calls:
            results = owner[index]
            closing: list[Message] = []
            for place, call in enumerate(message.calls):
                if place not in results:
                    closing.append(_no_result(call, next_seq, message.at))
                    results[place] = closing[-1]
                    next_seq += 1
            ordered = tuple(results[place] for place in range(len(message.calls)))
            groups.append(Group(id=f"g{message.seq}", kind="round", messages=(message, *ordered), turn=turn))
        elif message.role == "assistant":
            groups.append(single("reply", message, turn))
        elif index not in owner.taken:
            groups.append(single("stray", message, turn))
    return tuple(groups)


class _Pairing(dict[int, dict[int, Message]]):
    """For each assistant message (by index in the history) the results of its calls (by index of the call); `taken` are the
    indexes of the results that were paired."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: set[int] = set()


_Waiting = tuple[int, int, int]
"""An unanswered call: its turn, the index of its message, its index among that message's calls."""


def _pair(history: Sequence[Message]) -> _Pairing:
    """Which result belongs to which call, by the rules of `group_messages`."""
    pairing = _Pairing()
    waiting: dict[str, list[_Waiting]] = {}
    ahead = _results_ahead(history)
    turn = 0
    for index, message in enumerate(history):
        if message.role == "user":
            turn += 1
        elif message.role == "assistant" and message.calls:
            pairing[index] = {}
            for place, call in enumerate(message.calls):
                waiting.setdefault(call.id, []).append((turn, index, place))
        elif message.role == "tool":
            candidates = waiting.get(message.call_id)
            if not candidates:
                continue
            latest = [c for c in candidates if c[0] == candidates[-1][0]]
            chosen = latest[max(0, len(latest) - ahead[index])]
            candidates.remove(chosen)
            pairing[chosen[1]][chosen[2]] = message
            pairing.taken.add(index)
    return pairing


def _results_ahead(history: Sequence[Message]) -> dict[int, int]:
    """For each result's index, how many results with its id follow before the next call with that id, itself included."""
    ahead: dict[int, int] = {}
    count: dict[str, int] = {}
    for index in range(len(history) - 1, -1, -1):
        message = history[index]
        if message.role == "tool":
            ahead[index] = count[message.call_id] = count.get(message.call_id, 0) + 1
        for call in message.calls:
            count[call.id] = 0
    return ahead


def _unanswered(calls: Sequence[ToolCall], results: Sequence[Message]) -> list[ToolCall]:
    """The calls that have no result among these, where an id may occur several times."""
    left = [r.call_id for r in results]
    missing: list[ToolCall] = []
    for call in calls:
        if call.id in left:
            left.remove(call.id)
        else:
            missing.append(call)
    return missing


def _no_result(call: ToolCall, seq: int, at: str) -> Message:
    return Message(seq=seq, role="tool", content=NO_RESULT, call_id=call.id, name=call.name, at=at, synthetic=True)


def without_reasoning(group: Group) -> Group:
    """The group without the model's reasoning."""
    return msgspec.structs.replace(
        group, messages=tuple(msgspec.structs.replace(m, reasoning=None) if m.reasoning else m for m in group.messages)
    )
