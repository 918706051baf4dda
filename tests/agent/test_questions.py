"""A call that asks the person: the question goes out as an event, the answer comes in by the call's id."""

from __future__ import annotations

from contextlib import aclosing

from ctxchat.core.events import QuestionAsked, ToolFinished, TurnFinished
from ctxchat.core.view import problems
from ctxchat.tools.notes import AskUser
from tests.agent.desk import Desk
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
                    desk.session.reply("not a call", "red")
                    desk.session.reply(question.call_id, "blue")
                    desk.session.reply(question.call_id, "red")
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
    desk.session.reply("c1", "red")  # too late: nothing happens
    await desk.say("never mind")
    assert not problems(model.requests[-1].view)
