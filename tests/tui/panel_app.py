"""The smallest app that gives panels their styles and the gauge its colours."""

from __future__ import annotations

from pathlib import Path

from textual.app import App

import ctxchat.tui
from ctxchat.tui.theming import DEFAULTS


class PanelApp(App[object]):
    CSS_PATH = [Path(ctxchat.tui.__file__).parent / name for name in ("ctxchat.tcss", "panels.tcss")]
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (9, "-short"), (18, "-tall")]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DEFAULTS)
