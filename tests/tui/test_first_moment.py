"""Screens opened over a stored session before anything of it was compiled: they fill, with figures marked as estimates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen
from textual.widgets import Static

from ctxchat.agent.session import Session
from ctxchat.config.effective import load_settings
from ctxchat.core.budget import Window
from ctxchat.core.options import Options
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.search import SearchScreen
from ctxchat.tui.panels.settings import SettingsScreen
from ctxchat.tui.panels.xray import XrayScreen
from ctxchat.tui.widgets.rows import Rows
from tests.agent.desk import Desk, Echo
from tests.doubles.scripted import ScriptedModel, says
from tests.tui.fakes import FakeServices
from tests.tui.panel_app import PanelApp
from tests.tui.real import LONG, Writer

Made = Callable[[Session, Path], Screen[Any]]


async def resumed() -> Session:
    """As it comes from the store: with a compaction, and nothing looked at."""
    window = Window(16_000, "configured")
    options = Options(keep_recent=2, prepare=False, strategy="summarize")
    first = Desk(
        ScriptedModel([says(f"Yes: src/gauge_{n}.py. {LONG}") for n in range(4)], window=window),
        options=options,
        summariser=Writer(),
        tools=[Echo("dig")],
    )
    for n in range(4):
        await first.say(f"Never poll pier {n} at night. {LONG}")
    await first.free_up()
    again = Desk(ScriptedModel([], window=window), records=first.journal.records, options=options, tools=[Echo("dig")])
    assert not again.session.view.items and again.session.context_usage.estimated
    return again.session


def settings(session: Session, folder: Path) -> SettingsScreen:
    file = folder / "config.toml"
    file.touch()
    reader = partial(load_settings, config=file, environ={}, known=lambda _: ())
    return SettingsScreen(reader(), reader, file, session)


@pytest.mark.parametrize(
    ("made", "keys", "words"),
    [
        (lambda session, folder: ArchiveScreen(session, FakeServices(folder)), ["2"], "still sees"),
        (lambda session, folder: XrayScreen(session), [], "Yes: src/gauge_3.py"),
        (lambda session, folder: SearchScreen(FakeServices(folder), session), ["tab", "tab", "tab", "space"], "dig"),
        (settings, [], "messages are in view"),
    ],
)
async def test_a_screen_fills(made: Made, keys: list[str], words: str, tmp_path: Path) -> None:
    session = await resumed()
    app = PanelApp()
    async with app.run_test(size=(120, 36)) as pilot:
        screen = made(session, tmp_path)
        app.push_screen(screen)
        for _ in range(3):
            await app.workers.wait_for_complete()
            await pilot.pause()
        await pilot.press(*keys)
        for _ in range(3):
            await app.workers.wait_for_complete()
            await pilot.pause()
        rows = [rows.render_line(y).text for rows in screen.query(Rows) for y in range(rows.size.height)]
        shown = [*rows, *(str(each.render()) for each in screen.query(Static))]
        told = [line for line in shown if words in line]
        assert told, shown
        assert not any("sees 0 of" in line or "0 messages are in view" in line for line in told)
        assert session.context_usage.estimated
