"""Search over everything ever said: in view or put away, in this session or another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from ctxchat.tui.figures_text import count, day_and_clock
from ctxchat.tui.screens.panel import MUTED, Heading, Panel
from ctxchat.tui.services import ChatSession
from ctxchat.tui.text import clean, one_line, short
from ctxchat.tui.widgets.rows import Cell, Column, Rows

OPEN, CLOSE = "«", "»"
"""What stands around the words that were found."""

PAUSE = 0.2
"""Seconds of rest after a key before a search begins."""

WHO = {"user": "you", "assistant": "answer", "tool": "result", "system": "system"}

COLUMNS = (
    Column("who", 7, rank=2),
    Column("what", least=30),
    Column("tokens", 7, right=True, rank=1),
    Column("turn", 4, right=True, rank=5),
    Column("session", 20, rank=3),
    Column("when", 13, right=True, rank=4),
    Column("", 8, rank=6),
)


class Hit(Protocol):
    """One message found. `tokens` is what putting it back would cost, `compaction` the one that put it away, or empty."""

    @property
    def session(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def snippet(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def compaction(self) -> str: ...
    @property
    def turn(self) -> int: ...
    @property
    def at(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def title(self) -> str: ...


class Searcher(Protocol):
    """Who looks: hits for these words, the best first, what was found between « and ». Raises StorageError."""

    async def search(self, query: str) -> Sequence[Hit]: ...


def highlighted(snippet: str) -> Content:
    """The snippet with what was found made to stand out."""
    shown = Content("")
    for i, piece in enumerate(clean(snippet).replace(CLOSE, OPEN).split(OPEN)):
        shown = shown.append(Content.styled(piece, "bold $text-accent") if i % 2 else Content(piece))
    return shown


class SearchScreen(Panel[tuple[str, str]]):
    """Comes back with a session's id and the group to go to there, or None."""

    BINDINGS = [
        Binding("enter", "open", "go there", key_display="enter"),
        Binding("r", "restore", "put back here"),
        Binding("slash", "find", "search", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, searcher: Searcher, session: ChatSession, words: str = "") -> None:
        super().__init__(name="search", classes="panel")
        self._searcher, self._session, self._words = searcher, session, words

    def compose(self) -> ComposeResult:
        yield Heading("Search")
        yield Input(self._words, placeholder='words that were said; "…" keeps them together', compact=True)
        yield Rows(COLUMNS, self._cells, empty="Type what you look for.")
        yield Static(id="found", markup=False)
        yield self.footer()

    def on_mount(self) -> None:
        self.set_focus(self.query_one(Input))

    # ── what it shows ──

    @property
    def home(self) -> Widget | None:
        rows = self.query_one(Rows)
        return rows if rows.items else None

    def on_input_changed(self, event: Input.Changed) -> None:
        self.run_worker(self._search(event.value, PAUSE), group="search", exclusive=True, exit_on_error=False)

    async def _search(self, words: str, pause: float) -> None:
        await asyncio.sleep(pause)
        hits = await self.attempt(self._searcher.search(words)) if words.strip() else ()
        rows = self.query_one(Rows)
        rows.retitle(COLUMNS, "Nothing found." if words.strip() else "Type what you look for.")
        rows.show(hits or (), at=0)
        self.query_one(Heading).show("Search", count(len(hits), "hit") if hits else "")

    def _cells(self, hit: Hit) -> tuple[Cell, ...]:
        here = hit.session == self._session.id
        return (
            (WHO.get(hit.role, one_line(hit.role, 10)), "dim"),
            one_line(hit.snippet.replace(OPEN, "").replace(CLOSE, ""), 300),
            short(hit.tokens),
            (str(hit.turn) if hit.turn else "", "dim"),
            ("this one" if here else one_line(hit.title, 60) or "without a title", "dim"),
            (day_and_clock(hit.at), "dim"),
            ("put away" if hit.compaction else "in view", "dim"),
        )

    def on_rows_moved(self, event: Rows.Moved) -> None:
        hit: Hit | None = event.item
        words = highlighted(hit.snippet) if hit else Content("")
        where = Content.styled(f"\n{clean(hit.message)}, turn {hit.turn}, {clean(hit.title)}" if hit else "", MUTED)
        self.query_one("#found", Static).update(words.append(where))
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "restore" and self.is_mounted:
            hit: Hit | None = self.query_one(Rows).current
            return hit is not None and hit.session == self._session.id
        return True

    # ── what is done ──

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.run_worker(self._now(event.value), group="search", exclusive=True, exit_on_error=False)

    async def _now(self, words: str) -> None:
        await self._search(words, 0)
        if self.home:
            self.set_focus(self.home)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_open()

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))

    def action_back(self) -> None:
        self.dismiss(None)

    def action_open(self) -> None:
        hit: Hit | None = self.query_one(Rows).current
        if hit is not None:
            self.dismiss((hit.session, hit.group))

    def action_restore(self) -> None:
        hit: Hit | None = self.query_one(Rows).current
        if hit is not None:
            self.run_worker(self._restore(hit), group="verb", exit_on_error=False)

    async def _restore(self, hit: Hit) -> None:
        if await self.attempt(self._session.restore(hit.group)) is not None:
            self.notify(f"Put back at the end, as a quotation: {short(hit.tokens)} tokens.", markup=False)
