"""Ignore rules: git itself says what they mean, and no pattern takes long."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.tools.gitignore import parse_gitignore

PIECES = [
    "*",
    "**",
    "?",
    "a",
    "b",
    "/",
    "!",
    "[ab]",
    "[!a]",
    "[^b-c]",
    "\\*",
    "\\",
    ".",
    " ",
    "#",
    "[",
    "c*",
    "**/",
    "/**",
    "[]a]",
]
LINES = st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join), min_size=1, max_size=4)
NAMES = ["b", "a.b", "d", "cab", "*", "#", "a b", "bb"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", root], check=True)
    for folder in ("a/b/", "ab/", "c/a/b/", "", "a/", "c/", "c/a/"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            if not (root / folder / name).is_dir():
                (root / folder / name).write_text("x")
    return root


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES)
def test_what_they_leave_out_is_what_git_leaves_out(tree: Path, lines: list[str]) -> None:
    (tree / ".git" / "info" / "exclude").write_text("\n".join(lines) + "\n")
    told = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tree,
        capture_output=True,
        check=True,
    )
    seen = {os.fsdecode(name) for name in told.stdout.split(b"\0") if name}
    rules = parse_gitignore(lines)
    ours: set[str] = set()
    for folder, folders, files in os.walk(tree):
        base = "" if folder == str(tree) else os.path.relpath(folder, tree) + "/"
        folders[:] = [name for name in folders if name != ".git" and not rules.ignores(base + name, True)]
        ours |= {base + name for name in files if not rules.ignores(base + name, False)}
    assert ours == seen


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "**/a/" * 12 + "b", "?*" * 30 + "x", "*[a]" * 15 + "b", "a*" * 400]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    """In a process of its own: a regular expression without end could not be ended from here."""
    script = (
        "import sys; from ctxchat.tools.gitignore import parse_gitignore;"
        "rules = parse_gitignore([sys.argv[1]]);"
        "[rules.ignores(path, False) for path in ('a' * 255, '/'.join(['a'] * 300), '/'.join(['a' * 255] * 15))]"
    )
    subprocess.run([sys.executable, "-c", script, pattern], check=True, timeout=60)
