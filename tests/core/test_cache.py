"""The cache gauge as a fold: what a server is left holding, for how long, and what the next request takes with and without it."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.cache import PROBABLE_LIFE_S, Beginning, CacheRules, break_of, cache_state, held_after
from ctxchat.core.cache_state import CacheBreak, CacheState, HeldPrefix
from ctxchat.core.events import Stamped, Usage
from ctxchat.core.journal import Measured, ModelChosen, fold
from ctxchat.core.prefix_break import PrefixBreak
from ctxchat.core.prefix_guard import MarkedPrefix, SentPrefix
from ctxchat.core.prices import ModelPrices, PriceStep, Rates, next_cost
from ctxchat.core.times import epoch, iso

START = epoch("2026-11-25T14:00:00.000Z")
PRICES = ModelPrices(Rates(4, 20, 0.2, 5, 8), (PriceStep(200_000, Rates(8, 40, 0.4, 10, 16)),), 300, 3600)


def sent(length: int, digest: str, minutes: float = 0.0, life: int = 300, head: str = "") -> SentPrefix:
    at = iso(START + 60 * minutes)
    return SentPrefix("m", length, digest, started=at, life=life, marked=(MarkedPrefix(2, head, 0.9),) if head else ())


def state(held: tuple[HeldPrefix, ...], used: int = 10_000, **more: object) -> CacheState:
    given = {"known": True, "rules": CacheRules(300), "prices": PRICES, "prefill": 0.0}
    longest_first = sorted(held, key=lambda each: -each.length)
    found = [Beginning(each, f"m{each.length}") for each in longest_first]
    return cache_state(found, used=used, **given | {"broke": None} | more)  # type: ignore[arg-type]


@given(st.floats(0, 4e9))
def test_times_are_stored_as_the_calendar_has_them(second: float) -> None:
    stored = iso(second)
    assert stored == datetime.fromtimestamp(round(second * 1000) / 1000, UTC).isoformat(
        timespec="milliseconds"
    ).replace("+00:00", "Z")
    assert abs(epoch(stored) - second) <= 0.001
    assert epoch("yesterday") == 0.0


@given(st.integers(0, 20), st.sampled_from([300, 3600]), st.integers(1, 10**6))
def test_a_promise_runs_from_the_start_of_the_last_request_and_each_hit_renews_it(
    minutes: int, life: int, tokens: int
) -> None:
    first = held_after((), sent(5, "a", life=life), Usage(tokens, 1, written=tokens))
    assert state(first).warmth(START + life - 0.01) == "warm"
    assert state(first).warmth(START + life) == "cold"
    again = held_after(first, sent(7, "b", minutes, life=life), Usage(tokens + 9, 1, cached=tokens, written=9))
    read_in_time = 60 * minutes < life
    alive = [h for h in again if h.until > START + 60 * minutes]
    assert [h.digest for h in alive] == (["a", "b"] if read_in_time else ["b"])
    assert all(h.until == START + 60 * minutes + life for h in alive)
    assert again[-1].tokens == tokens + 9


def test_a_hit_renews_what_was_read_and_nothing_longer() -> None:
    held = held_after((), sent(5, "a", life=3600), Usage(1_000, 1, written=1_000))
    held = held_after(held, sent(9, "b", 10, life=300), Usage(3_000, 1, cached=1_000, written=2_000))
    assert {h.digest: round(h.until - START) // 60 for h in held} == {"a": 70, "b": 15}
    now = state(tuple(held), used=3_500)
    at = [now.held_at(START + 60 * minute) for minute in (14, 16, 71)]
    assert [hold.tokens if hold else 0 for hold in at] == [3_000, 1_000, 0]


def test_a_head_is_held_by_itself_and_counted_when_it_is_read() -> None:
    held = held_after((), sent(5, "a", head="h"), Usage(1_000, 1, written=1_000))
    head = next(h for h in held if h.digest == "h")
    assert head.estimated
    hold = state((head,)).held_at(START)
    assert hold and hold.tokens == 900 and hold.estimated
    held = held_after(held, sent(3, "s", 1, head="h"), Usage(2_000, 1, cached=870, written=1_130))
    assert next(h for h in held if h.digest == "h").tokens == 870


def test_where_nothing_is_promised_what_was_read_last_time_is_probably_there() -> None:
    assert held_after((), sent(5, "a", life=0), Usage(1_000, 1)) == ()
    held = held_after((), sent(5, "a", life=0), Usage(1_000, 1, cached=900))
    told = state(held, rules=CacheRules())
    assert [told.warmth(START + at) for at in (1, PROBABLE_LIFE_S)] == ["probably_warm", "unknown"]
    assert told.as_json(START)["expires_at"] is None
    assert held_after(held, sent(7, "b", 1, life=0), Usage(1_200, 1)) == (), "it did not read it"


@given(st.integers(1, 400_000), st.integers(0, 400_000), st.booleans())
def test_both_prices_are_those_of_the_calls(held: int, new: int, long: bool) -> None:
    part = HeldPrefix(5, "a", held, START + 300, 300)
    told = state((part,), used=held + new, rules=CacheRules(300, long))
    hold = told.held_at(START)
    assert told.cold.usd == next_cost(PRICES, 0, held + new, long_life=long)
    assert hold and hold.next.usd == next_cost(PRICES, held, new, long_life=long)
    assert told.cold.usd >= hold.next.usd  # type: ignore[operator]


def test_a_server_of_ones_own_takes_seconds() -> None:
    told = state((HeldPrefix(5, "a", 8_000, START + 9, 0, False),), prices=None, prefill=500.0, rules=CacheRules())
    hold = told.held_at(START)
    assert hold and (hold.next, told.cold.seconds) == (msgspec.structs.replace(hold.next, usd=None, seconds=4.0), 20.0)


def test_why_a_server_did_not_read_what_it_had() -> None:
    before = sent(5, "a")
    held = held_after((), before, Usage(1_000, 1, written=1_000))

    def why(minutes: float, cached: int, broke: PrefixBreak | None = None, miss: str = "") -> str:
        found = break_of(held, before, sent(7, "b", minutes), Usage(1_200, 1, cached=cached), broke, miss, "now")
        return found.cause if found else ""

    assert why(4, 1_000) == ""
    assert why(6, 0) == "its 5 minutes were over"
    assert why(1, 0, miss="system_changed") == "its server: system changed"
    assert why(1, 0) == "its server did not have it any more"
    assert why(1, 0, PrefixBreak(3, "pin of m4")) == "pin of m4"


def test_another_server_by_the_same_name_holds_nothing() -> None:
    counted = Measured("m", Usage(9_000, 1, written=9_000), 9_000, sent=sent(5, "a"), prefill=400.0)
    there, here = ModelChosen("m", "http://there"), ModelChosen("m", "http://here")
    state = fold([there, counted, ModelChosen("n", ""), there])
    assert state.held["m"] and state.prefill["m"] == 400.0
    moved = fold([here], state)
    assert "m" not in moved.held and "m" not in moved.prefill


def test_the_contract_of_its_event() -> None:
    told = state((HeldPrefix(5, "a", 8_000, START + 300, 300),), broke=CacheBreak("pin of m4", "m4", iso(START)))
    line = msgspec.json.decode(Stamped("s", 1, iso(START), told).json())
    assert line["type"] == "cache" and line["state"] == "warm" and line["tokens"] == 8_000
    assert line["expires_at"] == iso(START + 300) and line["message"] == "m5"
    assert line["next_usd"]["warm"] < line["next_usd"]["cold"]
    assert line["broke"] == {"cause": "pin of m4", "message": "m4", "at": iso(START)}
    nothing = msgspec.json.decode(Stamped("s", 1, iso(START), CacheState()).json())
    assert [nothing[k] for k in ("state", "tokens", "expires_at", "broke")] == ["unknown", None, None, None]
