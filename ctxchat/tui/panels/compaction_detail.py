"""One compaction behind five tabs: summary, facts, messages, difference, record. Each is drawn when it is looked at.

Knows what a compaction is and how a session is read; what is done with a compaction is the screen's.
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
    """What was written down of one compaction, in lines as wide as there is room for."""

    _one: CompactionEntry | None = None

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def show_compaction(self, one: CompactionEntry | None) -> None:
        """From now on this one; None for nothing to show."""
        self._one = one
        self.on_resize()

    def on_resize(self) -> None:
        room = self.size.width - 2  # a scrollbar, and a cell between it and the words
        words = compaction_text.record(self._one, room) if self._one and self.size.width else ""
        self.query_one(Static).update(words)


class CompactionDetail(Vertical):
    """Shows the pass it was last given."""

    DEFAULT_CSS = "CompactionDetail TabbedContent { height: 1fr; }"

    def __init__(self, session: Session) -> None:
        super().__init__(id="detail")
        self._session = session
        self._one: CompactionEntry | None = None
        self._all: Sequence[CompactionEntry] = ()
        self._drawn: set[str] = set()
        self._same = False  # what is shown was shown before: the cursor stays where it was

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
        """From now on this one, of these; None for nothing to show."""
        self._same = one is not None and self._one is not None and one.id == self._one.id
        self._one, self._all = one, found
        self._drawn.clear()
        self._draw()

    @property
    def tab(self) -> str:
        """The tab that is on screen."""
        return self.query_one(TabbedContent).active

    @property
    def messages(self) -> Rows[Kept]:
        """The messages that were put away."""
        return self.query_one("#archived", Rows)

    @property
    def current_message(self) -> Kept | None:
        """The message under the cursor, where the messages are on screen."""
        return self.messages.current if self.tab == "messages" else None

    def enter(self) -> None:
        """Put the focus into the tab that is on screen."""
        self.screen.set_focus(self.query_one("#archived" if self.tab == "messages" else f"#{self.tab} VerticalScroll"))

    def turn_to(self, name: str = "", by: int = 1) -> None:
        """To this tab, or to the next or the one before. The focus stays in the tabs where it was there."""
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
        """Fill the tab that is on screen, once for each compaction. What a long record has to be read for comes later."""
        one, tab = self._one, self.tab
        if one is None or tab in self._drawn:
            return
        self._drawn.add(tab)
        if tab == "summary":
            self.query_one(Markdown).update(compaction_text.summary(one))
        elif tab == "diff":
            self.query_one("#diff-text", Static).update(compaction_text.difference(one, self._all))
        elif tab == "record":
            self.query_one("#record-text", Static).update(compaction_text.record(one, self.size.width - 2))
        else:
            self.run_worker(partial(self._look_up, one, tab), group=tab, exclusive=True, exit_on_error=False)

    async def _look_up(self, one: CompactionEntry, tab: str) -> None:
        ledger = self._session.state.ledger
        if tab == "facts":
            view = await self._session.seen_view()
            words = await asyncio.to_thread(compaction_text.facts, one, view, ledger, self.size.width - 2)
            self.query_one("#facts-text", Static).update(words)
        else:
            self.messages.show_items(await asyncio.to_thread(archived, one, ledger), at=None if self._same else 0)
