"""A model that writes long files: what it wrote is not carried on whole where the window cannot hold it, and none is lost."""

from __future__ import annotations

import json

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.events import Failed, TurnFinished
from ctxchat.core.options import Options
from ctxchat.core.record import CompactionRecord
from ctxchat.core.view import problems
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import ScriptedModel, calls, says


class Writes(Echo):
    """Takes any text and says that it was written."""

    async def run(self, arguments, context):  # type: ignore[no-untyped-def]
        async for piece in super().run({"text": f"written, {len(str(arguments['text']))} characters"}, context):
            yield piece


@pytest.mark.parametrize("size", [6_000, 60_000])
async def test_long_writes_in_one_turn_fit_a_small_window(size: int):
    text = ("line of code = 1\n" * size)[:size]
    rounds = [calls(("echo", {"text": f"{number} {text}"})) for number in range(8)]
    model = ScriptedModel([*rounds, says("all done")], window=Window(8_000, "loaded"))
    desk = Desk(model, tools=[Writes()], options=Options(keep_recent=6))
    events = await desk.say("Write eight files.")
    assert of(events, TurnFinished)[0].text == "all done", of(events, Failed)
    for request in model.requests:
        assert problems(request.view) == []
        assert request.view.raw <= 8_000
        for item in request.view.items:
            assert all(isinstance(json.loads(call.arguments), dict) for call in item.message.calls)
    written = [call.arguments for group in desk.state.ledger.groups for call in group.first.calls]
    assert [json.loads(a)["text"] for a in written] == [f"{n} {text}" for n in range(8)], "the record is whole"
    for result in of(events, CompactionRecord):
        assert result.outcome == "compacted" and result.facts.kept == result.facts.found
    saved = [name for name in desk.journal.spilled if name.endswith("-call1.json")]
    if size == 60_000:
        assert saved and all(desk.journal.spilled[name] in written for name in saved)
    for change in reversed(desk.state.ledger.changes):
        await desk.session.changes.undo(change.id)
    shown = [call.arguments for item in desk.session.view.items for call in item.message.calls]
    assert shown == written, "and every compaction can be taken back"
