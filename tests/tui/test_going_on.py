"""What broke off and goes on, on the screen: a half reply, a wait that was stopped, another model in the header meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ctxchat.core.errors import ModelError
from ctxchat.tui.commands import BY_NAME
from ctxchat.tui.transcript.blocks import NoticeBlock, ReplyBlock, RetryBlock, UserBlock
from tests.agent.desk import Echo
from tests.doubles.scripted import ScriptedModel, calls, fails, hangs, says
from tests.tui.chatting import blocks, idle, said, until
from tests.tui.real import say, talking

LOST = ModelError("The connection was lost.", kind="connection")
BUSY = ModelError("Rate limit reached", kind="rate_limit", retry_after=100)


def marks(app) -> list[str]:
    return [line for line in said(app, ReplyBlock).split("\n") if "interrupted" in line]


def notices(app) -> str:
    return said(app, NoticeBlock)


async def test_a_half_reply_says_how_to_go_on_and_does(tmp_path: Path) -> None:
    script = [fails(LOST, after="The gauge reports to "), says("the logger."), says("whole")]
    async with talking(tmp_path, script) as (app, pilot, desk):
        await say(app, pilot, "where to?")
        await until(pilot, lambda: any("/continue" in mark for mark in marks(app)))
        app.run_command(BY_NAME["continue"])
        await until(pilot, lambda: len(desk.state.ledger.groups) == 4)
        await idle(app, pilot)
        assert len(blocks(app, UserBlock)) == 1, "nobody said anything"
        assert not any("/continue" in mark for mark in marks(app)) and marks(app)
        assert app.chat.presenter.last_answer() == "The gauge reports to the logger."
        app.run_command(BY_NAME["continue"])
        await until(pilot, lambda: "nothing to continue" in notices(app))
        assert len(desk.state.ledger.groups) == 4


async def test_a_stored_session_that_ends_in_a_half_reply_offers_it_as_well(tmp_path: Path) -> None:
    async with talking(tmp_path, [fails(LOST, after="half "), says("more")]) as (app, pilot, _desk):
        await say(app, pilot, "hello")
        await app.chat.show_session(app.controller.open_session())
        await until(pilot, lambda: any("/continue" in mark for mark in marks(app)))


async def test_esc_ends_a_wait_and_says_so(tmp_path: Path) -> None:
    async with talking(tmp_path, [fails(BUSY), says("there")]) as (app, pilot, desk):
        desk.clock.hold = asyncio.Event()
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: blocks(app, RetryBlock))
        await until(pilot, lambda: "again in" in said(app, RetryBlock))
        await pilot.press("escape")
        await idle(app, pilot)
        assert "stopped" in said(app, RetryBlock)
        await until(pilot, lambda: "/continue goes on" in notices(app))
        app.run_command(BY_NAME["continue"])
        await until(pilot, lambda: len(desk.state.ledger.groups) == 2)


async def test_too_many_rounds_are_told_once(tmp_path: Path) -> None:
    script = [calls(("echo", {"text": "x"})) for _ in range(3)]
    async with talking(tmp_path, script, tools=[Echo()], max_rounds=2) as (app, pilot, _desk):
        await say(app, pilot, "go")
        await until(pilot, lambda: "Stopped after 2 rounds" in notices(app))
        assert notices(app).count("Stopped after") == 1 and "/continue" in notices(app)


async def test_the_header_names_who_answers(tmp_path: Path) -> None:
    second = ScriptedModel([hangs("standing in ")], name="b/second")
    wrong = fails(ModelError("Wrong key.", kind="auth"))
    async with talking(tmp_path, [wrong], fallback=second) as (app, pilot, _desk):
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: "second" in str(app.chat.header.draw_line(80)))
        assert "b/second answers this turn" in notices(app)
        await pilot.press("escape")
        await idle(app, pilot)
        await until(pilot, lambda: "second" not in str(app.chat.header.draw_line(80)))
