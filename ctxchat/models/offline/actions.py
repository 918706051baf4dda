"""Plain commands: one call that does what the user asked, then a short report of what came back.

Whether a call is allowed is not decided here. A result is shown, never obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxchat.models.offline import intents as wish
from ctxchat.models.offline import phrases
from ctxchat.models.offline.language import Language
from ctxchat.models.offline.passages import file_lines, hits
from ctxchat.models.offline.quoting import clean, clip, fence, head, ref
from ctxchat.models.offline.reply import Decision, wanted
from ctxchat.models.offline.transcript import Done, Tools, Transcript
from ctxchat.models.offline.words import literal

SHOWN_LINES = 120
LISTED_LINES = 80

Command = (
    wish.Read | wish.List | wish.Find | wish.Grep | wish.Run | wish.Task | wish.Write | wish.Edit | wish.Remember | wish.Fetch
    | wish.Delegate
)  # fmt: skip

_MARKERS = {
    "test": (("Cargo.toml", "cargo test"), ("go.mod", "go test ./..."), ("pyproject.toml", "python -m pytest -q"),
             ("pytest.ini", "python -m pytest -q"), ("setup.py", "python -m pytest -q"), ("tests", "python -m pytest -q")),
    "build": (("Cargo.toml", "cargo build"), ("go.mod", "go build ./..."), ("pyproject.toml", "python -m build")),
    "lint": (("Cargo.toml", "cargo clippy"), ("go.mod", "go vet ./..."), ("pyproject.toml", "ruff check .")),
}  # fmt: skip


def act(command: Command, seen: Transcript, tools: Tools, language: Language) -> Decision:
    """The next step of a command: its call, or the report."""
    match command:
        case wish.Read():
            return _read(command, seen, tools, language)
        case wish.Task():
            return _task(command, seen, tools, language)
        case wish.List(path=path):
            call = tools.call("list_files", **({"path": path} if path else {})) or tools.call(
                "glob", pattern=f"{path or '**'}/*"
            )
        case wish.Find(pattern=pattern):
            call = tools.call("glob", pattern=pattern)
        case wish.Grep(text=text, path=path):
            call = tools.call("grep", pattern=literal(text), **({"path": path} if path else {}))
        case wish.Run(command=line):
            call = tools.call("shell", command=line)
        case wish.Write(path=path, content=content):
            call = tools.call("write_file", path=path, content=content)
        case wish.Edit(path=path, old=old, new=new):
            call = tools.call("edit_file", path=path, old=old, new=new)
        case wish.Remember(text=text):
            call = tools.call("remember", text=text)
        case wish.Delegate(task=task, agent=agent):
            call = tools.call("delegate", task=task, **({"agent": agent} if agent else {}))
        case wish.Fetch(url=url):
            call = tools.call(tools.first("web_fetch", "fetch", "fetch_url"), url=url)
    if seen.done:
        return Decision(_report(command, seen.done, language))
    return _once(call, command)


def _once(call: tuple[str, dict[str, object]] | None, command: Command) -> Decision:
    if call is None:
        return Decision(phrases.NO_TOOLS.format(names=_tool_of(command)))
    return Decision(wanted=wanted(call))


def _tool_of(command: Command) -> str:
    names = {
        wish.Read: "read_file", wish.List: "list_files", wish.Find: "glob", wish.Grep: "grep", wish.Run: "shell",
        wish.Task: "shell", wish.Write: "write_file", wish.Edit: "edit_file", wish.Remember: "remember", wish.Fetch: "web_fetch",
        wish.Delegate: "delegate",
    }  # fmt: skip
    return ref(names[type(command)])


# ── reading ──


def _read(command: wish.Read, seen: Transcript, tools: Tools, language: Language) -> Decision:
    reads = seen.named("read_file")
    if not seen.done:
        lines = {"start_line": command.start, "end_line": command.end} if command.start else {}
        calls = wanted(*(tools.call("read_file", path=path, **lines) for path in command.paths))
        return Decision(wanted=calls) if calls else Decision(phrases.NO_TOOLS.format(names=ref("read_file")))
    lost = [d for d in reads if d.failed and not d.denied]
    searched = seen.named("glob")
    if lost and not searched and seen.rounds == 1:
        # a name without its folder: look where it lies
        calls = wanted(*(tools.call("glob", pattern=f"**/{d.get('path').rsplit('/', 1)[-1]}") for d in lost))
        if calls:
            return Decision(wanted=calls, thought="Not at that path; looking for the name elsewhere.")
    found = _paths(searched)
    read = {d.get("path") for d in reads}
    if lost and searched and len(found) <= len(lost) and not set(found) <= read and seen.rounds == 2:
        return Decision(wanted=wanted(*(tools.call("read_file", path=path) for path in found if path not in read)))
    shown = [d for d in reads if not d.failed] or reads
    parts = [_shown(d, language) for d in shown]
    if found and all(d.failed for d in shown):
        parts.append("Files of that name: " + ", ".join(map(ref, found[:20])) + ".")
    return Decision("\n\n".join(parts))


def _shown(done: Done, language: Language) -> str:
    path = done.get("path")
    if done.failed:
        return _trouble(done, language)
    start = int(done.get("start_line")) if done.get("start_line").isdigit() else 1
    lines = file_lines(done.text, path, start)
    if not any(line.text.strip() for line in lines):
        return f"{ref(path)} is empty."
    while not lines[-1].text.strip():
        lines.pop()
    first, last = lines[0].number, lines[-1].number
    body = head([line.text for line in lines], SHOWN_LINES)
    return f"{ref(path)}, lines {first}–{last}:\n\n{fence(body, path)}"


def _paths(globs: Sequence[Done]) -> list[str]:
    """What glob found: one path a line."""
    rows = [
        row.strip().removeprefix("- ").removeprefix("./") for d in globs if not d.failed for row in d.text.split("\n")
    ]
    return [row for row in rows if re.fullmatch(r"\S*[\w/]\.\w+|\S*/\S+|[A-Z]\w+", row)]


# ── the project's own tasks ──


def _task(command: wish.Task, seen: Transcript, tools: Tools, language: Language) -> Decision:
    ran = seen.named("shell")
    if ran:
        return Decision(_report(command, ran, language))
    if "shell" not in tools:
        return Decision(phrases.NO_TOOLS.format(names=ref("shell")))
    if not seen.done:
        pattern = rf'^{command.name}\s*:|"{command.name}"\s*:'
        looks = wanted(tools.call("list_files", depth=1), tools.call("grep", pattern=pattern))
        if looks:
            return Decision(wanted=looks, thought=f"How does this project {command.name}?")
    line = _task_line(command.name, seen)
    if not line:
        return Decision(f"I found no way this project runs its {command.name}. Tell me the command: `run <command>`.")
    return Decision(wanted=wanted(tools.call("shell", command=line)), thought=f"By its files, this is `{line}`.")


def _task_line(name: str, seen: Transcript) -> str:
    """From a make target or a script at the top, else from what kind of project it is. A fixed set: no line of a file is run."""
    found = {hit.path for d in seen.named("grep") if not d.failed for hit in hits(d.text)}
    if found & {"Makefile", "makefile", "GNUmakefile"}:
        return f"make {name}"
    if "package.json" in found:
        return "npm test" if name == "test" else f"npm run {name}"
    listing = "\n".join(d.text for d in seen.named("list_files") if not d.failed)
    rows = set(re.findall(r"[\w.-]+", listing))
    return next((line for marker, line in _MARKERS[name] if marker in rows), "")


# ── reports ──


def _report(command: Command, done: Sequence[Done], language: Language) -> str:
    last = done[-1]
    if last.denied or (last.failed and not isinstance(command, wish.Run | wish.Task)):
        return _trouble(last, language)
    text = last.text.strip()
    rows = text.split("\n") if text else []
    match command:
        case wish.Run() | wish.Task():
            body = fence(head(rows, 30, tail=50)) if text else "It printed nothing."
            return f"{ref(clip(last.get('command'), 200))}:\n\n{body}"
        case wish.List() | wish.Find():
            return fence(head(rows, LISTED_LINES)) if text else "There is nothing."
        case wish.Grep(text=wanted_text):
            found = len(hits(text))
            if not found:
                return f"No line holds {ref(wanted_text)}." + (f"\n\n{fence(head(rows, 5))}" if text else "")
            return f"{found} line{'s' * (found != 1)} with {ref(wanted_text)}:\n\n{fence(head(rows, LISTED_LINES))}"
        case wish.Delegate():
            return f"The sub-agent's answer:\n\n{fence(head(rows, SHOWN_LINES))}"
        case wish.Fetch():
            return fence(head(rows, SHOWN_LINES))
        case _:
            return clean(clip(text, 600)) or "Done."


def _trouble(done: Done, language: Language) -> str:
    """A call that was denied or failed, kindly and with its own words."""
    phrase = "denied" if done.denied else "failed"
    return f"{phrases.say(language, phrase)}\n\n{fence(head(done.text.strip().split(chr(10)), 20))}"
