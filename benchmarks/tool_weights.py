"""What the agent's tools cost the window: tokens of recorded work as its results were written once, and as they are written now.

    python -m benchmarks.tool_weights [FOLDER]

Once, each line of a file stood behind its number, each hit of a search behind its path, each path with all its folders; a
search without a find said again what for; a list of tasks came back whole. The recorded results of `read_file`, `grep` and
`glob` are taken apart and written both ways by the tools' own rules; all others are as they are. Nothing that was found is left
out but the ends of lines longer than 160 characters, where 100 around the hit stay; the recordings have 19. Edits,
to-do lists and what recall gives are no part of the recordings: those are played, ten of each, with what stands in the
recordings; for an edit it counts that a look at what it left is no longer needed. Each recording has the schemas of all tools in
its window besides, which are weighed as they are sent.
"""

from __future__ import annotations

import re
import sys
from asyncio import Future
from collections import Counter
from pathlib import Path

import msgspec

from benchmarks.recordings import OURS, recordings
from ctxchat.core.call_arguments import fields_of, plain_arguments
from ctxchat.core.found_paths import below_folders
from ctxchat.core.messages import ToolCall
from ctxchat.models.tokenizers import counter
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.conversation import MakeRoom
from ctxchat.tools.delegating import Delegate
from ctxchat.tools.edit_file import lines_now
from ctxchat.tools.memos import WriteMemo
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.search_worker import shown_of
from ctxchat.tools.searching import search_line
from ctxchat.tools.text import numbered
from ctxchat.tools.todo import TodoItem, drawn

count = counter("gpt-4o")

_READ = re.compile(r" *(\d+)\t(.*)")
_HIT = re.compile(r"(?P<path>[^\n]+?)(?P<sign>[:-])(?P<number>\d+)(?P=sign)(?P<text>.*)")

PLAYED = 10

SCHEMAS_ONCE = 1_631
"""Tokens of the schemas of the same tools as they were told when results were written as they were once."""


def read_now(once: str, call: ToolCall) -> str:
    """A file that was read, as it is written now."""
    asked = (fields_of(call.arguments) or {}).get("end_line")
    once = once.replace(f"-{asked} of", f"-{asked} of\0")
    once = re.sub(r"\0( \d+), go on with start_line=\d+", r"\1", once).replace("\0", "")
    once = re.sub(r"\[lines \d+-\d+ of (\d+)\]\Z", r"[of \1 lines]", once)
    lines: list[str] = []
    first = 0
    for line in once.split("\n"):
        if found := _READ.fullmatch(line):
            first = first or int(found[1])
            lines.append(numbered(int(found[1]), first, found[2]))
        else:
            lines.append(line)
    return "\n".join(lines)


def found_now(once: str, _: ToolCall) -> str:
    """The hits of a search, as they are written now."""
    files: list[tuple[str, list[str]]] = []
    notes: list[str] = []
    for line in once.split("\n"):
        found = _HIT.fullmatch(line)
        if found is None:
            notes.append("No match." if line.startswith("No match for") else line)
            continue
        if not files or found["path"] != files[-1][0]:
            files.append((found["path"], []))
        files[-1][1].append(search_line(int(found["number"]), shown_of(found["text"], 0), matches=found["sign"] == ":"))
    heads = below_folders([path for path, _ in files])
    return "\n".join(
        [*(line for head, (_, lines) in zip(heads, files, strict=True) for line in (*head, *lines)), *notes]
    )


def globbed_now(once: str, _: ToolCall) -> str:
    """The paths that a pattern matched, as they are written now."""
    if once.startswith("No file matches"):
        return "No file matches."
    paths = [line for line in once.split("\n") if not line.startswith("[")]
    notes = [line for line in once.split("\n") if line.startswith("[")]
    return "\n".join([*(row for rows in below_folders(paths) for row in rows), *notes])


def schemas_now() -> int:
    """Tokens of the schemas of all tools that a session has of its own."""

    async def found(*_: str) -> str:
        return ""

    tools = [
        *standard_tools(sandbox=Sandbox(), environ={}, memory_file=Path("AGENTS.md"), search=found, show=found),
        WriteMemo(dict[str, str]),
        MakeRoom(str),
        Delegate(lambda name, session: Future()),
    ]
    return sum(count(tool.spec.schema) for tool in tools)


def played(files: list[str]) -> dict[str, tuple[int, int]]:
    """Tokens once and now of edits, to-do lists and recalled calls made of these files."""
    tokens = {"edit_file": [0, 0], "todo": [0, 0], "recall": [0, 0]}
    for n, text in enumerate(files[:PLAYED]):
        lines = [found[2] for line in text.split("\n") if (found := _READ.fullmatch(line))]
        at = len(lines) // 2
        new = [*lines[:at], f"{lines[at]}  # {n}", *lines[at + 1 :]]
        head, seen = (
            f"Changed src/a{n}.py: +1 −1, now {len(new)} lines, 4.2 kB.",
            lines_now("\n".join(lines), "\n".join(new)),
        )
        looked = "\n".join(f"{n + 1:>5}\t{line}" for n, line in enumerate(new[max(0, at - 10) : at + 10]))
        tokens["edit_file"][0] += count(head) + count(looked)
        tokens["edit_file"][1] += count(f"{head}\n{seen}")
        items = [TodoItem(line.strip()[:60] or "look") for line in lines[:6]]
        tokens["todo"][0] += count(drawn(items))
        tokens["todo"][1] += count(f"Kept: 2 of {len(items)} done.")
        call = msgspec.json.encode(
            {"path": f"src/a{n}.py", "old": "\n".join(lines[:8]), "new": "\n".join(new[:9])}
        ).decode()
        tokens["recall"][0] += count(call)
        tokens["recall"][1] += count(plain_arguments(call))
    return {name: (once, now) for name, (once, now) in tokens.items()}


def main() -> None:
    once, now, calls = Counter[str](), Counter[str](), Counter[str]()
    files: list[str] = []
    recorded = list(recordings(Path(sys.argv[1]) if len(sys.argv) > 1 else OURS))
    for recording in recorded:
        made = {call.id: call for message in recording.messages for call in message.calls}
        for message in recording.messages:
            if message.role == "tool":
                name, text = message.name or "?", message.text
                way = {"read_file": read_now, "grep": found_now, "glob": globbed_now}.get(name)
                shown = way(text, made[message.call_id]) if way else text
                once[name] += count(text)
                now[name] += count(shown)
                calls[name] += 1
                files += [text] * (name == "read_file" and text.count("\n") > 12)
    told = [_line("all that was recorded", once, now, calls)]
    once["schemas"], now["schemas"] = len(recorded) * SCHEMAS_ONCE, len(recorded) * schemas_now()
    told.append(_line("with schemas", once, now, calls))
    for name, (before, after) in played(files).items():
        once[f"{name} (played)"], now[f"{name} (played)"], calls[f"{name} (played)"] = before, after, PLAYED
    print(f"{'':22}{'calls':>8}{'once':>9}{'now':>9}{'change':>9}")
    for name in sorted(once, key=lambda name: -once[name]):
        print(f"{name:22}{calls[name]:>8}{once[name]:>9,}{now[name]:>9,}{now[name] / once[name] - 1:>9.1%}")
    print(*told, _line("all", once, now, calls), sep="\n")


def _line(name: str, once: Counter[str], now: Counter[str], calls: Counter[str]) -> str:
    before, after = once.total(), now.total()
    return f"{name:22}{calls.total():>8}{before:>9,}{after:>9,}{after / before - 1:>9.1%}"


if __name__ == "__main__":
    main()
