"""Work as a stream: in step with whoever reads it, and ended with it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from ctxchat.agent.emitting import Emitter
from ctxchat.core.events import Notice


def told(text: str) -> Notice:
    return Notice("info", text)


async def test_nothing_runs_ahead_of_whoever_reads() -> None:
    events, done = Emitter(), list[str]()

    async def inner():
        yield told("b")
        done.append("after b")

    async def work() -> None:
        await events.emit(told("a"))
        done.append("after a")
        await events.relay(inner())

    seen: list[str] = []
    async for event in events.stream(work):
        await asyncio.sleep(0)
        assert isinstance(event, Notice)
        seen += [event.text, *done]
    assert seen == ["a", "b", "after a"] and done == ["after a", "after b"]


async def test_closing_it_cancels_the_work_and_waits_for_its_end() -> None:
    events, ended = Emitter(), list[str]()

    async def work() -> None:
        try:
            await events.emit(told("a"))
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append("sealed")

    async with aclosing(events.stream(work)) as stream:
        await anext(stream)
    assert ended == ["sealed"]


async def test_a_cancel_reaches_the_work_wherever_it_is_and_what_it_raises_is_raised() -> None:
    events, ended = Emitter(), list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("sealed")

    async def read() -> None:
        async for _ in events.stream(work):
            pass

    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert ended == ["sealed"]

    async def fails() -> None:
        await events.emit(told("a"))
        raise ValueError("odd")

    events = Emitter()
    with pytest.raises(ValueError, match="odd"):
        async for _ in events.stream(fails):
            pass
