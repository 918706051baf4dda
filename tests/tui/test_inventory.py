"""What is in the window, row by row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.budget import Window, make_budget
from ctxchat.core.calibration import Mix, level
from ctxchat.core.context_usage import Counting, measure
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message, Text, ToolCall
from ctxchat.core.sections import OUTSIDE, SECTIONS
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile
from ctxchat.core.working_set import CurrentFile, working_set
from ctxchat.presentation.inventory import inventory, offenders
from tests.tui.harbour import HarbourSession, state


@given(st.integers(0, 30), st.integers(0, 2), st.integers(2_000, 400_000))
def test_rows_add_up_to_the_gauge_section_by_section(turns: int, passes: int, window: int) -> None:
    desk = HarbourSession(state(turns, passes=passes if turns > 12 else 0), window=window)
    view, context_usage = desk.view, desk.context_usage
    rows = inventory(view, context_usage)
    for name in SECTIONS:
        if name not in OUTSIDE:
            assert sum(r.tokens for r in rows if r.section == name) == context_usage.tokens(name), name
    assert rows[-1].running == context_usage.used
    assert [r.number for r in rows] == list(range(1, len(rows) + 1))


def test_what_stands_for_the_model_only_is_left_out_of_the_words() -> None:
    desk = HarbourSession()
    whats = {row.section: row.what for row in inventory(desk.view, desk.context_usage)}
    assert whats["memory"] and not any(what.startswith("<") for what in whats.values())


@given(st.integers(0, 60))
def test_what_a_server_holds_is_marked_row_by_row(held: int) -> None:
    desk = HarbourSession()
    for row in inventory(desk.view, desk.context_usage, held):
        assert row.cached == (held > 0 and row.number < held + len(desk.view.tools)), "tools are one message"


def test_a_draft_belongs_to_no_row() -> None:
    desk = HarbourSession()
    context_usage = desk.with_draft("word " * 3_000)
    rows = inventory(desk.view, context_usage)
    assert rows[-1].running == context_usage.used - context_usage.tokens("draft")


def test_a_reply_that_is_arriving_swells_no_row() -> None:
    desk = HarbourSession()
    before = inventory(desk.view, desk.context_usage)
    context_usage = measure(desk.view, desk.budget, Counting("m", level(1.08)), streamed=Mix(5_000))
    during = inventory(desk.view, context_usage)
    assert [r.tokens for r in during if r.section == "user"] == [r.tokens for r in before if r.section == "user"]
    grown = sum(r.tokens for r in during) - sum(r.tokens for r in before)
    assert abs(grown) <= len(SECTIONS)


def test_a_result_is_told_by_its_call() -> None:
    desk = HarbourSession()
    rows = inventory(desk.view, desk.context_usage)
    result = offenders(desk.view, desk.context_usage, 1)[0]
    assert result.tokens == max(r.tokens for r in rows)
    assert result.kind == "result" and result.section == "tool_results"
    assert result.what.startswith(("run journalctl -u cormorant", "read var/log/tide-7.log"))
    assert result.source in {"run", "read"}


def test_what_a_person_said_is_told_without_what_went_along() -> None:
    said = group_messages([Message(1, "user", (Text("Explain @notes.md"), Text("```\nlong\n```", name="notes.md")))])
    desk = HarbourSession(SessionState(ledger=Ledger(groups=said)))
    assert [r.what for r in inventory(desk.view, desk.context_usage) if r.kind == "you"] == ["Explain @notes.md"]


def test_files_beside_a_summary_are_told_by_their_names() -> None:
    files = [
        CurrentFile("src/a.py", ("src/a.py",), "1\tname:\n2\t\n", tokens=9),
        CurrentFile("b.md", ("b.md",), "1\tx", True, 3),
    ]
    text, _ = working_set(files, 2_000, len)
    ledger = Ledger(group_messages([Message(1, "user", text)]))
    view = compile(ledger, HarbourSession().frame, TokenCounter())
    budget = make_budget(Window(8_000, "assumed"), 500, 0.8, 0.5)
    (row,) = [r for r in inventory(view, measure(view, budget, Counting("m"))) if r.kind == "files"]
    assert row.what == "files in work as they are on disk: src/a.py, b.md"


def test_repeated_call_ids_are_told_per_occurrence() -> None:
    def round_of(seq: int, command: str) -> list[Message]:
        call = ToolCall("same", "run", f'{{"command": "{command}"}}')
        return [Message(seq, "assistant", calls=(call,)), Message(seq + 1, "tool", "out", call_id="same")]

    ledger = Ledger(group_messages([Message(1, "user", "go"), *round_of(2, "first"), *round_of(4, "second")]))
    view = compile(ledger, HarbourSession().frame, TokenCounter())
    budget = make_budget(Window(8_000, "assumed"), 500, 0.8, 0.5)
    rows = inventory(view, measure(view, budget, Counting("m")))
    assert [r.what for r in rows if r.kind == "result"] == ["run first", "run second"]


def test_what_is_cached_is_the_front() -> None:
    desk = HarbourSession()
    rows = inventory(desk.view, desk.context_usage)
    flags = [r.cached for r in rows]
    assert flags == sorted(flags, reverse=True)
    assert sum(r.tokens for r in rows if r.cached) <= desk.context_usage.cached


def test_hostile_words_come_out_flat() -> None:
    call = ToolCall("c", "\x1b]0;x\x07run", '{"command": "\x1b[2Jrm [bold]-rf[/]\\n/"}')
    ledger = Ledger(
        group_messages(
            [
                Message(1, "user", "[/x]\n\x1b[2J"),
                Message(2, "assistant", calls=(call,)),
                Message(3, "tool", "x", call_id="c"),
            ]
        )
    )
    view = compile(ledger, HarbourSession().frame, TokenCounter())
    rows = inventory(view, measure(view, make_budget(Window(8_000, "assumed"), 500, 0.8, 0.5), Counting("m")))
    assert all(r.what.isprintable() and r.source.isprintable() for r in rows)
    assert "[/x]" in [r.what for r in rows]
