"""What a project's settings would do once its folder is trusted, in words for a person. Values in, lines out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxchat.config.literals import literal
from ctxchat.config.trees import Tree

MOST = 2000
"""Characters of a value: a command is shown whole where that can be, it is what the person decides on."""


def held_lines(held: Tree) -> tuple[str, ...]:
    """A line for each thing that waits for trust, those that run something first."""
    return tuple(line for key in sorted(held, key=_weight) for line in _lines(key, held[key]))


def _weight(key: str) -> int:
    first = (
        "hooks",
        "mcp",
        "permissions.mode",
        "permissions.rules",
        "permissions.sandbox",
        "permissions.network",
        "permissions.writable",
        "interface.editor",
    )
    return first.index(key) if key in first else len(first)


def _lines(key: str, value: Any) -> Iterator[str]:
    match key, value:
        case "hooks", list():
            yield from (_hook(hook) for hook in value)
        case "mcp", Mapping():
            yield from (_server(str(name), server) for name, server in value.items())
        case (("models" | "agents"), Mapping()):
            for name, table in value.items():
                yield f"{key.removesuffix('s')} {_plain(str(name))}: {_pairs(table)}"
        case "permissions.rules", list():
            yield from (f"allowed without asking: {_plain(str(rule))}" for rule in value)
        case _, Mapping():
            yield f"{key}: {_pairs(value)}"
        case _:
            yield f"{key} = {_plain(literal(value))}"


def _hook(hook: Mapping[str, Any]) -> str:
    does = {
        "run": f"runs {_plain(str(hook.get('command', '')))}",
        "notify": "shows you a text",
        "inject": f"tells the model: {_plain(str(hook.get('text', '')))}",
        "compact_context": "makes room",
    }
    return f"hook at {hook['event']}: {does[hook['action']]}"


def _server(name: str, server: Mapping[str, Any]) -> str:
    start = " ".join([str(server.get("command", "")), *map(str, server.get("args", ()))]).strip()
    does = f"starts {_plain(start)}" if start else f"talks to {_plain(str(server.get('url', '')))}"
    return f"server {_plain(name)}: {does}"


def _pairs(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {_plain(literal(value))}" for key, value in table.items())


def _plain(text: str) -> str:
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= MOST else text[: MOST - 1] + "…"
