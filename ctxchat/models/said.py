"""Extracts from a failed call what the provider said: status, code, body and message. They are spread over a chain of exceptions,
since litellm wraps errors several times.

Does not import litellm and does not judge; `failures` does.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ctxchat.core.errors import UsageError
from ctxchat.core.expressions import expression
from ctxchat.core.network import proxy_for

_PREFIX = expression(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)\w*(?: Invalid Authentication)?(?::| -)\s*)+")
_LOST = expression(
    r"payload is not completed|TransferEncoding|reset by peer|peer closed|disconnected|incomplete.*read"
    r"|^(?:Read|RemoteProtocol)Error",
    re.I,
)

_ODD_LINE = expression(r"Got unexpected response from Ollama: (\{.*\})", re.S)
"""Matches litellm's error for a line of Ollama's stream that is no piece of a reply. Ollama sends its errors as such lines; the
status 400 that comes with it is litellm's."""

_GARBLED = expression(
    r"a piece that cannot be read|Error parsing chunk|Unterminated string|Expecting (?:value|property|',')|Checksum mismatch",
    re.I,
)
_NAMED = expression(r"^(\w+Exception) (\{.*\})$", re.S)
"""Matches Bedrock's errors inside a stream, as litellm writes them."""

_HOST = expression(r"Cannot connect to host (\S+)(?: ssl:.*)? \[([^\]]*)\]")


_MESSAGES = ("error", "message", "detail", "msg", "title")
"""Fields of an error's JSON that hold the message, or an object that does, in the order in which they are tried."""


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and its causes, the outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        error = original if isinstance(original, BaseException) else error.__cause__ or error.__context__


def garbled(chain: list[BaseException]) -> bool:
    """True where the server sent something that could not be parsed."""
    return any(_GARBLED.search(str(error)) for error in chain)


def spoken(chain: list[BaseException]) -> bool:
    """True where the server answered with an error of its own."""
    return any(getattr(error, "body", None) for error in chain)


def status(chain: list[BaseException]) -> int:
    """The HTTP status that the server sent: that of the innermost error with a response; 0 where there was none. Statuses that
    litellm made up are left out."""
    if _in_a_line(chain):
        return 0
    for error in reversed(chain):
        response = getattr(error, "response", None)
        if type(error).__module__.startswith(("httpx", "openai", "ctxchat")) and response is not None:
            return int(getattr(response, "status_code", 0) or 0)
    for error in reversed(chain):
        body = getattr(error, "body", None)
        for field in ("code", "status_code"):
            said = body.get(field) if isinstance(body, dict) else None
            if isinstance(said, int) and 400 <= said < 600:
                return said
    statuses = [getattr(error, "status_code", None) for error in chain if _says_status(error)]
    return next((int(s) for s in reversed(statuses) if isinstance(s, int | str) and str(s).isdigit()), 0)


def _says_status(error: BaseException) -> bool:
    """False for classes that have a status of litellm's own, although no server answered."""
    return type(error).__name__ not in {
        "APIConnectionError",
        "MidStreamFallbackError",
        "InternalServerError",
        "OpenAIError",
        "Timeout",
    }


def code(chain: list[BaseException]) -> str:
    """The provider's error code, or the error's type where it has no code; empty for neither."""
    bodies = [_object(error) for error in reversed(chain)]
    for field in ("code", "type", "status"):
        for body in bodies:
            said = body.get(field)
            if isinstance(said, str) and said and said not in {"error", "invalid_request_error"}:
                return said
    return next((str(b["type"]) for b in bodies if isinstance(b.get("type"), str)), "")


def body(chain: list[BaseException]) -> str:
    """The body of the provider's answer, as JSON where it was JSON; else the first line of the outermost error."""
    if in_stream := _in_a_line(chain):
        return in_stream
    for error in reversed(chain):
        if (body := getattr(error, "body", None)) not in (None, "", b"", {}):
            return body if isinstance(body, str) else _json(body)
    for error in reversed(chain):
        if _from_provider(error):
            text = _unquoted(str(error))
            try:
                return _json(json.loads(text))
            except (ValueError, RecursionError):
                return text
    return _first_line(chain[0])


def _in_a_line(chain: list[BaseException]) -> str:
    """The error in a line of Ollama's stream, as JSON; empty for anything else."""
    for error in chain:
        if match := _ODD_LINE.search(str(error)):
            try:
                line = ast.literal_eval(match[1])
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(line, dict) and line.get("error"):
                return _json({"error": line["error"]})
    return ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _object(error: BaseException) -> Mapping[str, Any]:
    """The object that describes the error in an exception's body; empty where it has none."""
    body: Any = getattr(error, "body", None)
    if body is None and _from_provider(error):
        try:
            body = json.loads(_unquoted(str(error)))
        except (ValueError, RecursionError):
            return {}
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    return body if isinstance(body, dict) else {}


def _from_provider(error: BaseException) -> bool:
    """True for litellm's own classes for a provider's answer, whose text is the body of that answer."""
    return type(error).__module__.startswith("litellm.llms") and "HTTPStatusError" not in type(error).__name__


def _unquoted(text: str) -> str:
    """The text of a body that litellm gives as the `repr` of bytes; any other text unchanged."""
    if text[:2] in {"b'", 'b"'} and text[-1:] == text[1]:
        return (
            text[2:-1]
            .encode()
            .decode("unicode_escape", "replace")
            .encode("latin-1", "replace")
            .decode("utf-8", "replace")
        )
    return text


def failure_words(kind: str, error: BaseException, body: str) -> str:
    """The provider's message in one line for people, without what litellm puts around it."""
    message = _sentence(_parse_json(named[2] if (named := _NAMED.match(body)) else body))
    message = _PREFIX.sub("", message.strip()).split("\n", 1)[0].partition(" Original exception:")[0][:500]
    message = message or type(error).__name__
    if _GARBLED.search(message):
        message = "The server sent a piece that cannot be read."
    if kind != "interrupted":
        return message
    return f"The reply broke off: {'the connection was lost.' if _LOST.search(message) else message}"


def _sentence(value: object, depth: int = 0) -> str:
    """The message in an error's JSON, at any depth, since gateways and validators nest it."""
    if isinstance(value, list):
        return "; ".join(_sentence(inner, depth + 1) for inner in value[:3])
    if not isinstance(value, dict) or depth > 5:
        return str(value)
    inner = next(
        (found for name in _MESSAGES if isinstance(found := value.get(name), str | dict | list) and found), None
    )
    if inner is None:
        return _json(value)
    message, behind = _sentence(inner, depth + 1), value.get("metadata")
    if isinstance(value.get("loc"), list):
        message = f"{message} ({'.'.join(map(str, value['loc']))})"
    if isinstance(behind, dict) and isinstance(behind.get("raw"), str) and behind["raw"]:
        message = f"{message}: {_sentence(_parse_json(behind['raw']), depth + 1)}"
    return message


def _parse_json(text: str) -> object:
    """A text as a JSON value; the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


NOBODY = "nobody listens there"


def unreached(chain: list[BaseException]) -> str:
    """The text for people about a failed connection: which server or proxy could not be reached, and why."""
    for error in chain:
        if match := _HOST.search(str(error)):
            why = NOBODY if match[2].startswith("Connect call failed") else match[2]
            return f"Cannot connect to {match[1]}: {why}."
        if text := _connect_error_text(error):
            return text
    words = failure_words("connection", chain[0], body(chain))
    return "The connection was lost before the reply began." if _LOST.search(words) else words


def _connect_error_text(error: BaseException) -> str:
    """The text for httpx's ConnectError; empty for any other error."""
    url = getattr(getattr(error, "request", None), "url", None)
    if type(error).__name__ != "ConnectError" or url is None:
        return ""
    why = re.sub(r"^\[Errno -?\d+\] ", "", str(error))
    where = _proxy_on_the_way(str(url)) or url.netloc.decode("ascii", "replace").rpartition("@")[2]
    return f"Cannot connect to {where}: {NOBODY if why.startswith('All conn') else why}."


def _proxy_on_the_way(url: str) -> str:
    """The proxy that a request to this URL goes through, in words and without its login; empty for none."""
    try:
        proxy = proxy_for(url, os.environ)
    except UsageError:
        return ""
    return f"the proxy {urlsplit(proxy).netloc.rpartition('@')[2]}" if proxy else ""


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
