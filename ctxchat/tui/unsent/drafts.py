"""Unsent messages, kept for each session beside the screen: what waits, what is on its way and what is being written.

A store that refuses costs the memory of it, nothing else.
"""

from __future__ import annotations

from asyncio import Lock, to_thread
from pathlib import Path

import msgspec

from ctxchat.core.errors import CtxchatError
from ctxchat.tui.unsent.draft import Draft

REST = 0.4
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
                await to_thread(_write, self._data, session, draft)
            except (CtxchatError, OSError):
                self._kept.pop(session, None)
                return False
        return True

    async def left(self, session: str) -> Draft:
        """What was unsent when the session was last on screen; empty for nothing, and for what cannot be read."""
        if self._data is None:
            return Draft()
        try:
            draft = await to_thread(_read, self._data, session)
        except (CtxchatError, OSError, msgspec.MsgspecError):
            return Draft()
        self._kept[session] = draft
        return draft


def _write(data: Path, session: str, draft: Draft) -> None:
    from ctxchat.storage.session_files import keep_draft

    keep_draft(data, session, b"" if draft.empty else msgspec.json.encode(draft))


def _read(data: Path, session: str) -> Draft:
    from ctxchat.storage.session_files import kept_draft

    kept = kept_draft(data, session)
    return msgspec.json.decode(kept, type=Draft) if kept else Draft()
