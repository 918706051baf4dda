"""Brings together what the modules beside it find, for a project or for the person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ctxchat.config.customizations.agent_files import find_agents
from ctxchat.config.customizations.command_files import find_commands
from ctxchat.config.customizations.hook_files import find_hooks, hook_files
from ctxchat.config.customizations.places import MAX_PARTS, CustomizationFolder
from ctxchat.config.customizations.server_files import FILE, find_servers
from ctxchat.config.customizations.skill_files import find_skills
from ctxchat.config.problems import KeyPath, Problem
from ctxchat.core.prompt_files import PromptFile

T = TypeVar("T")


class Customizations(msgspec.Struct, frozen=True):
    """Skills and command files; a tree of settings, with the file of each of its entries; what is wrong; what to watch for
    edits."""

    prompts: tuple[PromptFile, ...] = ()
    tree: dict[str, Any] = {}
    files: dict[KeyPath, str] = {}
    problems: tuple[Problem, ...] = ()
    watched: tuple[Path, ...] = ()

    def file_of(self, key: KeyPath) -> str:
        """Where a key of the tree is written; empty for one that is not of it."""
        return next((self.files[key[:n]] for n in range(len(key), 0, -1) if key[:n] in self.files), "")


def collect(places: Iterable[CustomizationFolder]) -> Customizations:
    """Everything that lies in these places; of two of one name and kind the first one counts. Blocking; never raises OSError."""
    found = _Collected()
    for place in places:
        for folder in ("skills", "commands", "agents"):
            found.watched += [place.folder / folder]
        found.watched += [place.folder / name for name in hook_files(place)]
        for prompt in found.right(find_skills(place), place):
            found.add_prompt(prompt)
        if place.made_for != "agents":
            for prompt in found.right(find_commands(place), place):
                found.add_prompt(prompt)
            for name, table, file in found.right(find_agents(place), place):
                found.add_entry("agents", name, table, file)
        for hook, file in found.right(find_hooks(place), place):
            found.add_hook(hook, file)
        if place.made_for == "claude" and place.within:
            path = place.within / FILE
            found.watched += [path]
            for name, table in found.right(find_servers(path, place), place):
                found.add_entry("mcp", name, table, str(path))
    prompts = tuple(found.prompts.values())
    watched = (
        *found.watched,
        *(Path(prompt.path) for prompt in prompts),
        *map(Path, dict.fromkeys(found.files.values())),
    )
    return Customizations(prompts, found.tree, found.files, tuple(found.problems), tuple(dict.fromkeys(watched)))


class _Collected:
    def __init__(self) -> None:
        self.prompts: dict[str, PromptFile] = {}
        self.tree: dict[str, Any] = {}
        self.files: dict[KeyPath, str] = {}
        self.problems: list[Problem] = []
        self.watched: list[Path] = []
        self.parts = 0

    def right(self, found: Iterable[T | Problem], place: CustomizationFolder) -> Iterator[T]:
        """What is no problem; those are kept."""
        for each in found:
            self.parts += 1
            if self.parts > MAX_PARTS:
                if self.parts == MAX_PARTS + 1:
                    what = f"holds more than the {MAX_PARTS} parts that are looked at; the rest is left out"
                    self.problems.append(Problem(what, file=str(place.folder)))
                return
            if isinstance(each, Problem):
                self.problems.append(each)
            else:
                yield each

    def add_prompt(self, prompt: PromptFile) -> None:
        self.prompts.setdefault(prompt.name, prompt)

    def add_entry(self, table: str, name: str, value: dict[str, Any], file: str) -> None:
        if name not in self.tree.setdefault(table, {}):
            self.tree[table][name] = value
            self.files[table, name] = file

    def add_hook(self, hook: dict[str, Any], file: str) -> None:
        hooks = self.tree.setdefault("hooks", [])
        self.files["hooks", len(hooks)] = file
        hooks.append(hook)
