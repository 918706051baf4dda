"""The public interface of a session, used by the terminal, by headless mode and by tests alike.

Composes the parts of a session: `planner` and `compaction` make compactions, `policy` holds what the person answered to a
suggested one, `permissions` the calls that wait for an answer, `changes` makes changes by hand, `setup` exchanges model, agent
and settings. Only one operation writes at a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial

from ctxchat.agent.asides import Asides
from ctxchat.agent.attachments import Attachments
from ctxchat.agent.changes import Changes
from ctxchat.agent.compaction.preview import Preview
from ctxchat.agent.emitting import Emit
from ctxchat.agent.file_undo import Files
from ctxchat.agent.handoff import Handoff
from ctxchat.agent.session_config import Configure, SessionConfig
from ctxchat.agent.session_lock import SessionLock
from ctxchat.agent.session_parts import SessionParts
from ctxchat.agent.setup import Setup
from ctxchat.agent.spending_budget import SpendingBudget
from ctxchat.agent.titles import write_title
from ctxchat.agent.turn.fallback import Fallback
from ctxchat.agent.turn.turn import NextSteeringMessage, Turn, no_steering_message
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Notice, Stamped
from ctxchat.core.journal import Named, SessionState
from ctxchat.core.messages import Part
from ctxchat.core.ports import BackgroundCommands, PersonCommands, WorkspaceFiles
from ctxchat.core.prompt_files import called_prompt
from ctxchat.core.record import Reason
from ctxchat.core.view import View

MAX_TOLD_CHARS = 80
"""Characters of a still running command that the notice at the end of a session quotes."""


class Session:
    """One conversation, open for writing unless `read_only` says why not."""

    def __init__(
        self,
        parts: SessionParts,
        config: SessionConfig,
        *,
        configure: Configure | None = None,
        files: WorkspaceFiles | None = None,
        person_commands: PersonCommands | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        conversation, tool_runner, compactor = parts.conversation, parts.tool_runner, parts.compactor
        self._parts = parts
        self._conversation = conversation
        self._tool_runner = tool_runner
        self.permissions = tool_runner.approvals
        tool_runner.call_hooks = parts.hooks
        self._lock = SessionLock(conversation, parts.hooks, config.listener)
        self.notices = tuple(notices)
        self.attachments = Attachments(conversation, tool_runner.mask)
        self.setup = Setup(parts, self._lock, config, configure)
        self._fallback = Fallback(conversation, self.setup)
        self.compaction = compactor
        self.planner = compactor.planner
        self.policy = compactor.policy
        self.changes = Changes(conversation, self._lock, compactor.policy, compactor.planner.memory)
        self.handoff = Handoff(conversation, self._lock, compactor.planner)
        self.asides = Asides(conversation)
        self.files = Files(conversation, self._lock, files) if files else None
        self.person_commands = person_commands
        """Runs commands that the person types; None where there can be none."""

    # ── values to read ──

    @property
    def id(self) -> str:
        """The session's id."""
        return self._conversation.journal.session

    @property
    def read_only(self) -> str:
        """Why nothing can be written to the session; empty where that is possible."""
        return self._conversation.journal.read_only

    @property
    def state(self) -> SessionState:
        """Ledger, title, fills, past compactions."""
        return self._conversation.state

    @property
    def view(self) -> View:
        """The content of the next request, as last compiled."""
        return self._conversation.view

    @property
    def context_usage(self) -> ContextUsage:
        """The gauge, as last measured."""
        return self._conversation.context_usage

    @property
    def busy(self) -> bool:
        """Whether a turn, a compaction or a change is under way."""
        return self._lock.busy

    def mentioning(self, text: str) -> str:
        """A message followed by the text of the prompt it calls by `/name`, to find the files that either mentions."""
        filled = called_prompt(text, self.setup.prompts)
        return f"{text}\n{filled.text}" if filled else text

    # ── operations ──

    def send(
        self,
        text: str,
        attachments: Sequence[Part] = (),
        *,
        next_steering_message: NextSteeringMessage = no_steering_message,
    ) -> AsyncGenerator[Stamped, None]:
        """Run one turn, and yield its events. Between its rounds `next_steering_message` is asked for messages to add. Closing
        the generator interrupts the turn and keeps what exists. Raises SessionBusy for a read-only session."""
        return self._lock.stream(lambda emit: self._new_turn(next_steering_message, emit).run(text, attachments))

    def resume(
        self, *, next_steering_message: NextSteeringMessage = no_steering_message
    ) -> AsyncGenerator[Stamped, None]:
        """Continue an interrupted turn, like `send` without a message. Raises CtxchatError where none is open."""
        return self._lock.stream(lambda emit: self._new_turn(next_steering_message, emit).resume())

    def _new_turn(self, next_steering_message: NextSteeringMessage, emit: Emit) -> Turn:
        """A turn with the parts of this session."""
        return Turn(
            self._parts,
            self._fallback,
            self.setup,
            self.files,
            next_steering_message,
            emit,
        )

    async def preview(
        self,
        instructions: str = "",
        keep_recent: int | None = None,
        *,
        strategy: str = "",
        target: float | None = None,
    ) -> Preview:
        """A preview of a compaction. Calls no model, sends nothing anywhere."""
        await self.measure()
        return await self.planner.preview(instructions, keep_recent, strategy, target)

    def free_up(
        self,
        preview: Preview,
        steps: Sequence[str] | None = None,
        *,
        summary: str | None = None,
        reason: Reason = "manual",
    ) -> AsyncGenerator[Stamped, None]:
        """Run a previewed compaction: with `steps`, only these; with `summary`, using that text a person wrote. Closing the
        generator leaves everything as it was."""
        return self._lock.stream(partial(self.compaction.run, preview, steps=steps, reason=reason, summary=summary))

    def make_room(self) -> AsyncGenerator[Stamped, None]:
        """Between turns: run the compaction that is due or agreed to, if any, without waiting for the next message."""
        return self._lock.stream(self.compaction.make_room)

    async def measure(self) -> ContextUsage:
        """The gauge, compiled and measured anew; while the session is busy, as last measured."""
        return self._conversation.context_usage if self.busy else await self._conversation.refresh()

    async def seen_view(self) -> View:
        """The view, compiled first where a session was just opened."""
        if not self.view.items:
            await self.measure()
        return self.view

    async def rename(self, title: str) -> None:
        """Give the session another title."""
        async with self._lock.alone():
            await self._conversation.write(Named(title))

    async def write_title(self) -> str:
        """Have the model title a session that still has its first words as title. Returns the new title, empty where it stays."""
        return "" if self.read_only else await write_title(self._conversation)

    @property
    def spending(self) -> SpendingBudget:
        """The spending budget."""
        return self._conversation.spending

    @property
    def background(self) -> BackgroundCommands | None:
        """Background commands of the session; None where there can be none."""
        return self._tool_runner.background

    async def close(self) -> tuple[Notice, ...]:
        """Stop all preparations, and release the session for others. Returns the notices of hooks and background commands. A
        second call does nothing. Raises CtxchatError while a turn or a compaction is under way, which would otherwise go on to
        write without the lock."""
        async with self._lock.closing() as first:
            return await self._close_parts() if first else ()

    async def _close_parts(self) -> tuple[Notice, ...]:
        """End the parts of the session in the order in which they depend on each other. Returns notices for the person."""
        notices: list[Notice] = []
        try:
            notices += () if self.read_only else await self._parts.hooks.end_session()
        finally:
            await self.compaction.close()
            if self.background:
                await self.background.close()
                rows = self.background.rows
                notices += (Notice("warning", f"{row.id}: {row.moved}") for row in rows if row.moved)
                left = [(row.id, " ".join(row.command.split())[:MAX_TOLD_CHARS]) for row in rows if row.running]
                notices += (Notice("info", f"{id} goes on: {command} (/jobs ends it)") for id, command in left)
            await self._conversation.stop_background_work()
            with suppress(CtxchatError):  # nothing could react to the error any more
                await self._conversation.flush()
            if self.files:
                await self.files.close()
            await self._conversation.knowledge.remember()
            usage = self._conversation.context_usage
            await self._conversation.journal.close(usage.used - usage.tokens("draft"))
        return tuple(notices)
