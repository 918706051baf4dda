"""What a server still holds of the next request, as values: the part of it, until when, what the request costs with and without
it, and why the newest break came about. Knows no provider and no journal (`core.cache` makes them)."""

from __future__ import annotations

from typing import Literal

import msgspec

from ctxchat.core.times import iso

Warmth = Literal["warm", "probably_warm", "cold", "unknown"]
"""Whether a server holds the beginning of the next request: as promised, as it did last time, not (any more), nobody knows."""


class HeldPrefix(msgspec.Struct, frozen=True):
    """The beginning of an earlier request, which a server keeps. `length` counts its messages, tools being the first, `digest` is
    theirs; `tokens` as the server counted them, or `estimated` where it did not by themselves. `until` is the second (of the
    epoch) from which it need not be there any more, `life` the seconds that another use keeps it. `promised` False: it was there
    last time, and nobody says for how long. `effort` is the level it was sent with: a cache holds for one."""

    length: int
    digest: str
    tokens: int
    until: float
    life: int
    promised: bool = True
    effort: str = ""
    estimated: bool = False


class NextCall(msgspec.Struct, frozen=True):
    """What the next request takes: US dollars, with a reply as long as the last one, and the seconds in which a server of one's
    own reads the prompt. None where not known."""

    usd: float | None = None
    seconds: float | None = None


class Hold(msgspec.Struct, frozen=True):
    """A beginning of the next request that a server holds: `tokens` of the gauge, up to and with the `message` of that id (empty:
    it is none of the record); `next` is what the request takes where it is read. `until` and `promised` as in HeldPrefix;
    `estimated`: the server has not counted it by itself. `length` counts its messages, tools being the first."""

    tokens: int
    until: float
    promised: bool = True
    message: str = ""
    estimated: bool = False
    next: NextCall = NextCall()
    length: int = 0


class PrefixRewrite(msgspec.Struct, frozen=True):
    """A change to what was sent, before it is made. It begins behind so many `messages` of the view, which take `kept` tokens of
    the gauge; `gone` tokens behind are not sent any more, nor is the reasoning of `thoughts` replies that stay."""

    messages: int = 0
    kept: int = 0
    gone: int = 0
    thoughts: int = 0


class CacheBreak(msgspec.Struct, frozen=True):
    """The newest request of which a server did not read what it might have: `cause` in words, the `message` where the request
    differed (empty: none of the record, or it did not differ), and when (ISO 8601, UTC)."""

    cause: str
    message: str = ""
    at: str = ""


class CacheState(msgspec.Struct, frozen=True, tag="cache"):
    """What a server holds of the next request. `holds` are its beginnings, the longest first, each for as long as it says; when
    none is left, it is `otherwise`. `cold` is what the request takes where nothing is read, `broke` the newest break."""

    holds: tuple[Hold, ...] = ()
    otherwise: Warmth = "unknown"
    cold: NextCall = NextCall()
    broke: CacheBreak | None = None

    def held_at(self, now: float) -> Hold | None:
        """What is held at that second of the epoch."""
        return next((hold for hold in self.holds if now < hold.until), None)

    def warmth(self, now: float) -> Warmth:
        """Whether anything is held at that second."""
        hold = self.held_at(now)
        if hold is None:
            return self.otherwise
        return "warm" if hold.promised else "probably_warm"

    def next_at(self, now: float) -> NextCall:
        """What the next request takes when it is sent at that second."""
        hold = self.held_at(now)
        return hold.next if hold else self.cold

    def as_json(self, now: float) -> dict[str, object]:
        """As programs read it (SPEC 9), at that second."""
        hold, warmth = self.held_at(now), self.warmth(now)
        tokens = hold.tokens if hold else 0 if warmth == "cold" else None
        warm = hold.next if hold else NextCall()
        return {
            "state": warmth,
            "tokens": tokens,
            "estimated": bool(hold and (hold.estimated or not hold.promised)),
            "message": hold.message if hold else "",
            "expires_at": iso(hold.until) if hold and hold.promised else None,
            "next_usd": {"warm": _rounded(warm.usd), "cold": _rounded(self.cold.usd)},
            "next_seconds": {"warm": _rounded(warm.seconds), "cold": _rounded(self.cold.seconds)},
            "broke": {"cause": self.broke.cause, "message": self.broke.message, "at": self.broke.at}
            if self.broke
            else None,
        }


NOTHING_KNOWN = CacheState()


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
