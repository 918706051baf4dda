"""From a draft to what a session is sent: mentioned files are read now, images saved, pastes that go as files put away."""

from __future__ import annotations

from asyncio import to_thread
from pathlib import Path
from typing import TYPE_CHECKING

from ctxchat.core.messages import Part, Text
from ctxchat.tools.mentions import LONGEST_TEXT, look_all, part_of
from ctxchat.tui.unsent.draft import Along, Draft, Paste

if TYPE_CHECKING:
    from ctxchat.agent.attachments import Attachments
    from ctxchat.agent.session import Session


async def prepared(draft: Draft, session: Session, workspace: Path) -> tuple[Part, ...]:
    """What goes along with the words of a draft. Raises StorageError where something cannot be saved; nothing is sent then."""
    named = await to_thread(look_all, draft.text, workspace, longest_text(session))
    parts = [await _part(each, session.attachments) for each in draft.along]
    parts += [
        part for each in named if (part := await part_of(each, session.attachments.save, session.attachments.mask))
    ]
    await session.attachments.count(parts)
    return tuple(parts)


def longest_text(session: Session) -> int:
    """Characters of a mentioned file that go along whole: about a third of a small window, no more."""
    return min(LONGEST_TEXT, max(2_000, session.figures.limit))


async def _part(along: Along, attachments: Attachments) -> Part:
    if isinstance(along, Paste):
        return await attachments.put_away(along.name, along.text) if along.as_file else Text(along.text, along.name)
    return await attachments.save(along.name, along.data)
