"""What replies and refusals teach of a model, without a turn around it."""

from __future__ import annotations

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.calibration import Calibration, Mix, level
from ctxchat.core.events import Usage
from ctxchat.core.messages import Message, Reasoning, ToolCall
from tests.agent.desk import Desk
from tests.agent.test_compaction import LONG
from tests.doubles.scripted import ScriptedModel, says


async def told(text: str = LONG) -> Desk:
    desk = Desk(ScriptedModel([says("ok")], window=Window(100_000, "loaded")))
    await desk.say(text)
    return desk


async def test_a_count_in_a_refusal_is_what_the_gauge_stands_on() -> None:
    desk = Desk(ScriptedModel([], window=Window(100_000, "loaded")), system=LONG)
    await desk.session.measure()
    conversation = desk.conversation
    before = conversation.knowledge.calibration
    counted = conversation.knowledge.refused(2_000, conversation.view, "")
    assert counted is not None
    conversation.apply_now_write_later(counted)
    context_usage = conversation.remeasured()
    assert (context_usage.used, context_usage.estimated) == (2_000, False)
    assert conversation.knowledge.calibration.samples == before.samples + 1
    await conversation.flush()
    assert desk.folded() == desk.state


@pytest.mark.parametrize("tokens", [0, -1, 3, 10**7])
async def test_a_count_that_cannot_be_meant_is_not_believed(tokens: int) -> None:
    conversation = (await told()).conversation
    assert conversation.knowledge.refused(tokens, conversation.view, "") is None


@pytest.mark.parametrize(
    ("reply", "completion", "teaches"),
    [
        (Message(9, "assistant", LONG), 900, True),
        (Message(9, "assistant", LONG), 9_000, False),  # hidden thoughts
        (Message(9, "assistant", LONG, reasoning=Reasoning("hm")), 900, False),
        (Message(9, "assistant", LONG, (ToolCall("c", "read", "{}"),)), 900, False),
    ],
    ids=["plain", "hidden thoughts", "thoughts", "calls"],
)
async def test_a_reply_teaches_its_words_where_what_was_counted_is_what_was_said(
    reply: Message, completion: int, teaches: bool
) -> None:
    desk = await told()
    conversation = desk.conversation
    measured = conversation.knowledge.counted(
        Usage(conversation.view.raw, completion), conversation.view, reply, "", turn_end=True
    )
    quiet = conversation.knowledge.counted(Usage(conversation.view.raw, 0), conversation.view, reply, "", turn_end=True)
    assert (measured.calibration.samples > quiet.calibration.samples) is teaches


async def test_samples_are_believed_until_a_reply_came() -> None:
    class Sampled(ScriptedModel):
        async def sampled(self) -> Calibration:
            return level(2.0, samples=0)

    desk = Desk(Sampled([says("ok")], window=Window(100_000, "loaded")))
    context_usage = await desk.session.measure()
    assert context_usage.used == 2 * desk.conversation.view.raw
    await desk.say(LONG)
    knowledge = desk.conversation.knowledge.calibration
    assert knowledge.samples and knowledge.part(Mix(1_000)) < 2_000
