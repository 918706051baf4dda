"""The line of keys in the chat: whole words at every width, and what matters most for longest."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.events import ToolFinished, ToolStarted
from ctxchat.tui.chat.edges import BUSY_KEYS, IDLE_KEYS, KeyLine
from ctxchat.tui.commands import default_keys
from tests.tui.chatting import chatting, idle, tab_until, until
from tests.tui.fakes import FakeSession, reply


def shown(width: int, *, busy: bool = False) -> str:
    line = KeyLine(default_keys())
    line._wanted = BUSY_KEYS if busy else IDLE_KEYS
    return line.draw_line(width).plain


@pytest.mark.parametrize(
    ("width", "idle"),
    [
        (
            118,
            "enter send  ctrl+j line  F2 context  F3 archive  ctrl+f search  F4 x-ray  F8 free up  ctrl+p commands",
        ),
        (78, "enter send  F2 context  F3 archive  ctrl+f search  F8 free up  ctrl+p commands"),
        (38, "enter send  F2 context  F8 free up"),
        (18, "enter send"),
    ],
)
def test_what_is_most_useful_stays_where_it_is_narrow(width: int, idle: str) -> None:
    assert shown(width) == idle
    assert shown(width, busy=True).startswith("esc stop")


@given(st.integers(0, 120), st.booleans())
def test_no_word_is_ever_cut(width: int, busy: bool) -> None:
    whole = shown(200, busy=busy).split("  ")
    line = shown(width, busy=busy)
    assert len(line) <= width and [pair for pair in line.split("  ") if pair] == [
        p for p in whole if p in line.split("  ")
    ]


async def test_the_line_of_keys_says_what_those_of_the_block_with_the_focus_do(tmp_path: Path) -> None:
    script = [ToolStarted("c1", "grep", {"text": "x"}), ToolFinished("c1", "grep", "ok", "a.py:1: x", 5, 0.1)]
    async with chatting(tmp_path, FakeSession(lambda _: [*script, *reply("ok")]), (110, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await idle(app, pilot)

        def said() -> str:
            return app.chat.key_line.draw_line(110).plain

        await until(pilot, lambda: said().startswith("enter send"))
        await tab_until(pilot, lambda: app.chat.focused is app.chat.transcript)
        await until(pilot, lambda: said().startswith("enter unfold  tab next"))
        await pilot.press("enter")
        await until(pilot, lambda: said().startswith("enter fold"))
        await tab_until(pilot, lambda: app.chat.focused is app.chat.composer.prompt)
        await until(pilot, lambda: said().startswith("enter send"))


async def test_while_a_word_can_be_completed_enter_takes_it_and_the_line_says_so(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (110, 24)) as (app, pilot):

        def said() -> str:
            return app.chat.key_line.draw_line(110).plain

        await pilot.press(*"/arch")
        await until(pilot, lambda: said().startswith("enter take it  esc close the list") and "send" not in said())
        await pilot.press("escape")
        await until(pilot, lambda: said().startswith("enter send") and "take it" not in said())
        await pilot.press(*"ive")
        await until(pilot, lambda: "enter send" in said())  # typed whole, it is run
