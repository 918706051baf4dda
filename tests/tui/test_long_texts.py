"""Texts too long to be edited: nothing of them is lost, and nobody waits for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from textual.containers import VerticalScroll
from textual.events import Paste
from textual.screen import Screen
from textual.widgets import Input, Static

from ctxchat.core.events import ApprovalRequested
from ctxchat.presentation.text import MAX_LAID_OUT_CHARS, MAX_SHOWN_CHARS, WIDEST
from ctxchat.tui.chat.approval import ApprovalPanel, RuleEditor
from ctxchat.tui.panels.panel import AskText
from ctxchat.tui.panels.summary import SummaryEditor, SummaryScreen
from tests.tui.chatting import ASK, chatting, until, words
from tests.tui.fakes import FakeSession, Pause, reply
from tests.tui.hostile import Hostile

LONG = "x" * (MAX_LAID_OUT_CHARS + 5_000)


async def opened(app: Any, pilot: Any, screen: Screen[Any]) -> list[Any]:
    """The screen over the chat; what it comes back with will be in the list."""
    said: list[Any] = []
    app.push_screen(screen, said.append)
    await until(pilot, lambda: app.screen is screen and screen.is_mounted)
    return said


async def test_a_title_that_no_line_holds_stays_until_another_is_written(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        for keys, title in (([], None), (["n", "e", "w"], "new")):
            said = await opened(app, pilot, AskText("New title", LONG))
            assert "25,000 characters stay unless you write here" in words(app)
            app.screen.query_one(Input).post_message(Paste(LONG))
            await until(pilot, lambda: any("The paste was left out." in told.message for told in app._notifications))
            await pilot.press(*keys, "enter")
            await until(pilot, lambda said=said: said)
            assert said == [title]


async def test_a_summary_that_no_editor_holds_is_mended_at_its_beginning_and_kept_whole(tmp_path: Path) -> None:
    async def pieces() -> AsyncGenerator[str, None]:
        for start in range(0, len(LONG), 900):
            yield LONG[start : start + 900]

    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        said = await opened(app, pilot, SummaryScreen(pieces(), await Hostile(tmp_path, "x").desk.preview()))
        draft = app.screen.query_one(SummaryEditor)
        await until(pilot, lambda: not draft.read_only)
        assert draft.text == "x" * WIDEST and "15,000 characters after these stay as they are" in words(app)
        draft.post_message(Paste(LONG))
        await until(pilot, lambda: any("The paste was left out." in told.message for told in app._notifications))
        await pilot.press(*"Mine. ", "enter")
        await until(pilot, lambda: said)
        assert said == ["Mine. " + LONG]


@pytest.mark.parametrize(("access", "end"), [("write", "… 1,234 more characters"), ("run", "xxx")])
async def test_a_change_of_any_length_is_shown_as_far_as_it_can_and_a_command_whole(
    tmp_path: Path, access: Any, end: str
) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, _):
        panel = ApprovalPanel(
            ApprovalRequested("c", "t", "does it", access=access, preview="x" * (MAX_SHOWN_CHARS + 1_234))
        )
        await app.chat.mount(panel)
        assert str(panel.query_one(".preview", VerticalScroll).query_one(Static).content).endswith(end)


async def test_a_rule_takes_no_paste_that_no_editor_holds(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [ASK, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.focused)
        await pilot.press("e")
        editor = app.query_one(RuleEditor)
        before = editor.text
        for paste in (
            LONG,
            "x\n" * (MAX_SHOWN_CHARS // 2 + 1),
            "x" * WIDEST,
        ):  # the last is too much with what is there
            app._notifications.clear()
            app.post_message(Paste(paste))
            await until(pilot, lambda: any("The paste was left out." in told.message for told in app._notifications))
            assert editor.text == before
        app.post_message(Paste(" x"))
        await until(pilot, lambda: editor.text == before + " x")
        await pilot.press("escape", "n")
