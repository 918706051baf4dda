"""The token budget of a request: window, what is reserved for the reply, and where compaction starts and stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

WindowSource = Literal["loaded", "configured", "provider", "catalogue", "learned", "family", "assumed"]
"""Who says how much a model can hold: its server, the settings, its provider's list, litellm's or our own table, a refusal; or
nobody, and it is what models of its family hold, or an assumption."""

GUESSED: frozenset[WindowSource] = frozenset({"family", "assumed"})
"""Sources that may be wrong either way."""

SAFETY_TOKENS = 13_000
"""The trigger stays at least this far under the limit (or a quarter of it, where that is less): room for one more round."""


class Window(msgspec.Struct, frozen=True):
    """How many tokens a model can hold, and who said so. `claimed` is what was believed before it was learned better, 0 where
    nothing was corrected: by a refusal, or, where it is less and still assumed, by a success that shows more. `refused`: no
    server said it, so `tokens` is a guess, and so many were too many."""

    tokens: int
    source: WindowSource
    claimed: int = 0
    refused: int = 0

    @property
    def guessed(self) -> bool:
        """Nobody said so."""
        return self.source in GUESSED


class Budget(msgspec.Struct, frozen=True):
    """All in tokens. `limit` is what a prompt may hold; `trigger` and `target` are where a compaction starts and ends;
    `sections` is what single sections are meant to hold, by name. `working` is where a compaction is due at the latest, though
    more would fit; 0 where nothing says so."""

    window: Window
    reserved: int
    trigger: int
    target: int
    sections: Mapping[str, int] = {}
    working: int = 0

    @property
    def limit(self) -> int:
        """Window less what is reserved for the reply; never under 1."""
        return max(1, self.window.tokens - self.reserved)

    @property
    def halfway(self) -> int:
        """Between trigger and target: low enough for the next compaction to be some way off."""
        return (self.target + self.trigger) // 2

    def pressure(self, used: int) -> float:
        """Used as a share of the limit."""
        return used / self.limit


def limit_of(window: int, reserved: int) -> int:
    """What a prompt may hold where so much is to be reserved for the reply (a quarter of the window at most); in tokens."""
    return max(1, window - min(max(0, reserved), window // 4))


def make_budget(
    window: Window,
    reserved: int,
    trigger: float,
    target: float,
    sections: Mapping[str, int] | None = None,
    working: int = 0,
) -> Budget:
    """A budget that always leaves usable space.

    `reserved` in tokens, clamped to a quarter of the window; `trigger` and `target` as shares of the limit; `sections` in
    tokens, `working` as well: 0, or as much as the limit, is no working limit.
    """
    tokens = max(1, window.tokens)
    kept = min(max(0, reserved), tokens // 4)
    limit = limit_of(tokens, reserved)
    start = min(int(limit * trigger), limit - min(SAFETY_TOKENS, limit // 4))
    working = working if 0 < working < limit else 0
    start = max(1, min(start, working or start))
    return Budget(
        window=msgspec.structs.replace(window, tokens=tokens),
        reserved=kept,
        trigger=start,
        target=min(int((working or limit) * target), start),
        sections=sections or {},
        working=working,
    )
