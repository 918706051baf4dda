"""Providers side by side: nobody waits past the deadline, and nothing that was known is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ctxchat.context.gather import Providers
from ctxchat.core.ports import ContextProvider


class Scripted:
    """A provider that says what it is told to, after what it is told to wait for."""

    def __init__(self, source_id: str, *answers: str | Exception | asyncio.Event) -> None:
        self.source_id = source_id
        self._answers = list(answers)
        self.asked = 0

    async def provide(self) -> str:
        self.asked += 1
        answer = self._answers.pop(0)
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return "late but here"
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def asking(*each: ContextProvider) -> AsyncIterator[Providers]:
    providers = Providers(each)
    try:
        yield providers
    finally:
        await providers.close()


async def test_in_their_order_and_without_empty_ones() -> None:
    async with asking(Scripted("b", "two"), Scripted("none", " "), Scripted("a", "one")) as providers:
        assert [(i.source_id, i.text) for i in await providers.asked(5)] == [("b", "two"), ("a", "one")]
        assert providers.troubles == {}
    async with asking() as nobody:
        assert await nobody.asked(5) == ()


async def test_they_run_side_by_side() -> None:
    first, second = asyncio.Event(), asyncio.Event()

    class Chained:
        def __init__(self, source_id: str, mine: asyncio.Event, other: asyncio.Event) -> None:
            self.source_id, self.mine, self.other = source_id, mine, other

        async def provide(self) -> str:
            self.mine.set()
            await self.other.wait()
            return self.source_id

    async with asking(Chained("a", first, second), Chained("b", second, first)) as providers:
        assert [i.text for i in await providers.asked(5)] == ["a", "b"]


async def test_a_failing_one_gives_its_last_good_value_and_is_named() -> None:
    async with asking(Scripted("weather", "sunny", ValueError("no wire"), "rain")) as providers:
        assert [[i.text for i in await providers.asked(5)] for _ in range(2)] == [["sunny"], ["sunny"]]
        assert "no wire" in providers.troubles["weather"]
        assert [i.text for i in await providers.asked(5)] == ["rain"] and providers.troubles == {}


async def test_a_late_one_goes_on_and_counts_the_next_time() -> None:
    ready = asyncio.Event()
    slow = Scripted("slow", "first", ready, ready)
    async with asking(slow, Scripted("quick", "q", "q", "q", "q")) as providers:
        assert [i.text for i in await providers.asked(5)] == ["first", "q"]
        assert [i.text for i in await providers.asked(0.01)] == ["first", "q"]
        assert list(providers.troubles) == ["slow"]
        assert [i.text for i in await providers.asked(0.01)] == ["first", "q"]
        assert slow.asked == 2  # still the same call, not one more at each request
        ready.set()
        await asyncio.sleep(0)
        assert [i.text for i in await providers.asked(5)] == ["late but here", "q"]


async def test_closing_ends_who_is_still_at_work() -> None:
    providers = Providers([Scripted("slow", asyncio.Event())])
    await providers.asked(0.01)
    before = asyncio.all_tasks()
    await providers.close()
    assert len(asyncio.all_tasks()) == len(before) - 1


async def test_two_requests_at_once_share_the_work_and_both_get_the_answer() -> None:
    approvals = asyncio.Event()
    slow = Scripted("slow", approvals)
    async with asking(slow) as providers:
        both = [asyncio.create_task(providers.asked(5)) for _ in range(2)]
        await asyncio.sleep(0)
        approvals.set()
        assert [[i.text for i in inserts] for inserts in await asyncio.gather(*both)] == [["late but here"]] * 2
    assert slow.asked == 1
