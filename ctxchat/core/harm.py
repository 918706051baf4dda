"""Recognises commands that destroy something for good (`rm -r`, `git push --force`), by their words. An approval shows that in
red, and offers no standing rule for them.

Pure. It is a list of known programs, so a command that is not on it may do harm as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctxchat.core.permissions import Part

DELETES, PUSHES, DISCARDS, ERASES, PUBLISHES = (
    "deletes",
    "overwrites what was pushed",
    "discards work",
    "erases a disk",
    "publishes",
)


def harms(parts: Sequence[Part]) -> tuple[str, ...]:
    """What the parts of a command line destroy, in words for a person (`deletes`), each once; the commands that a part runs in
    its turn (`part.inner`) are included."""
    found: list[str] = []
    for part in parts:
        found += [_harm([word.text for word in part.words]), *harms(part.inner)]
    return tuple(dict.fromkeys(filter(None, found)))


def _harm(words: Sequence[str]) -> str:
    """What one command destroys, by its program and arguments; empty for nothing that is known."""
    if not words:
        return ""
    program, rest = words[0].rpartition("/")[2].lower(), list(words[1:])
    if program == "git":
        return _git(rest)
    if program.startswith("mkfs") or program in {"wipefs", "sgdisk", "blkdiscard"}:
        return ERASES
    return next((harm for test, harm in _BY_PROGRAM.get(program, ()) if test(rest)), "")


def _short(letter: str, *long: str) -> Callable[[Sequence[str]], bool]:
    """A test that is true for arguments with this option: the `letter` alone or joined with others (`-rf`), or one of the `long`
    names. Each test takes the arguments behind the program's name."""

    def test(rest: Sequence[str]) -> bool:
        options = rest[: rest.index("--")] if "--" in rest else rest
        joined = (word for word in options if word.startswith("-") and not word.startswith("--"))
        return any(letter in word for word in joined) or any(word.partition("=")[0] in long for word in options)

    return test


def _begins(*names: str) -> Callable[[Sequence[str]], bool]:
    """A test that is true for arguments that begin with these words (`volume rm`), options left out. It does not know which
    options take a value: `-n prod delete` begins with `prod`."""
    return lambda rest: [word for word in rest if not word.startswith("-")][: len(names)] == list(names)


def _any(rest: Sequence[str]) -> bool:
    return True


def _with_volumes(rest: Sequence[str]) -> bool:
    """True for arguments of docker compose that take the services down together with their data."""
    return "down" in rest and _short("v", "--volumes")(rest[rest.index("down") :])


_NO_DISKS = tuple(f"of=/dev/{name}" for name in ("null", "zero", "full", "std", "tty", "fd/", "shm/"))
"""Beginnings of what dd can write to below /dev without erasing a disk."""

_BY_PROGRAM: dict[str, Sequence[tuple[Callable[[Sequence[str]], bool], str]]] = {
    "rm": [
        (_short("r", "--recursive"), DELETES),
        (_short("R"), DELETES),
        (lambda rest: "--no-preserve-root" in rest, DELETES),
    ],
    "shred": [(_any, DELETES)],
    "truncate": [(_any, DELETES)],
    "dd": [(lambda rest: any(w.startswith("of=/dev/") and not w.startswith(_NO_DISKS) for w in rest), ERASES)],
    "fdisk": [(lambda rest: not any(word.startswith(("-l", "--list")) for word in rest), ERASES)],
    "find": [(lambda rest: "-delete" in rest, DELETES)],
    "rsync": [(lambda rest: any(word == "--del" or word.startswith("--delete") for word in rest), DELETES)],
    "dropdb": [(_any, DELETES)],
    "kubectl": [(_begins("delete"), DELETES)],
    "terraform": [(_begins("destroy"), DELETES)],
    "docker": [
        *((_begins(*what), DELETES) for what in (("system", "prune"), ("volume", "rm"), ("volume", "prune"))),
        (lambda rest: "compose" in rest and _with_volumes(rest), DELETES),
    ],
    "docker-compose": [(_with_volumes, DELETES)],
    "npm": [(_begins("publish"), PUBLISHES), (_begins("unpublish"), DELETES)],
    "cargo": [(_begins("publish"), PUBLISHES)],
    "twine": [(_begins("upload"), PUBLISHES)],
    "gh": [(_begins("repo", "delete"), DELETES), (_begins("release", "delete"), DELETES)],
}

_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
"""Options in front of git's subcommand whose value is the next word."""


def _git(rest: list[str]) -> str:
    """What a git command with these arguments destroys; empty for nothing."""
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in _GIT_VALUES else 1 :]
    verb, words = (rest[0], rest[1:]) if rest else ("", [])
    match verb:
        case "push":
            forced = _short("f", "--force", "--force-with-lease", "--mirror", "--delete", "--prune")(words)
            return PUSHES if forced or _short("d")(words) or any(word[:1] in {"+", ":"} for word in words) else ""
        case "reset":
            return DISCARDS if "--hard" in words else ""
        case "clean":
            return DELETES if _short("f", "--force")(words) else ""
        case "branch" | "tag":
            forced = verb == "tag" or _short("f", "--force")(words)
            return DISCARDS if _short("D")(words) or (forced and _short("d", "--delete")(words)) else ""
        case "stash":
            return DISCARDS if words[:1] in (["drop"], ["clear"]) else ""
        case "checkout" | "switch":
            files = "--" in words[:-1] or any(word in {".", ":/"} or word.startswith("./") for word in words)
            return DISCARDS if files or _short("f", "--force", "--discard-changes")(words) else ""
        case "restore":
            return "" if _short("S", "--staged")(words) and not _short("W", "--worktree")(words) else DISCARDS
        case "filter-branch" | "filter-repo":
            return DISCARDS
        case _:
            return ""
