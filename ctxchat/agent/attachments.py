"""Handles attachments of messages: saves images beside the session and reads them for each request, and counts texts before they
are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.core.calibration import Mix, total
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import StorageError
from ctxchat.core.images import addressed, data_url, kind_of, size_in, still, stored_in
from ctxchat.core.messages import Group, Image, Message, Part, Text
from ctxchat.core.tokens import TokenCounter, rough_count

ESTIMATED_FROM_CHARS = 20_000
"""Characters from which a text's tokens are estimated until it was counted: a tokenizer would delay the next key stroke."""


PASTE_EXCERPT_TOKENS = 1_000
"""Tokens of head and tail that a message keeps of a paste saved as a file."""


class Attachments:
    """The attachments of one session."""

    def __init__(self, conversation: Conversation, mask: Callable[[str], str]) -> None:
        self._conversation = conversation
        self.mask = mask
        """Masks secrets in the texts of attached files; what a person typed or pasted is not masked."""

    @property
    def seen(self) -> bool:
        """Whether the model is sent images; else it is sent words in their place."""
        return self._conversation.model.count_image(0, 0) > 0

    async def save(self, name: str, data: bytes) -> Image:
        """Save an image beside the session, equal images only once. Raises StorageError."""
        path = await self._conversation.journal.attach(name, data)
        return Image(path, *size_in(data), name)

    async def put_away(self, name: str, text: str) -> Text:
        """Save a text as a file that the agent can page through. Returns its head and tail with the file's path. Raises
        StorageError."""
        tokens = await asyncio.to_thread(self._conversation.counter.count_text, text)
        return Text(await self._conversation.put_away(name, text, tokens, PASTE_EXCERPT_TOKENS), name)

    async def carried(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        """The groups with their images inside the messages, as data URLs; words in place of one whose file is gone."""
        data = await _read_images(
            self._conversation, (path for g in groups for m in g.messages for path in stored_in(m))
        )
        return tuple(msgspec.structs.replace(g, messages=tuple(addressed(m, data) for m in g.messages)) for g in groups)

    def count_tokens(self, part: Part) -> int:
        """Tokens of a part; of a long text an estimate, until `count` has counted it."""
        return self._mix(part).raw

    def _mix(self, part: Part) -> Mix:
        """The tokens of a part by kind; those of a long text that was not counted yet are estimated, since this runs at every key
        press."""
        counter = self._conversation.counter
        if isinstance(part, Text) and _long(part) and not counter.knows(part.words):
            return Mix(rough_count(part.words))
        return counter.part_mix(part)

    async def count(self, parts: Sequence[Part]) -> None:
        """Count the long texts among these off the event loop, so that `count_tokens` is exact for them."""
        await asyncio.to_thread(
            _count, self._conversation.counter, [p for p in parts if isinstance(p, Text) and _long(p)]
        )

    def with_draft(self, text: str, parts: Sequence[Part] = ()) -> ContextUsage:
        """The gauge with an unsent message in it."""
        if not text and not parts:
            return self._conversation.measured()
        plain = Message(seq=0, role="user", content=text or " ")
        typed = (
            Mix(rough_count(text)) if len(text) > ESTIMATED_FROM_CHARS else self._conversation.counter.draft_mix(plain)
        )
        return self._conversation.measured(draft=total((typed, *map(self._mix, parts))))


async def saved_image(conversation: Conversation, name: str, data: bytes) -> Image:
    """Save an image beside the session, named after its source `name`. Raises StorageError."""
    named = f"{name}.{kind_of(data)}"
    return Image(await conversation.journal.attach(named, data), *size_in(data), named)


async def images_for(conversation: Conversation) -> dict[str, str]:
    """The images of the view that lie beside the session, as data URLs by path. Those whose file is gone are left out; nothing
    is read for a model that is shown none."""
    if not conversation.model.count_image(0, 0):
        return {}
    return await _read_images(
        conversation, (path for item in conversation.view.items for path in stored_in(item.message))
    )


async def _read_images(conversation: Conversation, paths: Iterable[str]) -> dict[str, str]:
    """The images at these paths as data URLs by path, without those whose file is gone."""
    urls: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        try:
            data = await conversation.journal.attached(path)
        except StorageError:
            continue
        urls[path] = data_url(await asyncio.to_thread(still, data))
    return urls


def weights(counter: TokenCounter, attachments: Sequence[Part]) -> tuple[int, ...]:
    """Tokens of each part of a message, 0 for the first, which is its own text; empty without attachments. Slow for long
    texts."""
    return (0, *(counter.part(part) for part in attachments)) if attachments else ()


def _long(part: Text) -> bool:
    return bool(part.name) and len(part.text) > ESTIMATED_FROM_CHARS


def _count(counter: TokenCounter, texts: Iterable[Text]) -> None:
    for text in texts:
        counter.part(text)
