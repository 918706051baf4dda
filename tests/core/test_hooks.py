"""Conditions, and how often a hook may act."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.hooks import (
    CompactContext,
    Hook,
    HookEvent,
    Inject,
    Moment,
    Notify,
    RunCommand,
    Tally,
    When,
    firing,
    holds,
    replaces_automatic,
    rested,
)
from ctxchat.core.journal import HookFired, Record, fold

NAMES = ("read_file", "write_file", "shell", "mcp_git_log", "")
PATTERNS = ("*", "read_*", "shell", "*_file", "mcp_*", "[rw]*", "nothing", "")

moments = st.builds(
    Moment,
    context_pressure=st.floats(0, 3),
    turn_count=st.integers(0, 50),
    tool_calls=st.integers(0, 50),
    message_count=st.integers(0, 500),
    tool_name=st.sampled_from(NAMES),
)
maybe = st.none()
plain = st.builds(
    When,
    context_pressure=maybe | st.floats(0, 3),
    turn_count=maybe | st.integers(0, 50),
    tool_calls=maybe | st.integers(0, 50),
    message_count=maybe | st.integers(0, 500),
    tool_name=maybe | st.sampled_from(PATTERNS),
)


def _nested(inner: st.SearchStrategy[When]) -> st.SearchStrategy[When]:
    several = maybe | st.lists(inner, max_size=3).map(tuple)
    return st.builds(
        When,
        context_pressure=maybe | st.floats(0, 3),
        turn_count=maybe | st.integers(0, 50),
        all_of=several,
        any_of=several,
        not_=maybe | inner,
    )


conditions = st.recursive(plain, _nested, max_leaves=12)


# ── conditions ──


@given(conditions, moments)
def test_a_negation_turns_every_condition_around(when: When, moment: Moment):
    assert holds(When(not_=when), moment) != holds(when, moment)
    assert holds(When(not_=When(not_=when)), moment) == holds(when, moment)


@given(st.lists(conditions, max_size=4).map(tuple), moments)
def test_all_and_any_mean_what_they_say_and_mirror_each_other(parts: tuple[When, ...], moment: Moment):
    each = [holds(part, moment) for part in parts]
    assert holds(When(all_of=parts), moment) == all(each)
    assert holds(When(any_of=parts), moment) == any(each)
    negated = tuple(When(not_=part) for part in parts)
    assert holds(When(not_=When(all_of=parts)), moment) == holds(When(any_of=negated), moment)


@given(conditions, moments)
def test_fields_side_by_side_are_the_conjunction_of_the_fields_alone(when: When, moment: Moment):
    given_fields = {f: getattr(when, f) for f in When.__struct_fields__ if getattr(when, f) is not None}
    assert holds(when, moment) == all(holds(When(**{f: value}), moment) for f, value in given_fields.items())


@given(plain, moments, st.integers(0, 20))
def test_more_of_everything_never_ends_a_condition_without_negation(when: When, moment: Moment, more: int):
    bigger = msgspec.structs.replace(
        moment,
        context_pressure=moment.context_pressure + more,
        turn_count=moment.turn_count + more,
        tool_calls=moment.tool_calls + more,
        message_count=moment.message_count + more,
    )
    assert not holds(when, moment) or holds(when, bigger)


@given(conditions)
def test_conditions_survive_json(when: When):
    assert msgspec.json.decode(msgspec.json.encode(when), type=When) == when


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*", "shell", True),
        ("*", "", False),  # not about a tool at all
        ("write_*", "write_file", True),
        ("write_*", "overwrite_file", False),
        ("mcp_[gh]*", "mcp_git", True),
        ("Shell", "shell", False),
    ],
)
def test_names_with_wildcards(pattern: str, name: str, expected: bool):
    assert holds(When(tool_name=pattern), Moment(tool_name=name)) is expected


def test_numbers_mean_at_least():
    assert holds(When(context_pressure=0.7, turn_count=3), Moment(context_pressure=0.7, turn_count=3))
    assert not holds(When(context_pressure=0.7, turn_count=3), Moment(context_pressure=0.69, turn_count=3))
    assert not holds(When(tool_calls=1), Moment())
    assert not holds(When(message_count=1), Moment())
    assert holds(When(), Moment())


# ── which, and how often ──

hooks_lists = st.lists(
    st.builds(
        Hook,
        name=st.text(min_size=1, max_size=5),
        event=st.sampled_from(["turn_started", "turn_finished"]),
        action=st.just(Notify("now")),
        when=plain,
        cooldown=st.integers(0, 5),
        max_fires=st.integers(0, 4),
        priority=st.integers(-3, 3),
    ),
    max_size=6,
    unique_by=lambda hook: hook.name,
)


@given(hooks_lists, moments)
def test_only_hooks_of_the_event_whose_condition_holds_act_highest_first(hooks: list[Hook], moment: Moment):
    event: HookEvent = "turn_started"
    chosen = firing(hooks, event, moment)
    assert set(chosen) == {h for h in hooks if h.event == event and holds(h.when, moment)}
    assert [h.priority for h in chosen] == sorted((h.priority for h in chosen), reverse=True)
    places = [(-h.priority, hooks.index(h)) for h in chosen]
    assert places == sorted(places)  # of one priority in the order given


@given(st.integers(0, 6), st.integers(0, 5), st.lists(st.integers(0, 3), max_size=40))
def test_cooldown_and_limit_hold_over_any_run_of_turns(cooldown: int, limit: int, steps: list[int]):
    hook = Hook("h", "turn_finished", Notify("x"), cooldown=cooldown, max_fires=limit)
    tally, turn, fired = Tally(), 1, []
    for step in steps:
        turn += step
        if firing([hook], "turn_finished", Moment(turn_count=turn), {"h": tally}):
            tally = tally.count_turn(turn)
            fired.append(turn)
    assert tally.fires == len(fired)
    assert not limit or len(fired) <= limit
    assert all(b - a >= cooldown for a, b in pairwise(fired))
    if not limit and steps:
        assert fired and fired[0] == 1 + steps[0]  # and nothing holds it back the first time


def test_without_cooldown_and_limit_it_acts_each_time():
    hook = Hook("h", "tool_finished", Notify("x"))
    assert rested(hook, Tally(1000, 5), 5)
    assert not hook.counts


def test_one_turn_of_rest_is_once_a_turn():
    hook = Hook("h", "tool_finished", Notify("x"), cooldown=1)
    assert not rested(hook, Tally(1, 5), 5)
    assert rested(hook, Tally(1, 5), 6)
    assert hook.counts


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9)), max_size=12))
def test_the_journal_remembers_how_often_hooks_acted(fired: list[tuple[str, int]]):
    records: list[Record] = [HookFired(name, turn) for name, turn in fired]
    tallies = fold(records).hooks
    for name in "ab":
        turns = [turn for each, turn in fired if each == name]
        assert tallies.get(name, Tally()) == (Tally(len(turns), turns[-1]) if turns else Tally())
    half = len(records) // 2
    assert fold(records[half:], fold(records[:half])).hooks == tallies


@pytest.mark.parametrize("event", ["turn_started", "turn_finished", "tool_started", "tool_finished"])
def test_a_compaction_hook_in_the_course_of_turns_replaces_the_automatic_pass(event: HookEvent):
    assert replaces_automatic([Hook("a", "error", Notify("x")), Hook("b", event, CompactContext())])


def test_other_hooks_replace_nothing():
    others = [Hook("a", "turn_finished", Inject("x")), Hook("b", "turn_finished", RunCommand("true"))]
    beside = [Hook("c", "session_finished", CompactContext()), Hook("d", "error", CompactContext())]
    assert not replaces_automatic([*others, *beside])


def test_conditions_may_be_about_the_whole_session_and_each_so_manieth_turn() -> None:
    assert [n for n in range(31) if holds(When(every=10), Moment(turn_count=n))] == [10, 20, 30]
    assert holds(
        When(session_calls=40, session_messages=100), Moment(session_calls=40, session_messages=100, tool_calls=1)
    )
    assert not holds(When(session_calls=40), Moment(session_calls=39, tool_calls=99))
    assert holds(When(not_=When(every=2)), Moment(turn_count=3))
