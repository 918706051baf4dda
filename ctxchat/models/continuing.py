"""How a model is asked to go on with a reply that was cut off: from its beginning where the provider takes one, else in words.

Pure; knows which families take a beginning, not what happens when one of them refuses it after all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ctxchat.core.openai import Wire, wire
from ctxchat.core.view import Item
from ctxchat.models import dialects
from ctxchat.models.dialects import Dialect
from ctxchat.models.settings import ModelSettings

GO_ON = (
    "[Your last message was cut off. Go on exactly where it stops, in the middle of a word if need be: "
    "no greeting, no comment, nothing of it again.]"
)

REFUSED = re.compile(r"prefill|prefix|(?:last|final) message|end with a user|assistant (?:message|response)", re.I)
"""How a provider says that it takes no beginning."""

_LAST_CLAUDE = (4, 5)
"""The last generation that takes one (Anthropic's notes on Claude 4.6: prefilling is an error from there on)."""

_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)", re.I)


def takes_beginning(settings: ModelSettings, dialect: Dialect) -> bool:
    """True where the beginning of a reply can be handed in and is gone on with: older Claudes that do not think aloud, Mistral's
    own service (`prefix`), and llama.cpp (its server's `prefill-assistant`)."""
    prefix = settings.provider.prefix
    if dialect is dialects.ANTHROPIC:
        made = _CLAUDE.search(settings.model)
        thinks = not settings.extra.keys().isdisjoint({"thinking", "reasoning_effort"})
        return made is not None and (int(made[1]), int(made[2] or 0)) <= _LAST_CLAUDE and not thinks
    return prefix in {"mistral", "llamafile"}


def parted(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """A view without the half reply it ends with, and that reply; nothing as the second where it ends with none.

    What stands around the conversation comes after it in a view and stays in the first part.
    """
    end = next((n for n in range(len(items), 0, -1) if items[n - 1].group), 0)
    start = end
    while start and _half(items[start - 1]):
        start -= 1
    return [*items[:start], *items[end:]], list(items[start:end])


def in_words(messages: Sequence[Wire]) -> list[Wire]:
    """The conversation, with the request to go on."""
    return [*messages, {"role": "user", "content": GO_ON}]


def from_beginning(
    messages: Sequence[Wire], half: Sequence[Item], dialect: Dialect, keep_reasoning: bool
) -> list[Wire]:
    """The conversation with the half reply as its last message, in the family's shape."""
    open_ended = msgspec.structs.replace(dialect, user_last=False)
    return dialects.shape([*messages, *wire(half)], open_ended, keep_reasoning=keep_reasoning)


def as_prefix(messages: Sequence[Wire]) -> list[Wire]:
    """With the last message marked as the beginning of the reply, as Mistral's service wants it."""
    return [*messages[:-1], {**messages[-1], "prefix": True}]


def _half(item: Item) -> bool:
    message = item.message
    return bool(item.group) and message.role == "assistant" and message.interrupted and not message.calls
