"""The smallest app that gives panels their styles and the colours of a theme that is shipped."""

from __future__ import annotations

from itertools import count

from ctxchat.config.themes import load_themes
from ctxchat.tui.style.themed_app import ThemedApp, textual_theme

DARK = textual_theme(load_themes().named("dark"))


class PanelApp(ThemedApp):
    ENABLE_COMMAND_PALETTE = False
    now = staticmethod(count().__next__)  # time flies: a question is answered as soon as it is seen

    def __init__(self) -> None:
        super().__init__([DARK])
