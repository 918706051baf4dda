"""What the user wants, read from their own words and from nothing else: a plain command, or a question to look into.

Pure. Only the message a person typed comes in here; text of files and tools never does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ctxchat.models.offline import patterns as said
from ctxchat.models.offline.language import bag


class Read(msgspec.Struct, frozen=True):
    """Show files. Lines from 1, 0 for open."""

    paths: tuple[str, ...]
    start: int = 0
    end: int = 0


class List(msgspec.Struct, frozen=True):
    """Names in a folder, the workspace for empty."""

    path: str = ""


class Find(msgspec.Struct, frozen=True):
    """Files by a glob pattern."""

    pattern: str


class Grep(msgspec.Struct, frozen=True):
    """Lines that hold exactly this text."""

    text: str
    path: str = ""


class Run(msgspec.Struct, frozen=True):
    """A command line, as written."""

    command: str


class Task(msgspec.Struct, frozen=True):
    """Run the project's tests, build or linter, however it does that."""

    name: str


class Write(msgspec.Struct, frozen=True):
    """A new file with this content."""

    path: str
    content: str


class Edit(msgspec.Struct, frozen=True):
    """One text for another in a file."""

    path: str
    old: str
    new: str


class Remember(msgspec.Struct, frozen=True):
    """A line for the memory file."""

    text: str


class Delegate(msgspec.Struct, frozen=True):
    """A task for a sub-agent, that of the settings where one is named."""

    task: str
    agent: str = ""


class Recall(msgspec.Struct, frozen=True):
    """Something said earlier."""

    query: str


class Fetch(msgspec.Struct, frozen=True):
    """A web page."""

    url: str


class Talk(msgspec.Struct, frozen=True):
    """`who`, `help`, `window`, `hello`, `thanks`, `told`: needs no tool."""

    about: str


class Overview(msgspec.Struct, frozen=True):
    """What this project is."""


class Ask(msgspec.Struct, frozen=True):
    """Anything else: a question to look into."""

    question: str


Intent = (
    Read | List | Find | Grep | Run | Task | Write | Edit | Remember | Delegate | Recall | Fetch | Talk | Overview | Ask
)

MOST_READ = 6

_HERE = bag("this the here there folder directory workspace project repo repository it")
_ARTICLES = bag("the all a an for")
_SHORT = 600
"""Characters in which a plain command fits; what is written or replaced may be longer."""


def intent(question: str) -> Intent:
    """The user's wish. Anything that is no plain command is a question."""
    text = said.POLITE.sub("", question.strip())
    short = text[:_SHORT]
    for about, pattern in _TALK.items():
        if len(short) < 200 and pattern.search(short):
            return Talk(about)
    if said.OVERVIEW.match(short):
        return Overview()
    for pattern, make in _COMMANDS:
        if (match := pattern.search(text if pattern in _LONG else short)) and (wish := make(match)):
            return wish
    return Talk("told") if said.TOLD.match(short) else Ask(question)


def _fetch(match: re.Match[str]) -> Intent:
    return Fetch(match["url"])


def _read(match: re.Match[str]) -> Intent | None:
    rest = match["rest"].strip()
    lines = said.LINES.match(rest) if rest else None
    if rest.strip(".!?") and not lines:
        return None  # "show src/a.py and explain …" is a question about it
    paths = tuple(_bare(p) for p in re.findall(said.PATH, match["paths"], re.I | re.X))[:MOST_READ]
    start = int(lines[1]) if lines else 0
    end = int(lines[2] or lines[1]) if lines else 0
    return Read(paths, min(start, end), max(start, end))


def _find(match: re.Match[str]) -> Intent:
    pattern = match["pattern"]
    return Find(pattern if "/" in pattern else f"**/{pattern}")


def _find_named(match: re.Match[str]) -> Intent:
    return Find(f"**/{match['name']}*")


def _list(match: re.Match[str]) -> Intent:
    path = _bare(match["path"] or match["inside"] or "")
    return List("" if path.lower() in _HERE else path)


def _task(match: re.Match[str]) -> Intent:
    name = match["name"].lower()
    return Task("build" if name == "build" else "lint" if name.startswith("lint") else "test")


def _edit(match: re.Match[str]) -> Intent:
    parts = match.groups()[:10]
    old, new = (next(g for g in half if g is not None) for half in (parts[:5], parts[5:]))
    return Edit(_bare(match["path"]), old, new)


def _write(match: re.Match[str]) -> Intent:
    return Write(_bare(match["path"]), _content(match["content"]))


def _remember(match: re.Match[str]) -> Intent:
    return Remember(match["text"].strip())


def _delegate(match: re.Match[str]) -> Intent:
    return Delegate(match["task"].strip(), match["agent"] or "")


def _grep(match: re.Match[str]) -> Intent | None:
    if (match["d"] or "").lower() in _ARTICLES and match["verb"].lower() not in {"grep", "rg"}:
        return None  # "find the harbour" is a question
    return Grep(match["a"] or match["b"] or match["c"] or match["d"], _bare(match["path"] or ""))


def _run(match: re.Match[str]) -> Intent | None:
    command = match["command"].strip()
    fenced = re.fullmatch(r"```\w*\n(.*?)\n?```[.!]?", command, re.S) or re.fullmatch(r"`([^`]+)`[.!]?", command)
    command = (fenced[1] if fenced else command).strip()
    return Run(command) if command and (fenced or not said.NO_PROGRAM.match(command)) else None


def _recall(match: re.Match[str]) -> Intent:
    return Recall((match["a"] or match["b"] or match[0]).strip(" ?.!") or match[0])


_TALK = {"who": said.WHO, "help": said.HELP, "window": said.WINDOW, "hello": said.HELLO, "thanks": said.THANKS}
_COMMANDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Intent | None]], ...] = (
    (said.DELEGATE, _delegate),
    (said.FETCH, _fetch),
    (said.READ, _read),
    (said.FIND, _find),
    (said.FIND_NAMED, _find_named),
    (said.LIST, _list),
    (said.TASK, _task),
    (said.EDIT, _edit),
    (said.WRITE, _write),
    (said.REMEMBER, _remember),
    (said.GREP, _grep),
    (said.RUN, _run),
    (said.RECALL, _recall),
)
"""In the order they are tried; the first that makes something of it wins."""

_LONG = (said.EDIT, said.WRITE, said.REMEMBER, said.DELEGATE, said.RUN)


def _content(text: str) -> str:
    """What to write: a fenced block, a quoted text, or the words as they are; a line end closes it."""
    text = text.strip()
    fenced = re.fullmatch(r"(`{3,})[^\n]*\n(.*?)\n?\1", text, re.S)
    quoted = re.fullmatch(r"\"([^\"]*)\"|`([^`]*)`|“([^”]*)”|'([^'\n]*)'", text)
    if fenced:
        text = fenced[2]
    elif quoted:
        text = next(g for g in quoted.groups() if g is not None)
    return text if text.endswith("\n") else text + "\n"


def _bare(path: str) -> str:
    """A path without its quotes, without `@`, without a line number behind it."""
    return path.strip().strip("`\"'").removeprefix("@")
