"""Every option with its value, default and origin; what it does, what may stand there, and a way to change it for good.

Reads and writes through `ctxchat.config`; a change is written to the person's own file and read back before it is shown.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from ctxchat.config.explain import Row, in_tokens, rows
from ctxchat.config.files import Loaded
from ctxchat.config.literals import literal
from ctxchat.config.options import Option, bare
from ctxchat.config.write import set_value, unset_value
from ctxchat.core.errors import CtxchatError
from ctxchat.core.figures import Figures
from ctxchat.tui.figures_text import count
from ctxchat.tui.screens.asking import AskText
from ctxchat.tui.screens.panel import MUTED, Heading, Panel
from ctxchat.tui.text import clean, one_line, short
from ctxchat.tui.widgets.rows import Cell, Column, Rows

COLUMNS = (
    Column("option", least=28),
    Column("value", 24),
    Column("default", 18, rank=2),
    Column("from", 22, rank=1),
)


def shown_value(value: Any) -> str:
    """A value as it would stand in the file, on one line; `–` where it is left out."""
    return "–" if value is None else one_line(literal(value), 120)


def parsed(text: str, option: Option) -> Any:
    """What a person typed as a plain value: as TOML reads it, else as the words they are."""
    if bare(option.type) is str:
        return text.strip().strip('"')
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def following(row: Row) -> Any:
    """The next of a few words, or the other of true and false; None for options that must be typed."""
    kind = bare(row.option.type)
    words: tuple[Any, ...] = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
    if not words:
        return None
    return words[(words.index(row.value) + 1) % len(words)] if row.value in words else words[0]


def found(all_rows: tuple[Row, ...], words: str, changed: bool) -> list[Row]:
    """The options whose key or help hold all the words; only those that somebody set, where asked."""
    wanted = words.casefold().split()
    return [
        row
        for row in all_rows
        if (not changed or row.origin.layer != "default")
        and all(w in f"{row.key} {row.option.facts.help}".casefold() for w in wanted)
    ]


class SettingsScreen(Panel[bool]):
    """Comes back with True where something was changed, else None. `load` reads everything anew; `file` is the person's own."""

    BINDINGS = [
        Binding("enter", "change", "change", key_display="enter"),
        Binding("backspace,delete", "reset", "back to the default", key_display="⌫"),
        Binding("c", "changed", "only what is set"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, load: Callable[[], Loaded], file: Path, figures: Figures | None = None) -> None:
        super().__init__(name="settings", classes="panel")
        self._load, self._file, self._figures = load, file, figures
        self._rows: tuple[Row, ...] = ()
        self._only_changed = self._touched = False

    def compose(self) -> ComposeResult:
        yield Heading("Settings")
        yield Rows(COLUMNS, self._cells, empty="No option has these words.")
        yield Input(placeholder="words of an option or its help", classes="find", compact=True)
        yield Static(id="about", markup=False)
        yield self.footer()

    def on_mount(self) -> None:
        self.set_focus(self.home)
        self._take(self._load())

    # ── what it shows ──

    @property
    def home(self) -> Widget | None:
        return self.query_one(Rows)

    @property
    def chosen(self) -> Row | None:
        """The option under the cursor."""
        return self.query_one(Rows).current

    def _take(self, loaded: Loaded) -> None:
        self._rows = rows(loaded)
        problems = "  ".join(clean(text) for text in loaded.notices)
        if problems:
            self.notify(problems, severity="warning", markup=False, timeout=12)
        self._show(self.chosen.key if self.chosen else "")

    def _show(self, at: str = "") -> None:
        shown = found(self._rows, self.query_one(Input).value, self._only_changed)
        self.query_one(Rows).show(shown, at=next((i for i, r in enumerate(shown) if r.key == at), 0))
        words = count(len(shown), "option")
        self.query_one(Heading).show("Settings", f"{words} of {clean(str(self._file))}", words)

    def _cells(self, row: Row) -> tuple[Cell, ...]:
        own = row.origin.layer != "default"
        place = Path(row.origin.place).name if row.origin.line else row.origin.text
        return (
            (one_line(row.key), "" if own else "dim"),
            (shown_value(row.value), "strong" if own else ""),
            (shown_value(row.default), "dim"),
            (one_line(f"{place}:{row.origin.line}" if row.origin.line else place), "dim"),
        )

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.query_one("#about", Static).update(self._about(event.item) if event.item else Content(""))

    def _about(self, row: Row) -> Content:
        facts, unit = row.option.facts, row.option.facts.unit
        lines = [
            Content(clean(facts.help)),
            Content.styled(f"{row.option.allowed}{f', {unit}' if unit else ''}", MUTED),
        ]
        tokens = in_tokens(row.option, row.value, self._figures) if self._figures else None
        if tokens is not None:
            lines.append(Content.styled(f"here: {short(tokens)} tokens", MUTED))
        if row.origin.layer != "default":
            lines.append(Content.styled(f"set by {clean(row.origin.text)}", MUTED))
        if facts.effect:
            lines.append(Content.styled(clean(facts.effect), MUTED))
        return Content("\n").join(lines)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.input.set_class(bool(event.value), "-filled")
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.set_focus(self.home)

    # ── what is done ──

    def action_back(self) -> None:
        if self._touched and not isinstance(self.focused, Input):
            self.dismiss(True)
        else:
            super().action_back()

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))

    def action_changed(self) -> None:
        self._only_changed = not self._only_changed
        self._show(self.chosen.key if self.chosen else "")

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_change()

    def action_change(self) -> None:
        """The next word of a few; anything else is asked for."""
        if row := self.chosen:
            self.run_worker(self._change(row), group="write", exit_on_error=False)

    async def _change(self, row: Row) -> None:
        value = following(row)
        if value is None:
            now = "" if row.value is None else str(row.value) if isinstance(row.value, str) else literal(row.value)
            typed = await self.app.push_screen_wait(AskText(f"{row.key}: {row.option.allowed}", now))
            if typed is None:
                return
            value = parsed(typed, row.option)
        await self._write(partial(set_value, self._file, row.key, value))

    def action_reset(self) -> None:
        if (row := self.chosen) and row.origin.layer == "user":
            self.run_worker(self._write(partial(unset_value, self._file, row.key)), group="write", exit_on_error=False)
        elif row and row.origin.layer != "default":
            self.notify(f"Set by {clean(row.origin.text)}, not by your own file.", markup=False)

    async def _write(self, work: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(work)
        except CtxchatError as problem:
            self.notify(clean(str(problem)), severity="error", markup=False)
        except OSError as problem:
            words = clean(f"{self._file}: {problem.strerror or problem}")
            self.notify(words, severity="error", markup=False)
        else:
            self._touched = True
            self._take(await asyncio.to_thread(self._load))
