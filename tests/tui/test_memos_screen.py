"""The memos of a session on screen: listed, edited, removed, gone to."""

from __future__ import annotations

from pathlib import Path

from ctxchat.core.memos import memos_of
from ctxchat.tui.panels.memos import MemoEditor, MemosScreen
from ctxchat.tui.panels.summary import SummaryEditor
from tests.agent.desk import Desk
from tests.agent.test_memos import WHY, memo_tool, wrote
from tests.tui.chatting import HOSTILE, until, words
from tests.tui.real import say, talking


async def test_they_are_listed_edited_and_removed(tmp_path: Path) -> None:
    desks: list[Desk] = []
    script = wrote(("store", WHY), (HOSTILE[:30], HOSTILE))
    async with talking(tmp_path, script, size=(40, 24), tools=[memo_tool(desks)]) as (app, pilot, desk):
        desks.append(desk)
        await pilot.press(*"/memos", "enter")
        await until(pilot, lambda: "There are no memos." in words(app))
        await pilot.press("escape")
        await say(app, pilot, "begin")
        await pilot.press(*"/memos", "enter")
        await until(pilot, lambda: isinstance(app.screen, MemosScreen) and WHY[:15] in words(app))
        assert "store" in words(app) and "2 memos" in words(app)
        await pilot.press("down", "e")
        await until(
            pilot, lambda: isinstance(app.screen, MemoEditor) and app.screen.query_one(SummaryEditor).text == WHY
        )
        await until(pilot, lambda: not app.screen.query_one(SummaryEditor).read_only)
        await pilot.press(*"No. ", "enter")
        await until(pilot, lambda: memos_of(desk.state.ledger)["store"].text == f"No. {WHY}")
        await until(pilot, lambda: "No. SQLite" in words(app))
        await pilot.press("d")
        await until(pilot, lambda: "Remove the memo store?" in words(app).replace("\n", " "))
        await pilot.press("enter")
        await until(pilot, lambda: "store" not in memos_of(desk.state.ledger))
        await until(pilot, lambda: "1 memo" in words(app) and "2 memos" not in words(app))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.chat)
