"""From messages to groups (pairing of calls and results)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from ctxchat.core.errors import UnpairedCall
from ctxchat.core.grouping import close_round, group_messages, seal_round
from ctxchat.core.messages import Message, ToolCall
from tests.core.histories import histories
from tests.examples import examples


def said(*plan: str) -> list[Message]:
    """`u` user, `s` system, `t` reply, `A:x,y` a message that calls x and y, `R:x` a result for x."""
    history: list[Message] = []
    for seq, word in enumerate(plan, 1):
        head, _, tail = word.partition(":")
        match head:
            case "A":
                made = tuple(ToolCall(name, "read_file", "{}") for name in tail.split(","))
                history.append(Message(seq, "assistant", calls=made))
            case "R":
                history.append(Message(seq, "tool", f"result {seq}", call_id=tail))
            case "u":
                history.append(Message(seq, "user", "hi"))
            case "s":
                history.append(Message(seq, "system", "be good"))
            case _:
                history.append(Message(seq, "assistant", "answer"))
    return history


def shape_of(*plan: str) -> list[str]:
    """Each group as its kind and the places of its messages; `-` for a result made up at the door."""
    groups = group_messages(said(*plan))
    return [f"{g.kind} {' '.join('-' if m.synthetic else str(m.seq) for m in g.messages)}" for g in groups]


@examples(75, 300)
@given(histories)
def test_every_message_is_in_exactly_one_group(history: list[Message]) -> None:
    groups = group_messages(history)
    kept = Counter(m.seq for g in groups for m in g.messages if not m.synthetic)
    assert kept == Counter(m.seq for m in history)
    assert [g.first.seq for g in groups] == sorted(g.first.seq for g in groups)
    assert len({g.id for g in groups}) == len(groups)


@examples(75, 300)
@given(histories)
def test_every_round_is_whole(history: list[Message]) -> None:
    for group in group_messages(history):
        if group.kind == "round":
            assert [m.call_id for m in group.messages[1:]] == [c.id for c in group.first.calls]
            assert all(m.seq > group.first.seq for m in group.messages[1:]), "a result before its call is not attached"
        else:
            assert len(group.messages) == 1
            assert not group.first.calls


def test_parallel_and_late_results_join_their_call_and_others_stay_outside() -> None:
    assert shape_of("u", "A:x,y", "R:y", "s", "u", "R:x") == ["user 1", "round 2 6 3", "note 4", "user 5"]


def test_ids_used_again_pair_by_occurrence() -> None:
    assert shape_of("u", "A:x", "R:x", "A:x", "R:x") == ["user 1", "round 2 3", "round 4 5"]
    assert shape_of("u", "A:x,x", "R:x", "R:x") == ["user 1", "round 2 3 4"]
    assert shape_of("u", "A:x", "A:x", "R:x", "R:x") == ["user 1", "round 2 4", "round 3 5"]


def test_an_id_used_again_after_an_unanswered_call_goes_to_the_newer_call() -> None:
    assert shape_of("u", "A:x", "A:x", "R:x") == ["user 1", "round 2 -", "round 3 4"]
    assert shape_of("u", "A:x", "u", "A:x", "R:x") == ["user 1", "round 2 -", "user 3", "round 4 5"]


def test_a_result_before_its_call_and_a_second_answer_are_strays() -> None:
    assert shape_of("u", "R:x", "A:x") == ["user 1", "stray 2", "round 3 -"]
    assert shape_of("u", "A:x", "R:x", "R:x") == ["user 1", "round 2 3", "stray 4"]


def test_sealing_refuses_what_does_not_pair() -> None:
    call, result, other = said("A:x", "R:x", "R:y")
    assert seal_round(call, [result], 1).messages == (call, result)
    with pytest.raises(UnpairedCall, match="has no result"):
        seal_round(call, [], 1)
    with pytest.raises(UnpairedCall, match="answers no call"):
        seal_round(call, [result, other], 1)


def test_an_interrupted_round_is_closed() -> None:
    call, first = said("A:x,y", "R:y")
    group = close_round(call, [first], 1, next_seq=3, text="[cancelled]")
    assert [(m.call_id, m.text, m.seq) for m in group.messages[1:]] == [("x", "[cancelled]", 3), ("y", "result 2", 2)]


def test_what_closes_a_call_takes_no_place_that_is_taken_elsewhere() -> None:
    call = Message(2, "assistant", "", calls=(ToolCall("a", "read_file", "{}"),))
    (closed,) = group_messages([call], free=9)
    assert [m.seq for m in closed.messages] == [2, 9]
