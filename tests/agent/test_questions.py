"""A call that asks the person: the question goes out as an event, the answer comes in by the call's id."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from ctxchat.core.events import ApprovalRequested, QuestionAsked, ToolFinished, TurnFinished
from ctxchat.core.permissions import AccessRequest, Answer, Grant, Mode
from ctxchat.core.ports import ToolContext
from ctxchat.core.view import problems
from ctxchat.tools.conversation import AskUser
from tests.agent.desk import Desk, Echo
from tests.doubles.scripted import ScriptedModel, calls, says

WHICH = ("ask_user", {"question": "Which [b]one?", "options": ["red", "blue"]})


async def test_the_turn_waits_for_the_answer_and_the_model_gets_it():
    model = ScriptedModel([calls(WHICH), says("Blue it is.")])
    desk = Desk(model, tools=[AskUser()])
    asked: list[QuestionAsked] = []
    finished: list[ToolFinished] = []
    async with aclosing(desk.session.send("paint it")) as stream:
        async for stamped in stream:
            match stamped.event:
                case QuestionAsked() as question:
                    asked.append(question)
                    desk.session.permissions.reply("not a call", "red")
                    desk.session.permissions.reply(question.call_id, "blue")
                    desk.session.permissions.reply(question.call_id, "red")
                case ToolFinished() as end:
                    finished.append(end)
                case _:
                    pass
    assert [(q.text, q.options) for q in asked] == [("Which [b]one?", ("red", "blue"))]
    assert [e.output for e in finished] == ["The user answered: blue"]
    assert "The user answered: blue" in model.requests[1].view.items[-1].message.text


async def test_where_nobody_can_be_asked_the_model_is_told_at_once():
    desk = Desk(ScriptedModel([calls(WHICH), says("I took red.")]), tools=[AskUser()], interactive=False)
    events = await desk.say("paint it")
    assert not [e for e in events if isinstance(e, QuestionAsked)]
    assert [("gave no answer" in e.output) for e in events if isinstance(e, ToolFinished)] == [True]
    assert [e.text for e in events if isinstance(e, TurnFinished)] == ["I took red."]


async def test_stopping_while_a_question_waits_leaves_a_valid_history():
    model = ScriptedModel([calls(WHICH), says("As you like.")])
    desk = Desk(model, tools=[AskUser()])
    async with aclosing(desk.session.send("paint it")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, QuestionAsked):
                break
    desk.session.permissions.reply("c1", "red")  # too late: nothing happens
    await desk.say("never mind")
    assert not problems(model.requests[-1].view)


class Runs(Echo):
    """A tool that asks for the network and remembers what it was allowed."""

    def __init__(self) -> None:
        super().__init__("runs", writes=True)
        self.allowed: list[Grant] = []

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        can = Grant(network=True, folders=("/cache",), outside=True)
        return AccessRequest("run", "x", summary="run x", allowance=can, asks=Grant(network=True))

    def run(self, arguments: dict[str, object], context: ToolContext):
        self.allowed.append(context.allowance)
        return super().run(arguments, context)


@pytest.mark.parametrize(
    ("mode", "answer", "allowed"),
    [
        ("ask", Answer("once"), Grant(network=True)),
        ("ask", Answer("once", allowance=Grant(folders=("/cache",))), Grant(True, ("/cache",))),
        ("ask", Answer("once", allowance=Grant(outside=True)), Grant(True, outside=True)),
        ("all", None, Grant(network=True)),
    ],
)
async def test_a_yes_gives_a_call_what_it_asks_for_and_what_was_added(
    mode: Mode, answer: Answer | None, allowed: Grant
):
    tool = Runs()
    desk = Desk(ScriptedModel([calls(("runs", {"text": "x"})), says("Done.")]), tools=[tool], mode=mode)
    async with aclosing(desk.session.send("go")) as stream:
        async for stamped in stream:
            if isinstance(stamped.event, ApprovalRequested):
                assert answer and stamped.event.allowance == Grant(True, ("/cache",), True)
                desk.session.permissions.answer(stamped.event.call_id, answer)
    assert tool.allowed == [allowed]
