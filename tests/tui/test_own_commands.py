"""`!command` in the composer: real processes, what is seen of them, and what goes along with the next message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxchat.core.messages import Text, attached
from ctxchat.tools.person_shell import PersonShell
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tui.chat.chips import Chip
from ctxchat.tui.transcript.blocks import ErrorBlock
from ctxchat.tui.transcript.tool_block import ToolBlock
from tests.tui.chatting import blocks, chatting, idle, said, until, words
from tests.tui.fakes import FakeSession


def session_in(folder: Path) -> FakeSession:
    session = FakeSession()
    session.person_commands = PersonShell(Sandbox(), os.environ, str(folder))
    return session


async def typed(app, pilot, text: str) -> None:
    app.chat.composer.set_draft(text)
    await pilot.press("enter")
    await until(pilot, lambda: not app.controller.own_commands.running)


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (20, 9)])
async def test_it_runs_at_once_is_shown_clean_and_goes_along_with_the_next_message(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    session = session_in(tmp_path)
    async with chatting(tmp_path, session, size) as (app, pilot):
        await typed(app, pilot, "!printf '\\033[31mup [b]and[/b]\\033]0;x\\007 \\342\\200\\256running\\n'; exit 3")
        await until(pilot, lambda: "up [b]and[/b]" in words(app).replace("\n", " ") or size[0] < 80)
        assert "\x1b" not in words(app) and "‮" not in words(app)
        assert not session.sent and not session.state.ledger.groups
        await typed(app, pilot, "what is this?")
        await idle(app, pilot)
        (along,) = session.sent_along
        (part,) = along
        assert isinstance(part, Text) and part.name.startswith("$ printf") and part.text.endswith("[exit code 3]")
        assert attached(along)[0].ended == "exit 3", "a restart knows nothing but the record"
        await typed(app, pilot, "and now?")
        await idle(app, pilot)
        assert session.sent == ["what is this?", "and now?"] and not session.sent_along[1]


async def test_what_was_taken_out_or_said_nothing_goes_nowhere(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    async with chatting(tmp_path, session) as (app, pilot):
        await typed(app, pilot, "!mkdir sub; cd sub")
        assert not app.chat.composer.attached.along
        await typed(app, pilot, "! pwd")
        await until(pilot, lambda: list(app.chat.query(Chip)))
        assert str(tmp_path / "sub") in said(app, ToolBlock)
        app.chat.query_one(Chip).focus()
        await pilot.press("x")
        await until(pilot, lambda: not app.chat.composer.attached.along)
        await typed(app, pilot, "hello")
        await idle(app, pilot)
        assert not session.sent_along[0]
        for text in ("!", "!!", "!?"):  # the last is a command that is not there
            await typed(app, pilot, text)
        await idle(app, pilot)
        assert session.sent == ["hello", "!", "!!"]


async def test_esc_ends_it_and_a_second_one_waits(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    async with chatting(tmp_path, session) as (app, pilot):
        app.chat.composer.set_draft("!echo begun; sleep 300")
        await pilot.press("enter")
        await until(pilot, lambda: "begun" in said(app, ToolBlock))
        app.chat.composer.set_draft("!echo second")
        await pilot.press("enter")
        await until(pilot, lambda: "Esc ends it" in said(app, ErrorBlock))
        assert app.chat.composer.draft == "!echo second"
        await pilot.press("escape")
        await until(pilot, lambda: not app.controller.own_commands.running)
        assert not blocks(app, ToolBlock)[0].moving and not app.chat.composer.attached.along
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.composer.attached.along)
        session.person_commands = None
        app.chat.composer.set_draft("!echo third")
        await pilot.press("enter")
        await until(pilot, lambda: "No commands can be run" in said(app, ErrorBlock))
