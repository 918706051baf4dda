"""The models that can be had: their windows, prices, and whether this session would fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.fuzzy import Matcher
from textual.widget import Widget
from textual.widgets import Input

from ctxchat.tui.figures_text import brief, count, percent
from ctxchat.tui.screens.panel import Heading, Panel
from ctxchat.tui.services import ChatSession, Services
from ctxchat.tui.text import clean, one_line, short
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.models.discovery import FoundModel

COLUMNS = (
    Column("", 1),
    Column("model", least=32),
    Column("window", 7, right=True, rank=1),
    Column("", 10, rank=4),
    Column("this session", 16, right=True, rank=2),
    Column("$ in / out", 14, right=True, rank=3),
    Column("note", 24, rank=5),
)


def fit_words(used: int, window: int) -> str:
    """Whether so many tokens would fit, in a few words."""
    if window <= 0:
        return "window unknown"
    return f"fits, {percent(used / window)}" if used < window else f"{short(used - window)} too much"


def price_words(row: FoundModel) -> str:
    """US dollars a million tokens, in and out; empty where they are not known."""
    if row.input_cost is None or row.output_cost is None:
        return ""
    return "free" if row.input_cost == row.output_cost == 0 else f"{row.input_cost:.2f} / {row.output_cost:.2f}"


def matching(rows: Sequence[FoundModel], words: str) -> list[FoundModel]:
    """Those whose name, provider or note match, the best first; those that answer before those that do not."""
    if not words.strip():
        return sorted(rows, key=lambda r: not r.reachable)
    matcher = Matcher(words.strip())
    scored = [(matcher.match(f"{r.name} {r.provider} {r.note}"), r) for r in rows]
    return [r for score, r in sorted(scored, key=lambda s: (not s[1].reachable, -s[0])) if score > 0]


class ModelsScreen(Panel[str]):
    """Comes back with the name of a model, or None."""

    BINDINGS = [
        Binding("enter", "choose", "go on with it", key_display="enter"),
        Binding("r", "load", "look again"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, services: Services, session: ChatSession) -> None:
        super().__init__(name="models", classes="panel")
        self._services, self._session = services, session
        self._all: Sequence[FoundModel] = ()

    def compose(self) -> ComposeResult:
        yield Heading("Models")
        yield Rows(COLUMNS, self._cells, empty="looking for models …")
        yield Input(placeholder="part of a name", classes="find", compact=True)
        yield self.footer()

    def on_mount(self) -> None:
        self.set_focus(self.home)
        self.action_load()

    # ── what it shows ──

    @property
    def home(self) -> Widget | None:
        return self.query_one(Rows)

    def action_load(self) -> None:
        """Ask which there are."""
        self.run_worker(self._load(), group="load", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        self._all = await self.attempt(self._services.models()) or ()
        self._show(self._session.figures.model)

    def _show(self, at: str = "") -> None:
        shown = matching(self._all, self.query_one(Input).value)
        rows = self.query_one(Rows)
        rows.retitle(COLUMNS, "Nothing found.")
        rows.show(shown, at=next((i for i, r in enumerate(shown) if r.name == at), 0))
        used = self._session.figures.used
        self.query_one(Heading).show("Models", f"{count(len(shown), 'model')}, this session holds {short(used)}")

    def _cells(self, row: FoundModel) -> tuple[Cell, ...]:
        style = "" if row.reachable else "dim"
        used = self._session.figures.used
        fits = 0 < row.window <= used
        return (
            ("●" if row.name == self._session.figures.model else "", "good"),
            (one_line(row.name), style),
            (brief(row.window) if row.window > 0 else "?", style),
            (one_line(row.window_source, 20), "dim"),
            (fit_words(used, row.window), "warn" if fits else style),
            (price_words(row), style),
            (one_line(row.note) or ("" if row.reachable else "does not answer"), "dim"),
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        event.input.set_class(bool(event.value), "-filled")
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.set_focus(self.home)

    # ── what is done ──

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_choose()

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))

    def action_choose(self) -> None:
        """This one, if it can be had."""
        row: FoundModel | None = self.query_one(Rows).current
        if row is None:
            return
        if row.reachable:
            self.dismiss(row.name)
        else:
            why = clean(row.note) or "It does not answer."
            self.notify(f"{one_line(row.name)}: {why} r looks again.", severity="warning", markup=False)
