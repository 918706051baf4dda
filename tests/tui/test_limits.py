"""What is left of the spending limits, and a limit raised for this session."""

from __future__ import annotations

from pathlib import Path

from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeSession


async def test_limits_are_shown_and_set_and_what_is_none_is_refused(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, (100, 30)) as (app, pilot):
        await pilot.press(*"/limit", "enter")
        await until(pilot, lambda: "No limit is set" in words(app))
        await pilot.press(*"/limit session 5", "enter")
        await until(pilot, lambda: "$0.00 of $5.00 for this session is spent." in words(app))
        assert session.spending.limits.session == 5.0
        await pilot.press(*"/limit week 5", "enter")
        await until(pilot, lambda: "week 5 is no limit" in words(app))
