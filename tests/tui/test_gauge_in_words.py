"""The gauge for those who do not see it: in a sentence, by a command."""

from __future__ import annotations

from pathlib import Path

from ctxchat.tui.transcript.blocks import NoticeBlock
from tests.doubles.scripted import says
from tests.tui.chatting import blocks, chatting, said, until
from tests.tui.fakes import FakeSession
from tests.tui.real import LONG, say, talking


async def test_where_the_panel_has_no_room_its_key_says_it_in_words(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (20, 20)) as (app, pilot):
        await pilot.press("f2")
        await until(pilot, lambda: "The context is" in said(app, NoticeBlock))


async def test_the_gauge_is_read_out_as_a_line_of_the_chat(tmp_path: Path) -> None:
    async with talking(tmp_path, [says(LONG)]) as (app, pilot, _):
        await say(app, pilot, "how full is it?")
        app.chat.composer.set_draft("/context read")
        await pilot.press("enter")
        await until(pilot, lambda: blocks(app, NoticeBlock))
        words = said(app, NoticeBlock)
        assert "The context is" in words and "Compaction starts after" in words
        assert not app.chat.side.is_shown, "the panel stays as it was"
