"""Keys, clicks and pastes, one after another: the next is looked at when all that the one before led to has been done, screens
that it opened or closed included. So a key reaches the screen that a person means, however quickly keys come.

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
"""Seconds after which the next key is looked at in any case: something hangs. Less would send it to the wrong screen where the
machine is only slow."""
LEAVE_TIMEOUT_S = 2.0
"""Seconds that the key to leave waits for what was pressed before it."""
FIRST_PICTURE_TIMEOUT_S = 1.0
"""Seconds for which the first picture waits for what was typed before: a key may ask for what takes longer."""
MIN_PASTE_LETTERS = 32
"""Letters waiting in a row from which they are a paste that the terminal did not mark."""
MAX_REPEATED_KEYS = 3
"""How many of the same turn of the wheel, or page key, may wait: what piles up while a key is held would go on without it."""
MAX_ROUNDS = 20
"""How often what a message led to in the same widget is waited for: one that streams never rests."""


class TypedEarly(Message):
    """Everything that was typed before the app was there has been sent to it."""


class InOrder(ThemedApp):
    """An app that takes input in order and whose screens come and go one at a time."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._inputs: deque[events.Event] = deque()
        self._taking: asyncio.Task[None] | None = None
        self._ahead: asyncio.Event = asyncio.Event()
        self._coming: asyncio.Future[None] | None = None
        self._going: list[Screen[Any]] = []
        self._unpainted = ExitStack()

    @property
    def taking_input(self) -> bool:
        """There is a key that has not done all it does."""
        return self._taking is not None and not self._taking.done()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.InputEvent | events.Paste) and not self.takes(event):
            return
        if not isinstance(event, events.InputEvent | events.Paste) or event.is_forwarded:
            try:
                await super().on_event(event)
            except Exception as fault:  # of an action, say: it must not take the app's own messages with it
                self._handle_exception(fault)
            return
        if self._piles_up(event):
            return
        self._inputs.append(event)
        if self.leaves(event):
            self.set_timer(LEAVE_TIMEOUT_S, self._go_ahead)
        if not self.taking_input:
            self._taking = asyncio.create_task(self._process_inputs(), name="input")

    def takes(self, event: events.Event) -> bool:
        """This key, mouse event or paste is still for the program; it is asked as each comes in."""
        return True

    def leaves(self, event: events.Event) -> bool:
        """This key ends the program, so it waits for others only so long."""
        return False

    def look_again(self, key: events.Key) -> None:
        """This key, which is being handled, is for what is there afterwards: it is the next, before all that wait."""
        self._inputs.appendleft(events.Key(key.key, key.character))

    def _go_ahead(self) -> None:
        if any(self.leaves(each) for each in self._inputs):
            self._ahead.set()

    def _piles_up(self, event: events.Event) -> bool:
        """The same as the last few that still wait, and one more of it would do nothing that is missed."""
        kind = _repeatable(event)
        waiting = list(islice(reversed(self._inputs), MAX_REPEATED_KEYS))
        return (
            kind is not None
            and len(waiting) == MAX_REPEATED_KEYS
            and all(_repeatable(each) == kind for each in waiting)
        )

    async def _process_inputs(self) -> None:
        while self._inputs and self.is_running:
            event = self._next()
            try:
                await self._within_reason(self._still())
                await super().on_event(event)
                if not isinstance(event, events.MouseMove) and not self._amid_writing(event):
                    await self._within_reason(self._done_with(event))
            except Exception as fault:
                self._handle_exception(fault)
            if self.leaves(event):
                self._ahead.clear()

    def _next(self) -> events.Event:
        """The next of what waits: a long run of letters in one, the key to leave where that waited long enough."""
        if self._ahead.is_set():
            while not self.leaves(self._inputs[0]):
                self._inputs.popleft()
        elif isinstance(self.focused, Input | TextArea):
            run = [each.character for each in takewhile(_is_letter, self._inputs) if isinstance(each, events.Key)]
            if len(run) >= MIN_PASTE_LETTERS:
                for _ in run:
                    self._inputs.popleft()
                return events.Paste("".join(sign or "" for sign in run))
        return self._inputs.popleft()

    def _amid_writing(self, event: events.Event) -> bool:
        """A letter, and the next one goes into the same field: they stay in order by themselves."""
        writing = bool(self._inputs) and _is_letter(event) and _is_letter(self._inputs[0])
        return writing and isinstance(self.focused, Input | TextArea)

    async def _within_reason(self, waiting: Coroutine[Any, Any, None]) -> None:
        done, ahead = asyncio.ensure_future(waiting), asyncio.ensure_future(self._ahead.wait())
        try:
            await asyncio.wait({done, ahead}, timeout=KEY_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                done.result()
        finally:
            done.cancel()
            ahead.cancel()

    async def _done_with(self, event: events.Event) -> None:
        if event.is_forwarded:
            target = self._under(event) or self.focused or self.screen
            await _handled(target.ancestors_with_self)
        await self._still()

    def _under(self, event: events.Event) -> Widget | None:
        if isinstance(event, events.MouseEvent):
            with suppress(Exception):  # nothing is there
                return self.get_widget_at(*event.screen_offset)[0]
        return None

    async def _still(self) -> None:
        """No screen is on its way, in or out."""
        if self._coming:
            await asyncio.wait({self._coming})
        while self._going:
            screen = self._going.pop()
            if screen._task:
                await asyncio.wait({screen._task})
        if self.screen_stack and not self.screen.is_mounted:
            await self.screen._mounted_event.wait()
            await _handled([self.screen])  # where its focus is to be

    # ── the first picture ──

    def hold_picture(self) -> None:
        """Paint and lay out nothing until `TypedEarly` has come and all sent before it has been done: what was typed is on screen
        already, and would go and come back."""
        self._unpainted.enter_context(self.batch_update())

    def on_typed_early(self) -> None:
        self.run_worker(self._show_picture, group="start", exit_on_error=False)

    async def _show_picture(self) -> None:
        if self._taking:
            await asyncio.wait({self._taking}, timeout=FIRST_PICTURE_TIMEOUT_S)
        self._unpainted.close()
        self.refresh()

    # ── screens ──

    def expect_screen(self) -> asyncio.Future[None]:
        """One will be opened soon: input waits for it. Who said so sets the result where it comes to nothing."""
        self._came()
        self._coming = asyncio.get_running_loop().create_future()
        return self._coming

    def _came(self) -> None:
        if self._coming and not self._coming.done():
            self._coming.set_result(None)

    def push_screen(self, *given: Any, **more: Any) -> Any:
        try:
            return super().push_screen(*given, **more)
        finally:
            self._came()

    def pop_screen(self) -> AwaitComplete:
        """As Textual's. What a screen had going on ends with it: there is nothing left to show it in."""
        gone = self.screen
        popped = super().pop_screen()
        self._going.append(gone)
        for worker in list(self.workers):
            if gone in worker.node.ancestors_with_self:
                worker.cancel()
        return popped

    def close_screens(self) -> None:
        """Whatever lies over the first screen goes, with nothing chosen."""
        for screen in reversed(self.screen_stack[1:]):
            screen.dismiss(None)


def _is_letter(event: events.Event) -> bool:
    return isinstance(event, events.Key) and event.is_printable


def _repeatable(event: events.Event) -> object:
    """What the wheel and the page keys do, in a value to compare; None for what counts each time."""
    if isinstance(event, events.MouseScrollUp | events.MouseScrollDown):
        return type(event), event.screen_offset
    return event.key if isinstance(event, events.Key) and event.key in ("pageup", "pagedown") else None


async def _handled(pumps: Iterable[MessagePump]) -> None:
    """Each of these in turn has handled what had been sent to it, and what that led to. One that is gone handles nothing."""
    loop = asyncio.get_running_loop()
    for pump in pumps:
        for _ in range(MAX_ROUNDS):
            reached = loop.create_future()
            if not pump.is_running or not pump.call_later(_reach, reached):
                break
            await asyncio.wait({reached, pump._task or reached}, return_when=asyncio.FIRST_COMPLETED)
            if not pump.message_queue_size:
                break


def _reach(reached: asyncio.Future[None]) -> None:
    if not reached.done():
        reached.set_result(None)
