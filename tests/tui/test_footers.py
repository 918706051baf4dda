"""A key that is named below a screen does something there: what is seen changes, or it is said why nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets._footer import FooterKey

from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.chat.edges import IDLE_KEYS
from tests.tui import hostile
from tests.tui.chatting import chatting, until
from tests.tui.fakes import FakeSession
from tests.tui.hostile import Hostile
from tests.tui.test_transcript import long_talk

LOOKS = 100
"""How often it is looked whether a key has done something."""


async def opened(app: CtxchatApp, pilot: Pilot[int], name: str, folder: Path) -> list[tuple[str, str]]:
    """The screen, anew and at rest; the keys that are named below it, with what they do."""
    await back_to_chat(app, pilot)
    app.clear_notifications()
    screen = await hostile.SCREENS[name][0](Hostile(folder, "plain words"))
    app.push_screen(screen)
    await until(pilot, lambda: screen.is_mounted and app.screen is screen)
    before = ""
    while before != (before := app.export_screenshot()):
        await pilot.pause(0.05)
    return [(key.key, key.description) for key in screen.query(FooterKey) if not key.disabled]


async def back_to_chat(app: CtxchatApp, pilot: Pilot[int]) -> None:
    """Close what is open, and what a key has only begun to open."""

    def closed() -> bool:
        app.close_screens()
        return app.screen is app.chat and all(w.is_finished for w in app.workers if w.group == "command")

    await until(pilot, closed)


def seen(app: CtxchatApp) -> tuple[object, ...]:
    """All that a key may change."""
    return app.export_screenshot(), tuple(app.screen_stack), app.focused, len(app._notifications), app.clipboard


async def test_each_key_below_the_chat_does_something(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(messages=long_talk(6)), (140, 40)) as (app, pilot):
        for action, does in IDLE_KEYS:
            if key := action[1:] if action.startswith("=") else next(iter(app.keys.get(action, ())), ""):
                await back_to_chat(app, pilot)
                app.clear_notifications()
                await until(pilot, lambda: app.chat.composer.prompt.has_focus)
                app.chat.composer.set_draft("words")
                await pilot.pause(0.3)
                before = seen(app)
                await pilot.press(key)
                await until(pilot, lambda before=before: seen(app) != before)
                assert does


@pytest.mark.parametrize("name", hostile.SCREENS)
async def test_each_key_below_a_screen_does_something(tmp_path: Path, name: str) -> None:
    dead: list[str] = []
    async with chatting(tmp_path, FakeSession(), (140, 40)) as (app, pilot):
        named = await opened(app, pilot, name, tmp_path)
        assert not any("⏎" in key.key_display for key in app.screen.query(FooterKey)), "it is called enter everywhere"
        for key, does in named:
            if (key, does) not in await opened(app, pilot, name, tmp_path):
                continue
            before = seen(app)
            await pilot.press(key)
            for _ in range(LOOKS):
                if seen(app) != before:
                    break
                await pilot.pause(0.01)
            else:
                dead.append(f"{key} {does}")
        app.close_screens()
    assert not dead
