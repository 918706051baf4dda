"""Commands that the person types: `!line` runs at once, in the sandbox; `!!line` outside of it. What one says is shown as it
comes, and goes along with the next message unless the person takes it out.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual.worker import Worker

from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import ToolFinished
from ctxchat.core.ports import ToolOutput
from ctxchat.tools.shell import NO_OUTPUT
from ctxchat.tui.chat.screen import ChatScreen
from ctxchat.tui.transcript.tool_block import ToolBlock
from ctxchat.tui.unsent.draft import Paste

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

IN_SANDBOX, OUTSIDE = "!", "!!"
"""The signs before a command that runs in the sandbox, and before one that runs outside of it."""


class OwnCommands:
    """Runs the person's commands in a chat, one at a time."""

    def __init__(self, chat: ChatScreen) -> None:
        self._chat = chat
        self._worker: Worker[None] | None = None

    @property
    def running(self) -> bool:
        """A command runs."""
        return self._worker is not None and not self._worker.is_finished

    def start(self, session: Session, typed: str) -> None:
        """Run what was typed, `!` included. Raises CtxchatError where that cannot be."""
        if session.person_commands is None:
            raise CtxchatError("No commands can be run in this session.", session.read_only)
        if self.running:
            raise CtxchatError("A command of yours is running.", "Esc ends it.")
        self._worker = self._chat.run_worker(partial(self._run, session, typed), exit_on_error=False)

    def stop(self) -> bool:
        """Stop the command that runs; False where none does."""
        if not self.running or self._worker is None:
            return False
        asyncio.get_running_loop().call_soon(self._worker.cancel)
        return True

    async def _run(self, session: Session, typed: str) -> None:
        assert session.person_commands is not None
        outside = typed.startswith(OUTSIDE)
        line = typed.removeprefix(OUTSIDE if outside else IN_SANDBOX).strip()
        block = ToolBlock("", OUTSIDE if outside else IN_SANDBOX, {"command": line})
        block.unfolded, began = True, monotonic()
        self._chat.remove_class("-empty")
        self._chat.presenter.add_block(block)
        try:
            async with aclosing(session.person_commands.run(line, outside=outside)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ToolOutput):
                        self._finish(block, piece, line, monotonic() - began)
                    else:
                        block.progress(piece.text)
        finally:
            block.stop()

    def _finish(self, block: ToolBlock, output: ToolOutput, line: str, seconds: float) -> None:
        block.finish(
            ToolFinished("", "", output.status, output.text, 0, seconds, exit_code=output.exit_code),
        )
        if output.exit_code or output.text != NO_OUTPUT:
            self._chat.composer.attached.attach(Paste(0, output.text, command=line))
