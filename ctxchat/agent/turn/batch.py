"""Orders the calls of one round (the calls of one reply): says when each may be checked, may be asked about and may run.

Calls that only read run side by side, and beside an earlier call that waits for a person. A call that changes something runs
alone, once all calls before it are over, so that the effects come in the order of the calls. Knows no tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import IntEnum


class Stage(IntEnum):
    """How far a call is: `NEW`; `ASKED`, it waits for a person's answer; `CLEARED`, nobody needs to be asked any more; `RUNNING`;
    `OVER`."""

    NEW = 0
    ASKED = 1
    CLEARED = 2
    RUNNING = 3
    OVER = 4


class Batch:
    """The stages of the calls of one round, by position; `reads` says which of them change nothing. The methods that wait are
    called by the task of the call at `place`."""

    def __init__(self, reads: Sequence[bool]) -> None:
        self._reads = tuple(reads)
        self._stages = [Stage.NEW] * len(self._reads)
        self._moved = asyncio.Event()

    def move(self, place: int, stage: Stage) -> None:
        """Note that a call has reached this stage, and wake the calls that wait for it."""
        self._stages[place] = stage
        self._moved.set()
        self._moved = asyncio.Event()

    async def wait_for_earlier(self, place: int) -> None:
        """Wait until no earlier call can change what this one would do."""
        await self._until(lambda: self._settled_before(place))

    async def ask(self, place: int) -> None:
        """Wait until it is this call's turn to ask a person."""
        await self._until(lambda: all(stage >= Stage.CLEARED for stage in self._stages[:place]))

    async def run(self, place: int) -> None:
        """Wait until the call may run, and mark it as running."""
        await self._until(lambda: self._may_run(place))
        self.move(place, Stage.RUNNING)

    def _settled_before(self, place: int) -> bool:
        """True where all earlier calls that change something are over. A call that only reads need not wait for one that waits
        for a person: whether that one will run is not known."""
        settled = {Stage.OVER, Stage.ASKED} if self._reads[place] else {Stage.OVER}
        before = zip(self._stages[:place], self._reads, strict=False)
        return all(reads or stage in settled for stage, reads in before)

    def _may_run(self, place: int) -> bool:
        """True where a call may start: a reading one beside other reading ones, any other alone and once all before it are
        over."""
        running = [reads for stage, reads in zip(self._stages, self._reads, strict=True) if stage is Stage.RUNNING]
        if self._reads[place]:
            return all(running) and self._settled_before(place)
        return not running and all(stage is Stage.OVER for stage in self._stages[:place])

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds; it is checked whenever a call moves."""
        while not holds():
            await self._moved.wait()
