"""The context panel, and the line of fills in it."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import ComposeResult
from textual.widgets import Button, Static

from ctxchat.core.budget import Window, make_budget
from ctxchat.core.cache_state import CacheBreak, CacheState, Hold, NextCall
from ctxchat.core.context_usage import TokenPrice
from ctxchat.core.head import ContextBlock, Head
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Ledger
from ctxchat.core.times import iso
from ctxchat.presentation.fill import MARK, Point, bar, fill_points, squeezed
from ctxchat.presentation.usage_text import off_by
from ctxchat.tui.chat.breakdown import Breakdown, HeadLine, Offenders, PartTable
from ctxchat.tui.widgets.chart import FillLine
from ctxchat.tui.widgets.gauge import Gauge
from tests.tui.harbour import FRAME, HarbourSession, digest, history, state
from tests.tui.panel_app import PanelApp


class PanelOnly(PanelApp):
    def __init__(self, desk: HarbourSession, **options: object) -> None:
        super().__init__()
        self.desk, self.options = desk, options
        self.heard: list[str] = []

    def compose(self) -> ComposeResult:
        yield Breakdown()

    def on_mount(self) -> None:
        self.query_one(Breakdown).show_breakdown(
            self.desk.context_usage, self.desk.view, self.desk.state, **self.options
        )  # type: ignore[arg-type]

    def on_breakdown_free_up_pressed(self) -> None:
        self.heard.append("free up")

    def on_gauge_segment_clicked(self, event: Gauge.SegmentClicked) -> None:
        self.heard.append(event.name)

    def said(self, which: str) -> str:
        found = self.query_one(f".{which}", Static)
        return str(found.render()) if found.display else ""

    def table(self) -> list[str]:
        table = self.query_one(PartTable)
        return [table.render_line(y).text for y in range(table.size.height)]


async def test_every_part_has_its_row_in_aligned_columns() -> None:
    app = PanelOnly(HarbourSession(state(20)))
    async with app.run_test(size=(44, 40)):
        rows = app.table()
        assert [r[1] for r in rows] == list("STMIΣUAR~▒·")
        assert len({r.rindex("%") for r in rows if "reserved" not in r}) == 1
        assert "%" not in next(r for r in rows if "reserved" in r), "it is no part of the limit"
        assert any("tool results" in r and "~" in r for r in rows)
        head = str(app.query_one(HeadLine).render())
        assert "of 27.9k" in head and f"±{off_by(app.desk.context_usage)} %" in head and "window 32k, catalogue" in head


async def test_before_anything_is_counted_it_names_the_window_alone() -> None:
    app = PanelOnly(HarbourSession(SessionState()))
    async with app.run_test(size=(44, 40)) as pilot:
        context_usage = msgspec.structs.replace(app.desk.context_usage, used=0, pressure=0.0, estimated=True)
        app.query_one(Breakdown).show_breakdown(context_usage, app.desk.view, app.desk.state)
        await pilot.pause()
        head = str(app.query_one(HeadLine).render())
        assert "counting …" in head and "0 of" not in head and "window 32k" in head
        assert app.query_one(PartTable).size.height == 0


async def test_a_memory_file_is_among_the_biggest_by_its_name() -> None:
    frame = Head(system="You help.", memory=(ContextBlock("AGENTS.md", "Write tests first. " * 900),))
    app = PanelOnly(HarbourSession(SessionState(), frame=frame))
    async with app.run_test(size=(44, 40)):
        assert app.query_one(Offenders).draw_line(40).plain.splitlines()[1].startswith("M AGENTS.md ")


@pytest.mark.parametrize("width", [26, 20])
async def test_narrow_it_keeps_letters_and_tokens(width: int) -> None:
    app = PanelOnly(HarbourSession(state(20)))
    async with app.run_test(size=(width, 30)):
        rows = app.table()
        assert all(len(r) <= width for r in rows)
        assert "k" in rows[-1] or rows[-1].strip()[-1].isdigit()


async def test_the_button_and_the_rows_answer_to_the_mouse() -> None:
    app = PanelOnly(HarbourSession(state(20)))
    async with app.run_test(size=(44, 50)) as pilot:
        await pilot.click(Button)
        await pilot.click(PartTable, offset=(8, 0))
        assert app.heard == ["free up", "system"]


async def test_the_button_answers_to_enter() -> None:
    app = PanelOnly(HarbourSession(state(20)))
    async with app.run_test(size=(44, 50)) as pilot:
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert app.heard == ["free up"]


async def test_the_largest_are_told_by_what_they_are() -> None:
    app = PanelOnly(HarbourSession(state(20)))
    async with app.run_test(size=(60, 50)):
        lines = str(app.query_one(Offenders).render()).splitlines()
        assert lines[0] == "biggest" and len(lines) == 5
        assert all(line.startswith("R ") for line in lines[1:4])
        assert any("journalctl" in line or "tide-7.log" in line for line in lines)


async def test_what_no_compaction_can_free_is_named() -> None:
    frame = msgspec.structs.replace(FRAME, system="word " * 9_000)
    app = PanelOnly(HarbourSession(state(3, passes=0), frame=frame, window=16_000))
    async with app.run_test(size=(44, 50)):
        alarm = app.said("alarm")
        assert "compaction cannot help" in alarm and "system prompt" in alarm and "AGENTS.md" in alarm


async def test_a_part_over_its_own_budget_says_so_without_colour() -> None:
    desk = HarbourSession(state(20))
    desk.budgets = {"tool_results": 50, "user": 1_000_000}
    app = PanelOnly(desk)
    async with app.run_test(size=(44, 40)):
        over = [r for r in app.table() if r.rstrip().endswith("!")]
        assert len(over) == 1 and "tool results" in over[0]
        said = app.said("alarm")
        assert said.startswith("! Tool results ") and "over the budget of 50." in said and "You" not in said


async def test_what_the_cache_saves_and_what_overhead_costs_is_told_in_dollars() -> None:
    frame = msgspec.structs.replace(FRAME, system="word " * 9_000)
    desk = HarbourSession(state(3, passes=0), frame=frame, window=16_000)
    desk.price = TokenPrice(3e-6, 3e-7)
    app = PanelOnly(desk)
    async with app.run_test(size=(44, 50)):
        held = desk.context_usage
        assert f"cached {6_000 * 100 // held.used} %, $0.02 saved a request" in app.said("money")
        alarm = app.said("alarm")
        assert "They cost $0.05 a request." in alarm and "system prompt" in alarm and "($0.0" in alarm


@pytest.mark.parametrize("width", [40, 110])
async def test_the_cache_is_told_as_long_as_it_holds(width: int) -> None:
    desk = HarbourSession(state(12))
    hold = Hold(20_000, time.time() + 41.5 * 60, next=NextCall(0.03))
    desk.cache = CacheState((hold,), "cold", NextCall(0.41), CacheBreak("server files joined", at=iso(time.time())))
    app = PanelOnly(desk)
    async with app.run_test(size=(width, 60)):
        said = app.said("cache")
        assert said.startswith("warm 41 min · next ≈ $0.03 + reply, cold ≈ $0.41\nbroke ") and said.endswith(
            "server files joined"
        )
        assert "◂ held up to here, warm 41 min" in app.said("legend")
        desk.cache = CacheState((Hold(20_000, time.time() - 1),), "cold", NextCall(0.41))
        app.query_one(Breakdown).show_breakdown(desk.context_usage, desk.view, desk.state)
        assert app.said("cache") == "cold · next ≈ $0.41 + reply"
        desk.cache = CacheState()
        app.query_one(Breakdown).show_breakdown(desk.context_usage, desk.view, desk.state)
        assert app.said("cache") == ""


async def test_pins_that_leave_nothing_to_compact_are_named() -> None:
    desk = HarbourSession(state(12, passes=0), window=16_000)
    app = PanelOnly(desk)
    async with app.run_test(size=(60, 50)):
        assert app.said("alarm") == ""
        for group in desk.state.ledger.groups:
            await desk.pin(group.id)
        app.query_one(Breakdown).show_breakdown(desk.context_usage, desk.view, desk.state)
        alarm = app.said("alarm")
        assert "Pinned messages" in alarm and "Unpin some" in alarm and "run journalctl" in alarm


async def test_what_the_server_cut_is_told_with_its_remedy() -> None:
    desk = HarbourSession(state(3, passes=0))
    app = PanelOnly(desk)
    async with app.run_test(size=(60, 50)):
        app.query_one(Breakdown).show_breakdown(
            msgspec.structs.replace(desk.context_usage, cut=3_100), desk.view, desk.state
        )
        assert "cut ~3.1k tokens" in app.said("alarm") and "--window" in app.said("alarm")


async def test_a_learned_limit_and_the_error_have_a_legend() -> None:
    desk = HarbourSession(state(12))
    app = PanelOnly(desk)
    async with app.run_test(size=(60, 50)):
        assert "╷ compaction from 20.9k" in app.said("legend") and "┃" not in app.said("legend")
        desk.budget = make_budget(Window(32_000, "learned", 128_000), 4_096, 0.8, 0.5)
        app.query_one(Breakdown).show_breakdown(desk.context_usage, desk.view, desk.state)
        assert "┃ learned limit 32.0k, not 128.0k" in app.said("legend")
        assert ": perhaps used, ±" in app.said("legend")
        assert "window 32k, not 128k" in str(app.query_one(HeadLine).render())


@pytest.mark.parametrize("lines", [30, 32, 40])
async def test_its_legend_is_in_sight_in_a_usual_window(lines: int) -> None:
    app = PanelOnly(HarbourSession(state(30), window=60_000))
    async with app.run_test(size=(42, lines)) as pilot:
        await pilot.pause()
        panel = app.query_one(Breakdown)
        legend = app.query_one(".legend").region
        assert legend.height > 2 and legend.bottom <= lines and not panel.max_scroll_y


async def test_it_scrolls_where_it_is_short() -> None:
    app = PanelOnly(HarbourSession(state(20)))
    async with app.run_test(size=(40, 10)):
        panel = app.query_one(Breakdown)
        assert panel.max_scroll_y > 0
        panel.scroll_end(animate=False)


async def test_a_fresh_session_has_no_line_and_no_forecast() -> None:
    app = PanelOnly(HarbourSession(SessionState()))
    async with app.run_test(size=(40, 30)):
        assert not app.query_one(FillLine).display
        assert app.said("forecast") == "" == app.said("alarm")
        assert app.said("money").startswith("cost $0")


def test_the_line_marks_each_compaction_where_it_was() -> None:
    ledger = Ledger(groups=history(6))
    ids = [g.id for g in ledger.groups]
    fills = (1_000, 2_000, 3_000, 4_000, 5_000, 6_000)
    in_third = digest(ledger, "k1", ids[:6], "short", minute=23)  # the third turn began at minute 21
    points = fill_points(SessionState(ledger=ledger.apply(in_third), fills=fills))
    assert [p.used for p in points] == [1_000, 2_000, 24_400, 9_200, 3_000, 4_000, 5_000, 6_000]
    assert [i for i, p in enumerate(points) if p.mark] == [3]
    after_third = digest(ledger, "k1", ids[:6], "short", minute=23, reason="manual")
    points = fill_points(SessionState(ledger=ledger.apply(after_third), fills=fills))
    assert [p.used for p in points] == [1_000, 2_000, 3_000, 24_400, 9_200, 4_000, 5_000, 6_000]


@given(st.lists(st.builds(Point, st.integers(0, 10**6), st.booleans()), max_size=300), st.integers(1, 80))
def test_squeezing_keeps_the_peaks_and_the_marks(points: list[Point], width: int) -> None:
    few = squeezed(points, width)
    assert len(few) == min(width, len(points))
    assert max((p.used for p in few), default=0) == max((p.used for p in points), default=0)
    assert any(p.mark for p in few) == any(p.mark for p in points)


@given(st.integers(0, 10**7), st.integers(0, 10**6))
def test_bars_are_one_cell_and_grow(used: int, limit: int) -> None:
    order = " ▁▂▃▄▅▆▇█"
    assert bar(used, limit) in order
    assert order.index(bar(used, limit)) <= order.index(bar(used + limit // 8 + 1, limit))
    assert (bar(used, limit) == " ") == (used == 0 or limit == 0)


async def test_the_line_fits_any_width() -> None:
    app = PanelOnly(HarbourSession(state(40)))
    async with app.run_test(size=(26, 40)):
        line = app.query_one(FillLine)
        assert line.render_line(0).cell_length == line.size.width == line.render_line(1).cell_length
        assert MARK in line.render_line(1).text


async def test_other_figures_lay_nothing_out_where_no_line_comes_or_goes() -> None:
    desk = HarbourSession(state(20))
    app = PanelOnly(desk)
    async with app.run_test(size=(44, 60)) as pilot:
        await pilot.pause()
        laid_out: list[object] = []
        app.screen.screen_layout_refresh_signal.subscribe(app.screen, laid_out.append, immediate=True)
        panel = app.query_one(Breakdown)
        for spent in (0.01, 0.02):  # for the first time there is a line for it
            laid_out.clear()
            before = app.said("money")
            context_usage = msgspec.structs.replace(
                desk.context_usage, cost_usd=spent, used=desk.context_usage.used + 1_000
            )
            panel.show_breakdown(context_usage, desk.view, desk.state)
            await pilot.pause(0.1)
            assert app.said("money") != before
        assert laid_out == []
        passes = 0 if desk.context_usage.compactions else 9
        panel.show_breakdown(
            msgspec.structs.replace(desk.context_usage, cost_usd=1, compactions=passes), desk.view, desk.state
        )
        await pilot.pause(0.1)
        assert laid_out, "a line more or less"
        assert app.query_one(".money", Static).size.height == app.said("money").count("\n") + 1
