"""The cache gauge: computes which prefixes of past requests a server keeps in its prompt cache, and what that saves the next one.

A prefix is counted in messages, with the tools as the first. Providers keep a request up to its end, and up to each mark in it,
for some time from when the request *started*; each hit renews what was read. Where a provider promises nothing, what was read
last time is probably still there. Pure: knows only what was sent and what the server counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ctxchat.core.cache_state import CacheBreak, CacheState, HeldPrefix, Hold, NextCall, PrefixRewrite, Warmth
from ctxchat.core.events import Usage
from ctxchat.core.messages import Message
from ctxchat.core.prefix_break import PrefixBreak
from ctxchat.core.prefix_guard import MarkedPrefix, SentPrefix
from ctxchat.core.prices import ModelPrices, next_cost
from ctxchat.core.times import epoch
from ctxchat.core.view import Item, View

MAX_HELD, MAX_COLD = 1_024, 24
"""How many prefixes are remembered for a model, and how many of them may be cold (expired); many, so that the longest one with
which the next request begins is among them."""

PROBABLE_LIFE_S = 600
"""Seconds for which a prefix that was read is believed to stay cached where nothing is promised: the shortest time that such
providers mention."""

READ_SHARE = 0.9
"""A prefix counts as lost when less than this share of it is read; not all of it, since servers without marks read in steps."""


class CacheRules(msgspec.Struct, frozen=True):
    """How a server caches prompts. `life` is the time in seconds that it promises to keep them, 0 for no promise; `long`: that is
    the longer of its two times, which costs more to write. `marks`: it also keeps the prefixes marked in a request
    (`marked_lengths`)."""

    life: int = 0
    long: bool = False
    marks: bool = False


def marked_lengths(view: View) -> tuple[int, ...]:
    """The lengths of the prefixes of a view that are marked besides its whole: its head, and the ends of the last two
    requests."""
    items = view.items
    head = next((n for n, item in enumerate(items) if item.message.role != "system"), len(items))
    replies = [n for n, item in enumerate(items) if item.message.role == "assistant"]
    ends = [n for n in replies if n and items[n - 1].message.role in {"user", "tool"}]
    return tuple(1 + n for n in sorted({head, *ends[-2:]}))


MAX_LOOKBACK_BLOCKS = 20
"""How far back from a mark a cached prefix is looked for: blocks (Anthropic), or positions at which a request may have ended
(OpenAI)."""


class Beginning(msgspec.Struct, frozen=True):
    """A prefix of a view that a server holds, with the id of its last message; empty where that is no message of the record."""

    held: HeldPrefix
    message: str


def found_beginnings(view: View, held: Sequence[HeldPrefix], rules: CacheRules) -> tuple[Beginning, ...]:
    """Those of the prefixes `held` that a server will find when this view is sent to it, the longest first."""
    marks = (*marked_lengths(view), len(view.items) + 1) if held and rules.marks else (len(view.items) + 1,)
    reach = (
        {mark: _reach(view.items[: mark - 1], marks=rules.marks) if rules.life else 0 for mark in marks} if held else {}
    )
    found: list[Beginning] = []
    for each in sorted(held, key=lambda each: -each.length):
        if each.length >= reach[next(mark for mark in marks if mark >= each.length)]:
            last = view.items[each.length - 2].message if each.length > 1 else None
            found.append(Beginning(each, last.id if last and last.seq else ""))
    return tuple(found)


def _reach(items: Sequence[Item], *, marks: bool) -> int:
    """The length of the shortest prefix that a server looks for from the end of these items."""
    total, after = 0, ""
    for place in range(len(items) - 1, -1, -1):
        message = items[place].message
        total += _blocks(message, after) if marks else message.role == "user" or "tool" == message.role != after
        if total >= MAX_LOOKBACK_BLOCKS:
            return place + 2
        after = message.role
    return 1


def _blocks(message: Message, after: str) -> int:
    """The largest number of blocks that a message is sent as when one of the role `after` follows. Neighbouring results count as
    one block, and so do the calls of a message."""
    reasoning = message.reasoning.received if message.reasoning else None
    if reasoning is not None:
        return len(msgspec.json.decode(reasoning.blocks)) if reasoning.form == "messages" else 1
    if message.role == "tool":
        return after != "tool"
    parts = len(message.content) if not isinstance(message.content, str) else bool(message.content)
    return parts + bool(message.calls)


def held_after(held: Sequence[HeldPrefix], sent: SentPrefix, usage: Usage) -> tuple[HeldPrefix, ...]:
    """The prefixes that a server holds after a request, the newest last. Expired ones stay in the list, since their token counts
    are known."""
    start = epoch(sent.started)
    if not sent.life:
        was_read = start and usage.cached and not usage.estimated
        until = start + PROBABLE_LIFE_S
        return (HeldPrefix(sent.length, sent.digest, usage.prompt, until, 0, False, sent.effort),) if was_read else ()
    if usage.estimated or not usage.cached + usage.written:
        return tuple(held)
    known = {each.digest: each for each in held}
    warm = [each for each in known.values() if each.until > start]
    same = (each for each in reversed(warm) if each.tokens == usage.cached)
    guessed = (each for each in reversed(warm) if each.estimated and usage.cached)
    if read := next(same, None) or next(guessed, None):  # reading renews its lifetime, and its tokens are counted now
        counted = msgspec.structs.replace(read, tokens=usage.cached, until=start + read.life, estimated=False)
        known[read.digest] = counted
    whole = usage.cached + usage.written
    for part in (*sent.marked, MarkedPrefix(sent.length, sent.digest, 1.0)):
        before = known.pop(part.digest, None)
        end = part.digest == sent.digest
        life = max(sent.life, before.life if before and before.until > start else 0)
        until = max(start + life, before.until if before else 0.0)
        tokens = before.tokens if before and not end else round(whole * part.share)
        estimated = not end and (before is None or before.estimated)
        known[part.digest] = HeldPrefix(part.length, part.digest, tokens, until, life, True, sent.effort, estimated)
    cold = len(known) - MAX_COLD
    return tuple(each for n, each in enumerate(known.values()) if n >= cold or each.until > start)[-MAX_HELD:]


def break_of(
    held: Sequence[HeldPrefix],
    before: SentPrefix | None,
    sent: SentPrefix,
    usage: Usage,
    broke: PrefixBreak | None,
    miss: str,
    at: str,
) -> CacheBreak | None:
    """Why a server did not read what it had kept of the request before; None where it did, or never promised to. `broke` is
    where the request itself differs from that one, `miss` the server's own reason, `at` the time of the break (ISO 8601)."""
    if broke:
        return CacheBreak(broke.cause, broke.message, at)
    last = next((each for each in held if before and each.digest == before.digest and each.tokens), None)
    if last is None or usage.estimated or usage.cached >= last.tokens * READ_SHARE:
        return None
    start = epoch(sent.started)
    if last.promised and start >= last.until:
        return CacheBreak(f"its {span(last.life)} were over", "", at)
    return CacheBreak(
        f"its server: {miss.replace('_', ' ')}" if miss else "its server did not have it any more", "", at
    )


def cache_state(
    held: Sequence[Beginning],
    *,
    used: int,
    known: bool,
    rules: CacheRules,
    prices: ModelPrices | None,
    prefill: float,
    broke: CacheBreak | None,
) -> CacheState:
    """The cache state for a next request of `used` tokens, of which a server has the prefixes `held`, the longest first. `known`:
    some earlier request left something in the cache. `prefill` is the speed (tokens a second) at which a local server reads a
    prompt, 0 where unknown."""

    def next_call(warm: int) -> NextCall:
        new = max(0, used - warm)
        usd = next_cost(prices, warm, new, long_life=rules.long) if prices else None
        return NextCall(usd, new / prefill if prefill else None)

    holds: list[Hold] = []
    for each in held:
        one = each.held
        if prices is None or not one.promised or one.tokens >= prices.least_cached:
            warm = next_call(one.tokens)
            holds.append(Hold(one.tokens, one.until, one.promised, each.message, one.estimated, warm, one.length))
    otherwise: Warmth = "cold" if known and rules.life else "unknown"
    return CacheState(tuple(holds), otherwise, next_call(0), broke)


def rewrite(view: View, place: int, used: int, groups: Collection[str] = (), *, binds: bool = False) -> PrefixRewrite:
    """What a change of these groups does to the prefix of a view that the gauge counts as `used` tokens. `place` is the index of
    the first item that changes. `binds`: the provider accepts reasoning only after an unchanged prefix."""
    scale = used / view.raw if view.raw else 0.0
    kept = sum(view.tool_tokens) + sum(item.tokens for item in view.items[:place])
    gone = sum(item.tokens for item in view.items[place:] if item.group in groups)
    behind = [item for item in view.items[place:] if item.group not in groups]
    thoughts = sum(item.message.reasoning is not None for item in behind) if binds else 0
    return PrefixRewrite(place, round(kept * scale), round(gone * scale), thoughts)


def span(seconds: float) -> str:
    """A cache lifetime in words: `5 minutes`, `1 hour`."""
    minutes = round(seconds / 60)
    if minutes >= 60 and minutes % 60 == 0:
        return f"{minutes // 60} hour{'s' * (minutes > 60)}"
    return f"{minutes} minute{'s' * (minutes != 1)}"
