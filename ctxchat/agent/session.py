"""A session as the outside sees it: values to read and verbs to act. Terminal, headless mode and tests all use this one door.

Composes the parts; what they do is theirs: `planner` and `compaction` are for compactions, `auto_compact` for what is said to
them, `permissions` for calls that wait, `changes` for what is changed by hand, `setup` for model, agent and settings. One at a
time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial

from ctxchat.agent.asides import Asides
from ctxchat.agent.attachments import Attachments
from ctxchat.agent.changes import Changes
from ctxchat.agent.compaction.compactor import Compactor
from ctxchat.agent.compaction.preview import Preview
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.emitting import Emit
from ctxchat.agent.file_undo import Files
from ctxchat.agent.handoff import Handoff
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.session_config import Configure, SessionConfig
from ctxchat.agent.session_lock import SessionLock
from ctxchat.agent.setup import Setup
from ctxchat.agent.spending_budget import SpendingBudget
from ctxchat.agent.titles import write_title
from ctxchat.agent.turn.fallback import Fallback
from ctxchat.agent.turn.tool_runner import ToolRunner
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
"""Characters of a command that goes on, as it is told at the end."""


class Session:
    """One conversation, open for writing unless `read_only` says why not."""

    def __init__(
        self,
        conversation: Conversation,
        tool_runner: ToolRunner,
        compactor: Compactor,
        hooks: Hooks,
        config: SessionConfig,
        *,
        configure: Configure | None = None,
        files: WorkspaceFiles | None = None,
        person_commands: PersonCommands | None = None,
        read_only: str = "",
        notices: Sequence[str] = (),
    ) -> None:
        self._conversation = conversation
        self._tool_runner = tool_runner
        self.permissions = tool_runner.approvals
        self._hooks = hooks
        tool_runner.call_hooks = hooks
        self._lock = SessionLock(conversation, hooks, read_only, config.listener)
        self.read_only = read_only
        self.notices = tuple(notices)
        self.attachments = Attachments(conversation, tool_runner.mask)
        self.setup = Setup(conversation, self._lock, tool_runner, compactor, hooks, config, configure)
        self._fallback = Fallback(conversation, self.setup)
        self.compaction = compactor
        self.planner = compactor.planner
        self.policy = compactor.policy
        self.changes = Changes(conversation, self._lock, compactor.policy, compactor.planner.memory)
        self.handoff = Handoff(conversation, self._lock, compactor.planner)
        self.asides = Asides(conversation, read_only)
        self.files = Files(conversation, self._lock, files) if files else None
        self.person_commands = person_commands
        """Commands that the person types, where there can be any."""

    # ── values ──

    @property
    def id(self) -> str:
        """The session's id."""
        return self._conversation.journal.session

    @property
    def state(self) -> SessionState:
        """Ledger, title, fills, past compactions."""
        return self._conversation.state

    @property
    def view(self) -> View:
        """What the next request holds, as last compiled."""
        return self._conversation.view

    @property
    def context_usage(self) -> ContextUsage:
        """The gauge, as last measured."""
        return self._conversation.context_usage

    @property
    def busy(self) -> bool:
        """A turn or a compaction is under way."""
        return self._lock.busy

    def mentioning(self, text: str) -> str:
        """A message with what it calls by `/name`: the files that either mentions go along with it."""
        filled = called_prompt(text, self.setup.prompts)
        return f"{text}\n{filled.text}" if filled else text

    # ── verbs ──

    def send(
        self,
        text: str,
        attachments: Sequence[Part] = (),
        *,
        next_steering_message: NextSteeringMessage = no_steering_message,
    ) -> AsyncGenerator[Stamped, None]:
        """One turn, joined between its rounds by what is said `next_steering_message`. Closing the generator interrupts it; what
        exists is kept. Raises SessionBusy for a read-only session."""
        return self._lock.stream(lambda emit: self._new_turn(next_steering_message, emit).run(text, attachments))

    def resume(
        self, *, next_steering_message: NextSteeringMessage = no_steering_message
    ) -> AsyncGenerator[Stamped, None]:
        """The last turn goes on where it broke off: as `send`, without a message. Raises CtxchatError where nothing is open."""
        return self._lock.stream(lambda emit: self._new_turn(next_steering_message, emit).resume())

    def _new_turn(self, next_steering_message: NextSteeringMessage, emit: Emit) -> Turn:
        return Turn(
            self._conversation,
            self._tool_runner,
            self.compaction,
            self._fallback,
            self.setup,
            self._hooks,
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
        """What freeing up context would do. Calls no model, sends nothing anywhere."""
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
        """Run a previewed compaction, only the named steps of it where given, with a summary a person wrote where there is one.
        Closing it leaves everything as it was."""
        return self._lock.stream(partial(self.compaction.run, preview, steps=steps, reason=reason, summary=summary))

    def make_room(self) -> AsyncGenerator[Stamped, None]:
        """Between turns: the compaction that is due or agreed, where there is one, without waiting for the next message."""
        return self._lock.stream(self.compaction.make_room)

    async def measure(self) -> ContextUsage:
        """Compile and measure now; while a turn is under way, the gauge as it stands."""
        return self._conversation.context_usage if self.busy else await self._conversation.refresh()

    async def seen_view(self) -> View:
        """The view; a session just opened has none yet, and is looked at first."""
        if not self.view.items:
            await self.measure()
        return self.view

    async def rename(self, title: str) -> None:
        """Give the session another title."""
        async with self._lock.alone():
            await self._conversation.write(Named(title))

    async def write_title(self) -> str:
        """Have the model name a session that is called by its first words; the new title, empty where it stays as it is."""
        return "" if self.read_only else await write_title(self._conversation)

    @property
    def spending(self) -> SpendingBudget:
        """What may still be spent."""
        return self._conversation.spending

    @property
    def background(self) -> BackgroundCommands | None:
        """Commands that go on beside the conversation, where there can be any."""
        return self._tool_runner.background

    async def close(self) -> tuple[Notice, ...]:
        """End what is being prepared, and give the session free for others. What hooks had to say at the end. A second time
        does nothing. Raises CtxchatError while a turn or a compaction is under way: it would go on to write without the lock."""
        async with self._lock.closing() as first:
            return await self._close_parts() if first else ()

    async def _close_parts(self) -> tuple[Notice, ...]:
        notices: list[Notice] = []
        try:
            notices += () if self.read_only else await self._hooks.end_session()
        finally:
            await self.compaction.close()
            if self.background:
                await self.background.close()
                rows = self.background.rows
                notices += (Notice("warning", f"{row.id}: {row.moved}") for row in rows if row.moved)
                left = [(row.id, " ".join(row.command.split())[:MAX_TOLD_CHARS]) for row in rows if row.running]
                notices += (Notice("info", f"{id} goes on: {command} (/jobs ends it)") for id, command in left)
            await self._conversation.stop_background_work()
            with suppress(CtxchatError):  # nobody is left who could mend it
                await self._conversation.flush()
            if self.files:
                await self.files.close()
            await self._conversation.knowledge.remember()
            await self._conversation.journal.close()
        return tuple(notices)
