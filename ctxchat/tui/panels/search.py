"""Search over everything ever said: in view or put away, in this session or another. What is found can be gone to or put back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import UsageError
from ctxchat.core.search import FILTERS, Hit, Scope, incomplete
from ctxchat.presentation.text import clean, one_line
from ctxchat.presentation.usage_text import count
from ctxchat.tui.panels.filters import Choice, Filters
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.panels.reader import ReaderScreen
from ctxchat.tui.panels.search_results import CLOSE, OPEN, SearchResults, put_back_words
from ctxchat.tui.services import Services
from ctxchat.tui.widgets.field import Field

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

TYPING_PAUSE_S = 0.12
"""Seconds of rest after a key before a search begins."""

MAX_HITS = 50

START = f"""Everything ever said is searched, in every session, the archive too.
Filters among the words: {FILTERS}."""


class SearchField(Field):
    """The field for the search words. Its footer names the key to the hits; Enter goes there as well."""

    BINDINGS = [Binding("down", "screen.into", "to the hits", key_display="enter")]


def once(hits: Sequence[Hit], here: str) -> list[Hit]:
    """Each message once: a branch has those of the session it came from. That of the session on screen, else the best."""
    kept: dict[tuple[str, ...], Hit] = {}
    for hit in hits:
        said = (hit.message, hit.role, hit.at, hit.snippet)
        if said not in kept or hit.session == here:
            kept[said] = hit
    return list(kept.values())


class SearchScreen(Panel[tuple[str, str]]):
    """Searches all sessions. Its result is a session's id and the group to go to there, or None."""

    TITLE = "Search"
    BINDINGS = [
        Binding("r", "restore", "put back here"),
        Binding("v", "view", "read it whole"),
        Binding("s", "filter('place')", "session"),
        Binding("w", "filter('role')", "who"),
        Binding("o", "filter('tool')", "tool"),
        Binding("t", "filter('time')", "when"),
        Binding("slash", "find", "words", key_display="/"),
    ]

    def __init__(self, services: Services, session: Session, words: str = "") -> None:
        super().__init__()
        self._services, self._session, self._words = services, session, words

    def body(self) -> ComposeResult:
        yield SearchField(
            self._words,
            placeholder='words; "…" keeps them together; who:me tool:shell since:3d file:app.py',
            compact=True,
        )
        yield Filters(self._session.id)
        yield Static(id="partly", markup=False)
        yield SearchResults(self._session.id)

    def on_mount(self) -> None:
        self._show_hits((), "")
        self.set_focus(self.query_one(Input))
        self.run_worker(self._name_tools, exit_on_error=False)

    async def _name_tools(self) -> None:
        view = await self._session.seen_view()
        self.query_one(Filters).offer([tool.name for tool in view.tools])

    # ── what it shows ──

    @property
    def home(self) -> Widget | None:
        return self.query_one(SearchResults).list if self.chosen else None

    @property
    def chosen(self) -> Hit | None:
        """The hit under the cursor."""
        return self.query_one(SearchResults).chosen

    @property
    def scope(self) -> Scope:
        """The scope of the search by the filters."""
        return self.query_one(Filters).scope

    @on(Input.Changed)
    @on(Input.Submitted)
    @on(Choice.Changed)
    def start_search(self, event: Input.Changed | Input.Submitted | Choice.Changed) -> None:
        """Search for what stands in the field, and go into the hits after Enter; an answer to something older is dropped."""
        event.stop()
        pause, into = TYPING_PAUSE_S * isinstance(event, Input.Changed), isinstance(event, Input.Submitted)
        self.run_worker(partial(self._search, pause, into), group="search", exclusive=True, exit_on_error=False)

    async def _search(self, pause: float, into: bool) -> None:
        await asyncio.sleep(pause)
        words = self.query_one(Field).value.strip()
        found: Sequence[Hit] | None = ()
        wrong = ""

        async def asked() -> Sequence[Hit]:
            nonlocal wrong
            try:
                return await self._services.search(words, self.scope, limit=MAX_HITS, marks=(OPEN, CLOSE))
            except UsageError as problem:  # a filter that may still be being typed
                wrong = clean(str(problem))
                return ()

        if words:
            found = await self.attempt(asked())
        part = await self.attempt(self._services.indexed()) if words else None
        self._show_hits(found or (), words, wrong, incomplete(1.0 if part is None else part))
        if into:
            self.action_into()

    def _show_hits(self, hits: Sequence[Hit], words: str, wrong: str = "", partly: str = "") -> None:
        """Show these hits, or what is `wrong` with a filter that may still be typed. `partly` tells how far the index is
        built."""
        fewer = " Fewer filters may help: s, w, o, t." if self.scope != Scope() else ""
        nothing = wrong or (f"Nothing found for {one_line(words, 60)}.{fewer}" if words else START)
        self.query_one(SearchResults).show_hits(shown := once(hits, self._session.id), words, nothing)
        self.query_one("#partly", Static).update(partly)
        self.set_class(bool(partly), "-partly")
        tail = f"the {len(hits)} best" if len(hits) == MAX_HITS else count(len(shown), "hit") if shown else ""
        self.head(tail)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("restore", "view", "into") and self.is_mounted:
            return self.chosen is not None
        return True

    # ── what is done ──

    def action_into(self) -> None:
        """Move the focus from the field to the hits."""
        if self.home:
            self.set_focus(self.home)

    def action_filter(self, which: str) -> None:
        self.query_one(Filters).step(which)

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))

    def action_back(self) -> None:
        self.dismiss(None)

    @on(OptionList.OptionSelected)
    def action_open(self) -> None:
        if hit := self.chosen:
            self.dismiss((hit.session, hit.group))

    @work(group="verb", exit_on_error=False)
    async def action_view(self) -> None:
        hit = self.chosen
        if hit is None:
            return
        group = await self.attempt(self._services.group(hit.session, hit.message))
        message = next((m for m in group.messages if m.id == hit.message), None) if group else None

        def read(wish: str | None) -> None:
            if wish:
                self.action_restore()

        if message is not None:
            self.app.push_screen(ReaderScreen(message, note=hit.note), read)

    @work(group="verb", exit_on_error=False)
    async def action_restore(self) -> None:
        hit = self.chosen
        if hit is None or not await self.confirm("Put this back at the end of this session?"):
            return
        if context_usage := await self.attempt(restore_hit(self._services, self._session, hit)):
            severity = "warning" if context_usage.excess else "information"
            self.notify(put_back_words(context_usage), severity=severity, markup=False)


async def restore_hit(services: Services, session: Session, hit: Hit) -> ContextUsage:
    """Put the found message at the end of this session as a quotation; one of another session with that session's title."""
    if hit.session == session.id:
        return await session.changes.restore(hit.group)
    return await session.changes.quote(await services.group(hit.session, hit.message), hit.title)
