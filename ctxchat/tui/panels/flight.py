"""The flight recorder: how full the window was over the session, every compaction with its figures, and a report to hand on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from ctxchat import __version__
from ctxchat.core.secrets import masked
from ctxchat.presentation.cache_text import breaks_line
from ctxchat.presentation.compactions import REASONS, CompactionEntry, compaction_entries, tally
from ctxchat.presentation.fill import moments
from ctxchat.presentation.text import clock, elapsed, one_line, short
from ctxchat.presentation.usage_text import count, gain, money, window_words
from ctxchat.storage.markdown import flight_recorder
from ctxchat.storage.private_files import write_beside
from ctxchat.tui.panels.compaction_detail import CompactionReport
from ctxchat.tui.panels.compaction_text import MIN_SHOWN_S
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.services import Services
from ctxchat.tui.widgets.chart import FillChart
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

COLUMNS = (
    Column("when", 6),
    Column("why", 12),
    Column("before → after", 16, right=True),
    Column("freed", 7, right=True, rank=2),
    Column("how", least=10, rank=6),
    Column("model", 18, rank=5),
    Column("took", 7, right=True, rank=3),
    Column("cost", 7, right=True, rank=4),
    Column("outcome", 9, rank=1),
)
EMPTY = "Nothing was compacted in this session yet. The chart grows with every turn, and each compaction is listed under it."


class FlightScreen(Panel[str]):
    """Shows the flight recorder. Its result is the id of a compaction to open in the archive, else None."""

    BINDINGS = [
        Binding("enter", "choose", "look into it", key_display="enter"),
        Binding("x", "export", "write a report"),
    ]

    def __init__(self, session: Session, services: Services) -> None:
        super().__init__()
        self._session, self._services = session, services

    def body(self) -> ComposeResult:
        yield FillChart()
        yield Static(id="breaks", markup=False)
        yield Rows(COLUMNS, self._cells, id="passes", empty=EMPTY)
        yield CompactionReport()

    def on_mount(self) -> None:
        state, context_usage = self._session.state, self._session.context_usage
        self.query_one(FillChart).show_flight(moments(state), context_usage.limit, context_usage.trigger_tokens)
        self.query_one("#breaks", Static).update(breaks_line(state.cache_breaks))
        self.query_one("#breaks").display = bool(state.cache_breaks)
        found = compaction_entries(state)
        self.rows.show_items(found, at=0)
        turns, (whole, *shorter) = count(state.ledger.turn, "turn"), tally(found)
        self.head(
            f"{turns}, {whole}, {money(state.cost_usd)}   {window_words(context_usage)}",
            f"{turns}, {whole}, {money(state.cost_usd)}",
            whole,
            *shorter,
            left=f"Flight recorder   {one_line(state.title, 60)}",
        )

    # ── what it shows ──

    @property
    def chosen(self) -> CompactionEntry | None:
        """The compaction under the cursor."""
        return self.rows.current

    def _cells(self, one: CompactionEntry) -> tuple[Cell, ...]:
        record, style = one.record, "" if one.in_force else "dim"
        before = short(record.before.used)
        return (
            (clock(record.at) or "·", "dim"),
            (REASONS[record.reason], style),
            (f"{before} → {short(record.stands)}" if record.outcome == "compacted" else before, style),
            (gain(record.freed) if one.in_force else "", "good"),
            (one_line(record.strategy, 40), style),
            (one_line(record.model.rpartition("/")[2], 40) or "no model", "dim"),
            (elapsed(record.seconds) if record.seconds >= MIN_SHOWN_S else "", "dim"),
            (money(record.cost_usd), "dim"),
            (one.state_word, "warn" if one.state_word in ("failed", "rejected") else style),
        )

    def on_rows_moved(self, event: Rows.Moved) -> None:
        one = self.chosen
        self.query_one(FillChart).choose(one.id if one else "")
        self.query_one(CompactionReport).show_compaction(one)
        self.refresh_bindings()

    def on_fill_chart_clicked(self, event: FillChart.Clicked) -> None:
        event.stop()
        for place, one in enumerate(self.rows.items):
            if one.id == event.compaction_id:
                self.rows.cursor = place

    # ── what is done ──

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "choose" and self.is_mounted:
            return self.chosen is not None
        return True

    def action_choose(self) -> None:
        if one := self.chosen:
            self.dismiss(one.id)

    @work(group="verb", exclusive=True, exit_on_error=False)
    async def action_export(self) -> None:
        path = self._services.workspace / f"ctxchat-flight-{self._session.id[:8]}.md"
        written = await self.attempt(asyncio.to_thread(lambda: write_beside(path, self._report())))
        if written is not None:
            self.notify_here(f"Written to {written}")

    def _report(self) -> bytes:
        """The session's flight as Markdown, secrets taken out. Slow for a long one."""
        context_usage = self._session.context_usage
        facts = {
            "ctxchat": __version__,
            "session": self._session.id,
            "model": context_usage.model,
            "window": f"{context_usage.window} ({context_usage.window_source})",
            "limit": str(context_usage.limit),
            "compaction starts at": str(context_usage.trigger_tokens),
            "used now": f"{'~' if context_usage.estimated else ''}{context_usage.used}",
        }
        return masked(flight_recorder(self._session.state, facts)).encode("utf-8", "replace")
