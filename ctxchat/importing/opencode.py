"""Reads opencode's sessions: separate JSON files for session, messages and parts below `storage` (in two layouts), rows of
`opencode.db` (newer), or one document (`opencode export`). The first opencode, of 2025, had an `.opencode/opencode.db` in each
project, with a row for each message."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from ctxchat.core.errors import UsageError
from ctxchat.core.events import Usage
from ctxchat.core.messages import Image, Message, Opaque, Part, Text, ToolCall
from ctxchat.core.usage import dollars
from ctxchat.importing.json_stream import (
    Object,
    Progress,
    as_json,
    items,
    model_of,
    number,
    obj,
    parse_file,
    parse_object,
    simple,
    text,
    thought,
    when,
)
from ctxchat.importing.steps import About, Back, Begin, Cleared, Compacted, Counted, Damaged, NoPlace, Said, Step

NAME, LABEL = "opencode", "opencode"


_SQLITE = b"SQLite format 3\0"
_IGNORED_PARTS = {"step-start", "step-finish", "snapshot", "patch", "agent", "retry"}

_FIRST_TABLES = {"sessions", "messages", "files"}
"""Tables of the first opencode."""

MessagesWithParts = Iterable[tuple[Object, Sequence[Object | Damaged]]]
"""Messages in order, each with its parts."""


def is_ours(file: Path) -> bool:
    """Whether a file is opencode's: the file of a session next to its messages' folder, an exported document, or a database."""
    with file.open("rb") as opened:
        start = opened.read(4_096)
    if start.startswith(_SQLITE):
        return _has_tables(file)
    if file.suffix != ".json":
        return False
    if b'"info"' in start and b'"ses' in start and b'"messages"' in _enough_of_start(start, file):
        return True
    return file.stem.startswith("ses") and b'"time"' in start and _messages_of(file) is not None


def files(home: Path) -> Iterator[Path]:
    """The session files in the usual places."""
    base = home / ".local" / "share" / "opencode"
    yield from sorted(base.glob("opencode*.db"))
    yield from sorted((base / "storage" / "session").glob("*/ses*.json"))
    yield from sorted((base / "project").glob("*/storage/session/info/*.json"))


def steps(file: Path, progress: Progress) -> Iterator[Step]:
    """The sessions of a file."""
    with file.open("rb") as opened:
        database = opened.read(len(_SQLITE)) == _SQLITE
    if database:
        yield from _steps_of_database(file, progress)
        return
    document = parse_file(file, progress)
    if not isinstance(document, dict):
        yield Begin(file.stem)
        yield document if isinstance(document, Damaged) else Damaged(file.name, "not a JSON object")
    elif "info" in document:
        messages = (
            (obj(m.get("info")), [obj(p) for p in items(m.get("parts"))])
            for m in map(obj, items(document.get("messages")))
        )
        yield from _session(obj(document.get("info")), messages)
    else:
        yield from _session(document, _messages_of_files(file, progress))


def _enough_of_start(start: bytes, file: Path) -> bytes:
    """The beginning of a file up to its `messages`, for which more is read where a title and a summary come before them."""
    if b'"messages"' in start:
        return start
    with file.open("rb") as opened:
        return opened.read(65_536)


# ── reading messages and parts ──


def _messages_of(file: Path) -> tuple[Path, Path] | None:
    """The folders of a session's messages and of their parts; None where the session has no messages in files."""
    if file.parent.name == "info":  # storage/session/info/ID.json, session/message/ID/, session/part/ID/
        base = file.parent.parent
        return base / "message" / file.stem, base / "part" / file.stem
    base = file.parent.parent.parent  # storage/session/PROJECT/ID.json, message/ID/, part/
    messages = base / "message" / file.stem
    return (messages, base / "part") if messages.is_dir() else None


def _messages_of_files(file: Path, progress: Progress) -> Iterator[tuple[Object, list[Object | Damaged]]]:
    folders = _messages_of(file)
    if folders is None:
        return
    messages, parts = folders
    dated: list[tuple[int, str, Object | Damaged]] = []
    for path in messages.glob("*.json"):
        message = _read_json(path, progress)
        created = number(obj(message.get("time")).get("created")) if not isinstance(message, Damaged) else 0
        dated.append((created, path.stem, message))
    for _, id, message in sorted(dated, key=lambda entry: entry[:2]):
        if isinstance(message, Damaged):
            yield {"id": id}, [message]
        else:
            message_parts = [_read_json(path, progress) for path in sorted((parts / id).glob("*.json"))]
            yield message, message_parts or [obj(part) for part in items(message.get("parts"))]


def _read_json(path: Path, progress: Progress) -> Object | Damaged:
    try:
        data = path.read_bytes()
    except OSError as problem:
        return Damaged(path.name, problem.strerror or "it cannot be read")
    progress(len(data))
    return parse_object(data.strip(b"\0 \t\r\n"), path.name)


def _has_tables(file: Path) -> bool:
    """Whether a database has opencode's tables; also True where it cannot be read: no other agent has databases, and reading it
    reports the error."""
    try:
        with closing(_connect(file)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return True
    return {"session", "message", "part"} <= tables or tables >= _FIRST_TABLES


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)


def _steps_of_database(file: Path, progress: Progress) -> Iterator[Step]:
    begun = False
    try:
        with closing(_connect(file)) as database:
            database.row_factory = sqlite3.Row
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'sessions'").fetchone():
                begun = True
                yield from _steps_of_first_database(database, file, progress)
                return
            # sub-agents last, after the sessions they belong to
            sessions = "SELECT * FROM session ORDER BY parent_id IS NOT NULL, time_created"
            for row in database.execute(sessions).fetchall():
                begun = True
                fields = dict(zip(row.keys(), tuple(row), strict=True))
                about = {
                    "id": fields["id"],
                    "parentID": fields.get("parent_id"),
                    "title": fields.get("title"),
                    "directory": fields.get("directory"),
                    "revert": _value(fields.get("revert"), "revert"),
                }
                yield from _session(about, _messages_of_rows(database, text(fields["id"]), progress))
    except sqlite3.Error as problem:
        if not begun:
            raise UsageError(
                f"{file} is a database that cannot be read ({problem}).",
                "Perhaps it was copied in part, or while opencode wrote to it: copy it again with opencode closed. Else it may "
                "be of a version that ctxchat does not know yet.",
            ) from problem
        yield Damaged(file.name, str(problem))


def _messages_of_rows(
    database: sqlite3.Connection, session: str, progress: Progress
) -> Iterator[tuple[Object, list[Object | Damaged]]]:
    messages = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    for id, data in database.execute(messages, (session,)):
        progress(len(data or ""))
        message = _value(data, id)
        rows = database.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (id,)).fetchall()
        progress(sum(len(body or "") for _, body in rows))
        if isinstance(message, Damaged):
            yield {"id": id}, [message]
        else:
            yield message | {"id": id}, [_value(body, name) for name, body in rows]


def _steps_of_first_database(database: sqlite3.Connection, file: Path, progress: Progress) -> Iterator[Step]:
    """The steps of the first opencode's database, where a summary is a message from which the conversation goes on."""
    sessions = "SELECT * FROM sessions ORDER BY parent_session_id IS NOT NULL, created_at"
    for session in database.execute(sessions).fetchall():
        about = dict(zip(session.keys(), tuple(session), strict=True))
        parent = text(about.get("parent_session_id"))
        yield Begin(text(about["id"]), parent, delegated=bool(parent))
        # `.opencode` is in the project's folder
        folder = str(file.parent.parent.absolute()) if file.parent.name == ".opencode" else ""
        yield About(title=text(about.get("title")), rank=1, folder=folder)
        messages = (
            "SELECT id, role, parts, model, created_at FROM messages WHERE session_id = ? ORDER BY created_at, rowid"
        )
        for id, role, parts, model, created in database.execute(messages, (about["id"],)):
            progress(len(parts or ""))
            value = _value(f'{{"parts": {parts or "[]"}}}', id)
            if isinstance(value, Damaged):
                yield value
                continue
            new_steps = list(_first_message(id, role, map(obj, items(value["parts"])), when(created)))
            if id == about.get("summary_message_id"):
                summary = "\n\n".join(step.message.text for step in new_steps if isinstance(step, Said))
                yield Compacted(summary, when(created), model=text(model))
            else:
                yield from new_steps


def _first_message(id: str, role: str, parts: Iterable[Object], at: str) -> Iterator[Step]:
    shown: list[Part] = []
    calls: list[ToolCall] = []
    thoughts: list[str] = []
    for part in parts:
        data = obj(part.get("data"))
        match part.get("type"):
            case "text":
                shown.append(Text(text(data.get("text"))))
            case "reasoning":
                thoughts.append(text(data.get("thinking")))
            case "tool_call":
                calls.append(
                    ToolCall(text(data.get("id")), text(data.get("name")) or "unknown", text(data.get("input")) or "{}")
                )
            case "tool_result":
                call, name = text(data.get("tool_call_id")), text(data.get("name"))
                failed = data.get("is_error") is True
                yield Said(
                    id, Message(0, "tool", text(data.get("content")), call_id=call, name=name, at=at, failed=failed)
                )
            case "image_url":
                shown.append(Image(text(data.get("url"))))
            case "binary":
                shown.append(
                    Image(f"data:{text(data.get('mime_type')) or 'image/png'};base64,{text(data.get('data'))}")
                )
            case "finish":
                pass
            case kind:
                yield NoPlace(f"{text(kind) or 'nameless'} parts")
    if role == "assistant":
        reply = Message(0, "assistant", simple(shown), calls=tuple(calls), reasoning=thought(thoughts), at=at)
        yield Said(id, reply)
    elif shown:
        yield Said(id, Message(0, "user", simple(shown), at=at))


def _value(data: object, where: str) -> Object | Damaged:
    if not data:
        return {}
    return parse_object(data if isinstance(data, bytes) else str(data).encode("utf-8", "replace"), where)


# ── messages as steps ──


def _session(about: Object, messages: MessagesWithParts) -> Iterator[Step]:
    """The steps of a session."""
    parent = text(about.get("parentID"))
    yield Begin(text(about.get("id")), parent, delegated=bool(parent))
    title = text(about.get("title"))
    given = title and not title.startswith(("New session - ", "Child session - "))
    yield About(title=title if given else "", rank=1, folder=text(about.get("directory")))
    reverted = text(obj(about.get("revert")).get("messageID"))
    tip = ""
    waiting: Object = {}
    for message, parts in messages:
        id = text(message.get("id"))
        if reverted and id == reverted:
            yield from _reverted_steps(message, parts, messages, tip)
            return
        compaction = next((p for p in parts if not isinstance(p, Damaged) and p.get("type") == "compaction"), None)
        if compaction is not None:
            waiting = compaction
        new_steps = list(_message(message, parts))
        if message.get("summary") is True and message.get("role") == "assistant":
            words = "\n\n".join(s.message.text for s in new_steps if isinstance(s, Said) and s.message.text)
            at = when(obj(message.get("time")).get("created"))
            yield Compacted(
                words,
                at,
                manual=waiting.get("auto") is False,
                kept_from=text(waiting.get("tail_start_id")),
                model=_model(message),
            )
            waiting = {}
            continue
        for step in new_steps:
            yield step
            if isinstance(step, Said):
                tip = step.key


def _reverted_steps(
    message: Object, parts: Sequence[Object | Damaged], messages: MessagesWithParts, tip: str
) -> Iterator[Step]:
    """The messages that the person reverted, from this one on: they stay in the record, and a rewind takes them out of view."""
    yield from _message(message, parts)
    for later, later_parts in messages:
        yield from _message(later, later_parts)
    yield Back(tip)


def _message(message: Object, parts: Sequence[Object | Damaged]) -> Iterator[Step]:
    at = when(obj(message.get("time")).get("created")) or when(
        obj(obj(message.get("metadata")).get("time")).get("created")
    )
    whole = [part for part in parts if not isinstance(part, Damaged)]
    yield from (part for part in parts if isinstance(part, Damaged))
    if message.get("role") == "assistant":
        yield from _reply(message, whole, at)
    elif message.get("role") == "user":
        yield from _person(message, whole, at)
    elif "role" in message:
        yield NoPlace(f"messages of {text(message.get('role')) or 'nobody'}")


def _person(message: Object, parts: list[Object], at: str) -> Iterator[Step]:
    id = text(message.get("id"))
    content: list[Part] = []
    for part in parts:
        kind = text(part.get("type"))
        if kind == "text" and part.get("synthetic") is True:
            yield Said(f"{id}+", Message(0, "user", text(part.get("text")), at=at), "note")
        elif kind == "text":
            content.append(Text(text(part.get("text"))))
        elif kind == "file":
            content.append(_file(part))
        elif kind == "subtask":
            content.append(Text(text(part.get("prompt")) or text(part.get("description"))))
        elif kind not in _IGNORED_PARTS and kind != "compaction":
            yield NoPlace(f"{text(kind) or 'nameless'} parts")
    if content:
        yield Said(id, Message(0, "user", simple(content), at=at))


def _reply(message: Object, parts: list[Object], at: str) -> Iterator[Step]:
    id = text(message.get("id"))
    words: list[Part] = []
    thoughts: list[str] = []
    results: list[tuple[str, Message]] = []
    calls: list[ToolCall] = []
    cleared: dict[str, str] = {}
    for part in parts:
        match text(part.get("type")):
            case "text":
                words.append(Text(text(part.get("text"))))
            case "reasoning":
                thoughts.append(text(part.get("text")))
            case "file":
                words.append(_file(part))
            case "tool" | "tool-invocation":
                call, result = _call(part, at)
                calls.append(call)
                results += [(f"{id}.{call.id}", result)] if result else []
                if compacted := obj(obj(part.get("state")).get("time")).get("compacted"):
                    cleared[call.id] = when(compacted)
            case kind if kind in _IGNORED_PARTS:
                pass
            case kind:
                yield NoPlace(f"{text(kind) or 'nameless'} parts")
    broken = bool(message.get("error"))
    reply = Message(0, "assistant", simple(words), tuple(calls), reasoning=thought(thoughts), at=at, interrupted=broken)
    yield Said(id, reply)
    tokens = obj(message.get("tokens"))
    cache = obj(tokens.get("cache"))
    prompt = number(tokens.get("input")) + number(cache.get("read")) + number(cache.get("write"))
    if prompt:
        thinking, paid = number(tokens.get("reasoning")), dollars(message.get("cost")) or 0.0
        usage = Usage(prompt, number(tokens.get("output")) + thinking, number(cache.get("read")), thinking, paid)
        yield Counted(_model(message), usage)
    for key, result in results:
        yield Said(key, result)
    if cleared:
        yield Cleared(frozenset(cleared), max(cleared.values()))


def _call(part: Object, at: str) -> tuple[ToolCall, Message | None]:
    old = obj(part.get("toolInvocation"))
    state = obj(part.get("state")) or old
    id = text(part.get("callID")) or text(old.get("toolCallId")) or text(part.get("id"))
    name = text(part.get("tool")) or text(old.get("toolName")) or "unknown"
    arguments = state.get("input", old.get("args"))
    call = ToolCall(id, name, as_json(arguments if arguments is not None else {}))
    output = text(state.get("output")) or text(state.get("error")) or text(old.get("result"))
    if not output and text(state.get("status")) not in {"completed", "error"} and state.get("state") != "result":
        return call, None
    files = [_file(obj(file)) for file in items(state.get("attachments"))]
    content = simple([Text(output), *files]) if files else output
    failed = state.get("status") == "error"
    ended = when(obj(state.get("time")).get("end")) or at
    return call, Message(0, "tool", content, call_id=id, name=name, at=ended, failed=failed)


def _file(part: Object) -> Part:
    url, mime = text(part.get("url")), text(part.get("mime"))
    if mime.startswith("image/") and url.startswith(("data:", "http")):
        return Image(url, name=text(part.get("filename")))
    return Opaque("file", as_json({name: part.get(name) for name in ("mime", "filename", "url")}))


def _model(message: Object) -> str:
    about = obj(message.get("model")) or message
    return model_of(text(about.get("providerID")), text(about.get("modelID")))
