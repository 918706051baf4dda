"""From a hit or a row to the message itself: the real program, its store and its screens, from key to place in the chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.program import Program
from ctxchat.config.themes import load_themes
from ctxchat.models.discovery import FoundModel, Offer
from ctxchat.storage import chat_import
from ctxchat.tui.app import CtxchatApp, Runtime
from ctxchat.tui.chat.offers import FirstChoice
from ctxchat.tui.panels.search import SearchScreen
from ctxchat.tui.panels.search_results import SearchResults
from ctxchat.tui.panels.xray import XrayScreen
from tests.cli.conftest import Home
from tests.cli.conftest import home as home
from tests.tui.chatting import until

TURNS = 70
MARKED = 7
"""The turn whose answer is looked for: far above what is mounted at first."""


def conversation() -> list[dict[str, str]]:
    said: list[dict[str, str]] = []
    for turn in range(TURNS):
        where = (
            "the quartz curlew keeps its key under the third step" if turn == MARKED else f"nothing new on day {turn}"
        )
        said += [
            {"role": "user", "content": f"What of day {turn}?"},
            {"role": "assistant", "content": f"{where}. " * 3},
        ]
    return said


@asynccontextmanager
async def opened(home: Home, *titles: str) -> AsyncIterator[tuple[CtxchatApp, Pilot[int], list[str]]]:
    """The app on the first of these sessions, which all hold the same conversation."""
    file = Path(home.put("talk.json", conversation()))
    async with Program.started(Flags(cwd=str(home.work), model="offline/assistant")) as program:
        ids = [chat_import.import_file(program.database, file, title) for title in titles]
        app = CtxchatApp(
            program,
            program.settings,
            load_themes(home.settings).themes,
            session_id=ids[0],
            runtime=Runtime(now=count().__next__),
        )
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: app.session is not None and app.session.context_usage.tokens("user") > 0)
            yield app, pilot, ids


def seen(app: CtxchatApp, text: str) -> bool:
    """The text is on screen, and something there was gone to."""
    return app.chat.transcript._found and text in _words(app)


def _words(app: CtxchatApp) -> str:
    return "\n".join(strip.text for strip in app.chat._compositor.render_strips())


async def test_from_a_hit_in_the_same_session_to_its_message(home: Home) -> None:
    async with opened(home, "birds") as (app, pilot, _):
        assert "quartz curlew" not in _words(app)
        await pilot.press("ctrl+f")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))
        await pilot.press(*"quartz curlew")
        await until(pilot, lambda: app.screen.query_one(SearchResults).chosen)
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.screen is app.chat and seen(app, "quartz curlew"))


async def test_from_a_hit_in_another_session_to_its_message_there(home: Home) -> None:
    async with opened(home, "birds", "more birds") as (app, pilot, (_, there)):
        await pilot.press("ctrl+f")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))
        await pilot.press(*"quartz curlew")
        found = lambda: app.screen.query_one(SearchResults)  # noqa: E731
        await until(pilot, lambda: found().chosen)
        await pilot.press("down")
        for _ in range(4):
            if found().chosen.session == there:
                break
            await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: app.session is not None and app.session.id == there and seen(app, "quartz curlew"))


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("turn", [MARKED, TURNS - 1])
async def test_from_a_row_of_the_xray_to_its_message(home: Home, turn: int, asked: bool) -> None:
    text = "quartz curlew" if turn == MARKED else f"new on day {turn}"
    async with opened(home, "birds") as (app, pilot, _):
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, XrayScreen) and len(app.screen.rows.items) > 2 * TURNS)
        if asked:  # below, a question takes room from the chat; it is not laid out before one is back
            models = [Offer(FoundModel(f"ollama_chat/m{n}", "ollama", True, 8192, "loaded")) for n in range(4)]
            await app.chat.questions.choose_model(FirstChoice(models))
        await pilot.press("slash", *text, "enter")
        await until(pilot, lambda: len(app.screen.rows.items) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.chat and seen(app, text))
