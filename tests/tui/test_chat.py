"""The chat, end to end on a scripted session."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.config.schema import Settings
from ctxchat.tui.app import CtxchatApp
from tests.tui.fakes import FakeServices, FakeSession


def app_for(tmp_path: Path, session: FakeSession, **more) -> CtxchatApp:
    return CtxchatApp(FakeServices(tmp_path, session), Settings(), **more)


async def test_a_message_gets_its_answer_and_both_are_shown(tmp_path: Path) -> None:
    session = FakeSession()
    app = app_for(tmp_path, session)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press(*"hello", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert session.sent == ["hello"]
        assert app.chat.transcript.last_answer() == "You said: hello"
        assert app.chat.composer.draft == ""
        assert len(app.chat.transcript.items) == 2
