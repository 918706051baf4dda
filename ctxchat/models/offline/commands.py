"""The built-in assistant's plain commands (`read src/a.py`, `run the tests`): recognises them in the user's message by patterns,
makes the tool call that does what was asked, and reports the result in a few lines.

Commands come only from the user's own words: text in files and results is shown, never obeyed. Whether a call is allowed is
decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ctxchat.core.expressions import expression
from ctxchat.core.found_paths import whole_paths
from ctxchat.models.offline import phrases
from ctxchat.models.offline.passages import clean, clip, fence, file_lines, head, hits, ref, said
from ctxchat.models.offline.transcript import DoneCall, ReadView, Reply
from ctxchat.models.offline.words import literal

MAX_FILES_READ = 6
SHOWN_LINES = 120
LISTED_LINES = 80
MAX_SENTENCE_LINES = 3

_MAX_PLAIN_COMMAND_CHARS = 600
"""The part of a message in which a plain command is looked for. Commands that hold a text of any length (see `_LONG`) are looked
for in all of it."""

_FLAGS = re.I | re.X
_PATH = r"""(?:`[^`\n]+` | "[^"\n]+" | '[^'\n]+'
    | [^\s,;:`"']{0,200}[./\\][^\s,;:`"']{0,200}[^\s,;:`"'.?!]
    | [A-Z][A-Za-z]*file | README | LICENSE | CHANGELOG | AGENTS)"""
"""Matches a path as people write it: quoted, or with a dot or a slash in it, or one of the well-known names."""

_ANY_TEXT = r"""(?:`([^`]+)` | "([^"]+)" | '([^']+)' | “([^”]+)” | (\S+))"""
_LINES = expression(
    r"^\s*(?:,?\s*(?:from\s+)?lines?|:)\s*(\d{1,7})(?:\s*(?:-|–|to|through|until)\s*(\d{1,7}))?\s*[.!]?$", re.I
)
"""Matches what follows the path of a file that is to be read: a line number or a range."""

_NOT_A_SENTENCE = expression(r"^\s|\t|^\d+[:|]|^\W*(?:File \"|diff |@@)|(?<!\w)[*_<]")
"""Matches a line of code, of a listing or of a traceback, and one with characters that mean something in Markdown."""

_NO_PROGRAM = expression(r"(?:me|us|through|the|a|an|out|this|that|into|away)\b", re.I)
"""Matches what follows `run` where it is no command line: `run me through the code`."""

_ARTICLES = frozenset(("the", "all", "a", "an", "for"))
_HERE = frozenset(
    ["this", "here", "the", "there", "folder", "directory", "workspace", "project", "repo", "repository", "it"]
)
"""Words for the workspace itself, where the path of another folder could stand."""


class Command(msgspec.Struct, frozen=True):
    """What the user told the assistant to do: the tool to call and its arguments.

    `paths` are the files of a command to read, each read by a call of its own. A `task` (`test`, `build`, `lint`) is run by the
    command line that the project uses for it.
    """

    tool: str
    arguments: Mapping[str, object] = {}
    paths: tuple[str, ...] = ()
    task: str = ""


def command(question: str) -> Command | None:
    """The command that a message gives; None where it is a question or anything else."""
    text = re.sub(r"^(?:please|can you|could you|would you)[,\s]+", "", question.strip(), flags=re.I)
    for pattern, make in _COMMANDS:
        match = pattern.search(text if make in _LONG else text[:_MAX_PLAIN_COMMAND_CHARS])
        if match and (parsed := make(match)):
            return parsed
    return None


def carry_out(wanted: Command, seen: ReadView) -> Reply:
    """The next step of a command: a tool call, or the report once the call has been made."""
    if wanted.paths:
        return _read_file(wanted, seen)
    if wanted.task:
        return _task(wanted.task, seen)
    last = seen.done[-1] if seen.done else None
    unread = last and last.failed and not last.denied and "not read it" in last.text
    if seen.rounds == 1 and unread and wanted.tool == "write_file":
        # an existing file may be replaced only after it was read: read it, and write in the next round
        first = seen.calls("It is there already: read first.", ("read_file", {"path": wanted.arguments["path"]}))
        return first or Reply(_report(wanted, seen.done))
    if last and not (seen.rounds == 2 and wanted.tool == "write_file" and last in seen.named("read_file")):
        return Reply(_report(wanted, seen.done))
    step = seen.calls("", (wanted.tool, wanted.arguments))
    if step is None and wanted.tool == "list_files":
        step = seen.calls("", ("glob", {"pattern": f"{wanted.arguments.get('path', '**')}/*"}))
    return step or _no_tool(wanted.tool)


# ── parsing: each of these makes a command of its pattern's match, or None where the match is no command after all ──


def _make_read(match: re.Match[str]) -> Command | None:
    behind_paths = match["rest"].strip()
    lines = _LINES.match(behind_paths) if behind_paths else None
    if behind_paths.strip(".!?") and not lines:
        return None  # "show src/a.py and explain …" is a question about the file
    paths = tuple(_bare(p) for p in re.findall(_PATH, match["paths"], _FLAGS))[:MAX_FILES_READ]
    if not lines:
        return Command("read_file", paths=paths)
    first, last = sorted((int(lines[1]), int(lines[2] or lines[1])))
    return Command("read_file", {"start_line": first, "end_line": last}, paths)


def _make_list(match: re.Match[str]) -> Command:
    path = _bare(match["path"] or match["inside"] or "")
    return Command("list_files", {"path": path} if path and path.lower() not in _HERE else {})


def _make_find(match: re.Match[str]) -> Command:
    pattern = match["pattern"] or f"{match['name']}*"
    return Command("glob", {"pattern": pattern if "/" in pattern else f"**/{pattern}"})


def _make_grep(match: re.Match[str]) -> Command | None:
    if (match["d"] or "").lower() in _ARTICLES and match["verb"].lower() not in {"grep", "rg"}:
        return None  # "find the harbour" is a question
    path = _bare(match["path"] or "")
    text = match["a"] or match["b"] or match["c"] or match["d"]
    return Command("grep", {"pattern": literal(text)} | ({"path": path} if path else {}))


def _make_run(match: re.Match[str]) -> Command | None:
    line = match["command"].strip()
    fenced = re.fullmatch(r"```\w*\n(.*?)\n?```[.!]?", line, re.S) or re.fullmatch(r"`([^`]+)`[.!]?", line)
    line = (fenced[1] if fenced else line).strip()
    return Command("shell", {"command": line}) if line and (fenced or not _NO_PROGRAM.match(line)) else None


def _make_task(match: re.Match[str]) -> Command:
    name = match["name"].lower()
    return Command("shell", task="build" if name == "build" else "lint" if name.startswith("lint") else "test")


def _make_edit(match: re.Match[str]) -> Command:
    parts = match.groups()[:10]
    old, new = (next(g for g in half if g is not None) for half in (parts[:5], parts[5:]))
    return Command("edit_file", {"path": _bare(match["path"]), "old": old, "new": new})


def _make_write(match: re.Match[str]) -> Command:
    text = match["content"].strip()
    fenced = re.fullmatch(r"(`{3,})[^\n]*\n(.*?)\n?\1", text, re.S)
    quoted = re.fullmatch(r"\"([^\"]*)\"|`([^`]*)`|“([^”]*)”|'([^'\n]*)'", text)
    if fenced:
        text = fenced[2]
    elif quoted:
        text = next(g for g in quoted.groups() if g is not None)
    return Command(
        "write_file", {"path": _bare(match["path"]), "content": text if text.endswith("\n") else f"{text}\n"}
    )


def _make_remember(match: re.Match[str]) -> Command:
    return Command("remember", {"text": match["text"].strip()})


def _make_delegate(match: re.Match[str]) -> Command:
    agent = match["agent"]
    return Command("delegate", {"task": match["task"].strip()} | ({"agent": agent} if agent else {}))


def _make_fetch(match: re.Match[str]) -> Command:
    return Command("web_fetch", {"url": match["url"]})


def _make_news(match: re.Match[str]) -> Command:
    return Command("shell", {"command": "git log --name-status --oneline -5"})


def _bare(path: str) -> str:
    """A path without its quotes and without the `@` of a mention."""
    return path.strip().strip("`\"'").removeprefix("@")


_LONG: tuple[Callable[[re.Match[str]], Command | None], ...] = (
    _make_edit, _make_write, _make_remember, _make_delegate, _make_run
)  # fmt: skip
"""The parsers of commands that hold a text of any length."""

_COMMANDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Command | None]], ...] = tuple(
    (expression(pattern, _FLAGS | re.S), make)
    for pattern, make in (
        (
            r"^(?:delegate(?:\s+to\s+(?P<agent>[\w-]+))? | (?:ask|let|have)\ an?\ (?:sub-?agent|agent)(?:\s+to)?)"
            r"\s*[:,]?\s+(?P<task>.+)$",
            _make_delegate,
        ),
        (
            r"^(?:fetch|get|open|read|download|show)\s+(?:me\s+)?(?:the\s+page\s+)?<?(?P<url>https?://[^\s<>]+)>?\s*$",
            _make_fetch,
        ),
        (
            rf"""^(?:read|show|open|cat|display|print|view)(?:\s+(?:me|us|to\ me))?(?:\s+the)?(?:\s+files?)?
            \s+(?P<paths>{_PATH}(?:(?:\s*,\s*|\s+and\s+){_PATH})*)(?P<rest>.*)$""",
            _make_read,
        ),
        (
            r"""^(?:find|glob|list|where\ are)(?:\s+(?:all|the|any))*\s+(?:files?\s+)?(?:(?:named|called|matching|like)\s+)?
            [`"']?(?P<pattern>[^\s`"']*[*?\[][^\s`"']*)[`"']?\s*$
            | ^(?:find|where\ is)\s+(?:the\s+)?files?\s+(?:named\s+|called\s+)?[`"']?(?P<name>[\w.-]+)[`"']?\s*\??$""",
            _make_find,
        ),
        (
            rf"""^(?:ls | list(?:\s+(?:all|the))*\s+(?:files|folder|directory|contents) | (?:what|which)\s+files\s+(?:are|do)\b.*?
            | what(?:'s|\ is)\ in\ (?:this|the)\ (?:folder|directory|workspace|repo(?:sitory)?)
            | what(?:'s|\ is|\ files\ are)\ in\ (?:the\ )?(?P<inside>[\w./-]+)\ (?:folder|directory))
            (?:\s+(?:in|of|under)?\s*(?P<path>{_PATH}|[\w-]+/?))?\s*[?.!]?$""",
            _make_list,
        ),
        (r"^(?:which|what)\ files\ (?:were\ )?changed\ (?:last|recently|lately)\W*$", _make_news),
        (
            r"""^(?:run|start|execute)\s+(?:(?:all|the|my|our)\s+)*
            (?P<name>tests?|unit\ tests|test\ suite|build|linter|lint)(?:\s+(?:for\ me|again|now))?\s*[.!]?$""",
            _make_task,
        ),
        (
            rf"""^(?:replace|change|rename)\s+{_ANY_TEXT}\s+(?:with|by|to|into)\s+{_ANY_TEXT}\s+
            in\s+(?:the\s+)?(?:file\s+)?(?P<path>{_PATH}|[\w./-]+)\s*[.!]?$""",
            _make_edit,
        ),
        (
            rf"""^(?:write|create|make|add)\s+(?:me\s+)?(?:a\s+|the\s+)?(?:new\s+)?(?:text\s+)?(?:file\s+)?
            (?:named\s+|called\s+)?(?P<path>{_PATH})\s*
            (?: : | ,?\s*(?:with|containing|that\ says|saying)(?:\s+(?:the\s+)?(?:content|text|contents))?\s*:?)
            \s*(?P<content>.+)$""",
            _make_write,
        ),
        (r"^(?:remember|note|keep\ in\ mind)(?:\s+(?:that|this))?[:,]?\s+(?P<text>.+)$", _make_remember),
        (
            rf"""^(?P<verb>grep|rg|search(?:\s+for)?|look\s+for|find(?:\s+(?:every|all|each))?)\s+
            (?:`(?P<a>[^`\n]+)` | "(?P<b>[^"\n]+)" | '(?P<c>[^'\n]+)' | (?P<d>\S+))
            (?:\s+in\s+(?P<path>{_PATH}|[\w./-]+))?\s*$""",
            _make_grep,
        ),
        (r"^(?:(?:run|execute|exec)(?:\s*:\s*|\s+)(?:the\s+command\s+)?|[!$]\s*)(?P<command>.+)$", _make_run),
    )
)
"""The patterns of commands with their parsers, in the order in which they are tried; the first that gives a command wins."""


# ── reading files; one that is not at its path is looked for by its name ──


def _read_file(wanted: Command, seen: ReadView) -> Reply:
    """The next step of a command to read: read the paths; where a file is missing, search for its name; read what was found, if
    that is no more than was missing; then show the files."""
    reads = seen.named("read_file")
    if not reads:  # asked of the reads, not of `seen.done`: another model may have begun this turn with other calls
        step = seen.calls("", *(("read_file", {"path": path, **wanted.arguments}) for path in wanted.paths))
        return step or _no_tool("read_file")
    missing = [d for d in reads if d.failed and not d.denied]
    searches = seen.named("glob")
    if missing and not searches and seen.rounds == 1:
        names = (d.get("path").rsplit("/", 1)[-1] for d in missing)
        step = seen.calls("Not at that path; looking for the name.", *(("glob", {"pattern": f"**/{n}"}) for n in names))
        if step:
            return step
    rows = [
        r.strip().removeprefix("- ").removeprefix("./")
        for d in searches
        if not d.failed
        for r in whole_paths(d.text.split("\n"), hits=False)
    ]
    found = [row for row in rows if re.fullmatch(r"\S*[\w/]\.\w+|\S*/\S+|[A-Z]\w+", row)]
    unread = [path for path in found if path not in {d.get("path") for d in reads}]
    if missing and unread and len(found) <= len(missing) and seen.rounds == 2:
        return seen.calls("", *(("read_file", {"path": path}) for path in unread)) or _no_tool("read_file")
    shown = [d for d in reads if not d.failed] or reads
    parts = [_describe_call(d) for d in shown]
    if found and all(d.failed for d in shown):
        parts.append("Files of that name: " + ", ".join(map(ref, found[:20])) + ".")
    return Reply("\n\n".join(parts))


def _describe_call(done: DoneCall) -> str:
    """A call of `read_file` as part of the report: the lines that were read, in a fence, or what went wrong."""
    path = done.get("path")
    if done.failed:
        return trouble(done.denied, done.text, 20)
    start = int(done.get("start_line")) if done.get("start_line").isdigit() else 1
    lines = file_lines(done.text, path, start)
    if not any(line.text.strip() for line in lines):
        return f"{ref(path)} is empty."
    while not lines[-1].text.strip():
        lines.pop()
    body = head([line.text for line in lines], SHOWN_LINES)
    return f"{ref(path)}, lines {lines[0].number}–{lines[-1].number}:\n\n{fence(body, path)}"


# ── tasks of the project: only fixed command lines are run, never a line from a file ──

_MARKERS = {
    "test": (("Cargo.toml", "cargo test"), ("go.mod", "go test ./..."), ("pyproject.toml", "python -m pytest -q"),
             ("pytest.ini", "python -m pytest -q"), ("setup.py", "python -m pytest -q"), ("tests", "python -m pytest -q")),
    "build": (("Cargo.toml", "cargo build"), ("go.mod", "go build ./..."), ("pyproject.toml", "python -m build")),
    "lint": (("Cargo.toml", "cargo clippy"), ("go.mod", "go vet ./..."), ("pyproject.toml", "ruff check .")),
}  # fmt: skip
"""For each task, the files at the top of a project that show its kind, with the command line for that kind; the first found
counts."""


def _task(name: str, seen: ReadView) -> Reply:
    """The next step of a task: look at what kind of project this is, run the command line, report."""
    if ran := seen.named("shell"):
        return Reply(_report(Command("shell"), ran))
    if "shell" not in seen.offered:
        return _no_tool("shell")
    pattern = rf'^{name}\s*:|"{name}"\s*:'
    looks = seen.calls(f"How does this project {name}?", ("list_files", {"depth": 1}), ("grep", {"pattern": pattern}))
    if not seen.done and looks:
        return looks
    line = _task_line(name, seen)
    step = seen.calls(f"By its files, this is `{line}`.", ("shell", {"command": line})) if line else None
    return step or Reply(f"I found no way this project runs its {name}. Tell me the command: `run <command>`.")


def _task_line(name: str, seen: ReadView) -> str:
    """The command line for a task: by a make target or a script in `package.json` of that name, else by the kind of the project;
    empty where nothing is known."""
    found = {hit.path for d in seen.named("grep") if not d.failed for hit in hits(d.text)}
    if found & {"Makefile", "makefile", "GNUmakefile"}:
        return f"make {name}"
    if "package.json" in found:
        return "npm test" if name == "test" else f"npm run {name}"
    listing = "\n".join(d.text for d in seen.named("list_files") if not d.failed)
    rows = set(re.findall(r"[\w.-]+", listing))
    return next((line for marker, line in _MARKERS[name] if marker in rows), "")


# ── reports ──


def _no_tool(name: str) -> Reply:
    return Reply(phrases.NO_TOOL.format(name=ref(name)))


def _report(wanted: Command, done: Sequence[DoneCall]) -> str:
    """The report of a command, about the result of its last call."""
    last = done[-1]
    if last.denied or (last.failed and wanted.tool != "shell"):
        return trouble(last.denied, last.text, 20)
    text = last.text.strip()
    rows = text.split("\n") if text else []
    if wanted.tool in {"glob", "grep"}:  # models are given paths below their folder; a person is shown each path whole
        rows = list(whole_paths(rows, hits=wanted.tool == "grep"))
    match wanted.tool:
        case "shell":
            body = fence(head(rows, 30, tail=50)) if text else "It printed nothing."
            return f"{ref(clip(last.get('command'), 200))}:\n\n{body}"
        case "list_files" | "glob":
            return fence(head(rows, LISTED_LINES)) if text else "There is nothing."
        case "grep":
            found, sought = len(hits(text)), ref(re.sub(r"\\(.)", r"\1", last.get("pattern")))
            if not found:
                return f"No line holds {sought}." + (f"\n\n{fence(head(rows, 5))}" if text else "")
            return f"{found} line{'s' * (found != 1)} with {sought}:\n\n{fence(head(rows, LISTED_LINES))}"
        case "delegate":
            return f"The sub-agent's answer:\n\n{fence(head(rows, SHOWN_LINES))}"
        case "web_fetch":
            return fence(head(rows, SHOWN_LINES))
        case _:
            return clean(clip(text, 600)) or "Done."


def trouble(denied: bool, text: str, most: int) -> str:
    """The report of a call that was denied or failed, with at most `most` lines of the result.

    Sentences are quoted, so that they wrap; code and listings are fenced, so that their columns stay. A denial for which the
    person gave no reason is not quoted, since they know what they said.
    """
    if denied and "They gave no reason" in text[:80]:
        return phrases.DENIED
    rows = text.strip().split("\n")
    sentences = len(rows) <= MAX_SENTENCE_LINES and not any(_NOT_A_SENTENCE.search(row) for row in rows)
    quoted = said("\n\n".join(rows), 2_000) if sentences else fence(head(rows, most))
    return f"{phrases.DENIED if denied else phrases.FAILED}\n\n{quoted}"
