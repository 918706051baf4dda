"""What nobody expected: written down, said once, and the interface goes on where it can; in tests it fails them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.events import Key
from textual.widgets import Static

from ctxchat.tui.app import CtxchatApp, Runtime
from ctxchat.tui.panels.panel import Panel
from tests.tui.chatting import chatting, words
from tests.tui.fakes import FakeSession


def fail() -> None:
    raise ZeroDivisionError("nobody thought of that")


async def soon(holds: Callable[[], object]) -> None:
    """Pilot would wait for the widget in which something failed."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def type_(app: CtxchatApp, *keys: str) -> None:
    for key in keys:
        app.post_message(Key(key, key if len(key) == 1 else None))


class Broken(Panel[None]):
    BINDINGS = [Binding("x", "fail"), Binding("escape", "back")]

    def compose(self) -> ComposeResult:
        yield Static("broken")

    def action_fail(self) -> None:
        fail()


async def test_a_screen_in_which_something_failed_goes_and_the_chat_stays(tmp_path: Path) -> None:
    told: list[str] = []
    async with chatting(
        tmp_path, FakeSession(), runtime=Runtime(write_down=lambda e: told.append(repr(e)) or "It is in the log.")
    ) as there:
        app, pilot = there
        await pilot.press(*"half a ")
        await app.push_screen(Broken())
        app.screen.query_one(Static).call_later(fail)
        await soon(lambda: app.screen is app.chat)
        await soon(lambda: "It is in the log." in words(app))
        await app.push_screen(Broken())
        type_(app, "x", "escape", *"thought")
        await soon(lambda: app.chat.composer.draft == "half a thought")
        app.run_worker(_fails, exit_on_error=False)
        await soon(lambda: len(told) == 3)
        assert told == ["ZeroDivisionError('nobody thought of that')"] * 3
        assert app.return_code is None


async def _fails() -> None:
    fail()


async def test_where_nobody_writes_faults_down_they_are_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with chatting(tmp_path, FakeSession()) as (app, _):
            app.call_later(fail)
            await soon(lambda: not app.is_running)


async def test_a_screen_that_was_on_its_way_when_the_program_left_is_no_fault(tmp_path: Path) -> None:
    told: list[str] = []
    async with chatting(tmp_path, FakeSession(), runtime=Runtime(write_down=lambda e: told.append(repr(e)) or "")) as (
        app,
        _,
    ):
        app.exit(0)
        app._handle_exception(NoMatches("'#rows' of a screen that Textual has not filled, and will not any more"))
        assert (told, app.return_code) == ([], 0)
        app._exit = False  # `chatting` sees to the end
