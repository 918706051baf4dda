"""Reads JSON lines as a stream, or a whole JSON document, and looks up values of any type in what was read. Damage costs only the
damaged line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from ctxchat.core.messages import Part, Reasoning, Text
from ctxchat.importing.steps import Damaged

Object = dict[str, Any]

Progress = Callable[[int], None]
"""A function called with the number of bytes read since its last call."""

MAX_WHOLE_FILE_BYTES = 1_000_000_000
"""The largest file that is read, where it can only be read as a whole."""

MAX_LINE_BYTES = 250_000_000
"""The longest line that is read. Messages with the largest images are far shorter; what a kill leaves behind may be gigabytes."""

MAX_TIME_IN_SECONDS = 100_000_000_000
"""A time below this is in seconds, else in milliseconds: this many milliseconds were reached in 1973."""

_MAX_SEARCHED_BYTES, _MAX_ATTEMPTS = 10_000_000, 200
"""Size of a damaged line that is searched for complete objects, and attempts to decode one."""

_decode = msgspec.json.Decoder().decode


def silent(read: int) -> None:
    """A `Progress` that does nothing."""


def lines(
    file: Path, progress: Progress = silent, longest: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, Object | Damaged]]:
    """The objects of a file of JSON lines, each with the number of its line, from 1. A line without an object, or longer than
    `longest` bytes, yields `Damaged`; blank lines yield nothing."""
    number, inside_line = 1, False
    with file.open("rb") as opened:
        while piece := opened.readline(longest):
            progress(len(piece))
            ended = piece.endswith(b"\n")
            where = f"{file.name}:{number}"
            if not inside_line and not ended and len(piece) == longest:
                yield number, Damaged(where, f"longer than {longest // 1_000_000:,} MB")
            elif not inside_line and (text := piece.strip(b"\0 \t\r\n\xef\xbb\xbf")):
                for value in together(text, where):
                    yield number, value
            number, inside_line = number + ended, not ended


def together(text: bytes, where: str) -> Iterator[Object | Damaged]:
    """The objects of a line: usually one, several where two programs wrote at the same time or a kill left half an object before
    the next. What is no object is skipped; `Damaged` comes last where anything was."""
    value = parse_object(text, where)
    if isinstance(value, dict) or len(text) > _MAX_SEARCHED_BYTES:
        yield value
        return
    decoded, decoder, at, attempts = text.decode("utf-8", "replace"), json.JSONDecoder(), 0, 0
    intact, any_object = True, False
    while at < len(decoded) and attempts < _MAX_ATTEMPTS:
        attempts += 1
        try:
            _, end = decoder.raw_decode(decoded, at)
        except (ValueError, RecursionError):
            end = decoded.find('{"', at + 1)
            intact, at = False, end if end >= 0 else len(decoded)
            continue
        if isinstance(value := parse_object(decoded[at:end].encode("utf-8", "replace"), where), dict):
            any_object = True
            yield value
        at = end + len(decoded[end:]) - len(decoded[end:].lstrip("\0 \t"))
    if not (intact and any_object):
        yield parse_object(text, where)


def parse_file(file: Path, progress: Progress = silent) -> Object | list[Any] | Damaged:
    """The content of a file that is one JSON document."""
    size = file.stat().st_size
    if size > MAX_WHOLE_FILE_BYTES:
        return Damaged(file.name, f"longer than {MAX_WHOLE_FILE_BYTES // 1_000_000:,} MB")
    data = file.read_bytes()
    progress(len(data))
    value = _value(data.strip(b"\0 \t\r\n\xef\xbb\xbf"))
    return (
        cast("Object | list[Any]", value)
        if isinstance(value, dict | list)
        else Damaged(f"{file.name}:{_broken_line(data)}", "not a JSON document")
    )


def _broken_line(data: bytes) -> int:
    """The line in which a document stops being JSON, from 1."""
    try:
        json.loads(data.decode("utf-8", "replace"))
    except json.JSONDecodeError as problem:
        return problem.lineno
    except (ValueError, RecursionError):
        pass
    return 1


def parse_object(text: bytes, where: str) -> Object | Damaged:
    """The object that a line holds."""
    value = _value(text)
    if isinstance(value, dict):
        return cast(Object, value)
    return Damaged(where, "not JSON" if value is None else "not a JSON object")


def _value(text: bytes) -> object:
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:  # lone surrogates, as in truncated output of tools, and bytes that are no UTF-8
        value = json.loads(text.decode("utf-8", "replace"))
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


# ── values of any type ──


def obj(value: object) -> Object:
    """The value where it is an object, else an empty one."""
    return cast(Object, value) if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """The value where it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """The value where it is a whole number that can be a count, else 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return 0
    return int(value)


def as_json(value: object) -> str:
    """The value as JSON text; text stays as it is."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def when(value: object) -> str:
    """A time as ISO 8601, UTC, from milliseconds or seconds since 1970; as it is where it is text."""
    if isinstance(value, str) or not number(value):
        return text(value)
    with suppress(OverflowError, ValueError, OSError):
        seconds = float(value) if number(value) < MAX_TIME_IN_SECONDS else number(value) / 1000  # type: ignore[arg-type]
        moment = datetime.fromtimestamp(seconds, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return ""


def thought(pieces: Iterable[str]) -> Reasoning | None:
    """The pieces of a model's reasoning as one; None where all are empty."""
    whole = "\n\n".join(filter(None, pieces))
    return Reasoning(whole) if whole else None


def model_of(provider: str, model: str) -> str:
    """litellm's name of a model, from its provider and its name there."""
    prefix = {"google": "gemini", "openai-codex": "openai"}.get(provider, provider)
    return f"{prefix}/{model}" if prefix and model else model


def simple(parts: Sequence[Part]) -> str | tuple[Part, ...]:
    """The content of a message: one text where all parts are unnamed text, else the parts."""
    if all(isinstance(part, Text) and not part.name for part in parts):
        return "\n\n".join(part.text for part in parts if isinstance(part, Text) and part.text)
    return tuple(parts)


def settings_of(file: Path) -> Object:
    """The content of an agent's JSON settings file; empty where it is missing or cannot be read."""
    try:
        return obj(msgspec.json.decode(file.read_bytes()))
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return {}
