"""Search on screen, over a real store and through the doors the composition root gives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.widgets import Input, OptionList, Static
from textual.widgets._footer import FooterKey
from textual.worker import WorkerCancelled

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import StorageError
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Named, Sealed
from ctxchat.core.messages import Group, Message
from ctxchat.core.search import Hit, Scope
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database
from ctxchat.tui.panels.filters import Choice
from ctxchat.tui.panels.reader import ReaderScreen
from ctxchat.tui.panels.search import SearchScreen, once
from ctxchat.tui.panels.search_results import CLOSE, OPEN, highlighted, passage_of
from tests.storage.samples import compaction
from tests.tui.chatting import sure, until
from tests.tui.fakes import FakeServices
from tests.tui.harbour import HarbourSession, at, history
from tests.tui.panel_app import PanelApp

UNASKED = object()
NASTY = "The [bold]Cormorant[/] [@click=app.quit]flies[/] \x1b[2J\x1b]0;x\x07 at night"


class Quoting(HarbourSession):
    """A session that remembers what it was asked to quote."""

    def __init__(self) -> None:
        super().__init__()
        self.quoted: list[tuple[str, str]] = []

    async def quote(self, group: Group, source: str) -> ContextUsage:
        self.quoted.append((group.first.text, source))
        return self.context_usage


class Store(FakeServices):
    """A real database with two sessions; a search for "wait" never ends by itself, one for "broken" fails."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.database = Database(folder)
        self.here = sessions.create(
            self.database, records=[Named("harbour"), Sealed(history(3)), compaction("k1", "g1")]
        )
        said = group_messages([Message(1, "user", NASTY, at=at(5))])
        self.there = sessions.create(self.database, records=[Named("birds [/x]"), Sealed(said)])
        self.share = 1.0
        self.asked: list[str] = []
        self.dropped: list[str] = []

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        self.asked.append(query)
        if query == "wait":
            try:
                await asyncio.Event().wait()
            finally:
                self.dropped.append(query)
        if query == "broken":
            raise StorageError("The database cannot be read.")
        return archive.search(self.database, query, scope=scope, limit=limit, marks=marks)

    async def indexed(self) -> float:
        return self.share

    async def group(self, session_id: str, message_id: str) -> Group:
        return archive.group_of(self.database, session_id, message_id)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    yield made
    made.database.close()


class Opened(PanelApp):
    def __init__(self, store: Store, words: str = "") -> None:
        super().__init__()
        self.desk = Quoting()
        self.desk.id = store.here
        self.over = SearchScreen(store, self.desk, words)
        self.result: Any = UNASKED

    def on_mount(self) -> None:
        self.push_screen(self.over, self.take)

    def take(self, result: Any) -> None:
        self.result = result

    @property
    def lines(self) -> list[str]:
        found = self.over.query_one("#hits", OptionList)
        return [str(found.get_option_at_index(i).prompt) for i in range(found.option_count)]

    async def settled(self, pilot: Any) -> list[str]:
        await pilot.pause()
        with suppress(WorkerCancelled):  # a search that a newer one took the place of
            await self.over.workers.wait_for_complete()
        await self.over.workers.wait_for_complete()
        await pilot.pause()
        return self.lines

    async def typed(self, pilot: Any, words: str) -> list[str]:
        self.over.query_one(Input).focus().value = words
        await pilot.press("enter")
        return await self.settled(pilot)

    def text(self, which: str) -> str:
        return str(self.over.query_one(which, Static).render())


async def test_the_keys_below_are_those_that_work_where_one_stands(store: Store) -> None:
    """In the field `/` and letters are written; how to come to the hits is told as soon as there are some."""
    app = Opened(store)

    def keys() -> list[str]:
        return [f"{key.key_display} {key.description}" for key in app.over.query(FooterKey)]

    async with app.run_test(size=(120, 24)) as pilot:
        await app.settled(pilot)
        assert keys() == ["esc back"]
        app.over.query_one(Input).value = "cormorant flies"
        await until(pilot, lambda: keys() == ["enter to the hits", "esc back"])
        await pilot.press("enter")
        await until(pilot, lambda: keys()[0] == "enter go there" and "/ words" in keys())
        assert "enter to the hits" not in keys()


async def test_how_far_the_index_is_stands_over_the_hits(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(80, 24)) as pilot:
        assert await app.typed(pilot, "cormorant flies")
        assert not app.over.query_one("#partly").display
        store.share = 0.42
        assert await app.typed(pilot, "cormorant")
        assert "42 % of all messages so far" in app.text("#partly")
        assert app.over.query_one("#partly").display


async def test_a_hit_in_another_session_is_gone_to(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(120, 30)) as pilot:
        (line,) = await app.typed(pilot, "cormorant flies")
        assert "The [bold]Cormorant[/] [@click=app.quit]flies[/]" in line
        assert "birds [/x]" in line and "in window" in line and "tokens" in line
        assert "\x1b" not in line and "Cormorant" in app.text("#passage")
        await pilot.press("enter")
        assert app.result == (store.there, "g1")


async def test_a_hit_of_this_session_is_put_back_and_another_is_quoted(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        lines = await app.typed(pilot, '"day 2"')
        assert "this session" in lines[0]
        await sure(pilot, "r")
        await app.settled(pilot)
        assert app.desk.state.ledger.groups[-1].source.startswith("restore:")
        await app.typed(pilot, "cormorant flies")
        await sure(pilot, "r")
        await app.settled(pilot)
        assert app.desk.quoted == [(NASTY, "birds [/x]")]


async def test_the_hits_have_the_room_the_passage_leaves(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(80, 24)) as pilot:
        assert len(await app.typed(pilot, "day")) > 3
        hits, passage = app.over.query_one("#hits"), app.over.query_one("#passage")
        assert hits.size.height >= 8 and passage.region.bottom == app.over.size.height - 1


async def test_filters_by_session_speaker_and_pass(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(120, 30)) as pilot:
        everywhere = await app.typed(pilot, "day")
        assert any("in archive" in line for line in everywhere) and any("in window" in line for line in everywhere)
        await pilot.press("w")
        assert app.over.query_one("#role", Choice).value == "you"
        assert all("you ·" in line for line in await app.settled(pilot))
        await pilot.press("t")
        before = await app.settled(pilot)
        assert len(before) == 3 and app.over.scope.before == "last"
        await pilot.press("t")
        assert await app.settled(pilot) == []
        assert "Fewer filters" in app.text("#nothing")
        await pilot.press("t", "s")
        assert len(await app.settled(pilot)) == 3
        await pilot.press("w", "w")
        assert all("result of run" in line or "result of read" in line for line in await app.settled(pilot))


async def test_a_tool_is_a_filter_too(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(120, 30)) as pilot:
        everything = await app.typed(pilot, "day")
        await pilot.press("o")
        assert app.over.query_one("#tool", Choice).value == "read" and app.over.scope.tool == "read"
        read = await app.settled(pilot)
        await pilot.press("o")
        run = await app.settled(pilot)
        assert app.over.scope.tool == "run" and len(read) + len(run) < len(everything)
        assert all(" of read" in line for line in read) and all(" of run" in line for line in run)
        await pilot.press("o", "o")
        assert app.over.scope.tool == "" and await app.settled(pilot) == everything


async def test_filters_are_typed_too_and_a_wrong_one_is_told_in_its_place(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        assert "who:me" in app.text("#nothing")
        mine = await app.typed(pilot, "day who:me")
        assert mine and all("you ·" in line for line in mine)
        assert await app.typed(pilot, "day who:bob") == []
        assert "who:bob is nobody. Give who:me" in app.text("#nothing")


async def test_typing_searches_by_itself_and_an_old_answer_is_dropped(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(40, 20)) as pilot:
        field = app.over.query_one(Input)
        field.value = "wait"  # at once: however slowly keys come, nothing before it is searched for
        await until(pilot, lambda: store.asked)
        assert store.asked == ["wait"] and app.lines == []
        field.value = "cormorant"
        assert len(await app.settled(pilot)) >= 1
        assert store.dropped == ["wait"] and field.value == "cormorant"
        field.value = ""
        await app.settled(pilot)
        assert "Everything ever said" in app.text("#nothing")


async def test_nothing_found_a_fault_and_the_way_out(store: Store) -> None:
    app = Opened(store)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        assert await app.typed(pilot, "zz[y]zzzz") == []
        assert "Nothing found for zz[y]zzzz." in app.text("#nothing")
        await pilot.press("r", "v", "down", "backspace")
        await app.typed(pilot, "broken")
        assert app.result is UNASKED and app.is_running
        await pilot.press("escape")
        assert app.result is None


async def test_one_is_read_whole_and_put_back_from_there(store: Store) -> None:
    app = Opened(store, "day")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await app.settled(pilot)
        await pilot.press("v")
        await app.settled(pilot)
        assert isinstance(app.screen, ReaderScreen)
        await sure(pilot, "r")
        await app.settled(pilot)
        assert app.desk.state.ledger.groups[-1].source.startswith("restore:")


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 20), (20, 8)])
async def test_every_size_shows_the_word_that_was_found(store: Store, size: tuple[int, int]) -> None:
    far = "word " * 200 + "the anchor is here" + " word" * 200
    sessions.append(store.database, store.there, Sealed((Group("g9", "reply", (Message(9, "assistant", far),), 1),)))
    app = Opened(store)
    async with app.run_test(size=size) as pilot:
        (line,) = await app.typed(pilot, "anchor")
        assert "anchor" in line.split("\n")[0][: size[0]]
        assert all(len(part) <= max(16, size[0] - 2) for part in line.split("\n"))


def test_the_passage_shows_the_words_of_the_query_too() -> None:
    hit = Hit("s", "m1", "user", f"{OPEN}hub{CLOSE}", 3, "", 1, "", "g1", "t", passage="the Hub is\n[busy] now")
    shown = passage_of(hit, 'hub "busy"')
    assert [shown.plain[s.start : s.end] for s in shown.spans] == ["Hub", "busy"]


def test_what_was_found_stands_out() -> None:
    shown = highlighted(f"a {OPEN}b{CLOSE} [c] {OPEN}d{CLOSE}")
    assert shown.plain == "a b [c] d"
    assert [shown.plain[s.start : s.end] for s in shown.spans if "bold" in str(s.style)] == ["b", "d"]


def test_a_message_that_branches_have_too_is_found_once() -> None:
    hit = Hit("s1", "m1", "user", "hub", 3, "", 1, at(1), "g1", "harbour")
    branch, other = msgspec.structs.replace(hit, session="s2"), msgspec.structs.replace(hit, message="m2")
    assert once([hit, branch, other], "s2") == [branch, other] and once([branch, hit], "s9") == [branch]
