"""A call and its outcome in a few words."""

from __future__ import annotations

import pytest

from ctxchat.agent.turn.in_flight import CANCELLED, FAILED, LAST_ROUND, NOT_KEPT
from ctxchat.core.events import ToolFinished, ToolStatus
from ctxchat.core.messages import Message, ToolCall
from ctxchat.presentation.tool_words import counted, decoded, diff_size, ending, key_argument, outcome
from ctxchat.storage.loading import INTERRUPTED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pattern": "tide gauge"}, '"tide gauge"'),
        ({"pattern": "x", "path": "src"}, '"x" src'),
        ({"path": "README.md", "start": 1, "end": 80}, "README.md 1–80"),
        ({"path": "README.md", "start": 5}, "README.md 5–"),
        ({"command": "ls\n-la"}, "ls -la"),
        ({"unheard": "of"}, "of"),
        ({}, ""),
        ("{broken", "{broken"),
        ({"path": "\x1b[2J[/x]"}, "[/x]"),
    ],
)
def test_the_key_argument_tells_calls_apart(arguments: dict[str, object] | str, words: str) -> None:
    assert key_argument(arguments) == words


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (ToolFinished("c", "grep", "ok", "a\nb", 1, 0), "2 hits"),
        (ToolFinished("c", "list_files", "ok", "a\n", 1, 0), "1 file"),
        (ToolFinished("c", "read", "ok", "", 1, 0), "nothing"),
        (ToolFinished("c", "edit", "ok", "x", 1, 0, diff="--- a\n+++ b\n-x\n+y\n+z"), "+2 −1"),
        (ToolFinished("c", "shell", "ok", "x", 1, 0, exit_code=1), "exit 1"),
        (ToolFinished("c", "read", "error", "No such file\nat all", 1, 0), "No such file at all"),
        (ToolFinished("c", "shell", "denied", "no", 1, 0), "denied"),
        (ToolFinished("c", "shell", "timeout", "", 1, 0), "timed out"),
        (
            ToolFinished(
                "c", "write_file", "ok", "Created a.py: +604 −0, now 604 lines, 27.3 kB.", 1, 0, diff="+a\n[…]"
            ),
            "+604 −0",
        ),
    ],
)
def test_an_outcome_fits_in_a_line(finished: ToolFinished, words: str) -> None:
    assert outcome(finished) == words


def test_broken_arguments_stay_as_they_were_written() -> None:
    assert decoded("[1]") == "[1]" and decoded("{") == "{" and decoded("") == {} and decoded('{"a": 1}') == {"a": 1}
    assert decoded("[" * 100_000) == "[" * 100_000


def test_the_heads_of_a_diff_are_no_changes() -> None:
    assert diff_size("--- a\n+++ b\n context") == "+0 −0"


@pytest.mark.parametrize(
    ("name", "text", "status", "code"),
    [
        ("shell", "fine", "ok", 0),
        ("shell", "[j1: running, 1 s, 0 bytes of output in tool-results/x.txt]\n[no new output]", "ok", None),
        ("shell", "x\n[exit code 2]\n[The sandbox has no network.]\n[Of the home folder]", "error", 2),
        ("shell", "ls: cannot access '/nope'\n[exit code 3]", "error", 3),
        ("shell", "[no output]\n[ended by signal 9]", "error", -9),
        ("shell", "some\n[stopped after 120 s: time-out]", "timeout", None),
        ("shell", f"line 1\nline 2\n{CANCELLED}", "cancelled", None),
        ("grep", CANCELLED, "cancelled", None),
        ("grep", FAILED, "cancelled", None),
        ("shell", f"line 1\n{NOT_KEPT}", "cancelled", None),
        ("grep", LAST_ROUND, "cancelled", None),
        ("shell", INTERRUPTED, "cancelled", None),
        ("shell", "The user did not allow this. They said: too dangerous", "denied", None),
        ("read_file", "[error] no such file", "error", None),
        ("read_file", "a log\n[exit code 3]", "ok", None),
    ],
)
def test_a_call_of_the_record_ends_as_it_did(name: str, text: str, status: ToolStatus, code: int | None) -> None:
    arguments = '{"command": "x"}' if name == "shell" else '{"path": "x"}'
    result = Message(2, "tool", text, call_id="c", name=name)
    assert ending(ToolCall("c", name, arguments), result) == (status, code)


def test_a_command_in_the_background_is_told_by_its_state() -> None:
    shown = "[j2: running, 2 s, 0 bytes of output in tool-results/job-j2.txt]\n[no new output]"
    assert outcome(ToolFinished("c1", "shell", "ok", shown, 9, 2.0)) == "j2: running"
    ended = shown.replace("running", "ended with exit code 1")
    assert outcome(ToolFinished("c2", "job", "ok", ended, 9, 2.0)) == "j2: ended with exit code 1"


def test_a_call_without_arguments_has_nothing_behind_its_name() -> None:
    assert key_argument("{}") == key_argument({}) == ""


@pytest.mark.parametrize(
    ("tool", "output", "words"),
    [
        ("read_file", "    3\ta\n    4\tb\n[lines 3-4 of 9, go on with start_line=5]", "2 lines"),
        ("grep", "a.py:1:x\n[only the first hit is shown]", "1 hit"),
        ("grep", "a.py\n1:x\n2-y\n--\n9:x\n[only the first 2 hits are shown]", "2 hits"),
        ("grep", "a.py\n1 x\n2-y\n--\n9\t  x\n[only the first 2 hits are shown]", "2 hits"),
        ("read_file", "[a.py is empty]", "1 line"),
        ("todo", "Kept: 1 of 3 done.", "Kept: 1 of 3 done"),
        ("shell", "[no output]", "no output"),
        ("weather", "9 degrees\nwind from the west", "2 lines"),
    ],
)
def test_what_a_tool_says_of_its_own_output_is_no_line_of_it(tool: str, output: str, words: str) -> None:
    assert counted(tool, output) == words
