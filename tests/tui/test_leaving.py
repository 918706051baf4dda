"""The end on the screen: what the interface began is over before the store closes, and nothing more is begun."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from textual.events import Key

from ctxchat.storage.sessions import SessionRow
from ctxchat.tui.commands import BY_NAME
from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeServices, FakeSession, Pause, reply


class Slow(FakeServices):
    """Lists that take their time, and what was asked and closed, in order."""

    def __init__(self, workspace: Path, session: FakeSession) -> None:
        super().__init__(workspace, session)
        self.done: list[str] = []

    async def sessions(self) -> Sequence[SessionRow]:
        self.done.append("asked")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # what a library does to end
            self.done.append("over")
        return []

    async def close(self) -> None:
        self.done.append("closed")
        await super().close()


async def test_what_a_screen_asked_the_store_is_over_before_it_closes(tmp_path: Path) -> None:
    session = FakeSession(lambda text: [Pause(), *reply("late")])
    services = Slow(tmp_path, session)
    async with chatting(tmp_path, session, services=services) as (app, pilot):
        app.controller.send_draft("go on")
        await until(pilot, lambda: app.controller.busy)
        app.run_command(BY_NAME["sessions"])
        await until(pilot, lambda: len(services.done) == 2)  # for the ways to begin, and for the screen
        leaving = asyncio.create_task(app.leave())
        await asyncio.sleep(0)
        app.post_message(Key("f3", None))  # pressed too late
        await leaving
        assert services.done == ["asked", "asked", "over", "over", "closed"] and session.closed
        assert not [worker for worker in app.workers if not worker.is_finished]
