"""Settings on screen: shown with their origin, changed in the person's own file, and read back."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Static

from ctxchat.config.effective import Loaded, load_settings
from ctxchat.config.option_table import Option
from ctxchat.config.schema.option import Facts
from ctxchat.core.cache_state import CacheState, Hold, NextCall
from ctxchat.core.errors import UsageError
from ctxchat.tui.app import AppFiles
from ctxchat.tui.panels.panel import Confirm
from ctxchat.tui.panels.settings import ChangeScreen, SettingsScreen, parsed
from ctxchat.tui.transcript.blocks import ErrorBlock
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.rows import Rows
from tests.tui.chatting import blocks, chatting, sure, until
from tests.tui.fakes import FakeSession
from tests.tui.harbour import HarbourSession
from tests.tui.panel_app import PanelApp

MINE = "# mine\n[context]\nkeep_recent = 6 # a few\n"
UNASKED = object()


class Opened(PanelApp):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self.over = screen(file, HarbourSession(), CTXCHAT_INTERFACE__BELL="false")
        self.result: Any = UNASKED

    def on_mount(self) -> None:
        self.push_screen(self.over, self.take)

    def take(self, result: Any) -> None:
        self.result = result

    @property
    def rows(self) -> Rows[Any]:
        return self.over.query_one(Rows)

    def about(self) -> str:
        return str(self.over.query_one("#about", Static).render())

    async def find(self, pilot: Any, words: str) -> None:
        self.over.query_one(Input).value = words
        await pilot.pause()

    async def settle(self, pilot: Any) -> None:
        await pilot.pause()
        await self.over.workers.wait_for_complete()
        await pilot.pause()


def screen(file: Path, desk: HarbourSession, **environ: str) -> SettingsScreen:
    reader = partial(load_settings, config=file, environ=environ, known=lambda _: ())
    return SettingsScreen(reader(), reader, file, desk)


def written(file: Path) -> str:
    return file.read_text()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(MINE)
    return path


async def test_every_option_says_where_it_comes_from(file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.find(pilot, "context.keep_recent")
        line = app.rows.render_line(1).text
        assert "6" in line and "config.toml:3" in line
        await app.find(pilot, "interface.bell")
        assert "set by CTXCHAT_INTERFACE__BELL" in app.about()
        await app.find(pilot, "compression_trigger")
        assert "here: " in app.about()


async def test_a_number_is_typed_and_the_comments_stay(file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.find(pilot, "context.keep_recent")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ChangeScreen)
        app.screen.query_one(Input).value = "9"
        await pilot.press("enter")
        await app.settle(pilot)
        assert written(file) == MINE.replace("6 #", "9 #")
        assert app.rows.current.value == 9
        await pilot.press("escape")
        assert app.result is True


async def test_words_and_truth_values_take_one_key_and_go_back_with_one(file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.find(pilot, "context.reactive.enabled")
        await pilot.press("enter")
        await app.settle(pilot)
        assert app.rows.current.value is False and "enabled = false" in written(file)
        await pilot.press("backspace")
        await app.settle(pilot)
        assert app.rows.current.value is True and "enabled" not in written(file)


async def test_what_an_edit_costs_the_conversation_under_way_is_asked_first(file: Path) -> None:
    app = Opened(file)
    desk = app.over._session
    assert isinstance(desk, HarbourSession)
    desk.cache = CacheState((Hold(desk.context_usage.used, time.time() + 3_000, length=99),), "cold", NextCall(0.4))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.find(pilot, "context.reactive.enabled")
        assert "anew" not in app.about()
        await app.find(pilot, "tools.web")
        assert "tokens anew" in app.about()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert "tokens anew" in str(app.screen.query_one(Static).render())
        await pilot.press("escape")
        await app.settle(pilot)
        assert written(file) == MINE
        await sure(pilot, "enter")
        await until(pilot, lambda: "web = false" in written(file))
        await app.find(pilot, "context.shown_tokens")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ChangeScreen))
        await pilot.press(*"9000", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert "up to" in str(app.screen.query_one(Static).render())


async def test_what_would_begin_requests_anew_can_wait_for_the_next_compaction(file: Path) -> None:
    app = Opened(file)
    desk = app.over._session
    assert isinstance(desk, HarbourSession)
    desk.cache = CacheState((Hold(desk.context_usage.used, time.time() + 3_000, length=99),), "cold", NextCall(0.4))
    async with app.run_test(size=(120, 30)) as pilot:
        await app.find(pilot, "tools.web")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("w")
        await until(pilot, lambda: "web = false" in written(file))
        assert desk.deferred.settings == {"tools.web": True}
        await until(pilot, lambda: "Waits for the next compaction; until then true holds here" in app.about())
        await pilot.press("enter")
        await until(pilot, lambda: "web = true" in written(file))
        assert not desk.deferred, "it holds here all the time: nothing is asked"


async def test_a_wrong_value_is_refused_in_words_and_nothing_is_written(file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await app.find(pilot, "context.keep_recent")
        await pilot.press("enter")
        await pilot.pause()
        said = app.screen.query_one("#effect", Static)
        for wrong in ("[/many]", "0", "-3", "1.5"):
            app.screen.query_one(Input).value = wrong
            await pilot.pause()
            assert "must be a whole number from 1" in str(said.render()), "at once, while it is typed"
            await pilot.press("enter")
            await pilot.pause()
            assert isinstance(app.screen, ChangeScreen) and written(file) == MINE
        app.screen.query_one(Input).value = "7"
        await pilot.pause()
        assert "must be" not in str(said.render())
        await pilot.press("escape", "escape")
        assert app.result is None and written(file) == MINE


async def test_what_the_environment_set_is_not_taken_back_here(file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await app.find(pilot, "interface.bell")
        await pilot.press("backspace")
        await app.settle(pilot)
        assert "CTXCHAT_INTERFACE__BELL" in next(iter(app._notifications)).message


async def test_only_what_is_set(file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("c")
        assert {r.key for r in app.rows.items} == {"context.keep_recent", "interface.bell"}


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 8)])
async def test_it_fits(size: tuple[int, int], file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=size):
        assert app.rows.size.height > 0
        assert app.rows.render_line(1).cell_length == app.rows.size.width


async def test_while_a_value_is_typed_it_is_told_and_the_bar_moves(file: Path) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.find(pilot, "compression_trigger")
        await pilot.press("enter")
        await pilot.pause()
        said, bar = app.screen.query_one("#effect", Static), app.screen.query_one(Gauge)
        app.screen.query_one(Input).value = "0.4"
        await pilot.pause()
        assert str(said.render()).startswith("0.4 = at 11.2k of 27.9k")
        low = bar.render_line(0).text.index("╷")
        app.screen.query_one(Input).value = "0.7"
        await pilot.pause()
        assert bar.render_line(0).text.index("╷") > low + 5
        app.screen.query_one(Input).value = "nonsense ["
        await pilot.pause()
        assert "must be a number" in str(said.render()) and bar.render_line(0).text.index("╷") > low + 5
        await pilot.press("escape")
        assert written(file) == MINE


async def test_advice_stands_above_the_options_and_leads_to_its_own(file: Path) -> None:
    app = Opened(file)
    desk = HarbourSession(window=2_000)  # system and tools alone fill a third of it and more
    app.over = screen(file, desk)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        said = app.over.query_one("#advice", Static)
        assert said.display and "No compaction can free" in str(said.render())
        await pilot.press("a")
        await pilot.pause()
        assert app.rows.current.key == "agent"


async def test_a_session_that_went_well_leaves_the_room_to_the_options(file: Path) -> None:
    app = Opened(file)
    app.over = screen(file, HarbourSession(window=400_000))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        assert not app.over.query_one("#advice", Static).display


async def test_left_during_a_write_it_says_that_something_was_written(file: Path) -> None:
    app, go = Opened(file), threading.Event()

    def change(path: Path) -> None:
        go.wait(10)
        path.write_text("")

    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        app.over.run_worker(app.over.change_file(change))
        await pilot.pause()
        await pilot.press("escape")
        assert app.result is UNASKED
        go.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.result is True


@pytest.mark.parametrize("presses", [2, 3])
async def test_pressed_several_times_quickly_it_goes_on_as_often(file: Path, presses: int) -> None:
    app = Opened(file)
    async with app.run_test(size=(120, 30)) as pilot:
        await app.find(pilot, "auto_compact")
        for _ in range(presses):
            app.over.action_choose()
        await app.settle(pilot)
        assert app.over.chosen and app.over.chosen.value == ("auto", "ask", "off")[presses % 3]


@pytest.mark.parametrize("command", ["/settings", "/keys", "/secrets", "/permissions"])
async def test_settings_that_cannot_be_read_are_said_in_the_chat(tmp_path: Path, command: str) -> None:
    def gone() -> Loaded:
        raise UsageError("mine.toml: there is no such settings file.", "Without --config your own is used.")

    async with chatting(tmp_path, FakeSession(lambda _: []), files=AppFiles(load_settings=gone)) as (app, pilot):
        await pilot.press(*command, "enter")
        await until(pilot, lambda: blocks(app, ErrorBlock))
        (said,) = blocks(app, ErrorBlock)
        assert said.text == "mine.toml: there is no such settings file." and app.screen is app.chat


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ('code --wait "$FILE"', 'code --wait "$FILE"'),
        ("'abc'", "abc"),
        ('"a\\tb"', "a\tb"),
        (' "', '"'),
        ('"a" "b"', '"a" "b"'),
    ],
)
def test_text_is_what_was_typed_unless_all_of_it_is_quoted(typed: str, value: str) -> None:
    assert parsed(typed, Option(("interface", "editor"), str, "", Facts())) == value
