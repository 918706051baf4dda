"""A sub-agent's work as it goes on: its record, and the round under way as far as it is written down."""

from __future__ import annotations

import asyncio

from textual.app import ComposeResult
from textual.binding import Binding

from ctxchat.core.journal import Partial, SessionState, fold
from ctxchat.core.messages import Message
from ctxchat.presentation.history import items
from ctxchat.presentation.text import one_line, short
from ctxchat.presentation.tool_words import decoded
from ctxchat.presentation.usage_text import count
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.services import Services
from ctxchat.tui.transcript.blocks import Block, ReplyBlock
from ctxchat.tui.transcript.record_blocks import finished_call
from ctxchat.tui.transcript.tool_block import ToolBlock
from ctxchat.tui.transcript.transcript import Transcript

LOOK_INTERVAL_S = 0.5
"""Seconds after which the journal is looked at again: a reply under way is written down about as often."""


class RoundUnderWay:
    """The blocks of a round that is not in the record yet."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._seq = -1
        self._blocks: dict[str, Block] = {}

    def show_round(self, written: Partial | None) -> None:
        """Show the journal's partial record of the round under way; None if there is none."""
        if written is None or written.assistant.seq != self._seq:
            for block in self._blocks.values():
                self._transcript.discard(block)
            self._blocks, self._seq = {}, written.assistant.seq if written else -1
        if written is None:
            return
        self._show_text(written.assistant)
        results = {message.call_id: message for message in written.results}
        for call in written.assistant.calls:
            known = self._blocks.get(call.id)
            if not isinstance(known, ToolBlock):
                self._add(call.id, ToolBlock(call.id, call.name, decoded(call.arguments), stops=False))
            elif known.moving and (result := results.get(call.id)):
                known.finish(finished_call(call, result, {}))

    def _show_text(self, message: Message) -> None:
        if not message.text.strip():
            return
        reply = self._blocks.get("")
        if not isinstance(reply, ReplyBlock):
            self._add("", reply := ReplyBlock())
        reply.append_text(message.text[len(reply.text) :])

    def _add(self, key: str, block: Block) -> None:
        self._blocks[key] = block
        self._transcript.add_block(block)


class SubAgentScreen(Panel[None]):
    """Follows the session of a sub-agent, whether it is still at work or has ended."""

    TITLE = "Sub-agent"
    HOME = Transcript
    BINDINGS = [
        Binding("pageup", "scroll(-1)", "up", show=False),
        Binding("pagedown", "scroll(1)", "down", show=False),
        Binding("escape,q", "back", "back", key_display="esc"),
    ]

    def __init__(self, services: Services, session_id: str) -> None:
        super().__init__()
        self._services, self._session_id = services, session_id

    def body(self) -> ComposeResult:
        yield Transcript()

    def on_mount(self) -> None:
        super().on_mount()
        self.head("looking \u2026")
        self.run_worker(self._follow, exit_on_error=False)

    async def _follow(self) -> None:
        """The record, drawn as it grows. Work that grows with what is new, not with what is there."""
        transcript = self.query_one(Transcript)
        transcript.get_ready()
        under_way, state, last = RoundUnderWay(transcript), SessionState(), 0
        while True:
            news = await self.attempt(self._services.journal_news(self._session_id, last))
            if news is None:
                return
            if not news.last:
                self.head("its session was deleted")
                return
            if news.records:
                under_way.show_round(None)
                state, first, last = fold(news.records, state), last == 0, news.last
                shown = items(state.ledger, state.checkpoints)
                (transcript.show_record(shown, {}) if first else transcript.extend_record(shown, {}, {}))
            under_way.show_round(news.under_way)
            self._say(state, at_work=news.under_way is not None)
            await asyncio.sleep(LOOK_INTERVAL_S)

    def _say(self, state: SessionState, *, at_work: bool) -> None:
        name = one_line(state.agent or "one like its caller", 40)
        used = f"{short(state.used)} tokens, {count(len(state.ledger.messages()), 'message')}"
        self.head(
            f"{'at work   ' if at_work else ''}{used}", used, left=f"Sub-agent   {name}   {one_line(state.title, 80)}"
        )

    def action_scroll(self, pages: int) -> None:
        """A page up or down."""
        shown = self.query_one(Transcript)
        (shown.scroll_page_up if pages < 0 else shown.scroll_page_down)(animate=False)
