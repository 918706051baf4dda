"""Finds skills: folders below `skills/` with a `SKILL.md`, in the format of the open standard (agentskills.io)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ctxchat.config.customizations.frontmatter import split_frontmatter, text_of
from ctxchat.config.customizations.places import (
    CustomizationFolder,
    SourceFile,
    read_source,
)
from ctxchat.config.problems import Problem
from ctxchat.core.prompt_files import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, PromptFile
from ctxchat.repository_files import files_below, is_file, is_folder, listed

MAX_SKILL_FILES = 200
"""Files and folders in the folder of a skill."""

_SKILL_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")


def find_skills(place: CustomizationFolder) -> Iterator[PromptFile | Problem]:
    """The skills of a folder, and problems of those that cannot be used."""
    for path in listed(place.folder / "skills"):
        if is_folder(path):
            if any(is_file(file := path / name) for name in ("SKILL.md", "skill.md")):
                if place.within and files_below(path, MAX_SKILL_FILES) is None:
                    what = f"has more files beside it than the {MAX_SKILL_FILES} that are looked at"
                    yield Problem(what, file=str(file))
                else:
                    yield skill_of(read_source(file, place), path.name, place, str(path))
        elif place.made_for == "ctxchat" and path.suffix == ".md":  # the format of earlier versions
            yield skill_of(read_source(path, place), path.stem, place)


def skill_of(file: SourceFile, name: str, place: CustomizationFolder, folder: str = "") -> PromptFile | Problem:
    """The skill in a file. `name` is the name of its folder, which counts where the file has no usable name."""
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


def skill_files(skill: PromptFile) -> list[Path] | None:
    """The file of a skill or command, and all other files in a skill's folder: a person looks at them before trusting a project.
    None where there are more than `MAX_SKILL_FILES`."""
    return files_below(Path(skill.folder), MAX_SKILL_FILES) if skill.folder else [Path(skill.path)]


def first_line(text: str, most: int = 160) -> str:
    """The first line that is not empty, without Markdown's marks, at most `most` characters."""
    return next((line for raw in text.splitlines() if (line := raw.lstrip("#>- ").strip())), "")[:most]


def _is_name(name: str) -> bool:
    return len(name) <= MAX_NAME_CHARS and bool(_SKILL_NAME.fullmatch(name))
