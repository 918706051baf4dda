"""What went wrong with a call, in the terms of core.errors.ModelError, from whatever exception came out of litellm.

Reads classes by name, statuses, bodies and headers along the chain of causes, because litellm drops some of them on the
way; does not import litellm. A refusal whose words alone hint at an overflow stays what it is: the core judges those.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ctxchat.core.overflow import is_context_overflow, overflow_code
from ctxchat.models.protocol import Failure
from ctxchat.models.retry_after import retry_after

_QUOTA = re.compile(
    r"insufficient.{0,3}(quota|balance|funds|credit)|credit balance|billing|payment|out of credits", re.I
)
_OUTPUT = re.compile(r"max_(?:completion_|new_|output_)?tokens|in the completion", re.I)
_KEY = re.compile(
    r"api.?key (?:not|is) (?:valid|found|expired|invalid)|api_key_invalid"
    r"|(?:incorrect|invalid|expired) (?:api|proxy)\b.{0,20}(?:key|token)|no_db_connection",
    re.I,
)
"""Refused keys that come with a 400: Gemini's, xAI's, and litellm's proxy where it has no database to look the key up in."""
_NO_KEY = re.compile(
    r"missing credentials|api_?key\b.{0,20}must be set|credentials were not found|unable to locate credentials", re.I
)
"""What clients say that find no key, before anything is sent."""
_FILTER = re.compile(r"content.?(filter|policy|management)|safety system|flagged", re.I)
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)\w*(?::| -)\s*)+")
_LOST = re.compile(
    r"payload is not completed|TransferEncoding|reset by peer|peer closed|disconnected|incomplete.*read", re.I
)

_ODD_LINE = re.compile(r"Got unexpected response from Ollama: (\{.*\})", re.S)
"""litellm makes a status 400 of any line of Ollama's stream that is no piece of a reply; errors come as such lines."""

_ENDED = re.compile(r"raised a streaming error - finish_reason: error")
"""litellm's words where a provider gives its own trouble as the reason for the end."""

_MISWRITTEN = {"tool_use_failed", "output_parse_failed"}
"""Groq's codes for what its model wrote and it could not read: the request is not at fault."""

_NO_CONNECTION = {"ConnectError", "ClientConnectorError", "ConnectTimeout"}
_HOST = re.compile(r"Cannot connect to host (\S+)(?: ssl:.*)? \[([^\]]*)\]")

_BY_STATUS = {
    400: "bad_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    413: "bad_request",
    422: "bad_request",
    429: "rate_limit",
}

_HINTS = {
    "auth": "Check the key and what it may use.",
    "quota": "Check the account's plan and balance, or choose another model.",
    "not_found": "Check the model's name and the server's address; those of OpenAI's style mostly end in /v1.",
    "connection": "Check that the server runs and that the address is right.",
    "timeout": "The server took too long; raise `timeout`, or send less.",
    "empty": "Local servers do this when the prompt does not fit: check the context size the server was started with.",
    "interrupted": "What had arrived is kept.",
}


def failure(id: int, error: BaseException, began: bool) -> Failure:
    """An exception as a line for the other side. `began`: parts of the reply had already arrived."""
    chain = list(_chain(error))
    if any(_ENDED.search(str(error)) for error in chain):
        return ended_badly(id, "ERROR", began=began)
    status, code, body = _status(chain), _code(chain), _body(chain)
    kind = _kind(chain, status, code, body, began)
    return Failure(
        id=id,
        text=_unreached(chain) if kind == "connection" else _words(kind, error, body),
        hint=_HINTS.get(kind, ""),
        kind=kind,
        status=0 if kind == "connection" else status,
        code=code,
        body=body,
        retry_after=retry_after(chain, body),
    )


def cut_off(id: int) -> Failure:
    """The stream ended in good order, but before the reply did."""
    return Failure(id, "The stream ended before the reply was complete.", _HINTS["interrupted"], "interrupted")


def ended_badly(id: int, reason: str, *, began: bool) -> Failure:
    """The provider ended the reply with a reason that is none of a reply. `began`: parts of it had arrived."""
    kind = "interrupted" if began else "server"
    text = f"The provider ended the reply with {reason}."
    return Failure(id, text, _HINTS.get(kind, ""), kind)


def nothing_came(id: int, finish: str) -> Failure:
    """The stream ended without text, call or thought."""
    if finish == "content_filter":
        return Failure(id, "The provider's content filter stopped the reply.", kind="content_filter")
    if finish == "length":
        text = "The output limit was reached before the model said anything."
        return Failure(id, text, "Raise `max_output`, or let the model think less.", "empty")
    return Failure(id, "The model sent an empty reply.", _HINTS["empty"], "empty")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        error = original if isinstance(original, BaseException) else error.__cause__ or error.__context__


def _kind(chain: list[BaseException], status: int, code: str, body: str, began: bool) -> str:
    names = {base.__name__ for error in chain for base in type(error).__mro__}
    classed = "ContextWindowExceededError" in names and is_context_overflow(chain[0])
    if classed or overflow_code(code, body):  # where the output's limit is named, the core reads the words
        return "bad_request" if _OUTPUT.search(body) else "overflow"
    if "ContentPolicyViolationError" in names or (status in {0, 400, 403} and _FILTER.search(code)):
        return "content_filter"
    if (status == 400 and _KEY.search(f"{code} {body}")) or (status in {0, 500} and not began and _unsaid_key(chain)):
        return "auth"
    if status in {400, 402, 403, 429} and _QUOTA.search(f"{code} {body}"):
        return "quota"
    if code in _MISWRITTEN:
        return "interrupted" if began else "server"
    if "ModuleNotFoundError" in names:
        return "not_found"  # some providers need a package that litellm does not bring
    if names & _NO_CONNECTION and not began:
        return "connection"  # litellm makes a status 500 of it for some providers
    if status in _BY_STATUS and not (began and status in {408, 409, 429}):
        return _BY_STATUS[status]
    if began:
        return "interrupted"
    if names & {"TimeoutException", "APITimeoutError", "Timeout", "TimeoutError"}:
        return "timeout"
    if status == 0 and names & {
        "NetworkError",
        "ProtocolError",
        "APIConnectionError",
        "ConnectionError",
        "ClientError",
    }:
        return "connection"
    return "server" if status == 0 or status >= 500 else "bad_request"


def _unsaid_key(chain: list[BaseException]) -> bool:
    return any(_NO_KEY.search(str(error)) for error in chain)


def _status(chain: list[BaseException]) -> int:
    """The status the server really sent: the deepest one with a response behind it; 0 where there was none."""
    if _in_a_line(chain):
        return 0
    for error in reversed(chain):
        response = getattr(error, "response", None)
        if type(error).__module__.startswith(("httpx", "openai")) and response is not None:
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
    """litellm gives a status of its own to what never got an answer: such classes are not believed."""
    return type(error).__name__ not in {
        "APIConnectionError",
        "MidStreamFallbackError",
        "InternalServerError",
        "OpenAIError",
        "Timeout",
    }


def _code(chain: list[BaseException]) -> str:
    """The provider's own code, or its type where it has no code."""
    bodies = [_object(error) for error in reversed(chain)]
    for field in ("code", "type", "status"):
        for body in bodies:
            said = body.get(field)
            if isinstance(said, str) and said and said not in {"error", "invalid_request_error"}:
                return said
    return next((str(b["type"]) for b in bodies if isinstance(b.get("type"), str)), "")


def _body(chain: list[BaseException]) -> str:
    """The provider's own words, as JSON where they were JSON."""
    if said := _in_a_line(chain):
        return said
    for error in reversed(chain):
        if (body := getattr(error, "body", None)) not in (None, "", b"", {}):
            return body if isinstance(body, str) else _json(body)
    for error in reversed(chain):
        if _from_provider(error):
            text = _unquoted(str(error))
            try:
                return _json(json.loads(text))
            except ValueError:
                return text
    return _first_line(chain[0])


def _in_a_line(chain: list[BaseException]) -> str:
    """The error in a line of Ollama's stream, as JSON; empty for anything else."""
    for error in chain:
        if found := _ODD_LINE.search(str(error)):
            try:
                line = ast.literal_eval(found[1])
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(line, dict) and line.get("error"):
                return _json({"error": line["error"]})
    return ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _object(error: BaseException) -> Mapping[str, Any]:
    body: Any = getattr(error, "body", None)
    if body is None and _from_provider(error):
        try:
            body = json.loads(_unquoted(str(error)))
        except ValueError:
            return {}
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    return body if isinstance(body, dict) else {}


def _from_provider(error: BaseException) -> bool:
    """litellm's own classes for what a provider answered; their text is its body."""
    return type(error).__module__.startswith("litellm.llms") and "HTTPStatusError" not in type(error).__name__


def _unquoted(text: str) -> str:
    """litellm shows some bodies as the repr of bytes."""
    if text[:2] in {"b'", 'b"'} and text[-1:] == text[1]:
        return (
            text[2:-1]
            .encode()
            .decode("unicode_escape", "replace")
            .encode("latin-1", "replace")
            .decode("utf-8", "replace")
        )
    return text


def _words(kind: str, error: BaseException, body: str) -> str:
    """One line for people: the provider's message without litellm's wrapping."""
    message = body
    try:
        parsed = json.loads(body)
        inner = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
        message = str(inner.get("message", inner)) if isinstance(inner, dict) else str(inner)
    except ValueError:
        pass
    message = _PREFIX.sub("", message.strip()).split("\n", 1)[0].partition(" Original exception:")[0][:500]
    message = message or type(error).__name__
    if kind != "interrupted":
        return message
    return (
        "The reply broke off: the connection was lost." if _LOST.search(message) else f"The reply broke off: {message}"
    )


def _unreached(chain: list[BaseException]) -> str:
    """Where there was no connection to, and why, without what only programmers read."""
    for error in chain:
        if found := _HOST.search(str(error)):
            refused = found[2].startswith("Connect call failed")
            return f"Cannot connect to {found[1]}: {'nobody listens there' if refused else found[2]}."
    return _words("connection", chain[0], _body(chain))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
