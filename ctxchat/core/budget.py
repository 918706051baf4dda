"""The token budget of a request: the window, the part that is reserved for the reply, and the fill levels at which compaction
starts and to which it goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

WindowSource = Literal["loaded", "configured", "provider", "catalogue", "learned", "family", "assumed"]
"""Where a window's size is known from: the model's server (`loaded`), the settings, the provider's list, litellm's or our own
table, a refusal (`learned`); or it is that of its family's models, or assumed."""

GUESSED: frozenset[WindowSource] = frozenset({"family", "assumed"})
"""Sources whose size may be too large or too small."""

SAFETY_TOKENS = 13_000
"""The trigger is at least this far below the limit (or a quarter of the limit, where that is less), so that one more round
fits."""


WorkingLimitSource = Literal["", "configured", "price_step", "large_window"]
"""Why a compaction is due although more would fit: the settings, a rise of the model's price, a large window; empty: there is no
such limit."""

LARGE_WINDOW, LARGE_WINDOW_LIMIT = 400_000, 272_000
"""A window larger than the first number of tokens is not filled: a compaction is due at the second. That is the longest prompt of
a window of 400,000, and the length at which half of the models with a price by length become dearer."""


class Window(msgspec.Struct, frozen=True):
    """The size of a model's context window in tokens, and the source of that.

    `claimed` is the size that was believed before it was corrected, 0 where nothing was: a refusal corrects it downwards, and a
    success upwards (then the source is `assumed`, since even more may fit). `refused` is the number of tokens that was too many,
    where a refusal named no window, so that `tokens` is a guess; else 0.
    """

    tokens: int
    source: WindowSource
    claimed: int = 0
    refused: int = 0

    @property
    def guessed(self) -> bool:
        """True for a size that is only guessed."""
        return self.source in GUESSED


class WorkingLimit(msgspec.Struct, frozen=True):
    """The number of tokens at which a compaction is due although more would fit, and the reason. 0 tokens means no such limit:
    nothing asks for one, or the settings (`configured`) say that the window may be filled."""

    tokens: int = 0
    source: WorkingLimitSource = ""


NO_WORKING_LIMIT = WorkingLimit()


def working_limit(window: int, configured: int = 0, price_step: int = 0) -> WorkingLimit:
    """The working limit of a window: the configured one (0: none), else the length at which the model's price rises
    (`price_step`; 0: it does not), and in a large window at most `LARGE_WINDOW_LIMIT`. All in tokens."""
    if configured:
        return WorkingLimit(configured, "configured")
    if window > LARGE_WINDOW and not 0 < price_step <= LARGE_WINDOW_LIMIT:
        return WorkingLimit(LARGE_WINDOW_LIMIT, "large_window")
    return WorkingLimit(price_step, "price_step") if price_step else NO_WORKING_LIMIT


class Budget(msgspec.Struct, frozen=True):
    """The budget of a request, in tokens. `reserved` is for the reply; a compaction starts at `trigger` and goes down to
    `target`; `sections` are the budgets of single sections, by name; `working` makes a compaction due although more would fit."""

    window: Window
    reserved: int
    trigger: int
    target: int
    sections: Mapping[str, int] = {}
    working: WorkingLimit = NO_WORKING_LIMIT

    @property
    def limit(self) -> int:
        """The longest prompt: the window without what is reserved for the reply; at least 1."""
        return max(1, self.window.tokens - self.reserved)

    @property
    def halfway(self) -> int:
        """The middle between trigger and target: low enough that the next compaction is not due at once."""
        return (self.target + self.trigger) // 2

    def pressure(self, used: int) -> float:
        """The tokens in use as a share of the limit."""
        return used / self.limit


def limit_of(window: int, reserved: int) -> int:
    """The longest prompt in tokens, where `reserved` tokens (at most a quarter of the window) are kept for the reply."""
    return max(1, window - min(max(0, reserved), window // 4))


def make_budget(
    window: Window,
    reserved: int,
    trigger: float,
    target: float,
    sections: Mapping[str, int] | None = None,
    working: WorkingLimit = NO_WORKING_LIMIT,
) -> Budget:
    """The budget of a window, which always leaves usable space.

    `reserved` is in tokens, at most a quarter of the window; `trigger` and `target` are shares of the limit; `sections` are in
    tokens. A working limit that is not below the limit has no effect.
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
