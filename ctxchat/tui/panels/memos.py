"""The memos of a session: what the agent keeps word for word through every compaction, to read, edit and remove."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding
from textual.content import Content

from ctxchat.core.memos import MAX_TOTAL_CHARS, Memo, memos_of
from ctxchat.core.quantities import count
from ctxchat.presentation.text import clean, cut, one_line
from ctxchat.tui.panels.panel import Listing
from ctxchat.tui.panels.summary import DraftScreen
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

HOW = "The agent writes memos with its tool memo: decisions with their reasons, dead ends, what was verified."


class MemoEditor(DraftScreen):
    """Edits one memo. Its result is the new text, or None."""

    MENDED = "The agent is told what it says now with your next message."
    EMPTY = "An empty memo says nothing. Esc goes back, where d removes it."

    def __init__(self, memo: Memo) -> None:
        super().__init__(_at_once(memo.text), "")
        self.title = f"Memo   {one_line(memo.name)}"


async def _at_once(text: str) -> AsyncGenerator[str, None]:
    yield text


class MemosScreen(Listing[str]):
    """Shows the agent's memos. Its result is the group in which the chosen memo was written, or None."""

    TITLE = "Memos"
    COLUMNS = (
        Column("name", least=14, share=1),
        Column("text", least=16, share=3),
        Column("chars", 6, right=True, rank=2),
        Column("by", 10, rank=1),
    )
    EMPTY = "There are no memos."
    FILTER_PLACEHOLDER = "words of a memo"
    BINDINGS = [
        Binding("enter", "choose", "go there", key_display="enter"),
        Binding("e", "edit", "edit"),
        Binding("d,delete", "remove", "remove", key_display="d"),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._memos: Sequence[Memo] = ()

    def on_mount(self) -> None:
        super().on_mount()
        self._list_memos()

    def _list_memos(self) -> None:
        self._memos = tuple(memos_of(self._session.state.ledger).values())[::-1]
        self.apply_filter()

    def apply_filter(self) -> None:
        shown = self.matching(self._memos, lambda memo: f"{memo.name} {memo.text}")
        self.set_items(shown, self.rows.current.name if self.rows.current else "", lambda memo: memo.name)
        held = sum(len(memo.name) + len(memo.text) for memo in self._memos)
        told = count(len(self._memos), "memo")
        self.head(f"{told}, {held:,} of {MAX_TOTAL_CHARS:,} characters", told)

    def cells(self, item: Memo) -> tuple[Cell, ...]:
        who = "you" if item.by_person else "the agent"
        return (one_line(item.name), "strong"), one_line(item.text, 400), (f"{len(item.text):,}", "dim"), (who, "dim")

    def describe_item(self, item: Memo | None) -> Content:
        if item is None:
            return Content.styled("" if self._memos else HOW, MUTED)
        return Content("\n").join([Content.styled(f"{item.message}", MUTED), Content(cut(clean(item.text)))])

    # ── what is done ──

    def action_choose(self) -> None:
        if memo := self._editable_memo(changing=False):
            self.dismiss(memo.group)

    @work(group="write", exit_on_error=False)
    async def action_edit(self) -> None:
        """Edit the memo; the agent is told the new text in a note."""
        memo = self._editable_memo()
        text = await self.app.push_screen_wait(MemoEditor(memo)) if memo else None
        if memo and text and text != memo.text:
            await self.attempt(self._session.changes.memo(memo.name, text))
            self._list_memos()

    @work(group="write", exit_on_error=False)
    async def action_remove(self) -> None:
        """Kept no longer; undo brings it back."""
        memo = self._editable_memo()
        if memo and await self.confirm(f"Remove the memo {one_line(memo.name)}? Undo brings it back."):
            await self.attempt(self._session.changes.memo(memo.name, ""))
            self._list_memos()

    def _editable_memo(self, *, changing: bool = True) -> Memo | None:
        """The memo under the cursor, where it can be changed; else it is said why not."""
        memo: Memo | None = self.rows.current
        if memo and changing and self._session.read_only:
            self.notify_here(self._session.read_only)
            return None
        return memo
