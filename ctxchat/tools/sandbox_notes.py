"""What a command and the person behind it are told about the sandbox: what it is known to need, and what it was stopped by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ctxchat.core.expressions import expression
from ctxchat.core.permissions import Allowance
from ctxchat.tools.sandbox import Sandbox

_OFFLINE = expression(
    r"(?i)could ?n[o'’]?t resolve|could not resolve|name resolution|name or service not known|nodename nor servname"
    r"|no address associated|network is (?:unreachable|down)|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|dns error"
    r"|unknown host|failed to lookup address"
)
_READ_ONLY = expression(r"(?i)read-only file ?system|EROFS|os error 30|Errno 30")
_NAMED = expression(r"(?i)[\s'\"`‘]([^\s'\"`‘’]+)['\"`’]?: read-only|read-only file ?system[^:]*: ['\"]?([^\s'\"]+)")
"""Before the words, as the shell and its tools say it, or behind them, as Python does."""

_FOLDERS = {
    "uv": ".cache/uv", "uvx": ".cache/uv", "pip": ".cache/pip", "pip3": ".cache/pip", "npm": ".npm", "npx": ".npm",
    "yarn": ".cache/yarn", "pnpm": ".local/share/pnpm", "cargo": ".cargo/registry", "go": "go/pkg", "mvn": ".m2/repository",
    "pre-commit": ".cache/pre-commit", "composer": ".cache/composer", "ccache": ".cache/ccache", "dotnet": ".nuget/packages",
}  # fmt: skip
"""Programs with the folder below home in which they keep what they downloaded."""

_GIT_WRITES = expression(
    r"\bgit\s+(?:-\S+\s+)*(?:add|am|bisect|branch|checkout|cherry-pick|clean|commit|fetch|gc|maintenance|merge|mv|notes|pull"
    r"|push|rebase|remote|reset|restore|revert|rm|stash|submodule|switch|tag|update-ref|worktree)\b"
)


def known_needs(command: str, workspace: str) -> tuple[str, ...]:
    """Folders that a command like this writes in: git's own in the workspace, a package manager's cache where there is one."""
    words = re.findall(r"[\w.-]+", command)
    caches = (Path.home() / _FOLDERS[word] for word in dict.fromkeys(words) if word in _FOLDERS)
    git = [str(Path(workspace) / ".git")] if _GIT_WRITES.search(command) else []
    return (*git, *(str(folder.resolve()) for folder in caches if folder.is_dir()))


def stopped_by_sandbox(output: str, sandbox: Sandbox, workspace: str, allowed: Allowance) -> list[str]:
    """Lines for the end of a failed command's output, where it looks as if the sandbox was in its way."""
    notes: list[str] = []
    if not (sandbox.network or allowed.network) and _OFFLINE.search(output):
        notes.append(
            "[The sandbox has no network. If the command needs it, call again with network: true and why; the user is asked.]"
        )
    refused = next((line for line in output.splitlines() if _READ_ONLY.search(line)), "")
    if refused:
        named = _NAMED.search(refused)
        where = f": {named[1] or named[2]}" if named else ""
        if not sandbox.can_write(workspace):
            rule = "The workspace holds your home folder or secrets and is read-only in the sandbox"
        else:
            rule = "In the sandbox only the workspace can be written, without what can run later (.git, editor and CI files)"
        notes.append(
            f"[{rule}{where}. If the command needs a folder, call again with folders: [it] and why; the user is asked, "
            "and can also let it run outside.]"
        )
    return notes


def taken_away(paths: Sequence[str], folder: str) -> str:
    """The line that names what a command put where it could run later."""
    return (
        f"[Moved out of the workspace, because it could run later without anybody asking: {', '.join(paths)}. It lies in "
        f"{folder}. To have it there, use write_file, or ask the user to let the command run outside the sandbox.]"
    )
