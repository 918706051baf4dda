"""Masks secrets in what the model is sent from the record (all messages ever). New results are masked before they are stored;
this is for what was stored unmasked: by older versions, in imported sessions, while masking was off. The record itself stays as
it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from ctxchat.core.messages import Group, GroupKind, Message, Part, Text
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import Item


class MaskedRecord:
    """Masks tool results and notes; what the person and the model said themselves is left as it is.

    `mask` masks a text. `state` returns the settings it goes by; as long as these are equal, masked messages are remembered.
    """

    def __init__(self, mask: Callable[[str], str], state: Callable[[], object] = lambda: None) -> None:
        self._mask = mask
        self._state = state
        self._under = state()
        self._known: dict[Message, Message] = {}

    @property
    def settings_digest(self) -> str:
        """A digest of the masking settings, by which a change of them is noticed; none of their values can be read from it."""
        return hashlib.blake2b(repr(self._state()).encode(), digest_size=6).hexdigest()

    def group(self, group: Group) -> Group:
        """The group with its secrets masked; the same object where there are none. Slow, so call it off the event loop."""
        messages = tuple(self._masked_message(message, group.kind) for message in group.messages)
        if all(new is old for new, old in zip(messages, group.messages, strict=True)):
            return group
        return msgspec.structs.replace(group, messages=messages)

    def items(self, items: tuple[Item, ...], counter: TokenCounter) -> tuple[Item, ...]:
        """The items (messages) of a view with their secrets masked, and their tokens counted again where something was."""
        return tuple(self._item(item, counter) for item in items)

    def _item(self, item: Item, counter: TokenCounter) -> Item:
        """An item of a view, masked, and counted again where something was."""
        message = self._masked_message(item.message, item.kind)
        if message is item.message:
            return item
        mix = counter.mix(message)
        return msgspec.structs.replace(item, message=message, mix=mix, tokens=mix.raw)

    def _masked_message(self, message: Message, kind: GroupKind) -> Message:
        """A message, masked, as it is remembered or computed. What a person or a model said is unchanged."""
        if message.role != "tool" and kind not in {"note", "stray"}:
            return message
        if (now := self._state()) != self._under:
            self._known, self._under = {}, now
        known = self._known.get(message)
        if known is None:
            known = self._known[message] = self._masked(message)
        return known

    def _masked(self, message: Message) -> Message:
        content = message.content
        new = self._mask(content) if isinstance(content, str) else tuple(map(self._masked_part, content))
        return message if new == content else msgspec.structs.replace(message, content=new)

    def _masked_part(self, part: Part) -> Part:
        return msgspec.structs.replace(part, text=self._mask(part.text)) if isinstance(part, Text) else part
