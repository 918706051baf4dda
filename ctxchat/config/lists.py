"""A list of texts in a small TOML file that the program owns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ctxchat.config.atomic import write_text
from ctxchat.config.problems import Problem
from ctxchat.config.reading import read

PATIENCE = 5.0
"""Seconds to wait for another window, which needs milliseconds."""


def read_list(path: Path, key: str) -> tuple[tuple[str, ...], Problem | None]:
    """The texts, none where there is no file, and what is wrong with the file."""
    found = read(path)
    if found.tree is None:
        return (), found.problem
    values = found.tree.get(key, [])
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        return (), Problem("is damaged", key, "must be a list of texts", file=str(path))
    return tuple(values), None


def add_to_list(path: Path, key: str, text: str) -> None:
    """Put a text behind those of the file, for the owner's eyes only; one that is there already stays where it is. A broken file
    is kept as `.broken`. Raises OSError."""
    import tomli_w

    with alone(path):
        texts, broken = read_list(path, key)
        if broken:
            path.replace(path.with_name(path.name + ".broken"))
        write_text(path, tomli_w.dumps({key: list(dict.fromkeys((*texts, text)))}))


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Between reading and writing nobody else writes: another window may be about to add something too."""
    from filelock import FileLock  # 80 ms that a start need not spend

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(
        path.with_name(f".{path.name}.lock"), timeout=PATIENCE, mode=0o600, poll_interval=0.01, fallback_to_soft=False
    ):
        yield
