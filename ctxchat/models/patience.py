"""Waiting for streams that litellm reads without looking at the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float, awaited: Awaitable[T]) -> T:
    """What is waited for. Raises TimeoutError, which says how long nothing came."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError as late:
        raise TimeoutError(f"Nothing came for {seconds:g} seconds.") from late


async def pieces(stream: Any, seconds: float) -> AsyncIterator[Any]:
    """Those of a stream. Raises TimeoutError when none comes in time."""
    while True:
        try:
            piece = await within(seconds, anext(stream))
        except StopAsyncIteration:
            return
        yield piece
