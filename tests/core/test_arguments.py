"""Long arguments of old calls: shorter, still JSON, the whole a file away, and back with an undo."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.applying import apply_plan
from ctxchat.core.grouping import group_messages
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.strategies.arguments import short_calls
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter
from tests.core.histories import budget_of, see

METER = TokenCounter()
CODE = "def f():\n    return 'naïve 👩‍👩‍👧'\n" * 1500
"""Some 50 KB, as a file that is written."""


def wrote(seq: int, **fields: object) -> list[Message]:
    call = ToolCall("w", "write_file", json.dumps(fields, ensure_ascii=False))
    return [
        Message(seq, "user", "write it"),
        Message(seq + 1, "assistant", calls=(call,)),
        Message(seq + 2, "tool", "written", call_id="w"),
    ]


def planned(history: list[Message], name: str, **told: object) -> tuple[Ledger, Plan | None, Ledger]:
    ledger = Ledger(groups=group_messages(history))
    options = msgspec.structs.replace(PlanOptions(counter=METER), **told)
    plan = builtin_strategies(options)[name].plan(see(ledger, options), ledger, budget_of(8000, 6000, 100))
    return (
        ledger,
        plan,
        ledger.apply(apply_plan(ledger, plan, "p", options, summary="It is written.")) if plan else ledger,
    )


@pytest.mark.parametrize(("name", "keep", "most"), [("shrink_tool_results", 1, 240), ("oversize", 99, 4000)])
def test_a_file_that_was_written_is_not_carried_on_whole(name: str, keep: int, most: int) -> None:
    history = [*wrote(1, path="src/app.py", content=CODE), Message(4, "user", "and now?")]
    ledger, plan, after = planned(history, name, keep_recent=keep)
    assert plan is not None and plan.after < 2200
    [spill] = plan.steps[0].spills
    assert spill.name == "tool-results/m2-call1.json" and json.loads(spill.text)["content"] == CODE
    [call] = after.live()[1].group.first.calls  # type: ignore[union-attr]
    told = json.loads(call.arguments)
    assert (call.id, call.name, told["path"]) == ("w", "write_file", "src/app.py")
    assert told["content"].startswith("def f():") and len(told["content"]) <= most + 120
    assert "full arguments: tool-results/m2-call1.json, " in told["content"]
    assert after.undo("p").live() == ledger.live()


def test_short_arguments_and_recent_ones_stay() -> None:
    assert planned([*wrote(1, path="a.py", content="x = 1"), Message(4, "user", "?")], "shrink_tool_results")[1] is None
    assert planned(wrote(1, path="a.py", content=CODE), "shrink_tool_results", keep_recent=10)[1] is None


def test_what_stands_for_an_edit_counts_its_lines_whatever_was_cut_of_the_call() -> None:
    edit = ToolCall("e", "edit_file", json.dumps({"path": "a.py", "old": "x = 1", "new": CODE}))
    answer = "Changed a.py: +3000 −1.\n" + "1\tdef f():\n" * 40
    history = [
        Message(1, "user", "mend it"),
        Message(2, "assistant", calls=(edit,)),
        Message(3, "tool", answer, call_id="e", name="edit_file"),
        Message(4, "user", "and now?"),
        Message(5, "assistant", "Wait."),
    ]
    options = PlanOptions(counter=METER, keep_recent=9)
    ledger = Ledger(groups=group_messages(history))
    for place, (name, keep) in enumerate((("oversize", 9), ("shrink_tool_results", 1))):
        options = msgspec.structs.replace(options, keep_recent=keep, recent_results=0)
        plan = builtin_strategies(options)[name].plan(see(ledger, options), ledger, budget_of(8000, 6000, 100))
        assert plan is not None
        ledger = ledger.apply(apply_plan(ledger, plan, f"p{place}", options))
    _, result = ledger.live()[1].group.messages  # type: ignore[union-attr]
    assert result.text.startswith("+3000 −1: def f():\n[full text: tool-results/m3.txt")


def test_a_later_fold_takes_the_file_with_it() -> None:
    told = Message(4, "assistant", "It is written. " * 900)
    history = [
        *wrote(1, path="a.py", content=CODE),
        told,
        Message(5, "user", "and now?"),
        Message(6, "assistant", "done"),
    ]
    _, plan, _ = planned(history, "pipeline", keep_recent=1)
    assert plan is not None and (plan.steps[0].name, plan.steps[-1].name) == ("shrink_tool_results", "summarize")
    assert not any(t.name.startswith("tool-results/m2") for s in plan.steps for t in s.spills), (
        "nobody would be pointed there"
    )


def test_of_an_edit_what_took_the_place_stays_before_what_was_replaced() -> None:
    before = "\n".join(f"- [ ] step {n} of the plan as it was first written down" for n in range(12))
    after = before.replace("[ ]", "[x]", 11)
    [call, _] = wrote(1, path="plan.md", old_string=before, new_string=after)[1:3]
    made, _ = short_calls(call, call, 300, METER)
    told = json.loads(made.calls[0].arguments)
    assert told["new_string"] == after and len(told["old_string"]) < 200


def test_of_a_long_text_the_end_stays_as_well() -> None:
    listed = "\n".join(f"- [{'x' if n < 60 else ' '}] step {n} of the plan" for n in range(61))
    call = wrote(1, path="plan.md", content=listed)[1]
    made, _ = short_calls(call, call, 300, METER, 240)
    assert json.loads(made.calls[0].arguments)["content"].endswith("\n- [ ] step 60 of the plan")


def test_parallel_calls_are_told_apart() -> None:
    long, short = json.dumps({"content": CODE}), json.dumps({"content": "x"})
    message = Message(
        7, "assistant", calls=(ToolCall("a", "w", short), ToolCall("b", "w", long), ToolCall("c", "w", long))
    )
    made, spills = short_calls(message, message, 300, METER)
    assert made.calls[0] == message.calls[0] and made.calls[1] != message.calls[1]
    assert [spill.name for spill in spills] == ["tool-results/m7-call2.json", "tool-results/m7-call3.json"]
    assert short_calls(made, message, 10, METER) == (made, ()), "what was shortened once stays"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=900),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=8), inner, max_size=20),
    max_leaves=60,
)


@given(
    st.dictionaries(st.text(max_size=8), JSON, max_size=20).map(json.dumps) | st.text(max_size=2000),
    st.integers(20, 400),
)
def test_any_arguments_become_an_object_and_never_longer(arguments: str, cap: int) -> None:
    message = Message(3, "assistant", calls=(ToolCall("a", "t", arguments),))
    made, spills = short_calls(message, message, cap, METER)
    if spills:
        assert isinstance(json.loads(made.calls[0].arguments), dict)
        assert METER.message(made) < METER.message(message)
        assert spills[0].text == arguments
    else:
        assert made == message
