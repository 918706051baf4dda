"""Tables of well-known programs and questions about them: which only read, which run another program, and how wide a permission
rule for them may sensibly be. Pure functions.

Almost every program can be told by some argument to run another one or to write a file: `tar --to-command`, `rg --pre`,
`git log --output`, `sort -o`. A list of dangerous arguments is never complete, so the commands that only read are listed, with
their options where those matter; a person is asked about any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ctxchat.core.expressions import expression
from ctxchat.core.patterns import Word, written

Expand = Callable[[Word], "list[str] | None"]
"""Function that gives the texts a word that is not known (a glob) stands for now; None where that cannot be told."""

_READING = frozenset({
    "ls", "cat", "head", "tail", "wc", "nl", "pwd", "echo", "stat", "du", "df", "whoami", "id", "uname", "uptime",
    "nproc", "which", "basename", "dirname", "realpath", "readlink", "grep", "egrep", "fgrep", "diff", "cmp", "comm",
    "md5sum", "sha1sum", "sha256sum", "sha512sum", "cut", "tr", "rev", "tac", "seq", "fold", "expand", "paste", "join",
    "od", "base64", "true", "false", ":", "sleep",
})  # fmt: skip
"""Programs that read and print, whatever their arguments are, except for those in `_INDIRECT`. Not among them, though they seem
to belong here: `file` (-C writes), `date` (-s sets the clock), `hostname`, `uniq` (its second argument is written), `tree`,
`sort` (-o), `ps` (e shows the environment, and so the keys, of other processes)."""

_INDIRECT = {
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "sha512sum"), r"-\w*c\w*|--c.*"),
    "wc": r"--f.*",
    "du": r"--f.*|-\w*X.*|--exclude-f.*",
    "grep": r"-\w*f.*|--fi.*",
    "egrep": r"-\w*f.*|--fi.*",
    "fgrep": r"-\w*f.*|--fi.*",
    "diff": r"-\w*[rS].*|--[frst].*",
}
"""Options by which a reading program reads files that are listed in another file, or follows links below a folder."""

_OPTIONS = {
    "sort": r"-[bdfgiMhnRrVuszc]+|-k[\d.,bdfginrV]+|-t.|--(reverse|unique|numeric-sort|human-numeric-sort|version-sort)",
    "find": r"-(i?name|i?path|type|maxdepth|mindepth|size|newer|mtime|mmin|empty|print0?|prune|o|a|not|perm|user|\d+\w?)",
    "rg": r"-[ilnwcFSsuvUHhoxNIP]+|-[ABCm]\d*|-[getTA]|--(files|files-with-matches|count|hidden|no-ignore|ignore-case|"
    r"line-number|word-regexp|fixed-strings|glob(=.*)?|type(=\w+)?|json|multiline|context(=\d+)?|max-count(=\d+)?|no-heading|smart-case|stats)",
    "date": r"-u|--utc|--iso-8601(=\w+)?|-I\w*|-R",
    "file": r"-[bikLz]+|--(brief|mime-type|mime)",
    "uniq": r"-[cdui]+",
    "tree": r"-[adfhiprsDF]+|-[LIP]|--(dirsfirst|gitignore|prune)",
}
"""Programs that only read with these options and no others."""

_GIT = frozenset({
    "status", "log", "diff", "show", "blame", "ls-files", "ls-tree", "rev-parse", "describe", "shortlog", "rev-list",
    "merge-base", "cat-file", "name-rev", "whatchanged",
})  # fmt: skip
"""Git's subcommands that only read, whatever their arguments that are no options."""

_BRANCHES = r"(-a|-r|-vv?|-avv?|--all|--remotes|--show-current|--list|--merged|--no-merged)"
_GIT_LISTING_ARGUMENTS = {
    "branch": rf"({_BRANCHES}( {_BRANCHES})*)?|--list( [^- ]\S*)*",
    "tag": r"((-l|--list)( [^- ]\S*)*)?",
    "remote": r"(-v|get-url [\w.-]+)?",
    "reflog": r"(show( [^- ]\S*)?)?( -n \d+)?",
    "stash": r"list|show( -p)?( stash@\{\d+\})?",
    "worktree": r"list( --porcelain)?",
}
"""Git's subcommands that only read with exactly these arguments, and write with others."""

_GIT_OPTIONS = expression(
    r"-[0-9]+|-[abcdeilnopqrstuvwzEFLMSGCU]+[\d,]*|-[LSGnU].*|--(oneline|stat|shortstat|numstat|name-only|name-status|graph|all|"
    r"decorate|since=.*|until=.*|after=.*|before=.*|author=.*|grep=.*|format=.*|pretty(=.*)?|cached|staged|no-color|color=never|follow|"
    r"abbrev-commit|abbrev-ref|abbrev=\d+|reverse|patch|no-patch|first-parent|merges|no-merges|max-count=\d+|word-diff|unified=\d+|"
    r"short|porcelain(=\w+)?|branch|branches|tags|list|show-current|sort=.*|show-toplevel|verify|others|exclude-standard|ignored|"
    r"date=.*|no-ext-diff|no-textconv|no-renames|diff-filter=\w+|left-right|merge-base|summary|dirty|always|count|verbose|remotes|"
    r"is-inside-work-tree|git-dir|untracked-files(=\w+)?|minimal|ignore-all-space|find-renames|)"
)

_SUBCOMMANDS = {
    "git": "add commit status log diff show branch tag checkout switch restore stash merge cherry-pick blame rev-parse "
    "ls-files describe mv reset",
    "uv": "sync lock add remove tree build export",
    "npm": "test ci install outdated ls",
    "pnpm": "test install outdated ls",
    "yarn": "test install",
    "bun": "test install",
    "cargo": "build test check clippy fmt doc bench tree",
    "go": "build test vet fmt list",
    "poetry": "install lock show",
    "pip": "install list show",
    "dotnet": "build test restore",
    "mvn": "test compile package verify",
    "gradle": "test build check",
    "terraform": "plan validate fmt",
    "docker": "ps images logs build",
    "gh": "pr issue run",
    "deno": "test lint fmt check",
    "mix": "test compile format",
    "swift": "build test",
    "./gradlew": "test build check",
}
"""Programs whose rules name the subcommand, and the subcommands they are offered for."""

_WITH_SUBCOMMANDS = frozenset({
    "kubectl", "podman", "helm", "aws", "gcloud", "az", "systemctl", "hg", "svn", "jj", "rustup", "twine", "conda", "brew", "apt",
    "apt-get", "dnf", "yum", "flyctl", "vercel", "firebase", "heroku", "doctl", "pip3",
})  # fmt: skip
"""Other programs with subcommands, for which a rule that forbids may name one."""

_TOOLS = frozenset({
    "pytest", "ruff", "mypy", "pyright", "basedpyright", "black", "isort", "flake8", "pylint", "lint-imports",
    "coverage", "jest", "vitest", "eslint", "prettier", "tsc", "gofmt", "golangci-lint", "rustfmt", "ctest", "phpunit",
    "rspec", "rubocop", "shellcheck", "shfmt", "stylelint", "biome", "mocha", "cspell", "unittest", "pydoc", "mkdir",
    "touch",
})  # fmt: skip
"""Programs that are offered a rule for all their arguments: checkers and test runners, which run only the project's own code."""

_RUNNERS = (("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("npx",), ("uvx",), ("bunx",),
            ("pnpm", "exec"), ("yarn", "exec"), ("npm", "exec"), ("bundle", "exec"), ("rye", "run"))  # fmt: skip
"""Commands that run the program that follows them."""

_SCRIPTS = (("npm", "run"), ("pnpm", "run"), ("yarn", "run"), ("bun", "run"), ("deno", "task"))
"""Commands that run one of the project's scripts by name."""

_INTERPRETERS = expression(
    r"(ba|z|da|k|c|tc|fi|a|mk|oil|yash|)sh|python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node|perl[\d.]*|ruby[\d.]*|php[\d.]*|"
    r"lua[\w.]*|Rscript|R|osascript|pwsh|powershell|tclsh|expect|julia|irb|ghci|jshell|busybox|toybox"
)
_SHELLS = expression(r"(ba|z|da|k|c|tc|fi|a|mk|oil|yash|)sh|nu|elvish|xonsh|pwsh|powershell")

_INPUT_DRIVEN = frozenset({
    "psql", "mysql", "mariadb", "sqlite3", "duckdb", "mongo", "mongosh", "redis-cli", "ssh", "parallel", "at", "batch",
    "crontab", "patch", "ed", "ex", "vi", "vim", "nvim", "emacs", "gdb", "lldb", "bc", "dc", "kubectl", "docker",
    "podman", "m4", "make", "gmake", "ninja", "cmake", "telnet", "nc", "ncat", "socat", "awk", "gawk", "git", "xargs",
    "source", ".", "systemd-run", "su", "sudo", "doas", "env", "tar", "cpio", "dd", "curl", "wget",
})  # fmt: skip
"""Programs whose input decides what they do."""

WRAPPERS = frozenset({
    "env", "sudo", "doas", "su", "nice", "nohup", "time", "timeout", "command", "builtin", "exec", "stdbuf", "setsid",
    "ionice", "chrt", "taskset", "xargs", "parallel", "watch", "strace", "ltrace", "unshare", "chroot", "flock",
    "script", "coproc", "unbuffer", "caffeinate", "busybox", "toybox", "systemd-run", "runuser", "pkexec", "faketime",
    "direnv", "prlimit", "nsenter", "setpriv", "xvfb-run", "dbus-run-session", "catchsegv", "valgrind", "entr",
    "rlwrap", "chronic", "ts", "firejail", "bwrap", "proot", "fakeroot", "gosu", "tini", "dumb-init", "gdb", "perf",
})  # fmt: skip
"""Programs that run the program that follows them, or one of the words that follow."""

_ASSIGNMENT = expression(r"([A-Za-z_]\w*)(\[.*\])?\+?=(.*)", re.DOTALL)
_HARMLESS_VARIABLES = expression(
    r"CI|NO_COLOR|FORCE_COLOR|CLICOLOR|LANG|LC_[A-Z]+|TZ|COLUMNS|LINES|RUST_BACKTRACE|RUST_LOG|PYTHONUNBUFFERED|PYTHONHASHSEED|"
    r"PYTHONDONTWRITEBYTECODE|DEBUG|VERBOSE|LOG_LEVEL"
)


class Below(msgspec.Struct, frozen=True):
    """What a command runs in turn: other commands, or a line for a shell. `through`: it does nothing else."""

    commands: tuple[tuple[Word, ...], ...] = ()
    line: str | None = None
    through: bool = False


def only_reads(words: Sequence[Word], expand: Expand) -> bool:
    """Whether a command only reads, whatever its words that are not known stand for."""
    program, *rest = words
    if not program.known:
        return False
    if program.text in _READING:
        return True
    texts = [text for word in rest for text in _possible_texts(word, expand)]
    match program.text:
        case "git":
            return _git_reads(texts)
        case "sed":
            return (
                len(texts) >= 2
                and texts[0] == "-n"
                and bool(re.fullmatch(r"\d+(,(\d+|\$))?p|\$p", texts[1]))
                and _has_no_options(texts[2:])
            )
        case "test" | "[":
            return all(word.known and not set("[]$`") & set(word.text.removesuffix("]")) for word in rest)
        case "printf":
            return not texts or not texts[0].startswith("-")
        case "command" | "type":
            return texts[:1] in (["-v"], ["-V"]) or (program.text == "type" and _has_no_options(texts))
        case name if name in _OPTIONS:
            return _with_options(name, texts)
        case name:
            return texts == ["--version"] and (
                name in _SUBCOMMANDS or name in _TOOLS or name in {"python", "python3", "node", "make"}
            )


def is_plain(words: Sequence[Word]) -> bool:
    """Whether a command that only reads starts no other program and loads no code, whatever files the folder holds: one of the
    system's own programs."""
    ours = {*_READING, *_OPTIONS, "sed", "printf", "test", "[", "command", "type"}
    return words[0].text in ours and words[0].text != "diff"  # which follows the links in folders


def goes_elsewhere(words: Sequence[Word]) -> bool:
    """Whether a command that only reads may read files that are not among its arguments: from a list in a file, or through
    links."""
    name, *texts = [word.text for word in words]
    if name in {"grep", "egrep", "fgrep"} and any(re.match(r"-\w*R|--deref", text) for text in texts):
        return True
    return name in _INDIRECT and any(re.fullmatch(_INDIRECT[name], text) for text in texts)


_WALKERS = frozenset({
    "rg", "ag", "ack", "find", "fd", "tar", "zip", "7z", "rsync", "git", "bsdtar", "ugrep", "ripgrep", "rgrep", "fdfind", "diff",
})  # fmt: skip
"""Programs that go through folders whatever their options are."""

_RECURSIVE = expression(r"-\w*[rRad]\w*|--(rec|arc|der|dir).*")


def goes_below(words: Sequence[Word]) -> bool:
    """Whether a command reads, or may read, files in a folder that are not among its arguments."""
    name, *texts = [word.text for word in words]
    return _name(name) in _WALKERS or any(_RECURSIVE.fullmatch(text) for text in texts)


def _possible_texts(word: Word, expand: Expand) -> list[str]:
    """The texts that a word may stand for; where they are not known, one text that no list of options allows."""
    if word.known:
        return [word.text]
    found = expand(word)
    return found if found is not None and not any(text.startswith("-") for text in found) else ["--\0"]


def _has_no_options(texts: Sequence[str]) -> bool:
    return not any(text.startswith("-") for text in texts)


def _with_options(name: str, texts: Sequence[str]) -> bool:
    plain = [text for text in texts if text == "-" or not text.startswith("-")]
    if not all(re.fullmatch(_OPTIONS[name], text) for text in texts if text.startswith("-") and text != "-"):
        return False
    return {"uniq": len(plain) <= 1, "date": all(text.startswith("+") for text in plain)}.get(name, True)


def _git_reads(texts: Sequence[str]) -> bool:
    texts = texts[1:] if texts[:1] in (["--no-pager"], ["-P"]) else texts
    if not texts:
        return False
    subcommand, rest = texts[0], texts[1:]
    if subcommand in _GIT_LISTING_ARGUMENTS:
        return bool(re.fullmatch(_GIT_LISTING_ARGUMENTS[subcommand], " ".join(rest)))
    options = rest[: rest.index("--")] if "--" in rest else rest
    return subcommand in _GIT and all(_GIT_OPTIONS.fullmatch(text) for text in options if text.startswith("-"))


_STAGING_OPTIONS = {
    "add": r"-[Aaufnvp]+|--(all|update|force|dry-run|verbose|patch|)",
    "commit": r"-[aqsvnpm]+|-a?m.+|--(message=.*|message|all|amend|no-edit|quiet|signoff|verbose|allow-empty|fixup=.*|)",
}


def names_only(words: Sequence[Word]) -> bool:
    """Whether the files among the arguments are only named and not written, as in `git add` and `git commit`."""
    texts = [word.text for word in words]
    if (
        texts[:1] != ["git"]
        or len(texts) < 2
        or texts[1] not in _STAGING_OPTIONS
        or not all(word.known for word in words)
    ):
        return False
    return all(re.fullmatch(_STAGING_OPTIONS[texts[1]], text) for text in texts[2:] if text.startswith("-"))


_MAKE_FILES = frozenset({"touch", "mkdir", "cp", "mv", "ln", "install", "tee", "rsync", "scp", "dd", "truncate"})


def makes_files(words: Sequence[Word]) -> bool:
    """Whether the arguments of a command are files, some of which it creates."""
    return _name(words[0].text) in _MAKE_FILES


def written_by(words: Sequence[Word]) -> Sequence[Word]:
    """The files that a command writes because an option names them (git's `--output`)."""
    found: list[Word] = []
    for n, word in enumerate(words[1:], 1) if words[0].text == "git" else ():
        option, given, file = word.text.partition("=")
        if len(option) > 3 and "--output".startswith(option):
            found.append(Word(file, word.known) if given else next(iter(words[n + 1 :]), Word("$", False)))
    return found


_SCRIPTED = frozenset(
    {"sed", "gsed", "awk", "gawk", "mawk", "nawk", "ed", "ex", "vi", "vim", "nvim", "emacs", "jq", "dc"}
)
"""Programs that take a script as an argument, besides the interpreters."""


def within_scripts(words: Sequence[Word]) -> list[Word]:
    """Pieces of a script among the arguments that may name a file: `w FILE` of sed, `open("FILE")` of Python."""
    name = _name(words[0].text)
    if name not in _SCRIPTED and not _INTERPRETERS.fullmatch(name):
        return []
    scripts = [word.text.replace("\\", "") for word in words[1:] if word.known and not _PLAIN_NAME.fullmatch(word.text)]
    pieces = [piece for script in scripts for piece in re.split(r"[^\w.*/~+-]+", script) if re.search(r"[./]", piece)]
    if name.endswith("sed"):
        pieces += [file for script in scripts for file in re.findall(r"[rRwW]\s*([^\s;}]+)", script)]
    return [Word(piece) for piece in dict.fromkeys(pieces) if piece][:MAX_WORDS_IN_SCRIPTS]


_PLAIN_NAME = expression(r"[\w.-]+")

MAX_WORDS_IN_SCRIPTS = 400
"""Pieces of scripts that may name a file; each costs a look at the file system."""


def is_interpreter(program: str) -> bool:
    """Whether a program is an interpreter of a programming language; a shell is one."""
    return bool(_INTERPRETERS.fullmatch(_name(program)))


def runs_input(texts: Sequence[str]) -> bool:
    """Whether a command's input decides what it does, as with an interpreter without a script."""
    name = _name(texts[0])
    if name in {"busybox", "toybox"} and len(texts) > 1:
        return runs_input(texts[1:])
    if _INTERPRETERS.fullmatch(name):
        return len(texts) < 2 or (texts[1].startswith("-") and texts[1] != "-c") or texts[1].startswith("/dev/")
    return name in _INPUT_DRIVEN or name in WRAPPERS


def unwrapped(words: tuple[Word, ...]) -> Below:
    """The commands or the line that a command runs: `make` for `timeout 5 make`, the line `a; b` for `bash -c 'a; b'`."""
    assigned = next((n for n, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word.text)), len(words))
    if assigned:
        rest = words[assigned:]
        return Below((rest,) if rest else (), None, bool(rest) and all(_harmless(word) for word in words[:assigned]))
    program, *after = words
    rest = tuple(after)
    name = _name(program.text)
    plain = program.known and name == program.text
    if _SHELLS.fullmatch(name):
        return _shell_line(rest, plain=plain, bash=name == "bash")
    if name == "eval":
        known = all(word.known for word in rest)
        return Below(line=" ".join(word.text for word in rest)) if known else Below(((Word("$", False),),))
    if name == "find":
        return Below(_find_commands(rest))
    if name in WRAPPERS:
        return _wrapped_command(name, rest, plain)
    for runner in _RUNNERS:
        if tuple(word.text for word in words[: len(runner)]) == runner:
            return Below(_suffixes(words[len(runner) :]))
    if not plain and program.known and name:
        return Below(((Word(name), *rest),))
    return Below(_without_options(words)) if name in _SUBCOMMANDS or name in _WITH_SUBCOMMANDS else Below()


def _without_options(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], ...]:
    """A command without the options before its subcommand, for rules that forbid: `git push` for `git -C . -c a=b push`. Which
    options take a value is not known, so the forms with and without one are all given."""
    found: list[tuple[Word, ...]] = []
    for n in range(1, min(len(words), 12)):
        before, option = words[n - 1].text, words[n].text.startswith(("-", "+"))
        if not option and n > 1:
            found.append((words[0], *words[n:]))
        if not (option or (n > 1 and before.startswith("-"))):
            break
    if words[0].text == "git" and any(re.match(r"-c|--config-env|--exec-path", word.text) for word in words[1:12]):
        found.append((Word("$", False),))  # an alias may be any command
    return tuple(found)


def _harmless(word: Word) -> bool:
    found = _ASSIGNMENT.fullmatch(word.text)
    return (
        bool(found)
        and word.known
        and bool(_HARMLESS_VARIABLES.fullmatch(found[1]))
        and bool(re.fullmatch(r"[\w.@-]*", found[3]))
    )


def _shell_line(arguments: tuple[Word, ...], *, plain: bool, bash: bool) -> Below:
    """The line that a shell gets with `-c`. It is parsed by bash's rules and may mean something else to another shell: there it
    counts only for rules that forbid, beside a command that may be anything."""
    at = next((n for n, word in enumerate(arguments) if re.fullmatch(r"-[a-z]*c[a-z]*", word.text)), -1)
    if at < 0 or at + 1 >= len(arguments):
        return Below()
    line = arguments[at + 1]
    if not line.known:
        return Below(((Word("$", False),),))
    if not bash:
        return Below(((Word("$", False),),), line.text)
    return Below(line=line.text, through=plain and len(arguments) == 2 and arguments[0].text == "-c")


def _find_commands(arguments: Sequence[Word]) -> tuple[tuple[Word, ...], ...]:
    found: list[tuple[Word, ...]] = []
    for n, word in enumerate(arguments):
        if word.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            command = []
            for more in arguments[n + 1 :]:
                if more.text in {";", "+"}:
                    break
                command.append(Word("{}", False) if "{}" in more.text else more)
            found += [tuple(command)] if command else []
    return tuple(found)


def _wrapped_command(name: str, arguments: tuple[Word, ...], plain: bool) -> Below:
    texts = [word.text for word in arguments]
    match name, texts:
        case _, []:
            return Below()
        case (("time" | "nohup" | "command" | "nice"), [first, *_]) if not first.startswith("-"):
            return Below((arguments,), None, plain)
        case "nice", ["-n", _, *_]:
            return Below((arguments[2:],) if arguments[2:] else (), None, plain)
        case "timeout", [first, _, *_] if re.fullmatch(r"[\d.]+[smhd]?", first):
            return Below((arguments[1:],), None, plain)
        case "env", [first, *_] if not first.startswith("-"):
            return Below((arguments,), None, plain)
        case "xargs", _:
            at, simple = _xargs_command(texts)
            return Below(
                _suffixes(arguments, Word("<input>", False))
                if not simple
                else ((*arguments[at:], Word("<input>", False)),),
                None,
                simple and plain,
            )
        case _:
            return Below(_suffixes(arguments))


def _xargs_command(texts: Sequence[str]) -> tuple[int, bool]:
    """The index at which the command of `xargs` begins among its arguments, and whether all options before it are understood."""
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        if texts[at] in {"-n", "-P", "-L", "-I", "-d", "-s"}:
            at += 2
        elif re.fullmatch(r"-0|-r|-t|-0r|-r0|-[nPL]\d+|-I\S+|--null|--no-run-if-empty", texts[at]):
            at += 1
        else:
            return 0, False
    return at, at < len(texts)


def _suffixes(words: tuple[Word, ...], more: Word | None = None) -> tuple[tuple[Word, ...], ...]:
    """The commands that may begin at each word that is no option, followed by the word `more`, for rules that forbid: which
    options of the program before them take a value is not known."""
    tail = (more,) if more else ()
    return tuple((*words[n:], *tail) for n in range(min(len(words), 8)) if not words[n].text.startswith("-"))


def breadths(words: Sequence[Word]) -> tuple[str, ...]:
    """The wider patterns that a rule for a command can have, from narrow to wide: `git commit **`, `uv run pytest **`. Empty for
    a program that can run anything, and for one that these tables do not have."""
    if not words or not words[0].known:
        return ()
    texts = [word.text if word.known else "" for word in words]
    name = texts[0]
    for runner in _RUNNERS:
        if tuple(texts[: len(runner)]) == runner:
            start = written(words[: len(runner)])
            return tuple(f"{start} {wider}" for wider in breadths(words[len(runner) :]))
    for script in _SCRIPTS:
        if (
            tuple(texts[:2]) == script
            and re.fullmatch(r"[\w:.-]+", "".join(texts[2:3]))
            and not texts[2].startswith("-")
        ):
            return (f"{written(words[:3])} **",)
    if re.fullmatch(r"python[\d.]*", name) and texts[1:2] == ["-m"] and "".join(texts[2:3]) in _TOOLS:
        return (f"{written(words[:3])} **",)
    if name in _SUBCOMMANDS:
        return (f"{name} {texts[1]} **",) if len(texts) > 1 and texts[1] in _SUBCOMMANDS[name].split() else ()
    return (f"{name} **",) if name in _TOOLS else ()


def _name(program: str) -> str:
    return program.rpartition("/")[2]
