"""The ledger: changes and their undoing, in any order, never lose or double a group."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.changes import rewind_change
from ctxchat.core.errors import LedgerError
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.head import Head
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile
from tests.core.histories import ledgers
from tests.examples import examples


def summary(text: str = "what happened") -> Group:
    return Group(id="s", kind="summary", messages=(Message(0, "user", text),))


def turns(count: int) -> Ledger:
    return Ledger(groups=group_messages([Message(n, "user", f"question {n}") for n in range(1, count + 1)]))


@st.composite
def changed(draw: st.DrawFn) -> tuple[Ledger, list[Ledger]]:
    """A ledger, and the states it went through under random changes, pins and undos."""
    ledger = draw(ledgers)
    states = [ledger]
    for number in range(draw(st.integers(0, 6))):
        ids = [g.id for g in ledger.groups]
        match draw(st.sampled_from(["digest", "drop", "shrink", "pin", "undo", "rewind"])):
            case "undo" if ledger.changes:
                ledger = ledger.undo(draw(st.sampled_from(ledger.changes)).id)
            case "rewind" if said := [g.id for g in ledger.groups_in_force if g.kind == "user"]:
                change = rewind_change(ledger, draw(st.sampled_from(said)), "")
                ledger = ledger.apply(msgspec.structs.replace(change, id=f"c{number}"))
            case "pin" if ids:
                ledger = ledger.apply(Change(f"c{number}", "pin", pins=(draw(st.sampled_from(ids)),)))
            case "digest" | "drop" | "shrink" as kind:
                free = [i for i in ids if i not in ledger.pinned | ledger.current | ledger.rewound]
                covers = tuple(i for i in free if draw(st.booleans()))
                if covers:
                    edit = Edit(kind, covers, None if kind == "drop" else summary())
                    ledger = ledger.apply(Change(f"c{number}", "compaction", edits=(edit,)))
        states.append(ledger)
    return ledger, states


@examples(125, 500)
@given(changed())
def test_live_entries_cover_every_group_once(made: tuple[Ledger, list[Ledger]]) -> None:
    for ledger in made[1]:
        covered = [name for entry in ledger.live() for name in entry.covers]
        assert Counter(covered) == Counter(g.id for g in ledger.groups)
        places = [ledger.groups.index(ledger.group(e.covers[0])) for e in ledger.live()]
        assert places == sorted(places), "entries stand in the order of the record"
        shown = {e.group.id: e.group for e in ledger.live() if e.pinned and e.group}
        assert shown == {name: ledger.group(name) for name in ledger.pinned}, "pinned groups are shown as they were"
        anew = Ledger(ledger.groups, ledger.changes)
        assert (ledger.live(), ledger.current) == (anew.live(), anew.current), (
            "what a change leaves is as if worked out anew"
        )


@examples(75, 300)
@given(changed(), st.randoms(use_true_random=False))
def test_undoing_everything_in_any_order_gives_back_the_first_view(
    made: tuple[Ledger, list[Ledger]], random: object
) -> None:
    ledger, states = made
    counter, frame = TokenCounter(), Head(system="s")
    order = [c.id for c in ledger.changes]
    random.shuffle(order)  # type: ignore[attr-defined]
    for name in order:
        ledger = ledger.undo(name)
    assert ledger == states[0]
    assert compile(ledger, frame, counter) == compile(states[0], frame, counter)


@examples(75, 300)
@given(changed())
def test_a_ledger_survives_json(made: tuple[Ledger, list[Ledger]]) -> None:
    ledger = made[0]
    assert msgspec.json.decode(msgspec.json.encode(ledger, enc_hook=list), type=Ledger) == ledger


def test_an_earlier_change_undone_leaves_a_later_one_whole() -> None:
    ledger = turns(6)
    first = ledger.apply(Change("c1", "compaction", edits=(Edit("digest", ("g1", "g2"), summary("first")),)))
    both = first.apply(Change("c2", "compaction", edits=(Edit("digest", ("g1", "g2", "g3"), summary("second")),)))
    later = both.undo("c1")
    assert next(e.covers for e in later.live()) == ("g1", "g2", "g3")
    assert both.undo("c2").live() == first.live()


def test_a_folded_group_that_is_pinned_comes_back_in_its_place() -> None:
    ledger = turns(4).apply(Change("c1", "compaction", edits=(Edit("digest", ("g1", "g2", "g3"), summary()),)))
    pinned = ledger.apply(Change("p", "pin", pins=("g2",)))
    assert [e.covers for e in pinned.live()] == [("g1", "g3"), ("g2",), ("g4",)]
    assert pinned.undo("p").live() == ledger.live()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit("drop", ("g9",)), "not in the record"),
        (Edit("drop", ("g2", "g1")), "order of the record"),
        (Edit("drop", ("g1", "g1")), "covered twice"),
        (Edit("drop", ()), "at least one"),
        (Edit("drop", ("g3",)), "is pinned"),
        (Edit("drop", ("g4",)), "current user message"),
        (Edit("digest", ("g2", "g4"), summary()), "current user message"),
    ],
)
def test_changes_that_do_not_fit_are_refused(edit: Edit, words: str) -> None:
    ledger = turns(4).apply(Change("p", "pin", pins=("g3",)))
    with pytest.raises(LedgerError, match=words):
        ledger.apply(Change("c", "drop", edits=(edit,)))


def test_the_current_message_may_be_shortened() -> None:
    ledger = turns(2)
    short = single("user", Message(2, "user", "shorter"), 2)
    after = ledger.apply(Change("c", "shrink", edits=(Edit("shrink", ("g2",), short),)))
    assert after.live()[1].group == short


def test_names_that_are_taken_or_unknown_are_refused() -> None:
    ledger = turns(2).apply(Change("c", "pin", pins=("g1",)))
    with pytest.raises(LedgerError, match="in force already"):
        ledger.apply(Change("c", "pin", pins=("g2",)))
    with pytest.raises(LedgerError, match="not in force"):
        ledger.undo("x")
    with pytest.raises(LedgerError, match="not in the record"):
        ledger.apply(Change("d", "pin", pins=("g7",)))
    with pytest.raises(LedgerError, match="in the record already"):
        ledger.append(ledger.groups[0])


def test_a_restore_undone_hides_its_note_but_keeps_it() -> None:
    note = single("note", Message(3, "user", "[quoted]"), 2, source="restore:m1")
    ledger = turns(2).append(note)
    restored = ledger.apply(Change("r", "restore", adds=(note.id,)))
    assert restored.live()[-1].group == note
    assert restored.undo("r").live()[-1].group is None
    assert restored.undo("r").groups[-1] == note


@given(ledgers, st.integers(0, 20), st.integers(0, 20), st.booleans())
def test_what_is_derived_is_the_same_however_a_ledger_grew(
    whole: Ledger, begun: int, covered: int, branches: bool
) -> None:
    """Group by group, with a change in between, beside another ledger that grew out of the same one."""
    grown = Ledger().append(*whole.groups[:begun])
    grown.live()
    if covers := tuple(g.id for g in grown.groups[:covered] if g.id not in grown.current):
        grown = grown.apply(Change("c", "drop", edits=(Edit("drop", covers),)))
    for group in whole.groups[begun:]:
        if branches:
            other = grown.append(msgspec.structs.replace(group, id=f"other-{group.id}"))
            assert other.holds(f"other-{group.id}") and not grown.holds(f"other-{group.id}")
        grown.live()
        grown = grown.append(group)
    fresh = Ledger(whole.groups, grown.changes)
    assert grown == fresh and grown.live() == fresh.live()
    assert (grown.current, grown.next_seq, grown.pinned) == (fresh.current, fresh.next_seq, fresh.pinned)
    assert all(grown.group(g.id) is g for g in whole.groups)


def test_what_was_rewound_is_out_of_view_with_all_that_was_made_of_it() -> None:
    ledger = turns(6).apply(Change("k", "compaction", edits=(Edit("digest", ("g1", "g2", "g3"), summary()),)))
    back = ledger.apply(rewind_change(ledger, "g3", "2026"))
    assert [e.group.id for e in back.live() if e.group] == ["g1", "g2"], (
        "a summary that tells of it would bring it back"
    )
    assert back.current == {"g2"}
    assert back.compactions == ()
    again = back.append(single("user", Message(7, "user", "else"), 7))
    assert again.current == {"g7"}
    assert [e.group.id for e in again.undo(back.changes[-1].id).live() if e.group] == ["s", "g4", "g5", "g6", "g7"]
    assert back.undo(back.changes[-1].id) == ledger
    with pytest.raises(LedgerError):
        rewind_change(back, "g5", "2027")
