"""Unsent messages: a draft with its text, pastes and images; the store that saves a draft for each session; and the message parts
that are sent for one.

If the store fails, drafts are not remembered; nothing else is lost.
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
"""About how many characters of a paste the message still contains when it is sent as a file."""


class Paste(msgspec.Struct, frozen=True, tag="paste", omit_defaults=True):
    """A huge paste, kept out of the editor, or the output of a shell `command` of the person's own. It is sent whole with the
    message, or `as_file`, which the agent reads page by page."""

    number: int
    text: str
    as_file: bool = False
    command: str = ""

    @property
    def name(self) -> str:
        """The attachment's name, such as `paste-1.txt` or `output-2.txt`."""
        return f"{'output' if self.command else 'paste'}-{self.number}.txt"

    @property
    def part(self) -> Part:
        """The message part for it, an excerpt where it is sent as a file; for token counts before the message is sent."""
        return Text(self.text[:PASTE_EXCERPT_CHARS], self.name) if self.as_file else self.whole

    @property
    def whole(self) -> Text:
        """The whole text as a message part, named by its command where it is one's output."""
        return Text(self.text, f"{OWN_COMMAND}{self.command}" if self.command else self.name)


class Picture(msgspec.Struct, frozen=True, tag="picture"):
    """A pasted image: the bytes of its file, and its size in pixels."""

    name: str
    data: bytes
    width: int
    height: int

    @property
    def part(self) -> Part:
        """The message part for it, without the path that it gets when it is saved."""
        return Image("", self.width, self.height, self.name)


Along = Paste | Picture


class Draft(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that was not sent yet. `along` are its attachments; `later`: send it only after the running turn. Of the files
    that the text mentions, `pasted` are those that came in by a paste, `agreed` those the person agreed to send."""

    text: str = ""
    along: tuple[Along, ...] = ()
    later: bool = False
    pasted: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self.text.strip() and not self.along


def joined(drafts: Iterable[Draft]) -> Draft:
    """Several drafts joined into one, in their order."""
    drafts = tuple(drafts)
    texts = [draft.text.strip("\n") for draft in drafts if draft.text.strip()]
    return Draft(
        "\n\n".join(texts),
        tuple(each for draft in drafts for each in draft.along),
        pasted=tuple(name for draft in drafts for name in draft.pasted),
        agreed=tuple(name for draft in drafts for name in draft.agreed),
    )


SAVE_PAUSE_S = 0.4
"""Seconds without a change after which the draft is saved."""


class Drafts:
    """The store of drafts, one for each session, below the `data` folder; without one nothing is saved."""

    def __init__(self, data: Path | None = None) -> None:
        self._data = data
        self._kept: dict[str, Draft] = {}
        self._saving = Lock()

    async def keep(self, session: str, draft: Draft) -> bool:
        """Save a session's draft in place of the one before; an empty one deletes it. False where it could not be saved."""
        if self._kept.get(session, Draft()) == draft:
            return True
        if self._data is None:
            return False
        async with self._saving:
            self._kept[session] = draft
            try:
                await to_thread(_save_draft, self._data, session, draft)
            except (CtxchatError, OSError):
                self._kept.pop(session, None)
                return False
        return True

    async def load_draft(self, session: str) -> Draft:
        """The saved draft of a session; empty where there is none or it cannot be read."""
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
    """The message parts to send with a draft's text: attachments, mentioned files and resources. Raises StorageError where one
    cannot be saved, and CtxchatError where a resource cannot be read; nothing is sent then."""
    rules = mention_rules(draft, lambda access_request: session.permissions.judge("read_file", access_request).verdict)
    text = session.mentioning(draft.text)
    longest = longest_text(session.context_usage.limit)
    mentioned = await to_thread(look_all, text, workspace, longest, rules)
    if resources:
        mentioned += await resources.load(draft.text, longest, rules)
    parts = [await _draft_part(each, session.attachments) for each in draft.along]
    parts += [
        part for each in mentioned if (part := await part_of(each, session.attachments.save, session.attachments.mask))
    ]
    await session.attachments.count(parts)
    return tuple(parts)


def mention_rules(draft: Draft, judge: Callable[[AccessRequest], Verdict]) -> MentionRules:
    """The rules for which of the files that a draft mentions are sent; `judge` says which may be read."""
    return MentionRules(judge, draft.pasted, draft.agreed)


def longest_text(limit: int) -> int:
    """The longest mentioned file that is sent whole, in characters, for a window of `limit` tokens: about a third of a small
    window."""
    return min(MAX_TEXT_CHARS, max(2_000, limit))


async def _draft_part(along: Along, attachments: Attachments) -> Part:
    if isinstance(along, Paste):
        return await attachments.put_away(along.name, along.text) if along.as_file else along.whole
    return await attachments.save(along.name, along.data)
