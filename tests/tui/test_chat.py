"""The chat, end to end on a scripted session."""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path

import pytest
from textual.events import AppBlur
from textual.widgets._toast import Toast

from ctxchat.config.effective import load_settings
from ctxchat.config.schema import Settings
from ctxchat.core.events import (
    ApprovalRequested,
    CompactionStarted,
    Failed,
    Notice,
    ReasoningDelta,
    Retry,
    SummaryDelta,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    Usage,
)
from ctxchat.core.messages import Message
from ctxchat.core.record import CompactionRecord
from ctxchat.tui.app import AppFiles, CtxchatApp, Runtime
from ctxchat.tui.chat.approval import ApprovalPanel
from ctxchat.tui.chat.chips import Chip
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.help import HelpScreen
from ctxchat.tui.panels.search import SearchScreen
from ctxchat.tui.panels.xray import XrayScreen
from ctxchat.tui.transcript.blocks import ErrorBlock, NoticeBlock, ReplyBlock, RetryBlock, ThinkingBlock
from ctxchat.tui.transcript.tool_block import ToolBlock
from tests.tui.chatting import ASK, HOSTILE, blocks, chatting, idle, until, words
from tests.tui.fakes import FakeServices, FakeSession, Pause, reply

# ── turns ──


async def test_a_message_gets_its_answer_and_both_are_shown(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: len(app.chat.transcript.items) == 2)
        assert session.sent == ["hello"]
        assert app.chat.presenter.last_answer() == "You said: hello"
        assert app.chat.composer.draft == ""
        await until(pilot, lambda: "You said: hello" in words(app))


async def test_every_event_has_its_place_on_screen(tmp_path: Path) -> None:
    said = "The summary came back empty. Nothing was changed."
    finished = CompactionRecord("k1", "auto", "pipeline", "failed", detail=said)
    script = [
        ReasoningDelta("let me see"),
        Retry(1, 0.0, "rate limit"),
        ToolStarted("a", "grep", {"pattern": "tide"}),
        ToolProgress("a", "looking\n"),
        ToolFinished("a", "grep", "ok", "one\ntwo", 12, 0.2),
        ToolFinished("b", "shell", "denied", "no", 3, 0.0),
        CompactionStarted("k1", "auto", "pipeline"),
        SummaryDelta("k1", "## Goal"),
        finished,
        Usage(1, 2),
        Notice("warning", "careful now"),
        *reply("**done**"),
    ]
    async with chatting(tmp_path, FakeSession(lambda _: script), (100, 50)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "done" in words(app) and not app.controller.busy)
        shown = words(app)
        for part in ("let me see", "rate limit", 'grep "tide"', "2 hits", "⊘ denied", "came back empty", "careful now"):
            assert part in shown
        assert "**done**" not in shown  # it is Markdown by now


async def test_messages_sent_meanwhile_wait_and_go_out_once_in_order(tmp_path: Path) -> None:
    session = FakeSession(lambda text: [Pause(text), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        for text in ("one", "two", "three"):
            await pilot.press(*text, "enter")
        await until(pilot, lambda: len(app.query(Chip)) == 2)
        assert session.sent == ["one"]
        for name in ("one", "two", "three"):
            session.approvals(name).set()
        await until(pilot, lambda: len(session.sent) == 3 and not app.controller.busy)
        assert session.sent == ["one", "two", "three"]
        assert not app.query(Chip)


async def test_a_queued_message_can_be_taken_back_with_up(tmp_path: Path) -> None:
    session = FakeSession(lambda text: [Pause(), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("a", "enter", "b", "enter")
        await until(pilot, lambda: app.query(Chip))
        await pilot.press("up")
        await until(pilot, lambda: not app.query(Chip))
        assert app.chat.composer.prompt.text == "b"
        session.approvals().set()
        await idle(app, pilot)
        assert session.sent == ["a"]


async def test_escape_stops_the_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [TextDelta("half a sen"), ToolStarted("t", "shell", {"command": "sleep"}), Pause()])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "half a sen" in words(app))
        await pilot.press(*"my draft", "escape")
        await until(pilot, lambda: not app.controller.busy)
        assert session.interrupted == 1
        await until(pilot, lambda: "half a sen" in words(app) and "cancelled" in words(app))
        assert app.chat.composer.draft == "my draft"


async def test_an_interrupted_reply_is_marked(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [TextDelta("half a sen"), Pause()])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "half a sen" in words(app))
        await pilot.press("escape")
        await until(pilot, lambda: "interrupted, kept as it was" in words(app))


async def test_escape_closes_the_panel_before_it_stops_the_work(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [TextDelta("working"), Pause()])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.press("f2")
        await until(pilot, lambda: app.chat.has_class("-panel-over") and "esc back" in words(app))
        await pilot.press("escape")
        await until(pilot, lambda: not app.chat.has_class("-panel") and "esc stop" in words(app))
        assert app.controller.busy
        await pilot.press("escape")
        await until(pilot, lambda: not app.controller.busy)


async def test_a_panel_that_was_closed_and_opened_again_goes_where_there_is_no_room_for_it(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (120, 36)) as (app, pilot):
        await until(pilot, lambda: app.chat.has_class("-panel"))
        await pilot.press("f2")
        await until(pilot, lambda: not app.chat.has_class("-panel"))
        await pilot.press("f2")
        await until(pilot, lambda: app.chat.has_class("-panel"))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.chat.has_class("-normal") and not app.chat.has_class("-panel"))


async def test_a_failed_turn_says_what_and_what_to_do(tmp_path: Path) -> None:
    session = FakeSession(
        lambda _: [Failed("auth", "The key was refused.", "Set ANTHROPIC_API_KEY."), TurnFinished("error", "", 1, 0.1)]
    )
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: blocks(app, ErrorBlock))
        assert "The key was refused." in words(app) and "Set ANTHROPIC_API_KEY." in words(app)


async def test_a_fault_of_ours_ends_the_turn_and_not_the_app(tmp_path: Path) -> None:
    def broken(text: str):
        raise RuntimeError("[/boom]")

    session = FakeSession(broken)
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: blocks(app, ErrorBlock))
        assert "RuntimeError: [/boom]" in words(app)
        session.script = lambda text: reply("well again")
        await pilot.press("y", "enter")
        await until(pilot, lambda: app.chat.presenter.last_answer() == "well again")


async def test_what_is_typed_shows_while_a_reply_streams(tmp_path: Path) -> None:
    flood = [step for n in range(300) for step in (TextDelta(f"word {n} "), 0.002)]
    session = FakeSession(lambda _: [*flood, Pause(), *reply("end")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: blocks(app, ReplyBlock))
        await pilot.press(*"typed meanwhile")
        assert app.controller.busy
        assert "typed meanwhile" in words(app)
        await until(pilot, lambda: "word 299" in words(app))


async def test_resizing_to_almost_nothing_and_back_while_it_streams(tmp_path: Path) -> None:
    flood = [step for n in range(200) for step in (TextDelta(f"word {n} "), 0.002)]
    session = FakeSession(lambda _: [ToolStarted("t", "grep", {"pattern": "x"}), *flood, *reply("the end")], [])
    async with chatting(tmp_path, session, (120, 36)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: blocks(app, ReplyBlock))
        await pilot.press(*"draft")
        for size in ((20, 5), (40, 20), (5, 2), (80, 24), (20, 5)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: app.screen.size == size)
        await until(pilot, lambda: "%" in words(app).split("\n")[-1])
        assert "draft" in words(app)
        await pilot.resize_terminal(120, 36)
        await until(pilot, lambda: not app.controller.busy)
        assert app.chat.composer.draft == "draft"
        await until(pilot, lambda: "the end" in words(app))


# ── commands ──


async def test_slash_commands_never_enter_the_conversation(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press(*"/rename Tide gauge", "enter")
        await until(pilot, lambda: session.state.title == "Tide gauge")
        await until(pilot, lambda: "Tide gauge" in words(app).split("\n")[0])
        await pilot.press(*"/hepl", "enter")
        await until(pilot, lambda: "Did you mean /help?" in words(app))
        assert app.chat.composer.draft == "/hepl"  # to be mended, not typed again
        assert session.sent == []


async def test_nothing_to_free_is_said_calmly(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("shift+f8")
        await until(pilot, lambda: "Nothing to free" in words(app))
        assert words(app).count("Nothing to free") == 1
        assert session.sent == [] and not blocks(app, ErrorBlock)


async def test_every_command_is_in_the_palette(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, (100, 80)) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "/quit" in words(app))
        await pilot.press(*"permission mode", "enter")
        await until(pilot, lambda: app.screen is not app.chat or True)
        await pilot.press("enter")
        await until(pilot, lambda: session.permissions.mode == "read-only")


async def test_the_palette_finds_the_search_by_what_it_does(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (100, 40)) as (app, pilot):
        await pilot.press("ctrl+p", *"find")
        await until(pilot, lambda: "/search" in words(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))


async def test_in_a_very_narrow_window_the_palette_says_what_rather_than_how(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (20, 20)) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "  Undo what" in words(app))


async def test_in_a_narrow_window_the_palette_says_its_sentences_whole(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (40, 20)) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "preview first" in " ".join(words(app).split()))
        assert "…" not in words(app).partition("shift+F8")[2]


@pytest.mark.parametrize("key", ["f1", "f3", "f4", "f9", "f10", "f12", "ctrl+f"])
async def test_every_screen_opens_with_its_key_and_closes_with_it_or_escape(tmp_path: Path, key: str) -> None:
    session = FakeSession(messages=[Message(seq=1, role="user", content="q")])
    loaded = partial(
        load_settings, tmp_path, environ={"CTXCHAT_CONFIG_DIR": str(tmp_path), "CTXCHAT_DATA_DIR": str(tmp_path)}
    )
    files = AppFiles(load_settings=loaded, settings_file=tmp_path / "config.toml")
    async with chatting(tmp_path, session, (100, 30), files=files) as (app, pilot):
        await pilot.press(*"draft")
        for away in (key, "escape", "escape"):
            await pilot.press(key)
            await until(pilot, lambda: app.screen is not app.chat and app.screen.is_running)
            field = app.screen.focused
            await pilot.press(away)
            await until(pilot, lambda field=field: app.screen is app.chat or app.screen.focused is not field)
            if away == "escape" and app.screen is not app.chat:
                await pilot.press("escape")  # the first one left a field
            await until(pilot, lambda: app.screen is app.chat)
        other = "f4" if key != "f4" else "f3"
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.chat)
        await pilot.press(other)
        await until(pilot, lambda: isinstance(app.screen, {"f3": ArchiveScreen, "f4": XrayScreen}[other]))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.chat.composer.draft == "draft" and not blocks(app, ErrorBlock)


async def test_help_opens_and_closes_with_its_key(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (100, 90)) as (app, pilot):
        await pilot.press(*"dra", "f1")
        await until(pilot, lambda: "While you write" in words(app))
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.chat.composer.draft == "dra"


@pytest.mark.parametrize("key", ["f3", "f4", "f8", "f9", "f10"])
@pytest.mark.parametrize("away", ["escape", "f1", "its own"])
async def test_the_help_lies_over_another_screen_which_stays(tmp_path: Path, key: str, away: str) -> None:
    session = FakeSession(messages=[Message(seq=1, role="user", content="q")])
    loaded = partial(
        load_settings, tmp_path, environ={"CTXCHAT_CONFIG_DIR": str(tmp_path), "CTXCHAT_DATA_DIR": str(tmp_path)}
    )
    files = AppFiles(load_settings=loaded, settings_file=tmp_path / "config.toml")
    async with chatting(tmp_path, session, (100, 30), files=files) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.chat and app.screen.is_running)
        below = app.screen
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press(key if away == "its own" else away)
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))
        assert app.screen is below
        await pilot.press(key)
        await until(pilot, lambda: app.screen is app.chat)


async def test_another_session_comes_and_the_draft_stays(tmp_path: Path) -> None:
    first = FakeSession(id="s1", messages=[Message(seq=1, role="user", content="in the first")])
    second = FakeSession(id="s2", messages=[Message(seq=1, role="user", content="in the second")])
    services = FakeServices(tmp_path, first, second)
    async with chatting(tmp_path, first, services=services) as (app, pilot):
        await until(pilot, lambda: "in the first" in words(app))
        await pilot.press(*"draft")
        await app.controller.switch("s2")
        await until(pilot, lambda: "in the second" in words(app))
        assert "in the first" not in words(app)
        assert first.closed and not second.closed and app.chat.composer.draft == "draft"


async def test_a_session_that_is_not_there_is_named_and_a_new_one_opened(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session, session_id="nope") as (app, pilot):
        await until(pilot, lambda: "There is no session nope." in words(app))
        assert app.session is session


async def test_a_session_open_elsewhere_can_be_read_and_keeps_the_draft(tmp_path: Path) -> None:
    session = FakeSession(read_only="This session is open in another window.")
    async with chatting(tmp_path, session) as (app, pilot):
        assert "open in another window" in words(app)
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: blocks(app, NoticeBlock))
        assert session.sent == [] and app.chat.composer.draft == "hello"


async def test_what_went_wrong_at_start_is_said_above_the_first_message(tmp_path: Path) -> None:
    session = FakeSession()
    services = FakeServices(tmp_path, session, notices=["config.toml:12 [/x] is wrong."])
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        assert "config.toml:12 [/x] is wrong." in words(app)
        await pilot.press("a", "enter")
        await until(pilot, lambda: "is wrong" not in words(app))


# ── foreign text ──


@pytest.mark.parametrize("size", [(100, 40), (40, 20), (20, 5)])
async def test_hostile_text_is_text_wherever_it_comes_from(tmp_path: Path, size: tuple[int, int]) -> None:
    bad, long = HOSTILE, "x" * 1_000_000
    script = [
        ReasoningDelta(bad),
        ToolStarted("a", bad, {"path": bad, bad: bad}),
        ToolProgress("a", bad),
        ToolFinished("a", bad, "error", bad + long, 12, 0.2, diff="+" + bad, exit_code=1, spilled=bad),
        Retry(1, 0.0, bad),
        Notice("error", bad),
        ApprovalRequested("c1", bad, bad, "write", "+" + bad, (bad,)),
        Pause("answer:c1"),
        TextDelta(bad + "\n\n| " + bad + " |\n|---|\n\n![x](javascript:boo) [l](file:///etc/passwd)\n"),
        Failed("server", bad, bad),
        TurnFinished("error", "", 1, 0.1),
    ]
    session = FakeSession(lambda _: script, [Message(seq=1, role="user", content=bad + long)], title=bad, model=bad)
    services = FakeServices(tmp_path / "[x]", session, notices=[bad])
    (tmp_path / "[x]").mkdir()
    (tmp_path / "[x]" / "a[bold]b[red].py").write_text("")
    async with chatting(tmp_path, session, size, services=services) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel))
        await pilot.press("y")
        await until(pilot, lambda: not app.controller.busy)
        app.chat.transcript.toggle_details()
        app.notify(bad, title=bad)
        await until(pilot, lambda: app.screen.query(Toast))
        shown = words(app)
        assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}
        assert app.is_running and blocks(app, ToolBlock) and blocks(app, ThinkingBlock)


async def test_links_are_not_followed_blindly(tmp_path: Path) -> None:
    opened: list[str] = []

    class Browserless(CtxchatApp):
        def open_url(self, url: str, *, new_tab: bool = True) -> None:
            opened.append(url)

    session = FakeSession(lambda _: reply("[bad](smb://host/x) README.md [good](https://example.org)"))
    async with chatting(tmp_path, session, app=Browserless) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "bad README.md good" in words(app) and not app.controller.busy)
        rows = words(app).split("\n")
        y = next(i for i, row in enumerate(rows) if "bad README.md" in row)
        x = rows[y].index("bad README.md")
        await pilot.click(offset=(x + 1, y))
        await pilot.click(offset=(x + 6, y))
        await pilot.click(offset=(x + 15, y))
        await pilot.pause()
        assert opened == ["https://example.org"]


async def test_without_a_browser_an_address_is_shown_and_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        app.open_url("https://example.org/[b]x")
        await until(pilot, lambda: app.clipboard == "https://example.org/[b]x")
        await until(pilot, lambda: "https://example.org/[b]x" in words(app))


async def test_retries_count_down_and_are_marked_when_over(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [Retry(1, 30.0, "rate limit"), Pause(), *reply("ok")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: blocks(app, RetryBlock) and "again in" in words(app))
        session.approvals().set()
        await until(pilot, lambda: "tried again" in words(app))


async def test_leaving_stops_the_turn_and_gives_the_session_free(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [TextDelta("half"), Pause()])
    services = FakeServices(tmp_path, session)
    app = CtxchatApp(services, Settings(), {}, runtime=Runtime(now=count().__next__))
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.session is not None)
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.press("y", "enter", "ctrl+q")
        await until(pilot, lambda: services.closed)
    assert session.closed and services.closed and session.interrupted == 1 and session.sent == ["x"]
    assert app.return_value == 0


class Overheard(CtxchatApp):
    """Keeps what it told the terminal past the screen."""

    told = ""

    def write_to_terminal(self, sequence: str) -> None:
        self.told += sequence


async def test_a_question_is_told_to_the_terminal_of_someone_who_is_elsewhere(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [ASK, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, app=Overheard) as (app, pilot):
        assert isinstance(app, Overheard)
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel))
        assert app.told == ""  # somebody is looking
        await pilot.press("y")
        await until(pilot, lambda: not app.controller.busy)
        app.post_message(AppBlur())
        await until(pilot, lambda: not app.app_focus)
        app.controller.send_draft("again")
        await until(pilot, lambda: app.query(ApprovalPanel))
        assert app.told == "\x1b]9;ctxchat asks before it goes on\x07"


async def test_news_after_the_first_message_stand_in_the_conversation_not_over_it(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (40, 12)) as (app, pilot):
        app.chat.announce("before anything")
        await pilot.pause()
        assert "before anything" in words(app)
        await pilot.press("x", "enter")
        await idle(app, pilot)
        assert "before anything" not in words(app)
        app.chat.announce("found late")
        await until(pilot, lambda: "found late" in words(app))
        assert not app.chat.banner.blocks
