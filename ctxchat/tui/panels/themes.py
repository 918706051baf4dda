"""The themes there are, worn while the cursor is on them."""

from __future__ import annotations

from collections.abc import Collection

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from ctxchat.core.context_usage import ContextUsage
from ctxchat.presentation.text import one_line
from ctxchat.presentation.usage_text import count
from ctxchat.tui.panels.panel import Listing
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.rows import Cell, Column, Rows

SAMPLE = (
    ("text", "$foreground"),
    ("quiet", "$text-muted"),
    ("accent", "$text-accent"),
    ("good", "$text-success"),
    ("careful", "$text-warning"),
    ("wrong", "$text-error"),
)
"""A word in each ink a theme has."""


class ThemesScreen(Listing[str]):
    """Chooses a theme, and shows it at once. Its result is the theme's name; None restores the theme from before."""

    TITLE = "Themes"
    COLUMNS = (Column("", 1), Column("theme", least=16), Column("kind", 8), Column("", 14, rank=1))
    NOT_FOUND = "No theme is called that."
    ABOUT = False
    BINDINGS = [Binding("enter", "choose", "keep this one", key_display="enter")]

    def __init__(self, names: Collection[str], context_usage: ContextUsage | None = None) -> None:
        super().__init__()
        self._names, self._context_usage = sorted(names), context_usage
        self._before = ""

    def body(self) -> ComposeResult:
        yield from super().body()
        sample = Content("   ").join([Content.styled(word, ink) for word, ink in SAMPLE])
        yield Static(sample, id="sample", markup=False)
        yield Gauge(self._context_usage)

    def on_mount(self) -> None:
        self._before = self.app.theme
        self.apply_filter()

    def apply_filter(self) -> None:
        shown = self.matching(self._names, str)
        self.set_items(shown, at=self.app.theme)
        found = count(len(shown), "theme")
        self.head(f"{found}; yours go into the themes folder", found)

    def cells(self, name: str) -> tuple[Cell, ...]:
        theme = self.app.get_theme(name)
        ground = "" if theme is None else "dark" if theme.dark else "light"
        now = "in use" if name == self._before else ""
        return (("●" if name == self._before else "", "good"), (one_line(name), ""), (ground, "dim"), (now, "dim"))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Worn as soon as the cursor rests on it."""
        if event.item and event.item != self.app.theme:
            self.app.theme = event.item

    def action_choose(self) -> None:
        """Choose the theme under the cursor."""
        self.dismiss(self.rows.current)

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        if result is None:
            self.app.theme = self._before
        return super().dismiss(result)
