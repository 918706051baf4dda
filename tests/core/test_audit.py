"""What a compaction kept and lost, and what of it the calls after it needed."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.audit import MAX_CALLS, CompactionAudit, audits
from ctxchat.core.facts import Memory
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Changed, Record, Sealed, Undone, fold
from ctxchat.core.ledger import Change, Edit
from ctxchat.core.messages import Group, Message, ToolCall


def messages(*said: str | tuple[str, str, str], start: int = 1) -> list[Message]:
    """What the person said, and calls as tool, path and result."""
    found: list[Message] = []
    for one in said:
        seq = start + len(found)
        if isinstance(one, str):
            found.append(Message(seq, "user", one))
            continue
        tool, path, result = one
        call = ToolCall(f"c{seq}", tool, json.dumps({"path": path}))
        found += [Message(seq, "assistant", "", (call,)), Message(seq + 1, "tool", result, call_id=call.id)]
    return found


def compaction(covers: tuple[str, ...], summary: str) -> Changed:
    text = Group("s1", "summary", (Message(0, "user", summary),), source="k1")
    return Changed(Change("k1", "compaction", "2026-11-28T10:00:00Z", (Edit("digest", covers, text),)))


def audited(
    before: list[Message], summary: str, after: list[Message], more: list[Record] | None = None
) -> CompactionAudit:
    groups = group_messages(before)
    covers = tuple(group.id for group in groups)
    later = group_messages([*before, *after])[len(groups) :]
    records = [Sealed(tuple(groups)), compaction(covers[:-1], summary), *(more or []), Sealed(tuple(later))]
    assert not fold(records).skipped
    (audit,) = audits(records, Memory())
    return audit


BEFORE = messages(
    "Make the gauge at src/gauge.py poll faster.",
    ("read_file", "src/gauge.py", "INTERVAL = 90"),
    ("read_file", "src/logger.py", "def write_line(): ..."),
    "Go on.",
)


def test_a_name_that_is_needed_is_in_view_or_missed_and_read_again() -> None:
    after = messages(("read_file", "src/logger.py", "x"), ("edit_file", "src/gauge.py", "y"), start=7)
    audit = audited(BEFORE, "The gauge lies in src/gauge.py.", after)
    assert [(n.name, n.in_view, n.read_again, n.message) for n in audit.needed] == [
        ("src/logger.py", False, True, "m7"),
        ("src/gauge.py", True, False, "m9"),
    ]
    assert audit.calls == 2 and audit.facts.found >= audit.facts.kept


def test_what_was_said_again_in_between_or_never_known_is_not_needed() -> None:
    after = messages(
        "Look at src/logger.py.", ("read_file", "src/logger.py", "x"), ("read_file", "src/new.py", "z"), start=7
    )
    assert audited(BEFORE, "Nothing of note.", after).needed == ()


def test_one_that_was_undone_since_is_told_as_it_was() -> None:
    after = messages(("read_file", "src/logger.py", "x"), start=7)
    audit = audited(BEFORE, "Nothing.", after, [Undone("k1")])
    assert [(n.name, n.in_view) for n in audit.needed] == [("src/logger.py", False)]


@given(st.lists(st.sampled_from(["src/a.py", "src/b.py", "src/c.py", "src/d.py"]), max_size=40), st.text(max_size=80))
def test_only_names_of_the_next_calls_that_were_known_count_each_once(paths: list[str], summary: str) -> None:
    known = messages("Begin.", ("read_file", "src/a.py", "1"), ("read_file", "src/b.py", "2"), "Go on.")
    after = messages(*(("read_file", path, "") for path in paths), start=7)
    audit = audited(known, summary or "-", after)
    assert audit.calls == min(len(paths), MAX_CALLS)
    names = [name.name for name in audit.needed]
    assert len(set(names)) == len(names) and set(names) == set(paths[:MAX_CALLS]) & {"src/a.py", "src/b.py"}
    assert all(name.in_view == (name.name in summary) for name in audit.needed)


def test_a_name_at_the_end_of_what_was_said_is_found() -> None:
    after = messages("please open src/logger.py", "now", ("read_file", "src/logger.py", "x"), start=7)
    assert audited(BEFORE, "Nothing.", after).needed == ()
