"""Jump marks: letters over everything on screen that a click would do something with; typing them is that click."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from textual.app import ComposeResult
from textual.content import Content
from textual.events import Click, Key, MouseDown, MouseUp
from textual.geometry import Offset
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from ctxchat.tui.panels.panel import Over
from ctxchat.tui.widgets.pressable import Pressable

LETTERS = "asdfghjklqwertyuiopzxcvbnm"
"""The home row first."""

MAX_TARGETS = len(LETTERS) ** 2


class Target(NamedTuple):
    """A place on the screen where a click does something (`press`), as an offset from the upper left corner."""

    offset: Offset
    press: object


def targets_of(screen: Screen[Any]) -> list[Target]:
    """All places of a screen that can be clicked, in reading order; each word or line once."""
    found: list[Target] = []
    for y, strip in enumerate(screen._compositor.render_strips()):
        x, before = 0, None
        for segment in strip:
            press = segment.style.meta.get("press") if segment.style else None
            if press and press != before:
                found.append(Target(Offset(x, y), press))
            x, before = x + segment.cell_length, press
    shown = (widget for widget in screen.query(Pressable) if widget.region in screen.region and widget.region)
    found += [Target(widget.region.offset, widget) for widget in shown]
    return sorted(found, key=lambda target: (target.offset.y, target.offset.x))[:MAX_TARGETS]


def marks(number: int) -> list[str]:
    """So many different marks to type, all of one letter or all of two."""
    if number <= len(LETTERS):
        return list(LETTERS[:number])
    return [a + b for a in LETTERS for b in LETTERS][:number]


class JumpScreen(Over[Target], ModalScreen[Target]):
    """Shows a mark at each target. Its result is the target whose mark was typed, or None after any other key."""

    def __init__(self, targets: Sequence[Target]) -> None:
        super().__init__()
        self._targets = dict(zip(marks(len(targets)), targets, strict=True))
        self._typed = ""

    def compose(self) -> ComposeResult:
        for mark, target in self._targets.items():
            label = Static(Content.styled(mark, "bold $background on $warning"), classes="mark", markup=False)
            label.absolute_offset = target.offset
            yield label

    def on_key(self, event: Key) -> None:
        event.stop()
        event.prevent_default()
        self._typed += event.character or " "
        left = {mark: target for mark, target in self._targets.items() if mark.startswith(self._typed)}
        if self._typed in left or not left:
            self.dismiss(left.get(self._typed))
        for mark, label in zip(self._targets, self.query(Static), strict=True):
            label.display = mark in left

    def on_click(self) -> None:
        self.dismiss(None)


def click(screen: Screen[Any], target: Target) -> bool:
    """Click where the target is by now; False where it is not on screen any more."""
    same = [other for other in targets_of(screen) if other.press == target.press]
    if not same:
        return False
    x, y = min(same, key=lambda other: abs(other.offset.y - target.offset.y)).offset
    for kind in (MouseDown, MouseUp, Click):
        screen._forward_event(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
    return True
