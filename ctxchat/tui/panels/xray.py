"""X-ray: a row for everything the window holds, with its price, and what can be done about it: pin, drop, shrink, undo."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.ledger import DeferredKind, Ledger
from ctxchat.core.sections import SECTIONS, SectionName
from ctxchat.presentation.alarms import alarms
from ctxchat.presentation.bar import SIGNS
from ctxchat.presentation.cache_text import anew_words, cache_sentences, held_words
from ctxchat.presentation.inventory import Row, inventory, summed
from ctxchat.presentation.text import short
from ctxchat.presentation.usage_text import PARTS, count, exact, share, tilde
from ctxchat.tui.panels.panel import Listing
from ctxchat.tui.panels.undoing import undo
from ctxchat.tui.widgets.gauge import Gauge, component, signs_of
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

FOREIGN = (
    "Only messages of the conversation can be changed: the system prompt, tools and memory come from their own source."
)
QUESTIONS = {
    "pin": "Pin this: it stays word for word?",
    "drop": "Drop this from what the model sees, with what belongs to it? The record keeps it.",
    "shrink": "Shrink this to a line? The record keeps it whole.",
}
LATER = "{0} puts it off until the next compaction, which changes what was sent anyway."
"""Said where a change has its price now; with the key that puts it off."""

DEFER_QUESTIONS: Mapping[DeferredKind, str] = {
    "drop": "Drop this with the next compaction, with what belongs to it? Until then the model sees it.",
    "shrink": "Shrink this to a line with the next compaction? Until then the model sees it whole.",
}

SUMMARY = "A summary stands for what was compacted. Enter goes to its compaction, where it can be undone."


def pin_of(ledger: Ledger, group: str) -> str:
    """The id of the change that pinned a group; empty where none is in force."""
    return next((c.id for c in reversed(ledger.changes) if group in c.pins), "")


RULE = "rule"
"""The kind of the line that stands where what the server holds ends; it is no row of the window."""

UP_TO = "up to:"
"""Before a group that comes back to be compacted up to."""


class XrayScreen(Listing[str]):
    """The X-ray: a row for each message in the context. Its result is the key of the group or compaction to go to in the chat, or
    None."""

    TITLE = "X-ray"
    COLUMNS = (
        Column("#", 5, right=True, rank=5),
        Column("turn", 4, right=True, rank=4),
        Column("", 1),
        Column("kind", 8, rank=3),
        Column("what", least=30),
        Column("tokens", 8, right=True),
        Column("share", 5, right=True, rank=1),
        Column("sum", 5, right=True, rank=6),
        Column("from", 10, rank=7),
        Column("", 2, rank=2),
    )
    FILTER_PLACEHOLDER = "words to find"
    ABOUT = False
    BINDINGS = [
        Binding("enter", "choose", "go there", key_display="enter"),
        Binding("p", "change('pin')", "pin"),
        Binding("d", "change('drop')", "drop"),
        Binding("s", "change('shrink')", "shrink to a line"),
        Binding("D", "defer('drop')", show=False),
        Binding("S", "defer('shrink')", show=False),
        Binding("c", "up_to", "compact up to here"),
        Binding("u", "undo", "undo"),
        Binding("o", "sort", "order"),
        Binding("f", "part(1)", "part"),
        Binding("F", "part(-1)", show=False),
    ]

    def __init__(self, session: Session, section: SectionName | None = None) -> None:
        super().__init__()
        self._session = session
        self._section: SectionName | None = section
        self._rows: tuple[Row, ...] = ()
        self._by_size = True
        self._signs: Mapping[SectionName, str] = SIGNS
        self._context_usage: ContextUsage = session.context_usage

    def body(self) -> ComposeResult:
        yield from super().body()
        yield Gauge(self._context_usage)

    def on_mount(self) -> None:
        self.run_worker(self._load, group="rows", exclusive=True, exit_on_error=False)

    # ── what it shows ──

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        return self.rows.current

    async def _load(self, group: str = "") -> None:
        """Read the view anew. Thousands of messages are put into words beside the event loop."""
        view = await self._session.seen_view()
        self._context_usage = self._session.context_usage
        self.query_one(Gauge).show_usage(self._context_usage)
        hold = self._context_usage.cache.held_at(time.time())
        self._rows = await asyncio.to_thread(inventory, view, self._context_usage, hold.length if hold else 0)
        self._list_rows(group)

    def _list_rows(self, group: str = "", top: bool = False) -> None:
        part = [row for row in self._rows if self._section in (None, row.section)]
        found = self.matching(part, lambda row: f"{row.kind} {row.what} {row.source}")
        found = summed(sorted(found, key=lambda row: (-row.tokens, row.number)) if self._by_size else found)
        if not (self._by_size or self.words or self._section):
            found = self._ruled(found)
        at = next((i for i, row in enumerate(found) if group and row.group == group), 0 if top else None)
        self._signs = signs_of(self.app)
        marked = "tokens" if self._by_size else "#"
        titles = [replace(c, title=f"{c.title} ▾") if c.title == marked else c for c in self.COLUMNS]
        self.rows.retitle(titles)
        self.rows.show_items(found, at=at, empty="Nothing here." if self._rows else "The window is empty.")
        named = PARTS[self._section].label if self._section else "all"
        held = f"{tilde(self._context_usage)}{short(sum(row.tokens for row in found))}"
        order = "biggest first" if self._by_size else "as sent"
        wait = f"   {len(deferred)} put off" if (deferred := self._session.state.deferred) else ""
        left = f"X-ray   {count(sum(row.kind != RULE for row in found), 'row')}   {held}{wait}"
        self.head(f"{named}, {order}", named if self._section else "", left=left)

    def _ruled(self, rows: list[Row]) -> list[Row]:
        """The rows, with a line drawn behind the last one that the server's cache holds."""
        held = sum(row.cached for row in rows)
        words = held_words(self._context_usage.cache, time.time())
        return [*rows[:held], Row(0, "free", RULE, f"─── {words} ───", "", 0), *rows[held:]] if held and words else rows

    def cells(self, row: Row) -> tuple[Cell, ...]:
        if row.kind == RULE:
            return ("", "", "", "", (row.what, "dim"), "", "", "", "", "")
        used = self._context_usage.used
        mark = "w" if row.group in self._session.state.deferred else "P" if row.pinned else ""
        return (
            (str(row.number), "dim"),
            (str(row.turn) if row.turn else "", "dim"),
            (self._signs[row.section], component(row.section)),
            row.kind,
            row.what,
            exact(row.tokens),
            (share(row.tokens, used), "dim"),
            (share(row.running, used), "dim"),
            (row.source, "dim"),
            (f"{mark or ' '}{'c' if row.cached else ''}", "strong" if mark else "dim"),
        )

    # ── choosing ──

    def on_rows_title_clicked(self, event: Rows.TitleClicked) -> None:
        title = event.title.removesuffix(" ▾")
        if title in ("tokens", "share", "#", "turn", "sum"):
            self._by_size = title in ("tokens", "share")
            self._list_rows(top=True)

    def on_gauge_segment_clicked(self, event: Gauge.SegmentClicked) -> None:
        event.stop()
        inside = event.name not in ("draft", "reserved", "free") and event.name != self._section
        self._section = event.name if inside else None
        self._list_rows(top=True)

    def apply_filter(self) -> None:
        self._list_rows(top=True)

    def action_sort(self) -> None:
        self._by_size = not self._by_size
        self._list_rows(self.chosen.group if self.chosen else "")

    def action_part(self, by: int) -> None:
        """Show only the next part that has rows; after the last part, all."""
        parts: list[SectionName | None] = [None]
        parts.extend(section for section in SECTIONS if any(row.section == section for row in self._rows))
        place = parts.index(self._section) if self._section in parts else 0
        self._section = parts[(place + by) % len(parts)]
        self._list_rows(top=True)

    def action_choose(self) -> None:
        row = self.chosen
        if row is None:
            return
        if row.kind == RULE:
            self.notify(cache_sentences(self._context_usage, time.time()), markup=False)
            return
        if row.group:
            self.dismiss(f"change:{row.change}" if row.section == "summary" else row.group)
        else:
            self.notify("This is no message of the conversation, so it cannot be changed here.", markup=False)

    def action_up_to(self) -> None:
        """Look at what a compaction up to the row under the cursor would do."""
        row = self.chosen
        if row is None:
            return
        if row.group and row.section != "summary":
            self.dismiss(f"{UP_TO}{row.group}")
        else:
            self.notify(SUMMARY if row.group else FOREIGN, markup=False)

    # ── changing ──

    def action_change(self, verb: str) -> None:
        """Pin, drop or shrink the row under the cursor, with its group. A pinned one is let go."""
        row = self._changeable()
        if row is None:
            return
        changes = self._session.changes
        pin = pin_of(self._session.state.ledger, row.group)  # the row may show what was before
        if verb == "pin" and pin:
            self._start(partial(changes.undo, pin), row.group, "Unpin this?")
        else:
            verbs = {"pin": changes.pin, "drop": changes.drop, "shrink": changes.shrink}
            self._start(partial(verbs[verb], row.group), row.group, f"{QUESTIONS[verb]}{self._price_of(verb, row)}")

    def action_defer(self, kind: DeferredKind) -> None:
        """Drop or shrink the row under the cursor with the next compaction. One that waits for that is kept after all."""
        row = self._changeable()
        if row is None:
            return
        changes = self._session.changes
        if self._session.state.deferred.get(row.group) == kind:
            self._start(partial(changes.undefer, row.group), row.group, "Keep this after all?")
        else:
            self._start(partial(changes.defer, row.group, kind), row.group, DEFER_QUESTIONS[kind])

    def _changeable(self) -> Row | None:
        """The row under the cursor; where nothing of it can be changed that is said."""
        row = self.chosen
        if row is None or (row.group and row.section != "summary"):
            return row
        self.notify(SUMMARY if row.group else FOREIGN, markup=False)
        return None

    def _price_of(self, verb: str, row: Row) -> str:
        """A sentence on what the server has to read anew after the change; a pin changes nothing that was sent."""
        if verb == "pin":
            return ""
        words = anew_words(self._context_usage, self._session.changes.rewrite_of(row.group), time.time())
        return f"\n{words} {LATER.format(verb[0].upper())}" if words else ""

    def action_undo(self) -> None:
        self._start(self._undone, self.chosen.group if self.chosen else "", "Undo the last change?")

    async def _undone(self) -> ContextUsage | None:
        """The last change taken back; where that would fill the window too far, as much of it as is wanted."""
        done = await undo(self._session, self.app.push_screen_wait)
        return done.context_usage if done else None

    def _start(self, work: Callable[[], Awaitable[ContextUsage | None]], group: str, question: str) -> None:
        self.run_worker(partial(self._make_change, work, group, question), group="verb", exit_on_error=False)

    async def _make_change(self, work: Callable[[], Awaitable[ContextUsage | None]], group: str, question: str) -> None:
        if not await self.confirm(question):
            return
        before = alarms(self._context_usage, self._session.view)
        context_usage = await self.attempt(work())
        if context_usage is not None:
            self.query_one(Gauge).show_usage(context_usage)
            await self._load(group)
            for what, words in alarms(context_usage, self._session.view).items():
                if what not in before:
                    self.notify(words, severity="warning", markup=False)
