"""A few panels as pictures, so that a change of looks is seen and meant."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.screen import Screen

from ctxchat.core.budget import Window, make_budget
from ctxchat.models.discovery import FoundModel
from ctxchat.tui.chat.breakdown import Breakdown
from ctxchat.tui.panels.models import ModelsScreen
from ctxchat.tui.panels.preview import PreviewScreen
from ctxchat.tui.panels.xray import XrayScreen
from ctxchat.tui.widgets.gauge import Gauge
from tests.tui.fakes import FakeServices
from tests.tui.harbour import HarbourSession, state
from tests.tui.panel_app import PanelApp

DESK = HarbourSession(state(20), window=24_000)
AMISS = HarbourSession(state(20), window=24_000)
AMISS.budgets = {"tool_results": 500}
AMISS.budget = make_budget(Window(24_000, "learned", 32_000), 4_096, 0.8, 0.5)


class Panels(PanelApp):
    """Gauge and context panel."""

    def compose(self) -> ComposeResult:
        yield Breakdown()
        yield Gauge(AMISS.context_usage, ghost=6_000)

    def on_mount(self) -> None:
        self.query_one(Breakdown).show_breakdown(AMISS.context_usage, AMISS.view, AMISS.state)


class Over(PanelApp):
    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self.over = screen

    def on_mount(self) -> None:
        self.push_screen(self.over)


def screens(folder: Path) -> dict[str, Screen[Any]]:
    models = [
        FoundModel("claude-sonnet-4-5", "anthropic", True, 200_000, "catalogue", 3, 15),
        FoundModel("ollama/qwen3:8b", "ollama", True, 8_192, "loaded", 0, 0, "on this machine"),
        FoundModel("gpt-5", "openai", False, 272_000, "catalogue", 1.25, 10, "no key: OPENAI_API_KEY"),
    ]
    return {
        "preview": PreviewScreen(DESK, asyncio.run(DESK.preview())),
        "xray": XrayScreen(DESK),
        "models": ModelsScreen(FakeServices(folder, models=models), DESK),
    }


@pytest.mark.parametrize("size", [(100, 30), (30, 30)])
def test_gauge_and_context_panel(snap_compare: Any, size: tuple[int, int]) -> None:
    assert snap_compare(Panels(), terminal_size=size)


@pytest.mark.parametrize("name", ["preview", "xray", "models"])
def test_screens_at_80_columns(snap_compare: Any, name: str, tmp_path: Path) -> None:
    async def settle(pilot: Any) -> None:
        await pilot.pause()
        await pilot.app.over.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(Over(screens(tmp_path)[name]), terminal_size=(80, 24), run_before=settle)


def test_the_preview_at_40_columns(snap_compare: Any, tmp_path: Path) -> None:
    assert snap_compare(Over(screens(tmp_path)["preview"]), terminal_size=(40, 20))
