"""The themes there are, worn while the cursor is on them."""

from __future__ import annotations

from collections.abc import Collection

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from ctxchat.core.figures import Figures
from ctxchat.tui.reading.figures_text import count
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.screens.listing import Listing
from ctxchat.tui.screens.panel import Heading
from ctxchat.tui.style import STYLE
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.panel_keys import PanelKeys
from ctxchat.tui.widgets.rows import Cell, Column, Rows

COLUMNS = (Column("", 1), Column("theme", least=16), Column("ground", 8), Column("", 14, rank=1))

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
    """Comes back with a theme's name, or with None and the theme that was worn before. `names` are those there are."""

    CSS_PATH = STYLE / "settings.tcss"
    BINDINGS = [
        Binding("enter", "choose", "keep this one", key_display="enter"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, names: Collection[str], figures: Figures | None = None) -> None:
        super().__init__(name="themes", classes="panel")
        self._names, self._figures = sorted(names), figures
        self._before = ""

    def compose(self) -> ComposeResult:
        yield Heading("Themes")
        yield Rows(COLUMNS, self._cells, empty="No theme is called that.")
        yield self.field("part of a name")
        yield Static(self._sample(), id="sample", markup=False)
        yield Gauge(self._figures)
        yield PanelKeys()

    def on_mount(self) -> None:
        self._before = self.app.theme
        self.set_focus(self.home)
        self._show(self._before)

    def _sample(self) -> Content:
        return Content("   ").join([Content.styled(word, ink) for word, ink in SAMPLE])

    def _show(self, at: str = "") -> None:
        shown = [name for name in self._names if self.words.casefold() in name.casefold()]
        self.rows.show(shown, at=shown.index(at) if at in shown else 0)
        found = count(len(shown), "theme")
        self.query_one(Heading).show("Themes", f"{found}; yours go into the themes folder", found)

    def narrowed(self) -> None:
        self._show(self.app.theme)

    def _cells(self, name: str) -> tuple[Cell, ...]:
        theme = self.app.get_theme(name)
        ground = "" if theme is None else "dark" if theme.dark else "light"
        now = "worn before" if name == self._before else ""
        return (("●" if name == self._before else "", "good"), (one_line(name), ""), (ground, "dim"), (now, "dim"))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Worn as soon as the cursor rests on it."""
        if event.item and event.item != self.app.theme:
            self.app.theme = event.item

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_choose()

    def action_choose(self) -> None:
        """This one, from now on."""
        self.dismiss(self.rows.current)

    def action_back(self) -> None:
        if self.focused is self.home:
            self.app.theme = self._before
        super().action_back()

    def again(self) -> None:
        self.app.theme = self._before
        super().again()
