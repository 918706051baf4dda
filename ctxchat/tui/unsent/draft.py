"""An unsent message: its words, and the pastes and images that go along with it; how those of each session are kept beside the
screen; and what of them a session is sent.

A store that refuses costs the memory of it, nothing else.
"""

from __future__ import annotations

from asyncio import Lock, to_thread
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ctxchat.core.errors import CtxchatError
from ctxchat.core.messages import OWN_COMMAND, Image, Part, Text
from ctxchat.core.permissions import AccessRequest
from ctxchat.tools.mentions import MAX_TEXT_CHARS, MentionRules, Verdict, look_all, part_of

if TYPE_CHECKING:
    from ctxchat.agent.attachments import Attachments
    from ctxchat.agent.session import Session
    from ctxchat.tui.unsent.resources import MentionedResources

PASTE_EXCERPT_CHARS = 4_000
"""Characters of a paste that the message still holds, about, when it goes as a file."""


class Paste(msgspec.Struct, frozen=True, tag="paste", omit_defaults=True):
    """A huge paste, kept out of the editor, or the output of a `command` of the person's own. It goes whole with the message, or
    `as_file`: then the agent pages through it."""

    number: int
    text: str
    as_file: bool = False
    command: str = ""

    @property
    def name(self) -> str:
        """`paste-1.txt`, `output-2.txt`."""
        return f"{'output' if self.command else 'paste'}-{self.number}.txt"

    @property
    def part(self) -> Part:
        """What the message holds of it, as far as can be said before it is sent."""
        return Text(self.text[:PASTE_EXCERPT_CHARS], self.name) if self.as_file else self.whole

    @property
    def whole(self) -> Text:
        """As it goes where it is no file; of a command by its line."""
        return Text(self.text, f"{OWN_COMMAND}{self.command}" if self.command else self.name)


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
    """What was written and not sent. `later`: not before the turn under way has ended. Of the files that the text mentions,
    `pasted` are those the person did not type, `agreed` those they agreed to send."""

    text: str = ""
    along: tuple[Along, ...] = ()
    later: bool = False
    pasted: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """There is nothing to send."""
        return not self.text.strip() and not self.along


def joined(drafts: Iterable[Draft]) -> Draft:
    """Several as one, in their order."""
    drafts = tuple(drafts)
    words = [draft.text.strip("\n") for draft in drafts if draft.text.strip()]
    return Draft(
        "\n\n".join(words),
        tuple(each for draft in drafts for each in draft.along),
        pasted=tuple(name for draft in drafts for name in draft.pasted),
        agreed=tuple(name for draft in drafts for name in draft.agreed),
    )


SAVE_PAUSE_S = 0.4
"""Seconds after which what was typed is kept."""


class Drafts:
    """Below the data folder; without one nothing is kept."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._kept: dict[str, Draft] = {}
        self._one = Lock()

    async def keep(self, session: str, draft: Draft) -> bool:
        """What is unsent now, in place of what was. False where it could not be kept."""
        if self._kept.get(session, Draft()) == draft:
            return True
        if self._data is None:
            return False
        async with self._one:
            self._kept[session] = draft
            try:
                await to_thread(_save_draft, self._data, session, draft)
            except (CtxchatError, OSError):
                self._kept.pop(session, None)
                return False
        return True

    async def load_draft(self, session: str) -> Draft:
        """What was unsent when the session was last on screen; empty for nothing, and for what cannot be read."""
        if self._data is None:
            return Draft()
        try:
            draft = await to_thread(_load_draft, self._data, session)
        except (CtxchatError, OSError, msgspec.MsgspecError):
            return Draft()
        self._kept[session] = draft
        return draft


def _save_draft(data: Path, session: str, draft: Draft) -> None:
    from ctxchat.storage.session_files import keep_draft

    keep_draft(data, session, b"" if draft.empty else msgspec.json.encode(draft))


def _load_draft(data: Path, session: str) -> Draft:
    from ctxchat.storage.session_files import kept_draft

    kept = kept_draft(data, session)
    return msgspec.json.decode(kept, type=Draft) if kept else Draft()


async def prepared(
    draft: Draft, session: Session, workspace: Path, resources: MentionedResources | None
) -> tuple[Part, ...]:
    """What goes along with the words of a draft. Raises StorageError where something cannot be saved, and CtxchatError where a
    resource cannot be read; nothing is sent then."""
    rules = mention_rules(draft, lambda access_request: session.permissions.judge("read_file", access_request).verdict)
    text = session.mentioning(draft.text)
    longest = longest_text(session.context_usage.limit)
    named = await to_thread(look_all, text, workspace, longest, rules)
    if resources:
        named += await resources.load(draft.text, longest, rules)
    parts = [await _draft_part(each, session.attachments) for each in draft.along]
    parts += [
        part for each in named if (part := await part_of(each, session.attachments.save, session.attachments.mask))
    ]
    await session.attachments.count(parts)
    return tuple(parts)


def mention_rules(draft: Draft, judge: Callable[[AccessRequest], Verdict]) -> MentionRules:
    """What may go along of the files that a draft mentions."""
    return MentionRules(judge, draft.pasted, draft.agreed)


def longest_text(limit: int) -> int:
    """Characters of a mentioned file that go along whole: about a third of a small window, no more."""
    return min(MAX_TEXT_CHARS, max(2_000, limit))


async def _draft_part(along: Along, attachments: Attachments) -> Part:
    if isinstance(along, Paste):
        return await attachments.put_away(along.name, along.text) if along.as_file else along.whole
    return await attachments.save(along.name, along.data)
