"""What of the record a model is told, with secrets masked that were stored as they are: by versions that did not mask yet, in
imported sessions, while masking was off. The record itself stays as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from ctxchat.core.messages import Group, GroupKind, Message, Part, Text
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import Item


class MaskedRecord:
    """Masks results of calls and notes; what the person and the model said themselves stays. A message that was looked at is
    remembered for as long as `mask` would say the same of it, which `state` tells."""

    def __init__(self, mask: Callable[[str], str], state: Callable[[], object] = lambda: None) -> None:
        self._mask = mask
        self._state = state
        self._under = state()
        self._known: dict[Message, Message] = {}

    @property
    def settings_digest(self) -> str:
        """A digest of the settings it masks by: with others it may mask other things. No value of theirs can be read in it."""
        return hashlib.blake2b(repr(self._state()).encode(), digest_size=6).hexdigest()

    def group(self, group: Group) -> Group:
        """The group as a model may be told of it; the same one where nothing in it was masked. May take long: off the loop."""
        messages = tuple(self._masked_message(message, group.kind) for message in group.messages)
        if all(new is old for new, old in zip(messages, group.messages, strict=True)):
            return group
        return msgspec.structs.replace(group, messages=messages)

    def items(self, items: tuple[Item, ...], counter: TokenCounter) -> tuple[Item, ...]:
        """As `group`, for the messages of a view; what was masked is weighed anew."""
        return tuple(self._item(item, counter) for item in items)

    def _item(self, item: Item, counter: TokenCounter) -> Item:
        message = self._masked_message(item.message, item.kind)
        if message is item.message:
            return item
        mix = counter.mix(message)
        return msgspec.structs.replace(item, message=message, mix=mix, tokens=mix.raw)

    def _masked_message(self, message: Message, kind: GroupKind) -> Message:
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
