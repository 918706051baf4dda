"""Sessions and models: lists to choose from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, Static

from ctxchat.config.schema import AgentSettings
from ctxchat.core.errors import StorageError
from ctxchat.models.discovery import FoundModel
from ctxchat.presentation.usage_text import fit_words, percent
from ctxchat.storage.sessions import SessionRow
from ctxchat.tui.panels.agents import own_words
from ctxchat.tui.panels.models import ModelsScreen, matching, price_words
from ctxchat.tui.panels.panel import CONFIRM_PAUSE_S, AskText, Confirm
from ctxchat.tui.panels.sessions import NEW, SessionsScreen, as_tree, folded
from ctxchat.tui.panels.themes import ThemesScreen
from ctxchat.tui.widgets.rows import Rows
from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeServices, FakeSession
from tests.tui.harbour import ROW, HarbourSession, at, state
from tests.tui.panel_app import PanelApp

UNASKED = object()
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def row(id: str, title: str, parent: str = "", **changes: Any) -> SessionRow:
    return msgspec.structs.replace(ROW, id=id, title=title, parent=parent, **changes)


SESSIONS = [
    row("s1", "harbour-logger"),
    row("s4", "[/x] \x1b]0;t\x07 notes", updated=at(-400)),
    row("s2", "night shift", "s1"),
    row("s3", "polling every 30 s", "s2"),
]
MODELS = [
    FoundModel("openai/gpt-5", "openai", False, 400_000, "catalogue", 1.25, 10, "no key: set OPENAI_API_KEY"),
    FoundModel("claude-sonnet-4-5", "anthropic", True, 200_000, "catalogue", 3, 15),
    FoundModel("ollama/[qwen3]:8b", "ollama", True, 512, "loaded", 0, 0, "local"),
    FoundModel("some/model", "some", True, 0, "assumed"),
]


class Opened(PanelApp):
    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self.over = screen
        self.result: Any = UNASKED

    def on_mount(self) -> None:
        self.push_screen(self.over, self.take)

    def take(self, result: Any) -> None:
        self.result = result

    def lines(self) -> list[str]:
        rows = self.over.query_one(Rows)
        return [rows.render_line(y).text for y in range(1 + len(rows.items))]

    async def settle(self) -> None:
        await Pilot(self).pause()
        await self.over.workers.wait_for_complete()
        await Pilot(self).pause()


def sessions(folder: Path, desk: HarbourSession | None = None) -> tuple[Opened, FakeServices]:
    doors = FakeServices(folder, rows=SESSIONS)
    return Opened(SessionsScreen(doors, desk, NOW)), doors


# ── sessions ──


async def test_forks_stand_below_what_they_came_from(tmp_path: Path) -> None:
    app, _ = sessions(tmp_path, HarbourSession())
    async with app.run_test(size=(120, 24)) as pilot:
        await app.settle()
        lines = app.lines()
        assert [line[2:40].rstrip() for line in lines[1:]] == [
            "harbour-logger",
            "└ night shift",
            "  └ polling every 30 s",
            "[/x] notes",
        ]
        assert lines[1].startswith("●") and "30 min" in lines[1] and "18.4k" in lines[1]
        await pilot.press("down", "enter")
        assert app.result == "s2"


@pytest.mark.parametrize(("messages", "chosen"), [(0, "s4"), (7, "s1")])
async def test_from_a_session_without_a_word_enter_goes_on_with_the_last_one(
    tmp_path: Path, messages: int, chosen: str
) -> None:
    rows = [msgspec.structs.replace(SESSIONS[0], messages=messages), *SESSIONS[1:]]
    app = Opened(SessionsScreen(FakeServices(tmp_path, rows=rows), HarbourSession(), NOW))
    async with app.run_test(size=(120, 24)) as pilot:
        await app.settle()
        await pilot.press("enter")
        assert app.result == chosen


async def test_what_was_said_last_is_told_of_the_one_under_the_cursor(tmp_path: Path) -> None:
    app, doors = sessions(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        for id, key in (("s1", "down"), ("s2", "")):
            glance = f"you    Where is [b]{id}[/]? here\nanswer At Pier 7."
            await until(pilot, lambda said=glance: str(app.over.query_one("#glance", Static).render()) == said)
            await pilot.press(*filter(None, [key]))
        assert doors.glanced == ["s1", "s2"]


@pytest.mark.parametrize(("window", "said"), [(32_000, "66 %"), (20_000, "2.5k over")])
async def test_each_session_says_whether_it_would_fit_the_model_in_use(tmp_path: Path, window: int, said: str) -> None:
    app, _ = sessions(tmp_path, HarbourSession(window=window))
    async with app.run_test(size=(80, 24)):
        await app.settle()
        assert all(f" {said}" in line for line in app.lines()[1:]), app.lines()


async def test_what_no_server_has_counted_is_marked(tmp_path: Path) -> None:
    doors = FakeServices(tmp_path, rows=[msgspec.structs.replace(row, estimated=True) for row in SESSIONS])
    app = Opened(SessionsScreen(doors, HarbourSession(window=32_000), NOW))
    async with app.run_test(size=(120, 24)):
        await app.settle()
        assert all("~18.4k" in line and "~66 %" in line for line in app.lines()[1:]), app.lines()


async def test_typing_finds_and_enter_goes_on(tmp_path: Path) -> None:
    app, _ = sessions(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.settle()
        await pilot.press("slash", *"polling", "enter", "enter")
        assert app.result == "s3"


async def test_n_is_a_new_one(tmp_path: Path) -> None:
    app, _ = sessions(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("n")
        assert app.result == NEW and app.result is not None


async def test_deleting_asks_first_and_no_keeps_it(tmp_path: Path) -> None:
    app, doors = sessions(tmp_path)
    time = [0.0]
    app.now = lambda: time[0]
    async with app.run_test(size=(80, 24)) as pilot:
        await app.settle()
        await pilot.press("down", "d")
        await pilot.pause()
        assert isinstance(app.screen, Confirm)
        await pilot.press("escape")
        await app.settle()
        assert len(doors.rows) == 4
        await pilot.press("d")
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, Confirm) and len(doors.rows) == 4, "it came too soon after the key that asked"
        time[0] += CONFIRM_PAUSE_S
        await pilot.press("enter")
        await app.settle()
        await pilot.pause()
        assert [r.id for r in doors.rows] == ["s1", "s4", "s3"]
        assert len(app.lines()) == 4


async def test_the_open_session_is_not_deleted(tmp_path: Path) -> None:
    app, doors = sessions(tmp_path, HarbourSession())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await app.settle()
        await pilot.press("d")
        await app.settle()
        assert app.screen is app.over and len(doors.rows) == 4


async def test_renaming_the_open_session_and_another(tmp_path: Path) -> None:
    desk = HarbourSession()
    app, doors = sessions(tmp_path, desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.settle()
        await pilot.press("r")
        await pilot.pause()
        assert isinstance(app.screen, AskText)
        app.screen.query_one(Input).value = "tides"
        await pilot.press("enter")
        await app.settle()
        assert desk.state.title == "tides"
        await pilot.press("down", "r")
        await pilot.pause()
        app.screen.query_one(Input).value = "nights"
        await pilot.press("enter")
        await app.settle()
        await pilot.pause()
        assert doors.by_id["s2"].state.title == "nights"
        assert any("nights" in line for line in app.lines())


async def test_a_fork_appears_under_its_parent_with_the_cursor_on_it(tmp_path: Path) -> None:
    app, doors = sessions(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.settle()
        await pilot.press("f")
        await app.settle()
        await pilot.pause()
        assert doors.rows[-1].parent == "s1"
        rows = app.over.query_one(Rows)
        assert rows.current.row.id == doors.rows[-1].id and rows.current.depth == 1


async def test_no_session_is_said(tmp_path: Path) -> None:
    app = Opened(SessionsScreen(FakeServices(tmp_path), None, NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await app.settle()
        assert "No session is stored yet" in app.over.query_one(Rows).render_line(0).text
        await pilot.press("enter", "r", "f", "d")
        assert app.result is UNASKED


class Broken(FakeServices):
    async def sessions(self) -> list[SessionRow]:
        raise StorageError("The store [/x] cannot be read.", "Run ctxchat doctor.")


async def test_a_store_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    app = Opened(SessionsScreen(Broken(tmp_path), None, NOW))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await app.settle()
        await pilot.pause()
        assert [n.message for n in app._notifications] == ["The store [/x] cannot be read. Run ctxchat doctor."]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12, unique_by=lambda pair: pair[0]))
def test_every_session_is_in_the_tree_once_whatever_its_parents(pairs: list[tuple[int, int]]) -> None:
    rows = [row(f"s{own}", "t", f"s{parent}") for own, parent in pairs]
    tree = as_tree(rows)
    assert sorted(b.row.id for b in tree) == sorted(r.id for r in rows)


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=12, unique_by=lambda given: given[0]
    ),
    st.sets(st.integers(0, 9)),
)
def test_sub_agents_are_folded_with_what_came_of_them(given_rows: list[tuple[int, int, bool]], open_: set[int]) -> None:
    rows = [
        msgspec.structs.replace(row(f"s{own}", "t", f"s{parent}"), delegated=delegated)
        for own, parent, delegated in given_rows
    ]
    tree, unfolded = as_tree(rows), {f"s{n}" for n in open_}
    shown = [b.row.id for b in folded(tree, unfolded)]
    assert [b.row.id for b in folded(tree, {r.id for r in rows})] == [b.row.id for b in tree]
    assert shown == [b.row.id for b in tree if b.row.id in shown], "in their order"
    for branch in tree:
        stands_below = branch.depth > 0
        if not branch.row.delegated and not stands_below:
            assert branch.row.id in shown
        if stands_below and branch.row.delegated and branch.row.parent not in unfolded:
            assert branch.row.id not in shown


async def test_sub_agents_unfold(tmp_path: Path) -> None:
    below = [msgspec.structs.replace(row(f"t{n}", f"Task {n}", "s1"), delegated=True) for n in range(3)]
    doors = FakeServices(tmp_path, rows=[row("s1", "Pier"), *below, row("s2", "Other")])
    app = Opened(SessionsScreen(doors, None, NOW))
    async with app.run_test(size=(80, 24)) as pilot:
        await app.settle()
        await pilot.pause()
        assert "Pier   +3 sub-agents" in app.lines()[1] and "Other" in app.lines()[2]
        await pilot.press("space")
        assert ["Task" in line for line in app.lines()[1:6]] == [False, True, True, True, False]
        await pilot.press("down", "space", "up", "space")
        assert "Other" in app.lines()[2]
        await pilot.press("slash", *"task")
        assert "Task 0" in app.lines()[1]


# ── models ──


def models(folder: Path) -> Opened:
    return Opened(ModelsScreen(FakeServices(folder, models=MODELS), HarbourSession(state(20))))


async def test_each_model_says_whether_this_session_fits(tmp_path: Path) -> None:
    app = models(tmp_path)
    async with app.run_test(size=(140, 24)) as pilot:
        await app.settle()
        lines = app.lines()
        context_usage = app.over._session.context_usage
        assert lines[1].startswith("●") and "3.00 / 15.00" in lines[1]
        assert f"fits, {percent(context_usage.pressure)}" in lines[1], "the gauge's own share"
        assert "over" in lines[2] and "free" in lines[2] and "[qwen3]" in lines[2]
        assert "not known" in lines[3]
        assert "no key" in lines[4]
        await pilot.press("down", "enter")
        assert app.result == "ollama/[qwen3]:8b"


@pytest.mark.parametrize("size", [(40, 20), (80, 24)])
async def test_window_and_fit_outlive_the_price_where_it_is_narrow(tmp_path: Path, size: tuple[int, int]) -> None:
    app = models(tmp_path)
    async with app.run_test(size=size) as pilot:
        await app.settle()
        await pilot.pause()
        lines = app.lines()
        assert ("3.00 / 15.00" in lines[1]) == (size[0] == 80)
        assert lines[1].startswith("● claude-sonnet-4-5 ") and "fits, 4" in lines[1] and "32k" in lines[1]
        assert " 512 " in lines[2] and " over" in lines[2]
        about = str(app.over.query_one("#about", Static).render())
        assert "3.00 / 15.00" in about and "claude-sonnet-4-5" in about, "the whole of the row is told below"


async def test_the_model_in_use_is_listed_whoever_named_it(tmp_path: Path) -> None:
    app = Opened(ModelsScreen(FakeServices(tmp_path, models=MODELS[2:]), HarbourSession(state(20))))
    async with app.run_test(size=(140, 24)):
        await app.settle()
        line = app.lines()[1]
        assert line.startswith("● claude-sonnet-4-5") and " 32k " in line and "in use" in line


async def test_a_model_that_cannot_be_had_says_why_instead(tmp_path: Path) -> None:
    app = models(tmp_path)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await app.settle()
        await pilot.press("end", "enter")
        await pilot.pause()
        assert app.result is UNASKED
        assert "no key: set OPENAI_API_KEY" in next(iter(app._notifications)).message


async def test_typing_narrows_the_list(tmp_path: Path) -> None:
    app = models(tmp_path)
    async with app.run_test(size=(120, 24)) as pilot:
        await app.settle()
        await pilot.press("slash", *"qwen", "enter", "enter")
        assert app.result == "ollama/[qwen3]:8b"


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 6)])
async def test_both_fit(size: tuple[int, int], tmp_path: Path) -> None:
    for app in (models(tmp_path), sessions(tmp_path)[0]):
        async with app.run_test(size=size):
            await app.settle()
            assert all(len(line) == app.over.query_one(Rows).size.width for line in app.lines()[:1])


def test_words_for_prices_and_room() -> None:
    assert [price_words(m) for m in MODELS] == ["1.25 / 10.00", "3.00 / 15.00", "free", ""]
    assert fit_words(0, 0) == "not known"
    assert fit_words(9_000, 8_000) == "1.0k over"
    assert fit_words(4_000, 8_000) == "fits, 50 %"
    assert [m.name for m in matching(MODELS, "")][-1] == "openai/gpt-5"
    assert matching(MODELS, "zzzz") == []


def test_what_an_agent_has_of_its_own_is_said_as_it_stands_in_the_file() -> None:
    agent = AgentSettings(tools=(), context={"strategy": "truncate", "tool_results": {"max_tokens": 4000}})
    assert own_words(agent) == (
        'tools: none; context.strategy = "truncate"; context.tool_results = { max_tokens = 4000 }'
    )


@pytest.mark.parametrize("way_out", ["enter", "f3", "escape"])
async def test_a_theme_that_was_only_looked_at_is_not_worn_on(tmp_path: Path, way_out: str) -> None:
    async with chatting(tmp_path, FakeSession(lambda _: [])) as (app, pilot):
        before = app.theme
        await pilot.press(*"/theme", "enter")
        await until(pilot, lambda: isinstance(app.screen, ThemesScreen))
        await pilot.press("end")
        assert app.theme != before
        if way_out == "enter":
            await pilot.press("slash", *"zzz", "enter")
        await pilot.press(way_out)
        await until(pilot, lambda: not isinstance(app.screen, ThemesScreen))
        assert app.theme == before
