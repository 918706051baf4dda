"""Text that wants to be more than text, through the whole of it: the real session, every screen, at three sizes."""

from __future__ import annotations

from itertools import chain, repeat
from pathlib import Path

import pytest
from textual.widgets._toast import Toast

from ctxchat.core.errors import ModelError
from ctxchat.tui.widgets.approval import ApprovalPanel
from ctxchat.tui.widgets.reply import ReplyBlock
from tests.agent.desk import Echo
from tests.doubles.scripted import calls, fails, says
from tests.tui.chatting import HOSTILE, idle, until, words
from tests.tui.real import say, talking

MEGABYTE = "x" * 1_000_000
TABLE = f"{HOSTILE}\n\n| {HOSTILE} |\n|---|\n\n![x](javascript:boo) [l](file:///etc/passwd)\n\n```{HOSTILE}\n{HOSTILE}\n```\n"
SCREENS = ("f1", "f2", "f3", "f4", "f8", "f9", "f10", "ctrl+f", "alt+l", "ctrl+p")
BESIDE = ("f2", "f8")
"""Keys that open a panel in the chat, or say that there is nothing to free."""
EVIL = set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("size", [(120, 36), (40, 20), (20, 5)])
async def test_hostile_text_is_text_on_every_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    script = [
        calls(("echo", {"text": HOSTILE, "times": 40}), (HOSTILE, {"a": HOSTILE}), reasoning=HOSTILE, text=HOSTILE),
        calls(("write", {"text": HOSTILE}), ("echo", {"text": MEGABYTE})),
        says(TABLE),
        fails(ModelError(HOSTILE, HOSTILE, kind="auth"), after=HOSTILE),
    ]
    tools = [Echo(), Echo("write", writes=True)]
    async with talking(tmp_path, chain(script, repeat(says(HOSTILE))), size=size, window=400_000, tools=tools) as there:
        app, pilot, desk = there
        app.work.say(HOSTILE + MEGABYTE)
        await until(pilot, lambda: app.query(ApprovalPanel))
        assert not set(words(app)) & EVIL
        await pilot.press("tab", "y")
        await idle(app, pilot)
        for text in ("again", "and again"):
            await say(app, pilot, text)
        await desk.session.rename(HOSTILE)
        app.chat.show_header()
        app.chat.transcript.toggle_details()
        await pilot.press("shift+f8")
        await idle(app, pilot)
        for key in SCREENS:
            await pilot.press(key)
            await until(pilot, lambda key=key: key in BESIDE or app.screen is not app.chat)
            assert not set(words(app)) & EVIL, key
            while app.screen is not app.chat:
                before = app.screen
                await pilot.press("escape")
                await until(pilot, lambda before=before: app.screen is not before or not app.screen.focused)
        app.notify(HOSTILE, title=HOSTILE)
        await until(pilot, lambda: app.screen.query(Toast))
        assert not set(words(app)) & EVIL
        assert app.is_running and app.query(ReplyBlock) and desk.state.ledger.turn == 3


async def test_shrinking_to_almost_nothing_and_back_while_the_real_agent_answers(tmp_path: Path) -> None:
    flood = says(" ".join(f"word {n}" for n in range(300)) + " the end", delay=0.002)
    async with talking(tmp_path, [flood], size=(120, 36)) as (app, pilot, desk):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ReplyBlock))
        await pilot.press(*"draft")
        for size in ((20, 5), (40, 20), (80, 24), (20, 5), (120, 36)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: app.screen.size == size and "%" in words(app))
        await idle(app, pilot)
        assert "the end" in words(app) and app.chat.composer.draft == "draft"
        assert desk.state.ledger.groups[-1].first.text.endswith("the end")
