"""Exports sessions and compactions as text for other programs and for people. Only `archive_export` and `write_compaction` write
files.

Secrets are masked, except in imported messages exported in OpenAI's format: these come out exactly as they came in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from ctxchat.core import openai
from ctxchat.core.errors import StorageError
from ctxchat.core.images import addressed, data_url, stored_in
from ctxchat.core.journal import SessionState
from ctxchat.core.messages import Group, Message
from ctxchat.core.sanitize import harmless_json
from ctxchat.core.secrets import masked
from ctxchat.core.view import Item
from ctxchat.storage import archive, markdown, private_files
from ctxchat.storage.database import Database
from ctxchat.storage.session_files import read_attached

Format = Literal["openai", "jsonl", "markdown"]

FOLDER = "ctxchat-archive"
"""Name of the folder that compactions are exported to by default, in the working directory."""

_PICTURE = re.compile(r"data:image/[a-z+.-]+;base64,[A-Za-z0-9+/]*={0,2}")
"""An embedded image: it is no secret, masking could damage it, and would take long."""


def export_record(state: SessionState, format: Format) -> str:
    """The whole record of a session, with secrets masked; in `openai` imported messages are exact.

    Results that ctxchat added to close unanswered calls are left out of `openai` and `jsonl`.
    """
    if format == "openai":
        messages = [m for m in state.ledger.messages() if not m.synthetic]
        lines = [openai.recorded(m) for m in messages]
        exact = sum(m.seq <= state.imported for m in messages)  # they come first in the record
        return dump([*lines[:exact], *map(masked_json, lines[exact:])], indent=1)
    if format == "jsonl":
        return _json_lines(record_lines(state.ledger.groups))
    return masked(markdown.record(state))


def export_view(state: SessionState, items: Iterable[Item], format: Format) -> str:
    """The `items` of a compiled view, which the model is sent, with secrets masked in every format."""
    items = tuple(items)
    if format == "openai":
        return dump(masked_json(openai.wire(items)), indent=1)
    if format == "jsonl":
        return _json_lines(_view_line(item) for item in items)
    return masked(markdown.view(state, items))


def archive_export(database: Database, folder: Path, session: str = "") -> list[Path]:
    """Write a JSON-lines file for each compaction of a session, or of all sessions, with `write_compaction`; their paths. Raises
    StorageError."""
    rows = archive.compactions(database, session)
    return [write_compaction(folder, _load_compaction(database, row.id, row.session)) for row in rows]


def _load_compaction(database: Database, id: str, session: str) -> archive.Archived:
    archived = archive.load_compaction(database, id, session)
    return msgspec.structs.replace(archived, groups=with_images(database, archived.session, archived.groups))


def with_images(database: Database, session: str, groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups with images from the session's folder embedded in their messages, as other programs need them; a text replaces
    an image whose file is gone. Reads files."""
    return tuple(_with_images(private_files.session_folder(database.folder, session), group) for group in groups)


def _with_images(folder: Path, group: Group) -> Group:
    """The group with its stored images as data URLs; those whose file is gone become a text."""
    paths = {path for message in group.messages for path in stored_in(message)}
    if not paths:
        return group
    data: dict[str, str] = {}
    for path in paths:
        with suppress(StorageError):
            data[path] = data_url(read_attached(folder, path))
    return msgspec.structs.replace(group, messages=tuple(addressed(message, data) for message in group.messages))


def write_compaction(folder: Path, archived: archive.Archived) -> Path:
    """Write the JSON-lines file of a compaction: its record, then a line for each message it folded, with secrets masked; its
    path.

    The file is private. An existing one with the same content is kept, next to one with other content the new one gets a number.
    Raises StorageError.
    """
    data = _json_lines(archive_lines(archived)).encode()
    id = archived.change.id
    stem = (id if id.startswith(archived.session) else f"{archived.session}-{id}")[:80]
    return private_files.write_beside(
        private_files.private_folder(folder) / private_files.safe_name(f"{stem}.jsonl"), data
    )


def archive_lines(archived: archive.Archived) -> Iterator[dict[str, Any]]:
    """The JSON objects for a compaction: its record, then its messages."""
    record = (
        msgspec.to_builtins(archived.change.record, enc_hook=list)
        if archived.change.record
        else {"id": archived.change.id}
    )
    yield {"type": "compaction", "session": archived.session, "undone": archived.undone, "record": record}
    yield from record_lines(archived.groups)


def record_lines(groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    """A JSON object for each message: OpenAI's fields with its id, group, kind and turn."""
    placed = [(m, g) for g in groups for m in g.messages if not m.synthetic]
    for message, group in sorted(placed, key=lambda pair: pair[0].seq):
        line = openai.recorded(message) | {"id": message.id, "group": group.id, "kind": group.kind, "turn": group.turn}
        yield line | _extras(message)


def _view_line(item: Item) -> dict[str, Any]:
    place = {"section": item.section, "tokens": item.tokens, "turn": item.turn, "group": item.group}
    return openai.to_wire(item.message) | place | {"change": item.change, "source": item.source} | _extras(item.message)


def _extras(message: Message) -> dict[str, Any]:
    """The fields of an exported message that OpenAI's format does not have."""
    extras: dict[str, Any] = {"at": message.at} if message.at else {}
    if message.reasoning and message.reasoning.text:
        extras["reasoning_content"] = message.reasoning.text
    return extras | ({"interrupted": True} if message.interrupted else {})


def _json_lines(values: Iterable[dict[str, Any]]) -> str:
    return "".join(dump(masked_json(value)) + "\n" for value in values)


def dump(value: object, indent: int | None = None) -> str:
    """The value as JSON that is safe to write as UTF-8, to a file or a terminal."""
    return harmless_json(json.dumps(value, ensure_ascii=False, indent=indent))


def masked_json(value: object) -> object:
    """A JSON value with secrets masked in its texts; its structure stays."""
    match value:
        case str():
            return value if _PICTURE.fullmatch(value) else masked(value)
        case list():
            return [masked_json(item) for item in cast("list[object]", value)]
        case dict():
            return {key: masked_json(item) for key, item in cast("dict[str, object]", value).items()}
        case _:
            return value
