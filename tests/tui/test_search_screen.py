"""Search on screen, over a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Static

from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Named, Sealed
from ctxchat.core.messages import Message
from ctxchat.storage import sessions
from ctxchat.storage.archive import Hit, search
from ctxchat.storage.database import Database
from ctxchat.tui.screens.search import SearchScreen, highlighted
from ctxchat.tui.widgets.rows import Rows
from tests.tui.desk import Desk, at, history
from tests.tui.panel_app import PanelApp

UNASKED = object()


class Store:
    """Who looks, in a real database with two sessions."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        self.here = sessions.create(self.database, records=[Named("harbour"), Sealed(history(3))])
        said = group_messages([Message(1, "user", "The [bold]Cormorant[/] \x1b[2Jflies at night", at=at(5))])
        self.there = sessions.create(self.database, records=[Named("birds [/x]"), Sealed(said)])

    async def search(self, query: str) -> list[Hit]:
        return await self.database.run(search, self.database, query)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.database.close()


class Opened(PanelApp):
    def __init__(self, store: Store, words: str = "") -> None:
        super().__init__()
        self.desk = Desk()
        self.desk.id = store.here
        self.over = SearchScreen(store, self.desk, words)
        self.result: Any = UNASKED

    def on_mount(self) -> None:
        self.push_screen(self.over, self.take)

    def take(self, result: Any) -> None:
        self.result = result

    async def typed(self, pilot: Any, words: str) -> list[str]:
        self.over.query_one(Input).value = words
        await pilot.press("enter")
        await self.over.workers.wait_for_complete()
        await pilot.pause()
        rows = self.over.query_one(Rows)
        return [rows.render_line(y).text for y in range(1, 1 + max(1, len(rows.items)))]


async def test_a_hit_in_another_session_is_gone_to(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(120, 30)) as pilot:
        lines = await app.typed(pilot, "cormorant flies")
        assert "The [bold]Cormorant[/]" in lines[0] and "birds [/x]" in lines[0] and "in view" in lines[0]
        assert "\x1b" not in app.export_screenshot()
        assert "Cormorant" in str(app.over.query_one("#found", Static).render())
        await pilot.press("enter")
        assert app.result == (store.there, "g1")


async def test_a_hit_of_this_session_is_put_back(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(120, 30)) as pilot:
        lines = await app.typed(pilot, '"day 2"')
        assert lines and "this one" in lines[0]
        await pilot.press("r")
        await app.over.workers.wait_for_complete()
        assert app.desk.state.ledger.groups[-1].source.startswith("restore:")


async def test_nothing_found_is_said_and_esc_leaves(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(80, 24)) as pilot:
        assert "Nothing found." in (await app.typed(pilot, "zzzzzz"))[0]
        await pilot.press("escape")
        assert app.result is None


async def test_typing_searches_by_itself(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.press(*"cormorant")
        await app.over.workers.wait_for_complete()
        await pilot.pause()
        assert len(app.over.query_one(Rows).items) >= 1


def test_what_was_found_stands_out() -> None:
    shown = highlighted("a «b» [c] «d»")
    assert shown.plain == "a b [c] d"
    assert [shown.plain[s.start : s.end] for s in shown.spans if "bold" in str(s.style)] == ["b", "d"]
