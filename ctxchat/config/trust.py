"""Stores what a person trusts: not a folder, but the content of its settings when the person looked at them. A change ends the
trust.

It covers those project settings that can run something or change permissions, and the files that their commands name.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.config.atomic import alone, write_text
from ctxchat.config.customizations.skill_files import skill_files
from ctxchat.config.named_files import Marks, TooMuch, named_files
from ctxchat.config.problems import Problem
from ctxchat.config.toml_file import MAX_FILE_BYTES, read_toml
from ctxchat.config.toml_positions import literal
from ctxchat.config.trees import Tree
from ctxchat.core.errors import UsageError
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.sanitize import visible

MAX_SHOWN_CHARS = 2000
"""Characters shown of a value that is no command."""

MAX_COMMAND_CHARS = 8_000
"""Characters of a hook's command, or of a server's whole table. Commands are shown in full, and nobody reads a longer one."""

MAX_STORED_CHARS = 160
"""Characters stored of each line that was trusted."""

_MANY_BLANKS = re.compile(" {9,}")


def held_lines(held: Tree) -> tuple[str, ...]:
    """A line for each setting that needs trust, those that run something first."""
    return tuple(line for key in sorted(held, key=_weight) for line in _describe_entry(key, held[key]))


def _weight(key: str) -> int:
    """The position of a setting in the list that a person is shown: what can run something comes first."""
    first = (
        "hooks",
        "mcp",
        "permissions.mode",
        "permissions.rules",
        "permissions.sandbox",
        "permissions.network",
        "permissions.writable",
        "permissions.readable",
        "interface.editor",
        "keys",
        "interface.keys",
    )
    return first.index(key) if key in first else len(first)


def _describe_entry(key: str, value: Any) -> Iterator[str]:
    """The lines that describe a setting to the person."""
    match key, value:
        case "hooks", list():
            yield from (_hook(hook) for hook in value)
        case "mcp", Mapping():
            yield from (_server(str(name), server) for name, server in value.items())
        case (("models" | "agents"), Mapping()):
            for name, table in value.items():
                yield f"{key.removesuffix('s')} {_short(str(name))}: {_pairs(table)}"
        case "permissions.rules", list():
            yield from (f"allowed without asking: {_short(str(rule))}" for rule in value)
        case _, Mapping():
            yield f"{key}: {_pairs(value)}"
        case _:
            yield f"{key} = {_short(literal(value))}"


def _hook(hook: Mapping[str, Any]) -> str:
    """A line for a hook: its event, and what it does."""
    does = {
        "run": f"runs {_shown(str(hook.get('command', '')))}",
        "notify": "shows you a text",
        "inject": f"tells the model: {_short(str(hook.get('text', '')))}",
        "compact_context": "makes room",
    }
    only = f" for {_short(str(hook['matcher']))}" if hook.get("matcher") else ""
    return f"hook at {hook['event']}{only}: {does[hook['action']]}"


def _server(name: str, server: Mapping[str, Any]) -> str:
    """A line for a server: its command or address, with the rest of its table, since variables and headers may hold keys or
    decide what runs."""
    start = " ".join([str(server.get("command", "")), *map(str, server.get("args", ()))]).strip()
    does = f"starts {_shown(start)}" if start else f"talks to {_shown(str(server.get('url', '')))}"
    if not start and "url" not in server:
        return f"server {_short(name)}, which is yours: {_pairs(server)}"
    shown_or_harmless = {"command", "args", "url", "tools", "timeout", "enabled"}
    more = [f"{key} = {_shown(literal(value))}" for key, value in server.items() if key not in shown_or_harmless]
    return f"server {_short(name)}: {does}{' with ' if more else ''}{', '.join(more)}"


def _pairs(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {_short(literal(value))}" for key, value in table.items())


def _short(text: str) -> str:
    text = _shown(text)
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…"


def _shown(text: str) -> str:
    """The text on one line, with invisible and deceptive characters written out."""
    line = visible(text).replace("\n", "\\n")
    return _MANY_BLANKS.sub(lambda blanks: f" [{len(blanks[0])} blanks] ", line)


MAX_PROMPT_FILES = 5_000
"""Files of all skills and commands of a project, with the other files in their folders."""


class Content(msgspec.Struct, frozen=True):
    """The part of a project's settings that needs trust: `held` has the values by dotted key, `lines` the same in words for a
    person, and `digest` identifies all of it. `files` are those that commands name or that belong to skills; `prompts` are its
    skills and command files. `too_much` says why it cannot be trusted, and is empty where it can."""

    held: Tree = {}
    lines: tuple[str, ...] = ()
    digest: str = ""
    files: tuple[Path, ...] = ()
    prompts: tuple[PromptFile, ...] = ()
    too_much: str = ""


class Trusted(msgspec.Struct, frozen=True):
    """What was trusted of a folder; of long `lines` their beginning and a digest are stored. Without a digest of the content an
    earlier version trusted only the folder itself, which no longer counts."""

    folder: str
    digest: str = ""
    lines: tuple[str, ...] = ()

    def lines_beside(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The stored lines, each that is one of `lines` in full."""
        full = {_stored_line(line): line for line in lines}
        return tuple(full.get(_stored_line(line), line) for line in self.lines)


def _stored_line(line: str) -> str:
    """The line as it is stored: many folders, each with hundreds of agents and skills, share one file."""
    if len(line) <= MAX_STORED_CHARS:
        return line
    digest = f"… {hashlib.sha256(line.encode()).hexdigest()[:12]}"
    return line[: MAX_STORED_CHARS - len(digest)] + digest


def unchanged(workspace: Path, looked_at: Content) -> bool:
    """Whether the project's content is still what was looked at."""
    return content(workspace, looked_at.held, looked_at.prompts).digest == looked_at.digest


def content(workspace: Path, held: Tree, prompts: Sequence[PromptFile] = ()) -> Content:
    """The present content of a project that needs trust. Reads its skills and command files, and the files its commands name.
    Where that is too much, `too_much` is set."""
    if not held and not prompts:
        return Content(digest="nothing")
    root = Path(os.path.realpath(workspace))
    marks = Marks(root)
    try:
        _raise_if_too_long(held)
        files = named_files(root, held, marks, os.environ)
        beside = dict(_prompt_marks(prompts, marks))
    except TooMuch as problem:
        lines = (f"cannot be trusted: {problem}", *held_lines(held))
        return Content(held, lines, secrets.token_hex(16), prompts=tuple(prompts), too_much=str(problem))
    about = [held, files | beside, prompts]
    digest = hashlib.sha256(msgspec.json.encode(about, order="deterministic", enc_hook=str)).hexdigest()
    file_lines = [f"file {_shown(name)}: {mark[:12]}" for name, mark in files.items()]
    lines = (*held_lines(held), *(_prompt_line(prompt, workspace) for prompt in prompts), *file_lines)
    return Content(held, lines, digest, tuple(root / name for name in (*files, *beside)), tuple(prompts))


def _raise_if_too_long(held: Tree) -> None:
    commands = [str(hook.get("command", "")) for hook in held.get("hooks", ())]
    if any(len(text) > MAX_COMMAND_CHARS for text in (*commands, *map(literal, held.get("mcp", {}).values()))):
        raise TooMuch("one of its commands is longer than anybody could look at")


def _prompt_line(prompt: PromptFile, workspace: Path) -> str:
    """A line for a skill or command file, with its description, which goes into every request."""
    return f"{_shown(prompt.title)} ({_relative(Path(prompt.path), workspace)}): {_short(prompt.description)}"


def _relative(path: Path, workspace: Path) -> str:
    return _shown(str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path))


def _prompt_marks(prompts: Sequence[PromptFile], marks: Marks) -> Iterator[tuple[str, str]]:
    """Each file of the skills and commands with a mark of its content. Raises TooMuch."""
    file_count = 0
    for prompt in prompts:
        files = skill_files(prompt)
        file_count += len(files or ())
        if files is None or file_count > MAX_PROMPT_FILES:
            raise TooMuch("its skills have more files than can be looked at")
        for file in files:
            try:
                yield str(file), marks.of(file)
            except OSError:
                yield str(file), "unreadable"


def trusted(config: Path, folder: Path) -> Trusted | None:
    """What was trusted of this folder, None where nothing was. A folder below a trusted one must be trusted itself."""
    here = str(folder.resolve())
    return next((each for each in _stored(config)[0] if each.folder == here), None)


def trust(config: Path, folder: Path, looked_at: Content) -> None:
    """Trust the content that was looked at, even if the folder has changed meanwhile. A broken file is kept as `.broken`. Raises
    OSError, and UsageError where the content is `too_much`."""
    if looked_at.too_much:
        raise UsageError(f"{folder} cannot be trusted: {looked_at.too_much}.")

    here = str(folder.resolve())
    path = _file(config)
    with alone(path):
        stored, broken = _stored(config)
        if broken:
            path.replace(path.with_name(path.name + ".broken"))
        new = Trusted(here, looked_at.digest, tuple(map(_stored_line, looked_at.lines)))
        kept = [*(each for each in stored if each.folder != here), new]
        text = _as_toml(kept)
        for place, each in enumerate(kept):  # what is too large to be read would end the trust in every folder
            if len(text.encode()) <= MAX_FILE_BYTES:
                break
            kept[place] = msgspec.structs.replace(each, lines=())
            text = _as_toml(kept)
        write_text(path, text)


def _as_toml(entries: Sequence[Trusted]) -> str:
    import tomli_w

    return tomli_w.dumps({"trusted": [msgspec.to_builtins(each) for each in entries]})


def trusted_folders(config: Path) -> tuple[Trusted, ...]:
    """Everything that is trusted, by folder."""
    return _stored(config)[0]


def distrust(config: Path, folder: Path) -> bool:
    """Stop trusting a folder, which need not exist any more; False where it was not trusted. Raises OSError."""
    path = _file(config)
    with alone(path):
        stored, _ = _stored(config)
        kept = [each for each in stored if each.folder not in {str(folder), str(folder.resolve())}]
        if len(kept) == len(stored):
            return False
        write_text(path, _as_toml(kept))
    return True


def trust_problem(config: Path) -> Problem | None:
    """The problem with the file that stores the trust, None where there is none."""
    return _stored(config)[1]


def _stored(config: Path) -> tuple[tuple[Trusted, ...], Problem | None]:
    """What is trusted, by the file, and the problem with the file."""
    path = _file(config)
    file = read_toml(path)
    if file.tree is None:
        return (), file.problem
    try:
        entries = msgspec.convert(file.tree.get("trusted", []), tuple[Trusted, ...])
        folders = msgspec.convert(file.tree.get("folders", []), tuple[str, ...])  # the format of early versions
    except msgspec.ValidationError as error:
        return (), Problem(f"is damaged: {error}", file=str(path))
    folders_with_digest = {each.folder for each in entries}
    return (*entries, *(Trusted(folder) for folder in folders if folder not in folders_with_digest)), None


def _file(config: Path) -> Path:
    return config / "trusted.toml"
