"""A tool call in a few words: its key argument, and how it came out. Pure; knows no widget."""

from __future__ import annotations

import json
import re
from typing import cast

from ctxchat.core.command_end import command_end
from ctxchat.core.events import ToolFinished, ToolStatus
from ctxchat.core.found_paths import whole_paths
from ctxchat.core.messages import Message, ToolCall
from ctxchat.core.quantities import count
from ctxchat.core.secrets import marks_in
from ctxchat.core.tool_names import SHELL
from ctxchat.core.tooluse import failed, hits_in, refused, use_of
from ctxchat.presentation.text import one_line

FIRST = (
    "command",
    "pattern",
    "query",
    "path",
    "file",
    "file_path",
    "url",
    "id",
    "task",
    "prompt",
    "question",
    "text",
    "title",
)
"""Arguments that say most, the best first."""

QUOTED = frozenset({"pattern", "query", "question"})

SIGNS = {"ok": "", "error": "✗", "denied": "⊘", "cancelled": "◌", "timeout": "✗"}


def decoded(arguments: str) -> dict[str, object] | str:
    """The arguments of a call as an object, or as they were written where that is none."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
    return cast("dict[str, object]", value) if isinstance(value, dict) else arguments


def key_argument(arguments: dict[str, object] | str) -> str:
    """The argument that tells one call from another, on one line: `"tide gauge" src`, `README.md 1–80`."""
    if isinstance(arguments, str):
        return one_line(arguments.strip().removeprefix("{}"), 120)
    names = [n for n in FIRST if arguments.get(n)] or [n for n, v in arguments.items() if isinstance(v, str | int)][:1]
    if not names:
        return ""
    words = [_worded(names[0], arguments[names[0]])]
    if names[0] in QUOTED and isinstance(arguments.get("path"), str) and arguments["path"] not in {"", "."}:
        words.append(one_line(str(arguments["path"]), 80))
    if lines := _line_range(arguments):
        words.append(lines)
    return " ".join(words)


def _worded(name: str, value: object) -> str:
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), 160)
    return f'"{text}"' if name in QUOTED else text


def _line_range(arguments: dict[str, object]) -> str:
    first, last = (next((arguments[n] for n in names if isinstance(arguments.get(n), int)), None) for names in _RANGES)
    if first is None and last is None:
        return ""
    return f"{first if first is not None else 1}–{last if last is not None else ''}"


_RANGES = (
    ("start", "start_line", "first_line", "from_line", "first"),
    ("end", "end_line", "last_line", "to_line", "last"),
)


_CUT_SHORT = re.compile(r"(?m)^\[(?:cancelled by the user|interrupted: |not run: |this ran, but )[^\n]*\Z")
"""What stands at the end of a result where the call did not come to its own."""


def ending(call: ToolCall, result: Message | None) -> tuple[ToolStatus, int | None]:
    """How a recorded call ended, and its exit code, as far as its result tells: nothing else was kept of it."""
    if result is None or result.synthetic:
        return "cancelled", None
    if refused(result):
        return "denied", None
    if _CUT_SHORT.search(result.text.rstrip()[-200:]):
        return "cancelled", None
    if use_of(call).kind == "run":
        end = command_end(result.text)
        if end.code != 0:
            return "timeout" if end.code is None else "error", end.code
        if call.name == SHELL and not failed(result) and not _BACKGROUND.match(result.text):
            return "ok", 0
    return ("error" if failed(result) else "ok"), None


_BACKGROUND = re.compile(r"\[(j\d+: [^,\]\n]{1,40})")
"""How the result of a command begins that runs in the background, or has ended there: with its state."""


def outcome(finished: ToolFinished) -> str:
    """The outcome of a call in a few words, with the number of secrets masked in it."""
    marks = len(marks_in(f"{finished.output}\n{finished.diff}"))
    return f"{_outcome(finished)}, {count(marks, 'secret')} masked" if marks else _outcome(finished)


def _outcome(finished: ToolFinished) -> str:
    if finished.status == "denied":
        return "denied"
    if finished.status == "cancelled":
        return "cancelled"
    if finished.status == "timeout":
        return "timed out"
    if finished.exit_code is not None:
        return f"exit {finished.exit_code}"
    if finished.status == "error":
        return one_line(finished.output, 60) or "failed"
    if finished.diff:  # which ends early where much was written
        told = _WRITTEN.match(finished.output)
        return told[1] if told else diff_size(finished.diff)
    if finished.name in {SHELL, "job"} and (job := _BACKGROUND.match(finished.output)):
        return job[1]
    return counted(finished.name, finished.output)


_WRITTEN = re.compile(r"(?:Created|Changed) [^\n]*: (\+[\d,]+ −[\d,]+), now ")
"""How a tool of ours says what it wrote."""


def counted(tool: str, output: str) -> str:
    """The size of a result in the tool's own terms: `3 hits`, `12 files`, `80 lines`."""
    if output.startswith(("No match", "No file", "./ is empty")) or output.rstrip().endswith(" is empty."):
        return "nothing"
    unit = next((unit for names, unit in _UNITS if any(n in tool for n in names)), "line")
    found, _, last = output.rstrip("\n").rpartition("\n")
    about = found and last.startswith("[") and last.endswith("]")  # in brackets a tool says what it left out
    text = found if about else output
    if unit == "hit":
        return count(hits_in(text.strip("\n").split("\n"))[0], unit)
    if unit == "file" and "list" not in tool:
        return lines_of("\n".join(whole_paths(text.split("\n"), hits=False)), unit)
    if (
        unit == "line"
        and "read" not in tool
        and 0 < len(words := text.strip()) <= MAX_SPOKEN_CHARS
        and "\n" not in words
    ):
        return one_line(words.strip("[.]"))  # what it says is shorter than that it says a line
    return lines_of(text, unit)


MAX_SPOKEN_CHARS = 24
"""Characters of a result that stands in the line of its call."""

_UNITS = ((("grep", "search"), "hit"), (("glob", "list", "find"), "file"))


def lines_of(output: str, unit: str = "line") -> str:
    """`12 lines`."""
    return count(len(output.strip("\n").split("\n")), unit) if output.strip() else "nothing"


def diff_size(diff: str) -> str:
    """`+3 −1`."""
    lines = diff.split("\n")
    start = next((i for i, line in enumerate(lines) if line.startswith("@@")), None)
    body = lines[start:] if start is not None else [n for n in lines if not n.startswith(("+++ ", "--- "))]
    plus = sum(line.startswith("+") for line in body)
    minus = sum(line.startswith("-") for line in body)
    return f"+{plus} −{minus}"
