"""Keys that come in one burst, as after a line that hung: each Enter sends what was typed before it, and nothing else."""

from __future__ import annotations

from pathlib import Path

from textual.events import Key, Paste

from ctxchat.core.openai import to_wire
from ctxchat.tui.app import AppFiles, CtxchatApp
from ctxchat.tui.unsent.draft import Draft, Drafts
from tests.tui.chatting import chatting, until, words
from tests.tui.fakes import FakeSession, Pause, reply

LONG = 9_000
"""Characters of a paste that goes along instead of into the editor."""


def burst(app: CtxchatApp, *typed: str | Paste) -> None:
    """As a terminal hands them over: all of them are there before the first was looked at."""
    for each in typed:
        for event in [each] if isinstance(each, Paste) else [Key("enter" if k == "\r" else k, k) for k in each]:
            app.post_message(event)


async def test_what_is_typed_behind_enter_begins_the_next_message(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        burst(app, "help\rworld\rthird\rrest")
        await until(pilot, lambda: len(session.sent) == 3)
        assert (session.sent, app.chat.composer.draft) == (["help", "world", "third"], "rest")


async def test_beside_a_turn_the_messages_wait_in_order_and_outlive_a_kill(tmp_path: Path) -> None:
    session = FakeSession(lambda _: [Pause(), *reply("ok")], id="0123456789ab")
    data = tmp_path / "data"
    async with chatting(tmp_path, session, files=AppFiles(data_folder=data)) as (app, pilot):
        burst(app, "a\rb\rc\rd")
        await until(pilot, lambda: any(r"b\n\nc\n\nd" in file.read_text() for file in data.rglob("draft.json")))
        assert session.sent == ["a"] and app.chat.composer.draft == "d"
        assert [draft.text for draft in app.chat.composer.queued.drafts] == ["b", "c"]
        assert await Drafts(data).load_draft(session.id) == Draft("b\n\nc\n\nd")


async def test_a_paste_goes_with_the_message_it_was_pasted_into(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        burst(app, "one", Paste("x" * LONG), "\rtwo", Paste("y" * LONG), "\r")
        await until(pilot, lambda: len(session.sent) == 2)
        said = [str(to_wire(group.first)["content"]) for group in session.state.ledger.groups]
        first, second = (text for text in said if text.startswith(("one", "two")))
        assert ("x" * LONG in first, "y" * LONG in first) == (True, False)
        assert ("x" * LONG in second, "y" * LONG in second) == (False, True)


async def test_what_is_refused_stays_in_the_editor(tmp_path: Path) -> None:
    session = FakeSession(read_only="Another window writes to it.")
    async with chatting(tmp_path, session) as (app, pilot):
        burst(app, "one ", Paste("x" * LONG), "\rtwo\r")
        await until(pilot, lambda: "Nothing was sent" in words(app) and app.chat.composer.draft == "one two")
        assert len(app.chat.composer.parts) == 1 and session.sent == []


async def test_a_command_is_run_and_the_words_behind_it_are_sent(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        burst(app, "/rename Other\rhello\r")
        await until(pilot, lambda: session.sent == ["hello"] and session.state.title == "Other")


async def test_a_command_typed_faster_than_its_list_is_drawn_is_run(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(title="Before")) as (app, pilot):
        await pilot.press(*"/ren")
        await until(pilot, lambda: "Rename this session" in words(app))
        burst(app, "ame\r")
        await until(pilot, lambda: app.chat.composer.draft == "/rename Before")


async def test_enter_takes_the_choice_for_all_that_was_typed(tmp_path: Path) -> None:
    session = FakeSession()
    async with chatting(tmp_path, session) as (app, pilot):
        await pilot.press(*"/r")
        await until(pilot, lambda: "Rename this session" in words(app))
        burst(app, "ena\r")
        await until(pilot, lambda: app.chat.composer.prompt.text == "/rename ")
        assert session.sent == []
