"""Another value for one option: while it is typed it is said what it would mean here, and the bar shows where it stands."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ctxchat.config.explain import OptionRow
from ctxchat.config.lines import literal
from ctxchat.config.options import Option, bare
from ctxchat.core.figures import Figures
from ctxchat.tui.reading.effects import MARKS, with_marks
from ctxchat.tui.reading.text import clean
from ctxchat.tui.screens.panel import Over
from ctxchat.tui.style import STYLE
from ctxchat.tui.widgets.field import Field
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.panel_keys import PanelKeys


def parsed(text: str, option: Option) -> Any:
    """What a person typed as a plain value: as TOML reads it, else as the words they are."""
    if bare(option.type) is str:
        return text.strip().strip('"')
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


class ChangeScreen(Over[Any], ModalScreen[Any]):
    """Comes back with a plain value, or None. `effect` says what a value means, `refused` why it cannot be, empty where it can;
    `figures` are given for what moves something on the bar."""

    CSS_PATH = STYLE / "settings.tcss"
    BINDINGS = [Binding("escape", "leave", "back")]

    def __init__(
        self,
        row: OptionRow,
        effect: Callable[[Any], str],
        refused: Callable[[Any], str],
        figures: Figures | None = None,
    ) -> None:
        super().__init__(classes="asking")
        self._row, self._effect, self._refused, self._figures = row, effect, refused, figures

    def compose(self) -> ComposeResult:
        value = self._row.value
        now = "" if value is None else value if isinstance(value, str) else literal(value)
        with Vertical():
            yield Static(Content(clean(f"{self._row.key}: {self._row.option.allowed}")), markup=False)
            yield Field(now, compact=True)
            yield Static(id="effect", classes="quiet", markup=False)
            if self._figures:
                yield Gauge(self._figures)
            yield PanelKeys()

    def on_input_changed(self, event: Input.Changed) -> None:
        value = self._typed(event.value)
        wrong = self._wrong(value)
        said = self.query_one("#effect", Static)
        said.set_class(bool(wrong), "-wrong")
        said.update(Content(clean(f"! {wrong}" if wrong else self._effect(value)) or " "))
        if (
            not wrong
            and self._figures
            and isinstance(value, int | float)
            and not isinstance(value, bool)
            and 0 <= value <= 1e8
        ):
            self.query_one(Gauge).show(with_marks(self._figures, **{MARKS[self._row.key]: value}))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        value = self._typed(event.value)
        if not self._wrong(value):  # else it has been said already: nothing is written, Esc leaves
            self.dismiss(value)

    def _typed(self, text: str) -> Any:
        return parsed(text, self._row.option) if text.strip() else None

    def _wrong(self, value: Any) -> str:
        return self._refused(value) if value is not None else ""

    def action_leave(self) -> None:
        self.dismiss(None)
