"""What goes along with a message, as figures for a line each: files and pastes by their lines, images by their pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ctxchat.core.messages import Image, Message, Part, Text


class Attached(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of them. Pixels are 0 where they are not known, tokens where it is not in the view."""

    name: str
    kind: Literal["image", "text", "other"]
    tokens: int = 0
    width: int = 0
    height: int = 0
    lines: int = 0


def spoken(message: Message) -> str:
    """The words of a message without what came along with it."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content if isinstance(part, Text) and not part.name)


def attached(parts: str | Sequence[Part], tokens: Sequence[int] = ()) -> tuple[Attached, ...]:
    """Those among the parts of a message; `tokens` are those of its parts, in their order, where they are known."""
    if isinstance(parts, str):
        return ()
    weights = [*tokens, *([0] * (len(parts) - len(tokens)))]
    lines = (_line(part, weight) for part, weight in zip(parts, weights, strict=True))
    return tuple(line for line in lines if line)


def _line(part: Part, tokens: int) -> Attached | None:
    match part:
        case Text(text=text, name=name):
            return Attached(name, "text", tokens, lines=text.rstrip("\n").count("\n") + 1) if name else None
        case Image(width=width, height=height, name=name):
            return Attached(name or "image", "image", tokens, width, height)
        case _:
            return Attached(part.kind, "other", tokens)
