"""The costs of a session in US dollars, added up by model, day, purpose and turn, call by call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Purpose = Literal["replies", "summaries", "sub-agents", "other"]

MAX_TURNS = 12
"""How many of the last turns are kept with a cost of their own."""


class Spending(msgspec.Struct, frozen=True, omit_defaults=True):
    """The sums so far, in US dollars: by model, by day (`2026-11-25`, UTC), by purpose, for each of the last `turns` (newest
    last), and for the present turn (`open`). `day` is that of the newest call; a call without a time counts for it."""

    by_model: dict[str, float] = {}
    by_day: dict[str, float] = {}
    by_purpose: dict[str, float] = {}
    turns: tuple[float, ...] = ()
    open: float = 0.0
    day: str = ""

    def paid(self, usd: float, model: str, purpose: Purpose, at: str = "") -> Spending:
        """The sums with one more call, made `at` (an ISO time, or empty)."""
        day = at[:10] or self.day
        if not usd:
            return msgspec.structs.replace(self, day=day) if day != self.day else self
        return msgspec.structs.replace(
            self,
            by_model=_added(self.by_model, model, usd),
            by_day=_added(self.by_day, day, usd),
            by_purpose=_added(self.by_purpose, purpose, usd),
            open=self.open + usd,
            day=day,
        )

    def turn_ended(self) -> Spending:
        """The sums at the end of a turn: what is paid from now on counts for the next one."""
        return msgspec.structs.replace(self, turns=(*self.turns, self.open)[-MAX_TURNS:], open=0.0)


def _added(sums: Mapping[str, float], name: str, usd: float) -> dict[str, float]:
    return {**sums, name: sums.get(name, 0.0) + usd}
