"""X-ray: rows that add up, sort, filter, and verbs whose effect shows at once."""

from __future__ import annotations

import time
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input, Static

from ctxchat.core.cache_state import CacheState, Hold, NextCall
from ctxchat.core.journal import SessionState
from ctxchat.presentation.inventory import inventory
from ctxchat.tui.panels.panel import Confirm, Heading
from ctxchat.tui.panels.xray import RULE, XrayScreen
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.rows import Column, Rows, fit_columns, fitted
from tests.tui.chatting import sure, until
from tests.tui.harbour import HarbourSession, state
from tests.tui.panel_app import PanelApp

UNASKED = object()
DESK = HarbourSession(state(20))
ROWS = inventory(DESK.view, DESK.context_usage)


class Opened(PanelApp):
    def __init__(self, desk: HarbourSession) -> None:
        super().__init__()
        self.desk = desk
        self.result: Any = UNASKED
        self.told: list[str] = []  # toasts go by themselves, and a busy machine may be slower than they are

    def notify(self, message: str, **more: Any) -> None:
        self.told.append(message)
        super().notify(message, **more)

    def on_mount(self) -> None:
        self.push_screen(XrayScreen(self.desk), self.take)

    def take(self, result: Any) -> None:
        self.result = result

    async def settle(self) -> None:
        await self.screen.workers.wait_for_complete()

    @property
    def rows(self) -> Rows[Any]:
        return self.screen.query_one(Rows)

    def heading(self) -> str:
        return str(self.screen.query_one(Heading).render())


async def test_the_biggest_come_first_and_enter_goes_there() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        tokens = [row.tokens for row in app.rows.items]
        assert tokens == sorted(tokens, reverse=True)
        await pilot.press("down")
        wanted = app.rows.current.group
        await pilot.press("enter")
        assert app.result == wanted


async def test_as_sent_a_line_tells_where_what_the_server_holds_ends() -> None:
    desk = HarbourSession(state(20))
    length = 10 - len(DESK.view.tools) + 1
    desk.cache = CacheState((Hold(1, time.time() + 3_000, length=length),), cold=NextCall(0.4))
    app = Opened(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        await app.settle()
        assert not [row for row in app.rows.items if row.kind == RULE], "by size there is no place for it"
        await pilot.press("o")
        await until(pilot, lambda: app.rows.items[10].kind == RULE)
        assert [row.cached for row in app.rows.items[:12]] == [True] * 10 + [False] * 2
        assert app.rows.items[10].what.startswith("─── held up to here, warm 4")
        await pilot.press("home", *["down"] * 10, "enter")
        await until(pilot, lambda: app.told)
        assert app.result is UNASKED and "holds" in app.told[-1]


async def test_what_a_change_costs_is_asked_with_it() -> None:
    desk = HarbourSession(state(20))
    desk.cache = CacheState(
        (Hold(desk.context_usage.used - 10, time.time() + 3_000, length=99),), "cold", NextCall(0.4)
    )
    app = Opened(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        await app.settle()
        place = next(
            n for n, row in enumerate(app.rows.items) if row.group and row.section not in ("summary", "pinned")
        )
        await pilot.press("home", *["down"] * place, "d")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert "tokens anew" in str(app.screen.query_one(Static).render())


async def test_a_change_can_wait_for_the_next_compaction_and_be_taken_back() -> None:
    desk = HarbourSession(state(20))
    app = Opened(desk)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        row = next(n for n, row in enumerate(app.rows.items) if row.group and row.section not in ("summary", "pinned"))
        await pilot.press("home", *["down"] * row)
        group = app.rows.current.group
        for key, kind in (("D", "drop"), ("S", "shrink")):
            await sure(pilot, key)
            await until(pilot, lambda kind=kind: desk.state.deferred == {group: kind})
            await until(pilot, lambda: "1 put off" in app.heading())
            assert (app.rows.current.group, app.screen.cells(app.rows.current)[-1][0][0]) == (group, "w")
        await sure(pilot, "S")
        await until(pilot, lambda: "put off" not in app.heading())
        assert desk.state.deferred == {} and desk.state.ledger.changes == state(20).ledger.changes


async def test_c_comes_back_with_what_to_compact_up_to() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        row = next(place for place, row in enumerate(app.rows.items) if row.group and row.section != "summary")
        await pilot.press(*["down"] * row)
        wanted = app.rows.current.group
        await pilot.press("c")
        assert app.result == f"up to:{wanted}"


async def test_o_and_a_click_on_a_title_sort() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        await pilot.press("o")
        assert [r.number for r in app.rows.items] == list(range(1, len(ROWS) + 1))
        title = app.rows.render_line(0).text.index("tokens")
        await pilot.click(Rows, offset=(title + 2, 0))
        assert app.rows.items[0].tokens == max(r.tokens for r in ROWS)


async def test_the_sum_follows_what_is_shown_as_it_is_sorted() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        for keys in ((), ("o",), ("f", "f"), ("F", "F"), ("slash", *"tide", "enter")):
            await pilot.press(*keys)
            rows = app.rows.items
            assert [r.running for r in rows] == list(accumulate(r.tokens for r in rows)), keys
        assert rows and len(rows) < len(ROWS)


async def test_what_was_shrunk_can_be_dropped_and_comes_back_step_by_step() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await app.settle()
        await pilot.press("down", "down")
        group, start = app.rows.current.group, app.desk.view
        shrunk = None
        for key in "sduu":
            await sure(pilot, key)
            await app.settle()
            await pilot.pause()
            shown = {r.group for r in app.rows.items}
            assert (group in shown) is (key != "d"), key
            assert sum(r.tokens for r in app.rows.items) == app.desk.context_usage.used
            if key == "s":
                shrunk = app.desk.view
            if key == "u" and shrunk:
                assert app.desk.view == shrunk
                shrunk = None
        assert app.desk.view == start and not app._notifications


async def test_p_lets_go_of_what_is_pinned() -> None:
    app = Opened(HarbourSession(state(20)))
    before = app.desk.view
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        await pilot.press("down")
        group = app.rows.current.group
        for pinned in (True, False):
            await sure(pilot, "p")
            await app.settle()
            await pilot.pause()
            assert (group in app.desk.state.ledger.pinned) is pinned
            assert app.rows.current.group == group and app.rows.current.pinned is pinned
        assert app.desk.view == before


async def test_a_pin_that_is_gone_before_the_rows_know_is_set_again() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        row = next(place for place, row in enumerate(app.rows.items) if row.group and not row.pinned)
        await sure(pilot, *["down"] * row, "p")
        await app.settle()
        assert app.rows.current.pinned
        await app.desk.undo()
        await sure(pilot, "p")
        await app.settle()
        assert app.rows.current.group in app.desk.state.ledger.pinned


async def test_pins_over_their_budget_and_pins_that_leave_nothing_to_compact_are_told_once() -> None:
    desk = HarbourSession(state(12, passes=0), window=16_000)
    desk.budgets = {"pinned": 6_000}
    app = Opened(desk)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await app.settle()
        for _ in range(60):
            row = next((r for r in app.rows.items if r.group and not r.pinned), None)
            if row is None:
                break
            app.rows.cursor = app.rows.items.index(row)
            await sure(pilot, "p")
            await app.settle()
            await pilot.pause()
        assert [m.split(":")[0].split(" ")[0] for m in app.told] == ["Pinned", "Pinned"], app.told
        assert "over the budget of 6.0k" in app.told[0] and "compaction cannot help" in app.told[1]


async def test_a_summary_leads_to_its_compaction_and_is_not_dropped() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await app.settle()
        app.rows.cursor = next(i for i, r in enumerate(app.rows.items) if r.section == "summary")
        await pilot.press("d")
        await app.settle()
        assert "undone" in next(iter(app._notifications)).message
        await pilot.press("enter")
        assert app.result == "change:k2"


async def test_a_part_of_the_gauge_filters_and_again_shows_all() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        gauge = app.screen.query_one(Gauge)
        place = gauge.render_line(0).text.index("U") + 1  # the gauge keeps a column free at its left
        await pilot.click(Gauge, offset=(place, 1))
        await pilot.pause()
        assert {r.section for r in app.rows.items} == {"user"} and "you" in app.heading()
        await pilot.click(Gauge, offset=(place, 1))
        await pilot.pause()
        assert len(app.rows.items) == len(ROWS)


async def test_words_filter_and_esc_leaves_the_field_first() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        await pilot.press("slash", *"tide result")
        assert app.rows.items and all("tide" in r.what and r.kind == "result" for r in app.rows.items)
        await pilot.press("enter")
        assert app.rows.has_focus and app.screen.query_one(Input).value == "tide result"
        await pilot.press("slash", "escape")
        assert app.rows.has_focus and app.result is UNASKED
        await pilot.press("escape")
        assert app.result is None


@pytest.mark.parametrize("key", ["d", "s"])
async def test_dropping_and_shrinking_show_in_the_gauge_at_once_and_undo_is_exact(key: str) -> None:
    app = Opened(HarbourSession(state(20)))
    before, record = app.desk.context_usage, app.desk.state.ledger.messages()
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        drawn = app.screen.query_one(Gauge).render_line(0).text
        await sure(pilot, "down", "down", key)
        await app.settle()
        await pilot.pause()
        assert app.desk.context_usage.used < before.used
        assert sum(r.tokens for r in app.rows.items) == app.desk.context_usage.used
        assert app.screen.query_one(Gauge).render_line(0).text != drawn
        await sure(pilot, "u")
        await app.settle()
        await pilot.pause()
        assert app.desk.context_usage == before
        assert app.screen.query_one(Gauge).render_line(0).text == drawn
        assert app.desk.state.ledger.messages() == record


async def test_a_pin_shows_and_the_cursor_stays_on_its_group() -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.settle()
        await pilot.press("down")
        group = app.rows.current.group
        await sure(pilot, "p")
        await app.settle()
        await pilot.pause()
        assert app.rows.current.group == group
        assert app.rows.current.pinned and app.rows.current.section == "pinned"


async def test_what_is_no_message_cannot_be_dropped() -> None:
    app = Opened(HarbourSession(state(20)))
    before = app.desk.state
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await app.settle()
        await pilot.press("o", "home", "d", "enter")
        await app.settle()
        assert app.desk.state is before and app.result is UNASKED


async def test_an_undo_with_nothing_to_undo_is_said() -> None:
    app = Opened(HarbourSession(state(3, passes=0)))
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await app.settle()
        await sure(pilot, "u")
        await app.settle()
        await pilot.pause()
        assert [n.message for n in app._notifications] == ["There is nothing to undo."]


async def test_an_empty_window_still_shows_its_frame() -> None:
    app = Opened(HarbourSession(SessionState()))
    async with app.run_test(size=(80, 24)) as pilot:
        await app.settle()
        assert {r.section for r in app.rows.items} == {"system", "tools", "memory", "injected"}
        await pilot.press("f", "f", "p", "d", "s", "end", "pageup")


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 8), (20, 5)])
async def test_it_fits(size: tuple[int, int]) -> None:
    app = Opened(HarbourSession(state(20)))
    async with app.run_test(size=size) as pilot:
        await app.settle()
        await pilot.pause()
        rows = app.rows
        assert all(rows.render_line(y).cell_length == rows.size.width for y in range(rows.size.height))
        assert "%" in app.screen.query_one(Gauge).render_line(0).text


async def test_ten_thousand_rows_are_drawn_only_where_they_are_seen() -> None:
    asked: list[int] = []

    def draw(number: int) -> tuple[str, ...]:
        asked.append(number)
        return (str(number),)

    class Long(PanelApp):
        def compose(self):
            yield Rows([Column("n")], draw)

    app = Long()
    async with app.run_test(size=(40, 20)) as pilot:
        rows = app.query_one(Rows)
        rows.focus()
        rows.show_items(range(10_000))
        await pilot.press("end")
        await until(pilot, lambda: rows.render_line(19).text.strip() == "9999")
        assert rows.current == 9_999
        assert len(set(asked)) <= 60
        await pilot.press("home", "pagedown")
        assert rows.current == 18


@given(st.integers(0, 200))
def test_columns_fit_and_the_lowest_ranks_stay(width: int) -> None:
    columns = [Column("a", 6, rank=2), Column("b"), Column("c", 8, rank=1), Column("d", 3)]
    shown = fit_columns(columns, width)
    places = [place for place, _, _ in shown]
    assert places == sorted(places) and {1, 3} <= set(places)
    assert 0 not in places or 2 in places, "the higher rank goes first"
    if width >= 20:
        assert shown[-1][1] + shown[-1][2] <= width
        gaps = {after - start - wide for (_, start, wide), (_, after, _) in pairwise(shown)}
        assert gaps in ({1}, {2}), "all the same"


def test_a_sign_stands_by_what_it_belongs_to_and_columns_stand_apart_where_there_is_room() -> None:
    columns = [Column("", 1), Column("name"), Column("tokens", 6, right=True, rank=1)]
    assert fit_columns(columns, 40) == [(0, 0, 1), (1, 2, 30), (2, 34, 6)]
    assert fit_columns(columns, 21) == [(0, 0, 1), (1, 2, 12), (2, 15, 6)]


@given(st.text(max_size=30), st.integers(0, 20), st.booleans())
def test_a_cell_is_as_wide_as_its_column(text: str, width: int, right: bool) -> None:
    from rich.cells import cell_len

    flat = "".join(c for c in text if c.isprintable())
    assert cell_len(fitted(flat, width, right)) == width


async def test_what_an_empty_list_says_is_read_whole_where_it_is_narrow() -> None:
    rows: Rows[str] = Rows((Column("what"),), lambda item: (item,), empty="Nothing is here yet. F8 brings something.")
    app = PanelApp()
    async with app.run_test(size=(20, 6)) as pilot:
        await app.screen.mount(rows)
        await pilot.pause()
        shown = [rows.render_line(y).text.rstrip() for y in range(5)]
        assert shown == ["Nothing is here yet.", "F8 brings something.", "", "", ""]
