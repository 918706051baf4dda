"""Reads hooks in Claude Code's JSON format, from its settings files and from ctxchat's `hooks.json`, as tables of the
settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from ctxchat.config.customizations.places import CustomizationFolder, exists, read_source
from ctxchat.config.problems import Problem
from ctxchat.core.claude_hooks import CLAUDE_EVENTS

DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 3600.0

MAX_NAMED_EVENTS = 30
"""Unknown events of a file that are named."""


def hook_files(place: CustomizationFolder) -> tuple[str, ...]:
    """The names of files in a folder that may have hooks."""
    names = {"ctxchat": ("hooks.json",), "claude": ("settings.json", "settings.local.json"), "agents": ()}
    return names[place.made_for]


def find_hooks(place: CustomizationFolder) -> Iterator[tuple[dict[str, Any], str] | Problem]:
    """The hooks of a folder as tables of the settings, each with its file."""
    for name in hook_files(place):
        path = place.folder / name
        if not exists(path):
            continue
        file = read_source(path, place)
        try:
            tree = {} if file.problem else msgspec.json.decode(file.text or "{}")
        except (msgspec.DecodeError, RecursionError) as error:
            yield Problem(f"is not valid JSON: {error}", file=str(path))
            continue
        if file.problem:
            yield Problem(file.problem, file=str(path))
        elif isinstance(tree, dict) and tree.get("disableAllHooks") is not True:
            for hook in _hooks(tree.get("hooks"), str(path)):
                yield hook if isinstance(hook, Problem) else (hook, str(path))


def _hooks(tree: Any, file: str) -> Iterator[dict[str, Any] | Problem]:
    """The hooks in a file's `hooks` object, as tables of our settings, and the problems with it."""
    if tree is not None and not isinstance(tree, dict):
        yield Problem("must be an object of events", "hooks", file=file)
        return
    if unknown := [str(event) for event in tree or () if event not in CLAUDE_EVENTS]:
        named = ", ".join([*unknown[:MAX_NAMED_EVENTS], *(["…"] if unknown[MAX_NAMED_EVENTS:] else [])])
        yield Problem(f"events that are not known here, their hooks are left out: {named}", "hooks", file=file)
    for event, groups in (tree or {}).items():
        if event not in CLAUDE_EVENTS:
            continue
        for group in groups if isinstance(groups, list) else ():
            matcher = group.get("matcher", "") if isinstance(group, dict) else ""
            for hook in group.get("hooks", ()) if isinstance(group, dict) else ():
                yield _hook(event, matcher, hook, file)


def _hook(event: str, matcher: Any, hook: Any, file: str) -> dict[str, Any] | Problem:
    """One hook of Claude Code as a table of our settings, or the problem with it."""
    kind = hook.get("type", "command") if isinstance(hook, dict) else "none"
    command = hook.get("command") if isinstance(hook, dict) else None
    if kind != "command" or not isinstance(command, str) or not command.strip() or "if" in hook:
        what = "a condition `if`" if kind == "command" and command else f"the type {kind!r}"
        return Problem(f"has {what}, which is not known here; it is left out", f"hooks.{event}", file=file)
    table: dict[str, Any] = {
        "event": CLAUDE_EVENTS[event],
        "action": "run",
        "command": _with_arguments(command, hook.get("args")),
        "form": "claude",
        "timeout": _timeout(hook.get("timeout")),
        "name": f"{event}{f' {matcher}' if isinstance(matcher, str) and matcher else ''}",
    }
    if isinstance(matcher, str) and matcher not in {"", "*"}:
        table["matcher"] = matcher
    if hook.get("async") is True or hook.get("asyncRewake") is True:
        table["background"] = True
    if hook.get("sandbox") is False:
        table["sandbox"] = False
    return table


def _with_arguments(command: str, arguments: Any) -> str:
    """The command line for a program and its list of arguments, quoted except for the variable of the project's folder."""
    if not isinstance(arguments, list):
        return command
    words = (_FOLDER.split(str(word)) for word in (command, *arguments))
    return " ".join(
        '"$CLAUDE_PROJECT_DIR"'.join(part and shlex.quote(part) for part in parts) or "''" for parts in words
    )


_FOLDER = re.compile(r"\$\{CLAUDE_PROJECT_DIR\}|\$CLAUDE_PROJECT_DIR\b")


def _timeout(value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return min(MAX_TIMEOUT_S, max(0.1, float(value))) if good else DEFAULT_TIMEOUT_S
