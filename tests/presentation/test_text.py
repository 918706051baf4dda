"""Foreign text: nothing of it can move, style or hide on a screen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.presentation.text import (
    MAX_LAID_OUT_CHARS,
    MAX_SHOWN_CHARS,
    WIDEST,
    clean,
    clock,
    cut,
    editable,
    elapsed,
    one_line,
    prose_line,
    short,
    visible,
)

HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("\x1b\x9b\x9d\x07\r\n\t[]0;m\u202e\u2066\x00")))


def stirs(character: str) -> bool:
    return character != "\n" and (unicodedata.category(character) in {"Cc", "Cs"} or character in "\u202e\u2066\u200f")


@given(HOSTILE)
def test_cleaned_text_has_nothing_left_that_a_terminal_obeys(text: str) -> None:
    assert not any(stirs(c) for c in clean(text))


@given(HOSTILE)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)
    assert clean(once) == once


@given(HOSTILE)
def test_an_approval_shows_every_character_and_obeys_none(text: str) -> None:
    shown = visible(text)
    assert not any(stirs(c) for c in shown)
    assert len(shown) >= len(text)


@given(HOSTILE)
def test_one_line_is_one_line(text: str) -> None:
    assert "\n" not in one_line(text, 40) and len(one_line(text, 40)) <= 40


def test_sequences_go_and_brackets_stay() -> None:
    assert (
        clean("a\x1b]0;title\x07b\x1b[2Jc [bold]d[/bold] [@click=app.quit]e[/]")
        == "abc [bold]d[/bold] [@click=app.quit]e[/]"
    )


def test_of_a_progress_bar_the_last_state_stays() -> None:
    assert clean("10 %\r50 %\r100 %\r\nnext\r\n") == "100 %\nnext\n"


def test_a_command_cannot_hide_its_beginning() -> None:
    assert visible("rm -rf /\rls\x1b[1A\u202e") == "rm -rf /\\rls\\x1b[1A\\u202e"


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (12_345, "12.3k"),
        (118_400, "118.4k"),
        (999_949, "999.9k"),
        (999_950, "1.0M"),
        (1_500_000, "1.5M"),
    ],
)
def test_tokens_for_people(tokens: int, shown: str) -> None:
    assert short(tokens) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.12, "0.1 s"), (9.96, "10 s"), (59, "59 s"), (185, "3 min 5 s"), (7260, "2 h 1 min")]
)
def test_durations_for_people(seconds: float, shown: str) -> None:
    assert elapsed(seconds) == shown


@pytest.mark.parametrize("at", ["", "yesterday", "2026-99-99"])
def test_a_moment_that_is_none_is_left_out(at: str) -> None:
    assert clock(at) == ""


def test_a_text_too_long_for_a_screen_says_how_much_more_there_is() -> None:
    assert cut("a\x1b[2Jb") == clean("a\x1b[2Jb") and cut("x" * MAX_LAID_OUT_CHARS) == "x" * MAX_LAID_OUT_CHARS
    assert cut("x" * (MAX_LAID_OUT_CHARS + 1_234)) == "x" * MAX_LAID_OUT_CHARS + "\n… 1,234 more characters"
    assert cut("abc", 2, ": the export holds them") == "ab\n… 1 more characters: the export holds them"


def test_an_editor_takes_a_text_up_to_a_line_that_is_too_long() -> None:
    lines = "word " * 20 + "\n"
    assert editable("") == 0 and editable(lines * 3) == len(lines) * 3
    assert editable(lines * 3 + "x" * (WIDEST + 9) + lines) == len(lines) * 3 + WIDEST
    assert editable(lines * MAX_SHOWN_CHARS) == MAX_SHOWN_CHARS


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("To the logger **Cormorant**, every 90 s.", "To the logger Cormorant, every 90 s."),
        ("## Goal\nFind **why** it fails.\n# Rules", "Goal Find why it fails. Rules"),
        (
            "`__init__` takes 2**8 or **kwargs and *args; a ** b ** c",
            "`__init__` takes 2**8 or **kwargs and *args; a ** b ** c",
        ),
        ("f(**one, **two) #3", "f(**one, **two) #3"),
        ("It begins:\n\n> Reads the gauge.\n\n```python\na > b\n```\nSo.", "It begins: Reads the gauge. a > b So."),
    ],
)
def test_an_answer_in_a_list_is_without_signs_of_bold_words_and_headings(text: str, line: str) -> None:
    assert prose_line(text) == line
