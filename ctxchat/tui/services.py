"""What the interface is handed by the composition root: a session to talk through, and the doors beside it.

Protocols only; `ctxchat.agent.session.Session` and `ctxchat.bootstrap` fulfil them. Knows no widget.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the first frame needs none of it
    from pathlib import Path

    from ctxchat.agent.consent import When
    from ctxchat.agent.files import Files
    from ctxchat.agent.gate import Gate
    from ctxchat.agent.preview import Preview
    from ctxchat.agent.turn import Meanwhile
    from ctxchat.config.files import Loaded
    from ctxchat.core.events import Stamped
    from ctxchat.core.figures import Figures
    from ctxchat.core.journal import SessionState
    from ctxchat.core.messages import Group, Image, Part, Text
    from ctxchat.core.permissions import Answer, Mode
    from ctxchat.core.search import Hit, Scope
    from ctxchat.core.secrets import Masking
    from ctxchat.core.undo import Undoing
    from ctxchat.core.view import View
    from ctxchat.models.discovery import FirstLook, FoundModel
    from ctxchat.storage.glance import Said
    from ctxchat.storage.sessions import SessionRow
    from ctxchat.tools.mcp.server import ServerRow


class Compaction(Protocol):
    """Making room in a conversation."""

    @property
    def ghost(self) -> int:
        """Tokens the window would hold after the compaction that stands prepared, 0 for none."""
        ...

    async def preview(self, instructions: str = "", keep_recent: int | None = None) -> Preview:
        """What freeing up context would do. Calls no model, sends nothing anywhere."""
        ...

    async def with_steps(self, preview: Preview, steps: Sequence[str]) -> Preview:
        """The preview with the named steps only: steps build on one another, so what is left is planned and weighed anew."""
        ...

    def draft_summary(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[str, None]:
        """The summary of a previewed pass as it is written, to be edited and handed to `free_up`. Nothing comes where the
        steps need none. Changes nothing; raises ModelError."""
        ...

    def free_up(
        self, preview: Preview, steps: Sequence[str] | None = None, *, summary: str | None = None
    ) -> AsyncGenerator[Stamped, None]:
        """Run a previewed pass, only the named steps of it where given, with a summary a person wrote where there is one.
        Closing it leaves everything as it was."""
        ...

    def make_room(self) -> AsyncGenerator[Stamped, None]:
        """Between turns: the pass that is due or agreed, where there is one, without waiting for the next message."""
        ...

    def agree(self, when: When, instructions: str = "") -> None:
        """Yes to a CompactionSuggested: `now`, at the next place where no call is open, or `after` the turn has ended."""
        ...

    def snooze(self, turns: int) -> None:
        """Later: nothing by itself and no question for the rest of this turn and `turns` more."""
        ...


class Attachments(Protocol):
    """What goes along with messages."""

    @property
    def seen(self) -> bool:
        """The model is shown images; else words stand in their place."""
        ...

    @property
    def mask(self) -> Callable[[str], str]:
        """Masks secrets in the texts of files that go along."""
        ...

    async def save(self, name: str, data: bytes) -> Image:
        """Keep an image beside the session. Raises StorageError."""
        ...

    async def put_away(self, name: str, text: str) -> Text:
        """Keep a text as a file that the agent can page through: its head and tail, and where the rest lies. Raises
        StorageError."""
        ...

    async def carried(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        """The groups with their images inside the messages, for other programs."""
        ...

    def weigh(self, part: Part) -> int:
        """Tokens of one part of a message. Long texts are estimated until they were counted."""
        ...

    async def count(self, parts: Sequence[Part]) -> None:
        """Count the long texts among these, beside everything else."""
        ...

    def with_draft(self, text: str, parts: Sequence[Part] = ()) -> Figures:
        """The gauge with this unsent message in it. Quick for short texts; long ones are counted roughly until counted."""
        ...


class Changes(Protocol):
    """What a person changes by hand in a conversation. Raise LedgerError for what cannot be done."""

    def lost_facts(self, change_id: str) -> tuple[str, ...]:
        """The facts a compaction did not carry over, a line each. Raises LedgerError when it is not in force."""
        ...

    async def reinsert(self, change_id: str) -> Figures:
        """Put the facts that a compaction lost back at the end, as one marked note. Undo takes it out again."""
        ...

    async def undoing(self, change_id: str = "") -> Undoing:
        """What taking back a change would do (the last one without an id), and which part of it fits the window."""
        ...

    async def undo(self, change_id: str = "", groups: Sequence[str] = ()) -> Figures:
        """Take back a change (the last one without an id), of a compaction only these groups where given; `over` says by how
        much it no longer fits."""
        ...

    async def redo(self, change_id: str = "") -> Figures:
        """Make a change again that was undone (the last one without an id), exactly as it was."""
        ...

    async def pin(self, group_id: str) -> Figures: ...
    async def drop(self, group_id: str) -> Figures: ...
    async def shrink(self, group_id: str) -> Figures: ...
    async def restore(self, group_id: str) -> Figures:
        """Put a group of the record back at the end, as a marked quotation."""
        ...

    async def quote(self, group: Group, source: str) -> Figures:
        """Put a group of another session at the end, as a marked quotation. `source` is that session's title."""
        ...


class Setup(Protocol):
    """What a conversation works with."""

    @property
    def agent(self) -> str:
        """The agent's name, empty for the usual one."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What is wrong with it, a sentence each."""
        ...

    async def switch_model(self, name: str) -> Figures:
        """Go on with another model. Raises CtxchatError for one that cannot be had."""
        ...

    async def switch_agent(self, name: str) -> Figures:
        """Go on as another agent; empty for the usual one. Raises CtxchatError for one that cannot be had."""
        ...

    async def adapt(self) -> Figures:
        """Go on by the settings as they are now."""
        ...


class ChatSession(Protocol):
    """One conversation. Values to read at any time, verbs to act; verbs that take long yield events."""

    @property
    def id(self) -> str: ...
    @property
    def compaction(self) -> Compaction: ...
    @property
    def changes(self) -> Changes: ...
    @property
    def files(self) -> Files | None:
        """What turns did to files, and the ways back; None where that is another session's or window's."""
        ...

    @property
    def setup(self) -> Setup: ...
    @property
    def attachments(self) -> Attachments: ...
    @property
    def state(self) -> SessionState:
        """Ledger, title, fills (tokens at the end of each turn), past passes."""
        ...

    @property
    def view(self) -> View:
        """What the next request holds, as last compiled."""
        ...

    @property
    def figures(self) -> Figures:
        """The gauge, as last measured."""
        ...

    @property
    def busy(self) -> bool:
        """A turn or a pass is under way."""
        ...

    @property
    def read_only(self) -> str:
        """Why nothing can be sent (the session is open for writing elsewhere), or empty."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What was damaged or cut off when it was opened, a sentence each."""
        ...

    @property
    def permissions(self) -> Gate:
        """What is allowed without asking, and what waits for an answer."""
        ...

    @property
    def mode(self) -> Mode:
        """Which calls run without asking."""
        ...

    @mode.setter
    def mode(self, mode: Mode) -> None: ...

    def send(
        self, text: str, attachments: Sequence[Part] = (), *, meanwhile: Meanwhile
    ) -> AsyncGenerator[Stamped, None]:
        """One turn, joined between its rounds by what is said `meanwhile`. Closing the generator (or cancelling the task that
        iterates it) interrupts it; what exists is kept."""
        ...

    def resume(self, *, meanwhile: Meanwhile) -> AsyncGenerator[Stamped, None]:
        """The last turn goes on where it broke off: as `send`, without a message."""
        ...

    def answer(self, call_id: str, answer: Answer) -> None:
        """What the person said to an ApprovalRequested."""
        ...

    def objection(self, call_id: str, rule: str) -> str:
        """Why a rule, as a person wrote it, cannot be the answer to an ApprovalRequested; empty where it can."""
        ...

    def reply(self, call_id: str, text: str) -> None:
        """What the person said to a QuestionAsked; empty for nothing."""
        ...

    async def measure(self) -> Figures:
        """Compile and measure now (after start, after a change by hand)."""
        ...

    async def rename(self, title: str) -> None: ...
    async def close(self) -> object:
        """Give the session free for others. What comes back is for those who can still show it."""
        ...


class Services(Protocol):
    """Everything beside the conversation."""

    @property
    def workspace(self) -> Path:
        """The folder the agent works in, resolved."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What went wrong at start (a broken setting, theme, data folder): sentences with remedy, for a banner."""
        ...

    @property
    def sandboxed(self) -> bool:
        """Shell commands run in a sandbox."""
        ...

    @property
    def masking(self) -> Masking:
        """What secrets are masked with, and what was masked since the start."""
        ...

    def adopt(self, loaded: Loaded) -> None:
        """Edited settings, for sessions opened from now on."""
        ...

    async def open(self, session_id: str = "") -> ChatSession:
        """A new session, or a stored one (unique prefix enough). Raises CtxchatError."""
        ...

    async def sessions(self) -> Sequence[SessionRow]: ...
    async def glance(self, session_id: str) -> Sequence[Said]:
        """What you and the model said last in a stored session, in its order."""
        ...

    async def delete(self, session_id: str) -> None: ...
    async def fork(self, session_id: str, message_id: str = "") -> str:
        """A new session with everything up to that message or compaction (all without one); its id."""
        ...

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        """Messages of all sessions that hold these words, the best first, `marks` around them. Raises StorageError."""
        ...

    async def group(self, session_id: str, message_id: str) -> Group:
        """The group of a message as it was, from any session. Raises UsageError and StorageError."""
        ...

    async def models(self) -> Sequence[FoundModel]: ...
    async def first_look(self) -> FirstLook:
        """What to ask where no model is set (once for each person), or to say."""
        ...

    async def servers(self) -> Sequence[ServerRow]:
        """The MCP servers of the settings, as they are."""
        ...

    async def switch_server(self, name: str) -> ServerRow:
        """On where it is off or has failed, else off; how it is then. Raises UsageError for one nobody has set up."""
        ...

    async def warm_up(self, model: str = "") -> None:
        """Start what is slow for this model (the one of the settings without a name), after the first paint."""
        ...

    async def close(self) -> None: ...
