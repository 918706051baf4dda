"""What an error says, whatever it is: class names, statuses, codes, words and usage, gathered without knowing any SDK.

Reads a bounded part of it, never raises, imports no provider's library; judges nothing.
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
"""Characters read of a long text: what a server has to say stands at its beginning, or at the end of a traceback."""
_MAX_JSON_CHARS = 200_000
"""Texts longer than this are not parsed as JSON, only read."""

_ESCAPED = expression(r"\\{1,8}u([0-9a-fA-F]{4})")
_COLOUR = expression(r"\x1b\[[0-9;]{0,20}m")
_PAGE = expression(r"<!doctype html|<html|<body", re.I)
_TAG = expression(r"<[!/a-z][^<>]{0,300}>", re.I)
_decoder = json.JSONDecoder()
_T = TypeVar("_T")

_MAX_ERROR_CHARS = 30_000
"""Characters kept of one error altogether."""
_NODES, _CAUSES = 400, 30
"""Values looked at in one error, and errors in one chain."""

_STATUS_KEYS = {"status", "statuscode", "httpstatus", "httpstatuscode", "httpcode", "code", "errorcode"}
_CODE_KEYS = {
    *("code", "type", "status", "errorcode", "errcode", "errortype", "statuscode", "reason", "name", "title"),
    *("finishreason", "stopreason", "nativefinishreason", "errornum"),
}
_TALK = {"choices", "candidates", "delta", "output"}
"""Keys of a reply: the model's own words are no evidence of anything."""
_ENDINGS = {"finishreason", "stopreason", "nativefinishreason"}
_UNREAD = {
    *("input", "prompt", "request", "headers", "responseheaders", "stack", "failedgeneration", "config", "hint", "url"),
    "requestid",
}
"""Keys that echo what was sent, or say nothing of why."""
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
"""What libraries call what a server said; a model's own words (`generated_content`) and what was sent are none of these."""
_INNER = ("__cause__", "__context__", "exceptions", "args")
_SAID = expression(
    r"(?:error code|status(?:[ _]?code)?|http(?:/[\d.]+)?(?: error)?|status was"
    r"|api error)[\"'\\]{0,4}[\s:=(\-]{0,4}([45]\d\d)\b"
    r"|\A\W{0,3}(?:error\W{1,12})?([45]\d\d)\b(?!,\d|\.\d|\s*\w{0,9}\s*tokens)",
    re.I,
)
_NAMED = expression(
    r"\b(?:error_?code|code|type|status|err_?code|__type)\\{0,8}[\"']?\s{0,2}[:=]\s{0,2}\\{0,8}[\"']?([\w.\-#]{3,80})",
    re.I,
)
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
"""Fields that hold a size, and how it is said among the words."""


class ErrorDetails:
    """One error of a chain: its classes' `names`, HTTP `statuses`, `codes` (what stands in code and type fields), `texts`,
    `reasons` (those of the texts that are no JSON), a ModelError's `kind`; of a reply `prompt`, `said` and `total` tokens."""

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
        """All texts, each on lines of its own, without the names of fields and requests: «message» is no word of the server's."""
        return _REQUEST_ID.sub(" ", _KEYS.sub(" ", "\n".join(self.texts)))

    def add_value(self, value: object, key: str = "", depth: int = 0) -> None:
        """Adds a value found under `key`: a text, a number, a mapping, a list, or an object with an error's attributes."""
        self._nodes -= 1
        if self._nodes < 0 or depth > 24 or value is None:
            return
        with suppress(Exception):  # whatever an object does when it is looked at, the others count
            self._add_by_kind(value, key, depth)

    def _add_by_kind(self, value: object, key: str, depth: int) -> None:
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
        if self._room <= 0 or not value.strip():
            return
        if key in _CODE_KEYS and len(value) <= 100:
            self.codes.append(value.strip())
            if key in _STATUS_KEYS and value.strip().isdecimal():
                self._number(int(value), key)
            if not re.search(r"\s|[^\x00-\x7f]", value.strip()):
                return  # one word of ASCII is no sentence
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
            self.statuses |= {int(match[1] or match[2]) for match in _SAID.finditer(shown[:2000])}
            if not parsed:
                self.codes += _NAMED.findall(shown)[:50]

    def _number(self, value: int, key: str) -> None:
        if key in _STATUS_KEYS and 400 <= value < 600:
            self.statuses.add(value)
        elif key in _CODE_KEYS and abs(value) < 10**9:
            self.codes.append(str(value))
        elif key in _SIZE_KEYS:
            self.texts.append(f"{_SIZE_KEYS[key]}: {value}")

    def _mapping(self, value: Mapping[object, object], depth: int) -> None:
        reply = _is_reply(value)
        for key, part in _fields(value).items():
            if key == "usage":
                self._usage(part)
            elif key in _TALK:
                self._endings(part, depth)
            elif key not in _UNREAD and (not reply or key in _ENDINGS or key == "error"):
                self.add_value(part, key, depth + 1)

    def _endings(self, value: object, depth: int) -> None:
        """Of a reply's choices only why they ended, and an error that came instead."""
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
        if depth and isinstance(value, BaseException):
            return  # a link of the chain: read by itself
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
    """The error and what it came from, outermost first: causes, contexts, members of groups, what a library wrapped."""
    waiting: list[object] = [error]
    seen: list[object] = []  # kept, so that no identity is used twice
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
    """The errors that one came from, wrapped, or keeps in an attribute."""
    kept = _safe_getattr(error, "__dict__")
    attributes = _first(cast("dict[str, object]", kept).values(), 100) if isinstance(kept, dict) else []
    for held in [*(_safe_getattr(error, name) for name in _INNER), *attributes]:
        parts = _first(cast("Iterable[object]", held), _CAUSES) if isinstance(held, tuple | list) else [held]
        yield from (part for part in parts if isinstance(part, BaseException))


def _is_reply(value: Mapping[object, object]) -> bool:
    """True for what a model said, whole or in part, rather than what a server says of a failure."""
    keys = _fields(value).keys()
    return bool(_TALK & keys) or ("content" in keys and bool({"role", "stopreason"} & keys))


# ── looking at an object of any kind without being hurt ──


def _safe_getattr(value: object, name: str) -> object:
    """An attribute, None where there is none or it cannot be had."""
    try:
        return cast("object", getattr(value, name, None))
    except Exception:  # a property may do anything
        return None


def _called(method: object) -> object:
    """What a method gives, None where it is none, fails, or would have to be awaited."""
    try:
        result = method() if callable(method) else None
        if isinstance(result, Coroutine):
            result.close()
            return None
    except Exception:
        return None
    return cast("object", result)


def _text_of(error: BaseException) -> str:
    """An exception as text, nothing where it cannot say itself."""
    try:
        return str(error)
    except Exception:
        return ""


def _first(values: Iterable[_T], most: int) -> list[_T]:
    """At most so many of the values."""
    try:
        return [part for part, _ in zip(values, range(most), strict=False)]
    except Exception:
        return []


def _fields(value: Mapping[object, object]) -> dict[str, object]:
    """A mapping's values by their plain names, a hundred at most."""
    return {_normalized_key(key): part for key, part in _first(value.items(), 100)}


def _normalized_key(key: object) -> str:
    """A name in one spelling: `statusCode`, `status_code` and `status-code` are `statuscode`."""
    return str(key)[:40].lower().replace("_", "").replace("-", "") if isinstance(key, str) else ""


def _readable(text: str) -> str:
    """Head and tail of a text without colours and markup, with `\\u` escapes and entities as the letters they stand for."""
    cut = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    if _PAGE.search(cut):
        cut = html.unescape(_TAG.sub(" ", cut)).strip()
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), _COLOUR.sub("", cut))


def _jsons_in(text: str) -> list[object]:
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
