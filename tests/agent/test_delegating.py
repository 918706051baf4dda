"""A task for a sub-agent: a session of its own whose answer, questions, gauge and price come up, and nothing else."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from itertools import pairwise

import pytest

from ctxchat.agent.turn.permissions import stricter
from ctxchat.core.errors import ModelError, UsageError
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Delegated,
    Event,
    QuestionAsked,
    Stamped,
    ToolFinished,
    ToolProgress,
    TurnFinished,
    Usage,
)
from ctxchat.core.permissions import Mode
from ctxchat.core.view import problems
from ctxchat.tools.conversation import AskUser
from ctxchat.tools.delegating import MAX_AT_ONCE, Delegate, _in_time
from tests.agent.desk import Desk, Echo
from tests.doubles.scripted import Reply, ScriptedModel, calls, fails, hangs, says

ASKED = ApprovalRequested("c", "write", "write", "write", "", ())
TASK = ("delegate", {"task": "Find the port."})


class Office:
    """A desk whose model delegates once, and the sub-agent's desk below it."""

    def __init__(self, below: list[Reply], mode: Mode = "ask", writes: bool = False, opens: bool = True) -> None:
        self.tool = Echo("write" if writes else "echo", writes=writes)
        self.model = ScriptedModel([calls(TASK), says("It is 8123."), says("And on.")])
        self.upper = Desk(self.model, tools=[Delegate(self._open)], mode=mode)
        self.lower = Desk(
            ScriptedModel(below), tools=[self.tool, AskUser()], approvals=self.upper.approvals.below("all")
        )
        self._opens = opens

    async def _open(self, agent: str, session: str):
        if not self._opens:
            raise UsageError(f"There is no agent {agent!r}.")
        return self.lower.session

    async def events(self, answers: list[str] | None = None) -> list[Event]:
        return await self.upper.say("Which port?", answers or [])


def of(events: list[Event], kind: type) -> list:
    return [e for e in events if isinstance(e, kind)]


async def test_the_answer_comes_up_and_what_was_read_stays_below():
    office = Office([calls(("echo", {"text": "a long text", "times": 500})), says("The port is 8123.")])
    events = await office.events()
    (end,) = of(events, ToolFinished)
    assert (end.name, end.status) == ("delegate", "ok")
    assert end.output.startswith("The port is 8123.") and "session s1" in end.output
    assert "".join(e.text for e in of(events, ToolProgress)) == "[its record: session s1]\necho a long text 500\n"
    assert "a long text" not in str(office.model.requests[1].view)
    assert "a long text" in office.lower.state.ledger.groups[1].messages[1].text
    assert not office.lower.session.busy


async def test_its_gauge_comes_up_when_it_changes():
    office = Office([says("8123", usage=Usage(400, 10, cost_usd=0.25))])
    gauges = of(await office.events(), Delegated)
    assert {g.call_id for g in gauges} == {call.id for call in office.upper.state.ledger.groups[1].first.calls}
    assert gauges[-1].used == office.lower.session.context_usage.used > 0
    assert all(one != other for one, other in pairwise(gauges))


async def test_its_price_is_the_sessions_once():
    spends = [
        calls(("echo", {"text": "x"}), usage=Usage(400, 10, cost_usd=0.25)),
        says("8123", usage=Usage(500, 10, cost_usd=0.5)),
    ]
    office = Office(spends)
    await office.events()
    assert office.upper.session.context_usage.cost_usd == pytest.approx(0.75)
    assert office.upper.folded() == office.upper.state
    await office.upper.say("and now?")
    assert office.upper.session.context_usage.cost_usd == pytest.approx(0.75)


@pytest.mark.parametrize(("answer", "ran"), [("once", 1), ("deny:not there", 0)])
async def test_a_person_is_asked_for_it_under_an_id_of_its_own(answer: str, ran: int):
    office = Office([calls(("write", {"text": "8123"})), says("Done.")], writes=True)
    events = await office.events([answer])
    (asked,), (resolved,) = of(events, ApprovalRequested), of(events, ApprovalResolved)
    assert asked.call_id == resolved.call_id and asked.call_id.count("/") == 1
    assert asked.summary == "sub-agent: write 8123"
    assert len(office.tool.ran) == ran
    assert of(events, TurnFinished)[0].status == "done"


async def test_what_was_allowed_for_the_session_holds_above_and_below():
    again = calls(("write", {"text": "8123"}))
    office = Office([again, again, says("Done.")], writes=True)
    assert len(of(await office.events(["session"]), ApprovalRequested)) == 1
    assert len(office.tool.ran) == 2


async def test_it_never_has_more_rights_than_its_caller_has_at_that_moment():
    again = calls(("write", {"text": "8123"}))
    office = Office([again, again, says("Done.")], mode="all", writes=True)
    async with aclosing(office.upper.session.send("Which port?")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, Delegated) and office.tool.ran:
                office.upper.session.permissions.mode = "read-only"
    assert len(office.tool.ran) == 1


def test_the_stricter_mode():
    order: list[Mode] = ["read-only", "ask", "auto-edit", "all"]
    for place, mode in enumerate(order):
        assert all(stricter(mode, other) == stricter(other, mode) == mode for other in order[place:])


async def test_its_question_goes_up_and_the_answer_down():
    office = Office([calls(("ask_user", {"question": "TCP?", "options": ["yes", "no"]})), says("8123/tcp")])
    questions: list[QuestionAsked] = []
    async with aclosing(office.upper.session.send("Which port?")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, QuestionAsked):
                questions.append(stamped.event)
                office.upper.session.permissions.reply(stamped.event.call_id, "yes")
    assert [(q.text, q.options) for q in questions] == [("sub-agent: TCP?", ("yes", "no"))]
    assert "The user answered: yes" in office.lower.state.ledger.groups[1].messages[1].text


class Branches:
    """A desk whose model delegates several tasks in one reply, each to a desk of its own; `at_work` counts those that are, and
    each goes on only when so many have been at work `together`."""

    def __init__(self, *agents: str, seconds: float = 0.0, together: int = 1) -> None:
        self.at_work, self.most, self.order = 0, 0, list[str]()
        self.together, self.go = together, asyncio.Event()
        tasks = [("delegate", {"task": f"Task {n}.", "agent": agent}) for n, agent in enumerate(agents)]
        self.model = ScriptedModel([calls(*tasks, ("echo", {"text": "after"})), says("All done.")])
        self.echo = Echo("echo")
        delegate = Delegate(self._open, only_reads=lambda agent, session: agent == "reader", seconds=lambda: seconds)
        self.desk = Desk(self.model, tools=[delegate, self.echo], mode="all")

    async def _open(self, agent: str, session: str):
        return BranchAgent(self, agent)


class BranchAgent:
    """Fulfils `tools.delegating.SubAgent`: at work until the test lets it go on, or for ever where it is `slow`."""

    id = "s2"

    def __init__(self, branches: Branches, agent: str) -> None:
        self._branches, self._agent = branches, agent
        self.permissions, self.state = branches.desk.session.permissions, branches.desk.state

    async def send(self, text: str):
        branches = self._branches
        branches.at_work += 1
        branches.most = max(branches.most, branches.at_work)
        if branches.at_work == branches.together:
            branches.go.set()
        try:
            async with asyncio.timeout(60):
                await branches.go.wait()
            await asyncio.sleep(0.01)  # in which one too many would come
            if self._agent == "slow":
                await asyncio.sleep(3600)
            branches.order.append(f"{text} {len(branches.echo.ran)}")
            yield Stamped("s2", 1, "", TurnFinished("done", f"done: {text}", 1, 0.1))
        finally:
            branches.at_work -= 1

    async def close(self) -> None:
        return None


async def test_those_that_only_read_work_side_by_side_and_only_so_many_of_them():
    branches = Branches(*["reader"] * (MAX_AT_ONCE + 2), together=MAX_AT_ONCE)
    ended = of(await branches.desk.say("Look around."), ToolFinished)
    assert branches.most == MAX_AT_ONCE and [e.status for e in ended] == ["ok"] * (MAX_AT_ONCE + 3)
    assert sorted(e.output.splitlines()[0] for e in ended if e.name == "delegate") == [
        f"done: Task {n}." for n in range(MAX_AT_ONCE + 2)
    ]


async def test_one_that_may_change_something_works_alone_and_in_its_place():
    branches = Branches("reader", "writer", "reader", "writer")
    await branches.desk.say("Do it.")
    assert branches.most == 1 and branches.order == [f"Task {n}. 0" for n in range(4)]
    assert branches.echo.ran == [{"text": "after"}]


async def test_its_time_is_up():
    branches = Branches("reader", "slow", seconds=0.3)
    first, late, _ = of(await branches.desk.say("Look."), ToolFinished)
    assert (first.status, late.status) == ("ok", "timeout") and "its time was up" in late.output
    assert branches.at_work == 0


async def test_the_time_it_waits_for_a_person_does_not_count():
    async def events():
        yield Stamped("s2", 1, "", ASKED)
        await asyncio.sleep(0.4)
        yield Stamped("s2", 2, "", ApprovalResolved("c", "once", ""))
        yield Stamped("s2", 3, "", TurnFinished("done", "", 1, 0.1))

    assert len([e async for e in _in_time(events(), 0.2)]) == 3


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ([fails(ModelError("no such key", kind="auth"))], "no such key"),
        ([says(" ")], "empty reply"),
    ],
)
async def test_a_sub_agent_that_fails_is_a_result(below: list[Reply], said: str):
    office = Office(below)
    (end,) = of(await office.events(), ToolFinished)
    assert end.status == "error" and said in end.output and "session s1" in end.output


async def test_an_agent_nobody_has_is_a_result():
    (end,) = of(await Office([], opens=False).events(), ToolFinished)
    assert end.status == "error" and "There is no agent" in end.output


async def test_stopping_the_turn_stops_it_and_both_histories_stay_valid():
    office = Office([hangs("I am still"), says("whole")])
    async with aclosing(office.upper.session.send("Which port?")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, Delegated) and office.lower.session.busy:
                await asyncio.sleep(0)
                break
    assert not office.lower.session.busy and not office.upper.session.busy
    assert "session s1" in office.upper.state.ledger.groups[1].messages[1].text
    await office.upper.say("never mind")
    assert not problems(office.model.requests[-1].view)
    assert office.upper.folded() == office.upper.state
