"""How far each call of a round is, and when it may go on: what changes something runs alone and in the order of the calls, one
question is open at a time, and reading calls run beside whatever waits for a person. Knows neither tools nor permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import IntEnum


class Stage(IntEnum):
    """A call has been `NEW`, has `ASKED` a person, is `CLEARED` of every question, is `RUNNING`, is `OVER`."""

    NEW = 0
    ASKED = 1
    CLEARED = 2
    RUNNING = 3
    OVER = 4


class Batch:
    """The calls of one round by their place; `reads` says which of them change nothing."""

    def __init__(self, reads: Sequence[bool]) -> None:
        self._reads = tuple(reads)
        self._stages = [Stage.NEW] * len(self._reads)
        self._moved = asyncio.Event()

    def move(self, place: int, stage: Stage) -> None:
        """That call is so far now."""
        self._stages[place] = stage
        self._moved.set()
        self._moved = asyncio.Event()

    async def look(self, place: int) -> None:
        """Until what comes before it can no longer change what the call would do."""
        await self._until(lambda: self._settled_before(place))

    async def ask(self, place: int) -> None:
        """Until it is this call's turn to ask a person."""
        await self._until(lambda: all(stage >= Stage.CLEARED for stage in self._stages[:place]))

    async def run(self, place: int) -> None:
        """Until the call may run, and it runs."""
        await self._until(lambda: self._may_run(place))
        self.move(place, Stage.RUNNING)

    def _settled_before(self, place: int) -> bool:
        """Every change before it is made; for a call that only reads, one that waits for a person is none yet."""
        fine = {Stage.OVER, Stage.ASKED} if self._reads[place] else {Stage.OVER}
        before = zip(self._stages[:place], self._reads, strict=False)
        return all(reads or stage in fine for stage, reads in before)

    def _may_run(self, place: int) -> bool:
        running = [reads for stage, reads in zip(self._stages, self._reads, strict=True) if stage is Stage.RUNNING]
        if self._reads[place]:
            return all(running) and self._settled_before(place)
        return not running and all(stage is Stage.OVER for stage in self._stages[:place])

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._moved.wait()
