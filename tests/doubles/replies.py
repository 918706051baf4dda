"""What the HTTP double says: replies and faults as values. Knows nothing of sockets or wire formats."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Fault = Literal["", "reset", "stall", "cut", "malformed", "garbled", "error_event", "error_body", "nothing"]
"""What goes wrong in the stream, after `Reply.fault_after` chunks.

`reset`: the socket is aborted. `stall`: nothing more comes, the connection stays open. `cut`: the stream ends cleanly, without
a finish reason. `malformed`: a chunk that cannot be read, and nothing more. `garbled`: the same, and the stream goes on.
`error_event`: an error object (`Reply.error`) where a chunk should be. `error_body`: HTTP 200 with that object as JSON instead
of a stream. `nothing`: HTTP 200 and an empty body.
"""


@dataclass(frozen=True)
class Call:
    """One tool call in a reply; `arguments` is JSON text and is streamed in fragments."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """One answer. Times in seconds, `chunk` in characters. `usage` is sent as it stands, None sends none, and
    `counted` lets the double count four characters a token. `raw` is sent as it is in place of all else."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    usage: dict[str, Any] | Literal["counted"] | None = "counted"
    cached: int = 0
    finish: str = ""
    signature: str = ""
    chunk: int = 5
    delay: float = 0.0
    first_byte: float = 0.0
    status: int = 200
    error: dict[str, Any] | str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    fault: Fault = ""
    fault_after: int = 2
    raw: bytes | None = None
    raw_type: str = "text/event-stream"

    @property
    def finish_reason(self) -> str:
        """As OpenAI names it."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def texts(self, text: str) -> list[str]:
        """A text in the pieces it is streamed in."""
        return [text[i : i + self.chunk] for i in range(0, len(text), self.chunk)]


def says(text: str, **more: Any) -> Reply:
    """An answer in words."""
    return Reply(text=text, **more)


def calls(*wanted: Call, **more: Any) -> Reply:
    """An answer that calls tools, side by side."""
    return Reply(calls=wanted, **more)


def call(name: str, id: str = "call_1", **arguments: Any) -> Call:
    """One call with its arguments by name."""
    return Call(name, json.dumps(arguments), id)


def refuses(status: int, message: str, *, code: str = "", type: str = "", retry_after: str = "", **more: Any) -> Reply:
    """An error status with a body in OpenAI's form. `more` goes into the error object."""
    headers = {"retry-after": retry_after} if retry_after else {}
    error = {"message": message, "type": type or "error", "code": code or None, **more}
    return Reply(status=status, error={"error": error}, headers=headers)


def breaks(fault: Fault, text: str = "Half an answer that never ends", after: int = 2, **more: Any) -> Reply:
    """An answer that goes wrong after `after` chunks."""
    return Reply(text=text, fault=fault, fault_after=after, **more)


OVERFLOWS: dict[str, Reply] = {
    "openai": refuses(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
        type="invalid_request_error",
    ),
    "openai_new": refuses(
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code="context_length_exceeded",
        type="invalid_request_error",
    ),
    "llama.cpp": refuses(
        400,
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        type="exceed_context_size_error",
        n_prompt_tokens=9001,
        n_ctx=8192,
    ),
    "anthropic": refuses(400, "prompt is too long: 9001 tokens > 8192 maximum", type="invalid_request_error"),
    "vllm": refuses(400, "The decoder prompt (length 9001) is longer than the maximum model length of 8192."),
    "gateway": Reply(status=413, error="Request Entity Too Large"),
}
"""The same refusal in the words of several servers."""
