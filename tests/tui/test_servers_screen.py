"""The MCP servers on screen: what they cost, why one failed, on and off by key, with hostile names."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from ctxchat.storage.sessions import SessionRow
from ctxchat.tools.mcp.host import ShowLogin
from ctxchat.tools.mcp.server import ServerRow
from ctxchat.tui.panels.servers import ServersScreen
from tests.tui.chatting import HOSTILE, chatting, until, words
from tests.tui.fakes import FakeServices, FakeSession

READY = ServerRow("harbour", "ready", ("grep",), "", "harbour-server --all", (f"bad (its schema is none) {HOSTILE}",))
FAILED = ServerRow(f"gone {HOSTILE}", "failed", (), f"There is no program. {HOSTILE}", "no-such-thing")


class Servers(FakeServices):
    """Switches as told, and keeps who was switched."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        self.mcp = (FAILED, READY)
        self.switched: list[str] = []

    async def switch_server(self, name: str) -> ServerRow:
        self.switched.append(name)
        self.mcp = (FAILED, msgspec.structs.replace(READY, state="off", tools=()))
        return self.mcp[1]


@pytest.mark.parametrize("size", [(100, 30), (40, 20), (20, 7)])
async def test_they_are_listed_and_switched_by_key(tmp_path: Path, size: tuple[int, int]) -> None:
    session = FakeSession(lambda _: [])
    services = Servers(tmp_path, session)
    async with chatting(tmp_path, session, size, services=services) as (app, pilot):
        await pilot.press(*"/mcp", "enter")
        await until(pilot, lambda: isinstance(app.screen, ServersScreen) and "✗" in words(app))
        assert "no-such" in words(app) or size[0] < 100
        await pilot.press("down")
        await until(pilot, lambda: "Left out: bad (its schema is none)" in words(app) or size[0] < 100)
        await pilot.press("space")
        await until(pilot, lambda: services.switched and "○" in words(app))
        assert services.switched == ["harbour"]
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_each_is_shown_as_it_is_while_the_slowest_is_on_its_way(tmp_path: Path) -> None:
    starting = [msgspec.structs.replace(r, state="starting", tools=(), trouble="") for r in (FAILED, READY)]
    slow = msgspec.structs.replace(starting[1], name="slow")
    services = Servers(tmp_path, session := FakeSession(lambda _: []))
    services.mcp = (*starting, slow)
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        await pilot.press(*"/mcp", "enter")
        await until(pilot, lambda: words(app).count("◌") == 3)
        services.mcp = (FAILED, READY, slow)
        await until(pilot, lambda: all(sign in words(app) for sign in "✗●◌"))
        await until(pilot, lambda: session.adapted)
        services.mcp = (FAILED, READY, msgspec.structs.replace(slow, state="failed"))
        await until(pilot, lambda: words(app).count("✗") == 2)


class WantsLogin(Servers):
    """One that wants a login, which comes to something when it is told so."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        self.mcp = (msgspec.structs.replace(FAILED, login_wanted=True),)
        self.done = asyncio.Event()

    async def log_in_server(self, name: str, show: ShowLogin) -> ServerRow:
        page = f"https://login.example/{HOSTILE}"
        self.mcp = (msgspec.structs.replace(FAILED, state="starting", login_page=page),)
        show(page, lambda _: None)
        await self.done.wait()
        self.mcp = (msgspec.structs.replace(FAILED, state="ready"),)
        return self.mcp[0]


async def test_a_login_opens_its_page_when_it_is_asked_for_and_says_where_it_is(tmp_path: Path) -> None:
    services = WantsLogin(tmp_path, session := FakeSession(lambda _: []))
    opened: list[str] = []
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        app.open_url = lambda url, **_: opened.append(url)  # pyright: ignore[reportAttributeAccessIssue]
        await pilot.press(*"/mcp", "enter")
        await until(pilot, lambda: "log in" in words(app))
        assert not opened
        await pilot.press("l")
        await until(pilot, lambda: "https://login.example/" in words(app))
        assert len(opened) == 1
        await pilot.press("c")
        await until(pilot, lambda: app.clipboard == opened[0])
        services.done.set()
        await until(pilot, lambda: "●" in words(app) and "https" not in words(app))


async def test_without_any_it_says_how_to_get_one(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(lambda _: [])) as (app, pilot):
        await pilot.press(*"/mcp", "enter")
        await until(pilot, lambda: "[mcp.NAME]" in words(app))


async def test_words_that_none_has_are_told_from_having_none(tmp_path: Path) -> None:
    services = Servers(tmp_path, session := FakeSession(lambda _: []))
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        await pilot.press(*"/mcp", "enter")
        await until(pilot, lambda: "harbour" in words(app))
        await pilot.press("slash", *"zzz")
        await until(pilot, lambda: "Nothing found." in words(app))
        assert "No MCP server" not in words(app) and "tokens" not in app.screen.rows.render_line(0).text


async def test_nothing_is_said_of_what_is_still_being_looked_for(tmp_path: Path) -> None:
    class Slow(Servers):
        async def sessions(self) -> list[SessionRow]:
            await asyncio.Event().wait()
            return []

    services = Slow(tmp_path, session := FakeSession(lambda _: []))
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        await pilot.press(*"/sessions", "enter")
        await until(pilot, lambda: "looking" in words(app))
        await pilot.press("slash", *"zzz")
        await pilot.pause()
        assert "looking" in words(app)
