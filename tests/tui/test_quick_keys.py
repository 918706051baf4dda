"""Keys that open, close and move in every screen, two and three at a time and in long rows, without a pause between them: each
reaches the screen it was meant for, and none ends the interface."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import chain, product, repeat
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Input

from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.panel import Over, Panel
from ctxchat.tui.panels.search import SearchScreen
from ctxchat.tui.panels.settings import SettingsScreen
from ctxchat.tui.panels.xray import XrayScreen
from tests.doubles.scripted import says
from tests.tui.chatting import chatting, idle, until
from tests.tui.fakes import FakeSession
from tests.tui.harbour import state
from tests.tui.real import LONG, say, talking

SCREENS = ("f1", "f3", "f4", "f9", "f10", "ctrl+f", "alt+l", "ctrl+t", "ctrl+p", "f8")
KEYS = (
    *SCREENS,
    "f2",
    "f5",
    "f6",
    "f7",
    "shift+f8",
    "escape",
    "enter",
    "tab",
    "shift+tab",
    "up",
    "down",
    "space",
    "u",
    "y",
    "d",
    "/",
)
SEEDS = 1
LONG_SEEDS = 40


@asynccontextmanager
async def there(tmp_path: Path) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """A session with compactions, and no model behind it."""
    session = FakeSession()
    session.state = state()
    async with chatting(tmp_path, session) as (app, pilot):
        yield app, pilot


@asynccontextmanager
async def with_a_model(tmp_path: Path) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """A real session with a compaction, and a model that always answers."""
    script = chain((says(f"{n}. {LONG}") for n in range(4)), repeat(says("Aye.")))
    async with talking(tmp_path, script, size=(100, 30)) as (app, pilot, _):
        for text in ("one", "two", "three", "four"):
            await say(app, pilot, text)
        await pilot.press("shift+f8")
        await idle(app, pilot)
        yield app, pilot


async def burst(app: CtxchatApp, pilot: Pilot[int], keys: Sequence[str]) -> None:
    """All of them are there before the first is looked at; then wait until the last has done what it does."""
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else "\r" if key == "enter" else None))
    await quiet(app, pilot)


async def quiet(app: CtxchatApp, pilot: Pilot[int]) -> None:
    await pilot.pause()
    await until(pilot, lambda: not app.taking_input)
    assert app.is_running
    assert all(screen.is_mounted and screen.is_running for screen in app.screen_stack)


async def home(app: CtxchatApp, pilot: Pilot[int]) -> None:
    app.close_screens()
    await until(pilot, lambda: app.screen is app.chat and not app.taking_input)
    app.controller.interrupt()
    app.chat.composer.set_draft("")
    await idle(app, pilot)
    app.chat.composer.set_draft("")
    app.chat.composer.prompt.focus()


async def test_the_key_of_a_screen_twice_is_as_if_it_was_never_pressed(tmp_path: Path) -> None:
    async with there(tmp_path) as (app, pilot):
        for key in ("f3",):
            await burst(app, pilot, [key, key])
            assert app.screen is app.chat
            await burst(app, pilot, ["ctrl+p", key, key])
            assert app.screen is app.chat
            await burst(app, pilot, [key])
            assert app.screen is not app.chat
            await home(app, pilot)


async def test_each_key_reaches_the_screen_that_is_there_when_its_turn_comes(tmp_path: Path) -> None:
    async with there(tmp_path) as (app, pilot):
        await burst(app, pilot, ["ctrl+f", *"pier", "escape", "escape", "x"])
        assert (app.screen, app.chat.composer.draft) == (app.chat, "x")
        await burst(app, pilot, ["ctrl+f", *"pier"])
        assert isinstance(app.screen, SearchScreen) and app.screen.query_one(Input).value == "pier"
        await burst(app, pilot, ["f3", "f4", "f3"])
        assert isinstance(app.screen, ArchiveScreen) and len(app.screen_stack) == 2
        await burst(app, pilot, ["3", "down", "enter", "f4"])
        assert isinstance(app.screen, XrayScreen) and len(app.screen_stack) == 2
        await burst(app, pilot, ["escape", "escape", "escape", *" and"])
        assert app.chat.composer.draft == "x and" and app.screen is app.chat


async def test_a_screen_that_is_closed_from_below_takes_with_it_what_lies_over_it(tmp_path: Path) -> None:
    async with there(tmp_path) as (app, pilot):
        await burst(app, pilot, ["f3", "down", "3"])
        assert isinstance(app.screen, ArchiveScreen)
        detail = app.screen.detail
        await until(pilot, lambda: detail.current_message)
        await burst(app, pilot, ["down", "enter"])  # the first line stands for an earlier compaction
        assert len(app.screen_stack) == 3
        below = app.screen_stack[1]
        assert isinstance(below, Over)
        below.dismiss(None)
        below.dismiss(None)
        await quiet(app, pilot)
        assert app.screen is app.chat


async def test_a_paste_behind_a_key_goes_to_the_screen_that_comes(tmp_path: Path) -> None:
    async with there(tmp_path) as (app, pilot):
        app.post_message(Key("ctrl+f", None))
        app.post_message(Paste("cormorant"))
        app.post_message(Key("!", "!"))
        await quiet(app, pilot)
        assert app.screen.query_one(Input).value == "cormorant!" and not app.chat.composer.draft


async def test_a_screen_that_is_slow_to_come_gets_the_keys_that_are_meant_for_it(tmp_path: Path) -> None:
    class Slow(Panel[str]):
        BINDINGS = [Binding("y", "back", "close")]

        async def on_mount(self) -> None:
            await asyncio.sleep(1.2)

    async with there(tmp_path) as (app, pilot):
        app.push_screen(Slow())
        await burst(app, pilot, ["y", "x"])
        assert (app.screen, app.chat.composer.draft) == (app.chat, "x")


async def test_what_is_typed_behind_esc_goes_to_the_chat_though_settings_are_still_being_written(
    tmp_path: Path,
) -> None:
    written = threading.Event()
    async with there(tmp_path) as (app, pilot):
        await pilot.press("f12")
        await until(pilot, lambda: app.screen is not app.chat)
        screen = app.screen
        assert isinstance(screen, SettingsScreen)
        screen.run_worker(screen.change_file(lambda file: written.wait(10)))
        for key in ("escape", "h", "i"):
            app.post_message(Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert app.screen is screen and not app.chat.composer.draft
        written.set()
        await until(pilot, lambda: app.screen is app.chat)
        await quiet(app, pilot)
        assert app.chat.composer.draft == "hi"


async def test_the_key_to_leave_does_not_wait_for_long_for_what_hangs(tmp_path: Path) -> None:
    async with there(tmp_path) as (app, pilot):
        app.expect_screen()
        for key in ("x", "f3", "f4", "ctrl+q"):
            app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: not app.is_running)
        assert app.return_code == 0


async def test_what_piles_up_of_itself_is_not_worked_off_one_by_one(tmp_path: Path) -> None:
    async with there(tmp_path) as (app, pilot):
        letters = "gauge " * 30
        for sign in letters:
            app.post_message(Key(sign, sign))
        for _ in range(200):
            app.post_message(Key("pagedown", None))
        app.post_message(Key("!", "!"))
        await quiet(app, pilot)
        assert app.chat.composer.prompt.text == letters + "!"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_rows_of_keys(tmp_path: Path, seed: int) -> None:
    await rows(there(tmp_path), seed, 3, 10)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + LONG_SEEDS))
async def test_many_rows_of_keys(tmp_path: Path, seed: int) -> None:
    await rows(with_a_model(tmp_path), seed, 15, 20)


async def rows(
    there: AbstractAsyncContextManager[tuple[CtxchatApp, Pilot[int]]], seed: int, count: int, length: int
) -> None:
    chosen = random.Random(seed)
    async with there as (app, pilot):
        for _ in range(count):
            await burst(app, pilot, chosen.choices(KEYS, k=chosen.randrange(2, length)))
            if chosen.random() < 0.5:
                await home(app, pilot)
        await home(app, pilot)
        await burst(app, pilot, "still here")
        assert app.chat.composer.draft == "still here"


@pytest.mark.long
@pytest.mark.parametrize("first", KEYS)
async def test_all_pairs(tmp_path: Path, first: str) -> None:
    async with there(tmp_path) as (app, pilot):
        for second in KEYS:
            await burst(app, pilot, [first, second])
            await home(app, pilot)


@pytest.mark.long
@pytest.mark.parametrize("first", SCREENS)
async def test_triples(tmp_path: Path, first: str) -> None:
    """All of the keys that open screens, and some with the others."""
    others = [pair for pair in product(KEYS, KEYS) if not set(pair) <= set(SCREENS)]
    triples = [*product(SCREENS, SCREENS), *random.Random(first).sample(others, 50)]
    async with there(tmp_path) as (app, pilot):
        for second, third in triples:
            await burst(app, pilot, [first, second, third])
            await home(app, pilot)


async def test_page_keys_do_nothing_in_a_list_that_has_no_room(tmp_path: Path) -> None:
    async with there(tmp_path) as (app, pilot):
        for opened in ("ctrl+p", "ctrl+f"):
            await burst(app, pilot, [opened, *"pier", "down"])
            await pilot.resize_terminal(2, 2)
            await until(pilot, lambda: app.size == (2, 2))
            await burst(app, pilot, ["pageup", "pagedown", "tab", "pageup", "pagedown"])
            await pilot.resize_terminal(100, 30)
            await home(app, pilot)
