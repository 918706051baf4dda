"""Replaces environment variables in the settings of servers (`${NAME}`, `${NAME:-default}`), and the project's folder in commands
of hooks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_PROJECT_FOLDER = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|PWD)\}|\$(CLAUDE_PROJECT_DIR|PWD)\b")
"""How hooks refer to the project's folder, including those in Claude Code's format."""


def fill_variables(value: object, environ: Mapping[str, str]) -> object:
    """The settings with environment variables replaced by their values. A variable that is not set and has no default stays as
    written, so that the mistake is seen."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda m: environ.get(m[1], m[0] if m[2] is None else m[2]), value)
    if isinstance(value, Mapping):
        return {key: fill_variables(each, environ) for key, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [fill_variables(each, environ) for each in cast("Sequence[object]", value)]
    return value


def in_project(command: str, folder: str) -> str:
    """The command with references to the project's folder replaced by `folder`."""
    return _PROJECT_FOLDER.sub(lambda match: folder, command)
