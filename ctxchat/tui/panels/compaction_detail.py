"""Shows one compaction in five tabs: summary, facts, messages, difference, record. A tab is filled when it is opened.

Only reads the session; what is done with a compaction is up to the screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Markdown, Static, TabbedContent, TabPane

from ctxchat.presentation.compactions import CompactionEntry, Kept, archived
from ctxchat.tui.panels import compaction_text
from ctxchat.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

TABS = ("summary", "facts", "messages", "diff", "record")


class CompactionReport(VerticalScroll, can_focus=False):
    """The record of one compaction as text, laid out for the width there is."""

    _entry: CompactionEntry | None = None

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def show_compaction(self, one: CompactionEntry | None) -> None:
        """Show this compaction; None shows nothing."""
        self._entry = one
        self.on_resize()

    def on_resize(self) -> None:
        room = self.size.width - 2  # a scrollbar, and a cell between it and the words
        words = compaction_text.record(self._entry, room) if self._entry and self.size.width else ""
        self.query_one(Static).update(words)


class CompactionDetail(Vertical):
    """The tabs of the compaction that `show_compaction` was last called with."""

    DEFAULT_CSS = "CompactionDetail TabbedContent { height: 1fr; }"

    def __init__(self, session: Session) -> None:
        super().__init__(id="detail")
        self._session = session
        self._entry: CompactionEntry | None = None
        self._entries: Sequence[CompactionEntry] = ()
        self._drawn: set[str] = set()  # tabs that are filled for this compaction
        self._keeps_cursor = False  # the same compaction was shown before: the cursor stays where it was

    def compose(self) -> ComposeResult:
        with TabbedContent():
            with TabPane(Content("Summary"), id="summary"), VerticalScroll():
                yield Markdown(open_links=False)
            yield self._page("facts")
            with TabPane(Content("Messages"), id="messages"):
                empty = "This compaction archived nothing."
                yield Rows(
                    compaction_text.MESSAGES, compaction_text.message_cells, id="archived", titles=False, empty=empty
                )
            yield self._page("diff")
            yield self._page("record")

    @staticmethod
    def _page(name: str) -> TabPane:
        return TabPane(Content(name.title()), VerticalScroll(Static(id=f"{name}-text", markup=False)), id=name)

    def show_compaction(self, one: CompactionEntry | None, found: Sequence[CompactionEntry]) -> None:
        """Show this compaction of all those in `found`, which the difference needs; None shows nothing."""
        self._keeps_cursor = one is not None and self._entry is not None and one.id == self._entry.id
        self._entry, self._entries = one, found
        self._drawn.clear()
        self._draw()

    @property
    def tab(self) -> str:
        """The tab that is on screen."""
        return self.query_one(TabbedContent).active

    @property
    def messages(self) -> Rows[Kept]:
        """The list of the messages that were archived."""
        return self.query_one("#archived", Rows)

    @property
    def current_message(self) -> Kept | None:
        """The message under the cursor; None while another tab is on screen."""
        return self.messages.current if self.tab == "messages" else None

    def enter(self) -> None:
        """Put the focus into the tab that is on screen."""
        self.screen.set_focus(self.query_one("#archived" if self.tab == "messages" else f"#{self.tab} VerticalScroll"))

    def turn_to(self, name: str = "", by: int = 1) -> None:
        """Open the tab `name`; without a name, the one `by` tabs further, round the end. If the focus was inside the tabs, it
        moves into the opened one."""
        inside = self.screen.focused is not None and self in self.screen.focused.ancestors
        self.query_one(TabbedContent).active = name or TABS[(TABS.index(self.tab) + by) % len(TABS)]
        if inside:
            self.enter()

    def on_tabbed_content_tab_activated(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._drawn -= {"record", "facts"}
        self._draw()

    def _draw(self) -> None:
        """Fill the tab that is on screen, once for each compaction. What takes long to find in a long record is filled in by a
        worker."""
        entry, tab = self._entry, self.tab
        if entry is None or tab in self._drawn:
            return
        self._drawn.add(tab)
        if tab == "summary":
            self.query_one(Markdown).update(compaction_text.summary(entry))
        elif tab == "diff":
            self.query_one("#diff-text", Static).update(compaction_text.difference(entry, self._entries))
        elif tab == "record":
            self.query_one("#record-text", Static).update(compaction_text.record(entry, self.size.width - 2))
        else:
            self.run_worker(partial(self._look_up, entry, tab), group=tab, exclusive=True, exit_on_error=False)

    async def _look_up(self, entry: CompactionEntry, tab: str) -> None:
        """Fill the facts or the messages, searched for in a thread."""
        ledger = self._session.state.ledger
        if tab == "facts":
            view = await self._session.seen_view()
            words = await asyncio.to_thread(compaction_text.facts, entry, view, ledger, self.size.width - 2)
            self.query_one("#facts-text", Static).update(words)
        else:
            self.messages.show_items(
                await asyncio.to_thread(archived, entry, ledger), at=None if self._keeps_cursor else 0
            )
