"""The gauge for those who do not see it: in a sentence, by a command."""

from __future__ import annotations

from pathlib import Path

from ctxchat.tui.widgets.blocks import NoticeBlock
from tests.doubles.scripted import says
from tests.tui.chatting import until
from tests.tui.real import LONG, say, talking


async def test_the_gauge_is_read_out_as_a_line_of_the_chat(tmp_path: Path) -> None:
    async with talking(tmp_path, [says(LONG)]) as (app, pilot, _):
        await say(app, pilot, "how full is it?")
        app.chat.composer.set_draft("/context read")
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.transcript.query(NoticeBlock))
        words = " ".join(
            str(w.render()) for w in app.chat.transcript.query_one(NoticeBlock).walk_children(with_self=True)
        )
        assert "The context is" in words and "Compaction starts in" in words
        assert not app.chat.side.shown, "the panel stays as it was"
