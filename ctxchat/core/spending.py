"""What a session has cost, by model, day, purpose and turn: a fold over what was paid. US dollars. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Purpose = Literal["replies", "summaries", "sub-agents", "other"]

MAX_TURNS = 12
"""Turns whose cost is remembered each by itself."""


class Spending(msgspec.Struct, frozen=True, omit_defaults=True):
    """US dollars by model, by day (`2026-11-25`, UTC) and by purpose; of each of the last `turns`, the newest last, and of the
    one that is `open`. What says no time counts for the `day` of what was paid before it."""

    by_model: dict[str, float] = {}
    by_day: dict[str, float] = {}
    by_purpose: dict[str, float] = {}
    turns: tuple[float, ...] = ()
    open: float = 0.0
    day: str = ""

    def paid(self, usd: float, model: str, purpose: Purpose, at: str = "") -> Spending:
        """With one call more."""
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
        """What comes now is paid for the next turn."""
        return msgspec.structs.replace(self, turns=(*self.turns, self.open)[-MAX_TURNS:], open=0.0)


def _added(sums: Mapping[str, float], name: str, usd: float) -> dict[str, float]:
    return {**sums, name: sums.get(name, 0.0) + usd}
