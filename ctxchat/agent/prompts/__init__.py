"""The words models are given, as Markdown files beside this one."""

from __future__ import annotations

from importlib.resources import files


def prompt(name: str) -> str:
    """The text of one prompt file (`system`, `rules`, `record`)."""
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8").strip()
