"""Collects the skills, command files, hooks, agents and servers that the other modules of this package find in folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ctxchat.config.customizations.agent_files import Unused, find_agents
from ctxchat.config.customizations.command_files import find_commands
from ctxchat.config.customizations.hook_files import find_hooks, hook_files
from ctxchat.config.customizations.places import MAX_PARTS, CustomizationFolder
from ctxchat.config.customizations.server_files import FILE, find_servers
from ctxchat.config.customizations.skill_files import find_skills
from ctxchat.config.problems import KeyPath, Problem
from ctxchat.core.prompt_files import PromptFile

T = TypeVar("T")

MAX_NAMED_UNUSED = 40
"""Fields and values without effect that are named of one folder, the most frequent ones."""


class Customizations(msgspec.Struct, frozen=True):
    """All customizations of a project or a person: skills and command files as `prompts`; hooks, agents and servers as a `tree`
    of settings, with the file of each entry in `files`; `problems` of invalid ones; what of their files is `without_effect`, a
    sentence each folder; and the paths to be `watched` for edits."""

    prompts: tuple[PromptFile, ...] = ()
    tree: dict[str, Any] = {}
    files: dict[KeyPath, str] = {}
    problems: tuple[Problem, ...] = ()
    without_effect: tuple[str, ...] = ()
    watched: tuple[Path, ...] = ()

    def file_of(self, key: KeyPath) -> str:
        """The file that a key of the tree comes from; empty for a key that is not in the tree."""
        return next((self.files[key[:n]] for n in range(len(key), 0, -1) if key[:n] in self.files), "")


def collect(places: Iterable[CustomizationFolder]) -> Customizations:
    """Collect the customizations of these folders; of two with one name and kind the first one counts. Blocking; never raises
    OSError."""
    collected = _Collected()
    for place in places:
        for folder in ("skills", "commands", "agents"):
            collected.watched += [place.folder / folder]
        collected.watched += [place.folder / name for name in hook_files(place)]
        for prompt in collected.valid(find_skills(place), place):
            collected.add_prompt(prompt)
        if place.made_for != "agents":
            for prompt in collected.valid(find_commands(place), place):
                collected.add_prompt(prompt)
            for name, table, file in collected.valid(find_agents(place), place):
                collected.add_entry("agents", name, table, file)
        for hook, file in collected.valid(find_hooks(place), place):
            collected.add_hook(hook, file)
        if place.made_for == "claude" and place.within:
            path = place.within / FILE
            collected.watched += [path]
            for name, table in collected.valid(find_servers(path, place), place):
                collected.add_entry("mcp", name, table, str(path))
    prompts = tuple(collected.prompts.values())
    watched = (
        *collected.watched,
        *(Path(prompt.path) for prompt in prompts),
        *map(Path, dict.fromkeys(collected.files.values())),
    )
    return Customizations(
        prompts,
        collected.tree,
        collected.files,
        tuple(collected.problems),
        tuple(_without_effect(folder, words) for folder, words in collected.unused.items()),
        tuple(dict.fromkeys(watched)),
    )


def _without_effect(folder: Path, words: Counter[str]) -> str:
    """A sentence that names what has no effect, with the number of files where there are several."""
    named = [word if files == 1 else f"{word} ({files} files)" for word, files in words.most_common(MAX_NAMED_UNUSED)]
    more = [f"{len(words) - len(named)} more"] if len(words) > len(named) else []
    return f"{folder}: {', '.join([*named, *more])}"


class _Collected:
    def __init__(self) -> None:
        self.prompts: dict[str, PromptFile] = {}
        self.tree: dict[str, Any] = {}
        self.files: dict[KeyPath, str] = {}
        self.problems: list[Problem] = []
        self.unused: dict[Path, Counter[str]] = {}
        self.watched: list[Path] = []
        self.parts = 0

    def valid(self, found: Iterable[T | Unused | Problem], place: CustomizationFolder) -> Iterator[T]:
        """The valid ones among what was found in a folder, up to `MAX_PARTS` in all; problems and what is unused are stored."""
        for each in found:
            if isinstance(each, Unused):
                self.unused.setdefault(place.folder, Counter()).update(each.words)
                continue
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
