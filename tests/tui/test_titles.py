"""The title that the model writes, where the settings want one: it comes into the header beside everything else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ctxchat.config.schema import Settings
from tests.doubles.scripted import ScriptedModel, says
from tests.tui.chatting import idle, until, words
from tests.tui.real import say, talking

MODEL = msgspec.structs.replace(Settings().interface, titles="model")


@pytest.mark.parametrize("wanted", [True, False])
async def test_it_is_in_the_header_after_the_first_answer_where_it_is_wanted(tmp_path: Path, wanted: bool) -> None:
    settings = Settings(interface=MODEL) if wanted else Settings()
    script = [says("It is full."), says("Gauge at pier seven"), says("And on.")]
    async with talking(tmp_path, script, settings=settings) as (app, pilot, desk):
        await say(app, pilot, "why does the gauge stand still?")
        if wanted:
            await until(pilot, lambda: desk.state.title == "Gauge at pier seven" and "Gauge at pier" in words(app))
        await say(app, pilot, "and now?")
        await idle(app, pilot)
        model = desk.conversation.model
        assert isinstance(model, ScriptedModel)
        assert len(model.requests) == 2 + wanted and (desk.state.title == "Gauge at pier seven") == wanted
