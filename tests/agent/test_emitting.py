"""Work as a stream: in step with whoever reads it, and ended with it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from ctxchat.agent.emitting import Emit, stream
from ctxchat.core.events import Event, Notice


def told(text: str) -> Notice:
    return Notice("info", text)


def unchanged(event: Event) -> Event:
    return event


async def test_nothing_runs_ahead_of_whoever_reads() -> None:
    done: list[str] = []

    async def inner(emit: Emit) -> None:
        await emit(told("b"))
        done.append("after b")

    async def work(emit: Emit) -> None:
        await emit(told("a"))
        done.append("after a")
        await inner(emit)

    seen: list[str] = []
    async for event in stream(work, unchanged):
        await asyncio.sleep(0)
        assert isinstance(event, Notice)
        seen += [event.text, *done]
    assert seen == ["a", "b", "after a"] and done == ["after a", "after b"]


async def test_closing_it_cancels_the_work_and_waits_for_its_end() -> None:
    ended: list[str] = []

    async def work(emit: Emit) -> None:
        try:
            await emit(told("a"))
            await asyncio.sleep(3600)
        finally:
            await emit(told("nobody hears this"))
            await asyncio.sleep(0)
            ended.append("sealed")

    async with aclosing(stream(work, unchanged)) as events:
        await anext(events)
    assert ended == ["sealed"]


@pytest.mark.parametrize("said", [0, 1])
async def test_a_cancel_reaches_the_work_and_what_it_says_of_its_end_is_heard(said: int) -> None:
    """Wherever the work is: before it has said anything, and after."""
    heard: list[str] = []
    waits = asyncio.Event()

    async def work(emit: Emit) -> None:
        try:
            for _ in range(said):
                await emit(told("a"))
            waits.set()
            await asyncio.sleep(3600)
        finally:
            await emit(told("cancelled"))

    async def read() -> None:
        async for event in stream(work, unchanged):
            assert isinstance(event, Notice)
            heard.append(event.text)

    reader = asyncio.create_task(read())
    await waits.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert heard == [*["a"] * said, "cancelled"]


async def test_a_cancel_while_nobody_reads_ends_the_work_too() -> None:
    ended: list[str] = []
    reads = asyncio.Event()

    async def work(emit: Emit) -> None:
        try:
            await emit(told("a"))
        finally:
            await emit(told("cancelled"))
            ended.append("sealed")

    async def read() -> None:
        async with aclosing(stream(work, unchanged)) as events:
            async for _ in events:
                reads.set()
                await asyncio.sleep(3600)

    reader = asyncio.create_task(read())
    await reads.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert ended == ["sealed"]


async def test_what_the_work_raises_is_raised() -> None:
    async def fails(emit: Emit) -> None:
        await emit(told("a"))
        raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        async for _ in stream(fails, unchanged):
            pass
