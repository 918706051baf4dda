"""Identity, workspace and skills over real folders and a real git."""

from __future__ import annotations

import asyncio
import datetime
import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctxchat.context.standard import Identity, standard_providers
from ctxchat.context.workspace import MAX_NAMES, Workspace, branch_of

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


async def test_identity_is_to_the_day(tmp_path: Path) -> None:
    root = tmp_path / "harbour-logger"
    text = await Identity(root, lambda: datetime.date(2026, 2, 28)).provide()
    assert text.splitlines()[0] == "Date: 2026-02-28 (Saturday)"
    assert "Workspace: harbour-logger" in text and ":" not in text.splitlines()[0].removeprefix("Date:")


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(("git", *identity, *words), cwd=root, check=True, capture_output=True)


def plain_git(arguments: Sequence[str]) -> Sequence[str]:
    return ["git", *arguments]


@needs_git
async def test_branch_changes_and_names(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "tide")
    fresh = await Workspace(tmp_path, git=plain_git).provide()
    assert "Git branch: tide\nNo changed files." in fresh
    (tmp_path / "src").mkdir()
    (tmp_path / "a\nb.txt").write_text("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    (tmp_path / "new.py").write_text("x")
    text = await Workspace(tmp_path, git=plain_git).provide()
    assert "Changed files:\n?? new.py" in text
    assert text.endswith("Top level:\na?b.txt\nnew.py\nsrc/")


async def test_without_git_the_listing_stands_alone(tmp_path: Path) -> None:
    for number in range(MAX_NAMES + 5):
        (tmp_path / f"f{number:03}").touch()
    text = await Workspace(tmp_path, git=lambda arguments: ["/no-such-git", *arguments]).provide()
    assert text.startswith("Top level:\nf000") and text.endswith("f059\n… and 5 more")
    assert await Workspace(tmp_path, git=None).provide() == text
    assert "cannot be listed" in await Workspace(tmp_path / "gone", git=None).provide()


async def test_a_git_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    slow = f"sleep 600 & echo $! > {tmp_path}/started; wait"
    text = await Workspace(tmp_path, git=lambda arguments: ["sh", "-c", slow], seconds=0.5).provide()
    assert "branch" not in text
    stat_file = Path(f"/proc/{(tmp_path / 'started').read_text().strip()}/stat")

    def runs() -> bool:
        return stat_file.exists() and stat_file.read_text().rpartition(")")[2].split()[0] != "Z"

    async with asyncio.timeout(10):
        while runs():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_the_branch_is_told_without_git_too(tmp_path: Path) -> None:
    head = tmp_path / ".git/HEAD"
    head.parent.mkdir()
    head.write_text("ref: refs/heads/tide/\x1b[31mhigh\n")
    assert (await Workspace(tmp_path).provide()).startswith("Git branch: tide/?[31mhigh\n")
    for odd in ("a1b2c3\n", "ref: elsewhere\n"):
        head.write_text(odd)
        assert "branch" not in await Workspace(tmp_path).provide()
    head.unlink()
    os.mkfifo(head)
    assert "branch" not in await Workspace(tmp_path).provide()


async def test_a_hanging_git_is_given_up_and_ended(tmp_path: Path) -> None:
    slow = tmp_path / "slow-git"
    slow.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    text = await Workspace(tmp_path, git=lambda arguments: [str(slow), *arguments], seconds=0.5).provide()
    assert text.startswith("Top level:")
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@needs_git
async def test_a_repository_cannot_name_a_program_to_run(tmp_path: Path) -> None:
    git(tmp_path, "init")
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    spy.chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(spy))
    await Workspace(tmp_path, git=plain_git).provide()
    assert not (tmp_path / "ran").exists()


def test_what_changes_most_comes_last(tmp_path: Path) -> None:
    assert standard_providers(tmp_path)[-1].source_id == "identity"


def test_the_branch_is_known_below_the_top_and_in_a_work_tree_beside_it(tmp_path: Path) -> None:
    top, beside = tmp_path / "top", tmp_path / "beside"
    (top / "src" / "deep").mkdir(parents=True)
    (top / ".git" / "worktrees" / "beside").mkdir(parents=True)
    beside.mkdir()
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (top / ".git" / "worktrees" / "beside" / "HEAD").write_text("ref: refs/heads/tide\n")
    (beside / ".git").write_text(f"gitdir: {top}/.git/worktrees/beside\n")
    assert [branch_of(folder) for folder in (top, top / "src" / "deep", beside)] == ["main", "main", "tide"]
    for broken in ("gitdir: nowhere", "gitdir: \0", "gitdir: " + "x" * 9_000, "rubbish"):
        (beside / ".git").write_text(broken)
        assert branch_of(beside) == "", broken
    (top / ".git" / "HEAD").write_text("0123456789abcdef\n")
    assert branch_of(top / "src") == ""
