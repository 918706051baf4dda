"""The sandbox for commands: bubblewrap on Linux, seatbelt on macOS. Decides nothing about approval.

Inside, the workspace can be written except for its guarded paths. Of the home folder only toolchains are visible, the rest of the
system can be read; `/tmp` is the session's own, sockets are covered, and there is no network unless it was allowed. A command
that runs without a person's approval sees programs and the workspace, and can write neither. Also tells which folders a command
is known to need, and explains in its output what the sandbox stopped.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ctxchat.core.expressions import expression
from ctxchat.core.guarded import GUARDED
from ctxchat.core.permissions import Grant
from ctxchat.own_processes import find_program, own_places
from ctxchat.tools.guarding import linked_worktree

Kind = Literal["bubblewrap", "seatbelt", ""]

NOTHING = Grant()

TOOLCHAINS = (
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/uv", ".local/share/pipx", ".local/share/mise",
    ".local/share/fnm", ".local/share/pnpm", ".local/share/virtualenvs", ".local/share/hatch", ".local/share/rtx",
    ".local/share/pypoetry", ".pyenv", ".rye", ".nvm", ".volta", ".asdf", ".rbenv", ".rvm", ".nodenv", ".goenv", ".jenv",
    ".sdkman", ".rustup", ".cargo/bin", ".cargo/env", ".cargo/registry", ".cargo/git", ".ghcup", ".stack", ".cabal/packages",
    ".opam", ".elan", ".juliaup", ".julia", ".swiftly", ".deno", ".bun", ".dotnet", ".nuget/packages", ".gradle/caches",
    ".gradle/wrapper", ".m2/repository", ".m2/wrapper", ".ivy2/cache", ".gem/ruby", ".bundle/cache", ".composer/vendor",
    ".config/composer/vendor", ".pub-cache", ".mix", "go", "sdk", ".nix-profile", ".local/state/nix", ".linuxbrew", ".conda",
    "miniconda3", "anaconda3", "miniforge3", "mambaforge", ".npm/_cacache", ".cache/uv", ".cache/pip", ".cache/pypoetry",
    ".cache/pre-commit", ".cache/go-build", ".cache/yarn", ".cache/node", ".cache/node-gyp", ".cache/ms-playwright",
    ".cache/Cypress", ".cache/ccache", ".ccache", ".cache/sccache", ".cache/deno", ".cache/composer", ".cache/bazelisk",
    ".cache/huggingface/hub", ".cache/huggingface/datasets", ".cache/torch", ".terminfo", ".gitconfig", ".config/git/config",
    ".config/git/ignore", ".config/git/attributes", ".config/mise", ".tool-versions",
)  # fmt: skip
"""Paths below a home folder that commands can read: what builds and runs programs, and nothing where tools keep credentials."""

SECRETS = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".netrc", ".git-credentials", ".pypirc", ".npmrc",
    ".config/gh", ".config/hub", ".config/gcloud", ".config/op", ".config/rclone", ".config/git/credentials", ".vault-token",
    ".terraform.d/credentials.tfrc.json", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".local/share/keyrings", ".local/share/kwalletd", ".mozilla", ".thunderbird",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".bash_history", ".zsh_history", ".python_history",
    ".psql_history", "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
)  # fmt: skip
"""Paths below the home folder that stay hidden where the home folder is the workspace or is opened to commands; those that do not
exist are passed over."""

_ROOT_SECRETS = ("/etc/shadow", "/etc/gshadow")
"""Files that commands of root could read if they were not hidden."""

PRIVATE = ("/tmp", "/var/tmp", "/run", "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd")
"""Folders that are replaced by empty ones inside. They hold the sockets of Docker, the key ring and the desktop, and a read-only
mount would not keep a command from connecting to a socket."""

_RESOLVER_FOLDERS = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Folders that `/etc/resolv.conf` links to. A resolver may listen there too, so they are mounted only together with the
network."""

_NEEDED = ("/run/current-system", "/run/wrappers")

_HOMES = ("/home", "/root", "/var/home")

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap",
    *(f"/etc/{name}" for name in (
        "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "nsswitch.conf", "localtime", "gitconfig",
        "terminfo", "inputrc", "locale.alias", "default/locale", "static",
    )),
)  # fmt: skip
"""All that a command sees that runs without a person's approval, besides the workspace and the programs in PATH."""

_CACHES = {
    "UV_CACHE_DIR": ".cache/uv",
    "PIP_CACHE_DIR": ".cache/pip",
    "npm_config_cache": ".npm",
    "YARN_CACHE_FOLDER": ".cache/yarn",
    "GOCACHE": ".cache/go-build",
    "PRE_COMMIT_HOME": ".cache/pre-commit",
}
"""Environment variables that set a package manager's cache folder, with the usual folder below the home folder."""


class Sandbox(msgspec.Struct, frozen=True):
    """The sandbox that commands run in. `kind` is empty for none at all, `program` is the executable that sets it up. `hidden`
    are folders and files that cannot be seen inside, `writable` folders beside the workspace that can be written, `readable`
    folders in a home folder that can be read, `caches` a folder in which each workspace gets a cache of its own for package
    managers, empty for none."""

    kind: Kind = ""
    program: str = ""
    network: bool = False
    hidden: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    caches: str = ""

    def wrap(
        self,
        argv: Sequence[str],
        workspace: str,
        scratch: str = "",
        *,
        guarded: Sequence[str] = (),
        sockets: Sequence[str] = (),
        unreadable: Sequence[str] = (),
        allowed: Grant = NOTHING,
        read_only: bool = False,
    ) -> list[str]:
        """The command that runs `argv` in the sandbox, with the workspace as its working folder. Files that it writes to `/tmp`
        stay in the folder `scratch`; without one they are gone at the end (seatbelt has no private `/tmp`). `guarded` are the
        paths in the workspace that are read-only, `sockets` the sockets in it, `unreadable` files and folders to hide, `allowed`
        is what a person allowed this command. With `read_only` it can write nothing, has no network and sees of the machine only
        its programs. Looks at the disk: call it off the event loop."""
        if allowed.outside:
            return list(argv)
        if read_only:
            here = msgspec.structs.replace(self, network=False, writable=())
        else:
            here = msgspec.structs.replace(
                self, network=self.network or allowed.network, writable=(*self.writable, *allowed.folders)
            )
        match self.kind:
            case "bubblewrap" if read_only:
                return [
                    *_bubblewrap_reading(here, workspace),
                    *_unreadable_mounts(unreadable),
                    "--chdir",
                    workspace,
                    "--",
                    *argv,
                ]
            case "bubblewrap":
                mounts = _bubblewrap(here, workspace, scratch, guarded, sockets)
                held = sorted({path for place in unreadable for path in _folders_between(place, workspace)})
                mounts += [word for path in held for word in ("--bind", path, path)]
                return [*mounts, *_unreadable_mounts(unreadable), "--chdir", workspace, "--", *argv]
            case "seatbelt":
                profile = seatbelt_profile(here, workspace, read_only=read_only, unreadable=unreadable)
                return [self.program, "-p", profile, *argv]
            case "":
                return list(argv)

    def cache(self, workspace: str) -> str:
        """The folder in which the commands of a workspace keep downloads; empty where they have none of their own."""
        name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
        return str(Path(self.caches) / name) if self.caches and self.kind else ""

    def variables(self, workspace: str, allowed: Grant = NOTHING) -> dict[str, str]:
        """Environment variables to set inside, so that package managers use `cache` instead of the person's own cache, which is
        read-only there; a package manager whose own cache is writable keeps it."""
        cache, home = self.cache(workspace), Path.home()
        open_ = [Path(folder) for folder in (*self.writable, *allowed.folders)]
        caches = {
            name: f"{cache}/{Path(usual).name.lstrip('.')}"
            for name, usual in _CACHES.items()
            if cache and not allowed.outside and not any((home / usual).is_relative_to(folder) for folder in open_)
        }
        offline = bool(self.kind) and not (self.network or allowed.network or allowed.outside)
        return caches | ({"npm_config_fetch_retries": "0"} if offline else {})  # it would try for more than a minute

    def can_write(self, folder: str) -> bool:
        """Whether commands may write in a folder. False for one that is hidden inside, or that holds something hidden, as the
        home folder does: a command that can write there could replace the hidden folder with another one."""
        here = Path(folder)
        return not any(here.is_relative_to(place) or Path(place).is_relative_to(here) for place in self.hidden)


def find_sandbox(
    workspace: str = "",
    *,
    network: bool = False,
    hidden: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    caches: Path | None = None,
) -> Sandbox:
    """The sandbox of this machine for a workspace, after one trial run (some ten milliseconds); one of kind "" where none
    works."""
    home = Path.home()
    places = [*(home / name for name in SECRETS), *map(Path, _ROOT_SECRETS), *hidden]
    secrets = tuple(dict.fromkeys(os.path.realpath(place) for place in places))
    kind: Kind = "seatbelt" if sys.platform == "darwin" else "bubblewrap" if sys.platform == "linux" else ""
    program = {"seatbelt": "sandbox-exec", "bubblewrap": "bwrap", "": ""}[kind]
    program = program and find_program(program, workspace)
    if not program:
        return Sandbox()
    folders, seen = (tuple(os.path.realpath(place.expanduser()) for place in given) for given in (writable, readable))
    sandbox = Sandbox(kind, program, network, secrets, folders, seen, os.path.realpath(caches) if caches else "")
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


def _bubblewrap(
    sandbox: Sandbox, workspace: str, scratch: str, guarded: Sequence[str], sockets: Sequence[str]
) -> list[str]:
    argv = [sandbox.program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root can write root's own files without any capability: in /proc the kernel's settings, among them the program that the
    # kernel starts, outside the sandbox, when a process crashes.
    argv += ["--remount-ro", "/proc"] if os.geteuid() == 0 else []
    for private in PRIVATE:
        if Path(private).is_dir() and not Path(private).is_symlink():
            argv += ["--bind", scratch, private] if scratch and private == "/tmp" else ["--tmpfs", private]
    for needed in (*_NEEDED, *(_RESOLVER_FOLDERS if sandbox.network else ())):
        argv += ["--ro-bind-try", needed, needed]
    homes = _homes(workspace)
    for home in homes:
        argv += ["--tmpfs", home]
    for place in (*_seen_of_homes(homes, workspace), *sandbox.readable):
        argv += ["--ro-bind-try", place, place]
    writable = sandbox.can_write(workspace)
    argv += ["--bind" if writable else "--ro-bind", workspace, workspace] if workspace != "/" else []
    for folder in sandbox.writable:
        argv += ["--bind-try", folder, folder]
    held = [_folders_between(place, folder) for folder in sandbox.writable for place in guarded]
    for path in sorted({path for mounts in held for path in mounts}):
        argv += ["--bind", path, path]
    for place in guarded:
        argv += ["--ro-bind-try", place, place]
    argv += _program_mounts((workspace, *sandbox.writable))
    argv += _hiding_mounts(sandbox, workspace, sockets)
    if cache := sandbox.cache(workspace):
        argv += ["--bind-try", cache, cache]
    for home in homes:  # a file written there would be lost without an error
        argv += ["--remount-ro", home]
    return [*argv, *_namespace_options(sandbox.network)]


def _bubblewrap_reading(sandbox: Sandbox, workspace: str) -> list[str]:
    argv = [sandbox.program, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    argv += ["--remount-ro", "/proc"] if os.geteuid() == 0 else []
    for place in (*_SYSTEM, *_NEEDED, *_seen_of_homes(_homes(workspace), workspace), workspace):
        argv += ["--ro-bind-try", place, place]
    argv += _hiding_mounts(sandbox, workspace)
    return [*argv, "--remount-ro", "/", *_namespace_options(network=False)]


def _unreadable_mounts(places: Sequence[str]) -> list[str]:
    """Options that replace each unreadable path with an empty, read-only one."""
    argv: list[str] = []
    for place in places:
        argv += ["--tmpfs", place, "--remount-ro", place] if Path(place).is_dir() else ["--ro-bind", "/dev/null", place]
    return argv


def _namespace_options(network: bool) -> list[str]:
    """Options for separate namespaces and no capabilities: with capabilities, root inside could undo the mounts."""
    alone = ["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    return [*alone, *([] if network else ["--unshare-net"]), "--cap-drop", "ALL", "--die-with-parent"]


def _homes(workspace: str) -> list[str]:
    """The home folders of this machine, none of them inside another, and without those that the workspace contains."""
    places = {os.path.realpath(place) for place in (Path.home(), pwd.getpwuid(os.getuid()).pw_dir, *_HOMES)}
    found: list[str] = []
    for place in sorted(place for place in places if place != "/" and Path(place).is_dir()):
        covered = any(Path(place).is_relative_to(home) for home in found)
        if not covered and not (workspace and Path(place).is_relative_to(workspace)):
            found.append(place)
    return found


def _seen_of_homes(homes: Sequence[str], workspace: str) -> list[str]:
    """Existing paths below the home folders that commands can read: toolchains, the folders of PATH, this program and the
    workspace's repository."""
    own = dict.fromkeys((str(Path.home()), os.path.realpath(Path.home()), pwd.getpwuid(os.getuid()).pw_dir))
    found = [f"{home}/{name}" for home in own for name in TOOLCHAINS]
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        environment = Path(folder).parent
        found.append(str(environment) if (environment / "pyvenv.cfg").is_file() else folder)
    found += [*own_places(), "/home/linuxbrew"]
    below = [
        place for place in found if any(place.startswith(f"{home}/") for home in (*own, *homes)) and place not in own
    ]
    return [place for place in (*below, *_repository_of(workspace)) if Path(place).exists()]


def _repository_of(workspace: str) -> list[str]:
    """The repository around the workspace, and the one that it is a worktree of. `linked_worktree` asks that repository to
    confirm it: a file in the worktree could name any."""
    homes = _homes("")
    around = next(
        (str(folder) for folder in (Path(workspace), *Path(workspace).parents) if (folder / ".git").exists()), ""
    )
    if not around or any(Path(home).is_relative_to(around) for home in homes):
        return []
    linked = linked_worktree(around)
    return [around, *([linked.repository] if linked else [])]


def _program_mounts(folders: Sequence[str]) -> list[str]:
    """Mounts that make this program read-only where it lies in a writable folder, and keep the folders above it from being
    moved."""
    argv: list[str] = []
    for place in own_places():
        for folder in folders:
            if not Path(place).is_relative_to(folder):
                continue
            argv += [word for path in _folders_between(place, folder) for word in ("--bind", path, path)]
            argv += ["--ro-bind-try", place, place]
    return argv


def _folders_between(place: str, folder: str) -> list[str]:
    """The folders between `folder` and a path in it. Each is mounted, so that a command cannot move it and put another path in
    the place of the protected one."""
    if not Path(place).is_relative_to(folder):
        return []
    between = Path(place).relative_to(folder).parts[:-1]
    return [str(Path(folder, *between[:n])) for n in range(1, len(between) + 1)]


def _hiding_mounts(sandbox: Sandbox, workspace: str, sockets: Sequence[str] = ()) -> list[str]:
    """Mounts that hide secrets, and sockets: a read-only mount would not keep a command from connecting to one."""
    argv: list[str] = []
    for secret in (hidden := _existing_secrets(sandbox, workspace)):
        argv += ["--tmpfs", secret] if Path(secret).is_dir() else ["--ro-bind", "/dev/null", secret]
    away = (*PRIVATE, *hidden, *_homes(workspace))
    for name in sorted({*_sockets(workspace), *sockets}):
        if Path(name).is_relative_to(workspace) or not any(Path(name).is_relative_to(place) for place in away):
            argv += ["--ro-bind", "/dev/null", name]
    return argv


def _sockets(workspace: str) -> set[str]:
    """The paths of Unix sockets that a process listens at now. Where one was bound by a relative name, its folder is not known,
    and all sockets in the workspace are added."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return set()
    names = {name for line in lines for name in line.split(maxsplit=7)[7:]}
    found = {os.path.realpath(name) for name in names if name.startswith("/") and _is_socket(name)}
    if any(name[0] not in "/@" for name in names):
        walked = os.walk(workspace) if workspace != "/" else ()
        found |= {
            path for folder, _, files in walked for path in (f"{folder}/{file}" for file in files) if _is_socket(path)
        }
    return found


def _is_socket(name: str) -> bool:
    """Whether a path is a socket, links followed."""
    try:
        return stat.S_ISSOCK(os.stat(name).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False


def _existing_secrets(sandbox: Sandbox, workspace: str) -> list[str]:
    """The secrets that exist now, without any that contains the workspace and any that lies in another hidden folder."""
    found: list[str] = []
    for path in sorted(sandbox.hidden):
        covered = any(Path(path).is_relative_to(folder) for folder in found)
        if Path(path).exists() and not covered and not Path(workspace).is_relative_to(path):
            found.append(path)
    return found


def seatbelt_profile(
    sandbox: Sandbox, workspace: str, *, read_only: bool = False, unreadable: Sequence[str] = ()
) -> str:
    """The profile for macOS' `sandbox-exec`; later rules win."""
    temporary = os.path.realpath(os.environ.get("TMPDIR") or "/private/tmp")
    ours = (workspace,) if workspace != "/" and sandbox.can_write(workspace) else ()
    cache = sandbox.cache(workspace)
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    opened = ("/dev",) if read_only else (*ours, temporary, "/private/tmp", "/dev")
    lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in opened]
    lines += [f'(deny file-write* (regex #"{_at_any_depth(workspace, name)}"))' for name in (*GUARDED, "head")]
    lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in sandbox.writable]
    inside = [
        place for place in own_places() for folder in (*ours, *sandbox.writable) if Path(place).is_relative_to(folder)
    ]
    lines += [f"(deny file-write* (subpath {_quoted(place)}))" for place in inside]
    homes = [home for home in ("/Users", str(Path.home())) if not Path(home).is_relative_to(workspace)]
    lines += [f"(deny file-read-data (subpath {_quoted(home)}))" for home in homes]
    seen = [] if read_only else [*_seen_of_homes(homes, workspace), *sandbox.readable, *sandbox.writable]
    lines += [f"(allow file-read-data (subpath {_quoted(path)}))" for path in (*seen, workspace) if homes]
    lines += [
        f"(deny file-read* file-write* (subpath {_quoted(path)}))"
        for path in (*_existing_secrets(sandbox, workspace), *unreadable)
    ]
    lines += [f"(allow file-read* file-write* (subpath {_quoted(cache)}))"] if cache and not read_only else []
    lines += [] if sandbox.network else ["(deny network*)"]
    return "\n".join(lines)


def _at_any_depth(workspace: str, name: str) -> str:
    """The regular expression for a guarded name and all below it, in upper or lower case, because the file system mostly makes no
    difference. Has no backslashes and quotes, which a profile would interpret itself."""

    def pattern_of(c: str) -> str:
        letter = f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha() else c
        return letter if c.isalnum() or c in "/-_" else "." if c in '\\"^]' else f"[{c}]"

    wanted = "".join("[^/]*" if c == "*" else pattern_of(c) for c in name)
    return f"^{''.join(map(pattern_of, workspace.rstrip('/')))}/(.*/)?{wanted}{'$' if name == 'head' else '(/|$)'}"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_OFFLINE = expression(
    r"(?i)could ?n[o'’]?t resolve|could not resolve|name resolution|name or service not known|nodename nor servname"
    r"|no address associated|network is (?:unreachable|down)|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|dns error"
    r"|unknown host|failed to lookup address"
)
_READ_ONLY = expression(r"(?i)read-only file ?system|EROFS|os error 30|Errno 30")
_READ_ONLY_PATH = expression(
    r"(?i)[\s'\"`‘]([^\s'\"`‘’]+)['\"`’]?: read-only|read-only file ?system[^:]*: ['\"]?([^\s'\"]+)"
)
"""The path in such a message: before the words, as the shell and its tools write it, or after them, as Python does."""

_DOWNLOAD_FOLDERS = {
    "uv": ".cache/uv", "uvx": ".cache/uv", "pip": ".cache/pip", "pip3": ".cache/pip", "npm": ".npm", "npx": ".npm",
    "yarn": ".cache/yarn", "pnpm": ".local/share/pnpm", "cargo": ".cargo/registry", "go": "go/pkg", "mvn": ".m2/repository",
    "pre-commit": ".cache/pre-commit", "composer": ".cache/composer", "ccache": ".cache/ccache", "dotnet": ".nuget/packages",
}  # fmt: skip
"""Programs with the folder below the home folder in which they keep downloads."""

_GIT_WRITES = expression(
    r"\bgit\s+(?P<options>(?>(?:-[Cc]|--(?:git-dir|work-tree|namespace|config-env|exec-path|attr-source))\s+"
    r"(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|[^\s\"']){1,400}\s+|-\S+\s+){0,9})(?:add|am|bisect|branch|checkout|cherry-pick|clean|commit|fetch|gc|maintenance|merge|mv|notes|pull"
    r"|push|rebase|remote|reset|restore|revert|rm|stash|submodule|switch|tag|update-ref|worktree)\b"
)


def known_needs(command: str, workspace: str) -> tuple[str, ...]:
    """Folders outside the usual ones that a command is known to write in: git's own folder in the workspace, and a package
    manager's cache where it exists."""
    words = re.findall(r"[\w.-]+", command)
    caches = (Path.home() / _DOWNLOAD_FOLDERS[word] for word in dict.fromkeys(words) if word in _DOWNLOAD_FOLDERS)
    git = (_repository(workspace, found["options"]) for found in _GIT_WRITES.finditer(command))
    return (*dict.fromkeys(filter(None, git)), *(str(folder.resolve()) for folder in caches if folder.is_dir()))


_GIT_FOLDER = expression(r"(?<!\S)-C\s+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")


def _repository(workspace: str, options: str) -> str:
    """The `.git` that a git command with these global options writes in; empty where they lead out of the workspace."""
    folder = workspace
    for named in _GIT_FOLDER.finditer(options):
        folder = os.path.realpath(Path(folder, named[1] or named[2] or named[3]))
    if not Path(folder).is_relative_to(workspace):
        return ""
    while folder != workspace and not (Path(folder) / ".git").exists():
        folder = str(Path(folder).parent)
    linked = linked_worktree(folder)
    return linked.repository if linked else str(Path(folder) / ".git")


_MISSING = expression(r"(?i)no such file|cannot open")
_MISSING_PATH = expression(
    r"(?i)([^\s'\"`‘:]+)['\"`’]?: (?:no such file|cannot open)|no such file[^:]*: ['\"]?([^\s'\"]+)"
)

_LOOPBACK = expression(r"\blocalhost\b|\b127\.0\.0\.1\b|\[?::1\b|\b0\.0\.0\.0\b")
_NOT_CONNECTED = expression(r"(?i)connection refused|econnrefused|(?:couldn't|failed to|unable to|cannot) connect")

_KEY_PROGRAMS = expression(
    r"\b(?:ssh|scp|sftp|ssh-add|gpg2?|pass|docker|podman|docker-compose)\b|(?m:^)(?>.*?\bgit\b).*\s(?:-S|--gpg-sign)\b"
)
"""Commands that need a socket: to a key agent, or to a container engine. Only the first `git` of a line counts, or a line with
many would be searched once for each."""

_KEY_REFUSAL = expression(
    r"(?i)cannot connect|connection refused|permission denied|could not open a connection|no such file|no secret key"
    r"|failed to sign|host key verification|no pinentry|agent"
)


def lacked_network(output: str, sandbox: Sandbox) -> bool:
    """Whether a command's output looks as if it wanted the network, which the sandbox does not give."""
    return bool(sandbox.kind) and not sandbox.network and _OFFLINE.search(output) is not None


def stopped_by_sandbox(
    command: str,
    output: str,
    sandbox: Sandbox,
    workspace: str,
    allowed: Grant,
    *,
    failed: bool,
    read_only: bool = False,
) -> list[str]:
    """Lines to append to a command's output where it looks as if the sandbox stopped it. For a command that did not fail (a pipe
    may have hidden the failure) only the last lines are searched. `read_only`: it ran where nothing can be written."""
    notes: list[str] = []
    lines = output.splitlines() if failed else output.splitlines()[-_LAST_LINES:]
    lines = [line for line in lines if len(line) <= MAX_MESSAGE_CHARS]
    output = "\n".join(lines)
    if not allowed.network and lacked_network(output, sandbox):
        notes.append(
            "[The sandbox has no network. If the command needs it, call again with network: true and why; the user is asked.]"
        )
    elif (
        not (sandbox.network or allowed.network)
        and _LOOPBACK.search(command + output)
        and _NOT_CONNECTED.search(output)
    ):
        notes.append(
            "[In the sandbox each command has a network of its own, without what else listens on this machine. To reach a "
            "server, call again with network: true and why; one that runs in the background needs it as well.]"
        )
    if _KEY_PROGRAMS.search(command) and _KEY_REFUSAL.search(output):
        notes.append(
            "[The sandbox hides keys and sockets, which ssh, gpg and docker need. Ask the user to let this command run outside "
            "of it.]"
        )
    refused = next((line for line in lines if _READ_ONLY.search(line)), "")
    if refused and read_only:
        notes.append(
            "[This counts as a command that only reads: it ran without a question, where nothing can be written.]"
        )
        return notes
    if refused:
        named = _READ_ONLY_PATH.search(refused)
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
    missing = [line for line in lines if _MISSING.search(line)][:MAX_MISSING_LINES]
    named = [os.path.normpath(found[1] or found[2]) for line in missing for found in _MISSING_PATH.finditer(line)]
    if any(_is_hidden(name, workspace) for name in named):
        notes.append(
            "[Of the home folder the sandbox shows toolchains only. The user can show more: permissions.readable.]"
        )
    if private := next(
        (p for p in PRIVATE for name in named if name.startswith(f"{p}/") and os.path.lexists(name)), ""
    ):
        notes.append(
            f"[{private} is the commands' own in the sandbox: what others put there is not seen. read_file reads it, once the "
            "user allows that; or ask the user to let this command run outside.]"
        )
    return notes


_LAST_LINES = 12

MAX_MISSING_LINES = 50
"""Messages about a missing file that are examined."""

MAX_MESSAGE_CHARS = 500
"""Characters of a line that is searched: a longer one is no program's message, and would take long to search."""


def _is_hidden(name: str, workspace: str) -> bool:
    """Whether a path that was not found lies in a home folder and not in the workspace."""
    return any(name.startswith(f"{home}/") for home in _homes(workspace)) and not name.startswith(f"{workspace}/")


def taken_away(paths: Sequence[str], folder: str) -> str:
    """The line that tells a model which files of a command were moved to `folder`, because they lay where they could run
    later."""
    return (
        f"[Moved out of the workspace, because it could run later without anybody asking: {', '.join(paths)}. It lies in "
        f"{folder}. To have it there, use write_file, or ask the user to let the command run outside the sandbox.]"
    )
