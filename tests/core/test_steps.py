"""What each strategy does, by example, and a long turn that never outgrows its window."""

from __future__ import annotations

import msgspec
import pytest

from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.grouping import group_messages, seal_round
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.messages import Image, Message, Reasoning, ToolCall
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.builtin import LOSSLESS, builtin_strategies
from ctxchat.core.strategies.drop_superseded import DropSuperseded
from ctxchat.core.strategies.pipeline import Pipeline
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import problems
from tests.core.histories import budget_of, see

BUDGET = budget_of(100_000, 80_000, 100)


def turn(start: int, *results: str, path: str = "a.py", thought: str = "") -> list[Message]:
    """A question, a round for each result, an answer."""
    history = [Message(start, "user", f"question {start}")]
    for number, result in enumerate(results):
        seq = start + 1 + 2 * number
        made = ToolCall("c", "read_file", f'{{"path": "{path}"}}')
        reasoning = Reasoning(thought) if thought else None
        history.append(Message(seq, "assistant", calls=(made,), reasoning=reasoning))
        history.append(Message(seq + 1, "tool", result, call_id="c"))
    history.append(Message(start + 1 + 2 * len(results), "assistant", f"answer {start}"))
    return history


def planned(history: list[Message], name: str, **told: object) -> tuple[Ledger, Plan | None, Ledger]:
    ledger = Ledger(groups=group_messages(history))
    options = PlanOptions(**({"counter": TokenCounter(), "recent_results": 0} | told))  # type: ignore[arg-type]
    plan = builtin_strategies(options)[name].plan(see(ledger, options), ledger, BUDGET)
    after = ledger.apply(apply_plan(ledger, plan, "p", options, summary="summary")) if plan else ledger
    return ledger, plan, after


def texts(ledger: Ledger) -> list[str]:
    return [i.message.text for i in see(ledger, PlanOptions()).items[1:]]


LONG = "first line\n" + "word " * 500


def test_old_results_become_a_line_and_a_pointer() -> None:
    _, plan, after = planned(turn(1, LONG) + turn(5, LONG), "shrink_tool_results", keep_recent=4)
    assert plan is not None
    assert [(s.name, s.text) for s in plan.steps[0].spills] == [("tool-results/m3.txt", LONG)]
    assert texts(after)[2].startswith("2 lines of a.py\n[full text: tool-results/m3.txt, ")
    assert texts(after)[2].endswith(" tokens]")
    assert texts(after)[6] == LONG


def test_a_result_clipped_on_arrival_keeps_its_own_file() -> None:
    clipped = LONG + "\n[full text: tool-results/m3.txt, 90000 tokens]"
    _, plan, after = planned(turn(1, clipped) + turn(5, "x"), "shrink_tool_results", keep_recent=4)
    assert plan is not None
    assert plan.steps[0].spills == ()
    assert texts(after)[2] == "2 lines of a.py\n[full text: tool-results/m3.txt, 90000 tokens]"


def test_a_file_read_again_supersedes_the_older_result_only() -> None:
    _, plan, after = planned(turn(1, LONG, LONG + "new") + turn(7, "x", path="b.py"), "drop_superseded", keep_recent=3)
    assert plan is not None
    assert texts(after)[2] == "[superseded by the same call further on (m5); the old result is m3]"
    assert texts(after)[4] == LONG + "new"
    assert plan.steps[0].spills == ()


def test_a_list_written_anew_supersedes_the_older_ones() -> None:
    history = turn(1, LONG, LONG + "new", LONG + "newest")
    lists = [
        msgspec.structs.replace(m, calls=(ToolCall("c", "todo", f'{{"items": [{m.seq}]}}'),)) if m.calls else m
        for m in history
    ]
    _, plan, after = planned(lists + turn(9, "x"), "drop_superseded", keep_recent=4)
    assert plan is not None
    assert texts(after)[2] == "[superseded by the list further on (m7); the old result is m3]"
    assert [t == LONG + "newest" for t in texts(after)].count(True) == 1 and LONG + "new" not in texts(after)


def test_of_a_command_that_ran_again_it_stays_known_how_it_ended() -> None:
    ran = [
        msgspec.structs.replace(m, calls=(ToolCall(m.calls[0].id, "shell", '{"command": "make test"}'),))
        if m.calls
        else m
        for m in turn(1, LONG + "\nOverflowError: no infinity\n[exit code: 1]", LONG) + turn(7, "x")
    ]
    _, plan, after = planned(ran, "drop_superseded", keep_recent=3)
    assert plan is not None
    ended, superseded = texts(after)[2].split("\n")
    assert ended == "exit 1: OverflowError: no infinity"
    assert superseded == "[superseded by the same call further on (m9); the old result is m3]"


def test_a_later_failure_supersedes_nothing() -> None:
    _, plan, _ = planned(
        turn(1, LONG, "error: no such file") + turn(7, "x", path="b.py"), "drop_superseded", keep_recent=3
    )
    assert plan is None


@pytest.mark.parametrize(
    ("result", "keep", "pinned", "why"),
    [
        (LONG, 6, (), "among the newest"),
        (LONG, 1, ("g2",), "pinned"),
        ("x", 1, (), "short already"),
    ],
)
def test_what_was_read_twice_and_stays_is_not_denied(result: str, keep: int, pinned: tuple[str, ...], why: str) -> None:
    ledger = Ledger(groups=group_messages(turn(1, result, LONG)))
    for name in pinned:
        ledger = ledger.apply(Change(id="c", kind="pin", pins=(name,)))
    strategy = DropSuperseded(PlanOptions(keep_recent=keep))
    view = see(ledger, strategy.options)
    assert strategy.plan(view, ledger, BUDGET) is None
    assert strategy.why_nothing(view, ledger) == f"what was read or run twice is {why}"
    newer = ledger.group("g4")
    shorter = tuple(msgspec.structs.replace(m, content="cut") if m.role == "tool" else m for m in newer.messages)
    edit = Edit("shrink", ("g4",), msgspec.structs.replace(newer, messages=shorter))
    cut = ledger.apply(Change(id="e", kind="compaction", edits=(edit,)))
    assert strategy.why_nothing(see(cut, strategy.options), cut) == f"what was read or run twice is {why}"
    other = Ledger(groups=group_messages(turn(1, LONG) + turn(5, LONG, path="b.py")))
    assert strategy.why_nothing(see(other, strategy.options), other) == strategy.nothing


def test_reasoning_of_earlier_turns_goes_and_that_of_the_current_one_stays() -> None:
    history = turn(1, "r", thought="t " * 200) + turn(5, "r", thought="t " * 200)
    _, plan, after = planned(history, "strip_reasoning", keep_recent=0)
    assert plan is not None
    kept = [bool(i.message.reasoning) for i in see(after, PlanOptions()).items if i.message.calls]
    assert kept == [False, True]


def test_old_rounds_are_dropped_whole() -> None:
    _, plan, after = planned(turn(1, LONG) + turn(5, LONG), "drop_tool_calls", keep_recent=4)
    assert plan is not None
    recap, *rest = texts(after)
    assert rest == ["question 1", "answer 1", "question 5", "", LONG, "answer 5"]
    assert "m3 read_file a.py" in recap, "and a recap tells of them"


def test_no_more_rounds_are_dropped_than_it_takes() -> None:
    history = [m for n in range(6) for m in turn(1 + 4 * n, LONG)]
    ledger, options = Ledger(groups=group_messages(history)), PlanOptions(keep_recent=0)
    view = see(ledger, options)
    target = view.raw * 3 // 5
    plan = builtin_strategies(options)["drop_tool_calls"].plan(view, ledger, budget_of(100_000, 80_000, target))
    assert plan is not None and plan.steps[0].groups < 6 and plan.after <= target


def test_the_window_slides_by_turns() -> None:
    history = [m for n in range(5) for m in turn(1 + 4 * n, LONG)]
    _, plan, after = planned(history, "sliding_window", keep_turns=2)
    assert plan is not None
    assert texts(after)[1] == "question 13"
    assert all(f"question {n}" in texts(after)[0] for n in (1, 5, 9)), "what has left is told in a recap"


def test_truncation_falls_on_a_turn_boundary() -> None:
    history = [m for n in range(6) for m in turn(1 + 4 * n, LONG)]
    ledger = Ledger(groups=group_messages(history))
    options = PlanOptions(keep_recent=3)
    budget = budget_of(100_000, 80_000, 1500)
    plan = builtin_strategies(options)["truncate"].plan(see(ledger, options), ledger, budget)
    assert plan is not None
    last = ledger.group(plan.covers[-1]).turn
    assert plan.covers == tuple(g.id for g in ledger.groups if g.turn <= last < 6)


def test_a_long_turn_is_cut_between_groups_where_the_boundary_frees_too_little() -> None:
    history = turn(1, "r") + turn(5, *[LONG] * 10)
    _, plan, after = planned(history, "truncate", keep_recent=3)
    assert plan is not None
    assert "g5" not in plan.covers
    assert "g6" in plan.covers
    assert problems(see(after, PlanOptions())) == []
    assert "question 5" in texts(after)


def test_oldest_go_first_until_it_fits() -> None:
    history = [m for n in range(6) for m in turn(1 + 4 * n, LONG)]
    ledger = Ledger(groups=group_messages(history))
    options = PlanOptions(keep_recent=4)
    view = see(ledger, options)
    plan = builtin_strategies(options)["token_budget"].plan(view, ledger, budget_of(9000, 8000, view.raw * 55 // 100))
    assert plan is not None
    assert plan.after <= view.raw * 55 // 100
    assert plan.covers == tuple(g.id for g in ledger.groups if g.turn <= 3), "whole turns, and no more than needed"


def test_a_huge_result_keeps_head_and_tail() -> None:
    huge = "HEAD " + "word " * 5000 + " TAIL"
    _, plan, after = planned(turn(1, huge), "oversize", oversize_tokens=300)
    assert plan is not None
    text = texts(after)[2]
    assert text.startswith("HEAD")
    assert text.endswith("TAIL")
    assert "full text: tool-results/m3.txt" in text
    assert plan.steps[0].spills[0].text == huge


@pytest.mark.parametrize("allowed", [False, True])
def test_the_current_message_is_clipped_only_where_that_is_allowed(allowed: bool) -> None:
    history = [Message(1, "user", "paste " * 5000)]
    _, plan, _ = planned(history, "oversize", oversize_tokens=300, clip_current=allowed)
    assert (plan is not None) is allowed


def test_images_have_their_own_way_out() -> None:
    images = tuple(Image("data:image/png;base64,AAAA", 2000, 2000) for _ in range(9))
    _, plan, after = planned([Message(1, "user", images), Message(2, "user", "so?")], "oversize", oversize_tokens=300)
    assert plan is not None
    assert "[image 2000×2000]" in texts(after)[0]


def test_the_pipeline_stops_as_soon_as_the_target_is_met() -> None:
    history = turn(1, LONG, LONG) + turn(7, LONG, path="b.py") + turn(11, "x", path="c.py")
    ledger = Ledger(groups=group_messages(history))
    options = PlanOptions(keep_recent=2, summary_max_tokens=50, facts_max_tokens=50, recent_results=0)
    view = see(ledger, options)
    steps = {}
    for target in (view.raw, view.raw - 300, view.raw - 1200, 10):
        plan = builtin_strategies(options)["pipeline"].plan(view, ledger, budget_of(4000, 3000, target))
        steps[target] = [s.name for s in plan.steps] if plan else []
    assert list(steps.values())[:3] == [[], ["drop_superseded"], ["drop_superseded", "shrink_tool_results"]]
    assert list(steps.values())[3][0] == "drop_superseded"


def test_steps_can_be_left_out_by_planning_without_them() -> None:
    history = turn(1, LONG, LONG) + turn(7, "x")
    ledger = Ledger(groups=group_messages(history))
    options = PlanOptions(keep_recent=2, recent_results=0)
    pipeline = builtin_strategies(options)["pipeline"]
    assert isinstance(pipeline, Pipeline)
    plan = pipeline.with_steps(["shrink_tool_results"]).plan(see(ledger, options), ledger, BUDGET)
    assert plan is not None
    assert [s.name for s in plan.steps] == ["shrink_tool_results"]
    met = msgspec.structs.replace(BUDGET, target=see(ledger, options).raw)
    assert pipeline.plan(see(ledger, options), ledger, met) is None
    beyond = pipeline.with_steps(["drop_superseded", "summarize"], ["summarize"]).plan(
        see(ledger, options), ledger, met
    )
    assert beyond is not None and [s.name for s in beyond.steps] == ["summarize"]
    assert set(LOSSLESS) < set(builtin_strategies(options))


def test_texts_of_results_that_are_folded_in_the_same_pass_are_not_saved() -> None:
    history = [m for n in range(6) for m in turn(1 + 4 * n, LONG, path=f"{n}.py" + "long" * 300)]
    _, plan, _ = planned(history, "pipeline", keep_recent=2, summary_max_tokens=40, facts_max_tokens=40)
    assert plan is not None
    assert [s.name for s in plan.steps] == ["shrink_tool_results", "summarize"]
    assert {"g2", "g6", "g10", "g14", "g18"} <= set(plan.steps[-1].fold)
    assert plan.steps[0].edits
    assert [t.name for s in plan.steps for t in s.spills] == []


@pytest.mark.parametrize("keep", [0, 1, 2, 5])
def test_the_newest_rounds_of_a_long_turn_stay(keep: int) -> None:
    ledger, plan, after = planned(
        turn(1, "r") + turn(5, *[LONG] * 12)[:-1], "reactive_full", preserve_recent_rounds=keep
    )
    assert plan is not None
    rounds = [g.id for g in ledger.groups if g.kind == "round"]
    shown = {item.group for item in see(after, PlanOptions()).items}
    assert [r for r in rounds if r in shown] == (rounds[-keep:] if keep else [])
    assert "g5" in shown


def test_the_oldest_rounds_go_in_batches_and_no_more_than_needed() -> None:
    ledger = Ledger(groups=group_messages(turn(1, *[LONG] * 20)[:-1]))
    options = PlanOptions(micro_batch_groups=4, recap_tokens=100, facts_max_tokens=100)
    view = see(ledger, options)
    budget = budget_of(view.raw + 1000, view.raw, view.raw * 8 // 10)
    plan = builtin_strategies(options)["reactive_micro"].plan(view, ledger, budget)
    assert plan is not None
    assert plan.covers == tuple(f"g{2 * n}" for n in range(1, 5)), (
        "a batch of four is enough to get halfway to the target"
    )


@pytest.mark.parametrize("window", [8192, 32_768])
def test_forty_rounds_in_one_turn_never_outgrow_the_window(window: int) -> None:
    options = PlanOptions(preserve_recent_rounds=2, micro_batch_groups=4)
    budget = make_budget(Window(window, "loaded"), 1024, 0.75, 0.5)
    result = "line of a result with words\n" * (window // 300)
    ledger = Ledger(groups=group_messages([Message(1, "user", "do all forty")]))
    for number in range(40):
        seq = ledger.next_seq
        made = ToolCall(f"c{number}", "read_file", f'{{"path": "src/file{number}.py"}}')
        call, answer = (
            Message(seq, "assistant", calls=(made,)),
            Message(seq + 1, "tool", f"{number}\n{result}", call_id=made.id),
        )
        ledger = ledger.append(seal_round(call, [answer], 1))
        for name in ("reactive_micro", "reactive_full"):
            view = see(ledger, options)
            share = 0.85 if name == "reactive_micro" else 0.92
            if view.raw >= budget.limit * share:
                plan = builtin_strategies(options)[name].plan(view, ledger, budget)
                assert plan is not None
                ledger = ledger.apply(apply_plan(ledger, plan, f"p{number}{name}", options))
        view = see(ledger, options)
        assert view.raw < budget.limit
        assert problems(view) == []
        assert "do all forty" in [i.message.text for i in view.items]
        assert view.items[-1].message.call_id == f"c{number}"
        assert f"src/file{max(0, number - 1)}.py" in "".join(c.arguments for i in view.items for c in i.message.calls)
    assert len(ledger.messages()) == 81


def test_what_the_agent_has_read_last_stays_whole_inside_a_turn_where_the_trigger_is_not_met():
    """It would be asked for again at once."""
    history = [Message(1, "user", "Go.")]
    for n in range(4):
        call = ToolCall(f"c{n}", "read_file", f'{{"path": "a{n}.py"}}')
        history += [
            Message(2 + 2 * n, "assistant", calls=(call,)),
            Message(3 + 2 * n, "tool", f"result {n}. " * 200, call_id=call.id),
        ]
    ledger = Ledger(groups=group_messages(history))
    options = PlanOptions(keep_recent=1, recent_results=0)
    view = see(ledger, options)
    shrink = builtin_strategies(options)["shrink_tool_results"]
    for trigger, shrunk in ((view.raw * 3 // 4, 2), (view.raw // 3, 3)):
        plan = shrink.plan(view, ledger, budget_of(view.raw * 2, trigger, 10))
        assert plan is not None and len(plan.steps[0].edits) == shrunk


def test_the_newest_results_stay_whole_as_far_as_their_cap_goes():
    history = [m for n in range(5) for m in turn(4 * n + 1, f"result {n}. " * 200)]

    def shrunk(**told: int) -> set[str]:
        _, _, after = planned(history, "shrink_tool_results", keep_recent=1, **told)
        return {text[:8] for text in texts(after) if "full text" in text}

    size = TokenCounter().message(history[2])
    assert len(shrunk()) == 5
    assert shrunk(recent_results=2) == {"result 0", "result 1", "result 2"}
    assert len(shrunk(recent_results=4, recent_result_tokens=size + size // 2)) == 4
    assert shrunk(recent_results=9) == set()
    history += turn(21, "a log of all. " * (BUDGET.limit // 8))
    assert shrunk(recent_results=9) == {"a log of"}, "but for one that takes too much of the window"
