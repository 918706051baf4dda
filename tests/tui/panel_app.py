"""The smallest app that gives panels their styles and the colours of a theme that is shipped."""

from __future__ import annotations

from textual.app import App

from ctxchat.config.themes import one_theme
from ctxchat.tui.style import STYLE
from ctxchat.tui.style.theming import DEFAULTS, textual_theme

DARK = textual_theme(one_theme("dark")[0])


class PanelApp(App[object]):
    CSS_PATH = [STYLE / name for name in ("ctxchat.tcss", "panels.tcss")]
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (9, "-short"), (18, "-tall")]

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DEFAULTS)
