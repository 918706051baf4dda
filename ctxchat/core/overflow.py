"""Whether an error means that the prompt did not fit the model's context window. Pure; looks at words, codes and status only."""

from __future__ import annotations

import re

from ctxchat.core.errors import ModelError

_WORDS = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|maximum (?:context|prompt|model) length|prompt is too long"
    r"|too many (?:input )?tokens|input (?:is|length).{0,40}(?:too long|exceeds?)|exceeds? .{0,30}context"
    r"|reduce the length of the messages|input tokens exceed",
    re.I,
)
_WINDOW = re.compile(
    r"(?:n_ctx\D{0,6}|maximum context length (?:is|of) |context (?:window|size|length)\D{0,20})(\d[\d,]{2,})", re.I
)


def is_context_overflow(error: object, *, estimated_tokens: int | None = None, window: int | None = None) -> bool:
    """True where a server refused a prompt as longer than its window."""
    if isinstance(error, ModelError) and error.kind == "overflow":
        return True
    if getattr(error, "status", 0) == 429 or getattr(error, "status_code", 0) == 429:
        return False
    body = getattr(error, "body", "")
    return bool(_WORDS.search(f"{error} {body}"))


def stated_window(error: object) -> int:
    """The window in tokens that the server names in its refusal, 0 where it names none."""
    match = _WINDOW.search(f"{error} {getattr(error, 'body', '')}")
    return int(match[1].replace(",", "")) if match else 0
