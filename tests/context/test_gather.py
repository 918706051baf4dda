"""Providers side by side: nobody waits past the deadline, and nothing that was known is lost."""

from __future__ import annotations

import asyncio

import pytest

from ctxchat.context.gather import LastGood, gather


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


@pytest.fixture
async def kept():
    keeper = LastGood()
    yield keeper
    await keeper.close()


async def test_in_their_order_and_without_empty_ones(kept: LastGood) -> None:
    providers = [Scripted("b", "two"), Scripted("none", " "), Scripted("a", "one")]
    inserts = await gather(providers, 5, kept)
    assert [(i.source_id, i.text) for i in inserts] == [("b", "two"), ("a", "one")]
    assert kept.troubles == {}
    assert await gather([], 5, kept) == ()


async def test_they_run_side_by_side(kept: LastGood) -> None:
    first, second = asyncio.Event(), asyncio.Event()

    class Chained:
        def __init__(self, source_id: str, mine: asyncio.Event, other: asyncio.Event) -> None:
            self.source_id, self.mine, self.other = source_id, mine, other

        async def provide(self) -> str:
            self.mine.set()
            await self.other.wait()
            return self.source_id

    inserts = await gather([Chained("a", first, second), Chained("b", second, first)], 5, kept)
    assert [i.text for i in inserts] == ["a", "b"]


async def test_a_failing_one_gives_its_last_good_value_and_is_named(kept: LastGood) -> None:
    provider = Scripted("weather", "sunny", ValueError("no wire"), "rain")
    seen = [[i.text for i in await gather([provider], 5, kept)] for _ in range(2)]
    assert seen == [["sunny"], ["sunny"]]
    assert "no wire" in kept.troubles["weather"]
    assert [i.text for i in await gather([provider], 5, kept)] == ["rain"] and kept.troubles == {}


async def test_a_late_one_goes_on_and_counts_the_next_time(kept: LastGood) -> None:
    ready = asyncio.Event()
    slow, quick = Scripted("slow", "first", ready, ready), Scripted("quick", "q", "q", "q", "q")
    assert [i.text for i in await gather([slow, quick], 5, kept)] == ["first", "q"]
    assert [i.text for i in await gather([slow, quick], 0.01, kept)] == ["first", "q"]
    assert list(kept.troubles) == ["slow"]
    assert [i.text for i in await gather([slow, quick], 0.01, kept)] == ["first", "q"]
    assert slow.asked == 2  # still the same call, not one more at each request
    ready.set()
    await asyncio.sleep(0)
    assert [i.text for i in await gather([slow, quick], 5, kept)] == ["late but here", "q"]


async def test_closing_ends_who_is_still_at_work() -> None:
    kept = LastGood()
    await gather([Scripted("slow", asyncio.Event())], 0.01, kept)
    before = asyncio.all_tasks()
    await kept.close()
    assert len(asyncio.all_tasks()) == len(before) - 1


async def test_two_requests_at_once_share_the_work_and_both_get_the_answer(kept: LastGood) -> None:
    gate = asyncio.Event()
    slow = Scripted("slow", gate)
    both = [asyncio.create_task(gather([slow], 5, kept)) for _ in range(2)]
    await asyncio.sleep(0)
    gate.set()
    assert [[i.text for i in inserts] for inserts in await asyncio.gather(*both)] == [["late but here"]] * 2
    assert slow.asked == 1
