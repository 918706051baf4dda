"""What a strict server says: the blocks of a reply in their order, as values. Knows no provider's form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Thought:
    """A thought that is signed. Its text is told only where the request asks for it."""

    text: str = ""


@dataclass(frozen=True)
class Redacted:
    """A thought that nobody may read."""

    data: str = "c2VjcmV0"


@dataclass(frozen=True)
class Said:
    """Text. `phase` as OpenAI's newer models have it."""

    text: str
    phase: str = ""


@dataclass(frozen=True)
class Use:
    """A call; `arguments` is JSON text. Without an `id` the server makes one up."""

    name: str
    arguments: str = "{}"
    id: str = ""


Block = Thought | Redacted | Said | Use


@dataclass(frozen=True)
class Answer:
    """One reply. `finish` is the provider's own word for why it ended, empty for the usual one; `status` other than 200 with
    `error` (type and words) refuses."""

    blocks: tuple[Block, ...] = ()
    finish: str = ""
    status: int = 200
    error: tuple[str, str] = ("api_error", "Internal server error")
    cut: bool = False


Script = Iterable[Answer] | Callable[[dict[str, Any]], Answer]
"""Replies in order, `Done.` when they run out; or a function from a request's body to a reply."""


def thought(text: str = "") -> Thought:
    """A thought."""
    return Thought(text)


def use(name: str, id: str = "", **arguments: Any) -> Use:
    """A call with its arguments by name."""
    return Use(name, json.dumps(arguments), id)


def answers(*blocks: Block | str, finish: str = "") -> Answer:
    """A reply of these blocks, plain strings being text."""
    return Answer(tuple(Said(b) if isinstance(b, str) else b for b in blocks), finish)


def says(text: str, think: str = "", finish: str = "") -> Answer:
    """An answer in words, behind a thought where there is one."""
    return answers(*([Thought(think)] if think else []), text, finish=finish)


calls = answers


def player(script: Script) -> Callable[[dict[str, Any]], Answer]:
    """What gives the next reply to a request."""
    if callable(script):
        return script
    left = iter(script)
    return lambda _body: next(left, says("Done."))
