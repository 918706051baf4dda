"""Memos: which hold after any calls, changes by hand and undos, and that no compaction loses a word of one."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.core.applying import apply_plan
from ctxchat.core.changes import memo_change, rewind_change
from ctxchat.core.errors import LedgerError, ToolError
from ctxchat.core.grouping import group_messages
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.memos import MAX_TEXT_CHARS, MAX_TOTAL_CHARS, checked_memo, memos_of
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from tests.core.histories import budget_of, see

OPTIONS = PlanOptions(keep_recent=2, keep_turns=1, argument_tokens=8, result_tokens=8, recent_results=0, by_model=True)
FILLER = "The keeper walks round the harbour and writes down what she sees. " * 12

names = st.sampled_from(["way", "why", "checked by"])
memo_texts = st.sampled_from(
    ["", "SQLite, since no server may run\nbut only below 3.45", "x" * 600, "必ず残す " * 60, "- way: no"]
)
acts = st.tuples(st.sampled_from(["call", "late", "failed", "person", "talk", "fold", "undo"]), names, memo_texts)


def wrote(ledger: Ledger, name: str, text: str, *, late: bool = False, result: str = "Kept.") -> Ledger:
    seq = ledger.next_seq
    fields: dict[str, object] = {"name": name, "text": text}
    call = ToolCall(f"c{seq}", "memo", json.dumps(fields))
    if late:
        call = ToolCall(f"c{seq}", "call_tool", json.dumps({"name": "memo", "arguments": fields}))
    said = [Message(seq, "user", "on"), Message(seq + 1, "assistant", calls=(call,))]
    said += [Message(seq + 2, "tool", result, call_id=call.id), Message(seq + 3, "assistant", FILLER)]
    return appended(ledger, said)


def appended(ledger: Ledger, said: list[Message]) -> Ledger:
    return ledger.append(*(msgspec.structs.replace(g, turn=g.turn + ledger.turn) for g in group_messages(said)))


def folded(ledger: Ledger, strategy: str, name: str) -> Change | None:
    view = see(ledger, OPTIONS)
    plan = builtin_strategies(OPTIONS)[strategy].plan(view, ledger, budget_of(view.raw * 2, view.raw, view.raw // 4))
    return apply_plan(ledger, plan, name, OPTIONS, summary="It was so.") if plan else None


def shown(ledger: Ledger) -> str:
    """What a model reads, arguments of calls in plain words."""
    items = see(ledger, OPTIONS).items
    calls = (json.loads(c.arguments) for item in items for c in item.message.calls)
    inner = (fields.get("arguments", fields) for fields in calls)
    return "\n".join([*(item.message.text for item in items), *(str(f.get("text", "")) for f in inner)])


@settings(max_examples=30)
@given(st.lists(acts, min_size=1, max_size=9), st.sampled_from(sorted(builtin_strategies(OPTIONS))))
def test_what_holds_is_what_was_written_last_and_stands_in_every_view(acts: list[tuple[str, str, str]], strategy: str):
    ledger, expected = Ledger(), dict[str, str]()
    before: list[tuple[str, dict[str, str]]] = []
    for number, (act, name, text) in enumerate([*acts, *[("talk", "", "")] * 3, ("fold", "", "")]):
        match act:
            case "call" | "late":
                ledger = wrote(ledger, name, text, late=act == "late")
                expected[name] = text.strip()
            case "failed":
                ledger = wrote(ledger, name, text, result="Error: there is no memo 'way' to remove; there are: none.")
            case "talk":
                seq = ledger.next_seq
                ledger = appended(ledger, [Message(seq, "user", FILLER), Message(seq + 1, "assistant", FILLER)])
            case "person":
                try:
                    note, change = memo_change(ledger, name, text, f"2026-11-26T10:{number:02}:00Z")
                except (LedgerError, ToolError):
                    continue
                before.append((change.id, dict(expected)))
                ledger = ledger.append(note).apply(change)
                expected[name] = text.strip()
            case "fold":
                if change := folded(ledger, strategy, f"c{number}"):
                    ledger = ledger.apply(change)
            case _:
                if before and ledger.changes and ledger.changes[-1].id == before[-1][0]:
                    name, then = before.pop()
                    if ledger.groups[-1].source.startswith("memo:"):  # nothing was written since
                        ledger, expected = ledger.undo(name), then
        now = {memo.name: memo.text for memo in memos_of(ledger).values()}
        assert now == {n: t for n, t in expected.items() if t}
        if act in {"fold", "undo"}:
            told = shown(ledger)
            assert all(text in told for text in now.values())


def test_a_rewind_takes_a_memo_back_and_an_undo_of_a_removal_brings_it_again():
    ledger = wrote(wrote(Ledger(), "way", "SQLite"), "way", "Postgres")
    second = [g for g in ledger.groups if g.kind == "user"][1]
    assert memos_of(ledger.apply(rewind_change(ledger, second.id, "2026")))["way"].text == "SQLite"
    note, change = memo_change(ledger, "way", "", "2026")
    gone = ledger.append(note).apply(change)
    assert not memos_of(gone) and 'removed your memo "way"' in shown(gone)
    assert memos_of(gone.undo(change.id))["way"].text == "Postgres" and "removed" not in shown(gone.undo(change.id))


def test_what_is_too_long_and_what_is_not_there_is_said():
    with pytest.raises(ToolError, match="at most 1,000"):
        checked_memo("a", "x" * (MAX_TEXT_CHARS + 1), {})
    with pytest.raises(ToolError, match="there is room for 6,000"):
        checked_memo("a", "x" * 900, {"b": "x" * (MAX_TOTAL_CHARS - 800)})
    with pytest.raises(ToolError, match="there are: b"):
        checked_memo("a", " ", {"b": "x"})
    with pytest.raises(ToolError, match="needs a name"):
        checked_memo(" ", "x", {})
    assert checked_memo(" the  way ", "x\n", {"the way": "y" * MAX_TOTAL_CHARS}) == ("the way", "x")
