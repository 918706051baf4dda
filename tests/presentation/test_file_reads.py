"""What was read of a file: its lines, their numbers, and what is no line of it."""

from __future__ import annotations

from ctxchat.presentation.file_reads import ReadLine, read_lines, read_path


def test_every_line_has_its_number_though_the_tool_wrote_every_fifth() -> None:
    text = "4\tdef f():\n5\t\treturn 1\n\t\n\tx = '\x1b[2J'\n[lines 4-7 of 90, go on with start_line=8]"
    assert read_lines(text) == [
        ReadLine("def f():", 4),
        ReadLine("\treturn 1", 5),
        ReadLine("", 6),
        ReadLine("x = ''", 7),
        ReadLine("[lines 4-7 of 90, go on with start_line=8]", about=True),
    ]


def test_numbers_of_other_agents_are_known_and_a_text_without_any_is_as_it_is() -> None:
    assert read_lines("     9→a\n    10→b\r\n") == [ReadLine("a", 9), ReadLine("b", 10)]
    assert read_lines("\tindented\n[x]") == [ReadLine("\tindented"), ReadLine("[x]")]


def test_which_calls_read_a_file() -> None:
    assert read_path("read_file", {"path": "src/x.py"}) == "src/x.py"
    assert read_path("read_file", "{broken") == read_path("shell", {"command": "ls"}) == ""
    assert read_path("edit_file", {"path": "x.py", "old": "a", "new": "b"}) == ""
