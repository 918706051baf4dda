"""How each provider's stream differs from OpenAI's, as its documentation has it, and what its errors look like. Values and pure
functions; knows nothing of sockets.

One `Form` a provider: most are OpenAI's chunks with other fields; Cohere and Bedrock have events of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.doubles import converse, responses, wire
from tests.doubles.replies import Reply
from tests.doubles.wire import Body, sse, usage_of

Encoder = Callable[[Reply, Body], Iterator[bytes]]


@dataclass(frozen=True)
class Form:
    """One provider's way to stream. `error` makes the error object of a body or an event, `event` its bytes in a stream,
    `garbage` is a piece that cannot be read, `closing` ends a whole stream. `streams`: without being asked to."""

    stream: Encoder
    error: Callable[[int, str], Body] = field(default=lambda status, message: openai_error(status, message))
    event: Callable[[Any], bytes] = field(default=lambda error: sse(error))
    garbage: bytes = b'data: {"choices": [{"delta": {"conte\n\n'
    closing: bytes = b"data: [DONE]\n\n"
    streams: bool = False


def openai_error(status: int, message: str) -> Body:
    """As OpenAI words it, and whoever follows it."""
    kinds = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
    return {"error": {"message": message, "type": kinds.get(status, "invalid_request_error"), "code": status}}


def _anthropic_error(status: int, message: str) -> Body:
    kinds = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "invalid_request_error"), "message": message}}


def _gemini_error(status: int, message: str) -> Body:
    names = {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 529: "UNAVAILABLE"}
    return {"error": {"code": status, "message": message, "status": names.get(status, "INVALID_ARGUMENT")}}


# ── OpenAI's chunks with other fields ───────────────────────────────────────────────────────────────────────────────


def _reasoning_content(text: str) -> Body:
    return {"reasoning_content": text}


def _reasoning(text: str) -> Body:
    return {"reasoning": text}


def _detailed(text: str) -> Body:
    """OpenRouter tells a thought twice."""
    detail = {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
    return {"content": "", "reasoning": text, "reasoning_details": [detail]}


def _signed(signature: str) -> Body:
    detail = {"type": "reasoning.text", "signature": signature, "format": "anthropic-claude-v1", "index": 0}
    return {"content": "", "reasoning": None, "reasoning_details": [detail]}


def _thinking_part(text: str) -> Body:
    return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}


def openai_like(
    *,
    thought: Callable[[str], Body] = _reasoning_content,
    signed: Callable[[str], Body] | None = None,
    comment: bytes = b"",
    before: Body | None = None,
    whole_calls: bool = False,
    usage: Callable[[Body], Body] = lambda usage: {"usage": usage},
    usage_alone: bool = True,
    choice: Body | None = None,
) -> Encoder:
    """OpenAI's stream with another field for thoughts, comments between, a chunk before the first, calls in one piece, usage
    under another name and in the chunk with the finish reason."""

    def stream(reply: Reply, body: Body) -> Iterator[bytes]:
        def chunk(delta: Body, finish: str | None = None, **more: Any) -> bytes:
            data = wire.delta(body, delta, finish)
            data["choices"][0] |= choice or {}
            return sse({**data, **more})

        if before is not None:
            yield sse({**wire.delta(body, {}), **before})
        yield comment + chunk({"role": "assistant", "content": ""})
        for text in reply.texts(reply.reasoning):
            yield comment + chunk(thought(text))
        if signed and reply.signature:
            yield chunk(signed(reply.signature))
        for text in reply.texts(reply.text):
            yield chunk({"content": text})
        if whole_calls and reply.calls:
            yield chunk({"tool_calls": [wire.whole_call(c, index) for index, c in enumerate(reply.calls)]})
        elif reply.calls:
            for fragment in wire.interleaved(reply):
                yield chunk({"tool_calls": [fragment]})
        if reply.fault == "cut":
            return
        told = usage(usage_of(reply, body) or {})
        yield chunk({"content": ""}, reply.finish_reason, **({} if usage_alone else told))
        if usage_alone:
            yield sse({**wire.delta(body, {}), "choices": [], **told})

    return stream


def _deepseek_usage(usage: Body) -> Body:
    cached = (usage.pop("prompt_tokens_details", None) or {}).get("cached_tokens", 0)
    missed = usage.get("prompt_tokens", 0) - cached
    return {"usage": {**usage, "prompt_cache_hit_tokens": cached, "prompt_cache_miss_tokens": missed}}


def _moonshot_usage(usage: Body) -> Body:
    cached = (usage.pop("prompt_tokens_details", None) or {}).get("cached_tokens", 0)
    return {"usage": {**usage, "cached_tokens": cached}}


def _openrouter_usage(usage: Body) -> Body:
    return {"usage": {**usage, "cost": 0.0125, "cost_details": {"upstream_inference_cost": None}}}


def _xai_usage(usage: Body) -> Body:
    """xAI leaves the thoughts out of the completion and has them in the total."""
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens", 0)
    return {"usage": {**usage, "completion_tokens": usage.get("completion_tokens", 0) - thought}}


def _openrouter_error(status: int, message: str) -> Body:
    return {"error": {"code": status, "message": message, "metadata": {"provider_name": "Double"}}}


def _openrouter_event(error: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    return sse(
        {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m", **error, "choices": [choice]}
    )


def _mistral_error(status: int, message: str) -> Body:
    return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": "3051"}


# ── Cohere ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def cohere(reply: Reply, body: Body) -> Iterator[bytes]:
    """Events of /v2/chat."""

    def event(kind: str, index: int | None = None, **message: Any) -> bytes:
        place = {} if index is None else {"index": index}
        return f"event: {kind}\n".encode() + sse({"type": kind, **place, "delta": {"message": message}})

    yield event("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[])
    plan, index = (reply.text, 0) if reply.calls else ("", 0)
    if reply.reasoning:
        yield event("content-start", index, content={"type": "thinking", "thinking": ""})
        for text in reply.texts(reply.reasoning):
            yield event("content-delta", index, content={"thinking": text})
        yield event("content-end", index)
        index += 1
    for text in reply.texts(plan):
        yield event("tool-plan-delta", tool_plan=text)
    if reply.text and not plan:
        yield event("content-start", index, content={"type": "text", "text": ""})
        for text in reply.texts(reply.text):
            yield event("content-delta", index, content={"text": text})
        yield event("content-end", index)
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        yield event("tool-call-start", index, tool_calls={"id": call.id, "type": "function", "function": function})
        for text in reply.texts(call.arguments):
            yield event("tool-call-delta", index, tool_calls={"function": {"arguments": text}})
        yield event("tool-call-end", index)
    if reply.fault != "cut":
        reasons = {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS"}
        usage = usage_of(reply, body) or {}
        counts = {"input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens")}
        told = {"billed_units": counts, "tokens": counts, "cached_tokens": reply.cached}
        delta = {"finish_reason": reasons.get(reply.finish_reason, "ERROR"), "usage": told}
        yield b"event: message-end\n" + sse({"type": "message-end", "delta": delta})


_EXCEPTIONS = {429: "throttlingException", 500: "internalServerException", 529: "serviceUnavailableException"}


def _bedrock_error(status: int, message: str) -> Body:
    return {"message": message, "__type": _EXCEPTIONS.get(status, "validationException")}


FORMS: dict[str, Form] = {
    "openai": Form(wire.openai),
    "responses": Form(
        responses.stream,
        event=lambda error: responses.event(
            "error", code="server_error", message=error["error"]["message"], param=None
        ),
        garbage=b'event: response.output_text.delta\ndata: {"type": "response.output_te\n\n',
        closing=b"",
    ),
    "anthropic": Form(wire.anthropic, error=_anthropic_error, closing=b""),
    "gemini": Form(wire.gemini, error=_gemini_error, closing=b"", streams=True),
    "ollama": Form(wire.ollama, error=lambda status, message: {"error": message}, closing=b"", streams=True),
    "azure": Form(
        openai_like(
            before={"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]},
            choice={"content_filter_results": {}},
        ),
    ),
    "openrouter": Form(
        openai_like(thought=_detailed, signed=_signed, comment=b": OPENROUTER PROCESSING\n\n", usage=_openrouter_usage),
        error=_openrouter_error,
        event=_openrouter_event,
    ),
    "deepseek": Form(openai_like(comment=b": keep-alive\n\n", usage=_deepseek_usage, usage_alone=False)),
    "moonshot": Form(openai_like(usage=_moonshot_usage)),
    "mistral": Form(openai_like(thought=_thinking_part, whole_calls=True, usage_alone=False), error=_mistral_error),
    "groq": Form(
        openai_like(
            thought=_reasoning,
            whole_calls=True,
            usage=lambda usage: {"x_groq": {"id": "req_1", "usage": usage}},
            usage_alone=False,
        )
    ),
    "xai": Form(
        openai_like(whole_calls=True, usage=_xai_usage),
        error=lambda status, message: {"code": "Client specified an invalid argument", "error": message},
    ),
    "vllm": Form(openai_like(thought=_reasoning)),
    "cohere": Form(
        cohere,
        error=lambda status, message: {"id": "1", "message": message},
        event=lambda error: sse(
            {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": error["message"]}}
        ),
        closing=b"",
    ),
    "bedrock": Form(
        converse.stream,
        error=_bedrock_error,
        event=lambda error: converse.frame(error["__type"], {"message": error["message"]}, message="exception"),
        garbage=b"\x00\x00\x00\x20garbage that is no frame and has no checksum",
        closing=b"",
        streams=True,
    ),
}
