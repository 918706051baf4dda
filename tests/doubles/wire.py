"""The bytes of a scripted reply in each server's own streaming form: OpenAI, Anthropic, Gemini, Ollama. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.doubles.replies import Call, Reply

Body = dict[str, Any]


def without_nulls(messages: object) -> list[Body]:
    """Messages without fields that hold nothing."""
    rows = messages if isinstance(messages, list) else []
    return [{k: v for k, v in row.items() if v is not None} if isinstance(row, dict) else row for row in rows]


def tokens_of(value: object) -> int:
    """The double's own count: four characters of JSON a token."""
    return max(1, len(json.dumps(value)) // 4)


def usage_of(reply: Reply, body: Body) -> Body | None:
    """Usage in OpenAI's form."""
    if reply.usage != "counted":
        return reply.usage
    prompt = tokens_of([without_nulls(body.get("messages")), body.get("tools")]) + reply.cached
    completion = tokens_of([reply.text, reply.reasoning, *[c.arguments for c in reply.calls]])
    usage: Body = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if reply.cached:
        usage["prompt_tokens_details"] = {"cached_tokens": reply.cached}
    if reply.reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": tokens_of(reply.reasoning)}
    return usage


# ── OpenAI ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def openai(reply: Reply, body: Body) -> Iterator[bytes]:
    """Server-sent events of /v1/chat/completions, one chunk a time, without the closing [DONE]."""
    yield sse(delta(body, {"role": "assistant", "content": ""}))
    for text in reply.texts(reply.reasoning):
        yield sse(delta(body, {"reasoning_content": text}))
    for text in reply.texts(reply.text):
        yield sse(delta(body, {"content": text}))
    for fragments in interleaved(reply):
        yield sse(delta(body, {"tool_calls": [fragments]}))
    if reply.fault != "cut":
        yield sse(delta(body, {}, reply.finish_reason))
        usage = usage_of(reply, body)
        if usage is not None and (body.get("stream_options") or {}).get("include_usage"):
            yield sse({**delta(body, {}), "choices": [], "usage": usage})


def whole_call(call: Call, index: int) -> Body:
    """A whole call, as some send it in one chunk."""
    return {
        "index": index,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def openai_whole(reply: Reply, body: Body) -> Body:
    """The answer in one piece, for requests without `stream`."""
    message: Body = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [whole_call(call, index) for index, call in enumerate(reply.calls)]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    usage = usage_of(reply, body)
    return {**delta(body, {}), "object": "chat.completion", "choices": [choice], "usage": usage}


def delta(body: Body, delta: Body, finish: str | None = None) -> Body:
    return {
        "id": "chatcmpl-double",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": body.get("model", "double"),
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def interleaved(reply: Reply) -> Iterator[Body]:
    """Parallel calls as real servers send them: names first, then fragments of all in turn."""
    left: list[list[str]] = []
    for index, call in enumerate(reply.calls):
        yield whole_call(replace(call, arguments=""), index)
        left.append(reply.texts(call.arguments))
    while any(left):
        for index, fragments in enumerate(left):
            if fragments:
                yield {"index": index, "function": {"arguments": fragments.pop(0)}}


def sse(data: Body) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


# ── Anthropic ───────────────────────────────────────────────────────────────────────────────────────────────────────


def anthropic(reply: Reply, body: Body) -> Iterator[bytes]:
    """Server-sent events of /v1/messages. `cached` tokens are told apart from the input, as Anthropic does."""
    said = reply.usage if isinstance(reply.usage, dict) else {}
    counted = tokens_of([body.get("system"), body.get("messages"), body.get("tools")])
    thought = tokens_of(reply.reasoning) if reply.reasoning else 0
    prompt, completion = (
        said.get("prompt_tokens", counted),
        said.get("completion_tokens", tokens_of(reply.text) + thought),
    )
    usage: Body = {"input_tokens": prompt, "cache_read_input_tokens": reply.cached, "cache_creation_input_tokens": 0}
    message = {"id": "msg_double", "type": "message", "role": "assistant", "model": body.get("model"), "content": []}
    yield _named("message_start", {"message": {**message, "usage": {**usage, "output_tokens": 1}}})
    for index, (start, deltas) in enumerate(_blocks(reply)):
        yield _named("content_block_start", {"index": index, "content_block": start})
        for delta in deltas:
            yield _named("content_block_delta", {"index": index, "delta": delta})
        yield _named("content_block_stop", {"index": index})
    if reply.fault != "cut":
        reasons = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
        output = {"output_tokens": completion, "output_tokens_details": {"thinking_tokens": thought}}
        reason = reasons.get(reply.finish_reason, reply.finish_reason)
        yield _named("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": output})
        yield _named("message_stop", {})


def _blocks(reply: Reply) -> Iterator[tuple[Body, list[Body]]]:
    if reply.reasoning:
        deltas: list[Body] = [{"type": "thinking_delta", "thinking": t} for t in reply.texts(reply.reasoning)]
        signature = {"type": "signature_delta", "signature": reply.signature or "c2lnbmVk"}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signature]
    if reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in reply.texts(reply.text)]
    for call in reply.calls:
        fragments = [{"type": "input_json_delta", "partial_json": t} for t in reply.texts(call.arguments)]
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, fragments


def _named(name: str, data: Body) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


# ── Ollama ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def ollama(reply: Reply, body: Body) -> Iterator[bytes]:
    """JSON lines of /api/chat. Calls come whole, in one line."""
    head = {"model": body.get("model"), "created_at": "2025-01-01T00:00:00Z"}
    for text in reply.texts(reply.reasoning):
        yield _line({**head, "message": {"role": "assistant", "content": "", "thinking": text}, "done": False})
    for text in reply.texts(reply.text):
        yield _line({**head, "message": {"role": "assistant", "content": text}, "done": False})
    if reply.calls:
        wanted = [{"function": {"name": c.name, "arguments": json.loads(c.arguments)}} for c in reply.calls]
        message = {"role": "assistant", "content": "", "tool_calls": wanted}
        yield _line({**head, "message": message, "done": False})
    if reply.fault != "cut":
        usage = usage_of(reply, body) or {}
        counts = {"prompt_eval_count": usage.get("prompt_tokens"), "eval_count": usage.get("completion_tokens")}
        end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reply.finish or "stop"}
        yield _line({**head, **end, **{k: v for k, v in counts.items() if v is not None}})


def _line(data: Body) -> bytes:
    return json.dumps(data).encode() + b"\n"


# ── Gemini ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def gemini(reply: Reply, body: Body) -> Iterator[bytes]:
    """Server-sent events of :streamGenerateContent. Calls come whole, the first of them signed, else the text's end; usage comes
    with every chunk."""
    said = reply.usage if isinstance(reply.usage, dict) else {}
    counted = tokens_of([body.get("system_instruction"), body.get("contents"), body.get("tools")])
    usage: Body = {"promptTokenCount": said.get("prompt_tokens", counted + reply.cached)}
    if reply.cached:
        usage["cachedContentTokenCount"] = reply.cached
    parts: list[Body] = [{"text": text, "thought": True} for text in reply.texts(reply.reasoning)]
    parts += [{"text": text} for text in reply.texts(reply.text)]
    wanted: list[Body] = [{"functionCall": {"name": c.name, "args": json.loads(c.arguments)}} for c in reply.calls]
    if reply.signature and (signed := wanted[:1] or parts[-1:]):
        signed[0]["thoughtSignature"] = reply.signature
    parts += wanted
    for part in parts:
        yield sse({"candidates": [_candidate([part])], "usageMetadata": usage, "modelVersion": "double"})
    if reply.fault != "cut":
        usage["candidatesTokenCount"] = said.get("completion_tokens", tokens_of(reply.text))
        if reply.reasoning:
            usage["thoughtsTokenCount"] = tokens_of(reply.reasoning)
        reasons = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
        end = {**_candidate([]), "finishReason": reasons.get(reply.finish_reason, reply.finish or "STOP")}
        yield sse({"candidates": [end], "usageMetadata": {**usage, "totalTokenCount": sum(usage.values())}})


def _candidate(parts: list[Body]) -> Body:
    return {"content": {"role": "model", "parts": parts}, "index": 0}
