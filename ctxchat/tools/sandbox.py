"""Shutting a command in, where the system offers it: bubblewrap on Linux, seatbelt on macOS. Decides nothing about approval.

Inside, the workspace can be written and the rest only read; `/tmp` is the session's own, the folders where secrets lie are
hidden and there is no network unless it was allowed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

Kind = Literal["bubblewrap", "seatbelt", ""]

SECRETS = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".netrc", ".git-credentials", ".pypirc", ".npmrc",
    ".config/gh", ".config/gcloud", ".config/op", ".local/share/keyrings", ".local/share/kwalletd", "Library/Keychains",
)  # fmt: skip
"""Below the home folder; what is not there is passed over."""

_NEEDED_FOR_NAMES = (
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/current-system",
    "/run/wrappers",
)


class Sandbox(msgspec.Struct, frozen=True):
    """A way to shut commands in. `kind` is empty for none at all. `hidden` are folders and files that must not be seen inside,
    `writable` folders beside the workspace that may be written (a tool's cache)."""

    kind: Kind = ""
    network: bool = False
    hidden: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()

    def wrap(self, argv: Sequence[str], workspace: str, scratch: str = "") -> list[str]:
        """The command that runs `argv` inside, in the workspace. What it writes to `/tmp` stays in the folder `scratch`; without
        one it is gone at the end (seatbelt knows no private one)."""
        match self.kind:
            case "bubblewrap":
                return [*_bubblewrap(self, workspace, scratch), "--", *argv]
            case "seatbelt":
                return ["sandbox-exec", "-p", seatbelt_profile(self, workspace), *argv]
            case "":
                return list(argv)


def find_sandbox(*, network: bool = False, hidden: Sequence[Path] = (), writable: Sequence[Path] = ()) -> Sandbox:
    """The sandbox of this machine, tried out once (some ten milliseconds); one of kind "" where there is none that works."""
    home = Path.home()
    places = [*(home / name for name in SECRETS), *hidden]
    secrets = tuple(dict.fromkeys(os.path.realpath(place) for place in places if place.exists()))
    kind: Kind = "seatbelt" if sys.platform == "darwin" else "bubblewrap" if sys.platform == "linux" else ""
    program = {"seatbelt": "sandbox-exec", "bubblewrap": "bwrap", "": ""}[kind]
    if not program or not shutil.which(program):
        return Sandbox()
    sandbox = Sandbox(kind, network, secrets, tuple(os.path.realpath(place) for place in writable if place.exists()))
    return sandbox if _works(sandbox) else Sandbox()


def _works(sandbox: Sandbox) -> bool:
    folder = os.path.realpath("/")
    try:
        tried = subprocess.run(
            sandbox.wrap(["/bin/sh", "-c", "exit 7"], folder), stdin=subprocess.DEVNULL, capture_output=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 7


def _bubblewrap(sandbox: Sandbox, workspace: str, scratch: str) -> list[str]:
    argv = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Sockets can be spoken to through a read-only mount: the ones of Docker, the key ring and the session live in /run.
    for private in ("/tmp", "/var/tmp", "/run"):
        if Path(private).is_dir() and not Path(private).is_symlink():
            argv += ["--bind", scratch, private] if scratch and private == "/tmp" else ["--tmpfs", private]
    for needed in _NEEDED_FOR_NAMES:
        argv += ["--ro-bind-try", needed, needed]
    if workspace != "/":  # the root is only ever read
        argv += ["--bind", workspace, workspace]
    for folder in sandbox.writable:
        argv += ["--bind-try", folder, folder]
    for secret in _hidden(sandbox, workspace):
        argv += ["--tmpfs", secret] if Path(secret).is_dir() else ["--ro-bind", "/dev/null", secret]
    argv += ["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    argv += [] if sandbox.network else ["--unshare-net"]
    return [*argv, "--die-with-parent", "--chdir", workspace]


def _hidden(sandbox: Sandbox, workspace: str) -> list[str]:
    """Secrets that exist now, but not the folder somebody is just working in, nor what a hidden folder hides already."""
    found: list[str] = []
    for path in sorted(sandbox.hidden):
        covered = any(Path(path).is_relative_to(folder) for folder in found)
        if Path(path).exists() and not covered and not Path(workspace).is_relative_to(path):
            found.append(path)
    return found


def seatbelt_profile(sandbox: Sandbox, workspace: str) -> str:
    """The profile for macOS' `sandbox-exec`; later rules win."""
    temporary = os.path.realpath(os.environ.get("TMPDIR") or "/private/tmp")
    writable = (*(() if workspace == "/" else (workspace,)), temporary, "/private/tmp", "/dev", *sandbox.writable)
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in writable]
    lines += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in _hidden(sandbox, workspace)]
    lines += [] if sandbox.network else ["(deny network*)"]
    return "\n".join(lines)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
