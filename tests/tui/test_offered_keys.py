"""Keys that are shown at the composer while something is offered or goes along: each works where it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.chat.chips import Chip, MentionToAgree
from ctxchat.tui.chat.edges import IDLE_KEYS
from ctxchat.tui.chat.offers import UnreachedPanel
from ctxchat.tui.unsent.draft import Picture
from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeSession, Pause
from tests.tui.real import say, talking
from tests.tui.test_attaching import SHOT
from tests.tui.test_footers import CALLS, at_rest, came_back, comes
from tests.tui.test_unreached import ADDRESS, GONE

NAMES = {"esc": "escape"}


@asynccontextmanager
async def failed(folder: Path) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """A turn failed: there is nobody at the model's address."""
    async with talking(folder, [GONE] * 9, address=ADDRESS, retries=0, size=(140, 40)) as (app, pilot, _):
        await say(app, pilot, "hello")
        await until(pilot, lambda: app.query(UnreachedPanel))
        app.chat.composer.prompt.insert("words")
        yield app, pilot


@asynccontextmanager
async def pasted(folder: Path) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """A long paste goes along."""
    async with chatting(folder, FakeSession(), (140, 40)) as (app, pilot):
        app.chat.composer.prompt.post_message(Paste("word " * 15_000))
        await until(pilot, lambda: app.query(Chip))
        yield app, pilot


@asynccontextmanager
async def pictured(folder: Path) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """A picture goes along."""
    async with chatting(folder, FakeSession(), (140, 40)) as (app, pilot):
        app.chat.composer.attached.attach(Picture("shot.png", SHOT, 64, 48))
        await until(pilot, lambda: app.query(Chip))
        yield app, pilot


@asynccontextmanager
async def outside(folder: Path) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """A file outside the folder goes along only where one says so."""
    (folder / "work").mkdir()
    (folder / "key").write_text("of mine")
    async with chatting(folder / "work", FakeSession(), (140, 40)) as (app, pilot):
        app.chat.composer.prompt.insert("see @../key ")
        await until(pilot, lambda: app.query(MentionToAgree))
        yield app, pilot


@asynccontextmanager
async def queued(folder: Path) -> AsyncIterator[tuple[CtxchatApp, Pilot[int]]]:
    """A message waits while the agent works."""
    session = FakeSession(lambda _: (*CALLS, Pause()))
    async with chatting(folder, session, (140, 40)) as (app, pilot):
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.press("y", "ctrl+s")
        await until(pilot, lambda: app.query(Chip))
        app.chat.composer.prompt.insert("words")
        yield app, pilot
        session.approvals().set()


def at_composer(app: CtxchatApp) -> bool:
    return app.chat.composer.prompt.has_focus


def beside(app: CtxchatApp) -> bool:
    return isinstance(app.focused, Chip | MentionToAgree) or bool(app.query("UnreachedPanel:focus-within"))


def shown_keys(app: CtxchatApp) -> Sequence[tuple[str, str]]:
    """The keys below the chat but those that work everywhere, and where it has the focus those of the offer."""
    everywhere = {action for action, _ in IDLE_KEYS[2:]}
    below = [
        (action[1:] if action.startswith("=") else next(iter(app.keys.get(action, ())), ""), does)
        for action, does in app.chat.key_line._wanted
        if action not in everywhere
    ]
    offers = app.query(UnreachedPanel) if beside(app) else ()
    return [(key, does) for key, does in below if key] + [
        (key, does) for each in offers for _, key, does, _ in each.answers
    ]


@pytest.mark.parametrize("place", [at_composer, beside])
@pytest.mark.parametrize("state", [failed, pasted, pictured, outside, queued])
async def test_each_key_shown_beside_an_offer_or_an_attachment_does_something(
    tmp_path: Path, state: Callable[[Path], object], place: Callable[[CtxchatApp], bool]
) -> None:
    dead: list[str] = []
    tried, named = 0, [("", "")]
    while tried < len(named):
        folder = tmp_path / str(tried)
        folder.mkdir()
        async with state(folder) as (app, pilot):  # type: ignore[attr-defined]
            for _ in range(20):
                if place(app):
                    break
                await pilot.press("tab")
            await until(pilot, lambda app=app: place(app))
            await pilot.pause(0.3)
            app.clear_notifications()
            named, focused, before = list(shown_keys(app)), app.focused, at_rest(app)
            as_before = True
            while as_before and tried < len(named):
                key, does = named[tried]
                await pilot.press(NAMES.get(key, key))
                if not await comes(pilot, lambda app=app, before=before: at_rest(app) != before):
                    dead.append(f"{key} {does}")
                tried += 1
                as_before = tried < len(named) and await came_back(app, pilot, before, focused)
    assert len(named) > 1 and not dead, named
