"""A queue for keys, clicks and pastes: each is handled only when everything the one before caused has been done, screens that it
opened or closed included. So a key reaches the screen that the person means, however quickly keys come.

Knows screens and messages, and nothing of what they are for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from contextlib import ExitStack, suppress
from itertools import islice, takewhile
from typing import Any

from textual import events
from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from ctxchat.tui.style.themed_app import ThemedApp

KEY_TIMEOUT_S = 10.0
"""Seconds after which the next key is handled in any case, as something hangs. A shorter wait would send it to the wrong screen
on a machine that is only slow."""
LEAVE_TIMEOUT_S = 2.0
"""Seconds that the quit key waits for the keys before it."""
FIRST_PICTURE_TIMEOUT_S = 1.0
"""Seconds for which the first paint waits for keys typed before it: a key may start something that takes longer."""
MIN_PASTE_LETTERS = 32
"""Number of letters queued in a row from which they are taken for a paste that the terminal did not mark."""
MAX_REPEATED_KEYS = 3
"""How many equal turns of the wheel or page keys may be queued: more would go on scrolling after the key is released."""
MAX_ROUNDS = 20
"""How often to wait for the messages that a message caused in the same widget: a widget that streams always has more."""


class TypedEarly(Message):
    """All keys typed before the app was running have been sent to it."""


class InOrder(ThemedApp):
    """A Textual app that handles input strictly in order and opens and closes screens one at a time."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._inputs: deque[events.Event] = deque()
        self._processing: asyncio.Task[None] | None = None
        self._quit_waited: asyncio.Event = asyncio.Event()  # the quit key has waited long enough
        self._opening_screen: asyncio.Future[None] | None = None  # done once the expected screen is open
        self._closing_screens: list[Screen[Any]] = []
        self._unpainted = ExitStack()  # holds the first paint back

    @property
    def taking_input(self) -> bool:
        """Whether an input is being handled or queued."""
        return self._processing is not None and not self._processing.done()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and not self.accepts(event):
            return
        if not isinstance(event, events.InputEvent | events.Paste) or event.is_forwarded:
            try:
                await super().on_event(event)
            except (
                Exception
            ) as fault:  # for example of an action: it must not end the handling of the app's own messages
                self._handle_exception(fault)
            return
        if self._piles_up(event):
            return
        self._inputs.append(event)
        if self.leaves(event):
            self.set_timer(LEAVE_TIMEOUT_S, self._stop_waiting_to_quit)
        if not self.taking_input:
            self._processing = asyncio.create_task(self._process_inputs(), name="input")

    def accepts(self, event: events.Event) -> bool:
        """Whether to accept this key, mouse event or paste; called when it arrives."""
        return True

    def leaves(self, event: events.Event) -> bool:
        """Whether this key quits the program, and so waits for earlier keys only `LEAVE_TIMEOUT_S`."""
        return False

    def look_again(self, key: events.Key) -> None:
        """Handle this key again, before all queued input: it is meant for the screen or widget that it has just opened."""
        self._inputs.appendleft(events.Key(key.key, key.character))

    def _stop_waiting_to_quit(self) -> None:
        if any(self.leaves(each) for each in self._inputs):
            self._quit_waited.set()

    def _piles_up(self, event: events.Event) -> bool:
        """Whether to drop this event because the last `MAX_REPEATED_KEYS` queued ones already scroll the same way."""
        kind = _repeatable(event)
        waiting = list(islice(reversed(self._inputs), MAX_REPEATED_KEYS))
        return (
            kind is not None
            and len(waiting) == MAX_REPEATED_KEYS
            and all(_repeatable(each) == kind for each in waiting)
        )

    async def _process_inputs(self) -> None:
        """Handle the queued inputs one after another, each to its end."""
        while self._inputs and self.is_running:
            event = self._next()
            try:
                await self._wait_limited(self._screens_settled())
                await super().on_event(event)
                if not isinstance(event, events.MouseMove) and not self._amid_writing(event):
                    await self._wait_limited(self._finish(event))
            except Exception as fault:
                self._handle_exception(fault)
            if self.leaves(event):
                self._quit_waited.clear()

    def _next(self) -> events.Event:
        """Take the next input from the queue: a long run of letters as one paste, or the quit key once it has waited long
        enough."""
        if self._quit_waited.is_set():
            while not self.leaves(self._inputs[0]):
                self._inputs.popleft()
        elif isinstance(self.focused, Input | TextArea):
            letters = [each.character for each in takewhile(_is_letter, self._inputs) if isinstance(each, events.Key)]
            if len(letters) >= MIN_PASTE_LETTERS:
                for _ in letters:
                    self._inputs.popleft()
                return events.Paste("".join(letter or "" for letter in letters))
        return self._inputs.popleft()

    def _amid_writing(self, event: events.Event) -> bool:
        """Whether this is a letter and the next queued input another one for the same text field; these stay in order without
        waiting."""
        writing = bool(self._inputs) and _is_letter(event) and _is_letter(self._inputs[0])
        return writing and isinstance(self.focused, Input | TextArea)

    async def _wait_limited(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Await `waiting`, for `KEY_TIMEOUT_S` at most, or until the quit key has waited long enough."""
        work, quit_waited = asyncio.ensure_future(waiting), asyncio.ensure_future(self._quit_waited.wait())
        try:
            await asyncio.wait({work, quit_waited}, timeout=KEY_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            work.cancel()
            quit_waited.cancel()

    async def _finish(self, event: events.Event) -> None:
        """Wait until the widgets have handled the event and the screens it opened or closed are settled."""
        if event.is_forwarded:
            target = self._widget_under(event) or self.focused or self.screen
            await _handled(target.ancestors_with_self)
        await self._screens_settled()

    def _widget_under(self, event: events.Event) -> Widget | None:
        """The widget at the position of a mouse event; None for other events."""
        if isinstance(event, events.MouseEvent):
            with suppress(Exception):  # no widget is there
                return self.get_widget_at(*event.screen_offset)[0]
        return None

    async def _screens_settled(self) -> None:
        """Wait until no screen is being opened or closed."""
        if self._opening_screen:
            await asyncio.wait({self._opening_screen})
        while self._closing_screens:
            screen = self._closing_screens.pop()
            if screen._task:
                await asyncio.wait({screen._task})
        if self.screen_stack and not self.screen.is_mounted:
            await self.screen._mounted_event.wait()
            await _handled([self.screen])  # it sets its focus in these messages

    # ── the first paint ──

    def hold_picture(self) -> None:
        """Neither paint nor lay out until all keys sent before `TypedEarly` are handled: the first frame shows the typed text
        already, and it would disappear and come back."""
        self._unpainted.enter_context(self.batch_update())

    def on_typed_early(self) -> None:
        self.run_worker(self._show_picture, group="start", exit_on_error=False)

    async def _show_picture(self) -> None:
        if self._processing:
            await asyncio.wait({self._processing}, timeout=FIRST_PICTURE_TIMEOUT_S)
        self._unpainted.close()
        self.refresh()

    # ── screens ──

    def expect_screen(self) -> asyncio.Future[None]:
        """Let input wait for a screen that is about to open. The caller sets the future's result where the screen does not
        open."""
        self._end_opening()
        self._opening_screen = asyncio.get_running_loop().create_future()
        return self._opening_screen

    def _end_opening(self) -> None:
        if self._opening_screen and not self._opening_screen.done():
            self._opening_screen.set_result(None)

    def push_screen(self, *given: Any, **more: Any) -> Any:
        try:
            return super().push_screen(*given, **more)
        finally:
            self._end_opening()

    def pop_screen(self) -> AwaitComplete:
        """Like Textual's, but also cancel the screen's workers, which can show nothing any more."""
        closed = self.screen
        popped = super().pop_screen()
        self._closing_screens.append(closed)
        for worker in list(self.workers):
            if closed in worker.node.ancestors_with_self:
                worker.cancel()
        return popped

    def close_screens(self) -> None:
        """Close all screens over the first one, with None as their result."""
        for screen in reversed(self.screen_stack[1:]):
            screen.dismiss(None)


def _is_letter(event: events.Event) -> bool:
    return isinstance(event, events.Key) and event.is_printable


def _repeatable(event: events.Event) -> object:
    """A value that is equal for equal turns of the wheel or page keys; None for events that must all be handled."""
    if isinstance(event, events.MouseScrollUp | events.MouseScrollDown):
        return type(event), event.screen_offset
    return event.key if isinstance(event, events.Key) and event.key in ("pageup", "pagedown") else None


async def _handled(pumps: Iterable[MessagePump]) -> None:
    """Wait until each of these in turn has handled the messages sent to it, and those they caused; one that has ended is
    skipped."""
    loop = asyncio.get_running_loop()
    for pump in pumps:
        for _ in range(MAX_ROUNDS):
            reached = loop.create_future()
            if not pump.is_running or not pump.call_later(_set_done, reached):
                break
            await asyncio.wait({reached, pump._task or reached}, return_when=asyncio.FIRST_COMPLETED)
            if not pump.message_queue_size:
                break


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
