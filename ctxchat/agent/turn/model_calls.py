"""One model call as the agent makes it: retried while nothing has been said yet, its pieces gathered into a message.

Retries are for what passes by itself; an overflow, a refusal or a wrong key goes straight up.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

import msgspec

from ctxchat.agent.spending_budget import UNLIMITED, OnWait, SpendingBudget
from ctxchat.core.calibration import Mix
from ctxchat.core.errors import REFUSED, ModelError
from ctxchat.core.events import ReasoningDelta, Retry, TextDelta, Usage
from ctxchat.core.messages import Message, Reasoning, ToolCall
from ctxchat.core.ports import Clock, ModelPiece, ModelPort, ModelRequest, ReplyEnd
from ctxchat.core.usage import sound

MAX_CALL_ID_CHARS = 20_000
"""Characters of a call's id; litellm keeps Gemini's signatures in them, which are long."""

MAX_REFUSED_RETRIES = 1
"""How often an address where nobody listens is tried again: a server that starts anew is back at once, or a person has to act."""

MAX_RETRY_WAIT_S = 120.0
"""Seconds a server may ask to be left alone for; with more than this it is not waited for."""


class ArrivingReply:
    """A reply that is arriving: text and reasoning so far; `end` once it is complete."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.end: ReplyEnd | None = None

    def add_piece(self, piece: ModelPiece) -> None:
        """One more piece."""
        match piece:
            case TextDelta(text=text):
                self._text.append(text)
            case ReasoningDelta(text=text):
                self._reasoning.append(text)
            case ReplyEnd():
                self.end = piece
            case _:
                pass  # a call still being written; ReplyEnd brings it whole

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def has_begun(self) -> bool:
        """True when something a person could have seen has come."""
        return bool(self.text.strip() or self._reasoning)

    @property
    def answered(self) -> bool:
        """True when there are words of an answer, and not thoughts alone."""
        return bool(self._parted[1].strip())

    @property
    def _parted(self) -> tuple[str, str]:
        """Reasoning and answer; which part is which is only known for certain at the end of the reply."""
        if self.end and self.end.unthought:
            return "", "".join((*self._reasoning, self.text))
        aside = self.end.thoughts if self.end else 0
        return "".join((*self._reasoning, self.text[:aside].strip())), self.text[aside:]

    def message(self, seq: int, at: str, *, interrupted: bool = False) -> Message:
        """The reply as a message; of an `interrupted` one what had arrived."""
        thought, answer = self._parted
        received = self.end.received if self.end else None
        counted = self.end.usage.reasoning if self.end and self.end.usage and received else 0
        return Message(
            seq=seq,
            role="assistant",
            content=answer,
            calls=distinct(self.end.calls, seq) if self.end else (),
            reasoning=Reasoning(thought, received=received, tokens=counted) if thought or received else None,
            at=at,
            interrupted=interrupted,
        )


class TokenTally:
    """Our own count of a reply that is arriving, made block by block: counting each word by itself gives too much, and is
    slow."""

    BLOCK = 400
    """Characters from which a block is counted for good."""

    def __init__(self, count: Callable[[str], Mix]) -> None:
        self._count = count
        self._known = Mix()
        self._open: list[str] = []
        self._length = 0

    def add_text(self, text: str) -> None:
        """More of the reply."""
        self._open.append(text)
        self._length += len(text)
        if self._length >= self.BLOCK:
            self._known += self._count("".join(self._open))
            self._open, self._length = [], 0

    @property
    def mix(self) -> Mix:
        """The count so far, less a fiftieth, so that the server's count at the end adds to it and never takes from it."""
        whole = self._known + self._count("".join(self._open)) if self._open else self._known
        return msgspec.structs.replace(whole, words=whole.words * 49 // 50, wide=whole.wide * 49 // 50)


def distinct(calls: tuple[ToolCall, ...], seq: int) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own: where it is missing, used twice or endless, a new one, so that results find their
    call."""
    seen: set[str] = set()
    result: list[ToolCall] = []
    for place, call in enumerate(calls):
        id = _field_text(call.id)
        id = id if 0 < len(id) <= MAX_CALL_ID_CHARS and id not in seen else f"call_{seq}_{place}"
        while id in seen:
            id += "_"
        seen.add(id)
        result.append(ToolCall(id, _field_text(call.name), _field_text(call.arguments)))
    return tuple(result)


def _field_text(value: object) -> str:
    """The field as text; a value that is none as JSON, since a model port may come from a third party."""
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


async def stream_reply(
    model: ModelPort,
    request: ModelRequest,
    clock: Clock,
    retries: int,
    in_vain: Callable[[ModelError], bool] = lambda problem: False,
    *,
    budget: SpendingBudget = UNLIMITED,
    on_wait: OnWait | None = None,
) -> AsyncGenerator[ModelPiece | Retry, None]:
    """The pieces of a reply. After a passing failure before the first piece the call is made again, after a growing wait that is
    told as Retry. `on_wait` is told where it waits for calls under way so as to pass no limit.

    Raises ModelError for everything else, when `retries` are used up or would be `in_vain`, where the server asks for a longer
    wait than `MAX_RETRY_WAIT_S`, and where the call could pass a limit of the `budget`.
    """
    attempt = 0
    while True:
        begun, received, usage = False, 0, None
        request, reserved = await budget.admit(model, request, on_wait)
        try:
            async with aclosing(cast("AsyncGenerator[ModelPiece, None]", model.stream(request))) as pieces:
                async for piece in pieces:
                    begun = True
                    received += _length(piece)
                    sound_piece = _sound(piece, request.view.raw, received)
                    usage = sound_piece.usage if isinstance(sound_piece, ReplyEnd) else usage
                    yield sound_piece
            return
        except ModelError as problem:
            attempt += 1
            most = min(retries, MAX_REFUSED_RETRIES) if problem.code == REFUSED else retries
            if begun or not problem.transient or attempt > most or in_vain(problem):
                raise
            if problem.retry_after is not None and problem.retry_after > MAX_RETRY_WAIT_S:
                problem.hint = (
                    f"It asks to be left alone for {_span(problem.retry_after)}. Until then try another model."
                )
                raise
            wait, text = delay(attempt, problem.retry_after, clock.seconds()), problem.text
        finally:
            await budget.pay(reserved, usage, begun=begun)
        yield Retry(attempt, wait, text)
        await clock.sleep(wait)


def _length(piece: ModelPiece) -> int:
    """Characters of a piece."""
    match piece:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            return len(text)
        case ReplyEnd(calls=calls):
            return sum(len(_field_text(call.name)) + len(_field_text(call.arguments)) for call in calls)
        case _:
            return 0


def _sound(piece: ModelPiece, sent: int, received: int) -> ModelPiece:
    """The piece without a usage that makes no sense: a model port may come from a third party."""
    if isinstance(piece, ReplyEnd) and piece.usage is not None:
        usage = sound(piece.usage, sent, received) if isinstance(piece.usage, Usage) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        return msgspec.structs.replace(piece, usage=usage)
    return piece


def delay(attempt: int, retry_after: float | None, now: float) -> float:
    """Seconds to wait: what the server said (at most `MAX_RETRY_WAIT_S`), else 1, 2, 4, … up to 30, up to a fifth more.

    The spread comes from the clock's fraction, so that many clients do not return at the same moment.
    """
    if retry_after is not None:
        return round(min(MAX_RETRY_WAIT_S, max(0.0, retry_after)), 2)
    base = min(30.0, 2.0 ** (attempt - 1))
    return round(base * (1 + 0.2 * (now % 1)), 2)


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60)} hours"
