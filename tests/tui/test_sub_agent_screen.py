"""A sub-agent's work is followed as it goes on, from its call in the conversation."""

from __future__ import annotations

import json
from pathlib import Path

from textual.pilot import Pilot

from ctxchat.core.events import Delegated, ToolFinished, ToolStarted
from ctxchat.core.grouping import close_round, single
from ctxchat.core.journal import AgentChosen, Partial, Record, Sealed
from ctxchat.core.messages import Message, ToolCall
from ctxchat.storage.loading import JournalNews
from ctxchat.tui.panels.sub_agent import SubAgentScreen
from ctxchat.tui.transcript.transcript import Transcript
from tests.tui.chatting import chatting, idle, tab_until, until, words
from tests.tui.fakes import FakeServices, FakeSession, reply

ASKED = Sealed((single("user", Message(1, "user", "Find the retry limit."), 1),))
CALL = ToolCall("t1", "grep", json.dumps({"text": "retry limit"}))
SAID = Message(2, "assistant", "I look in the notes.", calls=(CALL,))
FOUND = Message(3, "tool", "notes.md:1: The retry limit is 7.", call_id="t1")
DELEGATED = Delegated("c1", "scout", "s9", "m", 900, 28_672, 0.0)


def news(*records: Record, under_way: Partial | None = None) -> JournalNews:
    return JournalNews(records, len(records), under_way)


def screen(pilot: Pilot[int]) -> str:
    return words(pilot.app)  # type: ignore[arg-type]


async def until_said(pilot: Pilot[int], said: str) -> None:
    await until(pilot, lambda: said in screen(pilot))


def services(tmp_path: Path, session: FakeSession, journal: JournalNews) -> FakeServices:
    made = FakeServices(tmp_path, session)
    made.journals["s9"] = journal
    return made


async def test_enter_on_the_call_opens_what_its_sub_agent_does_and_it_grows_there(tmp_path: Path) -> None:
    session = FakeSession(
        lambda _: [
            ToolStarted("c1", "delegate", {"task": "Find it."}),
            DELEGATED,
            ToolFinished("c1", "delegate", "ok", "7\n\n[its record: session s9]", 5, 0.1),
            *reply("ok"),
        ]
    )
    doors = services(
        tmp_path, session, news(AgentChosen("scout"), ASKED, under_way=Partial(Message(2, "assistant", "I lo")))
    )
    async with chatting(tmp_path, session, (80, 24), services=doors) as (app, pilot):
        await pilot.press("x", "enter")
        await idle(app, pilot)
        assert "its work" in words(app)
        await tab_until(pilot, lambda: ("enter", "its work") in app.chat.transcript.key_words)
        await until_said(pilot, "its work enter")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SubAgentScreen))
        await until_said(pilot, "Find the retry limit.")
        await until_said(pilot, "I lo")
        assert "scout" in screen(pilot) and "at work" in screen(pilot)

        doors.journals["s9"] = news(AgentChosen("scout"), ASKED, under_way=Partial(SAID))
        await until_said(pilot, "I look in the notes.")
        await until_said(pilot, "grep")
        assert "esc stops" not in screen(pilot), "here it leads back"
        doors.journals["s9"] = news(AgentChosen("scout"), ASKED, under_way=Partial(SAID, (FOUND,)))
        await until_said(pilot, "1 hit")

        whole = close_round(SAID, (FOUND,), 1, 4, "")
        done = single("reply", Message(4, "assistant", "It is 7."), 1)
        doors.journals["s9"] = news(AgentChosen("scout"), ASKED, Sealed((whole,)), Sealed((done,)))
        await until_said(pilot, "It is 7.")
        assert "at work" not in screen(pilot) and screen(pilot).count("I look in the notes.") == 1
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_one_that_was_deleted_is_said(tmp_path: Path) -> None:
    session = FakeSession(lambda _: reply("ok"))
    async with chatting(tmp_path, session, (80, 24), services=services(tmp_path, session, news())) as (app, pilot):
        app.push_screen(SubAgentScreen(app.services, "s9"))
        await until_said(pilot, "its session was deleted")


async def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    session = FakeSession(lambda _: reply("ok"))
    async with chatting(tmp_path, session, (80, 24), services=FakeServices(tmp_path, session)) as (app, pilot):
        app.push_screen(SubAgentScreen(app.services, "s9"))
        await until(pilot, lambda: "The data folder is full." in words(app))
        assert not app.screen.query_one(Transcript).items
