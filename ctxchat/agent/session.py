"""A session as the outside sees it: values to read and verbs to act. Terminal, headless mode and tests all use this one door.

Composes the parts; what they do is theirs: `compaction` is for passes, `changes` for what is changed by hand, `setup` for
model, agent and settings. One at a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from functools import partial

from ctxchat.agent.attachments import Attachments
from ctxchat.agent.changes import Changes
from ctxchat.agent.compaction import Compaction
from ctxchat.agent.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.fallback import Fallback
from ctxchat.agent.files import Files
from ctxchat.agent.handoff import Handoff
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.session_config import Arrange, SessionConfig
from ctxchat.agent.session_lock import SessionLock
from ctxchat.agent.setup import Setup
from ctxchat.agent.toolbox import Toolbox
from ctxchat.agent.turn import Meanwhile, Turn, nothing
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Notice, Stamped
from ctxchat.core.figures import Figures
from ctxchat.core.journal import Named, SessionState
from ctxchat.core.messages import Part
from ctxchat.core.permissions import Answer, Mode
from ctxchat.core.ports import WorkspaceFiles
from ctxchat.core.view import View


class Session:
    """One conversation, open for writing unless `read_only` says why not."""

    def __init__(
        self,
        conversation: Conversation,
        toolbox: Toolbox,
        compactor: Compactor,
        arranged: SessionConfig,
        *,
        arrange: Arrange | None = None,
        hooks: Hooks | None = None,
        files: WorkspaceFiles | None = None,
        read_only: str = "",
        notices: Sequence[str] = (),
    ) -> None:
        self._conversation = conversation
        self._toolbox = toolbox
        self.permissions = toolbox.gate
        self._compactor = compactor
        self._hooks = hooks
        self._lock = SessionLock(conversation, hooks, read_only)
        self.read_only = read_only
        self.notices = tuple(notices)
        self.attachments = Attachments(conversation, toolbox.mask)
        self.setup = Setup(conversation, self._lock, toolbox, compactor, hooks, arranged, arrange)
        self._fallback = Fallback(conversation, self.setup)
        self.compaction = Compaction(compactor, self._lock)
        self.changes = Changes(conversation, self._lock, compactor.consent)
        self.handoff = Handoff(conversation, self._lock, lambda: compactor.summariser)
        self.files = Files(conversation, self._lock, files) if files else None

    # ── values ──

    @property
    def id(self) -> str:
        """The session's id."""
        return self._conversation.journal.session

    @property
    def state(self) -> SessionState:
        """Ledger, title, fills, past passes."""
        return self._conversation.state

    @property
    def view(self) -> View:
        """What the next request holds, as last compiled."""
        return self._conversation.view

    @property
    def figures(self) -> Figures:
        """The gauge, as last measured."""
        return self._conversation.figures

    @property
    def busy(self) -> bool:
        """A turn or a pass is under way."""
        return self._lock.busy

    @property
    def mode(self) -> Mode:
        """Which calls run without asking."""
        return self.permissions.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self.permissions.mode = mode

    # ── verbs ──

    def send(
        self, text: str, attachments: Sequence[Part] = (), *, meanwhile: Meanwhile = nothing
    ) -> AsyncGenerator[Stamped, None]:
        """One turn, joined between its rounds by what is said `meanwhile`. Closing the generator interrupts it; what exists is
        kept. Raises SessionBusy for a read-only session."""
        return self._lock.stream(partial(self._turn(meanwhile).run, text, attachments))

    def resume(self, *, meanwhile: Meanwhile = nothing) -> AsyncGenerator[Stamped, None]:
        """The last turn goes on where it broke off: as `send`, without a message. Raises CtxchatError where nothing is open."""
        return self._lock.stream(self._turn(meanwhile).resume)

    def _turn(self, meanwhile: Meanwhile) -> Turn:
        between = self._hooks.between if self._hooks else None
        return Turn(
            self._conversation,
            self._toolbox,
            self._compactor,
            self._fallback,
            self.setup,
            between=between,
            meanwhile=meanwhile,
            files=self.files,
        )

    def answer(self, call_id: str, answer: Answer) -> None:
        """What the person said to an ApprovalRequested."""
        self.permissions.answer(call_id, answer)

    def objection(self, call_id: str, rule: str) -> str:
        """Why a rule, as a person wrote it, cannot be the answer to an ApprovalRequested; empty where it can."""
        return self.permissions.objection(call_id, rule)

    def reply(self, call_id: str, text: str) -> None:
        """What the person said to a QuestionAsked; empty for nothing."""
        self.permissions.reply(call_id, text)

    async def measure(self) -> Figures:
        """Compile and measure now; while a turn is under way, the gauge as it stands."""
        return self._conversation.figures if self.busy else await self._conversation.refresh()

    async def rename(self, title: str) -> None:
        """Give the session another title."""
        async with self._lock.alone():
            await self._conversation.write(Named(title))

    async def close(self) -> tuple[Notice, ...]:
        """End what is being prepared, and give the session free for others. What hooks had to say at the end. A second time
        does nothing. Raises CtxchatError while a turn or a pass is under way: it would go on to write without the lock."""
        async with self._lock.closing() as first:
            return await self._end() if first else ()

    async def _end(self) -> tuple[Notice, ...]:
        try:
            return await self._hooks.finish() if self._hooks and not self.read_only else ()
        finally:
            await self._compactor.close()
            await self._conversation.leave()
            with suppress(CtxchatError):  # nobody is left who could mend it
                await self._conversation.settle()
            if self.files:
                await self.files.close()
            await self._conversation.learned.remember()
            await self._conversation.journal.close()
