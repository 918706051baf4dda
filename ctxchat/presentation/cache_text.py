"""Writes the state of the server's prompt cache as text: how long it lasts, what the next message costs, why it was lost.

A server holds the beginning of the last request (a `Hold`) for some minutes; the next request is cheaper by what it reads from
there. A break is a request of which the server could read less than it held. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.cache_state import CacheBreak, CacheState, Hold, NextCall, PrefixRewrite
from ctxchat.core.context_usage import ContextUsage
from ctxchat.presentation.text import clock, one_line, short
from ctxchat.presentation.usage_text import about, count, money, working_limit_words

MAX_CAUSE_CHARS = 120
"""Characters of a cause that are shown."""


def state_words(cache: CacheState, now: float) -> str:
    """Whether the cache still holds the conversation: `warm 41 min`, `probably warm`, `cold`; empty if unknown. `now` is in
    seconds since 1970, here and below."""
    hold = cache.held_at(now)
    match cache.warmth(now):
        case "warm" if hold:
            return f"warm {life_words(hold.until - now)}"
        case "probably_warm":
            return "probably warm"
        case "cold":
            return "cold"
        case _:
            return ""


def life_words(seconds: float) -> str:
    """The time for which the cache is still promised, rounded down: `41 min`, `<1 min`, `11 h`."""
    minutes = int(seconds // 60)
    return "<1 min" if minutes < 1 else f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def call_words(call: NextCall) -> str:
    """The cost of a call: `$0.03`, or `4 s` where it has no price; empty where neither is known."""
    if call.usd is not None:
        return money(call.usd)
    return f"{call.seconds:.0f} s" if call.seconds is not None else ""


def next_words(cache: CacheState, now: float) -> str:
    """The cost of the next message, without its reply: `next ≈ $0.03 + reply, cold ≈ $0.41`; empty where it is not known."""
    hold, cold = cache.held_at(now), call_words(cache.cold)
    reply = " + reply" if cold.removeprefix("<").startswith("$") else ""
    if hold and (warm := call_words(hold.next)):
        return f"next {about(warm)}{reply}, cold {about(cold)}"
    return f"next {about(cold)}{reply}" if cold and cold != "$0" else ""


def broke_words(cache: CacheState) -> str:
    """When and why the cache broke last: `broke 14:02: pin of m12`; empty if it never did."""
    return f"broke {_break_words(cache.broke)}" if cache.broke else ""


def _break_words(broke: CacheBreak) -> str:
    cause = one_line(broke.cause, MAX_CAUSE_CHARS) or "for no reason known here"
    return f"{clock(broke.at)}: {cause}"


def breaks_line(breaks: Sequence[CacheBreak]) -> str:
    """All breaks of a session in a line, the newest first: `The cache broke twice, 14:02: pin of m12; 13:40: its 5 minutes were
    over`; empty where there was none."""
    if not breaks:
        return ""
    times = {1: "once", 2: "twice"}.get(len(breaks), f"{len(breaks)} times")
    return f"The cache broke {times}, {'; '.join(_break_words(each) for each in reversed(breaks))}"


def cache_lines(cache: CacheState, now: float) -> tuple[str, ...]:
    """One line with the cache's state and the cost of the next message, one with its last break; each only if known."""
    first = " · ".join(filter(None, (state_words(cache, now), next_words(cache, now))))
    return tuple(filter(None, (first, broke_words(cache))))


def held_words(cache: CacheState, now: float) -> str:
    """The text for the line up to which the server holds the conversation: `held up to here, warm 41 min`; empty if it holds
    nothing."""
    return f"held up to here, {state_words(cache, now)}" if cache.held_at(now) else ""


def cache_sentences(context_usage: ContextUsage, now: float) -> str:
    """All that is known of the cache in sentences, for `/cache`."""
    cache, hold = context_usage.cache, context_usage.cache.held_at(now)
    sign = "about " if hold and (hold.estimated or not hold.promised) else ""
    match cache.warmth(now):
        case "warm" | "probably_warm" if hold:
            place = f", up to {hold.message}" if hold.message else ""
            sure = f"for {life_words(hold.until - now)} more" if hold.promised else "probably; nobody promises it"
            said = [f"The server holds {sign}{short(hold.tokens)} of the next request{place} ({sure})."]
        case "cold":
            said = ["The server holds nothing of the next request any more."]
        case _:
            said = ["Whether the server holds any of the next request is not known."]
    warm, cold = call_words(hold.next) if hold else "", call_words(cache.cold)
    besides = "" if cache.cold.usd is None else "; its reply comes on top"
    if warm:
        said.append(f"The next message takes about {warm}, and {cold} once it is cold{besides}.")
    elif cold:
        said.append(f"The next message takes about {cold}{besides}.")
    if context_usage.price_step:
        said.append(step_words(context_usage))
    if why := working_limit_words(context_usage):
        said.append(f"Compaction is due at {short(context_usage.trigger_tokens)}: {why}.")
    if words := broke_words(cache):
        said.append(f"It {words}.")
    return " ".join(said)


WORTH_USD, WORTH_SECONDS = 0.02, 3.0
"""The least cost of a message with a cold cache, in US dollars or in seconds, that is told."""


def cold_words(context_usage: ContextUsage, ghost: int, key: str, now: float) -> str:
    """The cost of the next message with a cold cache: as the conversation is, and after the prepared compaction, with the `key`
    that starts it: `cold: sent as it is ≈ $0.41 · shift+f8 compacts first ≈ $0.11`. `ghost` are the tokens that the prepared
    compaction would leave, 0 if none is prepared. Empty if the cache is not cold, or the cost is small."""
    cold = context_usage.cache.cold
    if (
        context_usage.cache.warmth(now) != "cold"
        or max((cold.usd or 0) / WORTH_USD, (cold.seconds or 0) / WORTH_SECONDS) < 1
    ):
        return ""
    words = f"cold: sent as it is ≈ {call_words(cold)}"
    left = ghost + context_usage.tokens("draft")
    if not ghost or not key or left >= context_usage.used:
        return words
    usd = None if cold.usd is None else max(0.0, cold.usd - (context_usage.used - left) * context_usage.price.written)
    seconds = None if cold.seconds is None else cold.seconds * left / context_usage.used
    return f"{words} · {key} compacts first {about(call_words(NextCall(usd, seconds)))}"


def anew_words(context_usage: ContextUsage, change: PrefixRewrite, now: float, *, at_most: bool = False) -> str:
    """Sentences on what a change to messages already sent would cost, told before it is made: `The server then reads up to 48.2k
    tokens anew: the next message costs $0.61 instead of $0.03.`, and how many replies lose their reasoning. Without a part that
    is held no cost is told. `at_most`: the change may begin further down, so the cost is a bound."""
    lost, price = thoughts_words(change.thoughts), context_usage.price
    alive = [hold for hold in context_usage.cache.holds if now < hold.until]
    if not alive or alive[0].length <= change.messages + 1:
        return lost
    read, held, cold = _read_of(alive, change), alive[0].tokens, context_usage.cache.cold
    anew, up_to = max(0, held - change.gone - read), "up to " if at_most else ""
    words = f"The server then reads {up_to}{short(anew)} tokens anew"
    if price.written > price.cached:
        behind = max(0, context_usage.used - held) * price.written
        before, after = held * price.cached + behind, read * price.cached + anew * price.written + behind
        words += f": the next message costs {up_to}{money(after)} instead of {money(before)}"
    elif cold.seconds and context_usage.used:
        words += f", which takes {up_to}{cold.seconds * anew / context_usage.used:.0f} s"
    return f"{words}. {lost}".rstrip()


def thoughts_words(replies: int) -> str:
    """A sentence that the reasoning of so many replies is lost; empty for none."""
    return f"The reasoning of {count(replies, 'reply', 'replies')} is not sent back then." if replies else ""


def _read_of(alive: Sequence[Hold], change: PrefixRewrite) -> int:
    """The tokens that a server reads from its cache after a change. `alive` are the beginnings it holds, the longest first. A
    server that promises to hold them reads only up to the end of an earlier request; others read up to the change."""
    if not alive or not alive[0].promised:
        return change.kept if alive else 0
    return max((hold.tokens for hold in alive if hold.length <= change.messages + 1), default=0)


def compacted_words(before: ContextUsage, after: int, change: PrefixRewrite, now: float) -> str:
    """The cost of the next message after a compaction, which leaves `after` tokens, and without it: `The next message costs $0.11
    instead of $0.03.`, and the reasoning that is lost; empty if unknown."""
    cache, price = before.cache, before.price
    alive = [hold for hold in cache.holds if now < hold.until]
    used, held = before.used - before.tokens("draft"), alive[0].tokens if alive else 0
    read, words = min(_read_of(alive, change), after), ""
    if cache.warmth(now) == "unknown" or not used:
        pass
    elif price.written > price.cached:
        step = before.price_step
        cheaper = step.times if step and after <= step.above < used else 1.0
        anew = (read * price.cached + (after - read) * price.written) / cheaper
        as_it_is = held * price.cached + max(0, used - held) * price.written
        words = f"The next message costs {money(anew)} instead of {money(as_it_is)}."
    elif cache.cold.seconds:
        a_token = cache.cold.seconds / before.used
        anew, as_it_is = a_token * (after - read), a_token * max(0, used - held)
        words = f"The next message is read in {anew:.0f} s instead of {as_it_is:.0f} s."
    return f"{words} {thoughts_words(change.thoughts)}".strip()


def first_words(context_usage: ContextUsage, call: NextCall) -> str:
    """A sentence on the cost of the first message (`call`) to a model that has read nothing of the conversation; empty if it is
    small."""
    if max((call.usd or 0) / WORTH_USD, (call.seconds or 0) / WORTH_SECONDS) < 1:
        return ""
    return f"It reads all {short(context_usage.used)} tokens anew: the next message costs ≈ {call_words(call)}."


def step_words(context_usage: ContextUsage) -> str:
    """The request size from which the model costs more: `Above 272.0k all of a request costs 2 times as much.`; empty if its
    price does not rise."""
    step = context_usage.price_step
    return f"Above {short(step.above)} all of a request costs {step.times:g} times as much." if step else ""
