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


WorkingLimitSource = Literal["", "configured", "price_step", "large_window"]
"""Who says where a compaction is due though more would fit: nobody, the settings, the model's price, the size of its window."""

LARGE_WINDOW, LARGE_WINDOW_LIMIT = 400_000, 272_000
"""A window of more tokens than the first is not filled: a compaction is due at the second. That is what a window of 400,000 takes
as a prompt, and where half of the models whose price rises with the length of a request charge more for all of it."""


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


class WorkingLimit(msgspec.Struct, frozen=True):
    """Where a compaction is due at the latest, though more would fit, and who says so. 0 tokens for nowhere: nobody says so, or
    the settings say that the window may be filled."""

    tokens: int = 0
    source: WorkingLimitSource = ""


NO_WORKING_LIMIT = WorkingLimit()


def working_limit(window: int, configured: int = 0, price_step: int = 0) -> WorkingLimit:
    """The working limit of a window: the configured one where there is one (not 0), else the length from which the model's price
    rises (0: it does not), and `LARGE_WINDOW_LIMIT` at most in a large window. All in tokens."""
    if configured:
        return WorkingLimit(configured, "configured")
    if window > LARGE_WINDOW and not 0 < price_step <= LARGE_WINDOW_LIMIT:
        return WorkingLimit(LARGE_WINDOW_LIMIT, "large_window")
    return WorkingLimit(price_step, "price_step") if price_step else NO_WORKING_LIMIT


class Budget(msgspec.Struct, frozen=True):
    """All in tokens. `limit` is what a prompt may hold; `trigger` and `target` are where a compaction starts and ends;
    `sections` is what single sections are meant to hold, by name. `working` is where a compaction is due though more would
    fit."""

    window: Window
    reserved: int
    trigger: int
    target: int
    sections: Mapping[str, int] = {}
    working: WorkingLimit = NO_WORKING_LIMIT

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
    working: WorkingLimit = NO_WORKING_LIMIT,
) -> Budget:
    """A budget that always leaves usable space.

    `reserved` in tokens, clamped to a quarter of the window; `trigger` and `target` as shares of the limit; `sections` in
    tokens. A working limit as large as the limit is none.
    """
    tokens = max(1, window.tokens)
    kept = min(max(0, reserved), tokens // 4)
    limit = limit_of(tokens, reserved)
    start = min(int(limit * trigger), limit - min(SAFETY_TOKENS, limit // 4))
    if working.tokens >= limit:
        working = WorkingLimit(0, working.source if working.source == "configured" else "")
    start = max(1, min(start, working.tokens or start))
    return Budget(
        window=msgspec.structs.replace(window, tokens=tokens),
        reserved=kept,
        trigger=start,
        target=min(int((working.tokens or limit) * target), start),
        sections=sections or {},
        working=working,
    )
