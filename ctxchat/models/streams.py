"""The lines of providers' streams: what is odd about them is put right here for both transports; and hearing litellm's streams
out, whose reading of them loses some.

Knows the lines of a stream and where litellm takes them apart, not what a reply says.
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
    """What is waited for. Raises TimeoutError, which says how long nothing came."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError as late:
        raise TimeoutError(f"Nothing came for {seconds:g} seconds.") from late


async def pieces(stream: Any, seconds: float) -> AsyncIterator[Any]:
    """Those of a stream. Raises TimeoutError when none comes in time."""
    while True:
        try:
            piece = await wait_within(seconds, anext(stream))
        except StopAsyncIteration:
            return
        yield piece


class Listener(Protocol):
    """One stream while it is read. `ended`: the provider has said why the reply ended."""

    stream: Any

    @property
    def ended(self) -> bool: ...

    def chunks(self) -> AsyncIterator[Any]: ...


class PlainListener:
    """A stream that litellm reads as it comes. `seconds` 0: it looks at the time itself."""

    def __init__(self, stream: Any, seconds: float = 0) -> None:
        self.stream = stream
        self._seconds = seconds

    @property
    def ended(self) -> bool:
        """litellm says `stop` for a stream that ended in the middle of the reply too; what it received tells them apart."""
        stream = self.stream
        return bool(stream.received_finish_reason) or bool(stream.chunks and getattr(stream.chunks[-1], "usage", None))

    def chunks(self) -> AsyncIterator[Any]:
        """litellm's chunks. Raises TimeoutError."""
        return pieces(self.stream, self._seconds) if self._seconds else aiter(self.stream)


def is_gemini(model: str) -> bool:
    """litellm reads this model's streams as `GeminiListener` says."""
    return model.startswith(("gemini/", "vertex_ai/gemini"))


class GeminiListener:
    """What litellm does not tell of Gemini's streams: whether a reply came to its end, and that nothing comes any more. It reads
    them without the timeout it was given, and makes a reason up where a stream just stops."""

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
        """Look at what is read on its way into litellm's own form; where that cannot be done, every end is believed."""
        parse = getattr(raw, "chunk_parser", None)
        self.ended = parse is None
        if parse is None:
            return

        def seen(chunk: dict[str, Any]) -> Any:
            candidates = chunk.get("candidates") or ()
            blocked = (chunk.get("promptFeedback") or {}).get("blockReason")
            self.ended = self.ended or bool(blocked) or any(c.get("finishReason") for c in candidates)
            return parse(chunk)

        raw.chunk_parser = seen


async def listen(stream: Awaitable[Any], model: str, seconds: float) -> Listener:
    """The listener for this model's stream, once the provider has begun to answer; `seconds` without a piece are too many where
    litellm does not look at the time. Raises what litellm raises, and TimeoutError."""
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
    begun._should_fail_on_clean_eof = lambda: False  # whether a stream that just ends was whole, `ended` says
    return PlainListener(begun)


def read_line(line: str) -> dict[str, Any] | None:
    """The object in a line of a stream; None for its end, comments and the names of events. Raises ValueError where one begins
    that cannot be read."""
    data = line.strip().removeprefix("data:").strip()
    if not data.startswith("{"):
        return None
    try:
        read = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        read = _read_leniently(data)
    return read if isinstance(read, dict) else None


def _read_leniently(data: str) -> Any:
    """With NaN, and halves of characters as question marks."""
    try:
        return sound(json.loads(data))
    except (ValueError, RecursionError):
        raise ValueError("The server sent a piece that cannot be read.") from None


def mended(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk of OpenAI's form with what providers add in places where litellm does not look, or drops what it finds."""
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
            choice["delta"] = _said_at_once(choice.pop("message"))
        delta = choice.get("delta") or {}
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"] = [_written(call) for call in delta["tool_calls"] if isinstance(call, dict)]
        if delta.get("reasoning_details") and delta.get("reasoning") is None:
            delta["reasoning"] = ""  # a chunk with a signature alone counts as empty otherwise
    return chunk


def told_error(chunk: dict[str, Any]) -> tuple[str, int, dict[str, Any]] | None:
    """The error that a piece of a stream tells of: words, status (0 where it has none) and body; None for any other piece."""
    error = chunk.get("error")
    if not error:
        return None
    body: dict[str, Any] = error if isinstance(error, dict) else {"message": str(error)}
    codes = [code for name in ("status_code", "code") if isinstance(code := body.get(name), int) and 400 <= code < 600]
    return str(body.get("message") or json.dumps(body)), codes[0] if codes else 0, body


def _said_at_once(message: dict[str, Any]) -> dict[str, Any]:
    """A whole reply, which some send where a stream was asked for, as the one piece of a stream."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [{**c, "index": place} for place, c in enumerate(calls) if isinstance(c, dict)]}


def _written(call: dict[str, Any]) -> dict[str, Any]:
    """A call whose id, name and arguments are texts, as JSON where they came as something else."""
    given = call.get("function")
    function = given if isinstance(given, dict) else {}
    fields = {name: _as_text(function[name]) for name in ("name", "arguments") if function.get(name) is not None}
    return {**call, "id": call.get("id") and _as_text(call["id"]), "function": {**function, **fields}}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _with_figures(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk whose usage holds numbers only, wherever its provider puts it: litellm drops a whole reply for a figure that is
    none."""
    for name in ("usage", "usageMetadata"):
        if name in chunk:
            chunk = {**chunk, name: _context_usage(chunk[name])}
    message = chunk.get("message")
    if isinstance(message, dict) and "usage" in message:
        chunk = {**chunk, "message": {**message, "usage": _context_usage(message["usage"])}}
    return chunk


def _context_usage(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, dict):
        return None
    numbers = {
        k: v for k, v in usage.items() if isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)
    }
    inner = {k: _context_usage(v) for k, v in usage.items() if isinstance(v, dict)}
    told = [
        each for each in usage.get("iterations") or () if isinstance(each, dict)
    ]  # Anthropic's, of several calls in one
    apart = {"iterations": [{**(_context_usage(each) or {}), "type": str(each.get("type"))} for each in told]}
    return {**numbers, **inner, **(apart if told else {})}


def _at_once(body: bytes) -> Callable[..., AsyncIterator[bytes]]:
    async def read(*_: Any) -> AsyncIterator[bytes]:
        yield body

    return read


def _of_lines(response: Any) -> bool:
    """A stream of text, and not of AWS's binary messages."""
    return "amazon" not in response.headers.get("content-type", "")


def _readable(pieces: Callable[..., AsyncIterator[bytes]]) -> Callable[..., AsyncIterator[bytes]]:
    """The bytes of a stream as OpenAI's library can read them: what is no character replaced, which it takes for a lost
    connection; a whole answer as one piece of a stream; usage in numbers, calls in texts."""

    async def read(*args: Any) -> AsyncIterator[bytes]:
        characters, held = codecs.getincrementaldecoder("utf-8")("replace"), ""
        async for piece in pieces(*args):
            *lines, held = (held + characters.decode(piece)).split("\n")
            for line in lines:
                yield f"{_mended_line(line)}\n".encode()
        yield f"{_mended_line(held + characters.decode(b'', True))}\n\n".encode()

    return read


def _mended_line(line: str) -> str:
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
    """Raise the error of a whole body that came with a 200 where a stream should be, which would be read as an empty one."""
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
    """Take over where litellm takes a line apart: it ends a stream at a `[DONE]` that the model wrote, leaves out what it cannot
    read, and knows another form of Cohere's events. Streams that other libraries read are left alone."""
    inner: Any = getattr(raw, "streaming_response", None)
    if _taken_apart_by_line(raw):
        raw._handle_string_chunk = _line_handler(raw._handle_string_chunk, raw.chunk_parser)
    elif hasattr(inner, "_process_chunk"):
        inner._process_chunk = _responses(inner._process_chunk)
    elif cohere.is_cohere(model) and hasattr(raw, "convert_str_chunk_to_generic_chunk"):
        raw.convert_str_chunk_to_generic_chunk = _events()


def _taken_apart_by_line(raw: Any) -> bool:
    """True for the readers that take lines as litellm's common one does; some of those made from it take other things."""
    common = next((kind for kind in type(raw).__mro__ if kind.__name__ == "BaseModelResponseIterator"), None)
    return common is not None and type(raw)._handle_string_chunk is common._handle_string_chunk


def _line_handler(usual: Callable[[str], Any], parse: Callable[[dict[str, Any]], Any]) -> Callable[[str], Any]:
    def handled(str_line: str) -> Any:
        read = read_line(str_line)
        if read is None:
            return usual("data: [DONE]" if "[DONE]" in str_line else "")
        read = mended(read)
        _raise_error(read)
        return parse(read)

    return handled


def _events() -> Callable[[str], Any]:
    from litellm.llms.openai.chat.gpt_transformation import OpenAIChatCompletionStreamingHandler

    parser = OpenAIChatCompletionStreamingHandler(streaming_response=None, sync_stream=False)

    def handled(chunk: str) -> Any:
        read = cohere.chunk(read_line(chunk) or {})
        _raise_error(read)
        return parser.chunk_parser(read)

    return handled


def _responses(usual: Callable[[str], Any]) -> Callable[[str], Any]:
    """OpenAI's newer form: litellm leaves out what it cannot read there, and the words of an error."""

    def handled(chunk: str) -> Any:
        event = read_line(f"data: {chunk}") or {}
        if event.get("type") == "error":
            _raise_error({"error": event.get("error") or event})
        return usual(chunk)

    return handled


def _raise_error(chunk: dict[str, Any]) -> None:
    """Raise the error a stream tells of, with its own words and code."""
    if told := told_error(chunk):
        from litellm.llms.openai.common_utils import OpenAIError

        words, status, body = told
        raise OpenAIError(status_code=status or 500, message=words, body=body)
