"""Learns how a server's token counts compare with ours, reply by reply and by kind of text, and estimates the error.

Tokenizers differ by script, and in how they cut digits and punctuation; providers differ in what tools and images cost. So a
count is kept by kind, and a rate is learned for each: a Kalman filter with a diagonal covariance, a few multiplications a reply.
Knows no tokenizer and no provider.

With the count of a text by kind x, the rates r and their doubts d (standard deviations):

    estimate  e = Σ xᵢ rᵢ
    variance  v = Σ xᵢ² dᵢ² + noise,   noise = (UNEVEN · e)² + LOOSE_TOKENS²
    band      2 √v
    a server counted t:   gᵢ = xᵢ dᵢ² / v,   rᵢ ← rᵢ + gᵢ (t − e),   dᵢ ← dᵢ √(1 − gᵢ xᵢ)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from operator import add, attrgetter, mul, sub

import msgspec


class Mix(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Our own count of something, by kind. `words`, `wide` (scripts beyond Latin and Greek's neighbours), `tools` and `images`
    are raw tokens. The others are characters among them: `digits`, `marks` (punctuation), `accents`, `capitals` and `indents`
    (lines that begin with a space or a tab) among the words, `han` (Chinese characters) and `kana` among the wide."""

    words: int = 0
    wide: int = 0
    tools: int = 0
    images: int = 0
    digits: int = 0
    marks: int = 0
    han: int = 0
    kana: int = 0
    accents: int = 0
    capitals: int = 0
    indents: int = 0

    @property
    def raw(self) -> int:
        """Raw tokens of all kinds."""
        return self.words + self.wide + self.tools + self.images

    def __add__(self, other: Mix) -> Mix:
        return Mix(*map(add, _numbers(self), _numbers(other)))

    def __sub__(self, other: Mix) -> Mix:
        return Mix(*map(sub, _numbers(self), _numbers(other)))


def total(mixes: Iterable[Mix]) -> Mix:
    """The sum of many."""
    each = list(mixes)
    return Mix(*(sum(map(kind, each)) for kind in _KINDS))


_numbers: Callable[[Mix], tuple[int, ...]] = attrgetter(*Mix.__struct_fields__)
_KINDS: Sequence[Callable[[Mix], int]] = [attrgetter(kind) for kind in Mix.__struct_fields__]

RATIO_KINDS = 4
"""The first kinds of `Mix`, this many, are tokens: their rates are ratios about 1. The rates of the others are additional tokens
per character."""

PRIOR = (*[1.0] * RATIO_KINDS, *[0.0] * 8)
"""The rates assumed for an unknown server: its tokens per token of ours, its additional tokens per character, and last the fixed
tokens of a request."""

DOUBT = (0.12, 0.3, 0.4, 0.5, 0.35, 0.2, 0.25, 0.4, 0.5, 0.2, 0.5, 150.0)
"""Standard deviations of that. In eleven vocabularies (`benchmarks/vocabularies.py`) words cost 0.95 to 1.1 of cl100k's tokens,
other scripts 0.6 to 1.2 (2.5 in the oldest), a digit up to 0.5 and a mark up to 0.3 of a token more."""

LEAST_DOUBT = (0.008, 0.02, 0.02, 0.02, 0.02, 0.01, 0.02, 0.02, 0.05, 0.02, 0.05, 5.0)
"""The smallest standard deviations, so that every rate can still be corrected."""

TEXT_SPREAD_SHARE = 0.04
"""Texts of one kind still differ by this share (standard deviation)."""

LOOSE_TOKENS = 10.0
"""Tokens by which any estimate of a request may be wrong besides: chat templates add a few that are not documented."""

MAX_ERROR_DEVIATIONS = 4.0
"""An error of more standard deviations than this is no chance: there is another tokenizer behind the same name."""

LEAST_RATE, MAX_RATE = 0.1, 5.0
"""A server's tokens for one of ours; one that takes every byte for a token comes to four or five."""

MAX_EXTRA_TOKENS_A_CHAR = 2.0
"""Tokens a character may cost or save at most."""

LEAST_BESIDES, MOST_BESIDES = -300.0, 8_000.0
"""Tokens a request may cost beside what is in it: templates, what a gateway adds."""

MAX_TOKENS = 20_000_000
"""Tokens that nothing has: twice the largest window. A larger count is a mistake, and teaches nothing."""


def most_tokens(raw: int) -> int:
    """The most tokens that a server can plausibly count for a request that we count as `raw`."""
    return min(MAX_TOKENS, int(MAX_RATE * max(0, raw) + MOST_BESIDES))


class Calibration(msgspec.Struct, frozen=True):
    """How a server's counts follow from ours. `rates` and `doubts` (their standard deviations) are by kind as in `Mix`, with the
    fixed tokens of a request last; `samples` is how many replies they were learned from."""

    rates: tuple[float, ...] = PRIOR
    doubts: tuple[float, ...] = DOUBT
    samples: int = 0

    def __post_init__(self) -> None:
        fits = len(self.rates) == len(self.doubts) == len(PRIOR)  # or stored when other kinds were told apart
        if not fits or _clamped(self.rates) != tuple(self.rates) or not all(0 <= d < math.inf for d in self.doubts):
            for name, value in (("rates", PRIOR), ("doubts", DOUBT), ("samples", 0)):
                msgspec.structs.force_setattr(self, name, value)

    @property
    def ratio(self) -> float:
        """The server's tokens for one of ours, of ordinary words."""
        return self.rates[0]

    def estimate_request(self, mix: Mix) -> int:
        """The best estimate for a whole request."""
        return max(0, round(self._sum((*_numbers(mix), 1))))

    def part(self, mix: Mix) -> int:
        """The best estimate for a part of a request; negative for what is taken away."""
        return round(self._sum((*_numbers(mix), 0)))

    def error(self, mix: Mix, *, whole: bool = False) -> float:
        """Tokens by which the estimate of a part, or of a `whole` request, may be wrong: two standard deviations."""
        features = (*_numbers(mix), int(whole))
        return 2 * math.sqrt(self._variance(features, self._sum(features)))

    def learn(self, real: float, mix: Mix, *, whole: bool = True) -> Calibration:
        """The calibration after a server counted `real` tokens for what we counted as `mix`; impossible figures change nothing.

        An error that cannot be chance (another tokenizer behind the same name) is believed, and the doubts grow.
        """
        features = (*_numbers(mix), int(whole))
        if not (50 <= abs(mix.raw) <= MAX_TOKENS and abs(real) <= MAX_TOKENS) or (whole and real <= 0):
            return self
        missed, noise = real - self._sum(features), _noise(real)
        doubts = _shaken(self.doubts, features, missed, noise)
        variance = _spread(doubts, features) + noise
        gains = [f * d * d / variance for f, d in zip(features, doubts, strict=True)]
        rates = [rate + gain * missed for rate, gain in zip(self.rates, gains, strict=True)]
        kept = [d * math.sqrt(max(0.0, 1 - g * f)) for d, g, f in zip(doubts, gains, features, strict=True)]
        return Calibration(_clamped(rates), tuple(starmap(max, zip(kept, LEAST_DOUBT, strict=True))), self.samples + 1)

    def _sum(self, features: Sequence[float]) -> float:
        return sum(map(mul, features, self.rates))

    def _variance(self, features: Sequence[float], tokens: float) -> float:
        return _spread(self.doubts, features) + _noise(tokens)


def level(ratio: float, band: float = 0.25, samples: int = 1) -> Calibration:
    """A calibration with one ratio for every kind of text, which may be wrong by `band`."""
    rest = [0.0] * (len(PRIOR) - RATIO_KINDS)
    return Calibration((*[ratio] * RATIO_KINDS, *rest), (*[band / 2] * RATIO_KINDS, *rest), samples)


def _spread(doubts: Sequence[float], features: Sequence[float]) -> float:
    return sum(f * f * d * d for f, d in zip(features, doubts, strict=True))


def _shaken(doubts: Sequence[float], features: Sequence[float], missed: float, noise: float) -> Sequence[float]:
    """The doubts, raised where needed so that an error of this size is at most `MAX_ERROR_DEVIATIONS` standard deviations."""
    spread, needed = _spread(doubts, features), (missed / MAX_ERROR_DEVIATIONS) ** 2 - noise
    return [doubt * math.sqrt(needed / spread) for doubt in doubts] if 0 < spread < needed else doubts


def _noise(tokens: float) -> float:
    return (TEXT_SPREAD_SHARE * tokens) ** 2 + LOOSE_TOKENS**2


def _clamped(rates: Sequence[float]) -> tuple[float, ...]:
    """The rates within their limits."""
    *extras, besides = rates[RATIO_KINDS:]
    return (
        *(min(MAX_RATE, max(LEAST_RATE, ratio)) for ratio in rates[:RATIO_KINDS]),
        *(min(MAX_EXTRA_TOKENS_A_CHAR, max(-MAX_EXTRA_TOKENS_A_CHAR, extra)) for extra in extras),
        min(MOST_BESIDES, max(LEAST_BESIDES, besides)),
    )


class Anchor(msgspec.Struct, frozen=True):
    """A count from the server that the gauge stands on.

    `tokens` is what it counted (prompt with its cached part once, plus the reply), `mix` our count of the very same
    content, `passes` how many compactions were in force: a view with another number of them ignores the anchor. `model`
    is whose server counted: no other model stands on it.
    """

    tokens: int
    mix: Mix
    passes: int
    model: str = ""
