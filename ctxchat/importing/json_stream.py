"""Files read as JSON in a stream: line by line, each on its own, or whole where a form is one document."""

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
"""Told how many bytes were read since it was told last."""

MAX_WHOLE_FILE_BYTES = 1_000_000_000
"""Bytes of a file that can only be read whole."""

MAX_LINE_BYTES = 250_000_000
"""Bytes of a line that is read: a message with the largest images is far below, what a kill leaves may be gigabytes."""

MAX_TIME_IN_SECONDS = 100_000_000_000
"""Below this a number is a time in seconds, as one in milliseconds it would be in 1973."""

MOST_GLUED, MOST_TRIED = 10_000_000, 200
"""Bytes of a damaged line in which whole objects are looked for, and places where one may begin."""

_decode = msgspec.json.Decoder().decode


def silent(read: int) -> None:
    """Nobody wants to know."""


def lines(
    file: Path, progress: Progress = silent, longest: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, Object | Damaged]]:
    """Each line that is not blank, by its number, as the object it holds. One that holds none, or is longer than `longest` bytes,
    costs nothing but itself."""
    number, inside = 1, False
    with file.open("rb") as opened:
        while piece := opened.readline(longest):
            progress(len(piece))
            ended = piece.endswith(b"\n")
            where = f"{file.name}:{number}"
            if not inside and not ended and len(piece) == longest:
                yield number, Damaged(where, f"longer than {longest // 1_000_000:,} MB")
            elif not inside and (text := piece.strip(b"\0 \t\r\n\xef\xbb\xbf")):
                for value in together(text, where):
                    yield number, value
            number, inside = number + ended, not ended


def together(text: bytes, where: str) -> Iterator[Object | Damaged]:
    """The objects of a line: one; or several, where two programs wrote at once or a kill left half of one. What is none costs
    itself."""
    value = parse_object(text, where)
    if isinstance(value, dict) or len(text) > MOST_GLUED:
        yield value
        return
    written, decoder, at, tried = text.decode("utf-8", "replace"), json.JSONDecoder(), 0, 0
    whole, found = True, False
    while at < len(written) and tried < MOST_TRIED:
        tried += 1
        try:
            _, end = decoder.raw_decode(written, at)
        except (ValueError, RecursionError):
            end = written.find('{"', at + 1)
            whole, at = False, end if end >= 0 else len(written)
            continue
        if isinstance(value := parse_object(written[at:end].encode("utf-8", "replace"), where), dict):
            found = True
            yield value
        at = end + len(written[end:]) - len(written[end:].lstrip("\0 \t"))
    if not (whole and found):
        yield parse_object(text, where)


def parse_file(file: Path, progress: Progress = silent) -> Object | list[Any] | Damaged:
    """A file that is one JSON document."""
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
    """In which line a document stops being JSON."""
    try:
        json.loads(data.decode("utf-8", "replace"))
    except json.JSONDecodeError as problem:
        return problem.lineno
    except (ValueError, RecursionError):
        pass
    return 1


def parse_object(text: bytes, where: str) -> Object | Damaged:
    """The object a line holds."""
    value = _value(text)
    if isinstance(value, dict):
        return cast(Object, value)
    return Damaged(where, "not JSON" if value is None else "not a JSON object")


def _value(text: bytes) -> object:
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:  # halves of surrogate pairs, which cut-off output of tools has, and bytes that are no UTF-8
        value = json.loads(text.decode("utf-8", "replace"))
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


# ── looking into what others wrote ──


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
    """As JSON text; a text stays as it is."""
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
    """What a model thought, as one text; None where that is nothing."""
    whole = "\n\n".join(filter(None, pieces))
    return Reasoning(whole) if whole else None


def model_of(provider: str, model: str) -> str:
    """litellm's name of a model that a program keeps by its provider."""
    prefix = {"google": "gemini", "openai-codex": "openai"}.get(provider, provider)
    return f"{prefix}/{model}" if prefix and model else model


def simple(parts: Sequence[Part]) -> str | tuple[Part, ...]:
    """Parts of a message, as one text where that is all they are."""
    if all(isinstance(part, Text) and not part.name for part in parts):
        return "\n\n".join(part.text for part in parts if isinstance(part, Text) and part.text)
    return tuple(parts)


def settings_of(file: Path) -> Object:
    """What an agent's JSON settings hold; nothing where there are none, or they cannot be read."""
    try:
        return obj(msgspec.json.decode(file.read_bytes()))
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return {}
