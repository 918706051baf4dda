"""What hooks in Claude Code's form are told, and what their answers mean."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.claude_hooks import BLOCKING_EXIT_CODE, matches, tool_input, verdict_of
from ctxchat.core.hooks import HookVerdict
from ctxchat.core.tool_names import CLAUDE_NAMES, claude_arguments, claude_name, our_arguments, our_name


def specific(**fields: object) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}})


@pytest.mark.parametrize(
    ("code", "out", "err", "verdict"),
    [
        (0, "", "", HookVerdict()),
        (0, "just words", "", HookVerdict()),
        (BLOCKING_EXIT_CODE, "", "no rm here\n", HookVerdict(blocks=True, reason="no rm here")),
        (BLOCKING_EXIT_CODE, '{"decision": "approve"}', "no\n", HookVerdict(blocks=True, reason="no")),
        (BLOCKING_EXIT_CODE, '{"decision": "block", "reason": "why"}', "no", HookVerdict(blocks=True, reason="why")),
        (0, '{"decision": "block", "reason": "why"}', "", HookVerdict(blocks=True, reason="why")),
        (0, '{"decision": "approve"}', "", HookVerdict()),
        (0, '{"continue": false, "stopReason": "enough"}', "", HookVerdict(stops=True, reason="enough")),
        (0, '{"systemMessage": "hello"}', "", HookVerdict(tells_person="hello")),
        (
            0,
            specific(permissionDecision="deny", permissionDecisionReason="x"),
            "",
            HookVerdict(blocks=True, reason="x"),
        ),
        (0, specific(permissionDecision="ask"), "", HookVerdict(asks=True)),
        (0, specific(permissionDecision="allow"), "", HookVerdict()),
        (0, specific(additionalContext="know this"), "", HookVerdict(context="know this")),
        (0, specific(updatedInput={"file_path": "/b"}), "", HookVerdict(arguments={"path": "/b"})),
        (1, '{"decision": "block", "reason": "why"}', "broken", HookVerdict(blocks=True, reason="why")),
        (1, "words", "broken", HookVerdict()),
        (0, "{not json", "", HookVerdict()),
    ],
)
def test_an_answer_means_what_it_means_there(code: int, out: str, err: str, verdict: HookVerdict):
    assert verdict_of("tool_started", "read_file", code, out, err) == verdict


def test_words_are_context_at_a_start_and_with_a_message_only():
    assert verdict_of("turn_started", "", 0, "it is Monday\n", "").context == "it is Monday"
    assert verdict_of("session_started", "", 0, "it is Monday", "").context == "it is Monday"
    assert verdict_of("tool_finished", "shell", 0, "it is Monday", "") == HookVerdict()


@given(
    st.integers(0, 255),
    st.text()
    | st.recursive(st.none() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(json.dumps),
)
def test_whatever_is_printed_breaks_nothing_and_grants_nothing(code: int, out: str):
    for event in ("tool_started", "turn_finished", "compaction_started"):
        verdict_of(event, "shell", code, out, out)  # pyright: ignore[reportArgumentType]


def test_matchers():
    yes = [
        ("", "Bash"),
        ("*", "Bash"),
        ("Bash", "Bash"),
        ("Edit|Write", "Write"),
        ("mcp__.*", "mcp__files__read"),
        ("Bash(", "Bash("),
        ("Edit, Write", "Write"),
        ("^Notebook", "NotebookEdit"),
        ("Edit.*", "NotebookEdit"),
        ("Task", "Agent"),
        ("Agent", "Agent"),
    ]
    no = [
        ("Write", "TodoWrite"),
        ("bash", "Bash"),
        ("Edit|Write", "Read"),
        ("mcp__files", "mcp__files__read"),
        ("^Edit$", "Edits"),
    ]
    for matcher, subject, is_one in [
        *((*pair, True) for pair in yes),
        *((*pair, False) for pair in no),
        ("Bash", "", True),
    ]:
        assert matches(matcher, subject) is is_one, matcher


@pytest.mark.parametrize("tool", CLAUDE_NAMES)
def test_names_go_both_ways(tool: str):
    given = {"path": "a", "text": "b", "old": "c", "command": "d", "task": "e"}
    assert our_name(claude_name(tool)) == tool and our_arguments(tool, claude_arguments(tool, given)) == given
    assert our_name(claude_name("files__read")) == "files__read" and our_name("Unknown") == ""


def test_paths_are_told_in_full():
    told = tool_input("write_file", {"path": "src/a.py", "content": "x"}, "/project")
    assert told == {"tool_name": "Write", "tool_input": {"file_path": "/project/src/a.py", "content": "x"}}
    assert tool_input("read_file", {"path": "/a"}, "/project")["tool_input"] == {"file_path": "/a"}
