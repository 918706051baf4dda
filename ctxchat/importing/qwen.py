"""Qwen Code: JSON lines chained by `parentUuid` that hold contents as gemini-cli has them
(`~/.qwen/projects/*/chats/*.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ctxchat.core.events import Usage
from ctxchat.core.messages import Message
from ctxchat.importing.gemini import parts_of, plain, reply_of, results_of
from ctxchat.importing.json_stream import Object, items, number, obj, text
from ctxchat.importing.steps import About, Back, Begin, Compacted, Counted, Damaged, NoPlace, Said, Step

NAME, LABEL = "qwen-code", "Qwen Code"


def is_ours(line: Object) -> bool:
    """A line of a chain with a content in parts, or with what the program notes for itself."""
    if "uuid" not in line or "sessionId" not in line:
        return False
    return "systemPayload" in line or isinstance(obj(line.get("message")).get("parts"), list)


def files(home: Path) -> Iterator[Path]:
    """The usual places."""
    yield from sorted((home / ".qwen" / "projects").glob("*/chats/*.jsonl"))


def steps(lines: Iterable[tuple[int, Object | Damaged]], file: Path) -> Iterator[Step]:
    """The session of a file."""
    thread = _Thread()
    waiting: list[Step] = []
    begun = False
    for _, line in lines:
        if not begun and not isinstance(line, Damaged) and (session := text(line.get("sessionId"))):
            begun = True
            yield Begin(session)
            yield from waiting
        made = [line] if isinstance(line, Damaged) else list(thread.steps_of_line(line))
        if begun:
            yield from made
        else:
            waiting += made
    if not begun and waiting:
        yield Begin(file.stem)
        yield from waiting


class _Thread:
    """A conversation as its lines come."""

    def __init__(self) -> None:
        self._over: dict[str, str] = {}  # of each line, the newest message on the way to it
        self._tip = ""
        self._asked: list[str] = []  # what a person said on the way here
        self._said_by: dict[str, int] = {}  # how many of these there were with each message

    def steps_of_line(self, line: Object) -> Iterator[Step]:
        uuid = text(line.get("uuid"))
        if cwd := text(line.get("cwd")):
            yield About(folder=cwd)
        before = self._over.get(text(line.get("parentUuid")), "")
        made = list(self._read_entry(line, uuid))
        if before != self._tip and any(isinstance(step, Said) for step in made):
            yield Back(before, text(line.get("timestamp")))
            self._asked = self._asked[: self._said_by.get(before, 0)]
            self._tip = before
        for step in made:
            yield step
            if isinstance(step, Said):
                self._tip = before = step.key
                if step.message.role == "user" and not step.kind:
                    self._asked.append(step.key)
                self._said_by[step.key] = len(self._asked)
        self._over[uuid] = before

    def _read_entry(self, line: Object, uuid: str) -> Iterator[Step]:
        content, at = obj(line.get("message")), text(line.get("timestamp"))
        pieces = [obj(piece) for piece in items(content.get("parts"))]
        match text(line.get("type")):
            case "user":
                yield Said(uuid, Message(0, "user", parts_of(pieces), at=at))
            case "assistant":
                yield Said(uuid, reply_of(pieces, at))
                yield from _counted(line)
            case "tool_result":
                yield from (Said(uuid, result) for result in results_of(pieces, at))
                if rest := [piece for piece in pieces if "functionResponse" not in piece]:
                    yield Said(f"{uuid}+", Message(0, "user", parts_of(rest), at=at), "note")
            case "system" if line.get("subtype") == "chat_compression":
                yield self._compacted(obj(line.get("systemPayload")), at)
            case "system" if title := text(obj(line.get("systemPayload")).get("customTitle")):
                yield About(title=title, rank=2)
            case "system":
                yield NoPlace(f"system lines ({text(line.get('subtype')) or 'plain'})")
            case kind:
                yield NoPlace(f"{kind or 'nameless'} lines")

    def _compacted(self, payload: Object, at: str) -> Compacted:
        """The history it goes on with: a summary, a nod, and what was kept of the end."""
        summary, *rest = items(payload.get("compressedHistory")) or [{}]
        kept = [c for c in map(obj, rest) if c.get("role") == "user" and plain(c.get("parts")).strip()]
        info = obj(payload.get("info"))
        return Compacted(
            plain(obj(summary).get("parts")),
            at,
            kept_from=self._asked[-len(kept)] if 0 < len(kept) <= len(self._asked) else "",
            before=number(info.get("originalTokenCount")),
            after=number(info.get("newTokenCount")),
        )


def _counted(line: Object) -> Iterator[Step]:
    tokens = obj(line.get("usageMetadata"))
    if prompt := number(tokens.get("promptTokenCount")):
        thinking = number(tokens.get("thoughtsTokenCount"))
        made = number(tokens.get("candidatesTokenCount")) + thinking
        usage = Usage(prompt, made, number(tokens.get("cachedContentTokenCount")), thinking)
        yield Counted(text(line.get("model")), usage)
