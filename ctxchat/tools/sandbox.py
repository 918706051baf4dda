"""Shutting a command in, where the system offers it: bubblewrap on Linux, seatbelt on macOS. Decides nothing about approval.

Inside, the workspace can be written but for its guarded places. Of the home folder only toolchains are seen, the rest of the
system can be read; `/tmp` is the session's own, sockets are covered, and there is no network unless it was allowed. A command
that nobody was asked about sees programs and the workspace, and can write neither. What a command and the person behind it are
told of that: what it is known to need, what it was stopped by.
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
"""What commands see of a home folder: what builds and runs things, and no place where tools keep who somebody is."""

SECRETS = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker", ".password-store", ".netrc", ".git-credentials", ".pypirc", ".npmrc",
    ".config/gh", ".config/hub", ".config/gcloud", ".config/op", ".config/rclone", ".config/git/credentials", ".vault-token",
    ".terraform.d/credentials.tfrc.json", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".local/share/keyrings", ".local/share/kwalletd", ".mozilla", ".thunderbird",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".bash_history", ".zsh_history", ".python_history",
    ".psql_history", "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
)  # fmt: skip
"""Below the home folder, for who works in it, or opens it to commands; what is not there is passed over."""

_OF_ROOT = ("/etc/shadow", "/etc/gshadow")
"""Who works as root could read these without a sandbox."""

PRIVATE = ("/tmp", "/var/tmp", "/run", "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd")
"""Other folders inside than outside. A read-only mount stops nobody from speaking to a socket: the ones of Docker, the key ring
and the desktop lie in here."""

_NEEDED_FOR_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Where `/etc/resolv.conf` leads; a resolver answers there too, so only where the network may be reached."""

_NEEDED = ("/run/current-system", "/run/wrappers")

_HOMES = ("/home", "/root", "/var/home")

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store", "/snap",
    *(f"/etc/{name}" for name in (
        "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "nsswitch.conf", "localtime", "gitconfig",
        "terminfo", "inputrc", "locale.alias", "default/locale", "static",
    )),
)  # fmt: skip
"""All that a command sees that nobody was asked about, besides the workspace and programs in PATH."""

_CACHES = {
    "UV_CACHE_DIR": ".cache/uv",
    "PIP_CACHE_DIR": ".cache/pip",
    "npm_config_cache": ".npm",
    "YARN_CACHE_FOLDER": ".cache/yarn",
    "GOCACHE": ".cache/go-build",
    "PRE_COMMIT_HOME": ".cache/pre-commit",
}
"""Variables by which tools are told where to keep what they downloaded, with the usual place below the home folder."""


class Sandbox(msgspec.Struct, frozen=True):
    """A way to shut commands in. `kind` is empty for none at all, `program` is the file that does it. `hidden` are folders and
    files that must not be seen inside, `writable` folders beside the workspace that may be written, `readable` such that are seen
    although they lie in a home folder, `caches` a folder in which each workspace gets a cache of its own for package managers,
    empty for none."""

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
        """The command that runs `argv` inside, in the workspace. What it writes to `/tmp` stays in the folder `scratch`; without
        one it is gone at the end (seatbelt knows no private one). `guarded` are the paths in the workspace that can be read
        only, `sockets` such that lie in it, `unreadable` files and folders to be covered, `allowed` is what a person allowed this
        command. With `read_only` it writes nothing, has no network and sees nothing of the machine but its programs. Looks at the
        disk: off the event loop."""
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
                return [*_bubblewrap_reading(here, workspace), *_emptied(unreadable), "--chdir", workspace, "--", *argv]
            case "bubblewrap":
                mounts = _bubblewrap(here, workspace, scratch, guarded, sockets)
                held = sorted({path for place in unreadable for path in _folders_between(place, workspace)})
                mounts += [word for path in held for word in ("--bind", path, path)]
                return [*mounts, *_emptied(unreadable), "--chdir", workspace, "--", *argv]
            case "seatbelt":
                profile = seatbelt_profile(here, workspace, read_only=read_only, unreadable=unreadable)
                return [self.program, "-p", profile, *argv]
            case "":
                return list(argv)

    def cache(self, workspace: str) -> str:
        """Where the commands of a workspace keep what they downloaded; empty for nowhere of their own."""
        name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
        return str(Path(self.caches) / name) if self.caches and self.kind else ""

    def variables(self, workspace: str, allowed: Grant = NOTHING) -> dict[str, str]:
        """What to set inside, so that package managers use that cache instead of the person's own, which cannot be written
        there; those whose own may be written use it."""
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
        """False for a folder that is hidden inside, or holds something that is, as the home folder does: whoever may write there
        can put another folder in the place of the hidden one."""
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
    """The sandbox of this machine for a workspace, tried out once (some ten milliseconds); one of kind "" where none works."""
    home = Path.home()
    places = [*(home / name for name in SECRETS), *map(Path, _OF_ROOT), *hidden]
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
    # What belongs to root can be written by root without any capability: the kernel's settings, among them which program is
    # started, outside, when a process crashes.
    argv += ["--remount-ro", "/proc"] if os.geteuid() == 0 else []
    for private in PRIVATE:
        if Path(private).is_dir() and not Path(private).is_symlink():
            argv += ["--bind", scratch, private] if scratch and private == "/tmp" else ["--tmpfs", private]
    for needed in (*_NEEDED, *(_NEEDED_FOR_NAMES if sandbox.network else ())):
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
    argv += _fixed((workspace, *sandbox.writable))
    argv += _covered(sandbox, workspace, sockets)
    if cache := sandbox.cache(workspace):
        argv += ["--bind-try", cache, cache]
    for home in homes:  # what is written there would be gone, and nobody told
        argv += ["--remount-ro", home]
    return [*argv, *_apart(sandbox.network)]


def _bubblewrap_reading(sandbox: Sandbox, workspace: str) -> list[str]:
    argv = [sandbox.program, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    argv += ["--remount-ro", "/proc"] if os.geteuid() == 0 else []
    for place in (*_SYSTEM, *_NEEDED, *_seen_of_homes(_homes(workspace), workspace), workspace):
        argv += ["--ro-bind-try", place, place]
    argv += _covered(sandbox, workspace)
    return [*argv, "--remount-ro", "/", *_apart(network=False)]


def _emptied(places: Sequence[str]) -> list[str]:
    """What must not be read, empty and read-only."""
    argv: list[str] = []
    for place in places:
        argv += ["--tmpfs", place, "--remount-ro", place] if Path(place).is_dir() else ["--ro-bind", "/dev/null", place]
    return argv


def _apart(network: bool) -> list[str]:
    """Who is root inside could take the mounts off again: no capabilities."""
    alone = ["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    return [*alone, *([] if network else ["--unshare-net"]), "--cap-drop", "ALL", "--die-with-parent"]


def _homes(workspace: str) -> list[str]:
    """The home folders of this machine, none in another; but not those somebody works in as a whole."""
    places = {os.path.realpath(place) for place in (Path.home(), pwd.getpwuid(os.getuid()).pw_dir, *_HOMES)}
    found: list[str] = []
    for place in sorted(place for place in places if place != "/" and Path(place).is_dir()):
        covered = any(Path(place).is_relative_to(home) for home in found)
        if not covered and not (workspace and Path(place).is_relative_to(workspace)):
            found.append(place)
    return found


def _seen_of_homes(homes: Sequence[str], workspace: str) -> list[str]:
    """What of the home folders commands can read."""
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
    """The repository around the workspace, and the one that a worktree belongs to. That says so itself: a file of the worktree
    could name any."""
    homes = _homes("")
    around = next(
        (str(folder) for folder in (Path(workspace), *Path(workspace).parents) if (folder / ".git").exists()), ""
    )
    if not around or any(Path(home).is_relative_to(around) for home in homes):
        return []
    linked = linked_worktree(around)
    return [around, *([linked.repository] if linked else [])]


def _fixed(folders: Sequence[str]) -> list[str]:
    """This program, where it lies in a folder that can be written: read-only, and the folders above it not to be moved."""
    argv: list[str] = []
    for place in own_places():
        for folder in folders:
            if not Path(place).is_relative_to(folder):
                continue
            argv += [word for path in _folders_between(place, folder) for word in ("--bind", path, path)]
            argv += ["--ro-bind-try", place, place]
    return argv


def _folders_between(place: str, folder: str) -> list[str]:
    """The folders between a folder and a place in it: they are mounted, so that none can be moved and what is known of the place
    stays true."""
    if not Path(place).is_relative_to(folder):
        return []
    between = Path(place).relative_to(folder).parts[:-1]
    return [str(Path(folder, *between[:n])) for n in range(1, len(between) + 1)]


def _covered(sandbox: Sandbox, workspace: str, sockets: Sequence[str] = ()) -> list[str]:
    """Secrets, and sockets, which a read-only mount keeps nobody from speaking to."""
    argv: list[str] = []
    for secret in (hidden := _hidden(sandbox, workspace)):
        argv += ["--tmpfs", secret] if Path(secret).is_dir() else ["--ro-bind", "/dev/null", secret]
    away = (*PRIVATE, *hidden, *_homes(workspace))
    for name in sorted({*_sockets(workspace), *sockets}):
        if Path(name).is_relative_to(workspace) or not any(Path(name).is_relative_to(place) for place in away):
            argv += ["--ro-bind", "/dev/null", name]
    return argv


def _sockets(workspace: str) -> set[str]:
    """The sockets that somebody listens at now. Where a name begins in some folder, that may be any of the workspace."""
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
    """Following links."""
    try:
        return stat.S_ISSOCK(os.stat(name).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False


def _hidden(sandbox: Sandbox, workspace: str) -> list[str]:
    """Secrets that exist now, but not the folder somebody is just working in, nor what a hidden folder hides already."""
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
        for path in (*_hidden(sandbox, workspace), *unreadable)
    ]
    lines += [f"(allow file-read* file-write* (subpath {_quoted(cache)}))"] if cache and not read_only else []
    lines += [] if sandbox.network else ["(deny network*)"]
    return "\n".join(lines)


def _at_any_depth(workspace: str, name: str) -> str:
    """The regular expression for a guarded name and all below it, in whichever case: the system mostly knows no difference.
    Without backslashes and quotes, which a profile has its own ideas of."""

    def sign(c: str) -> str:
        letter = f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha() else c
        return letter if c.isalnum() or c in "/-_" else "." if c in '\\"^]' else f"[{c}]"

    wanted = "".join("[^/]*" if c == "*" else sign(c) for c in name)
    return f"^{''.join(map(sign, workspace.rstrip('/')))}/(.*/)?{wanted}{'$' if name == 'head' else '(/|$)'}"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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
    r"\bgit\s+(?P<options>(?>(?:-[Cc]|--(?:git-dir|work-tree|namespace|config-env|exec-path|attr-source))\s+"
    r"(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|[^\s\"']){1,400}\s+|-\S+\s+){0,9})(?:add|am|bisect|branch|checkout|cherry-pick|clean|commit|fetch|gc|maintenance|merge|mv|notes|pull"
    r"|push|rebase|remote|reset|restore|revert|rm|stash|submodule|switch|tag|update-ref|worktree)\b"
)


def known_needs(command: str, workspace: str) -> tuple[str, ...]:
    """Folders that a command like this writes in: git's own in the workspace, a package manager's cache where there is one."""
    words = re.findall(r"[\w.-]+", command)
    caches = (Path.home() / _FOLDERS[word] for word in dict.fromkeys(words) if word in _FOLDERS)
    git = (_repository(workspace, found["options"]) for found in _GIT_WRITES.finditer(command))
    return (*dict.fromkeys(filter(None, git)), *(str(folder.resolve()) for folder in caches if folder.is_dir()))


_GIT_FOLDER = expression(r"(?<!\S)-C\s+(?:\"([^\"]+)\"|'([^']+)'|(\S+))")


def _repository(workspace: str, options: str) -> str:
    """The `.git` that a command with these global options writes in; empty where it goes out of the workspace."""
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
_HIDDEN = expression(r"(?i)([^\s'\"`‘:]+)['\"`’]?: (?:no such file|cannot open)|no such file[^:]*: ['\"]?([^\s'\"]+)")

_HERE = expression(r"\blocalhost\b|\b127\.0\.0\.1\b|\[?::1\b|\b0\.0\.0\.0\b")
_NOBODY = expression(r"(?i)connection refused|econnrefused|(?:couldn't|failed to|unable to|cannot) connect")

_KEYS = expression(
    r"\b(?:ssh|scp|sftp|ssh-add|gpg2?|pass|docker|podman|docker-compose)\b|(?m:^)(?>.*?\bgit\b).*\s(?:-S|--gpg-sign)\b"
)
"""Programs that speak to somebody who knows keys, or to an engine, over a socket. Of each line the first `git` alone counts, or a
line of many would be read once for each."""

_REFUSED = expression(
    r"(?i)cannot connect|connection refused|permission denied|could not open a connection|no such file|no secret key"
    r"|failed to sign|host key verification|no pinentry|agent"
)


def lacked_network(output: str, sandbox: Sandbox) -> bool:
    """Whether it looks as if a command wanted the network, which the sandbox does not give."""
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
    """Lines for the end of a command's output, where it looks as if the sandbox was in its way. One that did not fail may have
    hidden it in a pipe: what its last lines say counts. `read_only`: it ran where nothing can be written."""
    notes: list[str] = []
    lines = output.splitlines() if failed else output.splitlines()[-_LAST_LINES:]
    lines = [line for line in lines if len(line) <= MAX_MESSAGE_CHARS]
    output = "\n".join(lines)
    if not allowed.network and lacked_network(output, sandbox):
        notes.append(
            "[The sandbox has no network. If the command needs it, call again with network: true and why; the user is asked.]"
        )
    elif not (sandbox.network or allowed.network) and _HERE.search(command + output) and _NOBODY.search(output):
        notes.append(
            "[In the sandbox each command has a network of its own, without what else listens on this machine. To reach a "
            "server, call again with network: true and why; one that runs in the background needs it as well.]"
        )
    if _KEYS.search(command) and _REFUSED.search(output):
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
    missing = [line for line in lines if _MISSING.search(line)][:MAX_MISSING_LINES]
    named = [os.path.normpath(found[1] or found[2]) for line in missing for found in _HIDDEN.finditer(line)]
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
"""Lines that are looked at for a file that was not found."""

MAX_MESSAGE_CHARS = 500
"""Of a line: a longer one is no message of a program, and would take long to be looked through."""


def _is_hidden(name: str, workspace: str) -> bool:
    """Whether a path that was not found lies in a home folder and not in the workspace."""
    return any(name.startswith(f"{home}/") for home in _homes(workspace)) and not name.startswith(f"{workspace}/")


def taken_away(paths: Sequence[str], folder: str) -> str:
    """The line that names what a command put where it could run later."""
    return (
        f"[Moved out of the workspace, because it could run later without anybody asking: {', '.join(paths)}. It lies in "
        f"{folder}. To have it there, use write_file, or ask the user to let the command run outside the sandbox.]"
    )
