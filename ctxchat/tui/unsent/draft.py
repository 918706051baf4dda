"""An unsent message as a value: its words, and the pastes and images that go along with it. Knows no widget and no session."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ctxchat.core.messages import Image, Part, Text

GLIMPSE = 4_000
"""Characters of a paste that the message still holds, about, when it goes as a file."""


class Paste(msgspec.Struct, frozen=True, tag="paste", omit_defaults=True):
    """A huge paste, kept out of the editor. It goes whole with the message, or `as_file`: then the agent pages through it."""

    number: int
    text: str
    as_file: bool = False

    @property
    def name(self) -> str:
        """`paste-1.txt`."""
        return f"paste-{self.number}.txt"

    @property
    def part(self) -> Part:
        """What the message holds of it, as far as can be said before it is sent."""
        return Text(self.text[:GLIMPSE] if self.as_file else self.text, self.name)


class Picture(msgspec.Struct, frozen=True, tag="picture"):
    """An image that was pasted: its file as it is, its size in pixels."""

    name: str
    data: bytes
    width: int
    height: int

    @property
    def part(self) -> Part:
        """As it will be in the message, but for its place."""
        return Image("", self.width, self.height, self.name)


Along = Paste | Picture


class Draft(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was written and not sent. `later`: not before the turn under way has ended."""

    text: str = ""
    along: tuple[Along, ...] = ()
    later: bool = False

    @property
    def empty(self) -> bool:
        """There is nothing to send."""
        return not self.text.strip() and not self.along


def joined(drafts: Iterable[Draft]) -> Draft:
    """Several as one, in their order."""
    drafts = tuple(drafts)
    words = [draft.text.strip("\n") for draft in drafts if draft.text.strip()]
    return Draft("\n\n".join(words), tuple(each for draft in drafts for each in draft.along))
