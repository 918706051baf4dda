"""The chat over the real session: scripted models, a journal in memory, everything between them as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from textual.pilot import Pilot

from ctxchat.config.schema import Settings
from ctxchat.core.budget import Window
from ctxchat.core.events import Notice, Usage
from ctxchat.core.options import Options
from ctxchat.core.permissions import Mode
from ctxchat.core.ports import ModelPort, SummaryTask, ToolPort, WorkspaceFiles
from ctxchat.core.prices import ModelPrices
from ctxchat.tui.app import CtxchatApp, Runtime
from tests.agent.desk import Desk
from tests.doubles.scripted import Script, ScriptedModel
from tests.tui.chatting import THEMES, idle, until
from tests.tui.fakes import FakeServices

SUMMARY = "## Goal\nFind why the gauge at Pier 7 goes silent.\n\n## Decisions\n- poll every 90 s (settled)\n"
LONG = "the tide gauge at pier seven reports every ninety seconds to the logger cormorant " * 25


class Writer:
    """Writes the same summary each time, in two pieces; between them it waits for `go` where it is said to."""

    model = "anthropic/claude-haiku-4-5"

    def __init__(self, *, waits: bool = False) -> None:
        self.go = asyncio.Event()
        self.asked: list[str] = []
        if not waits:
            self.go.set()

    async def summarise(self, task: SummaryTask) -> AsyncIterator[str | Usage | Notice]:
        self.asked.append(task.instructions)
        yield SUMMARY[:30]
        await self.go.wait()
        yield SUMMARY[30:]


@asynccontextmanager
async def talking(
    tmp_path: Path,
    script: Script,
    *,
    size: tuple[int, int] = (100, 36),
    window: int = 16_000,
    writer: Writer | None = None,
    tools: Sequence[ToolPort] = (),
    fallback: ModelPort | None = None,
    files: WorkspaceFiles | None = None,
    mode: Mode = "ask",
    others: dict[str, ModelPort] | None = None,
    address: str = "",
    prices: ModelPrices | None = None,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    said: Sequence[str] = (),
    **options: object,
) -> AsyncIterator[tuple[CtxchatApp, Pilot[int], Desk]]:
    """`said`: messages that were answered before the chat is opened, which is much quicker than on screen."""
    made = Options(**({"keep_recent": 2, "strategy": "summarize", "prepare": False} | options))  # type: ignore[arg-type]
    model = ScriptedModel(script, window=Window(window, "configured"), address=address, prices=prices)
    desk = Desk(
        model,
        others=others,
        options=made,
        summariser=writer or Writer(),
        tools=tools,
        fallback_of=lambda name: fallback,
        mode=mode,
        workspace=tmp_path,
        files=files,
    )
    for text in said:
        await desk.say(text)
    app = CtxchatApp(FakeServices(tmp_path, desk.session), settings, THEMES, runtime=Runtime(now=count().__next__))
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.session is not None)
        yield app, pilot, desk
        (writer or Writer()).go.set()
        await idle(app, pilot)


async def say(app: CtxchatApp, pilot: Pilot[int], text: str) -> None:
    """A message, and its turn to the end."""
    before = app.session.state.ledger.turn
    app.controller.send_draft(text)
    await until(pilot, lambda: app.session.state.ledger.turn > before)
    await idle(app, pilot)
