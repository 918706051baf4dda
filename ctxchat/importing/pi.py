"""Reads pi's sessions: JSON lines (`~/.pi/agent/sessions/**/*.jsonl`). In the first version they are a list; since the second,
entries form a tree by `id` and `parentId`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from ctxchat.core.events import Usage
from ctxchat.core.messages import Image, Message, Part, Text, ToolCall
from ctxchat.core.usage import dollars
from ctxchat.importing.json_stream import Object, as_json, items, model_of, number, obj, simple, text, thought, when
from ctxchat.importing.steps import About, Back, Begin, Compacted, Counted, Damaged, NoPlace, Said, Step

NAME, LABEL = "pi", "pi"

_KINDS = {"message", "compaction", "branch_summary", "custom_message", "model_change", "thinking_level_change"}


def is_ours(line: Object) -> bool:
    """Whether a line is pi's: a header with a folder, or one of its kinds of entries."""
    if line.get("type") == "session":
        return "cwd" in line and "id" in line
    return text(line.get("type")) in _KINDS and "timestamp" in line and "sessionId" not in line and "role" not in line


def files(home: Path) -> Iterator[Path]:
    """The session files in the usual places."""
    yield from sorted((home / ".pi" / "agent" / "sessions").glob("**/*.jsonl"))


def steps(lines: Iterable[tuple[int, Object | Damaged]], file: Path) -> Iterator[Step]:
    """The session of a file."""
    session = _Session()
    begun = False
    for entry, (_, line) in enumerate(lines):
        if not begun:
            header = {} if isinstance(line, Damaged) or line.get("type") != "session" else line
            parent = PurePath(text(header.get("parentSession") or header.get("branchedFrom"))).stem.rpartition("_")[2]
            yield Begin(text(header.get("id")) or file.stem.rpartition("_")[2], parent)
            begun = True
        yield from [line] if isinstance(line, Damaged) else session.steps_of_line(line, entry)


class _Session:
    """Turns the entries of a session, given in order, into steps."""

    def __init__(self) -> None:
        self._last_message: dict[str, str] = {}  # for each entry, the newest message in its branch up to it
        self._first: dict[str, str] = {}  # for each entry, its message, or the first message after it
        self._waiting: list[str] = []
        self._tip = ""
        self._model = ""

    def steps_of_line(self, line: Object, entry: int) -> Iterator[Step]:
        """The steps of the entry with this number."""
        kind, id = text(line.get("type")), text(line.get("id")) or f"#{entry}"
        if kind == "session":
            self._model = _model(line)
            yield About(folder=text(line.get("cwd")))
            return
        before = line.get("parentId")
        parent = (
            self._last_message.get(before, self._tip)
            if isinstance(before, str)
            else self._tip
            if "#" in id or before
            else ""
        )
        new_steps = list(self._read_entry(line, kind, id))
        if parent != self._tip and any(isinstance(step, Said | Compacted) for step in new_steps):
            yield Back(parent, text(line.get("timestamp")))
            self._tip = parent
        self._waiting.append(id)
        for step in new_steps:
            yield step
            if isinstance(step, Said):
                self._tip = parent = step.key
                self._first.update(dict.fromkeys(self._waiting, step.key))
                self._waiting = []
        self._last_message[id] = parent

    def _read_entry(self, line: Object, kind: str, id: str) -> Iterator[Step]:
        at = text(line.get("timestamp"))
        match kind:
            case "message":
                yield from self._message(obj(line.get("message")), id, at)
            case "compaction":
                index = line.get("firstKeptEntryIndex")
                first = f"#{index}" if isinstance(index, int) else text(line.get("firstKeptEntryId"))
                yield Compacted(
                    text(line.get("summary")),
                    at,
                    kept_from=self._first.get(first, ""),
                    before=number(line.get("tokensBefore")),
                    model=self._model,
                )
            case "branch_summary":
                yield Said(id, Message(0, "user", text(line.get("summary")), at=at), "note")
            case "custom_message":
                yield Said(id, Message(0, "user", _parts(line.get("content")), at=at), "note")
            case "model_change":
                self._model = _model(line)
            case "session_info":
                yield About(title=text(line.get("name")), rank=2)
            case "thinking_level_change":
                yield NoPlace("changes of the thinking level")
            case _:
                yield NoPlace(f"{kind or 'nameless'} entries")

    def _message(self, message: Object, id: str, at: str) -> Iterator[Step]:
        at = when(message.get("timestamp")) or at
        match message.get("role"):
            case "user":
                yield Said(id, Message(0, "user", _parts(message.get("content")), at=at))
            case "assistant":
                yield from self._reply(message, id, at)
            case "toolResult":
                call, name = text(message.get("toolCallId")), text(message.get("toolName"))
                parts, failed = _parts(message.get("content")), message.get("isError") is True
                yield Said(id, Message(0, "tool", parts, call_id=call, name=name, at=at, failed=failed))
            case "bashExecution":
                words = f"Ran `{text(message.get('command'))}`\n{text(message.get('output')) or '(no output)'}"
                if code := number(message.get("exitCode")):
                    words += f"\nIt ended with exit code {code}."
                yield Said(id, Message(0, "user", words, at=at), "note")
            case "custom" | "hookMessage":
                yield Said(id, Message(0, "user", _parts(message.get("content")), at=at), "note")
            case "branchSummary" | "compactionSummary":
                yield Said(id, Message(0, "user", text(message.get("summary")), at=at), "note")
            case role:
                yield NoPlace(f"messages of {text(role) or 'nobody'}")

    def _reply(self, message: Object, id: str, at: str) -> Iterator[Step]:
        blocks = [obj(block) for block in items(message.get("content"))]
        thoughts = [text(b.get("thinking")) for b in blocks if b.get("type") == "thinking"]
        calls = [
            ToolCall(text(b.get("id")), text(b.get("name")) or "unknown", as_json(b.get("arguments") or {}))
            for b in blocks
            if b.get("type") == "toolCall"
        ]
        spoken = [b for b in blocks if text(b.get("type")) not in {"thinking", "toolCall"}]
        broken = text(message.get("stopReason")) in {"aborted", "error"}
        yield Said(
            id,
            Message(
                0, "assistant", _parts(spoken), tuple(calls), reasoning=thought(thoughts), at=at, interrupted=broken
            ),
        )
        self._model = _model(message) or self._model
        usage = obj(message.get("usage"))
        cached = number(usage.get("cacheRead"))
        prompt = number(usage.get("input")) + cached + number(usage.get("cacheWrite"))
        if prompt:
            paid = dollars(obj(usage.get("cost")).get("total")) or 0.0
            yield Counted(self._model, Usage(prompt, number(usage.get("output")), cached, cost_usd=paid))


def _model(about: Object) -> str:
    return model_of(text(about.get("provider")), text(about.get("modelId")) or text(about.get("model")))


def _parts(content: object) -> str | tuple[Part, ...]:
    return content if isinstance(content, str) else simple([_part(obj(block)) for block in items(content)])


def _part(block: Object) -> Part:
    if block.get("type") == "image":
        return Image(f"data:{text(block.get('mimeType')) or 'image/png'};base64,{text(block.get('data'))}")
    return Text(text(block.get("text")))
