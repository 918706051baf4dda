"""Computes the figures of the gauge (how full the context window is) from a view, a budget and the server's own count where there
is one, and tells when a compaction is due. What to do then is up to the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from math import sqrt
from statistics import fmean, stdev
from typing import Literal

import msgspec

from ctxchat.core.automatic import Automatic
from ctxchat.core.budget import Budget, WindowSource, WorkingLimitSource
from ctxchat.core.cache_state import NOTHING_KNOWN, CacheState
from ctxchat.core.calibration import Anchor, Calibration, Mix
from ctxchat.core.prefix_break import PrefixBreak
from ctxchat.core.quantities import percent, short
from ctxchat.core.sections import OUTSIDE, SECTIONS, Section, SectionName
from ctxchat.core.tokens import apportion
from ctxchat.core.view import View

FORECAST_TURNS = 12
"""The number of last turns from whose growth a forecast is computed."""

MIN_FORECAST_TURNS = 3
"""A forecast is shown only after at least this many turns in which the context grew."""

MAX_FORECAST_SPREAD = 4
"""A forecast is shown only where the most turns left are at most this many times the fewest."""


class TokenPrice(msgspec.Struct, frozen=True):
    """US dollars per prompt token: `input` for a new one, `cached` for one read from the server's cache, `written` for one
    written to it. 0 where unknown or free."""

    input: float = 0.0
    cached: float = 0.0
    written: float = 0.0


class PriceRise(msgspec.Struct, frozen=True):
    """Once a prompt holds more than `above` tokens, all of it costs `times` as much."""

    above: int
    times: float


class Counting(msgspec.Struct, frozen=True):
    """How the tokens of the model in use are counted, and what they cost. `anchor` is its server's newest count. `scale` is the
    ratio of the server's count to our estimate for an earlier view, applied to the estimate until the server counts this one."""

    model: str
    calibration: Calibration = Calibration()
    anchor: Anchor | None = None
    price: TokenPrice = TokenPrice()
    scale: float = 1.0


class Past(msgspec.Struct, frozen=True):
    """Figures of the session so far. `fills` are the tokens used at the end of its last turns, oldest first; `cached` is how many
    the server last read from its cache, `cut` how many it seems to have left out of the last prompt."""

    fills: tuple[int, ...] = ()
    compactions: int = 0
    cost_usd: float = 0.0
    cached: int = 0
    cut: int = 0


class ContextUsage(msgspec.Struct, frozen=True, tag="context", omit_defaults=False):
    """The figures of the gauge, which `ctxchat context --json` prints. Tokens are integers, `pressure` is used / limit,
    `cost_usd` the sum over the session.

    Sections sum to `window` when nothing overflows, and all but `reserved` and `free` sum to `used`. `band` is the share by
    which `used` may be off, 0 for a server's own figure. `forecast_turns` is None while there is no trend, and
    `forecast_span` (the fewest and the most turns left) while it says too little. `claimed_window`
    is what the window was believed to be before it was learned better, else 0; where a refusal taught it and the server did not
    say what it holds, `window` is a guess, and `refused_window` were too many; `cut` what the server seems to have left out
    of the last prompt without saying so. `automatic` is whether compaction starts by itself. `breaks` is where the next request
    does not begin as the one before did, None where it does; `cache` what its server holds of it.
    `price_step` is the first length from which all of a request costs more, None where none is known; `working_limit` is where a
    compaction is due though more would fit, and `working_limit_source` who says so; 0 where nobody does, or where the settings
    let the window be filled (`configured`).
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
    claimed_window: int = 0
    cut: int = 0
    price: TokenPrice = TokenPrice()
    automatic: Automatic = Automatic()
    refused_window: int = 0
    breaks: PrefixBreak | None = None
    cache: CacheState = NOTHING_KNOWN
    price_step: PriceRise | None = None
    working_limit: int = 0
    working_limit_source: WorkingLimitSource = ""
    forecast_span: tuple[int, int] | None = None

    @property
    def excess(self) -> int:
        """Tokens by which the request exceeds its limit, 0 where it fits."""
        return max(0, self.used - self.limit)

    @property
    def over_budget(self) -> tuple[Section, ...]:
        """The sections that exceed their own budget, the furthest over first."""
        return tuple(sorted((s for s in self.sections if s.over), key=lambda s: -s.over))

    @property
    def saved(self) -> float:
        """US dollars that the cache saved on the last prompt."""
        return min(self.cached, self.used) * max(0.0, self.price.input - self.price.cached)

    def tokens(self, name: str) -> int:
        """Tokens of one section."""
        return next((s.tokens for s in self.sections if s.name == name), 0)


BEGINNING, BY_ITSELF, NO_MIX = Past(), Automatic(), Mix()


def used_tokens(
    mix: Mix, passes: int, calibration: Calibration, anchor: Anchor | None, scale: float = 1.0
) -> tuple[int, float]:
    """Tokens in use, and by how many that may be wrong: the server's last count (`anchor`) plus a corrected estimate of what was
    added since, or an estimate of everything where there is no count of a view with the same number of changes (`passes`). The
    estimates are multiplied by `scale`, and may be wrong by as much more as that makes of them: what the server counted and we
    did not may have gone."""
    if anchor is None or anchor.passes != passes:
        whole = calibration.estimate_request(mix)
        return round(whole * scale), calibration.error(mix, whole=True) * scale + abs(scale - 1) * whole
    grown = mix - anchor.mix
    if grown == NO_MIX:
        return anchor.tokens, 0.0
    part = calibration.part(grown)
    error = calibration.error(grown) * scale + abs((scale - 1) * part)
    return max(0, anchor.tokens + round(part * scale)), error


def parts_of(
    view: View, used: int, calibration: Calibration, *, draft: Mix = NO_MIX, streamed: Mix = NO_MIX
) -> dict[SectionName, int]:
    """The tokens in use by section, which add up to `used`, including a draft and a reply under way, which are not in the
    view."""
    mixes: dict[SectionName, Mix] = view.mixes()
    mixes["draft"] = draft
    mixes["assistant"] += streamed
    inside: list[SectionName] = [name for name in SECTIONS if name not in OUTSIDE]
    shares = apportion(used, [max(0, calibration.part(mixes[name])) for name in inside])
    return dict(zip(inside, shares, strict=True))


def measure(
    view: View,
    budget: Budget,
    counting: Counting,
    *,
    draft: Mix = NO_MIX,
    streamed: Mix = NO_MIX,
    past: Past = BEGINNING,
    automatic: Automatic = BY_ITSELF,
) -> ContextUsage:
    """The gauge for a view, including our counts of what is not in it yet: the draft being typed (`draft`) and the reply that is
    arriving (`streamed`)."""
    calibration = counting.calibration
    used, error = used_tokens(view.kinds + draft + streamed, view.changes, calibration, counting.anchor, counting.scale)
    parts = parts_of(view, used, calibration, draft=draft, streamed=streamed)
    used = sum(parts.values())  # 0 where there is nothing to hold tokens
    parts["reserved"] = budget.reserved
    parts["free"] = max(0, budget.window.tokens - budget.reserved - used)
    end = budget.trigger if automatic.at_trigger else budget.limit
    return ContextUsage(
        model=counting.model,
        window=budget.window.tokens,
        window_source=budget.window.source,
        reserved_output=budget.reserved,
        limit=budget.limit,
        used=used,
        estimated=error > 0,
        pressure=round(budget.pressure(used), 4),
        trigger_tokens=budget.trigger,
        target_tokens=budget.target,
        forecast_turns=forecast(past.fills, used, end),
        forecast_span=forecast_span(past.fills, used, end),
        compactions=past.compactions,
        cost_usd=past.cost_usd,
        sections=_sections(parts, budget, estimated=error > 0),
        band=round(min(0.5, error / max(1, used)), 4),
        cached=past.cached,
        claimed_window=budget.window.claimed,
        cut=past.cut,
        price=counting.price,
        automatic=automatic,
        refused_window=budget.window.refused,
        working_limit=budget.working.tokens,
        working_limit_source=budget.working.source,
    )


def _sections(parts: Mapping[SectionName, int], budget: Budget, *, estimated: bool) -> tuple[Section, ...]:
    return tuple(
        Section(name, parts[name], name != "reserved" and estimated, budget.sections.get(name, 0)) for name in SECTIONS
    )


def forecast(fills: Sequence[int], used: int, end: int) -> int | None:
    """The number of turns left before `end` tokens are in use (the trigger, or the limit where nothing happens at the trigger),
    at the mean growth of the last dozen turns that grew; None where none grew.

    The mean, since a rare long result fills a window as surely as many short ones: the median was twice as far off
    (`benchmarks/forecast.py`).
    """
    growth = _growth(fills)
    return max(0, (end - used) * len(growth) // sum(growth)) if growth else None


def forecast_span(fills: Sequence[int], used: int, end: int) -> tuple[int, int] | None:
    """The fewest and the most turns left, computed as in `forecast` with a growth one standard error above and below the mean;
    None where too few turns grew, or by too different amounts."""
    growth, room = _growth(fills), max(0, end - used)
    if len(growth) < MIN_FORECAST_TURNS:
        return None
    mean, error = fmean(growth), stdev(growth) / sqrt(len(growth))
    if mean <= error:
        return None
    fewest, most = int(room / (mean + error)), int(room / (mean - error))
    return (fewest, most) if most <= MAX_FORECAST_SPREAD * max(1, fewest) else None


def _growth(fills: Sequence[int]) -> list[int]:
    """The growth in tokens of the last turns that grew, newest first."""
    grown = (after - before for after, before in pairwise(reversed(fills)) if after > before)
    return list(islice(grown, FORECAST_TURNS))


Due = Literal["no", "prepare", "compact", "overhead"]

OVERHEAD: tuple[SectionName, ...] = ("system", "tools", "memory", "injected")
FIXED: tuple[SectionName, ...] = (*OVERHEAD, "pinned")
"""The sections that no compaction can make smaller: the overhead, and what a person pinned."""


def overhead(context_usage: ContextUsage) -> int:
    """Tokens of every request that are not part of the conversation."""
    return sum(context_usage.tokens(name) for name in OVERHEAD)


def fixed(context_usage: ContextUsage) -> int:
    """Tokens that no compaction can free."""
    return sum(context_usage.tokens(name) for name in FIXED)


def starts_at(context_usage: ContextUsage) -> int:
    """The number of tokens in use from which the next message starts a compaction or a question about one; 0 where neither."""
    automatic = context_usage.automatic
    if fixed(context_usage) >= context_usage.trigger_tokens or automatic.few or automatic.joins:
        return 0
    match automatic.standing:
        case "auto" | "asks":
            return context_usage.trigger_tokens
        case "snoozed":
            return max(context_usage.trigger_tokens, context_usage.limit + 1)
        case _:
            return 0


def fits(context_usage: ContextUsage) -> bool:
    """True where the request fits the limit even if its figure is wrong by the whole band."""
    return context_usage.used * (1 + context_usage.band) <= context_usage.limit


SOFT_SHARE = 0.8
"""The share of a working limit from which a summary is made ahead; about the usual distance of soft mark and trigger."""


def soft_tokens(context_usage: ContextUsage, soft_mark: float) -> float:
    """The number of tokens in use from which a summary is made ahead; `soft_mark` is a share of the limit."""
    soft = context_usage.limit * soft_mark
    return min(soft, context_usage.working_limit * SOFT_SHARE) if context_usage.working_limit else soft


def inside_tokens(context_usage: ContextUsage, mark: float) -> float:
    """The number of tokens in use from which rounds inside a turn are folded; `mark` is a share of the limit."""
    inside = context_usage.limit * mark
    return min(inside, context_usage.working_limit) if context_usage.working_limit else inside


def compaction_due(context_usage: ContextUsage, soft_mark: float = 0.60) -> Due:
    """Whether a compaction should run before the next request.

    `overhead`: what cannot be compacted is above the trigger alone, so a compaction would be in vain. `prepare`: past the soft
    mark (a share of the limit), where a summary is best made ahead.
    """
    used = context_usage.used - context_usage.tokens("draft")
    if used < context_usage.trigger_tokens:
        return "prepare" if used >= soft_tokens(context_usage, soft_mark) else "no"
    return "overhead" if fixed(context_usage) >= context_usage.trigger_tokens else "compact"


OFFLINE_NAME = "offline/assistant"
"""The name of the built-in assistant among models. It has no server, and so no prices and no cache."""

BUDGET = "budget"
"""The source id of the notes that tell a model how full its window is."""

STEPS = (0.8, 0.9, 0.95)
"""Shares of the trigger at each of which the model gets such a note, once."""


def budget_note(context_usage: ContextUsage) -> tuple[str, str]:
    """The highest of `STEPS` that the request has reached, as a text that sorts by fullness, and the note about it; both empty
    where none is reached, or the size of the window is only assumed."""
    reached = [step for step in STEPS if context_usage.used >= step * context_usage.trigger_tokens]
    if context_usage.window_source == "assumed" or not reached:
        return "", ""
    held = f"{short(context_usage.used)} of {short(context_usage.limit)} tokens"
    line = f"Your context window is about {percent(context_usage.pressure)} full ({held})."
    if 0 < (start := starts_at(context_usage)) <= context_usage.limit:  # above the limit where it is snoozed
        inside = f" from {percent(context_usage.automatic.inside)} on, and" if context_usage.automatic.inside else ""
        before = f"from {percent(start / context_usage.limit)} on before the user's next message"
        line += f" Older parts become a summary{inside} {before}; recall finds them."
    return f"{reached[-1]:.2f}", f"{line} Read in parts and keep what you need in your own words. This is no request."
