"""Titles of sessions: their first words, or a title that the model writes in a small request of its own."""

from __future__ import annotations

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.prompts import prompt
from ctxchat.agent.turn.model_calls import ArrivingReply, stream_reply
from ctxchat.core.clip import head
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Retry
from ctxchat.core.journal import Named, Spent
from ctxchat.core.messages import Message
from ctxchat.core.ports import ModelRequest
from ctxchat.core.secrets import masked
from ctxchat.core.view import Item, View

MAX_TITLE_CHARS = 60
MAX_READ_TOKENS = 600
"""Tokens of the first message, and of its answer, that the model reads for a title."""

MAX_TRIED_TURNS = 2
"""Turns within which a model that has given no title is asked again."""

MAX_TITLE_TOKENS = 2_000
"""Most tokens of a title's reply, its reasoning included."""


def title_of(text: str) -> str:
    """A title from the first words of a text: one line of at most 60 characters, with secrets masked, since lists show it."""
    words = " ".join(masked(text[:2_000]).split())
    return words if len(words) <= MAX_TITLE_CHARS else words[: MAX_TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"


async def write_title(conversation: Conversation) -> str:
    """Have the model title a session that still has its first words as title, once these were answered. Returns the new title,
    empty where it stays: it was renamed, or the model gave none. The cost is booked to the session."""
    groups = conversation.ledger.groups
    messages = [group.first.text for group in groups if group.kind == "user"]
    first = messages[0] if 0 < len(messages) <= MAX_TRIED_TURNS else ""
    answer = next((group.first.text for group in groups if group.kind == "reply"), "")
    if not first or not answer or conversation.state.title != title_of(first):
        return ""
    model, counter = conversation.model, conversation.counter
    texts = (head(masked(text), MAX_READ_TOKENS, counter.count_text) for text in (first, answer))
    asked = "<person>\n{}\n</person>\n<agent>\n{}\n</agent>".format(*texts)
    wanted = prompt("title")
    items = (
        Item(Message(0, "system", wanted), "system", counter.count_text(wanted), "system"),
        Item(Message(0, "user", asked), "user", counter.count_text(asked), "user"),
    )
    request = ModelRequest(View(items, (), (), sum(item.tokens for item in items), 0), MAX_TITLE_TOKENS)
    draft = ArrivingReply()
    try:
        async for piece in stream_reply(model, request, conversation.clock, 0, budget=conversation.spending):
            if not isinstance(piece, Retry):
                draft.add_piece(piece)
    except ModelError:
        return ""
    usage = draft.end.usage if draft.end else None
    if usage and usage.cost_usd:
        conversation.apply_now_write_later(Spent(model.name, usage.cost_usd, "other"))
    lines = draft.message(0, "").text.strip().splitlines()
    title = title_of(lines[0].strip(" \"'«»“”#*.")) if lines else ""
    if not title or conversation.state.title != title_of(first):  # renamed meanwhile
        return ""
    conversation.apply_now_write_later(Named(title))
    return title
