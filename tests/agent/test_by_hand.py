"""Changes by hand that once did something else than they said."""

from __future__ import annotations

import pytest

from ctxchat.core.errors import LedgerError
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Image, Message, Text
from ctxchat.models.scripted import ScriptedModel, says
from tests.agent.desk import Desk

PICTURE = Image("data:image/png;base64,AAAA", 10, 10)


def imported() -> Desk:
    messages = [
        Message(1, "system", "Be brief. " * 50),
        Message(2, "user", (Text("look at this"), PICTURE)),
        Message(3, "assistant", "seen"),
    ]
    return Desk(ScriptedModel([says("ok")]), records=[Sealed((group,)) for group in group_messages(messages)])


async def test_instructions_that_stay_in_every_request_cannot_be_dropped_but_shrunk():
    desk = imported()
    before = (await desk.session.measure()).used
    with pytest.raises(LedgerError, match="instructions"):
        await desk.session.drop("g1")
    assert desk.state.ledger.changes == ()
    assert (await desk.session.shrink("g1")).used < before


async def test_an_image_that_is_put_back_is_an_image():
    desk = imported()
    await desk.session.restore("g2")
    note = desk.session.view.items[-1].message
    assert "look at this" in note.text and PICTURE in note.content
    await desk.session.undo()
    await desk.session.quote(desk.state.ledger.group("g2"), "holidays")
    assert PICTURE in desk.session.view.items[-1].message.content
