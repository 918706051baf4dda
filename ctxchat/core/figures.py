"""The figures of the gauge: a view measured against a budget, with the server's own count where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from ctxchat.core.budget import Budget, WindowSource
from ctxchat.core.sections import OUTSIDE, SECTIONS, Section, SectionName
from ctxchat.core.tokens import Anchor, Calibration, apportion
from ctxchat.core.view import View

PACE = 12
"""Turns whose growth a forecast goes by."""

LOOSE = 0.06
"""The least band of a figure that stands on no count of a server: after a pass another mix of texts is left, and what is fixed in
a request weighs more (`benchmarks/forecast.py`)."""


class Figures(msgspec.Struct, frozen=True, tag="context", omit_defaults=False):
    """SPEC 9's `context`. Tokens are integers, `pressure` is used / limit, `cost_usd` the sum over the session.

    Sections sum to `window` when nothing overflows, and all but `reserved` and `free` sum to `used`. `band` is the share by
    which `used` may be off, 0 for a server's own figure. `forecast_turns` is None while there is no trend.
    """

    model: str
    window: int
    window_source: WindowSource
    reserved_output: int
    limit: int
    used: int
    estimated: bool
    pressure: float
    trigger_tokens: int
    target_tokens: int
    forecast_turns: int | None
    compactions: int
    cost_usd: float
    sections: tuple[Section, ...]
    band: float = 0.0
    cached: int = 0

    @property
    def over(self) -> int:
        """Tokens by which the request is too long for its limit, 0 where it fits."""
        return max(0, self.used - self.limit)

    def tokens(self, name: str) -> int:
        """Tokens of one section."""
        return next((s.tokens for s in self.sections if s.name == name), 0)


def used_tokens(raw: int, passes: int, calibration: Calibration, anchor: Anchor | None) -> tuple[int, bool]:
    """Tokens in use and whether that is an estimate: the anchor plus a corrected estimate of what came after it."""
    if anchor is None or anchor.passes != passes:
        return calibration.apply(raw), True
    grown = raw - anchor.raw
    return max(0, anchor.tokens + calibration.apply(grown)), grown != 0


def measure(
    view: View,
    budget: Budget,
    *,
    model: str,
    calibration: Calibration,
    anchor: Anchor | None = None,
    draft: int = 0,
    streamed: int = 0,
    fills: Sequence[int] = (),
    compactions: int = 0,
    cost_usd: float = 0.0,
    cached: int = 0,
) -> Figures:
    """The gauge for a view.

    `draft` and `streamed` are raw tokens of what is being typed and of the reply that is arriving; `fills` are the
    tokens used at the end of the last turns, oldest first; `cached` is what the server last said it had cached.
    """
    raw = view.raw + draft + streamed
    used, estimated = used_tokens(raw, view.passes, calibration, anchor)
    weights: dict[SectionName, int] = view.weights()
    weights["draft"] = draft
    weights["assistant"] += streamed
    inside: list[SectionName] = [name for name in SECTIONS if name not in OUTSIDE]
    shares = apportion(used, [weights[name] for name in inside])
    parts: dict[SectionName, int] = dict(zip(inside, shares, strict=True))
    used = sum(parts.values())  # 0 where there is nothing to hold tokens
    parts["reserved"] = budget.reserved
    parts["free"] = max(0, budget.window.tokens - budget.reserved - used)
    return Figures(
        model=model,
        window=budget.window.tokens,
        window_source=budget.window.source,
        reserved_output=budget.reserved,
        limit=budget.limit,
        used=used,
        estimated=estimated,
        pressure=round(budget.pressure(used), 4),
        trigger_tokens=budget.trigger,
        target_tokens=budget.target,
        forecast_turns=forecast(fills, used, budget.trigger),
        compactions=compactions,
        cost_usd=cost_usd,
        sections=tuple(Section(name, parts[name], estimated=name != "reserved" and estimated) for name in SECTIONS),
        band=_band(calibration, anchor is not None and anchor.passes == view.passes) if estimated else 0.0,
        cached=cached,
    )


def _band(calibration: Calibration, anchored: bool) -> float:
    return calibration.band if anchored else max(LOOSE, calibration.band)


def forecast(fills: Sequence[int], used: int, trigger: int) -> int | None:
    """Turns left before `trigger` at the pace of the last dozen turns that grew (their mean); None without one.

    The mean, since a rare long result fills a window as surely as many short ones: the median was twice as far off
    (`benchmarks/forecast.py`).
    """
    growth = [b - a for a, b in pairwise(fills) if b > a][-PACE:]
    return max(0, (trigger - used) * len(growth) // sum(growth)) if growth else None
