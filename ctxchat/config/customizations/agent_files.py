"""Finds agents in Markdown files below `agents/`: the front matter has their settings, the text their instructions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ctxchat.config.customizations.frontmatter import names_of, split_frontmatter, text_of
from ctxchat.config.customizations.places import CustomizationFolder, markdown_files, read_source
from ctxchat.config.problems import Problem
from ctxchat.core.tool_names import CLAUDE_NAMES, our_name

_MODES = {"plan": "plan", "acceptEdits": "auto-edit"}
"""Claude Code's permission modes and ctxchat's for them. Modes that ask less often than ctxchat's are ignored."""

_USED = frozenset(
    ("name", "description", "tools", "disallowedTools", "model", "effort", "skills", "maxTurns", "permissionMode")
)
_OURS = frozenset(("permissions", "prompt"))
_OWN_PARTS = ("hooks", "mcpServers")
"""Fields that would run something: one that is left out is told to the person at the start."""


class Unused(msgspec.Struct, frozen=True):
    """What a file says that has no effect in ctxchat: fields and values, as they are shown."""

    words: tuple[str, ...]


def find_agents(place: CustomizationFolder) -> Iterator[tuple[str, dict[str, Any], str] | Unused | Problem]:
    """The agents of a folder: name, table of settings, file."""
    for _, path in markdown_files(place.folder / "agents"):
        if path.stem.lower() == "readme":
            continue
        file = read_source(path, place)
        fields, body = split_frontmatter(file.text)
        if file.problem or not fields:
            yield Problem(file.problem or "has no front matter, so it is no agent", file=str(path))
            continue
        for name in _OWN_PARTS:
            if name in fields:
                yield Problem("an agent has none of its own here; they are left out", name, file=str(path))
        if unused := tuple(_unused(fields)):
            yield Unused(unused)
        yield text_of(fields, "name") or path.stem, agent_table(fields, body), str(path)


def agent_table(fields: dict[str, Any], body: str) -> dict[str, Any]:
    """The settings of an agent. A model named only by its family (`sonnet`) is left out, so that the session's model counts;
    tools that ctxchat does not have are left out as well."""
    table: dict[str, Any] = {"description": " ".join(text_of(fields, "description").split())}
    if body.strip():
        table["prompt"] = body.strip()
    tools = names_of(fields, "tools")
    if tools is not None and "*" not in tools:
        table["tools"] = list(dict.fromkeys(name for tool in tools if (name := _tool(tool))))
    denied = [tool for tool in names_of(fields, "disallowedTools") or () if "(" not in tool]
    if isinstance(switches := fields.get("tools"), dict):  # opencode's form: `write: false`
        denied += [tool for tool, on in switches.items() if on is False]
    if names := list(dict.fromkeys(name for tool in denied if (name := _tool(tool)))):
        table["disallowed_tools"] = names
    if skills := names_of(fields, "skills"):
        table["skills"] = list(skills)
    model = text_of(fields, "model")
    if "/" in model:
        table["model"] = model
    if mode := _MODES.get(text_of(fields, "permissionMode")) or text_of(fields, "permissions"):
        table["permissions"] = mode
    if effort := text_of(fields, "effort"):
        table["effort"] = effort
    if (turns := text_of(fields, "maxTurns")).isdecimal() and len(turns) < 5 and int(turns):
        table["max_rounds"] = int(turns)
    return table


def _unused(fields: dict[str, Any]) -> Iterator[str]:
    """The fields of an agent that have no effect, and the values of others that have none. A model's family is not among them:
    nearly every file has one."""
    yield from (name for name in fields if name not in _USED | _OURS and name not in _OWN_PARTS)
    mode = text_of(fields, "permissionMode")
    if mode and mode not in {*_MODES, "default"}:
        yield f"permissionMode: {mode}"
    yield from (f"the tool {tool}" for tool in names_of(fields, "tools") or () if tool != "*" and not _tool(tool))
    yield from (f"disallowedTools: {tool}" for tool in names_of(fields, "disallowedTools") or () if "(" in tool)


_LOWER_NAMES = {theirs.lower(): name for name, theirs in CLAUDE_NAMES.items()}
"""Our tools by the names that opencode has for them."""


def _tool(name: str) -> str:
    """ctxchat's name of a tool, from its own or another agent's name; empty where there is none. A rule in brackets (`Bash(git
    *)`) is dropped: ctxchat asks for permission itself."""
    bare = name.partition("(")[0].strip()
    return our_name(bare) or _LOWER_NAMES.get(bare) or (bare if bare.islower() else "")
