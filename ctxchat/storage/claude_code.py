"""Exports a session in Claude Code's format: a chained JSON line for each message, compactions as boundary lines with summaries.

Content that the format cannot represent is counted by kind, so that a person can be told. Reads and writes no file.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ctxchat.core.images import from_data_url, kind_of
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change
from ctxchat.core.messages import Group, Image, Message, Opaque, Part
from ctxchat.core.record import Digest
from ctxchat.storage.exporting import masked_json

Line = dict[str, Any]

VERSION = "2.1.0"
"""The version of Claude Code whose format this is."""

_CALL = re.compile("[^a-zA-Z0-9_-]")


class ClaudeCodeLines:
    """The lines of one session; its images must be embedded in its messages. `folder` is where it was begun, `name` its id in
    Claude Code. After the iteration `left_out` has the count of each kind of content that was left out."""

    def __init__(self, session: str, state: SessionState, folder: str) -> None:
        self.name = str(uuid.uuid5(uuid.NAMESPACE_OID, session))
        self.left_out = Counter[str]()
        self._state, self._folder = state, folder
        self._tip: str | None = None
        self._at = ""

    def __iter__(self) -> Iterator[Line]:
        ledger = self._state.ledger
        place = {group.id: n for n, group in enumerate(ledger.groups)}
        after: dict[int, list[Change]] = {}
        hidden = ledger.rewound
        for change in ledger.in_force:
            covers = [name for edit in change.edits for name in edit.covers]
            if change.kind == "compaction" and len(change.edits) == 1 and change.edits[0].kind == "digest":
                after.setdefault(_made_after(ledger.groups, change, max(map(place.__getitem__, covers))), []).append(
                    change
                )
            elif change.kind not in {"rewind", "restore", "memo"}:
                self.left_out[f"changes by hand or without a summary ({change.kind})"] += 1
        live: str | None = None  # the line after which the conversation goes on, once a rewind hid what followed
        for n, group in enumerate(ledger.groups):
            if group.id not in hidden and n and ledger.groups[n - 1].id in hidden:
                self._tip = live
            for message in group.messages:
                if not message.synthetic:
                    yield from self._message(message, group)
            live = live if group.id in hidden else self._tip
            for change in after.get(n, ()):
                yield from self._compaction(change, ledger.groups[: n + 1])
                live = self._tip
        if ledger.groups and ledger.groups[-1].id in hidden:
            self.left_out["rewinds after which nothing was said"] += 1
        if self._state.title:
            yield {"type": "custom-title", "customTitle": self._state.title, "sessionId": self.name}

    def _message(self, message: Message, group: Group) -> Iterator[Line]:
        """The line of a message, in the form that Claude Code has for its role."""
        if message.reasoning and message.reasoning.text:
            self.left_out["thoughts (they must be signed there)"] += 1
        if message.role == "assistant":
            inner: Line = {"id": f"msg_{message.id}", "type": "message", "role": "assistant", "content": []}
            inner["model"] = self._state.model.rpartition("/")[2]
            inner["content"] = [*_blocks(message), *map(self._call, message.calls)]
            yield self._make_line("assistant", message.id, message, message=inner)
        elif message.role == "tool":
            content = message.content if isinstance(message.content, str) else _blocks(message)
            result = {"type": "tool_result", "tool_use_id": _CALL.sub("_", message.call_id), "content": content}
            yield self._make_line("user", message.id, message, message={"role": "user", "content": [result]})
        else:
            content = message.content if isinstance(message.content, str) else _blocks(message)
            more = {"isCompactSummary": True} if group.kind == "summary" else {}
            more |= {"isMeta": True} if group.kind in {"note", "system", "stray"} else {}
            yield self._make_line("user", message.id, message, message={"role": "user", "content": content}, **more)

    def _call(self, call: Any) -> Line:
        """A call in Claude Code's format, which needs arguments that are an object."""
        try:
            arguments = msgspec.json.decode(call.arguments or "{}")
        except msgspec.DecodeError:
            arguments = None
        if not isinstance(arguments, dict):
            self.left_out["arguments of calls that are no JSON object"] += 1
            arguments = {"arguments": call.arguments}
        return {"type": "tool_use", "id": _CALL.sub("_", call.id), "name": call.name, "input": arguments}

    def _compaction(self, change: Change, groups: tuple[Group, ...]) -> Iterator[Line]:
        """The lines of a compaction: a boundary, and the summary as a user message behind it."""
        (edit,), record = change.edits, change.record
        about: Line = {"trigger": "manual" if record and record.reason == "manual" else "auto"}
        if record:
            about |= {"preTokens": record.before.used, "postTokens": record.stands}
        covered = set(edit.covers)
        kept = [self._uuid(m.id) for g in groups if g.id not in covered for m in g.messages if not m.synthetic]
        if kept:
            # without the line they come after, Claude Code ignores them
            anchor = self._uuid(f"{change.id}-summary")
            about["preservedMessages"] = {"anchorUuid": anchor, "uuids": kept, "allUuids": kept}
        logical, self._tip, self._at = self._tip, None, change.at or self._at
        boundary = self._make_line(
            "system", change.id, None, subtype="compact_boundary", content="Conversation compacted"
        )
        yield boundary | {"logicalParentUuid": logical, "compactMetadata": about}
        # whether the text is only the summary, without facts that ctxchat added
        only_summary = edit.digest and edit.digest == Digest(summary=edit.digest.summary)
        words = (
            edit.digest.summary
            if edit.digest and only_summary
            else edit.replacement.first.text
            if edit.replacement
            else ""
        )
        inner = {"role": "user", "content": masked_json(words)}
        yield self._make_line("user", f"{change.id}-summary", None, message=inner, isCompactSummary=True)

    def _make_line(self, kind: str, name: str, of: Message | None, **more: Any) -> Line:
        """A line with the fields that all have, chained to the line before. Secrets are masked, except in what was imported."""
        if of and of.seq > self._state.imported:
            more = {key: masked_json(value) for key, value in more.items()}
        parent, self._tip = self._tip, self._uuid(name)
        self._at = (of.at if of else "") or self._at
        about = {"parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": self._folder}
        about |= {"sessionId": self.name, "version": VERSION, "type": kind, "uuid": self._tip, "timestamp": self._at}
        return about | more

    def _uuid(self, name: str) -> str:
        return str(uuid.uuid5(uuid.UUID(self.name), name))


def _made_after(groups: Sequence[Group], change: Change, covered: int) -> int:
    """The index of the last group that existed when the change was made: the last it covers, or a later one that is not newer
    than it."""
    last, at = covered, change.at or (change.record.at if change.record else "")
    while last + 1 < len(groups) and "" < groups[last + 1].first.at <= at:
        last += 1
    return last


def _blocks(message: Message) -> list[Line]:
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}] if message.content else []
    return [_block(part) for part in message.content]


def _block(part: Part) -> Line:
    """A part in Claude Code's format."""
    match part:
        case Image(url=url) if url.startswith("data:") and (data := from_data_url(url)):
            source = {"type": "base64", "media_type": f"image/{kind_of(data)}", "data": url.partition(",")[2]}
            return {"type": "image", "source": source}
        case Image(url=url) if not part.stored:
            return {"type": "image", "source": {"type": "url", "url": url}}
        case Opaque(json=json):
            return msgspec.json.decode(json)
        case _:
            return {"type": "text", "text": part.words}
