"""Which standing rule a shell command could be given: a prefix that stays harmless, or this very command. Pure.

Knows nothing of who asks. A pattern without an open `*` may only ever be matched by being equal.
"""

from __future__ import annotations

import glob
import re
import shlex

_COMPOUND = re.compile(r"[;&|`<>\n\r(){}\\]|\$")
"""What lets a second command, a file or a substitution into a line. Also where it stands in quotes: rather too strict."""

_ANY_CODE = frozenset({
    "bash", "sh", "zsh", "dash", "fish", "ksh", "csh", "pwsh", "python", "python2", "python3", "pypy", "node",
    "deno", "bun", "ruby", "perl", "php", "lua", "R", "Rscript", "java", "osascript", "sudo", "doas", "su", "env",
    "xargs", "nohup", "nice", "time", "timeout", "watch", "exec", "eval", "command", "builtin", "source", ".",
    "ssh", "find", "awk", "gawk", "sed", "ed", "vi", "vim", "npx", "pnpx", "bunx", "uvx", "pipx", "tee",
    "parallel", "strace", "gdb", "screen", "tmux", "systemd-run", "chroot",
})  # fmt: skip
"""Programs that run whatever their arguments say: no prefix of them is harmless."""

_DESTRUCTIVE = frozenset({
    "rm", "rmdir", "dd", "mkfs", "shred", "truncate", "chmod", "chown", "kill", "pkill", "killall", "mv", "cp",
    "ln", "install",
})  # fmt: skip

_SUBCOMMANDS = frozenset({
    "git", "gh", "npm", "pnpm", "yarn", "uv", "pip", "pip3", "poetry", "pdm", "hatch", "cargo", "rustup", "go",
    "docker", "podman", "kubectl", "helm", "terraform", "make", "just", "task", "brew", "apt", "apt-get", "dnf",
    "conda", "mix", "gradle", "mvn", "dotnet", "bundle", "gem", "rake", "composer", "systemctl", "journalctl",
    "aws", "gcloud", "az",
})  # fmt: skip
"""Programs whose second word decides what they do."""

_RUNNERS = frozenset(
    {"npm run", "pnpm run", "yarn run", "uv run", "poetry run", "pdm run", "hatch run", "bundle exec", "cargo run"}
)
"""Two words after which a third decides."""

_OPAQUE = frozenset(
    {"docker run", "docker exec", "podman run", "podman exec", "kubectl exec", "npm exec", "pnpm dlx", "go run"}
)
"""Two words that run whatever follows."""


def rule_for(command: str) -> str:
    """The pattern that `session` and `always` would store: `git status *`, `ls *`, or the whole command with its wildcards
    quoted, where a wider rule would let in more than it says."""
    exact = glob.escape(command)
    if _COMPOUND.search(command):
        return exact
    try:
        words = shlex.split(command)
    except ValueError:
        return exact
    prefix = _prefix(words)
    return f"{prefix} *" if prefix else exact


def _prefix(words: list[str]) -> str:
    """The leading words that say what kind of command it is; empty where none are safe."""
    if not words or not _plain(words[0]) or "=" in words[0]:
        return ""
    program = words[0].rpartition("/")[2]
    if program in _ANY_CODE or program in _DESTRUCTIVE or re.fullmatch(r"(python|pip|node|ruby|perl)[\d.]+", program):
        return ""
    if program not in _SUBCOMMANDS or len(words) == 1:
        return words[0] if program not in _SUBCOMMANDS else ""
    pair = f"{program} {words[1]}"
    if not _plain(words[1]) or pair in _OPAQUE:
        return ""
    if pair not in _RUNNERS:
        return f"{words[0]} {words[1]}"
    if len(words) < 3 or not _plain(words[2]) or words[2].rpartition("/")[2] in _ANY_CODE | _DESTRUCTIVE:
        return ""
    return f"{words[0]} {words[1]} {words[2]}"


def _plain(word: str) -> bool:
    """A word that is a name: no option, no wildcard, no blank."""
    return re.fullmatch(r"[\w./@:+][\w./@:+-]*", word) is not None
