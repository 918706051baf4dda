"""The whole interface over a session that follows a script, and what its screen says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

from textual.pilot import Pilot

from ctxchat.config.schema import Settings
from ctxchat.config.themes import load_themes
from ctxchat.core.events import ApprovalRequested
from ctxchat.tui.app import CtxchatApp, Runtime
from ctxchat.tui.panels.panel import Confirm
from ctxchat.tui.transcript.blocks import Block
from tests.tui.fakes import FakeServices, FakeSession

Kind = TypeVar("Kind", bound=Block)

THEMES = load_themes(Path("no folder of a person's own")).themes
"""Read once: making their colours readable takes a tenth of a test."""

HOSTILE = "see [/tmp/x] [bold]hi[/bold] [@click=app.quit]boo[/] \x1b]0;x\x07\x1b[2J\u202e\x9b31m"

ASK = ApprovalRequested("c1", "shell", "run a command", "run", "rm -rf /\rls\x1b[1A [/x]", ("shell: rm *",))


@asynccontextmanager
async def chatting(
    tmp_path: Path, session: FakeSession, size: tuple[int, int] = (100, 30), **more
) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    services = more.pop("services", None) or FakeServices(tmp_path, session)
    more.setdefault("runtime", Runtime(now=count().__next__))  # a question is answered as soon as it is seen
    settings = more.pop("settings", Settings())
    app = more.pop("app", CtxchatApp)(services, settings, THEMES, **more)
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        await until(pilot, lambda: app.session is not None)
        yield app, pilot
        for approvals in session.gates.values():
            approvals.set()
        await idle(app, pilot)


async def until(pilot: Pilot[int], holds: Callable[[], object]) -> None:
    """Wait for it, however slow the machine; a minute is for what never comes."""
    async with asyncio.timeout(60):
        while not holds():
            await look_later(pilot)
        await pilot.pause()


async def look_later(pilot: Pilot[int], seconds: float = 0.01) -> None:
    """As `pause`, without a message to each widget: those of a hundred looks a second cost more than what is waited for."""
    await asyncio.sleep(seconds)
    pilot.app.screen._on_timer_update()


async def tab_until(pilot: Pilot[int], holds: Callable[[], object]) -> None:
    """Press tab until it holds."""
    for _ in range(50):
        if holds():
            return
        await pilot.press("tab")
    raise AssertionError("the focus never came there")


async def sure(pilot: Pilot[int], *keys: str) -> None:
    """Press these, the last of which asks first, and confirm."""
    await pilot.press(*keys)
    await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, Confirm))


async def idle(app: CtxchatApp, pilot: Pilot[int]) -> None:
    await until(pilot, lambda: not app.controller.busy and not app.chat.composer.queued.drafts)


def blocks(app: CtxchatApp, kind: type[Kind]) -> list[Kind]:
    """What of this kind stands in the conversation, as far as it was looked at."""
    return list(app.chat.transcript.drawn_blocks(kind))


def focus_on(app: CtxchatApp, block: Block) -> None:
    """Its keys work from now on."""
    app.chat.transcript.focus()
    app.chat.transcript._focus_on(block)


def said(app: CtxchatApp, kind: type[Block]) -> str:
    """What the blocks of this kind say, each on one line, from top to bottom."""
    return "\n".join(" ".join(app.chat.transcript.words(block).split()) for block in blocks(app, kind))


def words(app: CtxchatApp) -> str:
    """All that is on screen, as plain text."""
    return "\n".join("".join(s.text for s in strip) for strip in app.screen._compositor.render_strips())
