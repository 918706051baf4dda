"""The smallest app that gives panels their styles and the gauge its colours."""

from __future__ import annotations

from pathlib import Path

from textual.app import App

import ctxchat.tui
from ctxchat.tui.widgets.gauge import GAUGE_COLOURS


class PanelApp(App[object]):
    CSS_PATH = [Path(ctxchat.tui.__file__).parent / "panels.tcss"]
    ENABLE_COMMAND_PALETTE = False

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return super().get_theme_variable_defaults() | GAUGE_COLOURS
