"""What was masked in this session: the kind and mark of each secret and where it was met; the original while the program still
holds it; a false alarm is allowed by its id, in the person's own settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ctxchat.config.files import Loaded
from ctxchat.config.write import own_value, set_value
from ctxchat.core.secrets import Masking, allowed_by
from ctxchat.core.words import count
from ctxchat.tui.reading.masked import Masked, masked_in
from ctxchat.tui.reading.text import clean, cut, one_line
from ctxchat.tui.screens.panel import MUTED, Heading, Over
from ctxchat.tui.screens.writing import EditableListing
from ctxchat.tui.style import STYLE
from ctxchat.tui.widgets.panel_keys import PanelKeys
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

KEY = "secrets.allow"

COLUMNS = (
    Column("what", 20, rank=1),
    Column("mark", 9),
    Column("", 7),
    Column("where", least=16),
)

HOW = "Secrets in what tools, files and hooks bring back are masked before a model or the record has them. None was met so far."


class OriginalScreen(Over[None], ModalScreen[None]):
    """A secret as it is, or where it can be read again."""

    CSS_PATH = STYLE / "settings.tcss"
    BINDINGS = [Binding("escape,enter,q", "leave", "back", key_display="esc")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__(classes="asking")
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(clean(self._title)), classes="quiet", markup=False)
            with VerticalScroll(classes="held"):
                yield Static(Content(cut(self._text)), id="original", markup=False)
            yield PanelKeys()

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VerticalScroll))

    def action_leave(self) -> None:
        self.dismiss(None)


class SecretsScreen(EditableListing):
    """Comes back with True where a false alarm was written down, else None. `masking` holds the originals since the start."""

    BINDINGS = [
        Binding("enter", "show", "show", key_display="enter"),
        Binding("a", "allow", "allow"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, load: Callable[[], Loaded], file: Path, session: Session, masking: Masking) -> None:
        super().__init__(load, file, "secrets")
        self._session, self._masking = session, masking
        self._masked: Sequence[Masked] = ()
        self._loaded: Loaded | None = None

    def compose(self) -> ComposeResult:
        yield Heading("Secrets")
        yield Rows(
            COLUMNS,
            self._cells,
            empty="Nothing was masked here. Keys and passwords in results of tools would be, before a model sees them.",
        )
        yield self.field("words of a kind, a mark or a place")
        yield Static(id="about", markup=False)
        yield PanelKeys()

    def on_mount(self) -> None:
        self.set_focus(self.home)
        self.run_worker(self._read, group="load", exclusive=True)

    async def _read(self) -> None:
        state, view = self._session.state, self._session.view
        self._masked = await asyncio.to_thread(masked_in, state.ledger, view)
        self.take(await asyncio.to_thread(self._load))

    def take(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.narrowed()

    def narrowed(self) -> None:
        wanted = self.words.casefold().split()
        shown = [each for each in self._masked if all(word in _words(each) for word in wanted)]
        at = self.rows.current
        self.rows.show(shown, at=next((i for i, each in enumerate(shown) if at and each.id == at.id), 0))
        off = self._loaded is not None and not self._loaded.settings.secrets.mask
        found = f"{count(len(self._masked), 'secret')} masked"
        told = ("masking is switched off", "off") if off else (f"{found} in this session", found)
        self.query_one(Heading).show("Secrets", *told)

    def _cells(self, each: Masked) -> tuple[Cell, ...]:
        more = f" and {count(len(each.places) - 1, 'other place')}" if each.places[1:] else ""
        return (
            (each.kind, ""),
            (f"#{each.id}", "strong"),
            ("allowed", "good") if self._allowed(each) else "",
            (f"{one_line(each.places[0])}{more}", "dim"),
        )

    def _allowed(self, each: Masked) -> str:
        """The entry of the settings that allows it, or empty."""
        return allowed_by(self._loaded.settings.secrets.allow, each.id, self._original(each)) if self._loaded else ""

    def _original(self, each: Masked) -> str:
        seen = self._masking.seen.get(each.id)
        return seen.value if seen else ""

    def on_rows_moved(self, event: Rows.Moved) -> None:
        each: Masked | None = event.item
        about = self.query_one("#about", Static)
        if each is None:
            about.update(Content.styled("" if self._masked else HOW, MUTED))
            return
        lines = [Content(f"[masked {each.kind} #{each.id}]")]
        lines += [Content.styled(clean(place), MUTED) for place in each.places[:5]]
        if more := len(each.places) - 5:
            lines += [Content.styled(f"and {more} more", MUTED)] if more > 0 else []
        about.update(Content("\n").join(lines))

    # ── what is done ──

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_show()

    def action_show(self) -> None:
        """The original, or where to read it."""
        each: Masked | None = self.rows.current
        if each is None:
            return
        text = self._original(each) or (
            "It is held only until the program ends, and was masked before this start. Read it where it was met: "
            + ", ".join(each.places[:3])
        )
        self.app.push_screen(OriginalScreen(f"{each.kind} #{each.id}", text))

    def action_allow(self) -> None:
        """A false alarm; once more, and it is masked again."""
        if each := self.rows.current:
            self.run_worker(partial(self._turn, each), group="write", exit_on_error=False)

    async def _turn(self, each: Masked) -> None:
        entry = self._allowed(each)
        if entry and entry != each.id:
            self._say(f"{KEY} allows it already: {entry}")
            return
        await self.write(lambda: self._write(each.id, allow=not entry))
        now = self._allowed(each)
        if now and not entry:
            self._say(f'Written: "{each.id}" in {KEY} of {self._file}. What comes from now on stays as it is.')
        elif entry and not now:
            self._say(f"{each.id} was taken out of {KEY} in {self._file}: it is masked from now on.")
        elif entry:
            self._say(f"{KEY} allows it elsewhere than in {self._file}: take {each.id} out there.")

    def _write(self, id: str, *, allow: bool) -> None:
        own = own_value(self._file, KEY)
        ids = [entry for entry in own if entry != id] if isinstance(own, list) else []
        if allow or own is not None:
            set_value(self._file, KEY, [*ids, id] if allow else ids)

    def _say(self, text: str) -> None:
        self.notify(clean(text), markup=False)


def _words(each: Masked) -> str:
    return f"{each.kind} #{each.id} {' '.join(each.places)}".casefold()
