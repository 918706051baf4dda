"""A key that is named below a screen does something there: what is seen changes, or it is said why nothing does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets._footer import FooterKey

from ctxchat.core.events import ApprovalRequested, QuestionAsked, TextDelta, ToolFinished, ToolStarted
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.chat.edges import IDLE_KEYS
from ctxchat.tui.transcript.blocks import SPINNER
from tests.tui import hostile
from tests.tui.chatting import chatting, look_later, until, words
from tests.tui.fakes import FakeSession, Pause, ScriptStep
from tests.tui.hostile import Hostile
from tests.tui.test_transcript import long_talk

LOOKS = 100
"""How often it is looked whether a key has done something."""


async def opened(
    app: CtxchatApp, pilot: Pilot[int], name: str, folder: Path, keys: Sequence[str] = (), place: int = 0
) -> list[tuple[str, str]]:
    """The screen, anew and at rest, with the focus on this of all that can have it, or after these keys; the keys that are named
    below what is on top then, with what they do."""
    await back_to_chat(app, pilot)
    app.clear_notifications()
    screen = await hostile.SCREENS[name][0](Hostile(folder, "plain words"))
    app.push_screen(screen)
    await until(pilot, lambda: screen.is_mounted and app.screen is screen)
    await still(app, pilot)
    if place:
        at_rest = screen.focused
        others = [widget for widget in screen.focus_chain if widget is not at_rest]
        screen.set_focus(others[place - 1])
        await still(app, pilot)
    for key in keys:
        await pilot.press(key)
        await still(app, pilot)
    app.clear_notifications()  # what is on screen already is not said once more
    return [(key.key, key.description) for key in app.screen.query(FooterKey) if not key.disabled]


async def still(app: CtxchatApp, pilot: Pilot[int]) -> None:
    """Until nothing moves on the screen any more."""
    before: object = None
    while before != (before := painted(app)):
        await look_later(pilot, 0.05)


async def back_to_chat(app: CtxchatApp, pilot: Pilot[int]) -> None:
    """Close what is open, and what a key has only begun to open."""

    def closed() -> bool:
        app.close_screens()
        return app.screen is app.chat and all(w.is_finished for w in app.workers if w.group == "command")

    await until(pilot, closed)


def painted(app: CtxchatApp) -> object:
    """What is on screen, with its colours. A picture of it would take ten times as long to draw."""
    return [[(part.text, str(part.style)) for part in strip] for strip in app.screen._compositor.render_strips()]


def state_of(app: CtxchatApp) -> tuple[object, ...]:
    """All that a key may change and that is not painted."""
    return tuple(app.screen_stack), app.focused, len(app._notifications), app.clipboard


def seen(app: CtxchatApp) -> tuple[object, ...]:
    """All that a key may change."""
    return painted(app), *state_of(app)


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


ASKS = ApprovalRequested("c1", "shell", "run make", "run", "make", ("shell: make", "shell: make **"))
WANTS = QuestionAsked("c1", "Which one?", ("this", "that"))
CALLS = (
    ToolStarted("c0", "grep", {"pattern": "gauge"}),
    ToolFinished("c0", "grep", "ok", "a.py:1: gauge", 5, 0.1),
    TextDelta("I look."),
    ToolStarted("c1", "shell", {"command": "make"}),
)

AT_WORK: Mapping[str, tuple[Sequence[ScriptStep], Sequence[str]]] = {
    "empty, on a question": ((), ["tab"]),
    "idle, a command half typed": ((), [*"/com"]),
    "idle, a command typed whole": ((), [*"/undo"]),
    "idle, on the button": ((), ["tab"]),
    "idle, on a compaction": ((), ["tab", "tab"]),
    "busy": ((*CALLS, Pause()), [*"words"]),
    "busy, a command half typed": ((*CALLS, Pause()), [*"/com"]),
    "busy, on the button": ((*CALLS, Pause()), ["tab"]),
    "busy, on a block": ((*CALLS, Pause()), ["tab", "tab", "tab"]),
    "a call waits": ((*CALLS, ASKS, Pause("answer:c1"), Pause()), []),
    "a question waits": ((*CALLS, WANTS, Pause("answer:c1"), Pause()), []),
}
"""What the agent does, and what is pressed to come to where the keys are tried."""


def at_rest(app: CtxchatApp) -> tuple[object, ...]:
    """All that a key may change, without what moves by itself."""
    shown = re.sub(rf"[{SPINNER}]|\d+ s\b", "", words(app))
    return shown, *state_of(app), app.chat.transcript._focused, app.chat.key_line._wanted


async def come_to(
    app: CtxchatApp, pilot: Pilot[int], script: Sequence[ScriptStep], keys: Sequence[str]
) -> list[tuple[str, str]]:
    """That state; the keys that are named below the chat there, with what they do."""
    await until(pilot, lambda: app.session is not None and app.chat.composer.prompt.has_focus)
    if script:
        await pilot.press("x", "enter")
        await until(pilot, lambda: app.controller.busy)
        await pilot.pause(0.2)
    await pilot.press(*keys)
    before: tuple[object, ...] = ()
    for _ in range(LOOKS):
        await pilot.pause(0.02)
        if before == (before := (tuple(app.chat.key_line._wanted), app.focused)) and not app.taking_input:
            break
    await pilot.pause(0.3)
    return [
        (key, does)
        for action, does in app.chat.key_line._wanted
        if (key := action[1:] if action.startswith("=") else next(iter(app.keys.get(action, ())), ""))
    ]


async def comes(pilot: Pilot[int], holds: Callable[[], bool], looks: int = LOOKS) -> bool:
    """Whether it holds, within so many looks."""
    for _ in range(looks):
        if holds():
            return True
        await look_later(pilot)
    return False


async def comes_to_stay(app: CtxchatApp, pilot: Pilot[int], holds: Callable[[], bool]) -> bool:
    """Whether it holds once nothing moves any more: below a screen the keys are gone for a moment when one is pressed."""
    for _ in range(LOOKS):
        if holds():
            await still(app, pilot)
            if holds():
                return True
        await look_later(pilot)
    return False


async def came_back(app: CtxchatApp, pilot: Pilot[int], before: tuple[object, ...], focused: Widget | None) -> bool:
    """Close what a key has opened; whether all is as it was before it, so that the next can be tried here."""
    if not app.is_running:
        return False
    await back_to_chat(app, pilot)
    app.clear_notifications()
    app.screen.set_focus(focused if focused and focused.is_attached else None)
    return await comes(pilot, lambda: at_rest(app) == before, 20)


@pytest.mark.parametrize("state", AT_WORK)
async def test_each_key_below_the_chat_does_something_whatever_has_the_focus(tmp_path: Path, state: str) -> None:
    script, keys = AT_WORK[state]
    names = {"esc": "escape", "←": "left", "→": "right"}
    dead: list[str] = []
    tried = 0
    named: list[tuple[str, str]] = [("", "")]
    while tried < len(named):
        said = [] if state.startswith("empty") else long_talk(3)
        session = FakeSession(lambda _: script, messages=said)
        if said:
            session.fold()
        folder = tmp_path / str(tried)
        folder.mkdir()
        async with chatting(folder, session, (140, 40)) as (app, pilot):
            named = await come_to(app, pilot, script, keys)
            app.clear_notifications()
            focused, before = app.focused, at_rest(app)
            as_before = True
            while as_before and tried < len(named):
                key, does = named[tried]
                await pilot.press(names.get(key, key))
                if not await comes(pilot, lambda before=before: at_rest(app) != before):
                    dead.append(f"{key} {does}")
                tried += 1
                as_before = tried < len(named) and await came_back(app, pilot, before, focused)
            session.approvals().set()
            session.approvals("answer:c1").set()
    assert not dead, named


@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", hostile.SCREENS)
async def test_each_key_below_a_screen_does_something_whatever_has_the_focus(
    tmp_path: Path, name: str, everywhere: bool
) -> None:
    """Each once, where it is named first; in the long part again with each other widget that has the focus."""
    dead: list[str] = []
    tried: set[tuple[str, str]] = set()
    async with chatting(tmp_path, FakeSession(), (140, 40)) as (app, pilot):
        app.register_theme(Hostile(tmp_path, "plain words").theme())
        await opened(app, pilot, name, tmp_path)
        others = [widget for widget in app.screen.focus_chain if widget is not app.screen.focused]
        kinds = {type(widget): place for place, widget in reversed([*enumerate(others, 1)])}  # the first of each kind
        assert not any("⏎" in key.key_display for key in app.screen.query(FooterKey)), "it is called enter everywhere"
        ways = [((), place) for place in (0, *kinds.values())]
        for keys, place in [*ways, *([(path, 0)] if (path := hostile.SCREENS[name][1]) else [])]:
            named = await opened(app, pilot, name, tmp_path, keys, place)
            left = [each for each in named if everywhere or each not in tried]
            tried.update(left)
            for number, (key, does) in enumerate(left):
                if number and (key, does) not in await opened(app, pilot, name, tmp_path, keys, place):
                    continue
                before = seen(app)
                await pilot.press(key)
                if not await comes_to_stay(app, pilot, lambda before=before: seen(app) != before):
                    dead.append(f"{key} {does}, at {place} after {' '.join(keys)}")
        app.close_screens()
    assert not dead
