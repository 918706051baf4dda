"""Environment variables in settings of servers: `${NAME}`, `${NAME:-otherwise}`. And how hooks name the project's folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_PROJECT_FOLDER = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|PWD)\}|\$(CLAUDE_PROJECT_DIR|PWD)\b")
"""How hooks name the project's folder, those in Claude Code's form too."""


def fill_variables(value: object, environ: Mapping[str, str]) -> object:
    """The settings with environment variables in the place of their names; one that is not set and has no default stays as it
    is written, for what is wrong to be seen."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda m: environ.get(m[1], m[0] if m[2] is None else m[2]), value)
    if isinstance(value, Mapping):
        return {key: fill_variables(each, environ) for key, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [fill_variables(each, environ) for each in cast("Sequence[object]", value)]
    return value


def in_project(command: str, folder: str) -> str:
    """The command with the project's folder in the place of its name."""
    return _PROJECT_FOLDER.sub(lambda match: folder, command)
