"""Every option with its value, default and origin; what it does here, what may stand there, and a way to change it for good.

Reads and writes through `ctxchat.config`; a change is written to the person's own file and read back before it is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from ctxchat.config.consistency import for_agent
from ctxchat.config.explain import OptionRow, rows
from ctxchat.config.files import Loaded, entry_points
from ctxchat.config.lines import literal
from ctxchat.config.options import NOW, bare
from ctxchat.config.write import refused, set_value, unset_value
from ctxchat.core.errors import UsageError
from ctxchat.tui.reading.advice import Advice, advice
from ctxchat.tui.reading.effects import MARKS, effect, with_marks
from ctxchat.tui.reading.figures_text import count
from ctxchat.tui.reading.text import clean, one_line
from ctxchat.tui.screens.panel import MUTED, Heading
from ctxchat.tui.screens.setting import ChangeScreen
from ctxchat.tui.screens.writing import EditableListing
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.panel_keys import PanelKeys
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

COLUMNS = (
    Column("option", least=34, path=True, share=2),
    Column("value", least=10),
    Column("here", 30, rank=3),
    Column("default", 14, rank=2),
    Column("from", 18, rank=1),
)


def shown_value(value: Any) -> str:
    """A value as it would stand in the file, on one line; `–` where it is left out."""
    return "–" if value is None else one_line(literal(value), 120)


def following(row: OptionRow) -> Any:
    """The next of a few words, or the other of true and false; None for options that must be typed."""
    kind = bare(row.option.type)
    words: tuple[Any, ...] = (False, True) if kind is bool else get_args(kind) if get_origin(kind) is Literal else ()
    if not words:
        return None
    return words[(words.index(row.value) + 1) % len(words)] if row.value in words else words[0]


def found(all_rows: tuple[OptionRow, ...], words: str, changed: bool) -> list[OptionRow]:
    """The options whose key or help hold all the words; only those that somebody set, where asked."""
    wanted = words.casefold().split()
    return [
        row
        for row in all_rows
        if (not changed or row.origin.layer != "default")
        and all(w in f"{row.key} {row.option.facts.help}".casefold() for w in wanted)
    ]


class SettingsScreen(EditableListing):
    """Comes back with True where something was changed, else None. `session` is the one effects and advice are about."""

    BINDINGS = [
        Binding("enter", "change", "change", key_display="enter"),
        Binding("backspace,delete", "reset", "back to the default", key_display="⌫"),
        Binding("c", "changed", "only what is set"),
        Binding("a", "advised", "to the advice"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, load: Callable[[], Loaded], file: Path, session: Session | None = None) -> None:
        super().__init__(load, file, "settings")
        self._session = session
        self._rows: tuple[OptionRow, ...] = ()
        self._advice: tuple[Advice, ...] = ()
        self._only_changed = False

    def compose(self) -> ComposeResult:
        yield Heading("Settings")
        yield Static(id="advice", markup=False)
        yield Rows(COLUMNS, self._cells, empty="No option has these words.")
        yield self.field("words of an option or its help")
        yield Static(id="about", markup=False)
        yield Gauge(self._session.figures if self._session else None)
        yield PanelKeys()

    def on_mount(self) -> None:
        self.set_focus(self.home)
        self.take(self._load())

    # ── what it shows ──

    @property
    def chosen(self) -> OptionRow | None:
        """The option under the cursor."""
        return self.rows.current

    def take(self, loaded: Loaded) -> None:
        self._rows = rows(loaded)
        self._advise(loaded)
        self._show(self.chosen.key if self.chosen else "")

    def _advise(self, loaded: Loaded) -> None:
        session = self._session
        if session is None:
            return
        try:
            settings = for_agent(loaded.settings, session.setup.agent)[0]
        except UsageError:
            settings = loaded.settings
        self._advice = advice(session.figures, session.state, settings.context)
        said = self.query_one("#advice", Static)
        said.display = bool(self._advice)
        said.update(Content("\n").join([Content(a.text) for a in self._advice]))
        context = settings.context
        marks = with_marks(session.figures, compression_trigger=context.compression_trigger, target=context.target)
        self.query_one(Gauge).show(marks)

    def narrowed(self) -> None:
        self._show()

    def _show(self, at: str = "") -> None:
        shown = found(self._rows, self.words, self._only_changed)
        self.rows.show(shown, at=next((i for i, r in enumerate(shown) if r.key == at), 0))
        words = count(len(shown), "option")
        self.query_one(Heading).show("Settings", f"{words} of {clean(str(self._file))}", words)

    def _cells(self, row: OptionRow) -> tuple[Cell, ...]:
        own = row.origin.layer != "default"
        place = Path(row.origin.place).name if row.origin.line else row.origin.text
        return (
            (one_line(row.key), "" if own else "dim"),
            (shown_value(row.value), "strong" if own else ""),
            (self._effect(row, row.value), "dim"),
            (shown_value(row.default), "dim"),
            (one_line(f"{place}:{row.origin.line}" if row.origin.line else place), "dim"),
        )

    def _effect(self, row: OptionRow, value: Any) -> str:
        session = self._session
        return effect(row.option, row.key, value, session.figures, session.view) if session else ""

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.query_one("#about", Static).update(self._about(event.item) if event.item else Content(""))

    def _about(self, row: OptionRow) -> Content:
        facts, unit = row.option.facts, row.option.facts.unit
        lines = [Content(clean(facts.help))]
        if here := self._effect(row, row.value):
            lines.append(Content.styled(f"here: {here}", "$text-accent"))
        if facts.effect:
            lines.append(Content.styled(clean(facts.effect), MUTED))
        lines.append(Content.styled(f"{row.option.allowed}{f', {unit}' if unit else ''}", MUTED))
        notes = [f"set by {clean(row.origin.text)}"] if row.origin.layer != "default" else []
        notes += [f"an edit counts {facts.counts}"] if facts.counts != NOW else []
        notes += ["in a project's file: trusted folders only"] if facts.trust else []
        if notes:
            lines.append(Content.styled("; ".join(notes), MUTED))
        return Content("\n").join(lines)

    # ── what is done ──

    def action_changed(self) -> None:
        self._only_changed = not self._only_changed
        self._show(self.chosen.key if self.chosen else "")

    def action_advised(self) -> None:
        """To the option the first advice is about; pressed there, to the next one's."""
        keys = [a.key for a in self._advice]
        if not keys:
            self.notify("Nothing to advise: this session went well so far.", markup=False)
            return
        at = self.chosen.key if self.chosen else ""
        self._only_changed = False
        self._show(keys[(keys.index(at) + 1) % len(keys)] if at in keys else keys[0])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self._advice) if action == "advised" else True

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_change()

    def action_change(self) -> None:
        """The next word of a few; anything else is asked for."""
        if row := self.chosen:
            self.run_worker(partial(self._change, row), group="write", exit_on_error=False)

    async def _change(self, row: OptionRow) -> None:
        value = following(row)
        if value is None:
            figures = self._session.figures if self._session and row.key in MARKS else None
            wrong = partial(refused, row.key, known=cache(entry_points))  # looked for once, not with every key
            asked = ChangeScreen(row, partial(self._effect, row), wrong, figures)
            value = await self.app.push_screen_wait(asked)
            if value is None:
                return
        await self.write(partial(set_value, self._file, row.key, value))

    def action_reset(self) -> None:
        if (row := self.chosen) and row.origin.layer == "user":
            self.run_worker(
                partial(self.write, partial(unset_value, self._file, row.key)), group="write", exit_on_error=False
            )
        elif row and row.origin.layer != "default":
            self.notify(f"Set by {clean(row.origin.text)}, not by your own file.", markup=False)
