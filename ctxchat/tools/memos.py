"""The tool `memo`: a short text with a name that the agent keeps word for word through every compaction of its session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec

from ctxchat.core.memos import MAX_TEXT_CHARS, MAX_TOTAL_CHARS, MEMO_TOOL, checked_memo
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.core.quantities import count
from ctxchat.tools.text import clip_line
from ctxchat.tools.tool import Arguments, Pieces, Tool


class MemoArguments(Arguments, frozen=True):
    name: str
    text: Annotated[str, msgspec.Meta(description=f"At most {MAX_TEXT_CHARS} characters; empty removes")] = ""


class WriteMemo(Tool[MemoArguments]):
    """`kept` gives the texts of the memos in the record, by name."""

    name = MEMO_TOOL
    about = (
        "Keep a short text word for word through every summary of this conversation: a decision and its reason, a dead end, what "
        "was verified. The same name replaces."
    )
    arguments = MemoArguments
    reads_only = False

    def __init__(self, kept: Callable[[], Mapping[str, str]]) -> None:
        super().__init__()
        self._kept = kept
        self._record: Mapping[str, str] = {}
        self._now: dict[str, str] = {}  # the record has what a call wrote only when its round has ended

    def access_needed(self, arguments: MemoArguments, context: ToolContext) -> AccessRequest:
        name, text = checked_memo(arguments.name, arguments.text, self._memos())
        return AccessRequest(
            "none", summary=f"memo {name}: {clip_line(' '.join(text.split()), 200)}" if text else f"no memo {name}"
        )

    async def execute(self, arguments: MemoArguments, context: ToolContext) -> Pieces:
        memos = self._memos()
        name, text = checked_memo(arguments.name, arguments.text, memos)
        done = "Removed" if not text else "Replaced" if name in memos else "Kept"
        memos.pop(name, None)
        if text:
            memos[name] = text
        held = sum(len(n) + len(t) for n, t in memos.items())
        yield ToolOutput(f"{done}. {count(len(memos), 'memo')}, {held:,} of {MAX_TOTAL_CHARS:,} characters.")

    def _memos(self) -> dict[str, str]:
        """The memos with those of the round under way."""
        record = self._kept()
        if record != self._record:
            self._record, self._now = record, dict(record)
        return self._now
