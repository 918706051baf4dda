"""Shows the secrets that were masked in this session: kind, mark and place of each, and the original while the program still has
it. A false alarm can be allowed by its id in the person's settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ctxchat.config.effective import Loaded
from ctxchat.config.write import own_value, set_value
from ctxchat.core.quantities import count
from ctxchat.core.secrets import Masking, allowed_by
from ctxchat.presentation.masked import Masked, masked_in
from ctxchat.presentation.text import clean, cut, one_line
from ctxchat.tui.panels.panel import Dialog, EditableListing
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

KEY = "secrets.allow"

HOW = "Keys and passwords in what tools, files and hooks bring back are masked before a model sees them, and in the record."


class OriginalScreen(Dialog[None]):
    """A secret as it is, or where it can be read again."""

    BINDINGS = [Binding("escape,enter,q", "back", "back", key_display="esc")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def body(self) -> ComposeResult:
        yield Static(Content(clean(self._title)), classes="quiet", markup=False)
        with VerticalScroll(classes="held"):
            yield Static(Content(cut(self._text)), id="original", markup=False)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(VerticalScroll))


class SecretsScreen(EditableListing):
    """Shows the masked secrets. Its result is True if a false alarm was allowed, else None. `masking` has the originals since the
    program's start."""

    TITLE = "Secrets"
    COLUMNS = (Column("what", 20, rank=1), Column("mark", 9), Column("", 7), Column("where", least=16))
    EMPTY = "Nothing was masked in this session."
    FILTER_PLACEHOLDER = "words of a kind, a mark or a place"
    BINDINGS = [Binding("enter", "choose", "show", key_display="enter"), Binding("a", "allow", "allow")]

    def __init__(
        self, loaded: Loaded, load: Callable[[], Loaded], file: Path, session: Session, masking: Masking
    ) -> None:
        super().__init__(loaded, load, file)
        self._session, self._masking = session, masking
        self._masked: Sequence[Masked] = ()

    def on_mount(self) -> None:
        self.run_worker(self._load_secrets, group="load", exclusive=True, exit_on_error=False)

    async def _load_secrets(self) -> None:
        view = await self._session.seen_view()
        self._masked = await asyncio.to_thread(masked_in, self._session.state.ledger, view)
        self.apply_filter()

    def apply_filter(self) -> None:
        shown = self.matching(self._masked, lambda each: f"{each.kind} #{each.id} {' '.join(each.places)}")
        self.set_items(shown, self.rows.current.id if self.rows.current else "", lambda each: each.id)
        off = not self._loaded.settings.secrets.mask
        found = f"{count(len(self._masked), 'secret')} masked"
        self.head(*(("masking is switched off", "off") if off else (f"{found} in this session", found)))

    def cells(self, each: Masked) -> tuple[Cell, ...]:
        more = f" and {count(len(each.places) - 1, 'other place')}" if each.places[1:] else ""
        return (
            (each.kind, ""),
            (f"#{each.id}", "strong"),
            ("allowed", "good") if self._allowed(each) else "",
            (f"{one_line(each.places[0])}{more}", "dim"),
        )

    def _allowed(self, each: Masked) -> str:
        """The entry of the settings that allows it, or empty."""
        return allowed_by(self._loaded.settings.secrets.allow, each.id, self._original(each))

    def _original(self, each: Masked) -> str:
        seen = self._masking.seen.get(each.id)
        return seen.value if seen else ""

    def describe_item(self, item: Masked | None) -> Content:
        if item is None:
            return Content.styled("" if self._masked else HOW, MUTED)
        more = len(item.places) - 5
        quiet = [*item.places[:5], *([f"and {more} more"] if more > 0 else [])]
        lines = [Content.styled(clean(words), MUTED) for words in quiet]
        return Content("\n").join([Content(f"[masked {item.kind} #{item.id}]"), *lines])

    # ── what is done ──

    def action_choose(self) -> None:
        """The original, or where to read it."""
        each: Masked | None = self.rows.current
        if each is None:
            return
        text = self._original(each) or (
            "It is held only until the program ends, and was masked before this start. Read it where it was met: "
            + ", ".join(each.places[:3])
        )
        self.app.push_screen(OriginalScreen(f"{each.kind} #{each.id}", text))

    @work(group="write", exit_on_error=False)
    async def action_allow(self) -> None:
        """A false alarm; once more, and it is masked again."""
        each: Masked | None = self.rows.current
        if each is None:
            return
        entry = self._allowed(each)
        if entry and entry != each.id:
            self.notify_here(f"{KEY} allows it already: {entry}")
            return
        await self.change_file(_allow, each.id, not entry)
        now = self._allowed(each)
        if now and not entry:
            self.notify_here(f'Written: "{each.id}" in {KEY} of {self._file}. What comes from now on stays as it is.')
        elif entry and not now:
            self.notify_here(f"{each.id} was taken out of {KEY} in {self._file}: it is masked from now on.")
        elif entry:
            self.notify_here(f"{KEY} allows it elsewhere than in {self._file}: take {each.id} out there.")


def _allow(file: Path, id: str, allow: bool) -> None:
    own = own_value(file, KEY)
    ids = [entry for entry in own if entry != id] if isinstance(own, list) else []
    if allow or own is not None:
        set_value(file, KEY, [*ids, id] if allow else ids)
