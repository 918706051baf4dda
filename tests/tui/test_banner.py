"""What stands above the conversation: all of it can be reached however small the window, and it goes when its cause goes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from textual.selection import SELECT_ALL
from textual.widgets._toast import Toast

from ctxchat.bootstrap.remembered import NOTHING_FOUND
from ctxchat.config import trust
from ctxchat.core.cache_state import CacheState, Hold, NextCall
from ctxchat.models.discovery import FirstLook
from ctxchat.tui.chat.banner import AllNotices
from ctxchat.tui.panels.notices import NoticesScreen
from ctxchat.tui.panels.panel import Confirm
from ctxchat.tui.starting import tell_servers
from ctxchat.tui.transcript.blocks import Block
from ctxchat.tui.widgets.notice import NoticeText
from tests.tui.chatting import blocks, chatting, idle, until, words
from tests.tui.fakes import FakeServices, FakeSession, Pause, reply
from tests.tui.test_edits import Home, run, saved
from tests.tui.test_servers_screen import FAILED

LONG = "config.toml:{}: context.keep_recnt: is unknown, did you mean keep_recent? The last good settings stay in force."


def above(app: object) -> str:
    """What the banner says, whether it has room for it or not."""
    return "\n".join(str(block.render()) for block in app.chat.banner.query(NoticeText))  # type: ignore[attr-defined]


def counted(app: object) -> str:
    line = app.chat.banner.query_one(AllNotices)  # type: ignore[attr-defined]
    return str(line.render()) if line.display else ""


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (20, 8)])
async def test_more_than_has_room_is_counted_and_one_key_shows_all(tmp_path: Path, size: tuple[int, int]) -> None:
    services = FakeServices(tmp_path, FakeSession(), notices=[LONG.format(n) for n in range(1, 7)])
    services.mcp = (msgspec.structs.replace(FAILED, name="harbour"),)
    async with chatting(tmp_path, services.first, size, services=services) as (app, pilot):
        await until(pilot, lambda: "harbour failed" in above(app))
        await until(pilot, lambda: counted(app).startswith("▾ 7"))
        assert "▾ 7" in words(app) and "/notices" in words(app) and "harbour failed" not in words(app)
        assert app.chat.composer.prompt.region.bottom <= size[1] - 1, "the composer keeps its place"
        await pilot.press("alt+o")
        await until(pilot, lambda: isinstance(app.screen, NoticesScreen))
        await pilot.press("end")
        await until(pilot, lambda: "/mcp" in words(app))
        await pilot.press("escape", "x", "enter")
        await idle(app, pilot)
        assert above(app) == "" == counted(app), "a message was sent: what was said is out of the way"
        await pilot.press(*"/notices", "enter")
        await until(pilot, lambda: isinstance(app.screen, NoticesScreen))
        assert len(app.screen.query(NoticeText)) == 7, "and can be read all the same"


@pytest.mark.parametrize("size", [(40, 9), (40, 18), (40, 20), (59, 36)])
async def test_in_a_narrow_window_it_takes_a_third_of_the_height_at_most(tmp_path: Path, size: tuple[int, int]) -> None:
    services = FakeServices(tmp_path, FakeSession(model="offline/assistant"))
    services.note = f"{NOTHING_FOUND} {'And there is more to know of it. ' * 30}"
    async with chatting(tmp_path, services.first, size, services=services) as (app, pilot):
        await until(pilot, lambda: counted(app).startswith("▾ 1"))
        assert 0 < app.chat.banner.region.height <= size[1] // 3
        assert app.chat.composer.prompt.region.bottom <= size[1]


async def test_further_lines_of_a_notice_begin_under_its_first_word(tmp_path: Path) -> None:
    services = FakeServices(
        tmp_path, FakeSession(), notices=["first [b]words[/b] and more of them than one line holds"]
    )
    async with chatting(tmp_path, services.first, (40, 20), services=services) as (app, pilot):
        await until(pilot, lambda: "one line holds" in words(app))
        lines = [line.rstrip() for line in words(app).split("\n")]
        at = lines.index("  ! first [b]words[/b] and more of them")
        assert lines[at + 1] == "    than one line holds"
        (block,) = app.chat.banner.query(NoticeText)
        assert block.get_selection(SELECT_ALL) == ("first [b]words[/b] and more of them than one line holds", "\n")


async def test_further_lines_of_an_example_do_so_too_and_a_toast_covers_whole_lines(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("")
    async with chatting(tmp_path, FakeSession(), (40, 20)) as (app, pilot):
        await until(pilot, lambda: "@README.md" in words(app))
        lines = [line.rstrip() for line in words(app).split("\n")]
        assert lines[lines.index(" 1 What is this folder about?") + 1] == "   @README.md"
        app.notify("There is nothing to undo.")
        await until(pilot, lambda: app.screen.query(Toast) and app.screen.query_one(Toast).region.right == 40)


@pytest.mark.parametrize("notices", [["one thing", "another"], ["1\n2\n3\n4\n5\n6\nanother"]])
async def test_what_has_room_is_not_counted(tmp_path: Path, notices: list[str]) -> None:
    services = FakeServices(tmp_path, FakeSession(), notices=notices)
    async with chatting(tmp_path, services.first, (80, 24), services=services) as (app, pilot):
        await until(pilot, lambda: "another" in words(app))
        assert counted(app) == ""


async def test_a_notice_of_the_settings_goes_when_the_file_is_mended_or_the_folder_trusted(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.file.write_text("[context]\nkeep_recnt = 3\n")
    project = home.work / ".ctxchat" / "config.toml"
    project.parent.mkdir()
    project.write_text('[permissions]\nmode = "all"\n')
    home.services.notices = home.load().notices
    async with run(home) as pilot:
        app = pilot.app
        assert "! config.toml:2: context.keep_recnt" in above(app)
        assert "work: not in force until you trust this folder (/trust): permissions.mode" in above(app)
        trust.trust(home.config, home.work, home.load().project)
        await app.edits.reload_settings()
        await pilot.pause()
        assert "keep_recnt" in above(app) and "until you trust" not in above(app)
        await saved(pilot, home, "[context]\nkeep_recent = 3\n")
        assert above(app) == ""


async def test_a_server_that_failed_is_named_once_and_no_more_when_it_is_up(tmp_path: Path) -> None:
    services = FakeServices(tmp_path, FakeSession())
    services.mcp = (msgspec.structs.replace(FAILED, name="harbour"),)
    async with chatting(tmp_path, services.first, (80, 24), services=services) as (app, pilot):
        await until(pilot, lambda: "harbour failed" in above(app))
        await tell_servers(app)
        assert above(app).count("harbour failed") == 1
        services.mcp = (msgspec.structs.replace(FAILED, name="harbour", state="ready", trouble=""),)
        await tell_servers(app)
        await pilot.pause()
        assert above(app) == ""


async def test_without_a_model_is_said_until_there_is_one(tmp_path: Path) -> None:
    services = FakeServices(tmp_path, FakeSession(model="offline/assistant"))
    services.note = "No key or local server found"
    async with chatting(tmp_path, services.first, (80, 24), services=services) as (app, pilot):
        await until(pilot, lambda: "No key" in words(app))
        assert "No key" not in above(app), "no warning first"
        await pilot.press(*"/model x/y", "enter")
        await until(pilot, lambda: "From here on x/y answers" in above(app))
        assert "No key" not in words(app)


async def test_another_model_is_said_with_the_reasoning_that_it_cannot_read(tmp_path: Path) -> None:
    session = FakeSession()
    session.thoughts_lost = 3
    async with chatting(tmp_path, session, (140, 24)) as (app, pilot):
        await pilot.press(*"/model x/y", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert "The reasoning of 3 replies is not sent back" in words(app) and session.state.model != "x/y"
        await pilot.press("w")
        await until(pilot, lambda: "With the next compaction: model x/y." in words(app))
        assert session.state.model != "x/y"
        await pilot.press(*f"/model {session.context_usage.model}", "enter")
        await until(pilot, lambda: not session.deferred)


async def test_another_model_is_asked_about_with_its_price(tmp_path: Path) -> None:
    session = FakeSession()
    session.read_by_another = NextCall(0.41)
    async with chatting(tmp_path, session, (140, 24)) as (app, pilot):
        await pilot.press(*"/model x/y", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert "the next message costs ≈ $0.41" in words(app)
        await pilot.press("n")
        await until(pilot, lambda: not isinstance(app.screen, Confirm))
        assert session.state.model != "x/y"


async def test_an_agent_and_a_level_of_effort_can_come_with_the_next_compaction(tmp_path: Path) -> None:
    session = FakeSession()
    session.cache = CacheState((Hold(9_000, time.time() + 3_000, length=99),), "cold", NextCall(0.4))
    async with chatting(tmp_path, session, (140, 40)) as (app, pilot):
        await pilot.press(*"/agent plan", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("w")
        await until(pilot, lambda: "With the next compaction: agent plan." in words(app))
        await pilot.press(*"/effort high", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("w")
        await until(pilot, lambda: session.deferred.words == "agent plan, effort high")
        assert session.agent == "" and session.effort == ""
        await pilot.press(*"/agent usual", "enter")
        await until(pilot, lambda: session.deferred.words == "effort high")


async def test_effort_is_set_said_and_refused_with_the_models_own_levels(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, (90, 24)) as (app, pilot):
        await pilot.press(*"/effort high", "enter")
        await until(pilot, lambda: session.effort == "high" and "· high" in app.chat.header.draw_line(90).plain)
        await pilot.press(*"/effort most", "enter")
        await until(pilot, lambda: "has low and high" in above(app) or "has low and high" in words(app))
        assert session.effort == "high"
        await pilot.press(*"/effort default", "enter")
        await until(pilot, lambda: session.effort == "" and "high" not in app.chat.header.draw_line(90).plain)


class Slow(FakeServices):
    """Looks for models for as long as the test wishes."""

    looked: asyncio.Event

    async def first_look(self) -> FirstLook:
        await self.looked.wait()
        return await super().first_look()


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("size", [(20, 5), (40, 20), (120, 36)])
async def test_what_the_first_look_found_leaves_the_answer_to_who_asked_before(
    tmp_path: Path, size: tuple[int, int], answered: bool
) -> None:
    session = FakeSession(lambda _: [Pause(), *reply("At Pier 7.")], model="offline/assistant")
    services = Slow(tmp_path, session)
    services.note, services.looked = NOTHING_FOUND, asyncio.Event()
    async with chatting(tmp_path, session, size, services=services) as (app, pilot):
        await pilot.press("x", "enter")
        steps = [services.looked.set, session.approvals().set]
        for step in reversed(steps) if answered else steps:
            step()
            await until(pilot, lambda: len(app.chat.banner.told) == 1 if services.looked.is_set() else True)
            await until(pilot, lambda: "At Pier 7." in words(app) if session.approvals().is_set() else True)
        await idle(app, pilot)
        assert "At Pier 7." in words(app)
        await pilot.press("alt+o")
        await until(pilot, lambda: isinstance(app.screen, NoticesScreen))
        await pilot.press("escape")
        app.chat.transcript.scroll_home(animate=False)
        await until(pilot, lambda: "! No key" in words(app))
        read = [type(block).__name__ for block in blocks(app, Block)]
        assert read == ["NoticeBlock", "UserBlock", "ReplyBlock"]


@pytest.mark.parametrize("size", [(40, 20), (20, 7), (100, 30)])
async def test_what_goes_by_itself_takes_little_room_and_says_nothing_twice(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with chatting(tmp_path, FakeSession(), size) as (app, pilot):
        app.chat.announce("The settings are broken.")
        app.notify("The settings are broken.")
        assert not app._notifications
        app.notify("Nothing to undo.")
        await until(pilot, lambda: len(app._notifications) == 1)
        app.notify("Nothing to undo.")
        await pilot.pause()
        assert len(app._notifications) == 1
        app.clear_notifications()
        app.notify("Not written: " + "the disk is full, and all that comes after it is a long story " * 9)
        await until(pilot, lambda: app.screen.query(Toast) and app.screen.query_one(Toast).size.height)
        shown = app.screen.query_one(Toast)
        assert shown.outer_size.height <= 3 or size[0] >= 60
        assert "Not written" in words(app) and ("…" in words(app) or size[0] >= 60)
