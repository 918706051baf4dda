"""The flight recorder: the chart, the figures of every compaction, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Static

from ctxchat.core.cache_state import CacheBreak
from ctxchat.core.events import Usage
from ctxchat.core.journal import Changed, CompactionFinished, Measured, Sealed, SessionState, Undone, fold
from ctxchat.core.record import PutBack
from ctxchat.presentation.compactions import compaction_entries
from ctxchat.presentation.fill import DONE, REFUSED, UNDONE, FlightPoint, column, fill_points, fitting, moments
from ctxchat.tui.panels.compaction_detail import CompactionReport
from ctxchat.tui.panels.flight import FlightScreen
from ctxchat.tui.widgets.chart import TRIGGER_LINE, FillChart
from ctxchat.tui.widgets.rows import Rows
from tests.tui.fakes import FakeServices
from tests.tui.harbour import SUMMARY_A, SUMMARY_B, HarbourSession, at, digest, failed, history, state
from tests.tui.panel_app import PanelApp

UNASKED = object()
KEY = "sk-ant-" + "api03-" + "aB3d" * 6


def flight() -> SessionState:
    """Six turns; a compaction after the second, one refused after the fourth, one after the fifth that is undone."""
    groups = history(6)
    turns = {n: tuple(g for g in groups if g.turn == n) for n in range(1, 7)}
    used = dict(zip(turns, (4_000, 12_000, 7_000, 15_000, 26_000, 9_000), strict=True))
    records: list[Any] = []
    for number, its in turns.items():
        records += [Sealed(its), Measured("m", Usage(used[number], 10), used[number], turn_end=True, at=at(number))]
        ledger = fold(records).ledger
        if number == 2:
            first = digest(ledger, "k1", [g.id for g in turns[1]], SUMMARY_A, minute=30)
            assert first.record
            at_once = msgspec.structs.replace(first.record, seconds=0.01)
            records.append(Changed(msgspec.structs.replace(first, record=at_once)))
        if number == 4:
            told = f"The summary came back empty: {KEY} | [bold]"
            records.append(CompactionFinished(msgspec.structs.replace(failed("k2"), detail=told)))
        if number == 5:
            third = digest(ledger, "k3", [g.id for n in (1, 2) for g in turns[n]], SUMMARY_B, minute=61)
            records.append(Changed(third))
    return fold([*records, Undone("k3")])


class Opened(PanelApp):
    def __init__(self, begun: SessionState, folder: Path) -> None:
        super().__init__()
        self.over = FlightScreen(HarbourSession(begun, window=32_000), FakeServices(folder))
        self.result: Any = UNASKED

    def on_mount(self) -> None:
        self.push_screen(self.over, self.take)

    def take(self, result: Any) -> None:
        self.result = result

    def drawn(self, kind: type[FillChart] | type[Rows[Any]]) -> list[str]:
        widget = self.over.query_one(kind)
        return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]


def test_a_turn_that_was_stopped_does_not_shift_the_others() -> None:
    records: list[Any] = []
    for group in history(4):
        records.append(Sealed((group,)))
        last = group.kind == "reply" and group.turn in {
            1,
            4,
        }  # the second and third were stopped before they were counted
        records += [Measured("m", Usage(100, 10), 1_000 * group.turn, turn_end=True)] if last else []
    flown = fold(records)
    assert [(m.turn, m.used) for m in moments(flown)] == [(1, 1_000), (4, 4_000)]
    assert [p.used for p in fill_points(flown)] == [1_000, 4_000]


def test_passes_stand_where_they_happened() -> None:
    flown_ = moments(flight())
    assert [m.used for m in flown_ if m.turn] == [4_000, 12_000, 7_000, 15_000, 26_000, 9_000]
    signs = [(m.sign, m.compactions) for m in flown_]
    assert signs == [
        ("", ()),
        ("", ()),
        ("", ()),
        (DONE, ("k1",)),
        ("", ()),
        ("", ()),
        (REFUSED, ("k2",)),
        ("", ()),
        ("", ()),
        (UNDONE, ("k3",)),
        ("", ()),
    ]
    assert [(p.id, p.state_word, p.record.at) for p in compaction_entries(flight())] == [
        ("k3", "undone", at(61)),
        ("k2", "failed", at(51)),
        ("k1", "active", at(30)),
    ]


def test_a_session_without_endings_keeps_every_fill_and_pass() -> None:
    begun = state(12)
    flown_ = moments(begun)
    assert [m.used for m in flown_ if m.turn] == list(begun.fills)
    assert {p for m in flown_ for p in m.compactions} == {p.id for p in begun.compactions}


@given(st.lists(st.integers(0, 10**6), max_size=60), st.integers(1, 40))
def test_squeezing_hides_no_peak_and_no_pass(used: list[int], width: int) -> None:
    flown_ = [
        FlightPoint(n, i + 1, (f"k{i}",) if n % 3 == 0 else (), DONE if n % 3 == 0 else "") for i, n in enumerate(used)
    ]
    shown = fitting(flown_, width)
    assert len(shown) <= width
    assert max((m.used for m in shown), default=0) == max(used, default=0)
    assert [p for m in shown for p in m.compactions] == [p for m in flown_ for p in m.compactions]
    assert all(m.sign for m in shown if m.compactions)


@given(st.integers(0, 10**7), st.integers(1, 10**7), st.integers(1, 12))
def test_a_bar_is_never_higher_than_the_chart_nor_empty_for_something(used: int, top: int, height: int) -> None:
    drawn = column(used, top, height)
    assert len(drawn) == height
    assert (drawn.strip() == "") == (used == 0)
    if used >= top:
        assert drawn == "█" * height


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda path: len(path.name))


async def test_after_undo_in_part_a_row_tells_what_is_still_put_away(tmp_path: Path) -> None:
    whole = flight()
    [k1] = whole.ledger.compactions
    assert k1.record is not None
    part = msgspec.structs.replace(k1.record, back=PutBack(3, 5_000))
    begun = fold([Undone("k1"), Changed(msgspec.structs.replace(k1, record=part))], whole)
    app = Opened(begun, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("end")
        line = app.drawn(Rows)[3]
        assert "in part" in line and "24.4k → 14.2k" in line and "−10.2k" in line
        told = str(app.over.query_one("CompactionReport Static", Static).render())
        assert "3 messages, 5.0k; −10.2k left" in told


async def test_chart_and_figures(tmp_path: Path) -> None:
    app = Opened(flight(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        chart = app.drawn(FillChart)
        assert "27.9k" in chart[0] and any(TRIGGER_LINE in line for line in chart)
        assert [c for c in chart[-2] if c != " "] == [DONE, REFUSED, UNDONE]
        assert chart[-1].split() == ["turn", "1", "6"]
        lines = app.drawn(Rows)
        assert "undone" in lines[1] and "failed" in lines[2] and "active" in lines[3]
        assert "24.4k → 9.2k" in lines[3] and "−15.2k" in lines[3] and "claude-haiku-4-5" in lines[3]
        assert not any("0.0 s" in line for line in lines)
        await pilot.press("down")
        assert "| [bold]" in str(app.over.query_one("CompactionReport Static", Static).render())
        await pilot.press("down", "enter")
        assert app.result == "k1"


async def test_no_figure_is_cut_where_it_is_narrow(tmp_path: Path) -> None:
    app = Opened(flight(), tmp_path)
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        assert [line[-6:] for line in app.drawn(Rows)] == [" after", "→ 9.2k", " 24.4k", "→ 9.2k"]
        record = app.over.query_one(CompactionReport)
        assert record.region.height > 2, "and there is room for the record of the chosen one"
        assert record.vertical_scrollbar.region.right == 39, "at the edge, as in every list"


async def test_the_report_has_all_passes_and_no_secret(tmp_path: Path) -> None:
    app = Opened(flight(), tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("x")
        await app.over.workers.wait_for_complete()
        await pilot.press("x")
        await app.over.workers.wait_for_complete()
        (first,) = files_in(tmp_path)  # what says the same is not written twice
        text = first.read_text()
        first.write_text("mine")
        await pilot.press("x")
        await app.over.workers.wait_for_complete()
        (second,) = (path for path in files_in(tmp_path) if path != first)
        assert second.stat().st_mode & 0o077 == 0 and second.read_text() == text and first.read_text() == "mine"
        assert "4000, 12000, 7000, 15000, 26000, 9000" in text
        assert text.count("\n| 2026") == 3 and "compacted, undone" in text and "failed" in text
        assert KEY not in text and "[masked" in text
        assert "- limit: 27904" in text and "- ctxchat: " in text


async def test_the_report_shows_how_the_summary_changed(tmp_path: Path) -> None:
    app = Opened(state(20), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("x")
        await app.over.workers.wait_for_complete()
        (path,) = files_in(tmp_path)
        assert "```diff" in path.read_text() and "+- Restart Cormorant at 02:00 (open)" in path.read_text()


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    app = Opened(flight(), tmp_path / "gone")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("x")
        await app.over.workers.wait_for_complete()
        assert app.is_running and not (tmp_path / "gone").exists()


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 8)])
@pytest.mark.parametrize("begun", [SessionState(), state(40)], ids=["empty", "long"])
async def test_every_size_and_nothing_yet(size: tuple[int, int], begun: SessionState, tmp_path: Path) -> None:
    app = Opened(begun, tmp_path)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        if not begun.compactions:
            assert app.drawn(Rows)[0].startswith("Nothing was")
            await pilot.press("enter", "x")
        else:
            assert any("24.4k → 9.2k" in line or size[0] < 30 for line in app.drawn(Rows))
        await pilot.press("escape")
        assert app.result is None


def report_in(folder: Path) -> str:
    [report] = folder.glob("*.md")
    return report.read_text()


async def test_when_and_why_the_cache_broke_is_told_and_stands_in_the_report(tmp_path: Path) -> None:
    breaks = (CacheBreak("its 5 minutes were over", "", at(40)), CacheBreak(f"pin of m12 {KEY}\n", "m12", at(62)))
    app = Opened(msgspec.structs.replace(flight(), cache_breaks=breaks), tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        said = str(app.over.query_one("#breaks", Static).render())
        assert said.startswith("The cache broke twice, ") and said.index("pin of m12") < said.index("5 minutes")
        await pilot.press("x")
        await app.over.workers.wait_for_complete()
    text = report_in(tmp_path)
    assert "## Breaks of the cache" in text and "its 5 minutes were over" in text and KEY not in text
