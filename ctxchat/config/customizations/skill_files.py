"""Skills as files: a folder with a `SKILL.md` by the open standard (agentskills.io), below `skills/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ctxchat.config.customizations.frontmatter import split_frontmatter, text_of
from ctxchat.config.customizations.places import CustomizationFolder, SourceFile, listed, read_source
from ctxchat.config.problems import Problem
from ctxchat.core.prompt_files import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, PromptFile

_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")


def find_skills(place: CustomizationFolder) -> Iterator[PromptFile | Problem]:
    """The skills of a place, and what is wrong with those that are none."""
    for path in listed(place.folder / "skills"):
        if path.is_dir():
            if any((file := path / name).is_file() for name in ("SKILL.md", "skill.md")):
                yield skill_of(read_source(file, place), path.name, place, str(path))
        elif place.made_for == "ctxchat" and path.suffix == ".md":  # as our earlier versions had them
            yield skill_of(read_source(path, place), path.stem, place)


def skill_of(file: SourceFile, name: str, place: CustomizationFolder, folder: str = "") -> PromptFile | Problem:
    """A skill by what its file says; `name` is its folder's, which counts where the file has none that can be used."""
    if file.problem:
        return Problem(file.problem, file=str(file.path))
    fields, body = split_frontmatter(file.text)
    written = text_of(fields, "name")
    name = written if _is_name(written) else name
    if not _is_name(name):
        return Problem(f"has no usable name, at most {MAX_NAME_CHARS} letters, digits and -", file=str(file.path))
    described = text_of(fields, "description")
    if when := text_of(fields, "when_to_use"):
        described = f"{described} {when}".strip()
    return PromptFile(
        name=name,
        kind="skill",
        description=described[:MAX_DESCRIPTION_CHARS] or first_line(body) or "no description",
        body=body,
        path=str(file.path),
        origin=place.origin,
        folder=folder,
        hint=text_of(fields, "argument-hint"),
        by_model=fields.get("disable-model-invocation") is not True,
        by_person=fields.get("user-invocable") is not False,
    )


def skill_folder_files(skill: PromptFile, most: int) -> list[Path]:
    """The files of a skill's folder, at most so many."""
    found: list[Path] = []
    waiting = [Path(skill.folder)] if skill.folder else []
    while waiting and len(found) < most:
        for path in listed(waiting.pop(0)):
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)
            elif path.is_file():
                found.append(path)
    return found[:most] if skill.folder else [Path(skill.path)]


def first_line(text: str, most: int = 160) -> str:
    """The first line that says something, without the marks of a heading."""
    return next((line for raw in text.splitlines() if (line := raw.lstrip("#>- ").strip())), "")[:most]


def _is_name(name: str) -> bool:
    return len(name) <= MAX_NAME_CHARS and bool(_NAME.fullmatch(name))
