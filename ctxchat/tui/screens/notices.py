"""Everything that was said above the conversation and still stands, to be read whole however small the window."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widget import Widget

from ctxchat.core.words import count
from ctxchat.tui.screens.panel import Heading, Panel
from ctxchat.tui.widgets.banner import Told
from ctxchat.tui.widgets.notice import NoticeText
from ctxchat.tui.widgets.panel_keys import PanelKeys


class NoticesScreen(Panel[None]):
    """The newest last."""

    BINDINGS = [Binding("escape,q", "back", "back", key_display="esc")]

    def __init__(self, told: Sequence[Told]) -> None:
        super().__init__(name="notices", classes="panel")
        self._told = told

    def compose(self) -> ComposeResult:
        yield Heading("Notices")
        with VerticalScroll(classes="panel-body"):
            if not self._told:
                yield NoticeText("info", "Nothing is amiss.")
            for each in self._told:
                yield NoticeText(each.level, each.text)
        yield PanelKeys()

    def on_mount(self) -> None:
        self.query_one(Heading).show("Notices", count(len(self._told), "notice") if self._told else "")
        self.set_focus(self.home)

    @property
    def home(self) -> Widget | None:
        return self.query_one(VerticalScroll)
