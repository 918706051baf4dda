"""Translates names of tools and of their arguments between ours and Claude Code's, since hooks, agents and rules that others
publish use the latter. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

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
"""Claude Code's name of each of our tools."""

_OTHER_NAMES: Mapping[str, str] = {
    "MultiEdit": "edit_file",
    "NotebookEdit": "edit_file",
    "Task": DELEGATE,
    "View": "read_file",
}

"""Our tool for further names of Claude Code, old ones among them."""

_ARGUMENT_NAMES: Mapping[str, Mapping[str, str]] = {
    "read_file": {"path": "file_path", "start_line": "offset"},
    "write_file": {"path": "file_path"},
    "edit_file": {"path": "file_path", "old": "old_string", "new": "new_string"},
    DELEGATE: {"task": "prompt", "agent": "subagent_type"},
    "skill": {"name": "skill"},
}
"""For each of our tools, Claude Code's names of those arguments that have another name there."""


def claude_name(tool: str) -> str:
    """Claude Code's name of one of our tools; that of an MCP server's tool is `mcp__server__tool`."""
    return CLAUDE_NAMES.get(tool) or (f"mcp__{tool}" if "__" in tool else tool)


def our_name(tool: str) -> str:
    """Our name of one of Claude Code's tools; empty where we have no such tool. All tools of a server are `mcp__server` there."""
    if tool.startswith("mcp__"):
        name = tool.removeprefix("mcp__")
        return name if "__" in name else f"{name}__*"
    ours = {theirs: name for name, theirs in CLAUDE_NAMES.items()}
    return ours.get(tool) or _OTHER_NAMES.get(tool, "")


def is_listed(tool: str, names: Collection[str]) -> bool:
    """Whether a list of names, which may have wildcards (`github__*`), holds this tool."""
    return tool in names or any("*" in name and fnmatchcase(tool, name) for name in names)


def claude_arguments(tool: str, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a call of our tool `tool` under Claude Code's names."""
    names = _ARGUMENT_NAMES.get(tool, {})
    return {names.get(name, name): value for name, value in arguments.items()}


def our_arguments(tool: str, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a call under our names; `tool` is our name, the arguments have Claude Code's."""
    names = {theirs: ours for ours, theirs in _ARGUMENT_NAMES.get(tool, {}).items()}
    return {names.get(name, name): value for name, value in arguments.items()}
