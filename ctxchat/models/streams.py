"""Parses the lines of providers' streams and corrects providers' deviations for both transports; and reads litellm's streams,
patching the places where litellm would lose or misread lines.

Knows the lines of a stream and where litellm parses them, not the contents of a reply.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec

from ctxchat.models import cohere
from ctxchat.models.protocol import sound

T = TypeVar("T")


async def wait_within(seconds: float, awaited: Awaitable[T]) -> T:
    """The awaited result. Raises TimeoutError after that many seconds, with a message that says how long nothing came."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError as late:
        raise TimeoutError(f"Nothing came for {seconds:g} seconds.") from late


async def pieces(stream: Any, seconds: float) -> AsyncIterator[Any]:
    """The pieces of a stream. Raises TimeoutError when none comes within `seconds`."""
    while True:
        try:
            piece = await wait_within(seconds, anext(stream))
        except StopAsyncIteration:
            return
        yield piece


class Listener(Protocol):
    """Reads one of litellm's streams. `ended`: the provider has said why the reply ended."""

    stream: Any

    @property
    def ended(self) -> bool: ...

    def chunks(self) -> AsyncIterator[Any]: ...


class PlainListener:
    """Passes on litellm's chunks as they are. `seconds` is the timeout for a chunk; 0 where litellm applies its own."""

    def __init__(self, stream: Any, seconds: float = 0) -> None:
        self.stream = stream
        self._seconds = seconds

    @property
    def ended(self) -> bool:
        """Whether the provider sent a finish reason or its usage: litellm reports `stop` for a stream that broke off, too."""
        stream = self.stream
        return bool(stream.received_finish_reason) or bool(stream.chunks and getattr(stream.chunks[-1], "usage", None))

    def chunks(self) -> AsyncIterator[Any]:
        """litellm's chunks. Raises TimeoutError."""
        return pieces(self.stream, self._seconds) if self._seconds else aiter(self.stream)


def is_gemini(model: str) -> bool:
    """Whether this model's streams need `GeminiListener`."""
    return model.startswith(("gemini/", "vertex_ai/gemini"))


class GeminiListener:
    """Reads Gemini's streams with a timeout and detects whether a reply is complete: litellm ignores its timeout for them, and
    invents a finish reason where a stream just stops."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self.stream = stream
        self._seconds = seconds
        self.ended = False

    async def chunks(self) -> AsyncIterator[Any]:
        """litellm's chunks. Raises TimeoutError when none comes in time."""
        await wait_within(self._seconds, self.stream.fetch_stream())
        self._watch(self.stream.completion_stream)
        async for chunk in pieces(self.stream, self._seconds):
            yield chunk

    def _watch(self, raw: Any) -> None:
        """Look for the finish reason in Gemini's chunks before litellm converts them; where that is impossible, assume that every
        reply is complete."""
        parse = getattr(raw, "chunk_parser", None)
        self.ended = parse is None
        if parse is None:
            return

        def watched(chunk: dict[str, Any]) -> Any:
            candidates = chunk.get("candidates") or ()
            blocked = (chunk.get("promptFeedback") or {}).get("blockReason")
            self.ended = self.ended or bool(blocked) or any(c.get("finishReason") for c in candidates)
            return parse(chunk)

        raw.chunk_parser = watched


async def listen(stream: Awaitable[Any], model: str, seconds: float) -> Listener:
    """The listener for this model's stream, once the provider has begun to answer. `seconds` is the timeout for a piece, applied
    where litellm does not apply its own. Raises what litellm raises, and TimeoutError."""
    if model.startswith("bedrock/"):
        return PlainListener(await wait_within(seconds, stream), seconds)
    begun = await stream
    if is_gemini(model):
        return GeminiListener(begun, seconds)
    raw = getattr(begun, "completion_stream", None)
    response = _response(raw) or _response(getattr(raw, "streaming_response", None))
    try:
        await _refuse(response)
    except BaseException:
        await begun.aclose()
        raise
    if response is not None and hasattr(response, "aiter_bytes") and _of_lines(response):
        response.aiter_bytes = _readable(response.aiter_bytes)
    _mend(raw, model)
    begun._should_fail_on_clean_eof = lambda: False  # `ended` says whether a stream that just ends was complete
    return PlainListener(begun)


def read_line(line: str) -> dict[str, Any] | None:
    """The JSON object in a line of a stream; None for the end mark, comments and the names of events. Raises ValueError for an
    object that cannot be parsed."""
    data = line.strip().removeprefix("data:").strip()
    if not data.startswith("{"):
        return None
    try:
        read = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        read = _read_leniently(data)
    return read if isinstance(read, dict) else None


def _read_leniently(data: str) -> Any:
    """Parse JSON that may contain NaN, and half surrogate pairs, which become question marks."""
    try:
        return sound(json.loads(data))
    except (ValueError, RecursionError):
        raise ValueError("The server sent a piece that cannot be read.") from None


def mended(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk in OpenAI's form, corrected: providers put some fields where litellm does not look for them, or in a form it
    drops."""
    if chunk.get("object") == "error":
        return {"error": chunk}
    groq = chunk.get("x_groq") or {}
    if groq.get("usage") and not chunk.get("usage"):
        chunk = {**chunk, "usage": groq["usage"]}
    if groq.get("error") and not chunk.get("error"):
        chunk = {**chunk, "error": {"message": str(groq["error"])}}
    chunk = _with_figures(chunk)
    for choice in chunk.get("choices") or ():
        if isinstance(choice.get("message"), dict) and not choice.get("delta"):
            choice["delta"] = _as_delta(choice.pop("message"))
        delta = choice.get("delta") or {}
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"] = [_call_in_texts(call) for call in delta["tool_calls"] if isinstance(call, dict)]
        if delta.get("reasoning_details") and delta.get("reasoning") is None:
            delta["reasoning"] = ""  # otherwise a chunk with nothing but a signature counts as empty
    return chunk


def told_error(chunk: dict[str, Any]) -> tuple[str, int, dict[str, Any]] | None:
    """The error in a piece of a stream: its message, HTTP status (0 where it has none) and body; None for any other piece."""
    error = chunk.get("error")
    if not error:
        return None
    body: dict[str, Any] = error if isinstance(error, dict) else {"message": str(error)}
    codes = [code for name in ("status_code", "code") if isinstance(code := body.get(name), int) and 400 <= code < 600]
    return str(body.get("message") or json.dumps(body)), codes[0] if codes else 0, body


def _as_delta(message: dict[str, Any]) -> dict[str, Any]:
    """A whole message, which some servers send although a stream was requested, as the only delta of a stream."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [{**c, "index": place} for place, c in enumerate(calls) if isinstance(c, dict)]}


def _call_in_texts(call: dict[str, Any]) -> dict[str, Any]:
    """A tool call with id, name and arguments as strings; other types are encoded as JSON."""
    sent = call.get("function")
    function = sent if isinstance(sent, dict) else {}
    fields = {name: _as_text(function[name]) for name in ("name", "arguments") if function.get(name) is not None}
    return {**call, "id": call.get("id") and _as_text(call["id"]), "function": {**function, **fields}}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _with_figures(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk whose usage, wherever its provider puts it, contains numbers only: litellm drops the whole reply for any other
    value."""
    for name in ("usage", "usageMetadata"):
        if name in chunk:
            chunk = {**chunk, name: _numbers_only(chunk[name])}
    message = chunk.get("message")
    if isinstance(message, dict) and "usage" in message:
        chunk = {**chunk, "message": {**message, "usage": _numbers_only(message["usage"])}}
    return chunk


def _numbers_only(usage: Any) -> dict[str, Any] | None:
    """A usage with only its finite numbers, at any depth; None where it is no object."""
    if not isinstance(usage, dict):
        return None
    numbers = {
        k: v for k, v in usage.items() if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)
    }
    inner = {k: _numbers_only(v) for k, v in usage.items() if isinstance(v, dict)}
    # Anthropic's, where one request made several calls of the model
    iterations = [
        {**(_numbers_only(each) or {}), "type": str(each.get("type"))}
        for each in usage.get("iterations") or ()
        if isinstance(each, dict)
    ]
    return {**numbers, **inner, **({"iterations": iterations} if iterations else {})}


def _at_once(body: bytes) -> Callable[..., AsyncIterator[bytes]]:
    """A function that yields a whole body at once, in place of one that streams it."""

    async def read(*_: Any) -> AsyncIterator[bytes]:
        yield body

    return read


def _of_lines(response: Any) -> bool:
    """Whether a response is a stream of text lines, not of AWS's binary messages."""
    return "amazon" not in response.headers.get("content-type", "")


def _readable(pieces: Callable[..., AsyncIterator[bytes]]) -> Callable[..., AsyncIterator[bytes]]:
    """Corrects the bytes of a stream for OpenAI's library: replaces invalid UTF-8, which it takes for a lost connection, and
    corrects each line."""

    async def read(*args: Any) -> AsyncIterator[bytes]:
        characters, held = codecs.getincrementaldecoder("utf-8")("replace"), ""
        async for piece in pieces(*args):
            *lines, held = (held + characters.decode(piece)).split("\n")
            for line in lines:
                yield f"{_mended_line(line)}\n".encode()
        yield f"{_mended_line(held + characters.decode(b'', True))}\n\n".encode()

    return read


def _mended_line(line: str) -> str:
    """The line with its chunk corrected where it holds usage, calls or a whole answer; a line that cannot be parsed is kept."""
    if not ('"usage"' in line or '"tool_calls"' in line or line.startswith("{")):
        return line
    try:
        read = read_line(line)
    except ValueError:
        return line
    return line if read is None else f"data: {json.dumps(mended(read))}\n"


def _response(raw: Any) -> Any:
    return getattr(raw, "response", None) or getattr(raw, "http_response", None)


async def _refuse(response: Any) -> None:
    """Raise the error in a JSON body that came with status 200 instead of a stream, which litellm would read as an empty reply;
    a body without an error is left to be read."""
    headers = getattr(response, "headers", {})
    if "json" not in headers.get("content-type", "") or "content-length" not in headers:
        return
    try:
        body = json.loads(await response.aread())
    except (ValueError, RecursionError):
        return
    if isinstance(body, dict):
        _raise_error(mended(body))
        response.aiter_bytes = _at_once(json.dumps(body).encode())


def _mend(raw: Any, model: str) -> None:
    """Replace litellm's parsing of lines: it ends a stream at a `[DONE]` that the model wrote, skips what it cannot parse, and
    expects another form of Cohere's events. Streams that other libraries parse are left alone."""
    inner: Any = getattr(raw, "streaming_response", None)
    if _parsed_by_line(raw):
        raw._handle_string_chunk = _line_handler(raw._handle_string_chunk, raw.chunk_parser)
    elif hasattr(inner, "_process_chunk"):
        inner._process_chunk = _responses_handler(inner._process_chunk)
    elif cohere.is_cohere(model) and hasattr(raw, "convert_str_chunk_to_generic_chunk"):
        raw.convert_str_chunk_to_generic_chunk = _cohere_handler()


def _parsed_by_line(raw: Any) -> bool:
    """Whether a stream is parsed by litellm's common line parser; some classes derived from it parse other things."""
    common = next((kind for kind in type(raw).__mro__ if kind.__name__ == "BaseModelResponseIterator"), None)
    return common is not None and type(raw)._handle_string_chunk is common._handle_string_chunk


def _line_handler(usual: Callable[[str], Any], parse: Callable[[dict[str, Any]], Any]) -> Callable[[str], Any]:
    """A function for litellm that parses a line of a stream with our corrections; lines that hold no JSON go to litellm's own."""

    def handled(str_line: str) -> Any:
        read = read_line(str_line)
        if read is None:
            return usual("data: [DONE]" if "[DONE]" in str_line else "")
        read = mended(read)
        _raise_error(read)
        return parse(read)

    return handled


def _cohere_handler() -> Callable[[str], Any]:
    """A function for litellm that parses Cohere's events by `cohere.chunk`."""
    from litellm.llms.openai.chat.gpt_transformation import OpenAIChatCompletionStreamingHandler

    parser = OpenAIChatCompletionStreamingHandler(streaming_response=None, sync_stream=False)

    def handled(chunk: str) -> Any:
        read = cohere.chunk(read_line(chunk) or {})
        _raise_error(read)
        return parser.chunk_parser(read)

    return handled


def _responses_handler(usual: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser for OpenAI's Responses events: litellm skips those it cannot parse, and drops an error's message."""

    def handled(chunk: str) -> Any:
        event = read_line(f"data: {chunk}") or {}
        if event.get("type") == "error":
            _raise_error({"error": event.get("error") or event})
        return usual(chunk)

    return handled


def _raise_error(chunk: dict[str, Any]) -> None:
    """Raise the error in a chunk, if there is one, with the provider's message and status."""
    if error := told_error(chunk):
        from litellm.llms.openai.common_utils import OpenAIError

        message, status, body = error
        raise OpenAIError(status_code=status or 500, message=message, body=body)
