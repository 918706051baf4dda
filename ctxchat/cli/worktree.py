"""Implements `--worktree NAME`: enters a git worktree beside the repository, so that an agent's changes there do not touch the
repository's own files. Nothing that the repository holds or configures is run for it, and no worktree is ever removed.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from ctxchat.core.errors import UsageError
from ctxchat.own_processes import find_program, outside_path
from ctxchat.presentation.text import one_line

_WORKTREE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RUNS_NOTHING = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never")
_MAY_RUN = r"^(filter\..*\.(smudge|process)|includeif\..*\.path)$"
"""Settings that may run a program at a checkout: filters, and conditional includes, which may define a filter that only applies
in the new worktree and cannot be seen from here."""

TIMEOUT_S = 600
"""Most seconds for one git command, such as a checkout."""


def enter_worktree(name: str) -> str:
    """Change into the worktree `name` of this folder's repository, to the same folder below its top. A missing worktree is made,
    on a branch of the same name. Returns where it is and how to remove it, in a sentence. Raises UsageError."""
    if not _WORKTREE_NAME.fullmatch(name) or name.endswith((".", ".lock")) or ".." in name:
        raise UsageError(f"{one_line(name, 60)!r} is no name for a worktree.", "Letters, digits, `.`, `_` and `-`.")
    here = Path.cwd().resolve()
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if top is None:
        raise UsageError(f"{here} is in no git repository.")
    git = _Git(str(top))
    main = Path(git.ask("rev-parse", "--path-format=absolute", "--git-common-dir")).parent
    folder = main.parent / f"{main.name}-{name}"
    made = not folder.exists()
    if made:
        git.add_worktree(folder, name)
    elif f"worktree {folder.resolve()}" not in git.ask("worktree", "list", "--porcelain", "-z").split("\0"):
        raise UsageError(f"{folder} is there already and is no worktree of this repository.", "Choose another name.")
    place = folder / here.relative_to(top)
    os.chdir(place if place.is_dir() else folder)
    branch = git.ask("-C", str(folder), "branch", "--show-current") or "no branch"
    how = "A new worktree" if made else "The worktree"
    return f"{how}: {folder}, on {branch}. `git worktree remove {folder}` removes it when you are done."


class _Git:
    """Runs git for the repository at `top`; neither git itself nor any program it runs comes from the repository."""

    def __init__(self, top: str) -> None:
        self._program = find_program("git", top)
        if not self._program:
            raise UsageError("--worktree needs git, and there is none.")
        given = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environ = given | {
            "PATH": outside_path(top),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "LC_ALL": "C.UTF-8",
        }

    def add_worktree(self, folder: Path, name: str) -> None:
        """Add a worktree on a new branch from here, or on the existing one of that name. Raises UsageError."""
        filters = self._git("config", "--show-scope", "--includes", "--name-only", "--get-regexp", _MAY_RUN)[1]
        if any(line.startswith(("local\t", "worktree\t")) for line in filters.splitlines()):
            raise UsageError(
                "This repository's own configuration runs programs on what is checked out.",
                f"Make it yourself where you trust them: git worktree add -b {name} {folder}",
            )
        there = self._git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}")[0] == 0
        self.ask("worktree", "add", *((str(folder), name) if there else ("-b", name, str(folder))))

    def ask(self, *arguments: str) -> str:
        """The output of a git command. Raises UsageError with git's own words if it fails."""
        code, out, err = self._git(*arguments)
        if code:
            why = one_line(err.rpartition("fatal: ")[2], 300) or f"exit code {code}"
            raise UsageError(f"git failed: {why}")
        return out.rstrip("\n")

    def _git(self, *arguments: str) -> tuple[int, str, str]:
        try:
            ran = subprocess.run(
                (self._program, *_RUNS_NOTHING, *arguments),
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise UsageError(f"git failed: {problem}") from problem
        return ran.returncode, ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")
