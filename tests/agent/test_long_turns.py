"""Forty rounds in one turn, in small windows, with results of every size: to the end, without an overflow, the question and the
newest round always in view."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import msgspec
import pytest

from ctxchat.agent.compaction.scheduler import Scheduler
from ctxchat.core.budget import Window
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.events import Failed, Retry, TurnFinished
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.notes import CONTEXT_NOTE
from ctxchat.core.options import Options
from ctxchat.core.ports import ModelRequest, ToolContext, ToolOutput, ToolText
from ctxchat.core.record import CompactionRecord
from ctxchat.core.strategies.base import Plan
from ctxchat.core.view import problems
from ctxchat.presentation.compactions import archived, compaction_entries
from tests.agent.desk import Desk, Echo
from tests.agent.test_compaction import Writer
from tests.agent.test_turn import adds_up, of
from tests.doubles.scripted import Reply, ScriptedModel, calls, says

ROUNDS = 40
QUESTION = "Read all of it and report on src/billing/limits.py. The first question stays."


def nothing_is_gone(ledger: Ledger) -> bool:
    """Something is shown of everything but of notes that a new head has made needless."""
    gone = [ledger.group(name) for entry in ledger.live() if entry.group is None for name in entry.covers]
    return all(group.source.startswith(CONTEXT_NOTE) for group in gone)


def result(chance: random.Random, number: int) -> str:
    """What tools give: code with line numbers, test output, a listing, an error, or next to nothing; round `number`."""
    lines = int(chance.paretovariate(0.9) * 4)
    match chance.randrange(5):
        case 0:
            text = "\n".join(
                f"{n:5}  def handler_{n}(request): return limit_{n} * {n}" for n in range(min(lines * 3, 900))
            )
        case 1:
            text = "\n".join("." * 70 for _ in range(min(lines, 400))) + f"\n{lines} passed in 3.2s\n[exit code: 0]"
        case 2:
            text = "\n".join(f"src/area{n}/module_{n}.py" for n in range(min(lines * 2, 700)))
        case 3:
            text = "Traceback (most recent call last):\n" + "\n".join(f"  frame {n}" for n in range(min(lines, 200)))
        case _:
            text = "ok"
    return f"round {number}\n{text}"


class Works(Echo):
    """Gives the result that is written down for the round, whatever is asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        yield ToolOutput(result(self._chance, int(str(arguments["text"]))))


def script(seed: int) -> list[Reply]:
    chance = random.Random(seed)
    made: list[Reply] = []
    for number in range(ROUNDS):
        wanted = [("echo", {"text": str(number)}) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
        made.append(calls(*wanted, text=chance.choice(["", "Next.", "I look further. " * 6])))
    return [*made, says("all done")]


def held(request: ModelRequest) -> set[int]:
    """The rounds whose results a request holds, as they were or shortened."""
    return {
        number
        for item in request.view.items
        if item.message.role == "tool" and item.kind == "round"
        for number in [_number(item.message)]
        if number >= 0
    }


def _number(message: Message) -> int:
    word = message.text.split("\n", 1)[0].split(" ")
    return int(word[1]) if word[0] == "round" and word[1].isdigit() else -1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [8_000, 16_000, 32_000])
async def test_a_long_turn_runs_to_its_end(window: int, seed: int):
    model = ScriptedModel(script(seed), window=Window(window, "loaded"))
    writer = Writer()
    desk = Desk(model, tools=[Works(seed)], options=Options(keep_recent=6), summariser=writer)
    events = await desk.say(QUESTION)
    assert of(events, TurnFinished)[0].text == "all done", of(events, Failed)
    assert not of(events, Retry)
    assert not of(events, Failed)
    for number, request in enumerate(model.requests):
        assert problems(request.view) == []
        assert request.view.raw + request.max_output <= window, "every request fits, its reply included"
        assert any(i.message.text == QUESTION for i in request.view.items if i.kind == "user")
        assert number == 0 or number - 1 in held(request), "the newest round is in view"
    assert all(adds_up(e) for e in of(events, ContextUsage))
    passes = of(events, CompactionRecord)
    assert passes or window > 8_000
    assert {p.reason for p in passes} <= {"reactive_micro", "reactive_full", "context_overflow"}
    record = desk.state.ledger
    assert len([g for g in record.groups if g.kind == "round"]) == ROUNDS
    assert all(m.text for m in record.messages() if m.role == "tool")
    assert nothing_is_gone(record), "without a summary, a recap or a pointer"
    folds = [c.record for c in record.compactions if c.record and c.record.strategy.startswith("reactive")]
    assert all(f.model == writer.model for f in folds), "inside a turn, too, the model's summary goes in"
    await desk.session.close()  # a summary that was being made ahead is paid for, and written down now
    assert desk.folded() == desk.state


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000])
async def test_ten_turns_of_talk_leave_no_gap_and_come_down_to_the_target(window: int):
    said = "The gauge at Pier 7 reports every 90 s to the logger Cormorant. " * (window // 350)
    model = ScriptedModel((says(said) for _ in range(10)), window=Window(window, "loaded"))
    writer = Writer("## Goal\nKnow the gauge. " + "It reports to the logger. " * 30)
    desk = Desk(model, options=Options(output_reserved=500), summariser=writer)
    passes: list[CompactionRecord] = []
    for number in range(10):
        events = await desk.say(f"Question {number}: {said}")
        assert not of(events, Failed)
        await desk.compactor._prefetch.wait()
        passes += of(events, CompactionRecord)
        ledger = desk.state.ledger
        assert nothing_is_gone(ledger), "without a summary, a recap or a pointer"
        shown = "\n".join(i.message.text for i in desk.session.view.items)
        assert all(f"Question {n}: The gauge" in shown for n in range(number + 1)), "what the person said stays"
    assert passes and all(p.outcome == "compacted" for p in passes)
    limit = desk.session.context_usage.limit
    assert max(p.after.used / limit for p in passes) <= 0.65, "about halfway: the rest goes at the next pause"
    records = [c.record for c in desk.state.ledger.compactions if c.record]
    assert not any(r.attempts for r in records), "nobody waited: each summary stood ready"
    await desk.session.close()


async def test_a_window_that_two_rounds_fill_is_told_and_not_run_into():
    """The two newest rounds stay by rule; where they alone are too much, long results are cut to head and tail at the door."""
    wanted = [calls(("echo", {"text": f"round {n}\ndata ", "times": 900})) for n in range(12)]
    model = ScriptedModel([*wanted, says("all done")], window=Window(4_000, "loaded"))
    desk = Desk(model, tools=[Echo()], options=Options(keep_recent=4, output_reserved=500), summariser=Writer())
    events = await desk.say(QUESTION)
    assert of(events, TurnFinished)[0].text == "all done"
    assert all(r.view.raw <= 4_000 - 500 for r in model.requests)
    assert all(
        item.message.text.count("tool-results/")
        for item in model.requests[-1].view.items
        if item.section == "tool_results"
    )


async def test_the_preview_opens_on_what_the_newest_messages_hold_and_names_it():
    """Twelve recent messages, nearly all of a small window: fewer of them stay, and what goes is named."""
    wanted = [calls(("echo", {"text": f"line {n}\n", "times": 900})) for n in range(5)]
    model = ScriptedModel([*wanted, says("done")], window=Window(32_000, "loaded"))
    desk = Desk(model, tools=[Echo()], summariser=Writer())
    await desk.say("Look at all of it.")
    preview = await desk.session.preview()
    assert preview.plan is not None and preview.keep_recent < 12
    assert preview.after.used <= preview.before.used / 2 + preview.before.limit * 0.05
    groups = {item.group for item in desk.session.view.items}
    assert all(
        step.turns == (1, 1) and step.affected_groups and step.affected_groups <= groups for step in preview.steps
    )
    await desk.session.close()


async def test_a_step_that_shortens_counts_only_what_becomes_shorter_before_and_after():
    """The calls beside shortened results stay as they are: neither the preview nor the archive lists them."""
    wanted = [calls(("echo", {"text": f"line {n}\n", "times": 900})) for n in range(5)]
    model = ScriptedModel([*wanted, says("done")], window=Window(32_000, "loaded"))
    desk = Desk(model, tools=[Echo()], summariser=Writer())
    await desk.say("Look at all of it.")
    preview = await desk.session.preview()
    step = next(s for s in preview.steps if not s.needs_model)
    touched = {
        item.message.seq: item.message.role
        for item in desk.session.view.items
        if item.group in step.affected_groups and item.message.seq not in step.unchanged
    }
    assert set(touched.values()) == {"tool"}
    async for _ in desk.session.free_up(preview, (step.name,)):
        pass
    (made,) = compaction_entries(desk.state)
    assert made.record.shortened == made.record.folded_messages == len(touched)
    assert [kept.message.seq for kept in archived(made, desk.state.ledger)] == list(touched)
    await desk.session.close()


class Plans:
    """A planner that has nothing to offer at first."""

    def __init__(self, *plans: Plan | None) -> None:
        self._plans = iter(plans)

    async def plan(self, name: str, *, by_model: bool) -> Plan | None:
        return next(self._plans)


async def test_only_passes_count_as_passes_of_a_turn() -> None:
    """Rounds in which nothing could go yet leave the turn its passes."""
    desk = Desk(ScriptedModel([]), options=Options(min_messages=0, reactive_per_turn=1))
    plans = Plans(*[None] * 6, Plan("reactive_micro", (), before=1_000, after=100), None)
    scheduler = Scheduler(desk.conversation, plans, desk.session.policy)  # type: ignore[arg-type]
    full = msgspec.structs.replace(desk.session.context_usage, pressure=0.9)
    found = [await scheduler.decide(full, inside=True) for _ in range(5)]
    assert [request.reason if request else "" for request in found] == ["", "", "", "reactive_micro", ""]
