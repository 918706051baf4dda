"""What runs later is recognised however its name is written."""

from __future__ import annotations

import pytest

from ctxchat.core.guarded import GUARDED, guarded


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        (".git/hooks/pre-commit", ".git"),
        ("vendor/lib/.git/config", ".git"),
        (".GIT/config", ".git"),
        (".g\u200cit/config", ".git"),
        (".git. /config", ".git"),
        ("GIT~1/config", ".git"),
        (".git", ".git"),
        (".ctxchat/config.toml", ".ctxchat"),
        (".vscode\\tasks.json", ".vscode"),
        (".VSCode/tasks.json", ".vscode"),
        ("app.code-workspace", "*.code-workspace"),
        ("Jenkinsfile.release", "jenkinsfile*"),
        (".github/workflows/ci.yml", ".github"),
        (".envrc", ".envrc"),
        ("sub/HEAD", "HEAD"),
    ],
)
def test_guarded(path: str, entry: str):
    assert guarded(path) == entry


@pytest.mark.parametrize(
    "path", ["src/a.py", ".gitignore", "git/x", "src/head/index.html", "a.git", "github/x", ".env", ""]
)
def test_not_guarded(path: str):
    assert guarded(path) == ""


def test_names_are_written_as_they_are_compared():
    assert all(name == name.casefold() for name in GUARDED)
