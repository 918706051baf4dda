"""Sessions and compactions as text for other programs and for people. Values in, text out; only `archive_export`
writes files.

Secrets are taken out of everything but the record in OpenAI's form, which gives back what was imported exactly as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from ctxchat.core import openai
from ctxchat.core.journal import SessionState
from ctxchat.core.messages import Group, Message
from ctxchat.core.redact import redact
from ctxchat.core.view import Item
from ctxchat.storage import archive, files, markdown
from ctxchat.storage.database import Database
from ctxchat.storage.faults import faults

Format = Literal["openai", "jsonl", "markdown"]


def export_record(state: SessionState, format: Format) -> str:
    """Everything that ever happened. `openai` is exact; the others have secrets taken out.

    What ctxchat made up to close an unanswered call is left out of `openai` and `jsonl`.
    """
    if format == "openai":
        return dump([openai.recorded(m) for m in state.ledger.messages() if not m.synthetic], indent=1)
    if format == "jsonl":
        return _lines(record_lines(state.ledger.groups))
    return redact(markdown.record(state))


def export_view(state: SessionState, items: Iterable[Item], format: Format) -> str:
    """What the model is sent: `items` of a compiled view. Secrets are taken out of every format."""
    items = tuple(items)
    if format == "openai":
        return dump(redacted(openai.wire(items)), indent=1)
    if format == "jsonl":
        return _lines(_view_line(item) for item in items)
    return redact(markdown.view(state, items))


def archive_export(database: Database, folder: Path, session: str = "") -> list[Path]:
    """One JSON-lines file for each compaction of a session, or of all: first its record, then a line for each
    message it folded.

    Secrets are taken out. Files are private; one that stands there already is not overwritten. Raises StorageError.
    """
    written: list[Path] = []
    for row in archive.compactions(database, session):
        archived = archive.show(database, row.id, row.session)
        path = folder / files.safe_name(f"{row.session}-{row.id}.jsonl")
        files.private_folder(folder)
        with faults(path):
            files.write_private(path, _lines(archive_lines(archived)).encode())
        written.append(path)
    return written


def archive_lines(archived: archive.Archived) -> Iterator[dict[str, Any]]:
    """A compaction as lines: its record, then its messages."""
    record = msgspec.to_builtins(archived.change.record) if archived.change.record else {"id": archived.change.id}
    yield {"type": "compaction", "session": archived.session, "undone": archived.undone, "record": record}
    yield from record_lines(archived.groups)


def record_lines(groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
    """A line for each message: OpenAI's fields, and where it stands."""
    placed = [(m, g) for g in groups for m in g.messages if not m.synthetic]
    for message, group in sorted(placed, key=lambda pair: pair[0].seq):
        line = openai.recorded(message) | {"id": message.id, "group": group.id, "kind": group.kind, "turn": group.turn}
        yield line | _extras(message)


def _view_line(item: Item) -> dict[str, Any]:
    place = {"section": item.section, "tokens": item.tokens, "turn": item.turn, "group": item.group}
    return openai.to_wire(item.message) | place | {"change": item.change, "source": item.source} | _extras(item.message)


def _extras(message: Message) -> dict[str, Any]:
    extras: dict[str, Any] = {"at": message.at} if message.at else {}
    if message.reasoning and message.reasoning.text:
        extras["reasoning_content"] = message.reasoning.text
    return extras | ({"interrupted": True} if message.interrupted else {})


def _lines(values: Iterable[dict[str, Any]]) -> str:
    return "".join(dump(redacted(value)) + "\n" for value in values)


def dump(value: object, indent: int | None = None) -> str:
    """JSON that can be written as UTF-8 whatever is in it."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def redacted(value: object) -> object:
    """A JSON value with secrets taken out of its texts; its shape stays."""
    match value:
        case str():
            return redact(value)
        case list():
            return [redacted(item) for item in cast("list[object]", value)]
        case dict():
            return {key: redacted(item) for key, item in cast("dict[str, object]", value).items()}
        case _:
            return value
