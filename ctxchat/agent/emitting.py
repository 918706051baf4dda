"""Runs work that emits events, as a stream of these events, and runs work that a cancel must not interrupt. Knows nothing of what
the work does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ctxchat.core.events import Event

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, or what it raises. A cancel, however often it comes, waits until the work is done."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancel:
            cancelled = cancel
    if cancelled is None or task.cancelled():
        return task.result()
    task.exception()  # looked at, so that nobody is told that it was not
    raise cancelled


Emit = Callable[[Event], Awaitable[None]]
"""Emit this event. Returns when the reader of the stream asks for the next one, so that the work never runs ahead."""

Work = Callable[[Emit], Awaitable[object]]
"""A turn, a compaction or a part of one, which emits its events as it goes."""


async def stream(work: Work, stamped: Callable[[Event], T | None]) -> AsyncGenerator[T, None]:
    """The events that `work` emits, each as returned by `stamped`; those for which that returns None are left out. Raises what
    the work raises.

    A cancel of the reader cancels the work; the reader still gets the events of its end, and then the cancel. Closing the stream
    cancels the work, too, and waits for its end; events emitted then are dropped.
    """
    handed: asyncio.Queue[T | None] = asyncio.Queue()
    heard = True
    cancelled: asyncio.CancelledError | None = None

    async def emit(event: Event) -> None:
        if heard and (shown := stamped(event)) is not None:
            handed.put_nowait(shown)
            await handed.join()

    task = asyncio.ensure_future(work(emit))
    task.add_done_callback(lambda _: handed.put_nowait(None))
    try:
        while True:
            try:
                shown = await handed.get()
            except asyncio.CancelledError as cancel:
                cancelled = cancel
                task.cancel()
                continue
            if shown is None:
                break
            yield shown
            handed.task_done()
    finally:
        heard = False
        if not task.done():
            task.cancel()
            await to_the_end(asyncio.wait({task}))
        if not task.cancelled() and (problem := task.exception()):
            raise problem
    if cancelled or task.cancelled():
        raise cancelled or asyncio.CancelledError
