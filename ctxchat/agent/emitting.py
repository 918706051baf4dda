"""Work that says what happens as it goes, seen from outside as a stream of events. Knows nothing of the work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from ctxchat.agent.shield import to_the_end
from ctxchat.core.events import Event


class Emitter:
    """What the work is handed. Nothing runs ahead: it goes on when an event was taken and the next is asked for."""

    def __init__(self) -> None:
        self._handed: asyncio.Queue[Event | None] = asyncio.Queue()

    async def emit(self, event: Event) -> None:
        """Tell this."""
        self._handed.put_nowait(event)
        await self._handed.join()

    async def relay(self, events: AsyncGenerator[Event, None]) -> None:
        """Tell all of these, and close them whatever happens."""
        async with aclosing(events):
            async for event in events:
                await self.emit(event)

    async def stream(self, work: Callable[[], Awaitable[None]]) -> AsyncGenerator[Event, None]:
        """The events that `work` emits. Closing it cancels the work and waits for its end. Raises what the work raises."""
        task = asyncio.ensure_future(work())
        task.add_done_callback(lambda _: self._handed.put_nowait(None))
        try:
            while (event := await self._handed.get()) is not None:
                yield event
                self._handed.task_done()
            task.result()
        finally:
            if not task.done():
                task.cancel()
                await to_the_end(asyncio.wait({task}))
                if not task.cancelled() and (problem := task.exception()):
                    raise problem
