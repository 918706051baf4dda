"""How Markdown becomes lines, whole or in pieces, and where lines of many things are."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ctxchat.tui.transcript.blocks import UserBlock
from ctxchat.tui.transcript.heights import Heights
from ctxchat.tui.transcript.markdown import MAX_OPEN_FENCE_LINES, GrowingMarkdown
from ctxchat.tui.transcript.sideways import character_at, furthest, seen_part
from ctxchat.tui.transcript.source_lines import diff_lines, file_lines, highlighted
from ctxchat.tui.widgets.lines import MAX_PROSE_CELLS, DrawnLine
from tests.tui.chatting import HOSTILE

PARTS = (
    "# A *title*\n\n",
    "Setext\n===\n\n",
    "Words that **go on** for `some` time, [linked](https://x.org) or not.\n",
    "\n",
    "- one\n- two\n  - three\n\n    four\n",
    "1. first\n2. second\n",
    "> quoted\n> - list\n\n",
    "```python\ndef f():\n    return 1\n```\n",
    "| a | b |\n|---|--:|\n| long cell of words | 1 |\n\n",
    "---\n\n",
    "<b>html</b>\n\n",
    "    indented code\n\n",
    "```diff\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n```\n",
    "```\nlong = 'a line of code that goes on behind the edge of most windows, 漢字かな交じり文, and then ends'\n```\n",
    "hard  \nbreak\n\n",
    "漢字かな交じり文\n",
    HOSTILE + "\n",
)


def drawn(text: str, width: int) -> list[DrawnLine]:
    growing = GrowingMarkdown(width)
    growing.append_text(text)
    return growing.lines()


def shown(lines: list[DrawnLine]) -> list[str]:
    return [(line.gutter + line.words).plain.rstrip() for line in lines]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=12), st.integers(1, 40), st.integers(1, 90))
def test_in_pieces_it_looks_as_it_does_whole(parts: list[str], step: int, width: int) -> None:
    text = "".join(parts)
    growing = GrowingMarkdown(width)
    for start in range(0, len(text), step):
        growing.append_text(text[start : start + step])
        growing.lines()
    assert shown(growing.lines()) == shown(drawn(text, width))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=8), st.integers(2, 90))
@example(["```python\ndef f():\n    return 1\n```\n"], 2)
def test_no_line_is_wider_than_the_screen_and_no_control_sequence_gets_through(parts: list[str], width: int) -> None:
    for line in drawn("".join(parts), width):
        for left in (0, 1, 7):
            gutter, words = seen_part(line, line.words, left, width) if line.wide else (line.gutter, line.words)
            assert (gutter + words).cell_length <= width
        assert not set(line.words.plain) & {"\x1b", "\x07", "\x9b", "\u202e"}


def test_what_is_done_is_not_drawn_again() -> None:
    growing = GrowingMarkdown(60)
    growing.append_text("# One\n\ntwo\n\n- three\n- four\n")
    before = growing.lines()
    growing.append_text("- five\n\nsix")
    after = growing.lines()
    assert [old is new for old, new in zip(before, after, strict=False)] == [True] * 5 + [False]


def test_of_a_long_code_block_only_the_end_is_drawn_again_and_it_is_whole() -> None:
    growing = GrowingMarkdown(60)
    growing.append_text("```python\n")
    for n in range(5 * MAX_OPEN_FENCE_LINES):
        growing.append_text(f"line_{n} = {n}\n")
        before = growing.lines()
    after = growing.lines()
    assert sum(old is new for old, new in zip(before, after, strict=True)) >= 3 * MAX_OPEN_FENCE_LINES
    growing.append_text("```\n\nend")
    assert shown(growing.lines()) == [
        " python",
        *(f" line_{n} = {n}" for n in range(5 * MAX_OPEN_FENCE_LINES)),
        "",
        "end",
    ]


def test_a_link_says_where_it_leads_and_a_file_name_is_none() -> None:
    (line,) = drawn("README.md [here](smb://host/x)", 60)
    assert [s.style.meta for s in line.words.spans if not isinstance(s.style, str)] == [
        {"press": ("link", "smb://host/x")}
    ]


@given(st.lists(st.integers(0, 5), max_size=700), st.data())
def test_heights_add_up_whatever_is_changed(heights: list[int], data: st.DataObject) -> None:
    held = Heights([4] * len(heights))
    for place, height in enumerate(heights):
        held.set_height(place, height)
    start = data.draw(st.integers(0, len(heights)))
    stop = data.draw(st.integers(start, len(heights)))
    more = data.draw(st.lists(st.integers(0, 9), max_size=4))
    held.splice(start, stop, more)
    heights[start:stop] = more
    assert held.total == sum(heights) and len(held) == len(heights)
    place = data.draw(st.integers(0, len(heights)))
    assert held.top(place) == sum(heights[:place])
    if held.total:
        y = data.draw(st.integers(0, held.total - 1))
        at, line = held.entry_at(y)
        assert sum(heights[:at]) + line == y and line < heights[at]


@given(st.lists(st.sampled_from((*PARTS, "a word or two " * 40 + "\n\n", "- " + "point " * 60 + "\n")), max_size=8))
def test_prose_is_as_wide_as_can_be_read_and_in_a_narrow_window_as_wide_as_that(parts: list[str]) -> None:
    text = "".join(part for part in parts if not part.startswith(("|", "---", "    ", "```")))
    assert all(line.words.cell_length <= MAX_PROSE_CELLS for line in drawn(text, 200))
    assert all(line.words.cell_length <= 60 for line in drawn(text, 60))


def test_a_message_of_the_person_is_set_as_wide_as_an_answer_and_a_table_as_wide_as_it_is() -> None:
    said = UserBlock("a word or two " * 40).draw(200)
    assert 90 < max(line.words.cell_length for line in said[1:]) <= MAX_PROSE_CELLS
    (head, *_) = drawn(f"| {'wide ' * 30} | b |\n|---|---|\n| 1 | 2 |\n", 200)
    assert head.words.cell_length > MAX_PROSE_CELLS


LINE = "for name in names: " + "".join(f"print({n}, '漢字') ; " for n in range(20))


@given(st.integers(0, 400), st.integers(12, 90))
def test_a_long_line_of_code_is_cut_with_a_sign_and_each_cell_tells_its_letter(left: int, width: int) -> None:
    line = drawn(f"```\n{LINE}\n```\n", width)[0]
    assert line.words.plain == LINE and line.glue == "\n"
    left = min(left, furthest([line], width))
    gutter, seen = seen_part(line, line.words, left, width)
    shown = gutter.plain + seen.plain
    assert shown.endswith("›") == (left < furthest([line], width)) and shown.startswith("‹") == (left > 0)
    cells = [sign for sign in shown for _ in range(cell_len(sign))]
    for x in range(gutter.cell_length, len(cells) - 1):
        at = character_at(line, x, left)
        assert cells[x] in (" ", "›") or LINE[at] == cells[x]


def test_what_is_seen_of_a_line_is_all_of_it_piece_by_piece() -> None:
    line = drawn(f"```\n{'abcdefghij' * 30}\n```\n", 42)[0]
    pieces = [seen_part(line, line.words, left, 42)[1].plain.rstrip("›") for left in range(0, 300, 40)]
    assert "".join(pieces) == "abcdefghij" * 30


def test_a_diff_is_coloured_by_its_signs_in_an_answer_as_in_a_call_which_knows_the_numbers() -> None:
    text = "@@ -9,3 +9,3 @@\n same\n-old\n+new\n last\n"
    called, answered = diff_lines(f"--- x\n+++ x\n{text}", 60), drawn(f"```diff\n{text}```\n", 60)[1:]
    assert [line.words.plain for line in called] == [line.words.plain for line in answered] == text.split("\n")[:-1]
    assert [line.gutter.plain for line in called] == ["   ", " 9 ", "10 ", "10 ", "11 "]
    for line, fill in zip(called, ("", "", "$error", "$success", ""), strict=True):
        assert fill in line.fill and bool(fill) == bool(line.fill)
    assert [line.fill for line in answered if "muted" in line.fill] == [line.fill for line in called if line.fill]


def test_code_has_no_colour_of_trouble() -> None:
    code = "import os\n\ndef read(n=90):\n    …\n    return n not in (1, …) or LIMIT\n"
    styles = {str(span.style) for span in highlighted(code, "python").spans}
    assert len(styles) > 4 and not any("error" in style or "warning" in style for style in styles)


def test_a_file_that_was_read_has_its_colours_and_numbers_and_a_large_one_no_colours() -> None:
    lines = file_lines("9\tdef f():\n10\t    return 'x'\n[lines 9-10 of 20]", "src/x.py", 60)
    assert [line.gutter.plain + line.words.plain for line in lines] == [
        " 9 def f():",
        "10     return 'x'",
        "   [lines 9-10 of 20]",
    ]
    assert len({str(span.style) for span in lines[1].words.spans}) > 1
    plain = file_lines("1\tdef f():\n", "notes without a language", 60)
    large = file_lines("1\t" + "\n\t".join(["x = 'a string'" + " " * 300] * 80), "x.py", 60)
    assert not plain[0].words.spans and not any(line.words.spans for line in large)


def test_of_a_long_file_the_beginning_and_the_end_are_shown() -> None:
    lines = file_lines("1\t" + "\n\t".join(f"line {n}" for n in range(1, 301)), "x.txt", 60)
    assert len(lines) == 121 and lines[80].words.plain == "… 180 more lines …"
    assert (lines[-1].gutter + lines[-1].words).plain == "300 line 300"
