"""Handing off from the chat: the draft is shown, mended, sent in a fresh session; Esc leaves everything as it was."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

import pytest

from ctxchat.tui.panels.handoff import HandoffScreen
from ctxchat.tui.panels.summary import SummaryEditor
from tests.doubles.scripted import says
from tests.tui.chatting import until, words
from tests.tui.fakes import FakeServices
from tests.tui.real import Writer, say, talking

ANSWERS = repeat(says("so it is"))


async def shown(app, pilot, command: str = "/handoff mend the gauge") -> SummaryEditor:
    await pilot.press(*command, "enter")
    await until(
        pilot, lambda: isinstance(app.screen, HandoffScreen) and [e for e in app.screen.query(SummaryEditor) if e.text]
    )
    return app.screen.query_one(SummaryEditor)


@pytest.mark.parametrize("size", [(100, 30), (40, 24)])
async def test_the_draft_is_mended_and_sent_in_a_fresh_session(tmp_path: Path, size: tuple[int, int]) -> None:
    async with talking(tmp_path, ANSWERS, size=size) as (app, pilot, desk):
        await say(app, pilot, "Never touch the firmware.")
        services: FakeServices = app.services  # type: ignore[assignment]
        draft = await shown(app, pilot)
        assert (
            draft.text.startswith("Go on with this work: mend the gauge") and "Never touch the firmware." in draft.text
        )
        assert "enter send it" in words(app)
        draft.insert("Mended. ", (0, 0))
        await pilot.press("enter")
        await until(pilot, lambda: "fresh" in services.by_id and services.by_id["fresh"].sent)
        assert services.by_id["fresh"].sent[0].startswith("Mended. Go on with this work")
        assert desk.state.ledger.groups[-1].source == "handoff:fresh"


async def test_escape_leaves_everything_as_it_was(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS) as (app, pilot, desk):
        await say(app, pilot, "Find out why.")
        before = desk.state
        await shown(app, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert desk.state == before and app.session is desk.session


async def test_the_model_writes_it_on_request_and_a_half_one_is_not_sent(tmp_path: Path) -> None:
    writer = Writer(waits=True)
    async with talking(tmp_path, ANSWERS, writer=writer) as (app, pilot, _):
        await say(app, pilot, "Find out why.")
        draft = await shown(app, pilot)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: draft.text.startswith("## Goal"))
        await pilot.press("enter")
        assert isinstance(app.screen, HandoffScreen), "it is still being written"
        writer.go.set()
        await until(pilot, lambda: draft.text.startswith("Go on with this work: mend the gauge"))
        assert "poll every 90 s (settled)" in draft.text and "Find out why." in draft.text
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_nothing_said_is_told_calmly(tmp_path: Path) -> None:
    async with talking(tmp_path, ANSWERS) as (app, pilot, _):
        await pilot.press(*"/handoff", "enter")
        await until(pilot, lambda: "nothing to hand off" in words(app))
        assert app.screen is app.chat
