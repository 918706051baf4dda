"""Reads Qwen Code's sessions: JSON lines chained by `parentUuid`, with contents in gemini-cli's format
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
    """Whether a line is Qwen Code's: part of a chain, with a content in parts or a note of the program."""
    if "uuid" not in line or "sessionId" not in line:
        return False
    return "systemPayload" in line or isinstance(obj(line.get("message")).get("parts"), list)


def files(home: Path) -> Iterator[Path]:
    """The session files in the usual places."""
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
        new_steps = [line] if isinstance(line, Damaged) else list(thread.steps_of_line(line))
        if begun:
            yield from new_steps
        else:
            waiting += new_steps
    if not begun and waiting:
        yield Begin(file.stem)
        yield from waiting


class _Thread:
    """Turns the lines of a session, given in order, into steps."""

    def __init__(self) -> None:
        self._last_message: dict[str, str] = {}  # for each line, the newest message in its branch up to it
        self._tip = ""
        self._asked: list[str] = []  # keys of the person's messages in the current branch
        self._asked_until: dict[str, int] = {}  # for each message, how many of these there were up to it

    def steps_of_line(self, line: Object) -> Iterator[Step]:
        """The steps of a line."""
        uuid = text(line.get("uuid"))
        if cwd := text(line.get("cwd")):
            yield About(folder=cwd)
        before = self._last_message.get(text(line.get("parentUuid")), "")
        new_steps = list(self._read_entry(line, uuid))
        if before != self._tip and any(isinstance(step, Said) for step in new_steps):
            yield Back(before, text(line.get("timestamp")))
            self._asked = self._asked[: self._asked_until.get(before, 0)]
            self._tip = before
        for step in new_steps:
            yield step
            if isinstance(step, Said):
                self._tip = before = step.key
                if step.message.role == "user" and not step.kind:
                    self._asked.append(step.key)
                self._asked_until[step.key] = len(self._asked)
        self._last_message[uuid] = before

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
        """The compaction in a payload, which has the new history: a summary, a short confirmation, and the messages kept from the
        end."""
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
        completion = number(tokens.get("candidatesTokenCount")) + thinking
        usage = Usage(prompt, completion, number(tokens.get("cachedContentTokenCount")), thinking)
        yield Counted(text(line.get("model")), usage)
