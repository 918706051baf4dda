"""The line on top."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.tui.chat.edges import Header, HeaderState, model_words


@pytest.mark.parametrize(
    ("name", "room", "shown"),
    [
        ("offline/assistant", 40, "offline assistant"),
        ("offline/assistant", 9, "offline"),
        ("anthropic/claude-sonnet-4-5", 40, "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5", 13, "sonnet-4-5"),
        ("openrouter/meta-llama/llama-4-maverick-instruct", 30, "llama-4-maverick-instruct"),
        ("openrouter/meta-llama/llama-4-maverick-instruct", 12, "…ck-instruct"),
        ("a\x1b[2Jb/[bold]c", 40, "[bold]c"),
    ],
)
def test_a_models_name_loses_its_left_part_first(name: str, room: int, shown: str) -> None:
    assert model_words(name, room) == shown


@given(st.text(max_size=80), st.text(max_size=80), st.integers(1, 150))
def test_it_is_one_line_of_the_width_there_is(title: str, model: str, width: int) -> None:
    header = Header()
    header._heading = HeaderState("folder", "main", title, model, "ask", sandboxed=False)
    line = header.draw_line(width)
    assert line.cell_length <= max(width, 8) and "\n" not in line.plain


def test_a_long_title_stands_apart_from_the_model() -> None:
    header = Header()
    header._heading = HeaderState(
        title="Harbour logger: gaps at night, and why", model="offline/assistant", mode="ask", sandboxed=False
    )
    line = header.draw_line(78).plain
    assert "…   offline assistant" in line or "…  offline" in line


def test_the_level_of_effort_stands_with_the_model() -> None:
    header = Header()
    header._heading = HeaderState(model="openai/gpt-6.2-sol", mode="ask", effort="high")
    assert "gpt-6.2-sol · high" in header.draw_line(80).plain
    assert "high" not in header.draw_line(50).plain, "the model's name first"


def test_nothing_is_called_sandboxed_before_it_is_known() -> None:
    assert "sandboxed" not in Header().draw_line(80).plain


def test_folder_and_branch_are_named_and_the_branch_is_somebody_elses_text() -> None:
    header = Header()
    header._heading = HeaderState("harbour", "tide/\x1b[31m\u202ehigh\n[bold]", "A title", "offline/assistant", "ask")
    assert header.draw_line(110).plain.startswith("ctxchat  harbour ⎇ tide/high [bold] · A title")
    assert header.draw_line(40).plain.startswith("harbour ⎇ tide")
    assert header.draw_line(20).plain.startswith("harbour")
