"""What an error says, whatever it is: class names, statuses, codes, words and usage, gathered without knowing any SDK.

Reads a bounded part of it, never raises, imports no provider's library; judges nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

from ctxchat.core.errors import ModelError
from ctxchat.core.overflow_objects import PARSED, called, fields, first, get, jsons_in, plain, readable, text_of

_TEXTS = 30_000
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
_SAID = re.compile(
    r"(?:error code|status(?:[ _]?code)?|http(?:/[\d.]+)?(?: error)?|status was"
    r"|api error)[\"'\\]{0,4}[\s:=(\-]{0,4}([45]\d\d)\b"
    r"|\A\W{0,3}(?:error\W{1,12})?([45]\d\d)\b(?!,\d|\.\d|\s*\w{0,9}\s*tokens)",
    re.I,
)
_NAMED = re.compile(
    r"\b(?:error_?code|code|type|status|err_?code|__type)\\{0,8}[\"']?\s{0,2}[:=]\s{0,2}\\{0,8}[\"']?([\w.\-#]{3,80})",
    re.I,
)
_KEYS = re.compile(
    r"\\{0,8}[\"'](?:message|msg|text|content|detail|type|code|param|status|error|request_id)"
    r"\\{0,8}[\"']\s{0,2}:",
    re.I,
)
_REQUEST_ID = re.compile(
    r"\(?\b(?:x-)?request[ _-]?id\\{0,8}[\"']?(?: is)?[\s:=]{1,3}\\{0,8}[\"']?[\w-]{4,80}[\"']?\)?", re.I
)
_SIZE_KEYS: dict[str, str] = {
    **dict.fromkeys(("nctx", "maxmodellen", "contextlength", "contextwindow", "maxcontextlength"), "n_ctx"),
    "nprompttokens": "n_prompt_tokens",
}
"""Fields that hold a size, and how it is said among the words."""


class Reading:
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
        self._room = _TEXTS
        self._nodes = _NODES

    @property
    def words(self) -> str:
        """All texts, each on lines of its own, without the names of fields and requests: «message» is no word of the server's."""
        return _REQUEST_ID.sub(" ", _KEYS.sub(" ", "\n".join(self.texts)))

    def take(self, value: object, key: str = "", depth: int = 0) -> None:
        """Adds a value found under `key`: a text, a number, a mapping, a list, or an object with an error's attributes."""
        self._nodes -= 1
        if self._nodes < 0 or depth > 24 or value is None:
            return
        with suppress(Exception):  # whatever an object does when it is looked at, the others count
            self._take(value, key, depth)

    def _take(self, value: object, key: str, depth: int) -> None:
        if isinstance(value, bytes | bytearray):
            self.take(bytes(value[: PARSED + 1]).decode("utf-8", "replace"), key, depth + 1)
        elif isinstance(value, str):
            self._text(value, key, depth)
        elif isinstance(value, bool):
            return
        elif isinstance(value, int):
            self._number(value, key)
        elif isinstance(value, Mapping):
            self._mapping(cast("Mapping[object, object]", value), depth)
        elif isinstance(value, Sequence | set | frozenset):
            for part in first(cast("Iterable[object]", value), 50):
                self.take(part, "", depth + 1)
        elif not callable(value):
            self._object(value, depth)

    def _text(self, value: str, key: str, depth: int) -> None:
        if self._room <= 0 or not value.strip():
            return
        if key in _CODE_KEYS and len(value) <= 100:
            self.codes.append(value.strip())
            if key in _STATUS_KEYS and value.strip().isdecimal():
                self._number(int(value), key)
            if not re.search(r"\s|[^\x00-\x7f]", value.strip()):
                return  # one word of ASCII is no sentence
        parsed = jsons_in(value)
        for part in parsed:
            self.take(part, "", depth + 1)
        if any(isinstance(part, Mapping) and _is_reply(cast("Mapping[object, object]", part)) for part in parsed):
            return
        shown = readable(value)
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
        for key, part in fields(value).items():
            if key == "usage":
                self._usage(part)
            elif key in _TALK:
                self._endings(part, depth)
            elif key not in _UNREAD and (not reply or key in _ENDINGS or key == "error"):
                self.take(part, key, depth + 1)

    def _endings(self, value: object, depth: int) -> None:
        """Of a reply's choices only why they ended, and an error that came instead."""
        for part in first(cast("Iterable[object]", value), 8) if isinstance(value, list | tuple) else [value]:
            for key in ("finish_reason", "stop_reason", "native_finish_reason", "error"):
                found = cast("Mapping[str, object]", part).get(key) if isinstance(part, Mapping) else get(part, key)
                if isinstance(found, str | Mapping):
                    self.take(cast("object", found), plain(key), depth + 1)

    def _object(self, value: object, depth: int) -> None:
        if depth and isinstance(value, BaseException):
            return  # a link of the chain: read by itself
        if isinstance(value, ModelError):
            self.kind = value.kind
            for key, part in (("status", value.status), ("code", value.code), ("", value.body), ("", value.text)):
                self.take(part, key, depth + 1)
            return
        self._usage(get(value, "usage"))
        choices = get(value, "choices")
        if isinstance(choices, list | tuple):
            self._endings(cast("object", choices), depth)
            return
        for name in _ATTRIBUTES:
            self.take(get(value, name), plain(name), depth + 1)
        if isinstance(value, BaseException):
            self.names |= {base.__name__ for base in type(value).__mro__}
            self.take(text_of(value), "", depth + 1)
        elif not get(value, "text"):
            self.take(called(get(value, "json")), "", depth + 1)

    def _usage(self, usage: object) -> None:
        def count(*names: str) -> int:
            for name in names:
                found = (
                    cast("Mapping[str, object]", usage).get(name) if isinstance(usage, Mapping) else get(usage, name)
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


def readings(error: object) -> Iterator[Reading]:
    """The error and what it came from, outermost first: causes, contexts, members of groups, what a library wrapped."""
    waiting: list[object] = [error]
    seen: list[object] = []  # kept, so that no identity is used twice
    while waiting and len(seen) < _CAUSES:
        current = waiting.pop(0)
        if current is None or any(current is other for other in seen):
            continue
        seen.append(current)
        reading = Reading()
        reading.take(current)
        yield reading
        with suppress(Exception):
            waiting += _behind(current)


def _behind(error: object) -> Iterator[object]:
    """The errors that one came from, wrapped, or keeps in an attribute."""
    kept = get(error, "__dict__")
    attributes = first(cast("dict[str, object]", kept).values(), 100) if isinstance(kept, dict) else []
    for held in [*(get(error, name) for name in _INNER), *attributes]:
        parts = first(cast("Iterable[object]", held), _CAUSES) if isinstance(held, tuple | list) else [held]
        yield from (part for part in parts if isinstance(part, BaseException))


def _is_reply(value: Mapping[object, object]) -> bool:
    """True for what a model said, whole or in part, rather than what a server says of a failure."""
    keys = fields(value).keys()
    return bool(_TALK & keys) or ("content" in keys and bool({"role", "stopreason"} & keys))
