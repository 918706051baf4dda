"""Which standing rule a shell command could be given: a prefix that stays harmless, or this very command. Pure.

Almost every program can be told by some argument to run another one or to write a file: `tar --to-command`, `rg --pre`,
`git log --output`, `sort -o`, `make SHELL=`, `npm test --script-shell`, `pytest --basetemp` (which empties a folder), and
wrappers and interpreters do nothing else. A list of the dangerous ones is never complete, so the list below is of the few
that are not; whoever wants more adds the rule to `permissions.toml`. Knows nothing of who asks.
"""

from __future__ import annotations

import glob
import re
import shlex

_COMPOUND = re.compile(r"[;&|`<>\n\r(){}\\]|\$")
"""What lets a second command, a file or a substitution into a line. Also where it stands in quotes: rather too strict."""

_HARMLESS = frozenset({
    "ls", "cat", "head", "tail", "wc", "nl", "pwd", "echo", "stat", "du", "df", "whoami", "id", "uname", "uptime",
    "nproc", "which", "basename", "dirname", "realpath", "readlink", "grep", "diff", "cmp", "comm",
    "md5sum", "sha1sum", "sha256sum", "sha512sum",
})  # fmt: skip
"""They read and print, whatever their arguments are. Not among them, though they look it: `file` (-C writes), `date` (-s sets
the clock), `uniq` (its second argument is written), `tree`, `sort` (-o), `ps` (e shows the keys of others)."""

_HARMLESS_GIT = frozenset({"status", "ls-files", "rev-parse"})
"""Not `diff`, `log`, `show`, `blame`: all of them take `--output`."""


_LONGEST = 4000
"""Characters; taking a longer line apart takes seconds, and nobody wants a rule for it."""


def rule_for(command: str) -> str:
    """The pattern that `session` and `always` would store: `git status *`, `ls *`, or the whole command with its wildcards
    quoted, where a wider rule would let in more than was seen. A pattern without an open `*` is only matched by being
    equal."""
    exact = glob.escape(command)
    if len(command) > _LONGEST or _COMPOUND.search(command):
        return exact
    try:
        words = shlex.split(command)
    except ValueError:
        return exact
    prefix = _prefix(words)
    return f"{prefix} *" if prefix else exact


def _prefix(words: list[str]) -> str:
    """The leading words that are harmless whatever follows. A path is none: `./ls` may be anything."""
    match words:
        case ["git", subcommand, *_] if subcommand in _HARMLESS_GIT:
            return f"git {subcommand}"
        case [program, *_] if program in _HARMLESS:
            return program
        case _:
            return ""
