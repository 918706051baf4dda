"""The summary of a compaction, read and mended before it is applied: it streams in, then it is the person's to edit."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic

from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Key
from textual.message import Message
from textual.widgets import Static

from ctxchat.agent.compaction.preview import Preview
from ctxchat.core.errors import CtxchatError
from ctxchat.presentation.text import clean, editable, one_line, short
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.transcript.blocks import spin
from ctxchat.tui.widgets.field import PasteLimitedEditor

SPINNER_INTERVAL_S = 1 / 8
"""Seconds between two turns of the spinner; what came meanwhile is written then."""


class SummaryEditor(PasteLimitedEditor):
    """Enter applies, ctrl+j makes a line, as in the composer. What an editor cannot take of a text stays `behind` it as it is."""

    class Applied(Message):
        """The person wants this text."""

    def __init__(self) -> None:
        super().__init__(id="draft", soft_wrap=True, read_only=True, compact=True, highlight_cursor_line=False)
        self.behind = ""

    @property
    def whole_text(self) -> str:
        """The text of the editor, with the part that cannot be edited behind it."""
        return self.text + self.behind

    def append_text(self, text: str) -> None:
        """Add text at the end."""
        before, more = self.text, self.behind + clean(text)
        room = 0 if self.behind else editable(before + more) - len(before)
        self.insert(more[:room], self.document.end)
        self.behind = more[room:]
        self.move_cursor(self.document.end)

    def start_anew(self) -> None:
        """Empty the editor and what is behind it."""
        self.clear()
        self.behind = ""

    async def _on_key(self, event: Key) -> None:
        if event.key in {"enter", "ctrl+j", "shift+enter"}:
            event.stop()
            event.prevent_default()
            if event.key == "enter":
                self.post_message(self.Applied())
            elif not self.read_only:
                self.insert("\n")


class DraftScreen(Panel[str]):
    """Shows a text while it is being written, then lets the person edit it. Its result is the edited text, or None if the person
    left. `writer` names the model that writes."""

    HOME = SummaryEditor
    MENDED, EMPTY = "", ""

    BINDINGS = [
        Binding("enter,ctrl+s", "apply", "apply", key_display="enter"),
        Binding("ctrl+j", "line", "line"),
        Binding("escape", "back", "back", priority=True),
    ]

    def __init__(self, pieces: AsyncGenerator[str, None], writer: str) -> None:
        super().__init__()
        self._pieces, self._writer = pieces, writer
        self._coming: list[str] = []
        self._since, self._writing = monotonic(), True

    def body(self) -> ComposeResult:
        yield Static(id="progress", markup=False)
        yield SummaryEditor()

    def on_mount(self) -> None:
        self._beat = self.set_interval(SPINNER_INTERVAL_S, self._show_draft)
        self.run_worker(self._write_summary, group="summary", exit_on_error=False)

    # ── as it is written ──

    async def _write_summary(self) -> None:
        failed = ""
        try:
            async with aclosing(self._pieces) as pieces:
                async for piece in pieces:
                    self._coming.append(piece)
        except CtxchatError as problem:
            failed = str(problem)
        self._writing = False
        self._beat.stop()
        self._show_draft()
        draft = self.query_one(SummaryEditor)
        draft.read_only = False
        draft.move_cursor((0, 0))
        if failed:
            self._tell(f"✗ {one_line(failed, 300)}  Write it yourself, or press esc.", failed=True)

    def _show_draft(self) -> None:
        draft = self.query_one(SummaryEditor)
        if self._coming:
            draft.append_text("".join(self._coming))
            self._coming.clear()
        seconds = monotonic() - self._since
        self.head(f"~{short(max(1, len(draft.whole_text) // 4))} tokens")
        if self._writing:
            who = one_line(self._writer, 60) or "written"
            self._tell(f"{spin(seconds)} {who} writes it, {seconds:.0f} s   esc leaves everything as it is")
        else:
            rest = f"Too long to edit whole: {len(draft.behind):,} characters after these stay as they are. "
            self._tell((rest if draft.behind else "") + self.MENDED)

    def _tell(self, text: str, *, failed: bool = False) -> None:
        progress = self.query_one("#progress", Static)
        progress.set_class(failed, "-wrong")
        progress.update(text)

    # ── what is done ──

    def on_summary_editor_applied(self, event: SummaryEditor.Applied) -> None:
        event.stop()
        self.action_apply()

    def opened_again(self) -> None:
        """Apply the text: the key that opened this screen was pressed once more."""
        self.action_apply()

    def action_line(self) -> None:
        """For the footer; the editor makes the line."""

    def action_apply(self) -> None:
        """Close with the text as it is now, unless it is still being written or empty."""
        text = self.query_one(SummaryEditor).whole_text.strip()
        if self._writing:
            self.notify("It is still being written.", markup=False, timeout=3)
        elif not text:
            self.notify(self.EMPTY, markup=False)
        else:
            self.dismiss(text)


class SummaryScreen(DraftScreen):
    """The summary of a compaction."""

    TITLE = "The summary"
    MENDED = "Correct what is wrong. The messages it stands for stay in the archive."
    EMPTY = "An empty summary would lose everything. Esc leaves everything as it is."

    def __init__(self, pieces: AsyncGenerator[str, None], preview: Preview) -> None:
        super().__init__(pieces, preview.model)
