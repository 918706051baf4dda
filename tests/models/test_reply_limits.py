"""A server that sends more than any model writes: the rest is not read, and that is said."""

from __future__ import annotations

import pytest

from ctxchat.models import failures
from ctxchat.models.reply import MAX_CALLS, MAX_REPLY_CHARS, ReplyBuilder, ReplyTooLarge


def chunk(**delta: object) -> dict[str, object]:
    return {"choices": [{"delta": delta}]}


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x" * 500_000},
        {"reasoning_content": "x" * 500_000},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "x" * 500_000}}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "x" * 500_000}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "x" * 500_000}]},
        {"content": [{"type": "text", "text": "x" * 500_000}]},
    ],
)
def test_a_reply_without_end_is_stopped_and_that_is_said(delta: dict[str, object]) -> None:
    reply = ReplyBuilder("m")
    for _ in range(MAX_REPLY_CHARS // 500_000 - 1):
        reply.feed(chunk(**delta))
    with pytest.raises(ReplyTooLarge) as stopped:
        for _ in range(3):
            reply.feed(chunk(**delta))
    told = failures.failure(stopped.value, began=True)
    assert (told.kind, "4,000,000 characters" in told.text) == ("interrupted", True)


def test_thousands_of_calls_in_one_reply_are_stopped_and_that_is_said() -> None:
    reply = ReplyBuilder("m")
    fragments = [{"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(MAX_CALLS)]
    assert len(reply.feed(chunk(tool_calls=fragments))) == MAX_CALLS and len(reply.end(None).calls) == MAX_CALLS
    with pytest.raises(ReplyTooLarge, match="calls"):
        reply.feed(chunk(tool_calls=[{"index": MAX_CALLS, "id": "more", "function": {"name": "f"}}]))
