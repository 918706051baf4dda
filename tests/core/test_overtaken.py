"""What came since stands behind the lines of a summary that it overtakes, and nothing of them is taken out."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.facts import Memory
from ctxchat.core.grouping import group_messages
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.overtaken import MAX_LINES, with_what_came_since

MEMORY = Memory()
SUMMARY = """## Goal
Green tests: `make test`.
## Progress
- `make test` fails in `src/tide.py`, `make lint` is untried
- `tests/old_tide.py` and `tide.py` are to go
## Next steps
- run `make test -k tide`
## Exact identifiers
- `make test`"""


def work(*steps: tuple[str, str]) -> list[Message]:
    """A request, and commands with what they printed."""
    said = [Message(100, "user", "go on")]
    for number, (command, output) in enumerate(steps):
        call = ToolCall(f"c{number}", "shell", json.dumps({"command": command}))
        seq = 101 + 2 * number
        said += [Message(seq, "assistant", calls=(call,)), Message(seq + 1, "tool", output, call_id=call.id)]
    return said


def since(*steps: tuple[str, str], summary: str = SUMMARY) -> list[str]:
    return with_what_came_since(summary, group_messages(work(*steps)), MEMORY).split("\n")


def test_a_run_and_a_removed_file_are_told_where_they_are_named_as_state() -> None:
    lines = since(
        ("make test", "2 passed\n[exit code: 0]"),
        ("git rm tests/old_tide.py", "rm 'tests/old_tide.py'\n[exit code: 0]"),
    )
    assert "`make test` ran in m102, exit 0" in lines[3] and lines[1] == "Green tests: `make test`."
    assert lines[4].endswith("[since then: `tests/old_tide.py` was removed, m104]")
    assert lines[6:] == SUMMARY.split("\n")[6:], "another command, and what tells no state"


def test_the_last_run_counts_and_a_file_that_is_there_again_is_not_gone() -> None:
    lines = since(("make test", "[exit code: 0]"), ("make test", "1 failed\n[exit code: 2]"))
    assert "ran in m104, exit 2" in lines[3] and "exit 0" not in lines[3]
    call = ToolCall("w", "write_file", json.dumps({"path": "tests/old_tide.py", "content": "new"}))
    again = [Message(110, "assistant", calls=(call,)), Message(111, "tool", "Written.", call_id="w")]
    removed = work(("rm tests/old_tide.py", "[exit code: 0]"))
    assert "was removed" in with_what_came_since(SUMMARY, group_messages(removed), MEMORY)
    assert with_what_came_since(SUMMARY, group_messages([*removed, *again]), MEMORY) == SUMMARY


@given(
    st.lists(
        st.sampled_from(["make test", "make lint", "rm src/tide.py", "git mv src/tide.py src/sea.py"]), max_size=4
    ),
    st.lists(
        st.sampled_from(["- `make test` fails", "`src/tide.py` has it", "plain words", "## Progress", ""]), max_size=30
    ),
)
def test_every_line_stays_as_it_is_with_at_most_a_word_behind_it(commands: list[str], lines: list[str]) -> None:
    summary = "\n".join(lines)
    now = since(*((command, "[exit code: 0]") for command in commands), summary=summary)
    before = summary.split("\n")
    assert len(now) == len(before)
    assert all(new == old or new.startswith(f"{old} [since then: `") for old, new in zip(before, now, strict=True))
    added = [old for old, new in zip(before, now, strict=True) if new != old]
    assert len(added) <= MAX_LINES and not {"plain words", "## Progress", ""}.intersection(added)
    assert commands or not added
