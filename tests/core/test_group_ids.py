"""Ids kept as places are what a tuple of the same ids is."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.group_ids import GroupIds, runs
from ctxchat.core.ledger import Change, Edit, Ledger
from tests.core.test_ledger import summary, turns

NAMES = [f"g{place}" for place in range(30)]
PLACES = st.sets(st.integers(0, 29), min_size=1).map(sorted)


@given(PLACES, PLACES, st.integers(-35, 35), st.integers(-35, 35))
def test_they_are_what_a_tuple_is(places: list[int], others: list[int], start: int, stop: int) -> None:
    ids, plain = GroupIds(NAMES, runs(places)), tuple(NAMES[place] for place in places)
    assert (
        ids == plain == tuple(ids) and hash(ids) == hash(plain) and len(ids) == len(plain) and repr(ids) == repr(plain)
    )
    assert ids[start:stop] == plain[start:stop] and [ids[n] for n in range(-len(ids), len(ids))] == [*plain, *plain]
    other, like = GroupIds(NAMES, runs(others)), tuple(NAMES[place] for place in others)
    assert (ids == other) == (plain == like) == (GroupIds([*NAMES], runs(places)) == other)
    assert ids.begins_with(other) == (plain[: len(like)] == like)


def test_what_passes_cover_costs_no_name_for_each_group_and_each_pass() -> None:
    ledger = turns(400)
    ids = tuple(group.id for group in ledger.groups)
    for number, many in enumerate((100, 200, 390)):
        edit = Edit("digest", ids[:many], summary())
        ledger = ledger.append(turns(402 + number).groups[-1]).apply(Change(f"c{number}", "compaction", edits=(edit,)))
    covers = [change.edits[0].covers for change in ledger.changes]
    assert msgspec.json.decode(msgspec.json.encode(ledger, enc_hook=list), type=Ledger) == ledger
    assert covers == [ids[:100], ids[:200], ids[:390]] and all(isinstance(kept, GroupIds) for kept in covers)
    assert [entry.covers for entry in ledger.live()] == [
        ids[:390],
        *((name,) for name in ids[390:]),
        ("g402",),
        ("g403",),
        ("g404",),
    ]
