"""Finds agents in Markdown files below `agents/`: the front matter has their settings, the text their instructions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxchat.config.customizations.frontmatter import names_of, split_frontmatter, text_of
from ctxchat.config.customizations.places import CustomizationFolder, markdown_files, read_source
from ctxchat.config.problems import Problem
from ctxchat.core.tool_names import our_name

_MODES = {"plan": "plan", "acceptEdits": "auto-edit"}
"""Claude Code's permission modes and ctxchat's for them. Modes that ask less often than ctxchat's are ignored."""


def find_agents(place: CustomizationFolder) -> Iterator[tuple[str, dict[str, Any], str] | Problem]:
    """The agents of a folder: name, table of settings, file."""
    for _, path in markdown_files(place.folder / "agents"):
        if path.stem.lower() == "readme":
            continue
        file = read_source(path, place)
        fields, body = split_frontmatter(file.text)
        if file.problem or not fields:
            yield Problem(file.problem or "has no front matter, so it is no agent", file=str(path))
            continue
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
    model = text_of(fields, "model")
    if "/" in model:
        table["model"] = model
    if mode := _MODES.get(text_of(fields, "permissionMode")) or text_of(fields, "permissions"):
        table["permissions"] = mode
    if effort := text_of(fields, "effort"):
        table["effort"] = effort
    return table


def _tool(name: str) -> str:
    """ctxchat's name of a tool, from its own or another agent's name; empty where there is none. A rule in brackets (`Bash(git
    *)`) is dropped: ctxchat asks for permission itself."""
    bare = name.partition("(")[0].strip()
    return our_name(bare) or (bare if bare.islower() else "")
