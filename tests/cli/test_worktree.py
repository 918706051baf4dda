"""`--worktree NAME` works beside the repository, in a worktree that is made once; nothing of the repository runs for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(("git", *who, *arguments), cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    git(work, "init", "-q", "-b", "main")
    (work / "src/tide.py").write_text("HIGH = 7\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "first")
    return work


def ctxchat(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {
        "HOME": str(folder.parents[1]),
        "PATH": os.environ["PATH"],
        "CTXCHAT_DATA_DIR": str(folder.parents[1] / "data"),
    }
    command = (sys.executable, "-m", "ctxchat", "--worktree", *arguments)
    return subprocess.run(command, cwd=folder, env=environ, check=False, capture_output=True, text=True)


def test_it_is_made_once_and_work_goes_on_at_the_same_place_in_it(repository: Path) -> None:
    prompt = ("run", "create file made.txt with hello", "--permissions", "all", "--model", "offline/assistant")
    ran = ctxchat(repository / "src", "fix", *prompt)
    beside = repository.with_name("work-fix")
    assert ran.returncode == 0 and f"A new worktree: {beside}, on fix." in ran.stderr
    assert (beside / "src/made.txt").exists() and git(repository, "status", "--porcelain") == ""
    again = ctxchat(beside / "src", "fix", "sessions", "list")
    assert again.returncode == 0 and f"The worktree: {beside}, on fix." in again.stderr
    assert (beside / "src/made.txt").exists() and len(git(repository, "worktree", "list").splitlines()) == 2

    git(repository, "branch", "old")
    assert "on old." in ctxchat(repository, "old", "sessions", "list").stderr


@pytest.mark.parametrize("name", ["", "../out", "-b", "a/b", "x.lock", "a..b", "x" * 65])
def test_what_is_no_name_is_refused(repository: Path, name: str) -> None:
    ran = ctxchat(repository, name, "sessions", "list")
    assert ran.returncode == 2 and "no name for a worktree" in ran.stderr
    assert [p.name for p in repository.parent.iterdir() if p.name.startswith("work")] == ["work"]


def test_what_is_in_the_way_stays_and_where_there_is_no_repository_it_is_said(repository: Path, tmp_path: Path) -> None:
    other = repository.with_name("work-mine")
    other.mkdir()
    ran = ctxchat(repository, "mine", "sessions", "list")
    assert ran.returncode == 2 and "is no worktree of this repository" in ran.stderr and not list(other.iterdir())
    ran = ctxchat(other, "x", "sessions", "list")
    assert ran.returncode == 2 and "is in no git repository" in ran.stderr


def test_nothing_of_the_repository_runs(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", f"touch {ran}; false")
    assert ctxchat(repository, "one", "sessions", "list").returncode == 0 and not ran.exists()
    git(repository, "config", "filter.lower.smudge", f"touch {ran}; cat")
    (repository / ".gitattributes").write_text("*.py filter=lower\n")
    refused = ctxchat(repository, "two", "sessions", "list")
    assert refused.returncode == 2 and "git worktree add -b two" in refused.stderr and not ran.exists()


@pytest.mark.parametrize("condition", ["onbranch:[a-l]*", "gitdir:**/worktrees/**"])
def test_nothing_runs_that_is_configured_for_the_worktree_alone(
    repository: Path, tmp_path: Path, condition: str
) -> None:
    """Of which git tells nothing as long as it is asked in the repository itself."""
    ran, more = tmp_path / "ran", repository / ".git/more"
    more.write_text(f"[filter \"lower\"]\n\tsmudge = touch '{ran}' && cat\n")
    (repository / ".gitattributes").write_text("*.py filter=lower\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    with (repository / ".git/config").open("a") as config:
        config.write(f'[includeIf "{condition}"]\n\tpath = {more}\n')
    refused = ctxchat(repository, "fix", "sessions", "list")
    assert not ran.exists() and refused.returncode == 2 and "git worktree add -b fix" in refused.stderr
