"""Sessions of other agents: said once, offered, and imported only when a person says so; with progress, ended at any time."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from textual.events import Paste
from textual.pilot import Pilot

from ctxchat.config.schema import Settings
from ctxchat.config.schema.program import SessionSettings
from ctxchat.core.errors import CtxchatError
from ctxchat.importing.outcome import Importable, Imported, ImportNews, ReadSoFar, importable
from ctxchat.tui.app import AppFiles, CtxchatApp, Runtime
from ctxchat.tui.chat.offers import ImportLine, ImportOffer
from ctxchat.tui.transcript.blocks import NoticeBlock
from tests.tui.chatting import said, until, words
from tests.tui.fakes import FakeServices, FakeSession
from tests.tui.test_starting import THEMES, banner, started

FOUND = (Importable("Claude Code", 412, 1_200_000_000), Importable("Codex", 3, 9_000_000))


class Histories(FakeServices):
    """What is found under the paths in `there`; an import goes on until `go` is set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FakeSession())
        self.there: dict[str, Sequence[Importable]] = {"": FOUND}
        self.at_first: Sequence[Importable] = ()
        self.asked: list[str] = []
        self.imported: list[str] = []
        self.ended = False
        self.go = asyncio.Event()
        self.broken = False
        self.asks = True
        self.answered = 0
        self.passes: list[list[ImportNews] | CtxchatError] = []

    async def may_offer_following(self) -> bool:
        return self.asks and not self.answered

    async def following_answered(self) -> None:
        self.answered += 1

    async def following(self) -> AsyncGenerator[ImportNews, None]:
        came = self.passes.pop(0) if self.passes else []
        if isinstance(came, CtxchatError):
            raise came
        for news in came:
            yield news

    async def importable(self, path: Path | None = None) -> Sequence[Importable]:
        self.asked.append(str(path or ""))
        return self.there.get(str(path or ""), ())

    async def first_found(self) -> Sequence[Importable]:
        return self.at_first

    async def importing(self, path: Path | None = None) -> AsyncGenerator[ImportNews, None]:
        self.imported.append(str(path or ""))
        if self.broken:
            raise CtxchatError("The disk is full.")
        try:
            yield ReadSoFar(500_000_000, 1_200_000_000)
            yield Imported("a.jsonl", "claude-code", "new", "s9", 12, 1, damaged=("a.jsonl:3: not JSON",))
            yield ReadSoFar(600_000_000, 1_200_000_000)
            await self.go.wait()
        finally:
            self.ended = True


@pytest.fixture
def services(tmp_path: Path) -> Histories:
    return Histories(tmp_path)


async def test_what_is_found_at_the_first_start_is_one_line(tmp_path: Path, services: Histories) -> None:
    services.at_first = FOUND
    async with started(tmp_path, services) as (app, pilot):
        await until(pilot, lambda: "412 sessions of Claude Code and 3 of Codex, 1.2 GB" in banner(app))
        assert not app.query(ImportOffer) and not services.imported


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
async def test_the_command_asks_and_the_import_goes_on_beside_the_chat(
    tmp_path: Path, services: Histories, size: tuple[int, int]
) -> None:
    async with started(tmp_path, services, size) as (app, pilot):
        await pilot.press(*"/import", "enter")
        await until(pilot, lambda: app.query(ImportOffer))
        await pilot.press("tab", "i")
        await until(pilot, lambda: "importing 50 % of 1.2 GB, 1 session" in words(app))
        assert services.imported == [""]
        await pilot.press("h", "i")
        assert app.chat.composer.draft == "hi"
        services.go.set()
        await until(pilot, lambda: not app.query(ImportLine))
        await until(pilot, lambda: "1 session imported: 12 messages" in told(app))


async def test_an_import_is_ended_and_says_what_it_brought(tmp_path: Path, services: Histories) -> None:
    async with started(tmp_path, services) as (app, pilot):
        await pilot.press(*f"/import {tmp_path}/x", "enter")
        await until(pilot, lambda: "importing 50 %" in words(app))
        await pilot.press(*"/import", "space", *"stop", "enter")
        await until(pilot, lambda: "Import stopped: 1 session imported" in told(app))
        assert services.ended and not app.query(ImportLine)


async def test_a_path_that_is_pasted_is_offered_and_nothing_else_is(tmp_path: Path, services: Histories) -> None:
    path = f"{tmp_path}/old sessions"
    services.there[path] = FOUND[1:]
    async with started(tmp_path, services) as (app, pilot):
        app.chat.composer.prompt.post_message(Paste("/etc/hosts"))
        await until(pilot, lambda: services.asked == ["/etc/hosts"])
        app.chat.composer.prompt.post_message(Paste(" is broken, see /etc/fstab"))
        await pilot.pause()
        assert services.asked == ["/etc/hosts"] and not app.query(ImportOffer)
        app.chat.composer.set_draft("")
        app.chat.composer.prompt.post_message(Paste(path))
        await until(pilot, lambda: app.query(ImportOffer))
        assert not services.imported
        await pilot.press("tab", "escape")
        await until(pilot, lambda: not app.query(ImportOffer))
        assert app.chat.composer.draft == path and not services.imported
        app.chat.composer.set_draft("")
        app.chat.composer.prompt.post_message(Paste(f"'{path}'"))
        await until(pilot, lambda: app.query(ImportOffer))
        await pilot.press("tab", "i")
        await until(pilot, lambda: services.imported == [path])
        assert app.chat.composer.draft == ""


async def test_an_import_that_fails_says_why(tmp_path: Path, services: Histories) -> None:
    services.broken = True
    async with started(tmp_path, services) as (app, pilot):
        await pilot.press(*"/import", "space", *"x", "enter")
        await until(pilot, lambda: "The disk is full." in told(app))
        assert not app.query(ImportLine)


def told(app: CtxchatApp) -> str:
    """All that was said in the chat, whatever the width."""
    return said(app, NoticeBlock) + words(app)


def test_what_was_found_in_words() -> None:
    assert importable(FOUND[:1]) == "412 sessions of Claude Code, 1.2 GB"
    assert importable((*FOUND, FOUND[0])) == "412 sessions of Claude Code, 3 of Codex and 412 of Claude Code, 2.4 GB"


CLAUDE = Importable("Claude Code", 2, 4_000, "30 days")


@pytest.mark.parametrize("size", [(80, 24), (40, 14)])
async def test_that_they_can_be_followed_is_offered_once_with_what_is_deleted_there(
    tmp_path: Path, services: Histories, size: tuple[int, int]
) -> None:
    services.there[""] = services.at_first = (CLAUDE, *FOUND[1:])
    async with started(tmp_path, services, size) as (app, pilot):
        await until(pilot, lambda: "Claude Code deletes its sessions after 30 days." in banner(app))
        await pilot.press(*"/import", "enter")
        await until(pilot, lambda: app.query(ImportOffer))
        await until(pilot, lambda: "f follow" in words(app))
        await pilot.press("tab", "escape")
        await until(pilot, lambda: services.answered == 1 and not app.query(ImportOffer))
        await pilot.press(*"/import", "enter")
        await until(pilot, lambda: app.query(ImportOffer))
        await until(pilot, lambda: "i import" in words(app))
        assert "f follow" not in words(app)
        await pilot.press("tab", "f")
        await pilot.pause()
        assert not services.imported and not (tmp_path / "config.toml").exists()


async def test_who_wants_new_ones_has_it_in_the_settings_and_all_of_them_now(
    tmp_path: Path, services: Histories
) -> None:
    async with started(tmp_path, services) as (app, pilot):
        await pilot.press(*"/import", "enter")
        await until(pilot, lambda: app.query(ImportOffer))
        await pilot.press("tab", "f")
        await until(pilot, lambda: "--no-follow` ends it" in told(app))
        assert tomllib.loads((tmp_path / "config.toml").read_text()) == {"sessions": {"follow": True}}
        await until(pilot, lambda: services.imported == [""])
        services.go.set()
        await until(pilot, lambda: not app.query(ImportLine))


async def test_settings_that_cannot_be_written_are_said_and_the_import_goes_on(
    tmp_path: Path, services: Histories
) -> None:
    async with started(tmp_path, services) as (app, pilot):
        (tmp_path / "config.toml").mkdir()
        await pilot.press(*"/import", "enter")
        await until(pilot, lambda: app.query(ImportOffer))
        await pilot.press("tab", "f")
        await until(pilot, lambda: services.imported == [""] and "config.toml" in unbroken(app))
        services.go.set()
        await until(pilot, lambda: not app.query(ImportLine))


async def test_what_comes_by_itself_is_one_line_and_what_goes_on_growing_none(
    tmp_path: Path, services: Histories
) -> None:
    new, other = (Imported(f"{id}.jsonl", "claude-code", "new", id, 12) for id in ("s1", "s2"))
    grown = msgspec.structs.replace(new, outcome="grown")
    failed = Imported("opencode.db", "opencode", "failed", problem="a database that cannot be read")
    services.passes = [
        [],
        [ReadSoFar(1, 2), new, other],
        [grown, failed],
        [grown, failed],
        CtxchatError("The disk is full."),
        [grown],
    ]
    async with following(tmp_path, services) as (app, pilot):
        await until(pilot, lambda: not services.passes)
        await until(pilot, lambda: not any(notice.about == "following" for notice in app.chat.banner.told))
        assert banner(app) == "· 2 sessions of other agents brought in; F9 shows them."
        assert not services.imported and not app.query(ImportLine)


async def test_what_cannot_be_brought_in_is_one_notice(tmp_path: Path, services: Histories) -> None:
    failed = Imported("opencode.db", "opencode", "failed", problem="a database that cannot be read")
    services.passes = [
        [failed],
        [failed],
        [failed],
        CtxchatError("The disk is full."),
        CtxchatError("The disk is full."),
    ]
    async with following(tmp_path, services) as (app, pilot):
        await until(pilot, lambda: "1 session of other agents could not be brought in: a database that" in banner(app))
        await until(pilot, lambda: not services.passes and banner(app) == "! The disk is full.")


async def test_nothing_comes_by_itself_where_nobody_wants_it(tmp_path: Path, services: Histories) -> None:
    services.passes = [[Imported("a.jsonl", "claude-code", "new", "s1", 12)]]
    async with following(tmp_path, services, Settings()) as (app, pilot):
        await pilot.pause(0.1)
        assert services.passes
        app.settings = FOLLOW
        await until(pilot, lambda: "1 session of other agents brought in" in banner(app))


FOLLOW = Settings(sessions=SessionSettings(follow=True))


@asynccontextmanager
async def following(
    tmp_path: Path, services: FakeServices, settings: Settings = FOLLOW
) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """An interface that looks for new sessions all the time."""
    app = CtxchatApp(
        services,
        settings,
        THEMES,
        files=AppFiles(settings_file=tmp_path / "config.toml"),
        runtime=Runtime(follow_interval=0.01),
    )
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        yield app, pilot


def unbroken(app: CtxchatApp) -> str:
    """What is on screen, as if no line had an end."""
    return "".join(words(app).split())
