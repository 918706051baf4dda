"""A scripted reply as events of /v1/responses, OpenAI's newer form, which litellm takes for gpt-5.4 and later. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.doubles.replies import Reply
from tests.doubles.wire import Body, tokens_of


def event(kind: str, **data: Any) -> bytes:
    """One event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': 0, **data})}\n\n".encode()


def stream(reply: Reply, body: Body) -> Iterator[bytes]:
    """Items one after another: the summary of a thought, a message, calls; usage with the end."""
    yield event("response.created", response=_response(body, "in_progress"))
    output: list[Body] = []
    for index, (item, name, texts, done) in enumerate(_items(reply)):
        place = {"output_index": index, "item_id": item["id"]}
        yield event("response.output_item.added", output_index=index, item=item)
        for text in texts:
            yield event(f"response.{name}.delta", **place, content_index=0, summary_index=0, delta=text)
        output.append({**item, **done, "status": "completed"})
        yield event("response.output_item.done", output_index=index, item=output[-1])
    if reply.fault != "cut":
        cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reply.finish_reason)
        status = "failed" if reply.finish_reason == "error" else "incomplete" if cut else "completed"
        whole = _response(body, status, output) | {"usage": _usage(reply, body)}
        whole |= {"incomplete_details": {"reason": cut}} if cut else {}
        whole |= {"error": {"code": "server_error", "message": "Something failed."}} if status == "failed" else {}
        yield event(f"response.{status}", response=whole)


def _items(reply: Reply) -> Iterator[tuple[Body, str, list[str], Body]]:
    if reply.reasoning:
        summary = {"summary": [{"type": "summary_text", "text": reply.reasoning}]}
        head = {"id": "rs_1", "type": "reasoning", "summary": []}
        yield head, "reasoning_summary_text", reply.texts(reply.reasoning), summary
    if reply.text:
        said = {"content": [{"type": "output_text", "text": reply.text, "annotations": []}]}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        yield head, "output_text", reply.texts(reply.text), said
    for place, call in enumerate(reply.calls):
        head = {"id": f"fc_{place}", "type": "function_call", "call_id": call.id, "name": call.name, "arguments": ""}
        yield head, "function_call_arguments", reply.texts(call.arguments), {"arguments": call.arguments}


def _usage(reply: Reply, body: Body) -> Body:
    prompt = tokens_of([body.get("instructions"), body.get("input"), body.get("tools")]) + reply.cached
    thought = tokens_of(reply.reasoning) if reply.reasoning else 0
    completion = tokens_of([reply.text, *[c.arguments for c in reply.calls]]) + thought
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": reply.cached},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": prompt + completion,
    }


def _response(body: Body, status: str, output: list[Body] | None = None) -> Body:
    head = {"id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": status, "error": None}
    fixed = {"incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True, "tools": []}
    return {**head, **fixed, "model": body.get("model"), "output": output or [], "tool_choice": "auto"}
