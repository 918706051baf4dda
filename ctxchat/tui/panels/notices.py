"""Everything that was said above the conversation and still stands, to be read whole however small the window."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll

from ctxchat.core.quantities import count
from ctxchat.tui.chat.banner import ShownNotice
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.widgets.notice import NoticeText


class NoticesScreen(Panel[None]):
    """The newest last."""

    TITLE = "Notices"
    HOME = VerticalScroll
    BINDINGS = [Binding("escape,q", "back", "back", key_display="esc")]

    def __init__(self, told: Sequence[ShownNotice]) -> None:
        super().__init__()
        self._told = told

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="panel-body"):
            if not self._told:
                yield NoticeText("info", "Nothing is wrong.")
            for each in self._told:
                yield NoticeText(each.level, each.text)

    def on_mount(self) -> None:
        self.head(count(len(self._told), "notice") if self._told else "")
