"""Answers questions beside the conversation: the model sees all of the conversation, also while a turn is under way, but question
and answer enter neither the view nor the record. Only their cost is booked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from ctxchat.agent.compaction.within import request_so_far
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.prompts import prompt
from ctxchat.agent.turn.model_calls import ArrivingReply, stream_reply
from ctxchat.core.errors import ModelError, SessionBusy
from ctxchat.core.events import Retry, TextDelta
from ctxchat.core.journal import PrefixRead, Spent
from ctxchat.core.messages import Message, Text

MAX_ASIDE_TOKENS = 8_000
"""Most tokens of an answer, its reasoning included."""


class Aside(msgspec.Struct, frozen=True):
    """A question that was answered beside the conversation."""

    question: str
    answer: str


class Asides:
    """Asks questions beside one session."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def ask(self, question: str, earlier: Sequence[Aside] = ()) -> AsyncGenerator[str, None]:
        """The answer as it arrives, to a question placed after the conversation and the `earlier` asides. Raises ModelError where
        there is no answer, and SessionBusy in a read-only session, where its cost could not be recorded."""
        if read_only := self._conversation.journal.read_only:
            raise SessionBusy(read_only)
        conversation, model = self._conversation, self._conversation.model
        opening, *following = (*(text for aside in earlier for text in (aside.question, aside.answer)), question)
        request = await request_so_far(conversation, MAX_ASIDE_TOKENS)
        first = max((item.message.seq for item in request.view.items), default=0) + 1
        asked = [Message(first, "user", (Text(opening), Text(prompt("aside"))))]
        asked += [
            Message(first + n, "user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(following, 1)
        ]
        view = request.view.followed_by(asked, conversation.counter.count_text)
        draft, started = ArrivingReply(), conversation.clock.now()
        pieces = stream_reply(
            model, msgspec.structs.replace(request, view=view), conversation.clock, 1, budget=conversation.spending
        )
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Retry):
                    continue
                draft.add_piece(piece)
                if isinstance(piece, TextDelta):
                    yield piece.text
        usage = draft.end.usage if draft.end else None
        if usage and not usage.estimated:
            conversation.apply_now_write_later(PrefixRead(model.name, started, usage.cached))
        if usage and usage.cost_usd:
            conversation.apply_now_write_later(Spent(model.name, usage.cost_usd, "other"))
        _check(draft)


def _check(draft: ArrivingReply) -> None:
    """Raises ModelError where the reply is not a complete answer."""
    if draft.end is None:
        raise ModelError("The answer broke off before its end.", "Ask again.", kind="interrupted")
    if draft.end.calls:
        raise ModelError(
            f"The model wanted to call {draft.end.calls[0].name} to answer that.",
            "Beside the conversation it has no tools: ask in the conversation.",
            kind="bad_request",
        )
    if not draft.answered:
        raise ModelError("The model said nothing.", "Ask again, or in the conversation.", kind="empty")
    if draft.end.finish == "length":
        raise ModelError(f"The answer was cut at {MAX_ASIDE_TOKENS:,} tokens.", kind="interrupted")
