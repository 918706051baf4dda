"""A project to attack, and the same fresh person in their folder as the command line's tests have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import cli, home

__all__ = ["cli", "home", "project"]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a link that leads out of it, and one into its own hooks."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("key")
    root = Path(os.path.realpath(tmp_path_factory.mktemp("project")))
    for folder in ("src/deep", ".git/hooks", ".github/workflows", "plain"):
        (root / folder).mkdir(parents=True)
    for file in ("a.py", "b.py", "src/x.py", "notes.md", ".git/config"):
        (root / file).write_text("x = 1\n")
    (root / "leak").symlink_to(outside / "secret")
    (root / "out").symlink_to(outside)
    (root / "src/hooks").symlink_to(root / ".git/hooks")
    return root
