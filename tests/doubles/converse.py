"""The bytes of a scripted reply as Bedrock's Converse API streams them: AWS's binary messages. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

from tests.doubles.replies import Reply
from tests.doubles.wire import Body, tokens_of


def stream(reply: Reply, body: Body) -> Iterator[bytes]:
    """Binary events of /model/…/converse-stream."""
    yield frame("messageStart", {"role": "assistant"})
    index = 0
    if reply.reasoning:
        deltas = [{"text": text} for text in reply.texts(reply.reasoning)] + [{"signature": reply.signature or "c2ln"}]
        for delta in deltas:
            yield frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": delta}})
        yield frame("contentBlockStop", {"contentBlockIndex": 0})
        index = 1
    for text in reply.texts(reply.text):
        yield frame("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": text}})
    if reply.text:
        yield frame("contentBlockStop", {"contentBlockIndex": index})
    for place, call in enumerate(reply.calls, index + 1):
        start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        yield frame("contentBlockStart", {"contentBlockIndex": place, "start": start})
        for text in reply.texts(call.arguments):
            yield frame("contentBlockDelta", {"contentBlockIndex": place, "delta": {"toolUse": {"input": text}}})
        yield frame("contentBlockStop", {"contentBlockIndex": place})
    if reply.fault != "cut":
        reasons = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
        yield frame("messageStop", {"stopReason": reasons.get(reply.finish_reason, reply.finish_reason)})
        counted, completion = tokens_of([body.get("messages"), body.get("toolConfig")]), tokens_of(reply.text)
        usage = {"inputTokens": counted, "outputTokens": completion, "totalTokens": counted + completion + reply.cached}
        usage |= {"cacheReadInputTokens": reply.cached, "cacheWriteInputTokens": 0}
        yield frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})


def frame(kind: str, payload: Body, *, message: str = "event") -> bytes:
    """One message of AWS's event stream: lengths, checksums, headers, JSON."""
    name = ":event-type" if message == "event" else ":exception-type"
    headers = b""
    for key, value in ((name, kind), (":content-type", "application/json"), (":message-type", message)):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
    data = json.dumps(payload).encode()
    prelude = (16 + len(headers) + len(data)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    prelude += zlib.crc32(prelude).to_bytes(4, "big")
    whole = prelude + headers + data
    return whole + zlib.crc32(whole).to_bytes(4, "big")
