"""A question beside the conversation: asked and answered on a screen of its own, of which nothing stays."""

from __future__ import annotations

from pathlib import Path

from ctxchat.core.errors import ModelError
from ctxchat.tui.panels.aside import AsideScreen
from ctxchat.tui.transcript.blocks import ErrorBlock, ReplyBlock
from ctxchat.tui.transcript.transcript import Transcript
from tests.doubles.scripted import fails, says
from tests.tui.chatting import idle, until, words
from tests.tui.real import say, talking


def answers(app) -> str:
    shown = app.screen.query_one(Transcript)
    return "\n".join(shown.words(block) for kind in (ReplyBlock, ErrorBlock) for block in shown.drawn_blocks(kind))


async def test_it_is_asked_answered_and_gone(tmp_path: Path) -> None:
    gone = fails(ModelError("No such model.", "Choose another.", kind="not_found"), after="Half of it.")
    script = [says("The port is 8123."), says("It is **8123**."), says("Yes."), gone, says("Done.")]
    async with talking(tmp_path, script) as (app, pilot, desk):
        await say(app, pilot, "which port?")
        await idle(app, pilot)
        ledger = desk.state.ledger
        await pilot.press(*"/btw the port again?", "enter")
        await until(pilot, lambda: isinstance(app.screen, AsideScreen) and "It is 8123." in answers(app))
        await pilot.press(*"sure?", "enter")
        await until(pilot, lambda: "Yes." in answers(app))
        await pilot.press(*"really?", "enter")
        await until(pilot, lambda: "No such model." in answers(app))
        assert "Half of it." in answers(app) and "interrupted" not in answers(app), "the error says what happened"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert desk.state.ledger == ledger and "again?" not in words(app) and not app.chat.composer.draft
        await say(app, pilot, "go on")
        await until(pilot, lambda: "Done." in words(app))


async def test_it_is_asked_during_a_turn_and_esc_stops_it_and_not_the_turn(tmp_path: Path) -> None:
    script = [says("Long work done.", delay=0.3), says("never to the end", delay=5)]
    async with talking(tmp_path, script) as (app, pilot, desk):
        await pilot.press(*"work", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.press(*"/btw what is this?", "enter")
        await until(pilot, lambda: isinstance(app.screen, AsideScreen) and len(desk.conversation.model.requests) == 2)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        await until(pilot, lambda: "Long work done." in words(app))
        assert [group.kind for group in desk.state.ledger.groups] == ["user", "reply"]
