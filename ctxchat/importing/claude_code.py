"""Claude Code: JSON lines, one for each block of a reply, chained by `parentUuid` (`~/.claude/projects/*/*.jsonl`).

A rewind is a second child of the same line, a compaction a boundary line and then a summary; sub-agents are in files of their
own, or (older) in the same file as side chains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ctxchat.core.events import Usage
from ctxchat.core.messages import Image, Message, Opaque, Part, Text, ToolCall
from ctxchat.core.quantities import count
from ctxchat.importing.json_stream import Object, as_json, items, number, obj, settings_of, simple, text, thought
from ctxchat.importing.steps import About, Back, Begin, Cleared, Compacted, Counted, Damaged, NoPlace, Said, Step

NAME, LABEL = "claude-code", "Claude Code"

CLEANUP_DAYS = 30
"""Days after which Claude Code, when it starts, deletes a session, unless its settings say otherwise."""

_MESSAGE_TYPES = {"user", "assistant"}
_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
"""Lines with a title, by type: the field that holds it, and its rank."""

_SUMMARY_OPENING = "This session is being continued from a previous conversation"
"""How the summary of a compaction begins."""

_PROGRAM_OPENINGS = (
    "<command-name>",
    "<local-command-",
    "<bash-",
    "<system-reminder>",
    "<task-notification>",
    "<user-memory-input>",
    "Caveat: The messages below",
    "[Request interrupted by user",
)
"""How messages begin that Claude Code itself wrote in the user's role. A command that asks something of the model begins with
`<command-message>`: that is the person's request."""

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_ours(line: Object) -> bool:
    """A line of Claude Code's."""
    kind = text(line.get("type"))
    if kind in _MESSAGE_TYPES or kind == "system" or kind == "attachment":
        return "sessionId" in line and ("uuid" in line or "parentUuid" in line)
    return (kind == "summary" and "leafUuid" in line) or (kind == "file-history-snapshot" and "messageId" in line)


def files(home: Path) -> Iterator[Path]:
    """The session files in the usual places, those of sub-agents last."""
    found = [
        path
        for base in (home / ".claude", home / ".config" / "claude")
        for path in (base / "projects").glob("*/**/*.jsonl")
    ]
    yield from sorted((p for p in found if p.name != "journal.jsonl"), key=lambda p: (p.name.startswith("agent-"), p))


def kept_for(home: Path) -> str:
    """How long it keeps a session: `cleanupPeriodDays` of its settings, 30 where that is no number of days."""
    days = number(settings_of(home / ".claude" / "settings.json").get("cleanupPeriodDays"))
    return count(days or CLEANUP_DAYS, "day")


def sub_agents(file: Path) -> Iterator[Path]:
    """The files of a session's sub-agents: in its own folder, or (older) beside it, naming it in their first lines."""
    if file.stem.startswith("agent-"):
        return
    yield from sorted(file.with_suffix("").glob("**/agent-*.jsonl"))
    for path in sorted(file.parent.glob("agent-*.jsonl")):
        with path.open("rb") as opened:
            if file.stem.encode() in opened.read(4_096):
                yield path


def steps(lines: Iterable[tuple[int, Object | Damaged]], file: Path) -> Iterator[Step]:
    """The sessions of a file: its own, then those of side chains in it."""
    is_sub_agent = file.stem.startswith("agent-")
    main = _Chain(is_sub_agent)
    side_steps: dict[str, list[Step]] = {}
    side_chains: dict[str, _Chain] = {}
    root: dict[str, str] = {}  # of each line of a side chain, the line it began with
    begun = False
    waiting: list[Step] = []  # until a line has the session's id
    for _, line in lines:
        if isinstance(line, Damaged):
            new_steps: list[Step] = [line]
        elif line.get("isSidechain") is True and not is_sub_agent:
            new_steps = []
            uuid, parent = text(line.get("uuid")), text(line.get("parentUuid"))
            chain = root[uuid] = root.get(parent, uuid)
            if chain not in side_steps:
                side_steps[chain] = [Begin(chain, parent=text(line.get("sessionId")), delegated=True)]
                side_chains[chain] = _Chain(is_sub_agent=True)
            side_steps[chain] += side_chains[chain].steps_of_line(line)
        else:
            new_steps = list(main.steps_of_line(line))
            if not begun and (session := text(line.get("sessionId"))):
                begun = True
                own = text(line.get("agentId")) or file.stem.removeprefix("agent-")
                # a resumed session's file begins with copies of the older one's lines and id; its own id is the file's name
                name = file.stem if _UUID.fullmatch(file.stem) else session
                yield Begin(own, parent=session, delegated=True) if is_sub_agent else Begin(name)
                yield from waiting
                waiting = []
        if begun:
            yield from new_steps
        else:
            waiting += new_steps
    if waiting:
        yield Begin(file.stem)
        yield from waiting
    yield from main.last_steps()
    for chain, found in side_steps.items():
        yield from found
        yield from side_chains[chain].last_steps()


class _Chain:
    """One conversation, read line by line. `is_sub_agent`: all lines of a sub-agent's count as side chain."""

    def __init__(self, is_sub_agent: bool) -> None:
        self._is_sub_agent = is_sub_agent
        self._seen: dict[str, int] = {}
        # for each line, the key of the last message on its path, its own included
        self._last_message: dict[str, str] = {}
        self._newest = ""  # the key of the last message read
        self._answered: set[str] = set()  # messages after which the user has said something
        self._boundary: Object = {}  # of a compaction whose summary is still to come

    def steps_of_line(self, line: Object) -> Iterator[Step]:
        uuid = text(line.get("uuid"))
        digest = hash(repr(line.get("message")))
        if uuid and self._seen.setdefault(uuid, digest) == digest and uuid in self._last_message:
            yield NoPlace("repeated lines")
            return
        if cwd := text(line.get("cwd")):
            yield About(folder=cwd)
        parent = self._message_at(line.get("parentUuid"))
        self._last_message[uuid] = parent
        for step in self._converted(line, uuid, parent):
            yield step
            if isinstance(step, Said):
                self._last_message[uuid] = self._newest = step.key

    def _message_at(self, uuid: object) -> str:
        """The key of the last message on the path of a line; of one that is not there, as a damaged one, of the newest line."""
        return self._last_message.get(text(uuid), self._newest) if uuid else ""

    def _converted(self, line: Object, uuid: str, parent: str) -> Iterator[Step]:
        match text(line.get("type")):
            case "user" | "assistant" as kind:
                yield from self._spoken(line, kind, uuid, parent)
            case "system":
                yield from self._system(line)
            case "attachment":
                yield from _attachment(line, uuid)
            case kind if kind in _TITLES:
                name, rank = _TITLES[kind]
                yield About(title=text(line.get(name)), rank=rank)
            case kind:
                yield NoPlace(f"{kind or 'nameless'} lines")

    def last_steps(self) -> Iterator[Step]:
        """The compaction of a boundary that no summary followed."""
        if self._boundary:
            yield from self._compacted("", "")

    def _spoken(self, line: Object, kind: str, uuid: str, parent: str) -> Iterator[Step]:
        message = obj(line.get("message"))
        at = text(line.get("timestamp"))
        if kind == "assistant":
            if self._boundary:
                yield from self.last_steps()
            yield from _reply(message, uuid, at)
            return
        content = message.get("content")
        if line.get("isCompactSummary") is True or _plain_text(content).startswith(_SUMMARY_OPENING):
            yield from self._compacted(_plain_text(content), at)
            return
        if self._boundary and line.get("isMeta") is not True:
            yield from self.last_steps()
        results = [block for block in map(obj, items(content)) if block.get("type") == "tool_result"]
        for block in results:
            call = text(block.get("tool_use_id"))
            failed = block.get("is_error") is True
            yield Said(uuid, Message(0, "tool", _result(block), call_id=call, at=at, failed=failed))
        rest = [block for block in items(content) if obj(block).get("type") != "tool_result"] if results else content
        parts = _parts(rest)
        if not parts:
            return
        if results or line.get("isMeta") is True or _plain_text(rest).lstrip().startswith(_PROGRAM_OPENINGS):
            yield Said(f"{uuid}+" if results else uuid, Message(0, "user", parts, at=at), "note")
            return
        if line.get("parentUuid") and parent in self._answered and not self._is_sub_agent:
            yield Back(parent, at)
        self._answered.add(parent)
        yield Said(uuid, Message(0, "user", parts, at=at))

    def _system(self, line: Object) -> Iterator[Step]:
        subtype = text(line.get("subtype"))
        if subtype == "compact_boundary":
            yield from self.last_steps()
            self._boundary = line
            logical = line.get("logicalParentUuid")
            self._last_message[text(line.get("uuid"))] = self._message_at(logical) if logical else self._newest
        elif subtype == "microcompact_boundary":
            about = obj(line.get("microcompactMetadata"))
            calls = frozenset(call for call in items(about.get("compactedToolIds")) if isinstance(call, str))
            yield Cleared(calls, text(line.get("timestamp")))
        elif subtype == "local_command":
            yield Said(
                text(line.get("uuid")),
                Message(0, "user", text(line.get("content")), at=text(line.get("timestamp"))),
                "note",
            )
        else:
            yield NoPlace(f"system lines ({subtype or 'plain'})")

    def _compacted(self, summary: str, at: str) -> Iterator[Step]:
        line, self._boundary = self._boundary, {}
        about = obj(line.get("compactMetadata"))
        kept = obj(about.get("preservedMessages")) or obj(about.get("preservedSegment"))
        kept_uuids = [uuid for uuid in items(kept.get("uuids")) if isinstance(uuid, str)]
        head = text(kept.get("headUuid"))
        yield Compacted(
            summary,
            at=at or text(line.get("timestamp")),
            manual=about.get("trigger") == "manual",
            kept=frozenset(self._last_message.get(uuid, uuid) for uuid in kept_uuids),
            kept_from="" if kept_uuids else self._last_message.get(head, head),
            before=number(about.get("preTokens")),
            after=number(about.get("postTokens")),
        )


def _reply(message: Object, uuid: str, at: str) -> Iterator[Step]:
    key = text(message.get("id")) or uuid
    parts: list[Part] = []
    calls: list[ToolCall] = []
    thoughts: list[str] = []
    content = message.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else map(obj, items(content)):
        match block.get("type"):
            case "text":
                parts.append(Text(text(block.get("text"))))
            case "thinking":
                thoughts.append(text(block.get("thinking")))
            case "redacted_thinking":
                yield NoPlace("thoughts only the provider can read")
            case "tool_use":
                name = text(block.get("name")) or "unknown"
                calls.append(ToolCall(text(block.get("id")), name, as_json(block.get("input") or {})))
            case kind:
                parts.append(Opaque(text(kind) or "part", as_json(block)))
    yield Said(key, Message(0, "assistant", simple(parts), tuple(calls), reasoning=thought(thoughts), at=at))
    usage = obj(message.get("usage"))
    model = text(message.get("model"))
    if usage and model != "<synthetic>":
        cached = number(usage.get("cache_read_input_tokens"))
        prompt = number(usage.get("input_tokens")) + cached + number(usage.get("cache_creation_input_tokens"))
        if prompt:
            yield Counted(f"anthropic/{model}", Usage(prompt, number(usage.get("output_tokens")), cached))


def _attachment(line: Object, uuid: str) -> Iterator[Step]:
    """The steps for an attachment: a message typed during a turn, or a file that a message names."""
    about, at = obj(line.get("attachment")), text(line.get("timestamp"))
    kind = text(about.get("type"))
    if kind == "queued_command" and (parts := _parts(about.get("prompt"))):
        is_prompt = text(about.get("commandMode")) in {"", "prompt"}
        yield Said(uuid, Message(0, "user", parts, at=at), "" if is_prompt else "note")
        return
    if kind in {"file", "edited_text_file", "nested_memory"}:
        content = about.get("content")
        inner = obj(obj(content).get("file")) or obj(content)
        words = text(about.get("snippet")) or text(content) or text(inner.get("content"))
        name = text(about.get("filename")) or text(about.get("path")) or text(inner.get("filePath")) or kind
        if words:
            yield Said(uuid, Message(0, "user", (Text(words, name),), at=at), "note")
            return
    yield NoPlace(f"attachments ({kind or 'nameless'})")


def _result(block: Object) -> str | tuple[Part, ...]:
    content = block.get("content")
    return content if isinstance(content, str) else _parts(content)


def _parts(content: object) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    return simple([_part(block) for block in items(content)])


def _part(block: Any) -> Part:
    fields = obj(block)
    match fields.get("type"):
        case "text":
            return Text(text(fields.get("text")))
        case "image":
            source = obj(fields.get("source"))
            if source.get("type") == "base64":
                return Image(f"data:{text(source.get('media_type')) or 'image/png'};base64,{text(source.get('data'))}")
            return Image(text(source.get("url"))) if source.get("url") else Opaque("image", as_json(fields))
        case kind:
            return Text(block) if isinstance(block, str) else Opaque(text(kind) or "part", as_json(fields))


def _plain_text(content: object) -> str:
    return content if isinstance(content, str) else "\n".join(text(obj(block).get("text")) for block in items(content))
