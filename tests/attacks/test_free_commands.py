"""Commands that nobody was asked about, over a repository that was made to misuse them: they write nothing, run nothing that
counts, and see nothing outside."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from ctxchat.agent.turn.permissions import Judgement, judge
from ctxchat.context.workspace import Workspace
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.own_processes import find_program
from ctxchat.tools.sandbox import Sandbox, find_sandbox
from ctxchat.tools.shell import Shell

from .test_rules import READING

pytestmark = pytest.mark.skipif(
    find_sandbox().kind != "bubblewrap", reason="bubblewrap is missing or does not work here"
)

PYTHON = os.path.realpath(sys.executable)

PROGRAMS = (
    "ls",
    "cat",
    "git",
    "rg",
    "grep",
    "flake8",
    "pytest",
    "cargo",
    "mvn",
    "make",
    "node",
    "bash",
    "bwrap",
    "python",
    "sort",
)


class HostileProject:
    """A repository whose configuration, links, hooks, plug-ins and programs are all an attacker's, with a home beside it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root.resolve()
        self.work, self.home, self.other = (self.root / name for name in ("home/src/work", "home", "home/other"))
        for folder in (self.work / "src", self.home / ".ssh", self.other, self.work / ".venv/bin"):
            folder.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(self.home))
        evil = self.work / "evil.sh"
        self._program(evil)
        for name in PROGRAMS:
            self._program(self.work / ".venv/bin" / name)
        self._program(self.work / "gradlew")
        (self.work / "conftest.py").write_text(f"import os; os.system({str(evil)!r})\n")
        for secret in (self.home / ".ssh/id", self.home / ".pgpass", self.other / "file"):
            secret.write_text("SECRET\n")
        git = self._git
        git(self.other, "init", "-q")
        git(self.other, "add", "-A")
        git(self.other, "commit", "-qm", "SECRET")
        git(self.work, "init", "-q")
        (self.work / "a.py").write_text("x = 1\n")
        (self.work / "b.py").write_text("x = 2\n")
        (self.work / ".gitattributes").write_text("* filter=evil diff=evil\n")
        git(self.work, "add", "a.py")
        git(self.work, "commit", "-qm", "one")
        (self.work / "a.py").write_text("x = 3\n")
        keys = (
            "core.fsmonitor", "core.pager", "pager.log", "pager.diff", "diff.external", "diff.evil.textconv", "diff.evil.command",
            "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.sshCommand", "gpg.program",
            "core.alternateRefsCommand", "log.showSignature", "core.hooksPath",
        )  # fmt: skip
        for key in keys:
            git(self.work, "config", key, "true" if key == "log.showSignature" else str(evil))
        links = {"leak": self.home / ".ssh/id", "out": self.other, "src/deep": self.home / ".ssh"}
        for name, target in links.items():
            (self.work / name).symlink_to(target)
        (self.work / "names").write_bytes(
            b"\0".join(os.fsencode(p) for p in (self.other / "file", self.home / ".pgpass"))
        )
        (self.work / "sums").write_text(f"d41d8cd98f00b204e9800998ecf8427e  {self.other / 'file'}\n")
        (self.work / "worktree").mkdir()
        (self.work / "worktree/.git").write_text(f"gitdir: {self.other / '.git'}\n")
        path = os.pathsep.join((str(self.work / ".venv/bin"), os.environ["PATH"]))
        monkeypatch.setenv("PATH", path)
        monkeypatch.chdir(self.work)
        self.sandbox = find_sandbox(str(self.work))
        self.shell = Shell(self.sandbox, os.environ)

    def _program(self, path: Path) -> None:
        path.write_text(
            f"#!/bin/sh\nfor f in {self.work} {self.root}; do echo RAN >> $f/RAN; done; /usr/bin/cat {self.home}/.pgpass\n"
        )
        path.chmod(0o755)

    def _git(self, folder: Path, *arguments: str) -> None:
        one = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=/dev/null"]
        subprocess.run(["/usr/bin/git", "-C", str(folder), *one, *arguments], check=True)

    def judged(self, command: str) -> Judgement:
        context = ToolContext("c", str(self.work), str(self.root / "session"))
        return judge("shell", self.shell.access_request({"command": command}, context), "ask", (), str(self.work))

    async def run_unasked(self, command: str) -> str | None:
        """What the command shows, None where it is not run without a question."""
        judged = self.judged(command)
        if judged.verdict != "allow":
            return None
        context = ToolContext("c", str(self.work), str(self.root / "session"), read_only=judged.read_only)
        async with aclosing(self.shell.run({"command": command}, context)) as pieces:
            return [piece async for piece in pieces if isinstance(piece, ToolOutput)][-1].text

    def print(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.root)): f"{path.lstat().st_mtime_ns} {path.lstat().st_size}"
            for path in sorted(self.root.rglob("*"))
            if "session" not in path.parts
        }


@pytest.fixture
def hostile(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileProject]:
    """Not below /tmp: that is a private one inside anyway."""
    with tempfile.TemporaryDirectory(dir=pytestconfig.cache.mkdir("attacks")) as root:  # type: ignore[union-attr]
        yield HostileProject(Path(root), monkeypatch)


VERSIONS = [
    f"{name} --version" for name in ("./gradlew", "flake8", "pytest", "cargo", "mvn", "make", "node", "git", "python")
]
OUTSIDE = [
    "git -C worktree log", "cd worktree && git log", "diff -r src out", "diff src out", "wc --files0-from=names",
    "du --files0-from=names", "sort --files0-from=names", "md5sum -c sums", "sha256sum --check sums", "cat leak", "cat out/file",
    "cat src/deep/id", "grep -R SECRET .", "grep -rf leak .", "rg -L SECRET", "rg --follow SECRET", "find -L . -name id",
    "cat l*k", "head -n1 out/*", "git diff --no-index a.py out/file", "git log -p --ext-diff", "git show HEAD:a.py",
    "git blame a.py",
    "git log --show-signature", "git cat-file --filters HEAD:a.py", "git cat-file --textconv HEAD:a.py", "git diff", "git status",
    "git diff --cached", "git ls-files -m", "git describe --dirty --always", "git stash list", "git branch -vv",
]  # fmt: skip


async def test_what_is_free_writes_nothing_runs_nothing_that_stays_and_sees_nothing_outside(
    hostile: HostileProject,
) -> None:
    before = hostile.print()
    lines = (*READING.strip().splitlines(), *VERSIONS, *OUTSIDE)
    free = [line for line in lines if hostile.judged(line).verdict == "allow"]
    assert len(free) > 30 and "git status --short" in free and "flake8 --version" in free
    shown = await hostile.run_unasked("; ".join(f"({line})" for line in free))
    assert shown and "x = 3" in shown and "SECRET" not in shown
    assert hostile.print() == before


@pytest.mark.parametrize("shell", ["dash", "zsh", "fish", "tcsh", "ksh", "busybox sh", "sh", "bash"])
async def test_a_line_for_another_shell_is_not_judged_by_the_rules_of_bash(shell: str, hostile: HostileProject) -> None:
    lines = [
        "ls",
        "[[ a || ./evil.sh ]]",
        "ls =evil.sh",
        "ls (./evil.sh)",
        "echo (./evil.sh)",
        "cat *(e:./evil.sh:)",
        "cat a.py; ls",
    ]
    for line in lines:
        command = f"{shell} -c {shlex.quote(line)}"
        assert shell == "bash" or hostile.judged(command).verdict == "ask", command
        for fed in (
            f"{shell} <<< {shlex.quote(line)}",
            f"{shell} <<'E'\n{line}\nE",
            f"echo {shlex.quote(line)} | {shell}",
        ):
            assert hostile.judged(fed).verdict == "ask", fed


async def test_without_a_sandbox_nothing_is_free(hostile: HostileProject) -> None:
    hostile.shell = Shell(Sandbox(), os.environ)
    for command in READING.strip().splitlines():
        assert hostile.judged(command).verdict == "ask"


async def test_where_everything_is_to_be_asked_nothing_is_free(hostile: HostileProject) -> None:
    hostile.shell = Shell(hostile.sandbox, os.environ, asks_everything=True)
    assert hostile.judged("ls").verdict == "ask"


async def test_a_worktree_of_ones_own_is_read_and_one_that_says_so_of_another_is_not(hostile: HostileProject) -> None:
    real = hostile.home / "tree"
    hostile._git(hostile.other, "worktree", "add", "-q", str(real))
    hostile.work = real.resolve()
    hostile.shell = Shell(hostile.sandbox, {**os.environ, "PATH": "/usr/bin:/bin"})
    assert "SECRET" in (await hostile.run_unasked("git log --oneline") or "")
    forged = hostile.home / "forged"
    forged.mkdir()
    (forged / ".git").write_text((real / ".git").read_text())
    hostile.work = forged.resolve()
    assert "SECRET" not in (await hostile.run_unasked("git log --oneline") or "")


async def test_what_is_told_of_a_project_runs_no_program_it_names(hostile: HostileProject) -> None:
    before = hostile.print()

    def git(arguments: Sequence[str]) -> Sequence[str]:
        return hostile.sandbox.wrap(
            [find_program("git", str(hostile.work)), *arguments], str(hostile.work), read_only=True
        )

    assert "Git branch: master" in await Workspace(hostile.work, git=git).provide()
    assert hostile.print() == before


async def test_sockets_of_home_workspace_and_system_answer_nobody(hostile: HostileProject) -> None:
    short = Path(tempfile.mkdtemp(dir="/var/lib")) if os.access("/var/lib", os.W_OK) else None
    away, cwd = [hostile.home / "agent", hostile.work / "engine", hostile.home / ".ssh/control"], Path.cwd()
    away += [short / "docker.sock"] if short else []
    away += [Path("/run/ctxchat-test.sock")] if os.access("/run", os.W_OK) else []
    open_: list[socket.socket] = []
    try:
        for place in away:
            os.chdir(place.parent)  # a socket's name must be short
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(place.name if place.is_relative_to(hostile.root) else str(place))
            listening.listen()
            open_.append(listening)
        os.chdir(hostile.work)
        code = f"""
import os, socket
for place in {[str(place) for place in away]!r}:
    try:
        os.chdir(os.path.dirname(place))
        socket.socket(socket.AF_UNIX).connect(os.path.basename(place))
        print("REACHED", place)
    except OSError as e:
        print(e)
"""
        (hostile.work / "t.py").write_text(code)
        for read_only in (True, False):
            context = ToolContext("d", str(hostile.work), read_only=read_only)
            async with aclosing(hostile.shell.run({"command": f"{PYTHON} t.py"}, context)) as pieces:
                said = [piece async for piece in pieces if isinstance(piece, ToolOutput)][-1].text
            assert "REACHED" not in said and said.count("rrno") == len(away), said
    finally:
        os.chdir(cwd)
        for each in open_:
            each.close()
        for place in away:
            place.unlink(missing_ok=True)
        if short:
            short.rmdir()
