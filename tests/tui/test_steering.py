"""Messages sent while the agent works: at the next boundary or after the turn, seen while they wait, taken back, never twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ctxchat.agent.session import Session
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.events import TextDelta, ToolFinished, ToolStarted
from ctxchat.core.messages import Image
from ctxchat.tui.chat.approval import ApprovalPanel
from ctxchat.tui.transcript.blocks import ErrorBlock
from ctxchat.tui.unsent.draft import Draft, Picture
from tests.doubles.images import png
from tests.tui.chatting import ASK, blocks, chatting, idle, until, words
from tests.tui.fakes import Boundary, FakeServices, FakeSession, Pause, reply

CALL = ToolStarted("c1", "shell", {"command": "ls"})
DONE = ToolFinished("c1", "shell", "ok", "a.py", 3, 0.2, exit_code=0)


def working() -> FakeSession:
    """A turn of one round for the first message, an answer at once for those after it."""
    return FakeSession(
        lambda text: [CALL, Pause(), DONE, Boundary(), *reply("done")] if text == "x" else reply(f"to {text}")
    )


async def test_enter_reaches_the_agent_at_the_next_boundary_and_the_other_key_waits_for_the_end(tmp_path: Path) -> None:
    session = working()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "esc stops" in words(app))
        assert "ctrl+s after the turn" in words(app)
        await pilot.press(*"late", "ctrl+s", *"first", "enter", *"two", "enter")
        await until(pilot, lambda: "next  two" in words(app))
        assert "later late" in words(app) and "next  first" in words(app)
        assert session.sent == ["x"]
        session.approvals().set()
        await idle(app, pilot)
        assert session.sent == ["x", "first", "two", "late"]
        assert [g.turn for g in session.state.ledger.groups if g.kind == "user"] == [1, 1, 1, 2]
        screen = words(app)
        assert screen.index("first") < screen.index("two") < screen.index("done") < screen.index("late")
        assert screen.count("first") == 1 and not app.chat.composer.queued.drafts


async def test_what_waits_comes_back_into_the_editor_and_is_not_sent(tmp_path: Path) -> None:
    session = working()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter", *"one", "enter", *"two", "enter")
        await until(pilot, lambda: "next  two" in words(app))
        await pilot.press("up")
        assert app.chat.composer.draft == "two"
        await pilot.click(next(iter(app.query("Queued Chip"))))
        await until(pilot, lambda: app.chat.composer.draft == "one\n\ntwo")
        session.approvals().set()
        await idle(app, pilot)
        assert session.sent == ["x"]


async def test_what_has_gone_cannot_be_taken_back(tmp_path: Path) -> None:
    session = working()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter", *"one", "enter")
        await until(pilot, lambda: app.chat.composer.queued.drafts)
        waiting = app.chat.composer.queued.drafts[0]
        session.approvals().set()
        await idle(app, pilot)
        assert not app.chat.composer.take_back(waiting)
        assert app.chat.composer.draft == "" and session.sent == ["x", "one"]


async def test_a_turn_that_is_stopped_lets_what_waited_go_out_as_it_always_did(tmp_path: Path) -> None:
    session = working()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter", *"one", "enter")
        await until(pilot, lambda: app.chat.composer.queued.drafts)
        await pilot.press("escape")
        await idle(app, pilot)
        assert session.sent == ["x", "one"]


class NoRoom(FakeSession):
    """Cannot keep an image."""

    async def save(self, name: str, data: bytes) -> Image:
        raise StorageError("The disk is full.")


@pytest.mark.parametrize("steps", range(4))
async def test_stopped_before_its_turn_began_a_message_comes_back(tmp_path: Path, steps: int) -> None:
    """Enter and Esc in one go, each so many steps of the loop behind the other."""
    session = FakeSession(lambda text: [Pause(), *reply("done")])
    async with chatting(tmp_path, session) as (app, pilot):
        app.controller.send_draft("words")
        assert app.controller.unsent.text == "words"
        for _ in range(steps):
            await asyncio.sleep(0)
        app.controller.interrupt()
        await until(pilot, lambda: not app.controller.busy)
        await pilot.pause()
        arrived = any(group.first.text == "words" for group in session.state.ledger.groups)
        assert arrived or app.chat.composer.prompt.text == "words"


async def test_a_message_sent_while_another_session_is_opened_keeps_its_own_on_screen(tmp_path: Path) -> None:
    class Slow(FakeServices):
        async def open(self, session_id: str = "") -> FakeSession | Session:
            if session_id:
                app.controller.send_draft("x")
                await until(pilot, lambda: bool(session.state.ledger.groups))
            return await super().open(session_id)

    session, other = working(), FakeSession(id="s2")
    services = Slow(tmp_path, session, other)
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        with pytest.raises(CtxchatError, match="under way"):
            await app.controller.switch("s2")
        assert app.session is session and not session.closed and other.closed


async def test_what_cannot_be_kept_comes_back_and_the_turn_goes_on(tmp_path: Path) -> None:
    session = NoRoom(lambda text: [CALL, Pause(), DONE, Boundary(), *reply("done")])
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        app.controller.send_draft(Draft("look", (Picture("a.png", png(4, 4), 4, 4),)))
        session.approvals().set()
        await idle(app, pilot)
        assert session.sent == ["x"] and app.chat.composer.draft == "look" and app.chat.composer.whole_draft.along
        assert "it is back in the editor" in words(app) and "done" in words(app)


async def test_page_up_scrolls_the_conversation_under_a_question(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [TextDelta("line\n\n" * 60), ASK, Pause("answer:c1"), *reply("ok")])
    async with chatting(tmp_path, session, (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.query(ApprovalPanel) and app.query_one(ApprovalPanel).has_focus)
        await until(pilot, lambda: app.chat.transcript.scroll_y > 0)
        before = app.chat.transcript.scroll_y
        await pilot.press("pageup")
        await until(pilot, lambda: app.chat.transcript.scroll_y < before)
        await pilot.press("pagedown")
        await until(pilot, lambda: app.chat.transcript.scroll_y == before)
        assert app.query_one(ApprovalPanel).has_focus and not session.answers
        await pilot.press("n")


async def test_ctrl_c_says_how_to_stop_and_how_to_leave(tmp_path: Path) -> None:
    session = working()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("escape", "ctrl+c")
        await until(pilot, lambda: [n.message for n in app._notifications] == ["ctrl+c again leaves"])
        app.clear_notifications()
        await pilot.press("x", "enter")
        await until(pilot, lambda: "esc stops" in words(app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: [n.message for n in app._notifications] == ["esc stops, ctrl+q leaves"])


async def test_ctrl_c_twice_leaves_but_not_during_a_turn(tmp_path: Path) -> None:
    session = working()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: "esc stops" in words(app))
        await pilot.press("ctrl+c", "ctrl+c", "escape")
        await until(pilot, lambda: not app.controller.busy)
        assert not session.closed
        await pilot.press("ctrl+c", "ctrl+c")
        await until(pilot, lambda: session.closed)


async def test_undo_with_nothing_to_undo_is_a_short_notice(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession()) as (app, pilot):
        await pilot.press("alt+u")
        await until(pilot, lambda: "There is nothing to undo." in words(app))
        assert not blocks(app, ErrorBlock)
