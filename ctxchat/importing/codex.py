"""Reads Codex's sessions: JSON lines of response items and events (`~/.codex/sessions/**/rollout-*.jsonl`).

Since autumn 2025 every line is an envelope with `type` and `payload`. Before that, bare items followed a header, and the first
versions wrote one document with `session` and `items`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import cast

from ctxchat.core.call_arguments import fields_of
from ctxchat.core.events import Usage
from ctxchat.core.messages import Image, Message, Opaque, Part, Text, ToolCall
from ctxchat.importing.json_stream import Object, as_json, items, number, obj, simple, text, thought, when
from ctxchat.importing.steps import About, Back, Begin, Compacted, Counted, Damaged, NoPlace, Said, Step

NAME, LABEL = "codex", "Codex"

_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_ITEMS = {"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"}
_PROGRAM_OPENINGS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<skill>",
    "<subagent_notification>",
    "<hook_prompt",
    "<INSTRUCTIONS>",
    "<model_switch>",
    "<apps_instructions>",
    "<skills_instructions>",
    "<plugins_instructions>",
    "<personality_spec>",
    "# AGENTS.md instructions",
)
"""How messages begin that Codex itself wrote in the user's role."""

_SUMMARY_OPENING = "Another language model started to solve this problem and produced a summary"


def is_ours(line: Object) -> bool:
    """Whether a line is Codex's: an envelope, a bare item, or the header of an older format."""
    kind = text(line.get("type")) or None
    if kind in _ENVELOPES and isinstance(line.get("payload"), dict):
        return True
    if line.get("record_type") == "state" or ("session" in line and "items" in line):
        return True
    if kind is None and "id" in line and "timestamp" in line and ("instructions" in line or "git" in line):
        return True
    return (kind == "message" and "role" in line and "content" in line and "message" not in line) or (
        kind in _ITEMS - {"message"} and ("call_id" in line or "summary" in line or "encrypted_content" in line)
    )


def files(home: Path) -> Iterator[Path]:
    """The session files in the usual places."""
    for folder in ("sessions", "archived_sessions"):
        yield from sorted((home / ".codex" / folder).glob("**/rollout-*.json*"))


def steps(lines: Iterable[tuple[int, Object | Damaged]], file: Path) -> Iterator[Step]:
    """The session of a file."""
    rollout = _Rollout()
    waiting: list[Step] = []
    begun = False
    for line_number, line in chain(lines, [(0, None)]):
        if not begun and line and not isinstance(line, Damaged) and (began := _header(line)):
            begun = True
            yield began
            yield from waiting
        if line is None:
            new_steps = [*rollout.remaining_steps(), *rollout.messages_of_events()]
        else:
            new_steps = [line] if isinstance(line, Damaged) else list(rollout.steps_of_line(line, line_number))
        if not begun and any(isinstance(step, Said) for step in new_steps):
            begun = True
            yield Begin(file.stem.removeprefix("rollout-")[-36:])
            yield from waiting
        if begun:
            yield from new_steps
        else:
            waiting += new_steps


def _header(line: Object) -> Begin | None:
    """The beginning of a session in a header line, None for another line."""
    if line.get("type") == "session_meta":
        about = obj(line.get("payload"))
    elif "session" in line and "items" in line:
        about = obj(line.get("session"))
    elif line.get("type") is None:
        about = line
    else:
        return None
    if not (name := text(about.get("id"))):
        return None
    spawned = obj(obj(obj(about.get("source")).get("subagent")).get("thread_spawn"))
    parent = text(spawned.get("parent_thread_id")) or text(about.get("parent_thread_id"))
    return Begin(name, parent or text(about.get("forked_from_id")), delegated=bool(parent))


class _Rollout:
    """Turns the lines of a session, given in order, into steps."""

    def __init__(self) -> None:
        self._model = ""
        self._at = ""
        self._reply = 0
        self._counted: object = None
        self._asked: list[str] = []  # keys of the person's messages that no rollback removed
        self._before: dict[str, str] = {}  # for each of these, the key of the message before it
        self._texts: dict[str, str] = {}  # by the text of a message, the key of the newest one
        self._ids: dict[str, str] = {}
        self._newest: list[Step] = []  # a reply held back with what followed: it may be a summary
        # for each message item without an event so far, the texts that its event may have
        self._unconfirmed: list[frozenset[str]] = []
        # key, time and item of events without a message item so far
        self._event_messages: list[tuple[str, str, Object]] = []
        self._last = ""
        self._headed = False

    def steps_of_line(self, line: Object, line_number: int) -> Iterator[Step]:
        """The steps that the line with this number completes."""
        new_steps = list(self._read_line(line, line_number))
        if self._newest and not any(isinstance(step, Said | Back | Compacted) for step in new_steps):
            self._newest += new_steps
            return
        if any(isinstance(step, Compacted) and self._is_newest_reply(step.summary) for step in new_steps):
            self._newest = []
        yield from self.remaining_steps()
        if (
            len(new_steps) == 1
            and isinstance(new_steps[0], Said)
            and new_steps[0].message.role == "assistant"
            and new_steps[0].message.text
        ):
            self._newest = new_steps
        else:
            yield from new_steps

    def remaining_steps(self) -> Iterator[Step]:
        """The steps held back since a reply that could have been a summary."""
        newest, self._newest = self._newest, []
        yield from newest

    def _is_newest_reply(self, summary: str) -> bool:
        """Whether the reply held back was the summary itself."""
        reply = self._newest[0] if self._newest else None
        return isinstance(reply, Said) and summary.endswith(reply.message.text)

    def _read_line(self, line: Object, line_number: int) -> Iterator[Step]:
        kind, payload = text(line.get("type")) or None, line.get("payload")
        self._at = when(line.get("timestamp")) or self._at
        if "session" in line and "items" in line:
            for part, item in enumerate(items(line.get("items"))):
                yield from self._item(obj(item), f"{line_number}.{part}")
        elif kind in _ENVELOPES or isinstance(payload, dict):
            yield from self._envelope(text(kind), obj(cast("object", payload)), str(line_number))
        elif kind is not None:
            yield from self._item(line, str(line_number))

    def _envelope(self, kind: str, payload: Object, key: str) -> Iterator[Step]:
        match kind:
            case "session_meta":
                if not self._headed:
                    self._headed = True
                    yield About(folder=text(payload.get("cwd")))
            case "turn_context":
                self._model = text(payload.get("model")) or self._model
                yield About(folder=text(payload.get("cwd")))
            case "response_item":
                yield from self._item(payload, key)
            case "compacted":
                yield from self.messages_of_events()
                yield from self._compacted(payload)
            case "event_msg":
                yield from self._event(payload, key)
            case _:
                yield NoPlace(f"{kind or 'nameless'} lines")

    def _event(self, event: Object, key: str) -> Iterator[Step]:
        match text(event.get("type")):
            case "token_count":
                info = obj(event.get("info"))
                usage, whole = obj(info.get("last_token_usage")), info.get("total_token_usage")
                if usage and whole != self._counted:
                    self._counted = whole
                    yield Counted(f"openai/{self._model}" if self._model else "", _usage(usage))
            case "thread_rolled_back":
                yield from self.messages_of_events()
                yield from self._rolled_back(number(event.get("num_turns")))
            case "thread_name_updated":
                yield About(title=text(event.get("thread_name")) or text(event.get("name")), rank=2)
            case "user_message":
                self._add_event_message(event, key)
            case (
                "agent_message"
                | "agent_reasoning"
                | "context_compacted"
                | "agent_reasoning_raw_content"
                | "item_completed"
            ):
                pass  # an item has the same content
            case kind:
                yield NoPlace(f"events ({text(kind) or 'nameless'})")

    def _add_event_message(self, event: Object, key: str) -> None:
        """Note the message of an event, unless an item had the same text; that item may also come later."""
        words = text(event.get("message")).strip()
        item_texts = next((texts for texts in self._unconfirmed if words in texts), None)
        if item_texts is not None:
            self._unconfirmed.remove(item_texts)
            return
        images = [{"type": "input_image", "image_url": url} for url in items(event.get("images")) if text(url)]
        if words or images:
            content = [*([{"type": "input_text", "text": words}] if words else []), *images]
            self._event_messages.append((f"u{key}", self._at, {"role": "user", "content": content}))

    def messages_of_events(self) -> Iterator[Step]:
        """The person's messages that only events have: no item with the same text came before the model's reply."""
        messages, self._event_messages = self._event_messages, []
        for key, at, item in messages:
            yield from self._read_message(item, key, at)

    def _rolled_back(self, turns: int) -> Iterator[Step]:
        if 0 < turns <= len(self._asked):
            first = self._asked[-turns]
            self._asked = self._asked[:-turns]
            self._last = self._before[first]
            yield Back(self._last, self._at)

    def _item(self, item: Object, key: str) -> Iterator[Step]:
        kind = text(item.get("type")) or ("message" if "role" in item else "")  # some copies lack the type
        call = text(item.get("call_id")) or text(item.get("id"))
        if kind not in {"message", "ghost_snapshot"} or item.get("role") == "assistant":
            self._unconfirmed = []
            yield from self.messages_of_events()
        match kind:
            case "message" if item.get("role") == "assistant":
                yield self._add_message(Message(0, "assistant", _parts(item.get("content")), at=self._at))
            case "message":
                yield from self._earlier_event_messages(item)
                yield from self._read_message(item, f"u{key}", self._at)
            case "agent_message":
                parts = _parts(item.get("content"))
                yield self._note_message(f"n{key}", Message(0, "user", parts, at=self._at), "note")
            case "reasoning":
                pieces = map(obj, [*items(item.get("content")), *items(item.get("summary"))])
                if reasoning := thought(text(piece.get("text")) for piece in pieces):
                    yield self._add_message(Message(0, "assistant", reasoning=reasoning, at=self._at))
                else:
                    yield NoPlace("thoughts only the provider can read")
            case "function_call" | "custom_tool_call" | "tool_search_call" | "mcp_tool_call":
                arguments = item.get("arguments") if kind != "custom_tool_call" else {"input": item.get("input")}
                name = ".".join(filter(None, (text(item.get("namespace")), text(item.get("name")) or kind)))
                yield self._add_message(
                    _calling(call, name, as_json(arguments if arguments is not None else {}), self._at)
                )
            case "local_shell_call":
                yield self._add_message(_calling(call, "shell", as_json(item.get("action") or {}), self._at))
            case "web_search_call" | "image_generation_call":
                call = call or f"{kind}-{key}"
                about = {name: value for name, value in item.items() if name not in {"type", "id", "result"}}
                yield self._add_message(_calling(call, kind.removesuffix("_call"), as_json(about), self._at))
                image = text(item.get("result"))
                parts = (Image(f"data:image/png;base64,{image}"),) if image else text(item.get("status")) or "completed"
                yield self._result(f"t{key}", call, parts)
            case _ if kind.endswith("_output"):
                output = item.get("output") if "output" in item else item.get("tools")
                yield self._result(f"t{key}", call, _output(output), failed=_unsuccessful(output))
            case "compaction" | "compaction_summary" | "context_compaction" | "ghost_snapshot":
                yield NoPlace(f"{kind} items")
            case _:
                yield NoPlace(f"{kind or 'nameless'} items")

    def _add_message(self, message: Message) -> Said:
        self._last = f"r{self._reply}"
        return Said(self._last, message)

    def _note_message(self, key: str, message: Message, kind: str = "") -> Said:
        self._reply += 1
        self._last = key
        return Said(key, message, "note" if kind else "")

    def _result(self, key: str, call: str, content: str | tuple[Part, ...], *, failed: bool = False) -> Said:
        return self._note_message(key, Message(0, "tool", content, call_id=call, at=self._at, failed=failed))

    def _earlier_event_messages(self, item: Object) -> Iterator[Step]:
        """The messages of events that come before a message item. An event with the item's text is dropped, since the item has
        it."""
        item_texts = _message_forms(item)
        matches = (n for n, event in enumerate(self._event_messages) if _message_forms(event[2]) & item_texts)
        index = next(matches, None)
        if index is not None:
            later = self._event_messages[index + 1 :]
            self._event_messages = self._event_messages[:index]
            yield from self.messages_of_events()
            self._event_messages = later
        elif _by_person(item):
            yield from self.messages_of_events()
            self._unconfirmed.append(item_texts)

    def _read_message(self, item: Object, key: str, at: str) -> Iterator[Step]:
        parts = _parts(item.get("content"))
        words = _text_of_parts(parts)
        message = Message(0, "user", parts, at=at)
        if not _by_person(item):
            yield self._note_message(key, message, "note")
            return
        self._before[key] = self._last
        self._asked.append(key)
        self._texts[words] = key
        self._ids[text(item.get("id"))] = key
        yield self._note_message(key, message)

    def _compacted(self, payload: Object) -> Iterator[Step]:
        """The compaction in a line, which has the new history item by item; in older versions that is the summary and the
        person's messages."""
        summary = text(payload.get("message"))
        kept: set[str] = set()
        for item in map(obj, items(payload.get("replacement_history"))):
            if item.get("type") != "message" or item.get("role") != "user":
                continue
            words, id = _text_of_parts(_parts(item.get("content"))), text(item.get("id"))
            if words.startswith(_SUMMARY_OPENING):
                summary = summary or words
            elif key := (self._ids.get(id) if id else "") or self._texts.get(words):
                kept.add(key)
        self._reply += 1
        yield Compacted(summary, self._at, kept=frozenset(kept), model=f"openai/{self._model}" if self._model else "")


def _message_forms(item: Object) -> frozenset[str]:
    """The texts that an event may have for a message item: all texts joined, or one of them where the item has several parts;
    empty for images alone."""
    parts = _parts(item.get("content"))
    texts = [parts] if isinstance(parts, str) else [p.text for p in parts if isinstance(p, Text)]
    alone = () if isinstance(parts, str) or not any(isinstance(p, Image) for p in parts) else ("",)
    return frozenset(words.strip() for words in (*texts, *alone, "".join(texts)))


def _by_person(item: Object) -> bool:
    return item.get("role") == "user" and not _text_of_parts(_parts(item.get("content"))).lstrip().startswith(
        _PROGRAM_OPENINGS
    )


def _text_of_parts(parts: str | tuple[Part, ...]) -> str:
    return parts if isinstance(parts, str) else "\n\n".join(p.text for p in parts if isinstance(p, Text))


def _calling(call: str, name: str, arguments: str, at: str) -> Message:
    return Message(0, "assistant", calls=(ToolCall(call, name, arguments),), at=at)


def _usage(usage: Object) -> Usage:
    return Usage(
        number(usage.get("input_tokens")),
        number(usage.get("output_tokens")),
        number(usage.get("cached_input_tokens")),
        number(usage.get("reasoning_output_tokens")),
    )


def _output(output: object) -> str | tuple[Part, ...]:
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return _parts(cast("list[object]", output))
    inner = obj(output)
    content = inner.get("content")
    return content if isinstance(content, str) else _parts(content) if content else as_json(output or "")


def _unsuccessful(output: object) -> bool:
    """Whether a tool's output says that it failed: by its `success`, or by an exit code."""
    inner = obj(fields_of(output) if isinstance(output, str) else output)
    return inner.get("success") is False or number(obj(inner.get("metadata")).get("exit_code")) > 0


def _parts(content: object) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    return simple([_part(obj(part)) for part in items(content)])


def _part(part: Object) -> Part:
    if isinstance(part.get("text"), str):
        return Text(text(part.get("text")))
    image = part.get("image_url")
    url = text(image) or text(obj(image).get("url"))
    return Image(url) if url else Opaque(text(part.get("type")) or "part", as_json(part))
