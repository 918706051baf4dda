"""How Pilot waits here: until the event loop has nothing left to do, not until the processor was quiet for a fiftieth of a
second. That is sooner on a fast machine, and on a busy one it is not taken in by a process that gets no processor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import textual.app
import textual.pilot
from textual._compositor import Compositor
from textual._context import active_app
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation

FRAMES = 3
"""How often a screen is drawn before it counts as still: what waits for a frame may ask for the next."""
PASSES = 2_000
"""Compactions of the event loop after which it counts as one that never rests. No seconds: those mean little on a busy
machine."""


looked_at = False


def drawn_when_looked_at(render: Callable[..., object]) -> Callable[..., object]:
    """Nobody sees the frames between two looks of Pilot, and drawing them takes a quarter of a test: what is to be drawn anew is
    gathered until then."""

    def update(compositor: Compositor, *given: Any, **more: Any) -> object:
        return render(compositor, *given, **more) if looked_at or more.get("full") else None  # full: a picture is taken

    return update


Compositor.render_update = drawn_when_looked_at(Compositor.render_update)  # type: ignore[method-assign]


async def nothing_left(*_: float) -> None:
    """Messages are handled, and what they led to is drawn. Timers, threads and processes are not waited for: name what shall
    come, with `until`."""
    global looked_at
    loop, frames = asyncio.get_running_loop(), FRAMES
    for _ in range(PASSES):
        await asyncio.sleep(0)
        if loop._ready:  # type: ignore[attr-defined]
            continue
        app = active_app.get()
        if not app.is_running or not app.screen_stack:
            return
        if not frames:
            looked_at = True
            app.screen._compositor_refresh()
            looked_at = False
            return
        frames -= 1
        app.screen._on_timer_update()


textual.app.wait_for_idle = textual.pilot.wait_for_idle = (
    nothing_left  # one of three things of textual that are exchanged
)


def parsed_once(parse: Callable[..., list[RuleSet]]) -> Callable[..., list[RuleSet]]:
    """What the rules of a stylesheet are does not change from one app to the next, and reading them takes a quarter of a test."""
    known: dict[object, list[RuleSet]] = {}

    def look_up(sheet: Stylesheet, css: str, read_from: CSSLocation, *given: object, **more: object) -> list[RuleSet]:
        key = (css, read_from, given, *more.items(), *sheet._variables.items())
        if key not in known:
            known[key] = parse(sheet, css, read_from, *given, **more)
        return known[key]

    return look_up


Stylesheet._parse_rules = parsed_once(Stylesheet._parse_rules)  # type: ignore[method-assign]
