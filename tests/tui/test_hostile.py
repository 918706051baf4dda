"""Text that wants to be more than text, through the whole of it: the real session, every screen, at three sizes."""

from __future__ import annotations

from importlib import import_module
from inspect import isclass
from itertools import chain, repeat
from pathlib import Path
from pkgutil import walk_packages

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets._toast import Toast

from ctxchat.core.errors import ModelError
from ctxchat.core.sanitize import CONTROL
from ctxchat.tui import panels
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.chat.approval import ApprovalPanel
from ctxchat.tui.panels.panel import Over
from ctxchat.tui.transcript.blocks import ReplyBlock
from tests.agent.desk import Echo
from tests.doubles.scripted import calls, fails, says
from tests.tui import hostile
from tests.tui.chatting import HOSTILE, blocks, chatting, idle, until, words
from tests.tui.fakes import FakeSession
from tests.tui.hostile import LONG, NASTY, SIGHT, Hostile
from tests.tui.real import say, talking

HUGE, MEGABYTE = "x" * 30_000, "x" * 1_000_000
TABLE = f"{HOSTILE}\n\n| {HOSTILE} |\n|---|\n\n![x](javascript:boo) [l](file:///etc/passwd)\n\n```{HOSTILE}\n{HOSTILE}\n```\n"
SCREENS = ("f1", "f2", "f3", "f4", "f8", "f9", "f10", "ctrl+f", "alt+l", "ctrl+p")
LEFT_AS_IT_IS = "characters stay unless you write here"
"""Said by a field of a text that is too long for it."""
BESIDE = ("f2", "f8")
"""Keys that open a panel in the chat, or say that there is nothing to free."""
EVIL = {c for c in map(chr, range(0x10000)) if CONTROL.match(c)} - {"\n"}


@pytest.mark.parametrize(
    ("size", "much"),
    [((40, 20), HUGE), *(pytest.param(s, MEGABYTE, marks=pytest.mark.long) for s in ((120, 36), (40, 20), (20, 5)))],
)
async def test_hostile_text_is_text_on_every_screen(tmp_path: Path, size: tuple[int, int], much: str) -> None:
    script = [
        calls(("echo", {"text": HOSTILE, "times": 40}), (HOSTILE, {"a": HOSTILE}), reasoning=HOSTILE, text=HOSTILE),
        calls(("write", {"text": HOSTILE}), ("echo", {"text": much})),
        says(TABLE),
        fails(ModelError(HOSTILE, HOSTILE, kind="auth"), after=HOSTILE),
    ]
    tools = [Echo(), Echo("write", writes=True)]
    async with talking(tmp_path, chain(script, repeat(says(HOSTILE))), size=size, window=400_000, tools=tools) as there:
        app, pilot, desk = there
        app.controller.send_draft(HOSTILE + much)
        await until(pilot, lambda: app.query(ApprovalPanel))
        assert not set(words(app)) & EVIL
        await pilot.press("tab", "y")
        await idle(app, pilot)
        for text in ("again", "and again"):
            await say(app, pilot, text)
        await desk.session.rename(HOSTILE)
        app.chat.show_header()
        app.chat.transcript.toggle_details()
        await pilot.press("shift+f8")
        await idle(app, pilot)
        for key in SCREENS:
            await pilot.press(key)
            await until(pilot, lambda key=key: key in BESIDE or app.screen is not app.chat)
            assert not set(words(app)) & EVIL, key
            while app.screen is not app.chat:
                before = app.screen
                await pilot.press("escape")
                await until(pilot, lambda before=before: app.screen is not before or not app.screen.focused)
        app.notify(HOSTILE, title=HOSTILE)
        await until(pilot, lambda: app.screen.query(Toast))
        assert not set(words(app)) & EVIL
        assert app.is_running and blocks(app, ReplyBlock) and desk.state.ledger.turn == 3


async def test_shrinking_to_almost_nothing_and_back_while_the_real_agent_answers(tmp_path: Path) -> None:
    flood = says(" ".join(f"word {n}" for n in range(300)) + " the end", delay=0.002)
    async with talking(tmp_path, [flood], size=(120, 36)) as (app, pilot, desk):
        await pilot.press("x", "enter")
        await until(pilot, lambda: blocks(app, ReplyBlock))
        await pilot.press(*"draft")
        for size in ((20, 5), (40, 20), (80, 24), (20, 5), (120, 36)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: app.screen.size == size and "%" in words(app))
        await idle(app, pilot)
        assert "the end" in words(app) and app.chat.composer.draft == "draft"
        assert desk.state.ledger.groups[-1].first.text.endswith("the end")


def harmless(app: CtxchatApp) -> str:
    """What is on screen: nothing that a terminal obeys, and nothing to click but what is ours."""
    strips = app.screen._compositor.render_strips()
    shown = "\n".join("".join(s.text for s in strip) for strip in strips)
    assert not set(shown) & EVIL, sorted(set(shown) & EVIL)
    assert not any("app.quit" in str(s.style.meta) for strip in strips for s in strip if s.style)
    assert app.is_running and app.title == "ctxchat" and len(app.screen_stack) > 1
    return shown


def test_every_screen_is_in_the_list() -> None:
    names = [name for _, name, _ in walk_packages(panels.__path__, f"{panels.__name__}.")]
    made = [c for name in names for c in vars(import_module(name)).values() if isclass(c) and issubclass(c, Screen)]
    ours = {c.__name__ for c in made if c.__module__.startswith(panels.__name__) and issubclass(c, Over)}
    listed = {name for make, _ in hostile.SCREENS.values() for name in names_in(make)}
    assert ours - {"Over", "Panel", "Listing", "EditableListing", "Dialog", "DraftScreen"} <= listed


def names_in(make: object) -> set[str]:
    codes = [make.__code__]
    codes += [c.cell_contents.__code__ for c in make.__closure__ or ()]
    return {name for code in codes for name in code.co_names}


@pytest.mark.parametrize("size", [(140, 40), *(pytest.param(s, marks=pytest.mark.long) for s in ((40, 20), (20, 5)))])
async def test_hostile_names_are_text_on_every_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    async with chatting(tmp_path, FakeSession(), size) as (app, pilot):
        for name in hostile.SCREENS:
            await visit(app, pilot, name, Hostile(tmp_path, NASTY))


@pytest.mark.long
@pytest.mark.parametrize("name", hostile.SCREENS)
async def test_a_megabyte_without_a_break_is_text_on_every_screen(tmp_path: Path, name: str) -> None:
    async with chatting(tmp_path, FakeSession(), (140, 40)) as (app, pilot):
        await visit(app, pilot, name, Hostile(tmp_path, LONG))


async def visit(app: CtxchatApp, pilot: Pilot[int], name: str, of: Hostile) -> None:
    """What the screen says, with each of its keys, and out of it again."""
    make, keys = hostile.SCREENS[name]
    screen = await make(of)
    if name == "themes":
        app.learn_themes([*app.available_themes.values(), of.theme()])
    app.push_screen(screen)
    await until(pilot, lambda: screen.is_mounted)
    if app.size.width > 100 and name not in hostile.OURS_ONLY:
        await until(pilot, lambda: any(sight in harmless(app) for sight in (SIGHT, LEFT_AS_IT_IS)))
    for key in keys:
        await pilot.press(key)
        await until(pilot, lambda: not app.taking_input)
        harmless(app)
    app.close_screens()
    app.clear_notifications()
    await until(pilot, lambda: app.screen is app.chat)


@pytest.mark.long
async def test_a_window_dragged_about_shows_no_more_of_them(tmp_path: Path) -> None:
    async with chatting(tmp_path, FakeSession(), (140, 40)) as (app, pilot):
        app.push_screen(await hostile.SCREENS["archive"][0](Hostile(tmp_path, NASTY)))
        for size in ((40, 20), (20, 5), (2, 2), (140, 40)):
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: app.screen.size == size)
            harmless(app)
