"""When a pass may start by itself: back-off after failures, a breaker after three, and an end to passes that refill at once.

A value; each verb returns the next one. Times in seconds of whatever clock the caller keeps.
"""

from __future__ import annotations

from typing import Literal

import msgspec

BREAKER = 3
"""Failures in a row after which only a pass by hand closes the breaker."""

REFILLS = 3
"""Passes in a row, each in the turn of the one before or the next, after which automatic passes stop."""

Standing = Literal["free", "waiting", "broken", "thrashing"]


class Guard(msgspec.Struct, frozen=True):
    """What is remembered of past passes."""

    failures: int = 0
    not_before: float = 0.0
    refills: int = 0
    last_turn: int = -10
    told: bool = False

    def standing(self, now: float) -> Standing:
        """Whether an automatic pass may run now, and if not why."""
        if self.failures >= BREAKER:
            return "broken"
        if self.refills >= REFILLS:
            return "thrashing"
        return "waiting" if now < self.not_before else "free"

    def failed(self, now: float) -> Guard:
        """After a pass that failed or was rejected: half a minute, then twice that each time."""
        failures = self.failures + 1
        return msgspec.structs.replace(self, failures=failures, not_before=now + self.wait(failures), told=False)

    def helped(self, turn: int) -> Guard:
        """After an automatic pass that made room."""
        again = turn - self.last_turn <= 1
        return Guard(refills=self.refills + 1 if again else 0, last_turn=turn)

    def closed(self) -> Guard:
        """After a pass by hand that made room: everything may run again."""
        return Guard()

    def tell(self) -> Guard:
        """The user has been told why nothing runs."""
        return msgspec.structs.replace(self, told=True)

    @staticmethod
    def wait(failures: int) -> float:
        """Seconds of rest after so many failures in a row."""
        return 30.0 * 2 ** (failures - 1)
