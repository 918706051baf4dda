"""Nobody is at the model's address: that is said, and the ways to go on are offered, for a message and for a stored session."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest
from textual.widgets import Static

from ctxchat.config.schema import Settings
from ctxchat.core.errors import ModelError
from ctxchat.tui.app import CtxchatApp, Runtime
from ctxchat.tui.chat.offers import UnreachedPanel
from ctxchat.tui.transcript.blocks import ErrorBlock, NoticeBlock, RetryBlock
from tests.agent.desk import Desk
from tests.doubles.scripted import ScriptedModel, fails, says
from tests.tui.chatting import THEMES, blocks, idle, said, until, words
from tests.tui.fakes import FakeServices
from tests.tui.real import say, talking

GONE = fails(ModelError("Cannot connect to 127.0.0.1:9: nobody listens there.", kind="connection"))
ADDRESS = "http://127.0.0.1:9/v1"


def question(app: CtxchatApp) -> str:
    return str(app.query_one(UnreachedPanel).query_one(".question", Static).render())


def notices(app: CtxchatApp) -> str:
    return said(app, NoticeBlock)


async def test_a_message_nobody_answers_waits_and_is_asked_about_until_somebody_does(tmp_path: Path) -> None:
    script = [GONE, GONE, says("Here I am.")]
    async with talking(tmp_path, script, address=ADDRESS, retries=0) as (app, pilot, desk):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        assert "scripted/model" in question(app) and ADDRESS in question(app)
        assert "scripted/model" in words(app) and len(blocks(app, ErrorBlock)) == 1
        await pilot.press("r")
        assert app.chat.composer.draft == "r", "a letter of the next message"
        await pilot.press("backspace", "tab", "r")
        await until(pilot, lambda: len(blocks(app, ErrorBlock)) == 2 and app.query(UnreachedPanel))
        await pilot.press("tab", "r")
        await until(pilot, lambda: len(desk.state.ledger.groups) == 2)
        await idle(app, pilot)
        assert not app.query(UnreachedPanel) and "Here I am." in words(app)
        assert [group.kind for group in desk.state.ledger.groups] == ["user", "reply"], "it was said once"


async def test_esc_while_it_is_tried_again_offers_the_ways_at_once(tmp_path: Path) -> None:
    async with talking(tmp_path, [GONE], address=ADDRESS, retries=3) as (app, pilot, desk):
        desk.clock.hold = asyncio.Event()
        desk.conversation.model.there = False  # type: ignore[attr-defined]
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: blocks(app, RetryBlock))
        await pilot.press("escape")
        await until(pilot, lambda: app.query(UnreachedPanel))
        assert "stopped" in words(app) and len(desk.conversation.model.requests) == 1  # type: ignore[attr-defined]


async def test_the_line_of_the_last_attempt_says_that_it_was_made(tmp_path: Path) -> None:
    async with talking(tmp_path, [GONE, GONE], address=ADDRESS, retries=1) as (app, pilot, _desk):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        assert "tried again" in words(app) and "stopped" not in words(app)


async def test_attempts_for_the_same_cause_share_a_line(tmp_path: Path) -> None:
    async with talking(tmp_path, [GONE] * 4, address=ADDRESS, retries=3) as (app, pilot, _desk):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        assert "3 more tries" in words(app) and len(blocks(app, RetryBlock)) == 1


async def test_a_missing_key_asks_how_to_go_on(tmp_path: Path) -> None:
    keyless = fails(ModelError("No API key.", kind="auth"))
    async with talking(tmp_path, [keyless]) as (app, pilot, _desk):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        assert "other model" in words(app)


async def test_the_offline_assistant_answers_what_waits(tmp_path: Path) -> None:
    other = ScriptedModel([says("I quote files.")], name="offline/assistant")
    async with talking(tmp_path, [GONE], retries=0, others={other.name: other}) as (app, pilot, desk):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        await pilot.press("tab", "o")
        await until(pilot, lambda: [g.kind for g in desk.state.ledger.groups] == ["user", "note", "reply"])
        assert desk.state.model == "offline/assistant" and len(other.requests) == 1
        await until(pilot, lambda: "From here on the offline assistant answers." in notices(app))


@pytest.mark.parametrize("keys", [("tab", "escape"), ("escape",)])
async def test_not_now_leaves_all_as_it_is(tmp_path: Path, keys: tuple[str, ...]) -> None:
    async with talking(tmp_path, [GONE, says("later")], retries=0) as (app, pilot, desk):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        await pilot.press(*keys)
        await until(pilot, lambda: not app.query(UnreachedPanel))
        await until(pilot, lambda: app.focused is app.chat.composer.prompt)
        assert desk.state.model in ("", "scripted/model") and len(desk.state.ledger.groups) == 1


async def test_a_stored_session_asks_before_anything_is_sent(tmp_path: Path) -> None:
    before = Desk(ScriptedModel([says("hi")]))
    await before.say("hello")
    model = ScriptedModel([says("there again")], address=ADDRESS)
    model.there = False
    desk = Desk(model, records=list(before.journal.records))
    app = CtxchatApp(
        FakeServices(tmp_path, desk.session), Settings(), THEMES, session_id="s1", runtime=Runtime(now=count().__next__)
    )
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.query(UnreachedPanel))
        assert f"scripted/model at {ADDRESS} cannot be reached" in question(app) and not model.requests
        await pilot.press("tab", "r")
        await until(pilot, lambda: app.query(UnreachedPanel) and not app.query_one(UnreachedPanel).answering)
        model.there = True
        await pilot.press("tab", "r")
        await until(pilot, lambda: "can be reached again" in notices(app))
        await idle(app, pilot)
        assert not app.query(UnreachedPanel) and not model.requests, "nothing waited"


@pytest.mark.parametrize("size", [(80, 24), (40, 24), (20, 24), (80, 9)])
async def test_every_way_to_go_on_is_to_be_seen(tmp_path: Path, size: tuple[int, int]) -> None:
    async with talking(tmp_path, [GONE], size=size, address=ADDRESS, retries=0) as (app, pilot, _desk):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        await idle(app, pilot)
        seen = " ".join(words(app).replace("▌", "").split())
        assert all(way in seen for way in ("try again", "other model", "offline assistant", "not now")), seen
        assert app.chat.composer.region.bottom <= size[1]
