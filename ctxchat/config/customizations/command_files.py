"""Finds command files: Markdown files below `commands/`, each a prompt that a person sends as `/name`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxchat.config.customizations.frontmatter import split_frontmatter, text_of
from ctxchat.config.customizations.places import CustomizationFolder, markdown_files, read_source
from ctxchat.config.customizations.skill_files import first_line
from ctxchat.config.problems import Problem
from ctxchat.core.prompt_files import PromptFile

_COMMAND_NAME = re.compile(r"[A-Za-z0-9_][\w.:-]*")


def find_commands(place: CustomizationFolder) -> Iterator[PromptFile | Problem]:
    """The command files of a folder. One in a subfolder has the subfolder's name before its own: `frontend/new.md` is
    `/frontend:new`."""
    for folders, path in markdown_files(place.folder / "commands"):
        parts = (*folders, path.stem)
        if not all(_COMMAND_NAME.fullmatch(part) for part in parts):
            yield Problem("has a name that cannot be typed behind a slash", file=str(path))
            continue
        if path.stem.lower() == "readme":
            continue
        file = read_source(path, place)
        if file.problem:
            yield Problem(file.problem, file=str(path))
            continue
        fields, body = split_frontmatter(file.text)
        yield PromptFile(
            name=":".join(parts),
            kind="command",
            description=text_of(fields, "description") or first_line(body) or "no description",
            body=body,
            path=str(path),
            origin=place.origin,
            hint=text_of(fields, "argument-hint"),
            by_model=False,
        )
