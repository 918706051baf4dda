"""Reads gemini-cli's sessions: a JSON document or JSON lines for each (`~/.gemini/tmp/*/chats/session-*.json[l]`), and the chats
that a person saved (`checkpoint-*.json`).

gemini-cli writes a message again with each addition to it, so a session is read as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ctxchat.core.events import Usage
from ctxchat.core.messages import Image, Message, Opaque, Part, Text, ToolCall
from ctxchat.core.quantities import count
from ctxchat.importing.json_stream import (
    Object,
    Progress,
    as_json,
    items,
    lines,
    number,
    obj,
    parse_file,
    settings_of,
    simple,
    text,
    thought,
)
from ctxchat.importing.steps import About, Back, Begin, Compacted, Counted, Damaged, NoPlace, Said, Step

NAME, LABEL = "gemini-cli", "gemini-cli"

MAX_AGE = "30d"
"""Age at which gemini-cli, when it starts, deletes a session, unless its settings say otherwise."""

_SNAPSHOT = "<state_snapshot>"
_PROGRAM_OPENINGS = ("<session_context>", "This is the Gemini CLI. We are setting up the context")


def is_ours(file: Path) -> bool:
    """Whether a file is gemini-cli's: it begins with a session's id and its project's digest, or is a list of contents with
    parts."""
    if file.suffix not in {".json", ".jsonl"}:
        return False
    with file.open("rb") as opened:
        start = opened.read(4_096)
    if b'"sessionId"' in start and b'"projectHash"' in start:
        return True
    return file.suffix == ".json" and start.lstrip()[:1] == b"[" and b'"parts"' in start and b'"role"' in start


def files(home: Path) -> Iterator[Path]:
    """The session files in the usual places."""
    base = home / ".gemini" / "tmp"
    yield from sorted(base.glob("*/chats/**/*.json*"))
    yield from sorted(base.glob("*/checkpoint-*.json"))


def kept_for(home: Path) -> str:
    """How long gemini-cli keeps a session: `maxAge` in `general.sessionRetention` of its settings (`30d`, `12h`, `2w`, `1m`), 30
    days where it is not set. Empty where it deletes none, as with an invalid `maxAge`."""
    retention = obj(obj(settings_of(home / ".gemini" / "settings.json").get("general")).get("sessionRetention"))
    age = re.fullmatch(r"([1-9]\d{0,8})([hdwm])", text(retention.get("maxAge", MAX_AGE)))
    if age is None or retention.get("enabled") is False:
        return ""
    return count(int(age[1]), {"h": "hour", "d": "day", "w": "week", "m": "month"}[age[2]])


def steps(file: Path, progress: Progress) -> Iterator[Step]:
    """The session of a file."""
    if file.suffix == ".jsonl":
        records = [line for _, line in lines(file, progress)]
    else:
        document = parse_file(file, progress)
        if isinstance(document, list):
            yield from _saved(document, file)
            return
        records = [document]
    about: Object = {}
    latest: dict[str, Object] = {}
    order: list[tuple[str, str]] = []  # events in order: what happened, and to which message
    first_steps: list[Step] = []
    for record in records:
        if isinstance(record, Damaged):
            first_steps.append(record)
        elif "$rewindTo" in record:
            order.append(("back", text(record.get("$rewindTo"))))
        elif "$set" in record or "sessionId" in record:
            news = obj(record.get("$set")) or record
            about |= {name: value for name, value in news.items() if name != "messages"}
            _collect_conversation(items(news.get("messages")), latest, order, checkpoint="$set" in record)
        elif "type" in record and "id" in record:
            _collect_message(record, latest, order)
        else:
            first_steps.append(NoPlace("nameless lines"))
    parent = file.parent.name if about.get("kind") == "subagent" else ""
    yield Begin(text(about.get("sessionId")) or file.stem, parent=parent, delegated=bool(parent))
    yield from first_steps
    if summary := text(about.get("summary")):
        yield About(title=summary, rank=1)
    for folder in items(about.get("directories"))[:1] or _root(file.parent.parent):
        yield About(folder=text(folder))
    if all(_opening(message) for message in latest.values()):
        yield from [NoPlace("what the program says at a start")] * len(latest)
    else:
        yield from _logged_steps(order, latest)


def _opening(message: Object) -> bool:
    return message.get("type") == "user" and plain(message.get("content")).lstrip().startswith(_PROGRAM_OPENINGS)


def _root(folder: Path) -> list[str]:
    """The project's folder as a list, where a file in gemini-cli's folder names it; else empty."""
    with suppress(OSError, UnicodeDecodeError):
        return [(folder / ".project_root").read_text().strip()]
    return []


def _collect_message(message: Object, latest: dict[str, Object], order: list[tuple[str, str]]) -> None:
    id = text(message.get("id"))
    if id not in latest:
        order.append(("said", id))
    latest[id] = message


def _collect_conversation(
    messages: list[object], latest: dict[str, Object], order: list[tuple[str, str]], *, checkpoint: bool
) -> None:
    """Collect a whole conversation: that of a document, or (`checkpoint`) the history after a compression."""
    listed = [
        message if text(message.get("id")) else message | {"id": f"#{index}"}
        for index, message in enumerate(map(obj, messages))
        if message
    ]
    summary = next((m for m in listed if _SNAPSHOT in plain(m.get("content")) and m["id"] not in latest), None)
    if checkpoint and summary:
        # it lists the messages it keeps again, in newer versions under other ids
        ids = {(text(m.get("type")), plain(m.get("content"))): id for id, m in latest.items()}
        listed = [
            m if m["id"] in latest else m | {"id": ids.get((text(m.get("type")), plain(m.get("content"))), m["id"])}
            for m in listed
            if m is not summary
        ]
        order.append(("compressed", " ".join(text(m.get("id")) for m in (summary, *listed))))
        latest[text(summary.get("id"))] = summary
    for message in listed:
        _collect_message(message, latest, order)


def _logged_steps(order: list[tuple[str, str]], latest: dict[str, Object]) -> Iterator[Step]:
    """The steps for the events in `order`, with the last version of each message."""
    before: dict[str, str] = {}
    tip = ""
    answered: set[str] = set()  # calls whose results came with the call
    in_messages: set[str] = set()  # calls whose results came in a message of their own
    for what, id in order:
        if what == "back":
            if id in before:
                tip = before[id]
                yield Back(tip)
        elif what == "compressed":
            first, *kept = id.split()
            yield Compacted(
                plain(latest[first].get("content")), text(latest[first].get("timestamp")), kept=frozenset(kept)
            )
        else:
            # newer versions write a result with its call, again as a message, and again where a session is continued
            new_steps = list(_message(latest[id], id))
            results = {s.message.call_id for s in new_steps if isinstance(s, Said) and s.message.role == "tool"}
            if latest[id].get("type") != "user":
                answered |= results
            elif results:
                if results <= in_messages:
                    continue
                in_messages |= results
            for step in new_steps:
                if latest[id].get("type") == "user" and isinstance(step, Said) and step.message.call_id in answered:
                    continue
                if isinstance(step, Said) and step.key == id:
                    before[id], tip = tip, id
                yield step


def _message(message: Object, id: str) -> Iterator[Step]:
    at, content = text(message.get("timestamp")), message.get("content")
    match message.get("type"):
        case "user":
            if plain(content).lstrip().startswith(_SNAPSHOT):
                yield Compacted(plain(content), at)
            else:
                yield from _person(content, id, at)
        case "gemini" | "model":
            yield from _reply(message, id, at)
        case kind:
            yield NoPlace(f"messages of the kind {text(kind) or 'nameless'}")


def _person(content: object, id: str, at: str) -> Iterator[Step]:
    pieces = [obj(piece) for piece in items(content)]
    for place, result in enumerate(results_of(pieces, at)):
        yield Said(f"{id}.{place}", result)
    spoken = [piece for piece in pieces if "functionResponse" not in piece]
    if not pieces or spoken:
        note = len(spoken) < len(pieces) or plain(content).lstrip().startswith(_PROGRAM_OPENINGS)
        yield Said(id, Message(0, "user", parts_of(spoken or content), at=at), "note" if note else "")


def _reply(message: Object, id: str, at: str) -> Iterator[Step]:
    thoughts = [
        ": ".join(filter(None, (text(entry.get("subject")), text(entry.get("description")))))
        for entry in map(obj, items(message.get("thoughts")))
    ]
    pieces = [obj(piece) for piece in items(message.get("content"))]
    spoken = [piece for piece in pieces if "functionCall" not in piece and not piece.get("thought")]
    if not thoughts:
        thoughts = [text(piece.get("text")) for piece in pieces if piece.get("thought")]
    logged_calls = [obj(call) for call in items(message.get("toolCalls"))]
    calls = [
        ToolCall(text(call.get("id")), text(call.get("name")) or "unknown", as_json(call.get("args") or {}))
        for call in logged_calls
    ]
    words = parts_of(spoken if pieces else message.get("content"))
    yield Said(id, Message(0, "assistant", words, tuple(calls), reasoning=thought(thoughts), at=at))
    tokens = obj(message.get("tokens"))
    if prompt := number(tokens.get("input")):
        thinking = number(tokens.get("thoughts"))
        usage = Usage(prompt, number(tokens.get("output")) + thinking, number(tokens.get("cached")), thinking)
        yield Counted(f"gemini/{text(message.get('model'))}", usage)
    for call in logged_calls:
        result = call.get("result")
        if result is None and not call.get("resultDisplay"):
            continue
        pieces = [obj(piece) for piece in (items(result) or [result])]
        answers = [obj(piece.get("functionResponse")) for piece in pieces if "functionResponse" in piece]
        content = "\n".join(map(output_of, answers)) if answers else parts_of(result) or text(call.get("resultDisplay"))
        name, result_at, call_id = text(call.get("name")), text(call.get("timestamp")) or at, text(call.get("id"))
        yield Said(
            f"{id}.{call_id}",
            Message(0, "tool", content, call_id=call_id, name=name, at=result_at, failed=call.get("status") == "error"),
        )


def _saved(contents: list[object], file: Path) -> Iterator[Step]:
    """A chat that a person saved: contents in the provider's format, without times."""
    yield Begin(file.stem)
    for place, content in enumerate(map(obj, contents)):
        pieces = [obj(piece) for piece in items(content.get("parts"))]
        if content.get("role") == "model":
            yield Said(str(place), reply_of(pieces))
        else:
            yield from _person(pieces, str(place), "")


# ── contents in the provider's format; a call without an id is identified by its name ──


def reply_of(pieces: list[Object], at: str = "") -> Message:
    """The model's reply in the parts of a content."""
    calls = (obj(piece.get("functionCall")) for piece in pieces if "functionCall" in piece)
    tool_calls = (
        ToolCall(
            text(c.get("id")) or text(c.get("name")), text(c.get("name")) or "unknown", as_json(c.get("args") or {})
        )
        for c in calls
    )
    thoughts = (text(piece.get("text")) for piece in pieces if piece.get("thought"))
    words = [piece for piece in pieces if "functionCall" not in piece and not piece.get("thought")]
    return Message(0, "assistant", parts_of(words), tuple(tool_calls), reasoning=thought(thoughts), at=at)


def results_of(pieces: list[Object], at: str) -> Iterator[Message]:
    """The results of calls in the parts of a content."""
    for piece in pieces:
        if answer := obj(piece.get("functionResponse")):
            call, name = text(answer.get("id")) or text(answer.get("name")), text(answer.get("name"))
            failed = "error" in obj(answer.get("response"))
            yield Message(0, "tool", output_of(answer), call_id=call, name=name, at=at, failed=failed)


def output_of(answer: Object) -> str:
    """The text of a function's response."""
    response = answer.get("response")
    inner = obj(response)
    output = inner.get("output", inner.get("error", inner.get("content", response)))
    return as_json(output if output is not None else "")


def parts_of(content: object) -> str | tuple[Part, ...]:
    """The content of a message: text where it has only text, else its parts."""
    if isinstance(content, str):
        return content
    return simple([_part(piece) for piece in (items(content) or ([content] if content else []))])


def _part(piece: object) -> Part:
    fields = obj(piece)
    if isinstance(piece, str) or "text" in fields:
        return Text(piece if isinstance(piece, str) else text(fields.get("text")))
    data = obj(fields.get("inlineData"))
    if text(data.get("mimeType")).startswith("image/"):
        return Image(f"data:{text(data.get('mimeType'))};base64,{text(data.get('data'))}")
    return Opaque(next(iter(fields), "part"), as_json(fields))


def plain(content: object) -> str:
    """The text of a content without its other parts."""
    if isinstance(content, str):
        return content
    return "\n".join(
        piece if isinstance(piece, str) else text(obj(piece).get("text")) for piece in items(content) or [content]
    )
