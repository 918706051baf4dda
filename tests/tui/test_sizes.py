"""Another size: whatever the terminal made of what was on screen, all of it is drawn anew."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.events import Resize
from textual.geometry import Size

from ctxchat.tui.guide import Guide
from ctxchat.tui.panels.help import HelpScreen
from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeSession

HERE = Size(100, 30)


@pytest.mark.parametrize("between", [Size(99, 30), Size(40, 20), HERE])
@pytest.mark.parametrize("turns", [0, 1, 3], ids=str)
async def test_a_size_that_comes_back_is_drawn_whole(tmp_path: Path, between: Size, turns: int) -> None:
    async with chatting(tmp_path, FakeSession(), tuple(HERE)) as (app, pilot):
        await until(pilot, lambda: app.services.warmed)
        to_draw = app.screen._compositor._dirty_regions
        to_draw.clear()
        for size in (between, HERE):
            app.post_message(Resize(size, size))
            for _ in range(turns):  # the first is seen before the second comes, or both are there
                await asyncio.sleep(0)
        async with asyncio.timeout(60):
            while HERE.region not in to_draw:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert app.screen.size == HERE


async def test_the_conversation_is_as_wide_with_the_guide_of_the_tour(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (80, 24)) as (app, pilot):
        transcript = app.chat.transcript
        await app.chat.query_one("#composer").parent.mount(Guide(), before="#composer")
        await until(pilot, lambda: app.chat.query_one(Guide).region.height)
        app.chat.notice("info", "said")
        await until(pilot, lambda: transcript.region.width)
        assert transcript.region.width == app.chat.composer.region.width


@pytest.mark.parametrize("width", [80, 76, 62])
async def test_a_cell_is_free_between_the_help_and_its_scrollbar(tmp_path: Path, width: int) -> None:
    async with chatting(tmp_path, FakeSession(), (width, 24)) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and "/redo" in words(app))
        bar = app.screen.query_one("#page").vertical_scrollbar.region.x
        assert {line[bar - 1] for line in words(app).split("\n")[2:-1]} == {" "}


async def test_a_size_that_is_gone_is_dropped(tmp_path: Path) -> None:
    """Textual lays a screen out for it, and tells the one before again: two of them went on for ever."""
    async with chatting(tmp_path, FakeSession(), (100, 30)) as (app, pilot):
        for key in ("", "f1"):
            if key:
                await pilot.press(key)
                await until(pilot, lambda: isinstance(app.screen, HelpScreen))
            app.screen.post_message(Resize(Size(20, 5), Size(20, 5)))
            await pilot.pause()
            assert app.screen.size == app.size == HERE
