"""The question whether to make room goes with the gauge while it waits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ctxchat.core.events import CompactionSuggested, Notice
from ctxchat.core.record import CompactionRecord, SideUsage
from ctxchat.tui.chat.offers import SuggestionPanel
from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeSession, Pause, reply


async def test_it_says_how_full_the_window_is_by_now(tmp_path: Path) -> None:
    session = FakeSession()
    fuller = msgspec.structs.replace(session.context_usage, used=180_000, limit=200_000, pressure=0.9)
    suggested = CompactionSuggested(170_000, 200_000, 0.85, 60_000)
    session.script = lambda _: [suggested, Pause(), fuller, Pause("end"), *reply("ok")]
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(SuggestionPanel))
        assert "85 % full" in words(app) and "170.0k → ~60.0k" in words(app)
        session.approvals().set()
        await until(pilot, lambda: "90 % full" in words(app))
        assert "180.0k → ~70.0k" in words(app)


async def test_what_is_changed_by_hand_counts_too(tmp_path: Path) -> None:
    session = FakeSession()
    emptier = msgspec.structs.replace(session.context_usage, used=160_000, limit=200_000, pressure=0.8)
    async with chatting(tmp_path, session) as (app, pilot):
        await app.chat.questions.suggest(CompactionSuggested(180_000, 200_000, 0.9, 70_000))
        await until(pilot, lambda: "90 % full" in words(app))
        app.chat.show_figures(emptier)
        await until(pilot, lambda: "80 % full" in words(app))
        assert "160.0k → ~50.0k" in words(app)


async def test_a_pass_that_failed_by_itself_is_told_once(tmp_path: Path) -> None:
    sides = SideUsage(9, 9), SideUsage(9, 9)
    said = "The model sent an empty reply."
    failed = CompactionRecord("k1", "auto", "summarize", "failed", before=sides[0], after=sides[1], detail=said)
    told = Notice("warning", "The model sent an empty reply. Next try in 30 s, or by /compact.")
    session = FakeSession(lambda _: [failed, Pause(), told, *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "✗ The model sent an empty reply." in words(app))
        session.approvals().set()
        await until(pilot, lambda: "Next try in 30 s" in words(app) and "✗" not in words(app))
        assert words(app).count("empty reply") == 1


@pytest.mark.parametrize("size", [(120, 36), (64, 24), (40, 20), (40, 12)])
async def test_its_answers_and_the_way_to_them_are_said_once(tmp_path: Path, size: tuple[int, int]) -> None:
    async with chatting(tmp_path, FakeSession(), size) as (app, pilot):
        await app.chat.questions.suggest(CompactionSuggested(180_000, 200_000, 0.9, 70_000))
        await until(pilot, lambda: not app.query_one(SuggestionPanel).held)
        await until(pilot, lambda: words(app).count("tab first") + words(app).count("tab to answer") == 1)
        if size[1] >= 18:
            assert words(app).count("after this task") == words(app).count("add instructions") == 1
            await app.chat.questions.unsuggest()
            await until(pilot, lambda: "tab" not in words(app).replace("shift+tab", ""))
