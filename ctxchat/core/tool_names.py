"""What our tools are called in Claude Code, whose names stand in the hooks, agents and rules that others publish. Pure."""

from __future__ import annotations

from collections.abc import Mapping

SHELL = "shell"
"""The tool that runs commands."""

DELEGATE = "delegate"
"""The tool that gives a task to a sub-agent."""

ASK_USER = "ask_user"
"""The tool that asks the person something."""

CLAUDE_NAMES: Mapping[str, str] = {
    SHELL: "Bash",
    "read_file": "Read",
    "write_file": "Write",
    "edit_file": "Edit",
    "list_files": "LS",
    "glob": "Glob",
    "grep": "Grep",
    "web_fetch": "WebFetch",
    "todo": "TodoWrite",
    DELEGATE: "Agent",
    ASK_USER: "AskUserQuestion",
    "skill": "Skill",
}
"""Their name by ours."""

_ALSO: Mapping[str, str] = {
    "MultiEdit": "edit_file",
    "NotebookEdit": "edit_file",
    "Task": DELEGATE,
    "View": "read_file",
}

_FIELDS: Mapping[str, Mapping[str, str]] = {
    "read_file": {"path": "file_path", "start_line": "offset"},
    "write_file": {"path": "file_path"},
    "edit_file": {"path": "file_path", "old": "old_string", "new": "new_string"},
    DELEGATE: {"task": "prompt", "agent": "subagent_type"},
    "skill": {"name": "skill"},
}
"""Their name of an argument by ours, where the two differ."""


def claude_name(tool: str) -> str:
    """What Claude Code calls a tool of ours; a server's tool as `mcp__server__tool`."""
    return CLAUDE_NAMES.get(tool) or (f"mcp__{tool}" if "__" in tool else tool)


def our_name(tool: str) -> str:
    """What we call a tool of Claude Code's; empty for one we have not."""
    if tool.startswith("mcp__"):
        return tool.removeprefix("mcp__")
    ours = {theirs: name for name, theirs in CLAUDE_NAMES.items()}
    return ours.get(tool) or _ALSO.get(tool, "")


def claude_arguments(tool: str, arguments: Mapping[str, object]) -> dict[str, object]:
    """A call's arguments under Claude Code's names."""
    names = _FIELDS.get(tool, {})
    return {names.get(name, name): value for name, value in arguments.items()}


def our_arguments(tool: str, arguments: Mapping[str, object]) -> dict[str, object]:
    """The way back."""
    names = {theirs: ours for ours, theirs in _FIELDS.get(tool, {}).items()}
    return {names.get(name, name): value for name, value in arguments.items()}
