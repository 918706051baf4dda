"""Questions beside the conversation: the model answers them from all that it sees, also while a turn is under way, and nothing
of it comes into the window or the record but what it cost.
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
"""Tokens of an answer, the thoughts before it among them."""


class Aside(msgspec.Struct, frozen=True):
    """A question that was answered beside the conversation."""

    question: str
    answer: str


class Asides:
    """The verb for one session."""

    def __init__(self, conversation: Conversation, read_only: str) -> None:
        self._conversation = conversation
        self._read_only = read_only

    async def ask(self, question: str, earlier: Sequence[Aside] = ()) -> AsyncGenerator[str, None]:
        """The answer as it comes, asked behind the conversation and the `earlier` asides. Raises ModelError where there is none,
        and SessionBusy in a session that is read only: what it costs could not be written down."""
        if self._read_only:
            raise SessionBusy(self._read_only)
        conversation, model = self._conversation, self._conversation.model
        opening, *said = (*(text for aside in earlier for text in (aside.question, aside.answer)), question)
        request = await request_so_far(conversation, MAX_ASIDE_TOKENS)
        first = max((item.message.seq for item in request.view.items), default=0) + 1
        asked = [Message(first, "user", (Text(opening), Text(prompt("aside"))))]
        asked += [Message(first + n, "user" if n % 2 == 0 else "assistant", text) for n, text in enumerate(said, 1)]
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
    """Raises ModelError where what came is no whole answer."""
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
