"""Waiting for work that must not be cut off in the middle. Knows nothing of what the work is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

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
