"""What a call is about, and the line that a long result leaves behind."""

from __future__ import annotations

import json

import pytest

from ctxchat.core.facts.symbols import defined
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.tooluse import gist, part_checked


@pytest.mark.parametrize(
    ("tool", "arguments", "result", "line"),
    [
        ("shell", {"command": "make"}, "Build…\n\na.c:3: error: missing ;\n[exit code 2]", "exit 2: a.c:3: error: missing ;"),
        ("shell", {"command": "pytest"}, "....\n=====\n41 passed in 2.0s\n", "41 passed in 2.0s"),
        ("shell", {"command": "pytest; git status -s"}, "..\n41 passed in 2.0s\n M a.py\n?? shot.png", "41 passed in 2.0s"),
        ("shell", {"command": "pytest; git diff"}, "41 passed, 2 xfailed\n+ echo('Error: no')", "41 passed, 2 xfailed"),
        ("shell", {"command": "pytest a; pytest b"}, "1 failed, 2 passed\n3 passed", "1 failed, 2 passed"),
        ("shell", {"command": "true"}, "[no output]", "no output"),
        ("shell", {"command": "python -m unittest"}, "E\nOverflowError: no\n\nRan 2 tests\n\nFAILED (errors=1, skipped=2)",
         "OverflowError: no"),
        ("shell", {"command": "sed -n 7,9p pier.py | nl"}, "7\tclass Pier:\n8\t    def moor(x):\n9\t        raise KeyError(x)",
         "3 lines: Pier, moor"),
        ("recall", {"query": "ports"}, "m4 (user, turn 2):\nUse port 8080.\n\nm9 (you, turn 3):\nIt is 8080.",
         "m4 (user, turn 2): Use port 8080."),
        ("write_file", {"path": "a.py", "content": "import a\n\n\nx = 1\n"}, "Created a.py: +4 −0", "+4: import a"),
        ("read_file", {"path": "src/themes.py"}, "    1\timport a\n    2\t\n    3\tclass Theme:\n    4\t    x\n[lines 1-4 of 9]",
         "lines 1–4 of src/themes.py: Theme"),
        ("read_file", {"path": "/w/a/b/c.py"}, "1\tx = 1\n2\ty = 2", "lines 1–2 of /w/a/b/c.py"),
        ("grep", {"pattern": "x"}, "a.py:1: x\nb.py:2: x\n[only the first 2 hits are shown]", "2 hits, the first a.py:1: x"),
        ("read_file", {"path": "src/themes.py"}, "4\timport a\n5\t\n\tclass Theme:\n\t\tx\n[lines 4-7 of 9]",
         "lines 4–7 of src/themes.py: Theme"),
        ("grep", {"pattern": "x"}, "a.py\n1: x\n2-y\n7: x\n--\n9:x\nb.py\n2: x", "4 hits, the first a.py:1: x"),
        ("grep", {"pattern": "x"}, "a.py\n1\t x\n2-y\n7\t x\n--\n9 x\nb.py\n2\t x", "4 hits, the first a.py:1: x"),
        ("grep", {"pattern": "x"}, "a.py-1-y\na.py:2: x\na.py-3-y", "1 hit, the first a.py:2: x"),
        ("Grep", {"pattern": "x"}, "Found 2 files\na.py\nb.py", "2 hits, the first a.py"),
        ("Task", {"prompt": "look"}, "Excellent! Now I have it all. Let me write the report.\n\n## Report\nIt moors at 7.",
         "## Report It moors at 7."),
        ("shell", {"command": "git commit -m Moor"}, "Checked.\n[main 3f2a9c1] Moor\n 1 file changed\n create mode 100644 a",
         "[main 3f2a9c1] Moor"),
        ("glob", {"pattern": "*.py"}, "a.py\nb.py", "2 hits, the first a.py"),
        ("edit_file", {"path": "a.py"}, "Changed a.py: +1 −1, now 3 lines.", "Changed a.py: +1 −1, now 3 lines."),
        ("edit", {"path": "a.py", "oldText": "x = 1\ny = 2", "newText": "x = 1\ny = 3\nz = 4"}, "Successfully replaced.",
         "+2 −1: y = 3"),
        ("edit_file", {"path": "a.py", "old": "x", "new": "@mark(\n    1,\n)\ndef moor(boat):\n    x"}, "Changed a.py.",
         "+5 −1: def moor(boat):"),
        ("edit_file", {"path": "a.md", "old": "x", "new": "How it moors:\n\n    def moor(boat):"}, "Changed a.md.",
         "+3 −1: How it moors:"),
        ("edit_file", {"path": "a.py", "old": "if tied:\n    x", "new": "if (\n    tied\n    and calm\n):\n    x"},
         "Changed a.py.", "+4 −1: tied"),
        ("read_file", {"path": "a.py"}, "[error] a.py does not exist.", "[error] a.py does not exist."),
    ],
)  # fmt: skip
def test_what_stands_for_a_result_is_the_line_that_mattered(
    tool: str, arguments: dict[str, str], result: str, line: str
) -> None:
    assert gist(ToolCall("1", tool, json.dumps(arguments)), Message(2, "tool", result, call_id="1"), 160) == line


def test_a_result_of_nobody_knows_what_keeps_its_first_words_and_its_width() -> None:
    assert gist(None, Message(2, "tool", "---\n" + "word " * 100), 40) == ("word " * 8)[:39] + "…"
    assert gist(None, Message(2, "tool", ""), 40) == ""


def test_a_sentence_defines_nothing() -> None:
    text = "def prompt(text):\n  function will catch this exception.\n  function returns ``None``.\n  class method.\n"
    text += "class Ask extends Base {\nfunc ask int\n"
    assert list(defined(text)) == ["prompt", "Ask", "ask"]
    call = ToolCall("1", "read_file", '{"path": "ui/ask.py"}')
    assert gist(call, Message(2, "tool", text, call_id="1"), 160) == "6 lines of ui/ask.py: prompt, Ask, ask"
    spaced = text.replace("\n", "\n\n")
    assert gist(call, Message(2, "tool", spaced, call_id="1"), 160).startswith("11 lines of"), "as the file has them"


def test_what_a_file_defines_several_times_is_named_once() -> None:
    text = "class Chat:\n    def show(self): ...\nclass Log:\n    def show(self): ...\n"
    call = ToolCall("1", "read_file", '{"path": "ui/chat.py"}')
    assert gist(call, Message(2, "tool", text, call_id="1"), 160) == "4 lines of ui/chat.py: Chat, show, Log"


def test_the_line_that_mattered_is_the_error_and_not_where_its_log_is() -> None:
    call = ToolCall("c1", "bash", '{"command": "npm run build"}')
    said = "a.ts(5,15): error TS2305: no exported member 'EditorTheme'\nnpm error code 2\nnpm error location /x/y\n[exit code 2]"
    assert "TS2305" in gist(call, Message(2, "tool", said, call_id="c1"), 120)


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("uv run pytest -q -n 2 tests/", ""),
        ("cd /a && python -m pytest tests/a.py::test_b -x 2>&1 | tail -5", "tests/a.py::test_b"),
        ("pytest -q -k closes > /tmp/log 2>&1", "closes"),
        ("cargo test closes", "closes"),
        ("go test ./...", ""),
        ("npm test -- src/a.test.ts", "src/a.test.ts"),
        ("npm run test:unit", ""),
        ("ruff check --fix src/a.py", "src/a.py"),
        ("git push origin main", ""),
    ],
)
def test_a_run_of_some_tests_is_told_from_one_of_all(command: str, part: str) -> None:
    assert part_checked(command) == part
