"""The record as items: every group once, marks where they belong, exports that hold all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.grouping import group_messages, single
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.messages import Message, ToolCall
from ctxchat.presentation.export import as_markdown
from ctxchat.presentation.history import items, last_answer


def conversation(turns: int) -> Ledger:
    said = []
    for turn in range(turns):
        at = f"2026-11-21T10:{turn:02d}:00.000Z"
        said.append(Message(seq=2 * turn + 1, role="user", content=f"question {turn}", at=at))
        said.append(Message(seq=2 * turn + 2, role="assistant", content=f"answer {turn}", at=at))
    return Ledger(groups=group_messages(said))


def folded(ledger: Ledger, name: str, covers: list[str], at: str = "") -> Ledger:
    summary = single("summary", Message(seq=900, role="user", content="summary"), 0)
    return ledger.apply(Change(id=name, kind="compaction", at=at, edits=(Edit("digest", tuple(covers), summary),)))


@given(st.integers(0, 12), st.integers(0, 12), st.booleans())
def test_every_group_is_shown_once_and_in_order_whatever_was_compacted(turns: int, cut: int, dated: bool) -> None:
    ledger = conversation(turns)
    covers = [g.id for g in ledger.groups[: min(cut, 2 * turns - 2)]] if turns else []
    if covers:
        ledger = folded(ledger, "k1", covers, "2026-11-21T10:05:30.000Z" if dated else "")
    shown = items(ledger)
    assert [s.group.id for s in shown if s.group] == [g.id for g in ledger.groups]
    assert len([s for s in shown if s.change]) == bool(covers)
    assert len({s.key for s in shown}) == len(shown)


def test_a_mark_stands_where_the_compaction_was_made() -> None:
    ledger = folded(conversation(4), "k1", ["g1", "g2"], "2026-11-21T10:02:30.000Z")
    assert [s.key for s in items(ledger)] == ["g1", "g2", "g3", "g4", "g5", "g6", "change:k1", "g7", "g8"]


def test_the_last_answer_is_the_newest_with_words() -> None:
    call = Message(seq=9, role="assistant", calls=(ToolCall("c", "read", "{}"),))
    assert last_answer(Ledger(groups=(*conversation(2).groups, *group_messages([call])))) == "answer 1"
    assert last_answer(Ledger()) == ""


def test_an_export_holds_every_word_and_no_control_sequence() -> None:
    bad = Message(seq=9, role="user", content="\x1b[2Jlast ``` words")
    text = as_markdown(
        SessionState(ledger=Ledger(groups=(*conversation(3).groups, *group_messages([bad]))), title="Tide")
    )
    assert text.startswith("# Tide") and "\x1b" not in text
    assert all(f"question {n}" in text and f"answer {n}" in text for n in range(3)) and "last ``` words" in text
