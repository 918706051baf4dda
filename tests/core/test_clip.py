"""Cutting long text: at line ends where there are any near, and with a note that names what is missing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.clip import NUMBERED_LINES, clip, clip_around
from ctxchat.core.tokens import rough_count

MARK = "\n[… {lines}{tokens} tokens left out …]\n"
NAMED = re.compile(r"\n\[… (?:lines (\d+)–(\d+) \(start_line=(\d+)\), )?(\d+) tokens left out …\]\n")

texts = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=60), max_size=80).map(
    "\n".join
)


@given(texts, st.integers(20, 400))
def test_head_and_tail_are_of_the_text_and_the_note_names_what_is_missing(text: str, most: int) -> None:
    clipped = clip(text, most, rough_count, MARK)
    if clipped == text:
        return
    found = NAMED.search(clipped)
    assert found
    head, tail = clipped[: found.start()], clipped[found.end() :]
    assert text.startswith(head) and text.endswith(tail)
    if found[1]:
        first, last = int(found[1]), int(found[2])
        lines = text.split("\n")
        assert head.split("\n") == lines[: first - 1] and tail.split("\n") == lines[last:] and found[3] == found[1]


def test_a_file_with_numbered_lines_is_cut_between_them_and_says_where_to_go_on() -> None:
    text = "\n".join(f"{n:>5}\tline {n} of a file that is read in part" for n in range(1001, 1215))
    clipped = clip(text, 900, rough_count, MARK)
    found = NAMED.search(clipped)
    assert found and rough_count(clipped) <= 900
    first, last = int(found[1]), int(found[2])
    assert f"{first - 1}\tline" in clipped and f"{last + 1}\tline" in clipped and f"{first}\tline" not in clipped
    assert all(line.endswith("in part") for line in clipped.split("\n") if "\t" in line), "no line is cut in two"


@given(st.integers(1, 30), st.integers(60, 200), st.integers(80, 300))
def test_a_file_that_was_read_says_which_lines_are_missing(first: int, many: int, room: int) -> None:
    lines = [f"{n if n % NUMBERED_LINES == 0 or n == first else ''}\tword {n}" for n in range(first, first + many)]
    shown = clip("\n".join(lines), room, rough_count, MARK)
    if found := NAMED.search(shown):
        there = {int(n) for n in re.findall(r"word (\d+)", shown)}
        assert {*range(int(found[1]), int(found[2]) + 1)} == {*range(first, first + many)} - there


def test_numbers_that_do_not_count_the_lines_name_none() -> None:
    hits = "\n".join(f"{7 * n}\t    a hit in a file, its number before it" for n in range(1, 200))
    for shown in (clip(hits, 400, rough_count, MARK), clip_around(hits, 1_000, 400, rough_count, MARK)):
        named = [int(n) for one in re.findall(r"lines (\d+)–(\d+) ", shown) for n in one]
        assert named and max(named) < 200


def test_one_long_line_is_cut_inside_and_names_no_lines() -> None:
    assert "start_line" not in clip("word " * 900, 100, rough_count, MARK)


@given(texts, st.integers(0, 1_000), st.integers(60, 400))
def test_what_lies_around_a_place_is_one_piece_within_its_room(text: str, place: int, most: int) -> None:
    shown = clip_around(text, min(place, len(text)), most, rough_count, MARK)
    assert rough_count(shown) <= most or rough_count(text) <= most
    pieces = re.split(r"\n?\[… lines \d+–\d+ \(start_line=\d+\), \d+ tokens left out …\]\n?", shown)
    assert len(pieces) <= 3 and all(piece.strip("\n") in text for piece in pieces)


@pytest.mark.parametrize("before", [0, 1_500])
@pytest.mark.parametrize("most", [150, 300, 700])
def test_a_place_in_a_long_line_is_shown(before: int, most: int) -> None:
    lines = [f"{n:>5}\tline {n}" for n in range(1, 2_000)]
    lines[1_500] = f" 1501\t{'a' * before} the place {'b' * 1_500}"
    text = "\n".join(lines)
    shown = clip_around(text, text.index("the place"), most, rough_count, MARK)
    assert "the place" in shown and most * 0.7 < rough_count(shown) <= most


def test_the_lines_around_a_place_are_shown_and_those_left_out_are_named() -> None:
    text = "\n".join(f"{n:>5}\tline {n} of a file that is read in part" for n in range(1, 201))
    shown = clip_around(text, text.index("line 120 "), 400, rough_count, MARK).split("\n")
    assert all(line.count("left out") == 1 for line in (shown[0], shown[-1]))
    assert shown[0].startswith("[… lines 1–") and "–200 (start_line=" in shown[-1]
    numbers = [int(line.split("\t")[0]) for line in shown[1:-1]]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[0] < 120 < numbers[-1]
    assert f"lines 1–{numbers[0] - 1} (start_line=1), " in shown[0]
    assert f"lines {numbers[-1] + 1}–200 (start_line={numbers[-1] + 1})" in shown[-1]


@given(st.lists(st.from_regex(r"[a-z#0-9/._]{1,30}", fullmatch=True), min_size=20, max_size=120), st.integers(40, 90))
def test_no_word_is_cut_in_two_where_there_are_spaces_near(words: list[str], most: int) -> None:
    text = " ".join(words)
    start, _, rest = clip(text, most, len, " [… {tokens} left out …] ").partition(" [… ")
    end = rest.partition(" …] ")[2]
    assert " " not in start or start.split() == words[: len(start.split())]
    assert " " not in end or end.split() == words[len(words) - len(end.split()) :]
