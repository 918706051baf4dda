"""Imports OpenAI-style chat messages from a file into a new session, after all of them were checked, in one transaction."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from ctxchat.core import openai
from ctxchat.core.errors import UsageError
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Named, Record, Sealed
from ctxchat.core.messages import Message
from ctxchat.core.sanitize import whole_text
from ctxchat.storage import origins, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.faults import faults

MOST_BYTES = 1_000_000_000
"""The largest file that is read; reading takes several times as much memory."""

_SHAPES = "It must hold a JSON array of chat messages, an object with `messages`, or JSON lines of these."
_SURROGATE = re.compile(r"\\u[dD][89abAB]")


def import_file(database: Database, file: Path, title: str = "") -> str:
    """Create a session with the conversation of a file; its id. Without a title the first user message gives one, and where the
    same messages were imported before, no session is created and the id of that one returned.

    Raises UsageError, which names file and line or the message, and StorageError; nothing is left behind then.
    """
    messages = read_messages(file, database.now())
    source = f"openai:{_digest(messages)}"
    if (known := origins.session_of(database, source)) and not title.strip():
        return known
    records: list[Record] = [Named(" ".join(title.split()))] if title.strip() else []
    records += [Sealed((group,), imported=True) for group in group_messages(messages)]
    session = sessions.create(database, records=records)
    stat = file.stat()
    origins.remember(
        database, session, origins.SessionOrigin(source, str(file.absolute()), stat.st_size, stat.st_mtime_ns)
    )
    return session


def _digest(messages: Sequence[Message]) -> str:
    """A digest of messages, by which an import is recognised."""
    digest = hashlib.blake2b(digest_size=16)
    for message in messages:
        digest.update(json.dumps(openai.recorded(message)).encode())
    return digest.hexdigest()


def read_messages(file: Path, at: str = "") -> list[Message]:
    """The messages of a file, numbered from 1. Raises UsageError and StorageError."""
    text = _read_text(file)
    wires = list(_messages(text, file))
    if not wires:
        raise UsageError(f"{file} holds no messages.", _SHAPES)
    has_surrogates = bool(_SURROGATE.search(text))
    return [
        _parse_message(wire, seq, at, where, has_surrogates=has_surrogates)
        for seq, (where, wire) in enumerate(wires, 1)
    ]


def _read_text(file: Path) -> str:
    """The text of the file. Raises UsageError where it is missing, too long or not UTF-8."""
    if not file.exists():
        raise UsageError(f"{file} does not exist.", "Give the path of a JSON or JSON-lines file.")
    with faults(file), file.open("rb") as opened:
        if stat.S_ISCHR(os.fstat(opened.fileno()).st_mode):
            raise UsageError(f"{file} is a device.", "Give the path of a JSON or JSON-lines file.")
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise UsageError(f"{file} is longer than {MOST_BYTES // 1_000_000:,} MB.", "Import it in parts.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{file}:{line}: not UTF-8 (byte {error.start}).", "Save it as UTF-8.") from error


def _messages(text: str, file: Path) -> Iterator[tuple[str, object]]:
    """Each message as JSON, after the position in the file for error messages."""
    if not text.strip():
        raise UsageError(f"{file} is empty.", _SHAPES)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        whole = _parse(text)
    except ValueError as error:
        if len(lines) == 1 or not _is_json(lines[0][1]):
            raise _bad_json(file, getattr(error, "lineno", 1), error) from error
    else:
        yield from _conversation(whole, str(file))
        return
    for number, line in lines:
        try:
            value = _parse(line)
        except ValueError as error:
            raise _bad_json(file, number, error) from error
        yield from _conversation(value, f"{file}:{number}")


def _parse(text: str) -> Any:
    """A JSON text as a value. Raises ValueError, for NaN and for deep nesting as well."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_number(word: str) -> object:
    raise ValueError(f"{word} is no JSON")


def _is_json(text: str) -> bool:
    """True for a text that is one JSON value."""
    try:
        _parse(text)
    except ValueError:
        return False
    return True


def _bad_json(file: Path, line: int, error: ValueError) -> UsageError:
    return UsageError(f"{file}:{line}: not JSON: {getattr(error, 'msg', error)}.", _SHAPES)


def _conversation(value: object, where: str) -> Iterator[tuple[str, object]]:
    """The messages of one JSON value: a message, an array of messages, or an object with `messages`."""
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    listed: object = fields["messages"] if "messages" in fields and "role" not in fields else cast("object", value)
    if isinstance(listed, list):
        yield from ((where, message) for message in cast("list[object]", listed))
    elif "role" in fields:
        yield where, value
    else:
        raise UsageError(f"{where}: no chat messages.", _SHAPES)


def _parse_message(wire: object, seq: int, at: str, where: str, *, has_surrogates: bool) -> Message:
    """A message of the file. What it cannot express is kept in `original`. Raises UsageError, which names it."""
    if not isinstance(wire, dict):
        raise UsageError(
            f"{where}: message {seq}: {type(wire).__name__}, not an object with role and content.", _SHAPES
        )
    wire = cast("dict[str, Any]", wire)
    clean = _without_lone_surrogates(wire) if has_surrogates else wire
    try:
        message = openai.from_wire(clean, seq, at)
    except openai.ImportProblem as problem:
        raise UsageError(f"{where}: {problem.text}", _SHAPES) from problem
    if clean != wire:
        kept = {field: wire[field] for field in openai.FIELDS if field in wire}
        message = msgspec.structs.replace(message, original=json.dumps(kept))
    return message


def _without_lone_surrogates(wire: dict[str, Any]) -> dict[str, Any]:
    """The message without lone surrogates, which can only be written as JSON escapes."""
    return json.loads(whole_text(json.dumps(wire, ensure_ascii=False)))
