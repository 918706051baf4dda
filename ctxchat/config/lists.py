"""A list of texts in a small TOML file that the program owns (trusted folders, standing permissions)."""

from __future__ import annotations

from pathlib import Path

from ctxchat.config.atomic import write_text
from ctxchat.config.problems import Problem
from ctxchat.config.reading import read


def read_list(path: Path, key: str) -> tuple[tuple[str, ...], Problem | None]:
    """The texts, none where there is no file, and what is wrong with the file."""
    found = read(path)
    if found.tree is None:
        return (), found.problem
    values = found.tree.get(key, [])
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        return (), Problem("is damaged", key, "must be a list of texts", file=str(path))
    return tuple(values), None


def write_list(path: Path, key: str, texts: tuple[str, ...]) -> None:
    """Write the texts, each once, for the owner's eyes only. A broken file is kept as `.broken`. Raises OSError."""
    import tomli_w

    if read_list(path, key)[1]:
        path.replace(path.with_name(path.name + ".broken"))
    write_text(path, tomli_w.dumps({key: list(dict.fromkeys(texts))}))
