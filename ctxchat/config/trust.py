"""What a person trusts: not a folder, but what its settings held when it was looked at. Anything else is not trusted.

Only that of a project's settings counts here which could run something or change permissions, and the files its commands name.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import msgspec

from ctxchat.config.atomic import alone, write_text
from ctxchat.config.customizations.skill_files import skill_folder_files
from ctxchat.config.problems import Problem
from ctxchat.config.toml_file import read_toml
from ctxchat.config.toml_positions import literal
from ctxchat.config.trees import Tree
from ctxchat.core.prompt_files import PromptFile

MAX_SHOWN_CHARS = 2000
"""Characters of a value: a command is shown whole where that can be, it is what the person decides on."""


def held_lines(held: Tree) -> tuple[str, ...]:
    """A line for each thing that waits for trust, those that run something first."""
    return tuple(line for key in sorted(held, key=_weight) for line in _describe_entry(key, held[key]))


def _weight(key: str) -> int:
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
    does = {
        "run": f"runs {_short(str(hook.get('command', '')))}",
        "notify": "shows you a text",
        "inject": f"tells the model: {_short(str(hook.get('text', '')))}",
        "compact_context": "makes room",
    }
    only = f" for {_short(str(hook['matcher']))}" if hook.get("matcher") else ""
    return f"hook at {hook['event']}{only}: {does[hook['action']]}"


def _server(name: str, server: Mapping[str, Any]) -> str:
    start = " ".join([str(server.get("command", "")), *map(str, server.get("args", ()))]).strip()
    does = f"starts {_short(start)}" if start else f"talks to {_short(str(server.get('url', '')))}"
    return f"server {_short(name)}: {does}"


def _pairs(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {_short(literal(value))}" for key, value in table.items())


def _short(text: str) -> str:
    text = _printable(text)
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…"


MAX_SKILL_FILES = 200
"""Files of a skill's folder that belong to what is trusted."""

MAX_HASHED_BYTES = 50_000_000
"""Bytes of a file above which it is known by its size and the moment it last changed, not by what is in it."""


class Content(msgspec.Struct, frozen=True):
    """What a project's settings would do in a trusted folder: `held`, the values by dotted key; `lines`, the same in words for a
    person, with the files that commands name; `digest`, which stands for all of it. `files` are those the commands name,
    `prompts` its skills and command files."""

    held: Tree = {}
    lines: tuple[str, ...] = ()
    digest: str = ""
    files: tuple[Path, ...] = ()
    prompts: tuple[PromptFile, ...] = ()


class Trusted(msgspec.Struct, frozen=True):
    """What was trusted of a folder, as it was then. Without a digest only the folder itself was: nothing is trusted by that."""

    folder: str
    digest: str = ""
    lines: tuple[str, ...] = ()


def content(workspace: Path, held: Tree, prompts: Sequence[PromptFile] = ()) -> Content:
    """What a project holds now, its skills and command files among it. Reads their files, and those that its commands name."""
    if not held and not prompts:
        return Content(digest="nothing")
    files = dict(_named_files(workspace, held))
    told = [f"file {_printable(name)}: {mark[:12]}" for name, mark in files.items()]
    files |= dict(_prompt_marks(workspace, prompts))
    digest = hashlib.sha256(msgspec.json.encode([held, files], order="deterministic", enc_hook=str)).hexdigest()
    lines = (*held_lines(held), *(_prompt_line(prompt, workspace) for prompt in prompts), *told)
    return Content(held, lines, digest, tuple(workspace / name for name in files), tuple(prompts))


def _prompt_line(prompt: PromptFile, workspace: Path) -> str:
    """A skill's description is in every request, so it is shown whole."""
    return f"{_printable(prompt.title)} ({_relative(Path(prompt.path), workspace)}): {_short(prompt.description)}"


def _relative(path: Path, workspace: Path) -> str:
    return _printable(str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path))


def _prompt_marks(workspace: Path, prompts: Sequence[PromptFile]) -> Iterator[tuple[str, str]]:
    root = Path(os.path.realpath(workspace))
    for prompt in prompts:
        for file in skill_folder_files(prompt, MAX_SKILL_FILES):
            real = Path(os.path.realpath(file))
            try:
                yield _relative(file, workspace), _mark(real, real.is_relative_to(root))
            except OSError:
                yield _relative(file, workspace), "unreadable"


def trusted(config: Path, folder: Path) -> Trusted | None:
    """What was trusted of exactly this folder; what lies beneath one must be trusted itself."""
    here = str(folder.resolve())
    return next((each for each in _stored(config)[0] if each.folder == here), None)


def trust(config: Path, folder: Path, looked_at: Content) -> None:
    """Trust what was looked at, and nothing that is there by now instead. A broken file is kept as `.broken`. Raises OSError."""
    import tomli_w

    here = str(folder.resolve())
    path = _file(config)
    with alone(path):
        known, broken = _stored(config)
        if broken:
            path.replace(path.with_name(path.name + ".broken"))
        new = Trusted(here, looked_at.digest, looked_at.lines)
        kept = [each for each in known if each.folder != here]
        write_text(path, tomli_w.dumps({"trusted": [msgspec.to_builtins(each) for each in (*kept, new)]}))


def trusted_folders(config: Path) -> tuple[Trusted, ...]:
    """All that was ever trusted."""
    return _stored(config)[0]


def distrust(config: Path, folder: Path) -> bool:
    """Trust a folder no longer, which may be gone; False where it was not trusted. Raises OSError."""
    import tomli_w

    path = _file(config)
    with alone(path):
        known, _ = _stored(config)
        kept = [each for each in known if each.folder not in {str(folder), str(folder.resolve())}]
        if len(kept) == len(known):
            return False
        write_text(path, tomli_w.dumps({"trusted": [msgspec.to_builtins(each) for each in kept]}))
    return True


def trust_problem(config: Path) -> Problem | None:
    """What is wrong with the file that keeps all this."""
    return _stored(config)[1]


def _stored(config: Path) -> tuple[tuple[Trusted, ...], Problem | None]:
    path = _file(config)
    found = read_toml(path)
    if found.tree is None:
        return (), found.problem
    try:
        entries = msgspec.convert(found.tree.get("trusted", []), tuple[Trusted, ...])
        folders = msgspec.convert(found.tree.get("folders", []), tuple[str, ...])  # as it was written at first
    except msgspec.ValidationError as error:
        return (), Problem(f"is damaged: {error}", file=str(path))
    known = {each.folder for each in entries}
    return (*entries, *(Trusted(folder) for folder in folders if folder not in known)), None


def _file(config: Path) -> Path:
    return config / "trusted.toml"


def _named_files(workspace: Path, held: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The workspace's files that commands of hooks and servers name, each with a mark of what it is and holds."""
    root = Path(os.path.realpath(workspace))
    words = [part for word in _command_words(held) for part in (word, word.partition("=")[2]) if part]
    words += [found for word in words if set(word) & set("*?[") for found in _globbed(word, root)]
    for word in dict.fromkeys(words):
        place = root / word
        try:
            real = Path(os.path.realpath(place))
            ours = real.is_relative_to(root)
            near = ours or Path(os.path.normpath(place)).is_relative_to(root)
            if near and (mark := _mark(real, ours)):
                yield word, mark
        except (OSError, ValueError):  # no path at all, or one that cannot be looked at
            continue


def _globbed(word: str, root: Path) -> Iterator[str]:
    if not os.path.isabs(word) and ".." not in word.split("/"):  # noqa: PTH117
        yield from islice(glob.iglob(word, root_dir=root), _MAX_GLOBBED)  # noqa: PTH207 - bash's own rules


_PROJECT_FOLDER = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|PWD)\}|\$(CLAUDE_PROJECT_DIR|PWD)\b")
"""How hooks name the project's folder, those in Claude Code's form too."""

_BUILD_FILES = {
    **dict.fromkeys(["make", "gmake"], ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(["npm", "npx", "pnpm", "yarn", "bun"], ("package.json",)),
    **dict.fromkeys(["just"], ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(["tox", "nox"], ("tox.ini", "noxfile.py")),
    "pre-commit": (".pre-commit-config.yaml",),
}
"""Where a program that is told no file finds out what to run."""

_MAX_GLOBBED = 100
"""Files of one glob that belong to what is trusted."""


def in_project(command: str, folder: str) -> str:
    """The command with the project's folder in the place of its name."""
    return _PROJECT_FOLDER.sub(lambda match: folder, command)


def _command_words(held: Mapping[str, Any]) -> Iterator[str]:
    for hook in held.get("hooks", ()):
        yield from _path_words(in_project(str(hook.get("command", "")), "."))
    for server in held.get("mcp", {}).values():
        yield from (str(server.get("command", "")), *map(str, server.get("args", ())))


def _path_words(command: str) -> list[str]:
    """What may be a path in it, whatever a shell makes of its signs, also below a folder it goes to, and what its programs look
    for by themselves."""
    pieces = re.split(r"[\s;&|()<>{}'\"`]+", command) + re.split(r"[\s;&|()<>{}`]+", re.sub(r"['\"\\]", "", command))
    with suppress(ValueError):
        pieces = [*shlex.split(command), *pieces]
    found = [*pieces]
    for program, named in pairwise(pieces):
        found += [f"{named}/{word}" for word in pieces] if program in {"cd", "pushd", "-C"} else []
        found += [f"{named.replace('.', '/')}{end}" for end in _MODULE] if program == "-m" else []
    return [*found, *(file for word in pieces for file in _BUILD_FILES.get(word, ()))]


_MODULE = (".py", "/__init__.py", "/__main__.py")


def _mark(file: Path, ours: bool) -> str:
    """Empty for what is no file. Of one outside the workspace it counts where it lies."""
    if not file.is_file():
        return ""
    if not ours:
        return hashlib.sha256(os.fsencode(file)).hexdigest()
    info = file.stat()
    if info.st_size > MAX_HASHED_BYTES:
        about = f"{info.st_size} {info.st_ctime_ns} {info.st_ino}"
        return hashlib.sha256(about.encode()).hexdigest()
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in text)
