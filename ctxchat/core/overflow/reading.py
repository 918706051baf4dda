"""Gathers what an error says, whatever object it is: names of classes, statuses, codes, texts and token counts (`ErrorDetails`).
Works without knowing any provider's library, by names of attributes and fields that are common.

Reads only a limited part of an object, and never raises. What the error means is decided in `verdict`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar, cast

from ctxchat.core.errors import ModelError
from ctxchat.core.expressions import expression

_HEAD, _TAIL = 8_000, 2_000
"""Characters that are read at the beginning and at the end of a long text: a server's message is at the beginning, or, in a
traceback, at the end."""

_MAX_JSON_CHARS = 200_000
"""The longest text that is parsed as JSON."""

_ESCAPED = expression(r"\\{1,8}u([0-9a-fA-F]{4})")
_COLOUR = expression(r"\x1b\[[0-9;]{0,20}m")
_PAGE = expression(r"<!doctype html|<html|<body", re.I)
_TAG = expression(r"<[!/a-z][^<>]{0,300}>", re.I)
_decoder = json.JSONDecoder()
_T = TypeVar("_T")

_MAX_ERROR_CHARS = 30_000
"""The most characters kept of one error."""

_NODES, _CAUSES = 400, 30
"""The most values visited in one error, and the most errors in a chain."""

_STATUS_KEYS = {"status", "statuscode", "httpstatus", "httpstatuscode", "httpcode", "code", "errorcode"}
_CODE_KEYS = {
    *("code", "type", "status", "errorcode", "errcode", "errortype", "statuscode", "reason", "name", "title"),
    *("finishreason", "stopreason", "nativefinishreason", "errornum"),
}
_REPLY_KEYS = {"choices", "candidates", "delta", "output"}
"""Fields that hold what a model wrote, which says nothing about an error."""

_ENDINGS = {"finishreason", "stopreason", "nativefinishreason"}
_UNREAD = {
    *("input", "prompt", "request", "headers", "responseheaders", "stack", "failedgeneration", "config", "hint", "url"),
    "requestid",
}
"""Fields that repeat what was sent, or say nothing about the reason."""
_ATTRIBUTES = (
    *("status_code", "status", "http_status", "code", "type", "error_code", "finish_reason", "stop_reason"),
    *("message", "detail", "msg", "text", "body", "error", "errors", "error_message", "response", "args"),
    *(
        "details",
        "reason",
        "description",
        "data",
        "content",
        "error_msg",
        "server_message",
        "raw_response",
        "__notes__",
    ),
    *("response_body", "responseBody", "response_text", "json_body", "http_body"),
)
"""Attributes in which libraries keep what a server answered."""

_INNER = ("__cause__", "__context__", "exceptions", "args")
_STATED_STATUS = expression(
    r"(?:error code|status(?:[ _]?code)?|http(?:/[\d.]+)?(?: error)?|status was"
    r"|api error)[\"'\\]{0,4}[\s:=(\-]{0,4}([45]\d\d)\b"
    r"|\A\W{0,3}(?:error\W{1,12})?([45]\d\d)\b(?!,\d|\.\d|\s*\w{0,9}\s*tokens)",
    re.I,
)
"""Matches an HTTP status in a text."""

_STATED_CODE = expression(
    r"\b(?:error_?code|code|type|status|err_?code|__type)\\{0,8}[\"']?\s{0,2}[:=]\s{0,2}\\{0,8}[\"']?([\w.\-#]{3,80})",
    re.I,
)
"""Matches an error code in a text."""

_KEYS = expression(
    r"\\{0,8}[\"'](?:message|msg|text|content|detail|type|code|param|status|error|request_id)"
    r"\\{0,8}[\"']\s{0,2}:",
    re.I,
)
_REQUEST_ID = expression(
    r"\(?\b(?:x-)?request[ _-]?id\\{0,8}[\"']?(?: is)?[\s:=]{1,3}\\{0,8}[\"']?[\w-]{4,80}[\"']?\)?", re.I
)
_SIZE_KEYS: dict[str, str] = {
    **dict.fromkeys(("nctx", "maxmodellen", "contextlength", "contextwindow", "maxcontextlength"), "n_ctx"),
    "nprompttokens": "n_prompt_tokens",
}
"""Fields that hold a size, with the name under which it is added to the texts."""


class ErrorDetails:
    """What one error of a chain says.

    `names` are those of its class and base classes, `statuses` HTTP statuses, `codes` the contents of code and type fields,
    `texts` all its texts, and `reasons` those of them that are not JSON. `kind` is a ModelError's. `prompt`, `said` and `total`
    are the tokens of prompt, reply and both, where it is a reply with usage.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.statuses: set[int] = set()
        self.codes: list[str] = []
        self.texts: list[str] = []
        self.reasons: list[str] = []
        self.kind = ""
        self.prompt = self.total = self.said = 0
        self._room = _MAX_ERROR_CHARS
        self._nodes = _NODES

    @property
    def words(self) -> str:
        """All texts, joined by line breaks, without the names of JSON fields and without ids of requests, which would look like
        words of the server's."""
        return _REQUEST_ID.sub(" ", _KEYS.sub(" ", "\n".join(self.texts)))

    def add_value(self, value: object, key: str = "", depth: int = 0) -> None:
        """Add a value found under `key` (in one spelling, see `_normalized_key`): a text, a number, a mapping, a list, or an
        object with the attributes of an error."""
        self._nodes -= 1
        if self._nodes < 0 or depth > 24 or value is None:
            return
        with suppress(Exception):  # an object's properties may raise anything; the other values still count
            self._add_by_kind(value, key, depth)

    def _add_by_kind(self, value: object, key: str, depth: int) -> None:
        """Add a value by its type."""
        if isinstance(value, bytes | bytearray):
            self.add_value(bytes(value[: _MAX_JSON_CHARS + 1]).decode("utf-8", "replace"), key, depth + 1)
        elif isinstance(value, str):
            self._add_text(value, key, depth)
        elif isinstance(value, bool):
            return
        elif isinstance(value, int):
            self._number(value, key)
        elif isinstance(value, Mapping):
            self._mapping(cast("Mapping[object, object]", value), depth)
        elif isinstance(value, Sequence | set | frozenset):
            for part in _first(cast("Iterable[object]", value), 50):
                self.add_value(part, "", depth + 1)
        elif not callable(value):
            self._object(value, depth)

    def _add_text(self, value: str, key: str, depth: int) -> None:
        """Add a text, with the JSON, statuses and codes in it. What a model wrote is left out."""
        if self._room <= 0 or not value.strip():
            return
        if key in _CODE_KEYS and len(value) <= 100:
            self.codes.append(value.strip())
            if key in _STATUS_KEYS and value.strip().isdecimal():
                self._number(int(value), key)
            if not re.search(r"\s|[^\x00-\x7f]", value.strip()):
                return  # a single word is a code only
        parsed = _jsons_in(value)
        for part in parsed:
            self.add_value(part, "", depth + 1)
        if any(isinstance(part, Mapping) and _is_reply(cast("Mapping[object, object]", part)) for part in parsed):
            return
        shown = _readable(value)
        if not parsed:
            self.reasons.append(shown)
        if shown not in self.texts:
            self._room -= len(shown)
            self.texts.append(shown)
            self.statuses |= {int(match[1] or match[2]) for match in _STATED_STATUS.finditer(shown[:2000])}
            if not parsed:
                self.codes += _STATED_CODE.findall(shown)[:50]

    def _number(self, value: int, key: str) -> None:
        """Add a number: a status, a code or a size, by its key."""
        if key in _STATUS_KEYS and 400 <= value < 600:
            self.statuses.add(value)
        elif key in _CODE_KEYS and abs(value) < 10**9:
            self.codes.append(str(value))
        elif key in _SIZE_KEYS:
            self.texts.append(f"{_SIZE_KEYS[key]}: {value}")

    def _mapping(self, value: Mapping[object, object], depth: int) -> None:
        """Add the values of a mapping, without those that are a model's words or repeat the request."""
        reply = _is_reply(value)
        for key, part in _fields(value).items():
            if key == "usage":
                self._usage(part)
            elif key in _REPLY_KEYS:
                self._endings(part, depth)
            elif key not in _UNREAD and (not reply or key in _ENDINGS or key == "error"):
                self.add_value(part, key, depth + 1)

    def _endings(self, value: object, depth: int) -> None:
        """Add from a reply's choices only the reasons for their end, and errors in place of a reply."""
        for part in _first(cast("Iterable[object]", value), 8) if isinstance(value, list | tuple) else [value]:
            for key in ("finish_reason", "stop_reason", "native_finish_reason", "error"):
                found = (
                    cast("Mapping[str, object]", part).get(key)
                    if isinstance(part, Mapping)
                    else _safe_getattr(part, key)
                )
                if isinstance(found, str | Mapping):
                    self.add_value(cast("object", found), _normalized_key(key), depth + 1)

    def _object(self, value: object, depth: int) -> None:
        """Add the attributes of an object that hold what a server said; of a reply only its usage and endings."""
        if depth and isinstance(value, BaseException):
            return  # it is read as an error of the chain by itself
        if isinstance(value, ModelError):
            self.kind = value.kind
            for key, part in (("status", value.status), ("code", value.code), ("", value.body), ("", value.text)):
                self.add_value(part, key, depth + 1)
            return
        self._usage(_safe_getattr(value, "usage"))
        choices = _safe_getattr(value, "choices")
        if isinstance(choices, list | tuple):
            self._endings(cast("object", choices), depth)
            return
        for name in _ATTRIBUTES:
            self.add_value(_safe_getattr(value, name), _normalized_key(name), depth + 1)
        if isinstance(value, BaseException):
            self.names |= {base.__name__ for base in type(value).__mro__}
            self.add_value(_text_of(value), "", depth + 1)
        elif not _safe_getattr(value, "text"):
            self.add_value(_called(_safe_getattr(value, "json")), "", depth + 1)

    def _usage(self, usage: object) -> None:
        """Take over the token counts of a reply, under the names that providers use."""

        def count(*names: str) -> int:
            for name in names:
                found = (
                    cast("Mapping[str, object]", usage).get(name)
                    if isinstance(usage, Mapping)
                    else _safe_getattr(usage, name)
                )
                if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                    return found
            return 0

        if usage is None:
            return
        cached = count("cache_read_input_tokens") + count("cache_creation_input_tokens")
        prompt = count("prompt_tokens") or count("input_tokens", "inputTokens", "promptTokenCount") + cached
        self.prompt = max(self.prompt, prompt)
        self.said = max(self.said, count("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount"))
        self.total = max(self.total, count("total_tokens", "totalTokens", "totalTokenCount"), self.prompt + self.said)


def readings(error: object) -> Iterator[ErrorDetails]:
    """The details of an error and of the errors behind it, outermost first: causes, contexts, members of groups, and what a
    library wrapped."""
    waiting: list[object] = [error]
    seen: list[object] = []  # compared by identity, and kept alive, since Python reuses the ids of dead objects
    while waiting and len(seen) < _CAUSES:
        current = waiting.pop(0)
        if current is None or any(current is other for other in seen):
            continue
        seen.append(current)
        reading = ErrorDetails()
        reading.add_value(current)
        yield reading
        with suppress(Exception):
            waiting += _causes_of(current)


def _causes_of(error: object) -> Iterator[object]:
    """The errors that an error came from, wrapped, or keeps in an attribute."""
    own = _safe_getattr(error, "__dict__")
    attributes = _first(cast("dict[str, object]", own).values(), 100) if isinstance(own, dict) else []
    for value in [*(_safe_getattr(error, name) for name in _INNER), *attributes]:
        parts = _first(cast("Iterable[object]", value), _CAUSES) if isinstance(value, tuple | list) else [value]
        yield from (part for part in parts if isinstance(part, BaseException))


def _is_reply(value: Mapping[object, object]) -> bool:
    """True for a reply of a model or a part of one, in contrast to a server's error."""
    keys = _fields(value).keys()
    return bool(_REPLY_KEYS & keys) or ("content" in keys and bool({"role", "stopreason"} & keys))


# ── reading any object without raising ──


def _safe_getattr(value: object, name: str) -> object:
    """An attribute; None where it is missing or raises."""
    try:
        return cast("object", getattr(value, name, None))
    except Exception:  # a property may do anything
        return None


def _called(method: object) -> object:
    """The result of a method; None where it cannot be called, raises, or would have to be awaited."""
    try:
        result = method() if callable(method) else None
        if isinstance(result, Coroutine):
            result.close()
            return None
    except Exception:
        return None
    return cast("object", result)


def _text_of(error: BaseException) -> str:
    """An exception as text; empty where that raises."""
    try:
        return str(error)
    except Exception:
        return ""


def _first(values: Iterable[_T], most: int) -> list[_T]:
    """The first `most` values; none where iterating raises."""
    try:
        return [part for part, _ in zip(values, range(most), strict=False)]
    except Exception:
        return []


def _fields(value: Mapping[object, object]) -> dict[str, object]:
    """The first hundred values of a mapping by their normalized keys."""
    return {_normalized_key(key): part for key, part in _first(value.items(), 100)}


def _normalized_key(key: object) -> str:
    """A key in one spelling: `statuscode` for `statusCode`, `status_code` and `status-code`."""
    return str(key)[:40].lower().replace("_", "").replace("-", "") if isinstance(key, str) else ""


def _readable(text: str) -> str:
    """The beginning and end of a text, without colour codes and HTML tags, and with `\\u` escapes and HTML entities decoded."""
    cut = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    if _PAGE.search(cut):
        cut = html.unescape(_TAG.sub(" ", cut)).strip()
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), _COLOUR.sub("", cut))


def _jsons_in(text: str) -> list[object]:
    """The JSON values in a text: a body, also behind a library's prefix, or the first and last events of a stream, whose last one
    tells why it ended."""
    lines = [line for line in text.splitlines() if line.startswith(("data:", "{"))]
    if len(lines) > 1:
        events = [value for line in [*lines[:2], *lines[2:][-3:]] if (value := _json_in(line)) is not None]
        if events:
            return events
    value = _json_in(text)
    return [] if value is None else [value]


def _json_in(text: str) -> object:
    """The first JSON object, or list of objects, in a text; None where there is none."""
    if len(text) > _MAX_JSON_CHARS:
        return None
    for start in _first((found.start() for found in re.finditer(r"[{\[]", text)), 4):
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
