"""Looking at an object of any kind without being hurt: attributes, fields, texts, JSON inside of texts. Never raises, reads a
bounded part, knows nothing of errors or overflows."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Coroutine, Iterable, Mapping
from typing import TypeVar, cast

_HEAD, _TAIL = 8_000, 2_000
"""Characters read of a long text: what a server has to say stands at its beginning, or at the end of a traceback."""
PARSED = 200_000
"""Texts longer than this are not parsed as JSON, only read."""

_ESCAPED = re.compile(r"\\{1,8}u([0-9a-fA-F]{4})")
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_PAGE = re.compile(r"<!doctype html|<html|<body", re.I)
_TAG = re.compile(r"<[!/a-z][^<>]{0,300}>", re.I)
_decoder = json.JSONDecoder()
_T = TypeVar("_T")


def get(value: object, name: str) -> object:
    """An attribute, None where there is none or it cannot be had."""
    try:
        return cast("object", getattr(value, name, None))
    except Exception:  # a property may do anything
        return None


def called(method: object) -> object:
    """What a method gives, None where it is none, fails, or would have to be awaited."""
    try:
        result = method() if callable(method) else None
        if isinstance(result, Coroutine):
            result.close()
            return None
    except Exception:
        return None
    return cast("object", result)


def text_of(error: BaseException) -> str:
    """An exception as text, nothing where it cannot say itself."""
    try:
        return str(error)
    except Exception:
        return ""


def first(values: Iterable[_T], most: int) -> list[_T]:
    """At most so many of the values."""
    try:
        return [part for part, _ in zip(values, range(most), strict=False)]
    except Exception:
        return []


def fields(value: Mapping[object, object]) -> dict[str, object]:
    """A mapping's values by their plain names, a hundred at most."""
    return {plain(key): part for key, part in first(value.items(), 100)}


def plain(key: object) -> str:
    """A name in one spelling: `statusCode`, `status_code` and `status-code` are `statuscode`."""
    return str(key)[:40].lower().replace("_", "").replace("-", "") if isinstance(key, str) else ""


def readable(text: str) -> str:
    """Head and tail of a text without colours and markup, with `\\u` escapes and entities as the letters they stand for."""
    cut = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    if _PAGE.search(cut):
        cut = html.unescape(_TAG.sub(" ", cut)).strip()
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), _COLOUR.sub("", cut))


def jsons_in(text: str) -> list[object]:
    """The JSON in a text: a body, one behind a library's prefix, or the first and last events of a stream, whose last is why it
    ended."""
    lines = [line for line in text.splitlines() if line.startswith(("data:", "{"))]
    if len(lines) > 1:
        events = [value for line in [*lines[:2], *lines[2:][-3:]] if (value := _json_in(line)) is not None]
        if events:
            return events
    value = _json_in(text)
    return [] if value is None else [value]


def _json_in(text: str) -> object:
    """The first JSON object, or list of them, in a text."""
    if len(text) > PARSED:
        return None
    for start in first((found.start() for found in re.finditer(r"[{\[]", text)), 4):
        try:
            value = cast("object", _decoder.raw_decode(text, start)[0])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) or (value and isinstance(value, list) and isinstance(value[0], dict)):
            return cast("object", value)
    stripped = text.strip()
    if stripped[:2] == '"{' or stripped[:3] == '"\\u':
        try:
            return cast("object", json.loads(stripped))
        except (ValueError, RecursionError):
            return None
    return None
