"""Describes the workspace for the model: git's branch and short status, and the names in its top folder. Only reads."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

GIT_SECONDS = 2.0
MAX_STATUS_LINES = 20
MAX_NAMES = 60
MAX_GIT_FILE_BYTES = 5_000


_WITHOUT_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")

GitCommand = Callable[[Sequence[str]], Sequence[str]]
"""A function that makes a command line from git's arguments, such that git runs no program named by the repository: its
configuration, hooks and attributes may name any. Reads the disk."""


class Workspace:
    """The context provider `workspace`. Where git is missing, slow or fails, it gives only branch and names."""

    source_id = "workspace"

    def __init__(self, root: Path, *, git: GitCommand | None = None, seconds: float = GIT_SECONDS) -> None:
        self._root = root
        self._git = git
        self._seconds = seconds

    async def provide(self) -> str:
        """Branch, changed files and top-level names; long lists are cut, with the number left out."""
        status, names = await asyncio.gather(self._status(), asyncio.to_thread(_listing, self._root))
        git_lines = _git_text(status) or await asyncio.to_thread(_branch_line, self._root)
        return "\n".join(part for part in (git_lines, names) if part)

    async def _status(self) -> str:
        if not self._git:
            return ""
        # Without optional locks, so that it does not disturb a git command that runs at the same time.
        options = ("--no-optional-locks", *_WITHOUT_PROGRAMS, "-C", str(self._root))
        arguments = (*options, "status", "--short", "--branch", "--ignore-submodules=all")
        try:
            process = await asyncio.create_subprocess_exec(
                *await asyncio.to_thread(self._git, arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
                start_new_session=True,
            )
        except OSError:
            return ""
        try:
            output, _ = await asyncio.wait_for(process.communicate(), self._seconds)
        except TimeoutError:
            return ""
        finally:
            if process.returncode is None:
                _kill_all(process)
                await process.wait()
        return output.decode("utf-8", "replace") if process.returncode == 0 else ""


def _kill_all(process: asyncio.subprocess.Process) -> None:
    """Kill a process with all its children: of a sandbox that is still starting, the inner process would survive otherwise."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _git_text(status: str) -> str:
    head, *changed = status.splitlines() or [""]
    if not head.startswith("## "):
        return ""
    branch = head[3:].removeprefix("No commits yet on ")
    lines = [f"Git branch: {branch}"]
    lines += ["Changed files:", *changed[:MAX_STATUS_LINES]] if changed else ["No changed files."]
    return "\n".join([*lines, *_left_out(len(changed) - MAX_STATUS_LINES)])


def branch_of(root: Path) -> str:
    """The branch of the git repository that a folder is in, read from git's files without running git; also below the
    repository's top folder and in a linked work tree. Empty where there is no repository or no branch is checked out.
    Blocking."""
    for folder in (root.absolute(), *root.absolute().parents):
        git = folder / ".git"
        if os.path.lexists(git):
            link = _beginning(git)
            git = folder / link.removeprefix("gitdir: ") if link.startswith("gitdir: ") else git
            head = _beginning(git / "HEAD")
            branch = head.removeprefix("ref: refs/heads/")
            return _one_line(branch) if branch != head else ""
    return ""


def _beginning(file: Path) -> str:
    """The beginning of one of git's files; empty where it is no regular file."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(file, flags), "rb") as opened:
            plain = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)  # reading a pipe would never end
            return opened.read(MAX_GIT_FILE_BYTES).decode("utf-8", "replace").strip() if plain else ""
    except (OSError, ValueError):  # no such file, or a path with a NUL in it
        return ""


def _branch_line(root: Path) -> str:
    branch = branch_of(root)
    return f"Git branch: {branch}" if branch else ""


def _listing(root: Path) -> str:
    try:
        with os.scandir(root) as entries:
            names = sorted(e.name + ("/" if e.is_dir() else "") for e in entries if e.name != ".git")
    except OSError as error:
        return f"The folder cannot be listed: {error.strerror}"
    if not names:
        return "The folder is empty."
    return "\n".join(["Top level:", *map(_one_line, names[:MAX_NAMES]), *_left_out(len(names) - MAX_NAMES)])


def _one_line(name: str) -> str:
    """A name with everything replaced that cannot be printed, such as line breaks and invalid bytes."""
    clean = name.encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else "?" for c in clean)


def _left_out(number: int) -> list[str]:
    return [f"… and {number} more"] if number > 0 else []
