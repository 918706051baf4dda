"""The background commands on screen: with real processes, looked at and ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.events import Key

from ctxchat.core.ports import ToolContext
from ctxchat.tools.jobs import Jobs
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.shell import Shell
from ctxchat.tui.panels.jobs import JobsScreen, Leaving
from tests.tui.chatting import chatting, sure, until, words
from tests.tui.fakes import FakeSession


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (20, 9)])
async def test_a_command_in_the_background_is_seen_and_ended(tmp_path: Path, size: tuple[int, int]) -> None:
    session, jobs = FakeSession(), Jobs()
    session.background = jobs
    context = ToolContext("c", str(tmp_path), str(tmp_path / "session"))
    async with chatting(tmp_path, session, size) as (app, pilot):
        await pilot.press(*"/jobs", "enter")
        await until(
            pilot, lambda: isinstance(app.screen, JobsScreen) and "No command runs" in words(app).replace("\n", " ")
        )
        command = "printf '\\033[31mup [b]and[/b] running\\n'; sleep 300"
        async for _ in Shell(Sandbox(), os.environ, jobs=jobs).run({"command": command, "background": True}, context):
            pass
        await until(pilot, lambda: "j1" in words(app))
        if size[0] == 80:
            await until(pilot, lambda: "1 running" in words(app) and "up [b]and[/b] running" in words(app))
        await sure(pilot, "x")
        await until(pilot, lambda: not jobs.rows[0].running)
    await jobs.close()


async def test_whoever_leaves_is_asked_about_what_would_end_and_not_about_what_goes_on(tmp_path: Path) -> None:
    session, jobs = FakeSession(), Jobs()
    session.background = jobs
    context = ToolContext("c", str(tmp_path), str(tmp_path / "session"))
    async with chatting(tmp_path, session) as (app, pilot):
        async for _ in Shell(Sandbox(), os.environ, jobs=jobs).run(
            {"command": "sleep 300", "background": True}, context
        ):
            pass
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, Leaving) and "j1  sleep 300" in words(app))
        await pilot.press("escape")
        await pilot.press(*"/new", "enter")
        await until(pilot, lambda: isinstance(app.screen, Leaving))
        await pilot.press("escape")
        await pilot.pause()
        assert app.session is session and jobs.rows[0].running
        await pilot.press(*"/jobs", "enter")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and "j1" in words(app))
        await pilot.press("l")
        await until(pilot, lambda: "running, goes on" in words(app))
        assert jobs.rows[0].goes_on
        await pilot.press("l")
        await until(pilot, lambda: not jobs.rows[0].goes_on)
        await pilot.press("escape", "ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, Leaving))
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.accepts(Key("a", "a")))
    await jobs.close()
