"""The tour's guide: a line over the composer that says what to press next, and goes on when that has been done. Knows the app it
leads through; of it only the chat knows that it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from ctxchat.core.quantities import percent
from ctxchat.tui.panels.archive import ArchiveScreen
from ctxchat.tui.panels.search import SearchScreen

if TYPE_CHECKING:
    from ctxchat.tui.app import CtxchatApp

POLL_INTERVAL_S = 0.25
"""Seconds between two looks at how far the person is."""


class TourStep(msgspec.Struct, frozen=True):
    """`words` say what to do and why (`{full}` is how full the window is); `draft` is written for the person; it is `done` when
    that holds, with all screens that were opened since it began."""

    words: str
    done: Callable[[CtxchatApp, set[type[Screen[Any]]]], bool]
    draft: str = ""


def _after_messages(least: int) -> Callable[[CtxchatApp, object], bool]:
    def done(app: CtxchatApp, _: object) -> bool:
        said = sum(group.kind == "user" for group in app.session.state.ledger.groups) if app.session else 0
        return said >= least and not app.controller.busy

    return done


def _compacted(app: CtxchatApp, _: object) -> bool:
    return bool(app.session and app.session.state.ledger.compactions) and not app.controller.busy


def _been_in(screen: type[Screen[Any]]) -> Callable[[CtxchatApp, set[type[Screen[Any]]]], bool]:
    return lambda app, seen: screen in seen and app.screen is app.chat


STEPS: Sequence[TourStep] = (
    TourStep(
        "This harbour is made up, and nothing you do here touches your files. Press Enter: the built-in assistant looks into "
        "the folder, and the bar at the bottom shows what each part of that costs.",
        _after_messages(1),
        "Which logger does the gauge at Pier 7 report to?",
    ),
    TourStep(
        "Two logs go along now; the line under the composer says what they weigh before you send them. Press Enter.",
        _after_messages(2),
        "Which WARNING do these hold? @logs/pier-7.log @logs/pier-8.log",
    ),
    TourStep(
        "The window is {full} full. Press F8: it shows what could go, what stays, and what that would give, before anything "
        "happens. Enter there makes room.",
        _compacted,
    ),
    TourStep(
        "{full} now. The model sees less; you lost nothing. Press F3: the archive has each compaction and all it replaced. "
        "Esc comes back.",
        _been_in(ArchiveScreen),
    ),
    TourStep(
        "Press ctrl+f and type silted: everything ever said is found, in view or not. Esc comes back.",
        _been_in(SearchScreen),
    ),
    TourStep(
        "And it can be taken back, exactly: press alt+u, or type /undo and press Enter.",
        lambda app, seen: not _compacted(app, seen) and not app.controller.busy,
    ),
)
END = "{full} again, word for word. That is all: ctrl+q leaves, and ctxchat in a folder of yours begins for real."


class Guide(Static):
    """The tour: shows one step at a time, with an example message in the composer if that is empty."""

    def __init__(self) -> None:
        super().__init__(id="guide", markup=False)
        self._at = -1
        self._seen: set[type[Screen[Any]]] = set()

    def on_mount(self) -> None:
        self.set_interval(POLL_INTERVAL_S, self.advance)

    def advance(self) -> None:
        """Go on where the step is done; called where another screen opens as well, which may be gone again soon."""
        app: CtxchatApp = self.app  # type: ignore[assignment]
        self._seen.update(type(screen) for screen in app.screen_stack[1:])
        if (self._at < 0 and app.session) or (0 <= self._at < len(STEPS) and STEPS[self._at].done(app, self._seen)):
            self._go_on(app)

    def _go_on(self, app: CtxchatApp) -> None:
        self._at += 1
        self._seen.clear()
        step = STEPS[self._at] if self._at < len(STEPS) else None
        full = percent(app.session.context_usage.pressure) if app.session else ""
        words = (step.words if step else END).replace("{full}", full)
        place = f"tour {min(self._at + 1, len(STEPS))}/{len(STEPS)}  "
        self.update(Content.assemble((place, "bold $text-accent"), words))
        if step and step.draft and not app.chat.composer.draft:
            app.chat.composer.set_draft(step.draft)
