"""Reads and writes files through the editor, so that the agent sees unsaved text, and the editor sees the agent's changes.

Implements `core.ports.EditorFiles`. Where the editor does not answer in time, the file on disk is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from ctxchat.acp.editor import Editor
from ctxchat.tools.line_ends import LINE_END, with_line_ends_of

T = TypeVar("T")

ANSWER_TIMEOUT_S = 10.0
"""Seconds an editor has to read or write a file; after the first timeout it is not asked again."""


class OpenFiles:
    """The editor's open files, for one session."""

    def __init__(self, editor: Editor, session: str) -> None:
        self._editor, self._session = editor, session
        self._silent = False

    def text(self, path: str) -> str | None:
        """As the port says. Called in a thread."""
        if self._silent or not self._editor.able.reads:
            return None
        answer: Future[str | None] = asyncio.run_coroutine_threadsafe(self._read(path), self._editor.loop)
        return answer.result(ANSWER_TIMEOUT_S + 1.0)

    async def save(self, path: str) -> None:
        """As the port says."""
        text = await asyncio.to_thread(self.text, path) if self._editor.able.writes else None
        if text is not None and (unsaved := await asyncio.to_thread(_unsaved, path, text)):
            await self.write(path, unsaved)

    async def write(self, path: str, text: str) -> None:
        """As the port says."""
        if not self._silent and self._editor.able.writes:
            await self._answered(self._editor.client.write_text_file(self._session, path, text))

    async def _read(self, path: str) -> str | None:
        found = await self._answered(self._editor.client.read_text_file(self._session, path))
        return found.content if found else None

    async def _answered(self, asked: Awaitable[T]) -> T | None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return await asked
        except TimeoutError:
            self._silent = True
        except Exception:  # on any error of the editor the file on disk is used
            return None
        return None


def _unsaved(path: str, text: str) -> str:
    """The editor's text with the line ends of the file on disk; empty where the file holds it already, or is not UTF-8, which the
    editor may have decoded differently."""
    try:
        saved = Path(path).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if LINE_END.sub("\n", saved) == LINE_END.sub("\n", text) else with_line_ends_of(saved, text)
