"""Values that describe the prompt cache: which prefix of the next request a server still holds, until when, what the request
costs with and without it, and why the newest cache break happened. Knows no provider and no journal; `core.cache` computes
them."""

from __future__ import annotations

from typing import Literal

import msgspec

from ctxchat.core.times import iso

Warmth = Literal["warm", "probably_warm", "cold", "unknown"]
"""Whether a server holds a prefix of the next request: `warm`, by its promise; `probably_warm`, it did last time and promises
nothing; `cold`, it does not; `unknown`."""


class HeldPrefix(msgspec.Struct, frozen=True):
    """A prefix of an earlier request that a server keeps. `length` is its number of messages, with the tools as the first, and
    `digest` their hash; `tokens` is the server's count, or an estimate (`estimated`) where the server did not count this prefix
    by itself. `until` is the time (seconds of the epoch) at which it may expire, `life` by how many seconds each use renews it.
    `promised` False: it was there last time, with no promise for how long. `effort` is the level of the request, since a cache
    holds for one level only."""

    length: int
    digest: str
    tokens: int
    until: float
    life: int
    promised: bool = True
    effort: str = ""
    estimated: bool = False


class NextCall(msgspec.Struct, frozen=True):
    """What the next request takes before its reply, whose length nobody knows: its cost in US dollars, and the seconds in which a
    local server reads the prompt. None where unknown."""

    usd: float | None = None
    seconds: float | None = None


class Hold(msgspec.Struct, frozen=True):
    """A prefix of the next request that a server holds. It has `tokens` by the gauge and ends with the message whose id is
    `message` (empty: that is no message of the record); `next` is what the request takes where the prefix is read. `length`,
    `until`, `promised` and `estimated` as in HeldPrefix."""

    tokens: int
    until: float
    promised: bool = True
    message: str = ""
    estimated: bool = False
    next: NextCall = NextCall()
    length: int = 0


class PrefixRewrite(msgspec.Struct, frozen=True):
    """What a change to what was already sent would do, computed before it is made. The first `messages` of the view stay as they
    are, with `kept` tokens by the gauge; `gone` tokens after them are no longer sent, nor is the reasoning of `thoughts` replies
    that stay."""

    messages: int = 0
    kept: int = 0
    gone: int = 0
    thoughts: int = 0


class CacheBreak(msgspec.Struct, frozen=True):
    """A request of which a server did not read what it might have from its cache: the `cause` in words, the id of the `message`
    at which the request differed (empty: no message of the record, or it did not differ), and when (ISO 8601, UTC)."""

    cause: str
    message: str = ""
    at: str = ""


class CacheState(msgspec.Struct, frozen=True, tag="cache"):
    """The state of the prompt cache for the next request. `holds` are the cached prefixes, the longest first, each valid until
    its own time; `otherwise` is the warmth once all have expired. `cold` is what the request takes where nothing is read,
    `broke` the newest cache break."""

    holds: tuple[Hold, ...] = ()
    otherwise: Warmth = "unknown"
    cold: NextCall = NextCall()
    broke: CacheBreak | None = None

    def held_at(self, now: float) -> Hold | None:
        """The longest prefix that is held at `now` (seconds of the epoch), None where none is."""
        return next((hold for hold in self.holds if now < hold.until), None)

    def warmth(self, now: float) -> Warmth:
        """Whether anything is held at `now`."""
        hold = self.held_at(now)
        if hold is None:
            return self.otherwise
        return "warm" if hold.promised else "probably_warm"

    def next_at(self, now: float) -> NextCall:
        """What the next request takes where it is sent at `now`."""
        hold = self.held_at(now)
        return hold.next if hold else self.cold

    def as_json(self, now: float) -> dict[str, object]:
        """The state at `now` as JSON for programs."""
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
