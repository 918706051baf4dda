"""A snapshot of the workspace: git's branch and short status, and what lies at the top. Reads, never writes."""

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
"""From git's arguments to a command that asks it so that nothing a repository names can do harm: its configuration, its hooks and
its attributes may name any program. Looks at the disk."""


class Workspace:
    """ContextProvider `workspace`. Where git cannot be asked, is slow or has nothing to say, branch and listing stand alone."""

    source_id = "workspace"

    def __init__(self, root: Path, *, git: GitCommand | None = None, seconds: float = GIT_SECONDS) -> None:
        self._root = root
        self._git = git
        self._seconds = seconds

    async def provide(self) -> str:
        """Branch, changed files, top-level names, each capped with the number left out."""
        status, names = await asyncio.gather(self._status(), asyncio.to_thread(_listing, self._root))
        said = _git_text(status) or await asyncio.to_thread(_branch_line, self._root)
        return "\n".join(part for part in (said, names) if part)

    async def _status(self) -> str:
        if not self._git:
            return ""
        # No optional locks: a snapshot must not get in the way of a git command that runs beside it.
        options = ("--no-optional-locks", *_WITHOUT_PROGRAMS, "-C", str(self._root))
        asked = (*options, "status", "--short", "--branch", "--ignore-submodules=all")
        try:
            process = await asyncio.create_subprocess_exec(
                *await asyncio.to_thread(self._git, asked),
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
    """Kill it with all that it started: a sandbox that is still being made would leave its inner half."""
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
    """The branch of the git repository a folder is in, by git's own files, without git; also in a folder below its top and in a
    work tree beside it. Empty where there is none, or no branch is checked out. Blocking."""
    for folder in (root.absolute(), *root.absolute().parents):
        git = folder / ".git"
        if os.path.lexists(git):
            elsewhere = _beginning(git)
            git = folder / elsewhere.removeprefix("gitdir: ") if elsewhere.startswith("gitdir: ") else git
            said = _beginning(git / "HEAD")
            branch = said.removeprefix("ref: refs/heads/")
            return _one_line(branch) if branch != said else ""
    return ""


def _beginning(file: Path) -> str:
    """What stands at the beginning of a file of git's; empty where that is no plain file."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(file, flags), "rb") as opened:
            plain = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)  # a pipe would never end
            return opened.read(MAX_GIT_FILE_BYTES).decode("utf-8", "replace").strip() if plain else ""
    except (OSError, ValueError):  # no such file, or a path with a zero in it
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
    """A name that cannot break out of its line, whatever bytes it is made of."""
    clean = name.encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else "?" for c in clean)


def _left_out(number: int) -> list[str]:
    return [f"… and {number} more"] if number > 0 else []
