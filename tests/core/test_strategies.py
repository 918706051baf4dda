"""Every strategy over any history: what is left is valid, whole, honestly counted, and a second run finds nothing to do."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Budget
from ctxchat.core.facts import Memory
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.folding import MIN_PART_TOKENS
from ctxchat.core.strategies.oversize import KEPT, bound_kept, clip_kept
from ctxchat.core.strategies.planning import Basis, PlanOptions
from ctxchat.core.summaries import earlier
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import View, problems
from ctxchat.core.working_set import CurrentFile, edits_in
from tests.core.histories import budget_of, histories, ledgers, see

METER = TokenCounter()
NAMES = sorted(builtin_strategies(PlanOptions()))
CUT_BY_MESSAGES = {
    "truncate", "summarize", "drop_tool_calls", "shrink_tool_results", "drop_superseded", "strip_reasoning"
}  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[Ledger, PlanOptions, Budget]:
    ledger = draw(ledgers)
    for place in draw(st.lists(st.integers(0, 30), max_size=2)):
        if place < len(ledger.groups):
            ledger = ledger.apply(Change(f"pin{place}-{len(ledger.changes)}", "pin", pins=(ledger.groups[place].id,)))
    options = PlanOptions(
        counter=METER,
        keep_recent=draw(st.integers(0, 8)),
        keep_turns=draw(st.integers(1, 3)),
        micro_batch_groups=draw(st.integers(1, 4)),
        preserve_recent_rounds=draw(st.integers(0, 3)),
        result_tokens=draw(st.sampled_from([0, 20, 80])),
        recent_results=draw(st.sampled_from([0, 4])),
        clip_current=draw(st.booleans()),
    )
    limit = draw(st.sampled_from([200, 1000, 4000, 32_000]))
    share = draw(st.floats(0.05, 0.8))
    return ledger, options, budget_of(limit, int(limit * 0.8), int(limit * share))


def perform(ledger: Ledger, plan: Plan, options: PlanOptions, number: int = 0) -> Ledger:
    """As the executor would, with a summary as long as it may be."""
    words = max((step.summary_tokens for step in plan.steps), default=0)
    text = "w " * max(1, (words * 3 - 3) // 2)
    return ledger.apply(apply_plan(ledger, plan, f"pass{number}", options, summary=text))


def seen_groups(view: View) -> list[str]:
    return list(dict.fromkeys(item.group for item in view.items if item.group))


@pytest.mark.parametrize("name", NAMES)
@given(case=cases())
def test_a_pass_keeps_every_promise(name: str, case: tuple[Ledger, PlanOptions, Budget]) -> None:
    ledger, options, budget = case
    strategy = builtin_strategies(options)[name]
    before = see(ledger, options)
    plan = strategy.plan(before, ledger, budget)
    assert plan == strategy.plan(before, ledger, budget), "the same state gives the same plan"
    if plan is None:
        return
    after_ledger = perform(ledger, plan, options)
    after = see(after_ledger, options)

    assert problems(after) == []
    assert after.items
    assert after.items[0] == before.items[0], "the system prompt stays first"
    assert after_ledger.groups == ledger.groups, "the record is whole"
    for group in ledger.pinned:
        assert [i.message for i in after.items if i.group == group] == [
            i.message for i in before.items if i.group == group
        ]
    current = [i.message for i in before.items if i.group in ledger.current]
    if current and not options.clip_current:
        assert [i.message for i in after.items if i.group in ledger.current] == current
    assert bool(current) == any(i.group in ledger.current for i in after.items)
    assert len(earlier(after_ledger)) <= 1

    assert plan.before == before.raw
    assert plan.after == plan.before - sum(step.tokens_freed for step in plan.steps)
    assert all(step.tokens_freed > 0 and (step.edits or step.fold) for step in plan.steps)
    if any(step.needs_summary for step in plan.steps):
        assert after.raw <= plan.after, "a summary takes no more than was set aside for it"
    else:
        assert after.raw == plan.after, "the gain is what was promised"
    assert after.raw < before.raw

    again = strategy.plan(after, after_ledger, budget)
    assert again is None, "a plan applied leaves nothing for a second run"
    assert see(after_ledger.undo("pass0"), options) == before, "and its undoing is exact"


@pytest.mark.parametrize("name", sorted(CUT_BY_MESSAGES))
@given(case=cases())
def test_recent_messages_stay_as_they_are(name: str, case: tuple[Ledger, PlanOptions, Budget]) -> None:
    ledger, options, budget = case
    before = see(ledger, options)
    plan = builtin_strategies(options)[name].plan(before, ledger, budget)
    if plan is None:
        return
    shown = [item for item in before.items if item.group]
    recent = {item.group for item in shown[len(shown) - options.keep_recent :]} if options.keep_recent else set()
    assert not recent.intersection(plan.covers)


@given(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5), st.lists(histories, min_size=2, max_size=5), cases())
def test_many_passes_with_turns_between(
    names: list[str], more: list[list[Message]], case: tuple[Ledger, PlanOptions, Budget]
) -> None:
    ledger, options, budget = case
    first = see(ledger, options)
    record = list(ledger.messages())
    done: list[str] = []
    for number, (name, history) in enumerate(zip(names, more, strict=False)):
        view = see(ledger, options)
        plan = builtin_strategies(options)[name].plan(view, ledger, budget)
        if plan is not None:
            ledger = perform(ledger, plan, options, number)
            done.append(f"pass{number}")
        assert problems(see(ledger, options)) == []
        assert len(earlier(ledger)) <= 1, "exactly one summary is active"
        covered = [c for e in ledger.live() for c in e.covers]
        assert sorted(covered) == sorted(g.id for g in ledger.groups)
        start, turn = ledger.next_seq, ledger.turn
        fresh = group_messages(_moved(history, start))
        groups = [_in_turn(g, turn) for g in fresh if g.kind != "system"]
        record += [m for g in groups for m in g.messages]
        ledger = ledger.append(*groups)
    assert sorted(ledger.messages(), key=lambda m: m.seq) == sorted(record, key=lambda m: m.seq)
    for name in done:
        ledger = ledger.undo(name)
    assert see(ledger, options).items[: len(first.items) - 1] == first.items[:-1] or len(first.items) <= 1


def _moved(history: list[Message], start: int) -> list[Message]:
    return [msgspec.structs.replace(m, seq=m.seq + start) for m in history]


def _in_turn(group: Group, turn: int) -> Group:
    return msgspec.structs.replace(group, turn=group.turn + turn)


def test_a_huge_result_among_what_is_kept_gives_way_where_the_target_is_missed() -> None:
    call = ToolCall("c", "shell", '{"command": "find ."}')
    listing = "\n".join(f"./src/part{n}/file{n}.py" for n in range(4_000))
    said = Message(1, "user", "pasted " * 3_000)
    history = [
        *(Message(n, "assistant" if n % 2 else "user", f"words {n} " * 40) for n in range(2, 30)),
        Message(30, "user", "look at this: " + "trace " * 2_000),
        Message(31, "assistant", calls=(call,)),
        Message(32, "tool", listing, call_id="c", name="shell"),
        Message(33, "assistant", "Seen."),
        Message(34, "user", "and now?"),
        Message(35, "assistant", "Done."),
    ]
    options = PlanOptions(keep_recent=12)
    ledger = Ledger(groups=group_messages([said, *history]))
    view = see(ledger, options)
    budget = budget_of(200_000, 150_000, 9_000)
    summarize = builtin_strategies(options)["summarize"]
    plan = summarize.plan(view, ledger, budget)
    assert plan is not None and plan.after > 30_000
    mended = clip_kept(Basis(view, ledger, options), summarize, plan, budget)
    assert mended is not None
    assert [step.name for step in mended.steps] == [KEPT, "summarize"], "the summary last"
    assert mended.after < 14_000 and mended.steps[0].spills[0].text == listing
    after = see(ledger.apply(apply_plan(ledger, mended, "p", options, summary="short")), options)
    texts = [item.message.text for item in after.items]
    assert history[28].text in texts, "what the person pasted stays"
    assert any("tool-results/m32.txt" in text and len(text) < 20_000 for text in texts)
    near = clip_kept(Basis(view, ledger, options), summarize, plan, budget_of(200_000, 150_000, plan.after - 1_000))
    assert near is not None and near.steps[0].tokens_freed < mended.steps[0].tokens_freed, "only down to the target"
    open_round = Ledger(groups=group_messages([said, *history[:-3]]))
    assert clip_kept(Basis(see(open_round, options), open_round, options), summarize, None, budget) is None, (
        "not seen yet"
    )


def test_what_the_agent_read_last_is_cut_only_where_the_trigger_is_met_otherwise() -> None:
    def read(place: int, many: int) -> list[Message]:
        call = ToolCall(f"c{place}", "shell", json.dumps({"command": f"find {place}"}))
        listing = "\n".join(f"./src/part{n}/file{n}.py" for n in range(many))
        return [Message(place, "assistant", calls=(call,)), Message(place + 1, "tool", listing, call_id=call.id)]

    options = PlanOptions(keep_recent=99)
    history = [Message(1, "user", "Go."), *read(2, 300), *read(4, 300), *read(6, 300)]
    *before, last = group_messages(history)
    ledger = Ledger(groups=(*before, single("note", Message(8, "user", "[The window is half full]"), 1), last))
    view = see(ledger, options)
    truncate = builtin_strategies(options)["truncate"]
    for trigger, cut in ((view.raw - 1_000, {"m3"}), (view.raw // 2, {"m3", "m5"})):
        plan = clip_kept(Basis(view, ledger, options), truncate, None, budget_of(view.raw * 5 // 4, trigger, 100))
        assert plan is not None
        assert {spill.name for spill in plan.steps[0].spills} == {f"tool-results/{name}.txt" for name in cut}


@settings(max_examples=20)
@given(st.lists(st.integers(10, 1_500), min_size=2, max_size=8), st.integers(1, 12), st.sampled_from([0.3, 0.5, 0.7]))
def test_no_result_that_is_kept_takes_more_than_its_bound(lines: list[int], keep: int, share: float) -> None:
    history = [Message(1, "user", "Go.")]
    for place, many in enumerate(lines):
        listing = "\n".join(f"./src/part{n}/file{n}.py" for n in range(many))
        call = ToolCall(f"c{place}", "shell", json.dumps({"command": f"find {place}"}))
        history += [
            Message(2 + 2 * place, "assistant", calls=(call,)),
            Message(3 + 2 * place, "tool", listing, call_id=call.id, name="shell"),
        ]
    options = PlanOptions(keep_recent=keep, memory=MEMORY)
    ledger = Ledger(groups=group_messages(history))
    view = see(ledger, options)
    budget = budget_of(32_000, 24_000, int(view.raw * share))
    truncate = builtin_strategies(options)["truncate"]
    plan = truncate.plan(view, ledger, budget)
    if plan is None:
        return
    bounded = bound_kept(Basis(view, ledger, options), truncate, plan, budget)
    after = see(ledger.apply(apply_plan(ledger, bounded, "p", options)), options)
    results = [item.tokens for item in after.items if item.message.role == "tool"]
    assert all(tokens <= budget.limit // 8 + 1 for tokens in results[:-1]), "but for the one nobody has seen yet"
    assert after.items[-1].message == view.items[-1].message
    assert bounded == plan or any(step.name == KEPT and step.spills for step in bounded.steps), "all of it can be read"


def test_long_arguments_give_way_where_only_the_result_was_superseded() -> None:
    def ran(seq: int, result: str) -> list[Message]:
        call = ToolCall(f"c{seq}", "shell", json.dumps({"command": "naive line\n" * 900}))
        return [Message(seq, "assistant", calls=(call,)), Message(seq + 1, "tool", result, call_id=call.id)]

    history = [Message(1, "user", "Go."), *ran(2, "word " * 300), *ran(4, "done")]
    options = PlanOptions(keep_recent=0)
    ledger = Ledger(groups=group_messages(history))
    view, budget = see(ledger, options), budget_of(20_000, 9_000, 100)
    superseded = builtin_strategies(options)["drop_superseded"]
    plan = clip_kept(Basis(view, ledger, options), superseded, superseded.plan(view, ledger, budget), budget)
    assert plan is not None
    assert [step.name for step in plan.steps] == [KEPT, "drop_superseded"]
    done = ledger.apply(apply_plan(ledger, plan, "p", options))
    left = see(done, options)
    assert left.raw == plan.after
    assert superseded.plan(left, done, budget) is None, "the same call still, whatever was cut of it"
    assert clip_kept(Basis(left, done, options), superseded, None, budget) is None, (
        "nothing is left for a second compaction"
    )


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 2_000)), min_size=1, max_size=12), st.integers(0, 30_000)
)
def test_results_are_cut_before_arguments_and_no_more_than_is_needed(sizes: list[tuple[int, int]], freed: int) -> None:
    history = [Message(1, "user", "Go.")]
    for place, (written, read) in enumerate(sizes):
        call = ToolCall(f"c{place}", "write_file", json.dumps({"path": f"{place}.py", "text": "word " * written}))
        history += [
            Message(2 + 2 * place, "assistant", calls=(call,)),
            Message(3 + 2 * place, "tool", f"{place} " + "line " * read, call_id=call.id, name="write_file"),
        ]
    options = PlanOptions(keep_recent=0, recent_results=0, counter=METER)
    ledger = Ledger(groups=group_messages(history))
    view = see(ledger, options)
    shrink = builtin_strategies(options)["shrink_tool_results"]
    plan = shrink.plan(view, ledger, budget_of(100_000, view.raw, max(0, view.raw - freed)))
    if plan is None:
        return
    done = see(ledger.apply(apply_plan(ledger, plan, "p", options)), options)
    before, after = ({i.message.id: i for i in v.items} for v in (view, done))
    cut = {
        name: before[name].tokens - item.tokens for name, item in after.items() if item.message != before[name].message
    }
    results = [i for i in done.items if i.message.role == "tool"]
    if any(before[name].message.calls for name in cut):
        assert all("full text" in i.message.text or i.tokens <= 90 for i in results[:-2]), "all it has done with"
    elif (excess := sum(cut.values()) - freed) > 0:
        assert all(gain > excess for gain in cut.values()), "what is freed too much is given back"


MEMORY = Memory()
"""The facts of what stands in each of these."""


@settings(max_examples=20)
@given(st.integers(600, 4_000), st.integers(0, 60), st.sampled_from([0.1, 0.2, 0.3, 0.5]))
def test_caps_are_weighed_by_what_stays_once_it_was_shortened(lines: int, said: int, share: float) -> None:
    call = ToolCall("c", "shell", '{"command": "find ."}')
    listing = "\n".join(f"./src/part{n}/file{n}.py" for n in range(lines))
    history = [
        *(Message(n, "assistant" if n % 2 else "user", f"words {n} " * 500) for n in range(1, 30)),
        Message(30, "user", "look: " + "trace " * said),
        Message(31, "assistant", calls=(call,)),
        Message(32, "tool", listing, call_id="c", name="shell"),
        Message(33, "assistant", "Seen."),
    ]
    options = PlanOptions(keep_recent=4, memory=MEMORY)
    ledger = Ledger(groups=group_messages(history))
    view = see(ledger, options)
    budget = budget_of(32_000, 24_000, int(32_000 * share))
    summarize = builtin_strategies(options)["summarize"]
    plan = summarize.plan(view, ledger, budget)
    mended = clip_kept(Basis(view, ledger, options), summarize, plan, budget)
    assert plan is not None and mended is not None
    fold = mended.steps[-1]
    stays = mended.after - fold.summary_tokens - fold.evidence_tokens
    least = 2 * MIN_PART_TOKENS
    assert mended.after <= max(budget.target, stays + least) + 200, "the caps fit what the target leaves"


def test_files_beside_a_summary_leave_the_target_to_what_cannot_be_read_again() -> None:
    lines = "".join(f"{n:>5}\tgauge {n}\n" for n in range(3_000))
    file = CurrentFile(
        "pier.py", ("pier.py",), lines, tokens=METER.count_text(lines), edited=edits_in(lines, [("gauge 9",)])
    )
    options = PlanOptions(counter=METER, keep_recent=2, files=(file,), files_tokens=6_000)
    history = [Message(n, ("user", "assistant")[n % 2], f"{n} " + "the tide is low " * 90) for n in range(2, 120)]
    ledger = Ledger(groups=group_messages(history))
    plan = builtin_strategies(options)["summarize"].plan(
        see(ledger, options), ledger, budget_of(120_000, 90_000, 9_000)
    )
    assert plan is not None and plan.steps[0].summary_tokens > 2_000
    after = see(perform(ledger, plan, options), options)
    assert after.raw <= 9_000 and "gauge 9\n" in "".join(item.message.text for item in after.items)
