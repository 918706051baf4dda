"""Spending limits: no call that could pass one is made, whoever makes it, and what is left is told."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from itertools import repeat
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.compaction.summariser import ModelSummariser
from ctxchat.agent.session import Session
from ctxchat.agent.spending_budget import SpendingBudget, TaskBudget
from ctxchat.agent.turn.model_calls import stream_reply
from ctxchat.bootstrap.remembered import StoredDayTotal
from ctxchat.core.budget import Window
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Failed, Notice, ToolProgress, ToolStarted, TurnFinished, Usage
from ctxchat.core.limits import MIN_OUTPUT, Spend, SpendingLimits, dearest
from ctxchat.core.ports import ModelRequest, SummaryTask
from ctxchat.core.prices import ModelPrices, Rates, cost
from ctxchat.core.view import View
from ctxchat.presentation.spending_text import limit_lines, wanted_limit
from ctxchat.storage.database import Database
from ctxchat.tools.delegating import Delegate
from tests.agent.desk import Desk, Echo, StillClock
from tests.agent.test_delegating import TASK, of
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.examples import examples

PRICES = ModelPrices(Rates(3.0, 15.0, 0.3, 3.75, 6.0))


def view(tokens: int) -> View:
    return View((), (), (), tokens, changes=0)


class Priced:
    """A model whose replies take as many tokens as a life says, or as many as they may."""

    name, efforts = "priced/model", ()

    def __init__(self, prices: ModelPrices | None, overcount: float, written: int) -> None:
        self._prices, self._overcount, self._written = prices, overcount, written
        self.made: list[Usage] = []

    def prices(self) -> ModelPrices | None:
        return self._prices

    async def stream(self, request: ModelRequest):
        from ctxchat.core.ports import ReplyEnd

        await asyncio.sleep(0)
        prompt = int(request.view.raw * self._overcount)
        usage = Usage(prompt, min(self._written, request.max_output or 32_000))
        usage = msgspec.structs.replace(usage, cost_usd=cost(self._prices, usage) if self._prices else 0.0)
        self.made.append(usage)
        yield ReplyEnd("stop", usage=usage)


money = st.floats(0.0, 2.0)


@given(
    st.builds(
        SpendingLimits,
        turn=money,
        session=money,
        day=money,
        turn_tokens=st.integers(0, 200_000),
        session_tokens=st.integers(0, 400_000),
    ),
    st.lists(
        st.tuples(st.integers(0, 60_000), st.integers(1, 40_000), st.integers(0, 40_000), st.booleans()), max_size=12
    ),
    st.floats(0.5, 1.35),
    st.sampled_from([PRICES, None, ModelPrices(Rates(1, 0, 1, 1, 1))]),
    st.integers(1, 3),
)
def test_no_request_passes_a_limit(limits, life, overcount, prices, at_once) -> None:
    """Whatever is asked for, side by side or one after the other: a turn, a session and a day never come to more."""

    class Day:
        sum = 0.0

        async def today(self) -> float:
            return self.sum

        async def add(self, usd: float) -> float:
            await asyncio.sleep(0)  # as a store does
            self.sum += usd
            return self.sum

    async def live() -> None:
        budget = SpendingBudget(limits, session="s", day=Day())
        turn: list[Usage] = []
        every: list[Usage] = []

        async def call(tokens: int, written: int, most: int) -> None:
            model = Priced(prices, overcount, written)
            with suppress(ModelError):
                async for _ in stream_reply(model, ModelRequest(view(tokens), most), StillClock(), 0, budget=budget):  # type: ignore[arg-type]
                    pass
            turn.extend(model.made)
            every.extend(model.made)

        for tokens, written, most, new_turn in life:
            if new_turn:
                budget.begin_turn("s")
                turn.clear()
            await asyncio.gather(*(call(tokens, written, most) for _ in range(at_once)))
            for most_usd, paid in ((limits.turn, turn), (limits.session, every), (limits.day, every)):
                assert not most_usd or sum(u.cost_usd for u in paid) <= most_usd * 1.000001
            for most_tokens, paid in ((limits.turn_tokens, turn), (limits.session_tokens, every)):
                assert not most_tokens or sum(u.prompt + u.completion for u in paid) <= most_tokens

    asyncio.run(live())


async def test_a_reply_is_made_short_before_it_is_refused() -> None:
    budget = SpendingBudget(SpendingLimits(session=0.1))
    model = ScriptedModel([], prices=PRICES)
    asked, reserved = await budget.admit(model, ModelRequest(view(1_000), 32_000))
    assert MIN_OUTPUT <= asked.max_output < 32_000 and reserved.usd <= 0.1
    assert reserved == dearest(PRICES, 1_351, asked.max_output)
    await budget.pay(reserved, None, begun=False)
    again, reserved = await budget.admit(model, ModelRequest(view(1_000), 32_000))
    assert again == asked, "what was not begun cost nothing"
    await budget.pay(reserved, None, begun=True)
    with pytest.raises(ModelError, match="limit is reached") as refused:
        await budget.admit(model, ModelRequest(view(1_000), 32_000))
    assert refused.value.kind == "limit" and "/limit session" in refused.value.hint


async def test_a_turn_stops_before_the_limit_says_so_and_goes_on_when_it_is_raised() -> None:
    replies = [says("Well. " * 400, usage=Usage(8_000, 2_000, cost_usd=0.09)) for _ in range(3)]
    model = ScriptedModel(replies, prices=PRICES)
    desk = Desk(model)
    desk.session.spending.limits = SpendingLimits(session=0.1)
    first = await desk.say("one")
    assert of(first, TurnFinished)[-1].status == "done"
    assert any("$0.09 of $0.10 for this session is spent" in notice.text for notice in of(first, Notice))
    second = await desk.say("two")
    (failed,) = of(second, Failed)
    assert failed.kind == "limit" and "It was not made" in failed.text and len(model.requests) == 1
    desk.session.spending.raise_limit("session", 1.0)
    assert of(await desk.say("three"), TurnFinished)[-1].status == "done"
    assert limit_lines(desk.session.spending.in_force()) == ("$0.18 of $1.00 for this session is spent.",)
    await desk.session.close()


async def test_a_summarys_prompt_counts_before_it_is_asked_for() -> None:
    """What it reads is most of what it costs."""
    model = ScriptedModel([says("## Goal\nA record of all that was said so far, and of what is open.")], prices=PRICES)
    budget = SpendingBudget(SpendingLimits(session_tokens=6_000))
    summariser = ModelSummariser(model, StillClock(), budget)
    with pytest.raises(ModelError, match="limit is reached"):
        async for _ in summariser.summarise(SummaryTask((), shorten="word " * 9_000, max_tokens=500)):
            pass
    assert not model.requests


async def test_a_limit_in_tokens_is_no_window_that_is_too_small() -> None:
    model = ScriptedModel([says("Well.", usage=Usage(28_000, 10)), says("And on.")])
    desk = Desk(model)
    desk.session.spending.limits = SpendingLimits(session_tokens=30_000)
    await desk.say("one " * 4_000)
    events = await desk.say("two")
    (failed,) = of(events, Failed)
    assert failed.kind == "limit" and "It was not made" in failed.text and "archived" not in failed.text
    assert not of(events, Notice) and not desk.state.ledger.compactions and len(model.requests) == 1
    await desk.session.close()


async def test_a_call_waits_for_those_under_way_where_only_what_they_may_cost_is_in_its_way() -> None:
    above = SpendingBudget(SpendingLimits(session=0.1))
    first, second, third = (TaskBudget(above) for _ in range(3))
    model, asked = ScriptedModel([], prices=PRICES), ModelRequest(view(1_000), 32_000)
    _, reserved = await first.admit(model, asked)
    waiting = [asyncio.create_task(budget.admit(model, asked)) for budget in (second, third)]
    await asyncio.sleep(0)
    assert not any(call.done() for call in waiting)
    waiting[0].cancel()
    await asyncio.wait({waiting[0]})
    await first.pay(reserved, Usage(1_000, 10, cost_usd=0.01), begun=True)
    shorter, reserved = await waiting[1]
    assert MIN_OUTPUT <= shorter.max_output < 32_000 and above.reached is None
    refused = asyncio.create_task(second.admit(model, asked))
    await asyncio.sleep(0)
    assert not refused.done()
    await third.pay(reserved, None, begun=True)  # it may have cost all
    with pytest.raises(ModelError, match="limit is reached"):
        await refused
    assert above.reached and above.in_force()[0].spent <= 0.1
    dear = ModelRequest(view(100_000), 32_000)
    above.raise_limit("session", 0.15)
    _, reserved = await first.admit(model, asked)
    with pytest.raises(ModelError, match="limit is reached"):  # no wait: it would pass what is left without them, too
        await second.admit(model, dear)
    await first.pay(reserved, None, begun=False)


async def test_a_limit_that_is_lowered_under_a_turn_holds_for_its_next_call() -> None:
    model = ScriptedModel([calls(("echo", {"text": "x"}), usage=Usage(8_000, 2_000, cost_usd=0.09)), says("Done.")])
    lowered = SpendingLimits(session_tokens=9_000)
    desk = Desk(model, tools=[Echo()], configure=lambda *_: msgspec.structs.replace(desk.config, spending=lowered))
    events: list[object] = []
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            events.append(stamped.event)
            if isinstance(stamped.event, ToolStarted):
                await desk.session.setup.adapt()
    assert of(events, Failed)[0].kind == "limit" and len(model.requests) == 1
    desk.session.spending.raise_limit("session", 20_000, in_tokens=True)
    assert of(await desk.say("more"), TurnFinished)[-1].status == "done", "what was raised since stays"
    await desk.session.close()


async def test_a_sub_agents_calls_count_and_its_turn_is_the_callers() -> None:
    paid = Usage(8_000, 2_000, cost_usd=0.09)
    lower = ScriptedModel([says("The port is 8123.", usage=paid)], prices=PRICES)
    upper = ScriptedModel([calls(TASK), says("It is 8123.")], prices=PRICES)
    desk = Desk(upper, tools=[Delegate(lambda agent, session: below(agent))], mode="all")
    budget = SpendingBudget(SpendingLimits(turn=0.1), session=desk.session.id)
    desk.session._conversation.spending = budget
    small = Desk(lower)
    small.session._conversation.spending = budget

    async def below(agent: str):
        return small.session

    events = await desk.say("Which port?")
    (failed,) = of(events, Failed)
    assert failed.kind == "limit" and len(lower.requests) == 1 and len(upper.requests) == 1
    await desk.session.close()


async def test_the_row_of_a_sub_agent_says_that_it_waits_and_for_what() -> None:
    above = SpendingBudget(SpendingLimits(session=0.1))
    lower = ScriptedModel([says("The port is 8123.")], prices=PRICES)
    small = Desk(lower)
    small.session._conversation.spending = TaskBudget(above)

    async def below(agent: str):
        return small.session

    desk = Desk(
        ScriptedModel([calls(TASK), says("It is 8123.")]), tools=[Delegate(lambda agent, session: below(agent))]
    )
    other = ScriptedModel([], prices=PRICES)
    _, reserved = await above.admit(other, ModelRequest(view(1_000), 32_000))
    said = ""
    async with aclosing(desk.session.send("Which port?")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ToolProgress):
                said += stamped.event.text
            if "Waits for a call to end, or this session's $0.10 could be passed." in said and reserved.usd:
                assert not lower.requests
                await above.pay(reserved, Usage(1_000, 10, cost_usd=0.01), begun=True)
                reserved = Spend()
    assert said.endswith("Goes on.\n") and len(lower.requests) == 1
    await desk.session.close()


@given(
    st.floats(0.02, 0.5),
    st.floats(0.02, 0.5),
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 30_000)), max_size=8),
)
def test_a_task_passes_neither_its_own_limit_nor_its_callers(task: float, session: float, life) -> None:
    async def live() -> None:
        above = SpendingBudget(SpendingLimits(session=session, task=task))
        tasks = [TaskBudget(above), TaskBudget(above)]
        models = [Priced(PRICES, 1.2, 8_000) for _ in tasks]

        async def call(n: int, tokens: int, most: int) -> None:
            with suppress(ModelError):
                async for _ in stream_reply(
                    models[n], ModelRequest(view(tokens), most), StillClock(), 0, budget=tasks[n]
                ):  # type: ignore[arg-type]
                    pass

        for tokens, most in life:
            await asyncio.gather(*(call(n, tokens, most) for n in range(2)))
        sums = [sum(u.cost_usd for u in model.made) for model in models]
        assert all(spent <= task * 1.000001 for spent in sums) and sum(sums) <= session * 1.000001
        assert above.in_force()[0].spent == pytest.approx(sum(sums)), "nothing is held back when all is over"

    asyncio.run(live())


@pytest.mark.long
@examples(15, 1_000)
@given(
    st.builds(
        SpendingLimits,
        turn=st.floats(0.02, 0.6) | st.just(0.0),
        session=st.floats(0.05, 1.5) | st.just(0.0),
        task=st.floats(0.02, 0.4) | st.just(0.0),
        turn_tokens=st.integers(2_000, 60_000) | st.just(0),
        session_tokens=st.integers(5_000, 150_000) | st.just(0),
        task_tokens=st.integers(2_000, 40_000) | st.just(0),
    ),
    st.floats(0.6, 1.35),
    st.integers(0, 2**32).map(Random),
)
def test_a_session_with_sub_agents_and_summaries_passes_no_limit(limits, overcount: float, random: Random) -> None:
    """Whole sessions: turns with calls, sub-agents side by side, summaries by a model, limits that are raised on the way."""
    asyncio.run(_spend(limits, overcount, random))


async def _spend(limits: SpendingLimits, overcount: float, random) -> tuple[int, int, int, int]:
    """One session; how many requests, sub-agents, summaries and refusals there were."""
    refused = summaries = 0
    session, turn, tasks = list[Usage](), list[Usage](), list[list[Usage]]()
    most = {"limits": limits}

    def paid(request: ModelRequest, *along: list[Usage]) -> Usage:
        usage = Usage(int(request.view.raw * overcount), random.randint(1, min(9_000, request.max_output or 9_000)))
        usage = msgspec.structs.replace(usage, cost_usd=cost(PRICES, usage))
        for one in (session, turn, *along):
            one.append(usage)
        now = most["limits"]
        for usd, tokens, one in (
            (now.session, now.session_tokens, session),
            (now.turn, now.turn_tokens, turn),
            *((now.task, now.task_tokens, each) for each in along),
        ):
            assert not usd or sum(u.cost_usd for u in one) <= usd * 1.000001
            assert not tokens or sum(u.prompt + u.completion for u in one) <= tokens
        return usage

    def above(request: ModelRequest):
        nonlocal summaries
        summaries += not request.view.tools
        usage, said = paid(request), "Well, then. " * random.randint(1, 300)
        if random.random() < 0.4 and request.view.tools:
            return calls(*random.sample([TASK, TASK, ("echo", {"text": said})], random.randint(1, 3)), usage=usage)
        return says(said, usage=usage)

    async def below(agent: str, session: str) -> Session:
        task: list[Usage] = []
        tasks.append(task)

        def work(request: ModelRequest):
            usage = paid(request, task)
            return (
                calls(("echo", {"text": "on and on " * 60}), usage=usage)
                if random.random() < 0.6
                else says("8123", usage=usage)
            )

        small = Desk(ScriptedModel(repeat(work), prices=PRICES), tools=[Echo()], mode="all")
        small.session._conversation.spending = TaskBudget(budget)
        return small.session

    model = ScriptedModel(repeat(above), prices=PRICES, window=Window(9_000, "configured"))
    budget = SpendingBudget(limits, session="s1")
    delegate = Delegate(below, only_reads=lambda agent, session: True)
    desk = Desk(model, tools=[delegate, Echo()], mode="all", summariser=ModelSummariser(model, StillClock(), budget))
    desk.session._conversation.spending = budget
    for _ in range(random.randint(1, 6)):
        turn.clear()
        last = (await desk.say("one more thing " * random.randint(1, 200)))[-1]
        assert isinstance(last, TurnFinished)
        refused += budget.reached is not None
        if budget.reached and random.random() < 0.5:
            scope, tokens = budget.reached.scope, budget.reached.in_tokens
            budget.raise_limit(scope, budget.reached.extended, in_tokens=tokens)
            most["limits"] = budget.limits
    await desk.session.close()
    booked = desk.session.state.cost_usd
    if not model.cut_short:  # of a summary that was being prepared at the end nobody says what it cost
        assert booked == pytest.approx(sum(u.cost_usd for u in session)), "each call is booked once"
    return len(session), len(tasks), summaries, refused


async def test_the_day_is_counted_by_all_programs(tmp_path: Path) -> None:
    with Database(tmp_path) as one, Database(tmp_path) as other:
        days = [StoredDayTotal(one), StoredDayTotal(other)]
        await asyncio.gather(*(days[n % 2].add(0.25) for n in range(8)))
        assert [await day.today() for day in days] == [2.0, 2.0]


@pytest.mark.parametrize(
    "text", ["", "session", "week 3", "session -1", "session nan", "day many", "turn 1e9", "day 5 tokens"]
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    from ctxchat.core.errors import UsageError

    with pytest.raises(UsageError):
        wanted_limit(text)
    assert wanted_limit("day $2.50") == ("day", 2.5, False) and wanted_limit("turn 0") == ("turn", 0.0, False)
    assert wanted_limit("session 200,000 tokens") == ("session", 200_000, True)
