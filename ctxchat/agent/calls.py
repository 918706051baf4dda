"""One model call as the agent makes it: retried while nothing has been said yet, its pieces gathered into a message.

Retries are for what passes by itself; an overflow, a refusal or a wrong key goes straight up.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from ctxchat.core.errors import ModelError
from ctxchat.core.events import Retry
from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.ports import Clock, ModelPiece, ModelPort, ModelRequest, ReasoningPiece, ReplyEnd, TextPiece
from ctxchat.core.tokens import Count


class Draft:
    """A reply that is arriving. Text and reasoning as far as they have come; `end` when it is whole."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.end: ReplyEnd | None = None

    def take(self, piece: ModelPiece) -> None:
        """One more piece."""
        match piece:
            case TextPiece(text=text):
                self._text.append(text)
            case ReasoningPiece(text=text):
                self._reasoning.append(text)
            case ReplyEnd():
                self.end = piece
            case _:
                pass  # a call still being written; ReplyEnd brings it whole

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self._text)

    @property
    def begun(self) -> bool:
        """True when something a person could have seen has come."""
        return bool(self._text or self._reasoning)

    def message(self, seq: int, at: str, *, interrupted: bool = False) -> Message:
        """The reply as a message; of an interrupted one what had come."""
        thought = "".join(self._reasoning)
        blocks = self.end.reasoning_blocks if self.end else ""
        return Message(
            seq=seq,
            role="assistant",
            content=self.text,
            calls=distinct(self.end.calls, seq) if self.end else (),
            reasoning=Reasoning(thought, blocks) if thought or blocks else None,
            at=at,
            interrupted=interrupted,
        )


class Tally:
    """Raw tokens of a reply that is arriving, counted in blocks: word by word would be too much, and slow besides."""

    BLOCK = 400
    """Characters from which a block is counted for good."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._known = 0
        self._open: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        """More of the reply."""
        self._open.append(text)
        self._length += len(text)
        if self._length >= self.BLOCK:
            self._known = self.tokens
            self._open, self._length = [], 0

    @property
    def tokens(self) -> int:
        """All that has come."""
        return self._known + (self._count("".join(self._open)) if self._open else 0)


def distinct(calls: tuple[ToolCall, ...], seq: int) -> tuple[ToolCall, ...]:
    """Calls with an id each: missing and doubled ones get a new one, so that results find their call."""
    seen: set[str] = set()
    result: list[ToolCall] = []
    for place, call in enumerate(calls):
        name = call.id if call.id and call.id not in seen else f"call_{seq}_{place}"
        seen.add(name)
        result.append(ToolCall(name, call.name, call.arguments))
    return tuple(result)


async def ask(
    model: ModelPort, request: ModelRequest, clock: Clock, retries: int
) -> AsyncGenerator[ModelPiece | Retry, None]:
    """The pieces of a reply. A passing failure before the first piece is tried again after a growing wait, told as Retry.

    Raises ModelError for everything else, and when `retries` are used up.
    """
    attempt = 0
    while True:
        begun = False
        try:
            async with aclosing(cast("AsyncGenerator[ModelPiece, None]", model.stream(request))) as pieces:
                async for piece in pieces:
                    begun = True
                    yield piece
            return
        except ModelError as problem:
            attempt += 1
            if begun or not problem.transient or attempt > retries:
                raise
            wait = delay(attempt, problem.retry_after, clock.seconds())
            yield Retry(attempt, wait, problem.text)
            await clock.sleep(wait)


def delay(attempt: int, retry_after: float | None, now: float) -> float:
    """Seconds to wait: what the server said (at most two minutes), else 1, 2, 4, … up to 30, up to a fifth more.

    The spread comes from the clock's fraction, so that many clients do not return at the same moment.
    """
    if retry_after is not None:
        return round(min(120.0, max(0.0, retry_after)), 2)
    base = min(30.0, 2.0 ** (attempt - 1))
    return round(base * (1 + 0.2 * (now % 1)), 2)
