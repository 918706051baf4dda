"""The calls of one round: what changes something runs alone and in order, what reads does not wait for a person's word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.budget import Window
from ctxchat.core.events import ApprovalRequested, ApprovalResolved, Event, ToolFinished, ToolStarted
from ctxchat.core.permissions import AccessRequest, Answer, Rule
from ctxchat.core.ports import ToolContext, ToolOutput, ToolText
from ctxchat.core.view import problems
from ctxchat.tools.tool import Arguments, Pieces, Tool
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.examples import examples


class Watched(Echo):
    """Takes some compactions of the loop, and notes in `spans` who ran beside it."""

    def __init__(
        self, name: str, running: list[str], spans: list[tuple[str, tuple[str, ...]]], *, writes: bool
    ) -> None:
        super().__init__(name, writes=writes)
        self._running, self._spans = running, spans

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        me = f"{self.spec.name} {arguments['text']}"
        self._running.append(me)
        try:
            for _ in range(3):
                self._spans.append((me, tuple(other for other in self._running if other != me)))
                await asyncio.sleep(0)
            yield ToolOutput(me)
        finally:
            self._running.remove(me)


def told(events: list[Event]) -> list[str]:
    """The events of calls, a word each."""
    words: list[str] = []
    for event in events:
        match event:
            case ToolStarted():
                words.append(f"start {event.call_id[-1]}")
            case ApprovalRequested():
                words.append(f"ask {event.call_id[-1]}")
            case ApprovalResolved():
                words.append(f"{event.verdict} {event.call_id[-1]}")
            case ToolFinished():
                words.append(f"end {event.call_id[-1]}")
            case _:
                pass
    return words


class Unsaid(Watched):
    """A tool of another package that cannot say whether it changes something."""

    def reads(self, arguments: Mapping[str, object]) -> bool:
        raise KeyError("path")


async def test_a_tool_that_cannot_say_whether_it_reads_runs_alone_and_the_turn_goes_on():
    running, spans = list[str](), list[tuple[str, tuple[str, ...]]]()
    tools = [Unsaid("theirs", running, spans, writes=False), Watched("echo", running, spans, writes=False)]
    model = ScriptedModel(
        [calls(("echo", {"text": "0"}), ("theirs", {"text": "1"}), ("echo", {"text": "2"})), says("ok")]
    )
    ended = of(await Desk(model, tools=tools).say("go"), ToolFinished)
    assert [e.status for e in ended] == ["ok"] * 3 and not any(beside for _, beside in spans)


def test_a_tool_changes_something_unless_it_says_otherwise():
    class Theirs(Tool[Arguments]):
        name, about, arguments = "theirs", "Something.", Arguments

        def access_needed(self, arguments: Arguments, context: ToolContext) -> AccessRequest:
            return AccessRequest("none")

        async def execute(self, arguments: Arguments, context: ToolContext) -> Pieces:
            yield ToolOutput("")

    assert not Theirs().reads({})


async def test_reading_calls_run_while_another_waits_for_a_person():
    model = ScriptedModel(
        [
            calls(("echo", {"text": "0"}), ("put", {"text": "1"}), ("echo", {"text": "2"}), ("put", {"text": "3"})),
            says("ok"),
        ]
    )
    desk = Desk(model, tools=[Echo(), Echo("put", writes=True)])
    seen: list[Event] = []
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            seen.append(stamped.event)
            done = [e.output for e in seen if isinstance(e, ToolFinished)]
            if isinstance(stamped.event, ToolFinished) and sorted(done) == ["0", "2"]:  # both, and nobody has answered
                asked = [e for e in seen if isinstance(e, ApprovalRequested)]
                assert [e.summary for e in asked] == ["put 1"], "one question at a time"
                desk.session.permissions.answer(asked[0].call_id, Answer("once"))
            elif isinstance(stamped.event, ApprovalRequested) and "put 3" in stamped.event.summary:
                assert "1" in done, "what changes something is asked in its order, after what came before is done"
                desk.session.permissions.answer(stamped.event.call_id, Answer("deny", "not now"))
    results = [m.text for m in desk.state.ledger.groups[1].messages[1:]]
    assert results[:3] == ["0", "1", "2"] and "not now" in results[3]


async def test_a_reading_call_behind_a_change_that_needs_no_word_sees_the_change():
    running: list[str] = []
    spans: list[tuple[str, tuple[str, ...]]] = []
    tools = [Watched("look", running, spans, writes=False), Watched("put", running, spans, writes=True)]
    model = ScriptedModel([calls(("put", {"text": "1"}), ("look", {"text": "2"}), ("look", {"text": "3"})), says("ok")])
    desk = Desk(model, tools=tools, mode="all")
    await desk.say("go")
    assert [me for me, _ in spans[:3]] == ["put 1"] * 3


class Together(Echo):
    """Ends when another call of it runs at the same time."""

    barrier: asyncio.Barrier

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        await self.barrier.wait()
        yield ToolOutput("both")


async def test_reading_calls_run_at_the_same_time():
    together = Together()
    together.barrier = asyncio.Barrier(2)
    desk = Desk(ScriptedModel([calls(("echo", {"text": "1"}), ("echo", {"text": "2"})), says("ok")]), tools=[together])
    async with asyncio.timeout(60):
        await desk.say("go")
    assert [m.text for m in desk.state.ledger.groups[1].messages[1:]] == ["both", "both"]


async def test_what_an_answer_allows_is_not_asked_again_in_the_same_round():
    model = ScriptedModel([calls(("put", {"text": "a"}), ("far", {"text": "b"}), ("far", {"text": "b"})), says("ok")])
    tools = [Echo("put", writes=True), Echo("far", writes=True)]
    desk = Desk(model, tools=tools)
    events = await desk.say("go", ["once", "session"])
    assert [e.summary for e in events if isinstance(e, ApprovalRequested)] == ["put a", "far b"]


async def test_closing_while_a_question_waits_keeps_what_was_read_meanwhile():
    model = ScriptedModel([calls(("put", {"text": "1"}), ("echo", {"text": "2"})), says("as you like")])
    put = Echo("put", writes=True)
    desk = Desk(model, tools=[Echo(), put])
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ToolFinished):
                break
    results = [m.text for m in desk.state.ledger.groups[1].messages[1:]]
    assert "cancelled by the user" in results[0] and results[1] == "2" and not put.ran
    await desk.say("never mind")
    assert not problems(model.requests[-1].view)


KIND = st.sampled_from(["look", "put", "may"])


@examples(20, 200)
@given(st.lists(st.tuples(KIND, st.sampled_from(["once", "session", "deny"])), min_size=1, max_size=7))
def test_any_round_ends_with_its_results_in_order_and_changes_alone(wanted: list[tuple[str, str]]):
    running: list[str] = []
    spans: list[tuple[str, tuple[str, ...]]] = []
    tools = [Watched(name, running, spans, writes=name != "look") for name in ("look", "put", "may")]
    model = ScriptedModel([calls(*((name, {"text": str(n)}) for n, (name, _) in enumerate(wanted))), says("ok")])
    desk = Desk(model, tools=tools, rules=[Rule("may", "*")])  # what is put is asked about, what may is not
    events = asyncio.run(desk.say("go", [answer for name, answer in wanted if name == "put"]))
    messages = desk.state.ledger.groups[1].messages[1:]
    for n, (message, (name, answer)) in enumerate(zip(messages, wanted, strict=True)):
        refused = name == "put" and answer == "deny"
        assert (message.text == f"{name} {n}") is not refused
    assert all(not beside for me, beside in spans if not me.startswith("look"))
    changes = [me for me, _ in spans if not me.startswith("look")]
    assert changes == sorted(changes, key=lambda me: int(me.split()[1])), "in the order of the calls"
    waiting = 0
    for word in told(events):
        waiting += word.startswith("ask")
        waiting -= word.startswith(("once", "session", "deny"))
        assert waiting <= 1


async def test_what_others_of_a_batch_leave_a_long_result_may_have():
    """Nothing is cut to save a few tokens of a window that is more than half empty."""
    long = "\n".join(f"line {n} of a file that is read whole" for n in range(214))
    wanted = [("echo", {"text": "short"}), ("echo", {"text": long}), ("echo", {"text": "x"}), ("echo", {"text": "y"})]
    model = ScriptedModel([calls(*wanted), says("done")], window=Window(28_000, "loaded"))
    desk = Desk(model, tools=[Echo()])
    events = await desk.say("look at all four")
    assert [f.output for f in of(events, ToolFinished)] == ["short", long, "x", "y"]


class CancelledInside(Echo):
    """Waits for something that is cancelled under it."""

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        inner: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(inner.cancel)
        yield ToolOutput(await inner)


async def test_what_is_cancelled_inside_a_tool_is_its_fault_and_not_the_end_of_the_turn():
    desk = Desk(ScriptedModel([calls(("echo", {"text": "a"})), says("on")]), tools=[CancelledInside()])
    async with asyncio.timeout(5):
        [end] = of(await desk.say("go"), ToolFinished)
    assert end.status == "error" and "was cancelled" in end.output


async def test_a_result_that_cannot_be_masked_is_left_out_and_said():
    desk = Desk(ScriptedModel([calls(("echo", {"text": "a key"})), says("on")]), tools=[Echo()])

    def mask(text: str) -> str:
        if "a key" in text:
            raise RuntimeError("no rules")
        return text

    desk.tool_runner.mask = mask
    async with asyncio.timeout(5):
        [end] = of(await desk.say("go"), ToolFinished)
    assert end.status == "error" and "could not be looked through" in end.output and "a key" not in end.output
