"""A session for tests: the real agent over a scripted model, a journal in memory, a clock that never waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from ctxchat.agent.compaction.compactor import Compactor
from ctxchat.agent.compaction.planner import Prices
from ctxchat.agent.conversation import Conversation, ConversationPorts
from ctxchat.agent.hooks import CommandRunner, Hooks, Ran
from ctxchat.agent.model_knowledge import ModelKnowledgeStore, NothingKnown
from ctxchat.agent.session import Session
from ctxchat.agent.session_config import Configure, ContextSources, FallbackOf, SessionConfig
from ctxchat.agent.session_parts import SessionParts
from ctxchat.agent.turn.approvals import Approvals
from ctxchat.agent.turn.tool_runner import ToolRunner, ToolServers, Workplace
from ctxchat.core.errors import StorageError, ToolError
from ctxchat.core.events import ApprovalRequested, Event
from ctxchat.core.head import ContextBlock, Surroundings, ToolSpec
from ctxchat.core.hooks import Hook, RunCommand
from ctxchat.core.journal import Partial, Record, Sealed, SessionState, fold
from ctxchat.core.masked_record import MaskedRecord
from ctxchat.core.options import Options
from ctxchat.core.permissions import AccessRequest, Answer, Mode, Rule
from ctxchat.core.ports import (
    FilesNow,
    ModelPort,
    ServerPrompts,
    Summariser,
    ToolContext,
    ToolOutput,
    ToolPort,
    ToolText,
    WorkspaceFiles,
)
from ctxchat.core.prompt_files import PromptFile
from ctxchat.core.view import Transform

NOTHING_KNOWN = NothingKnown()


class MemoryJournal:
    """Keeps records in a list. Each call gives way to others before and after it is done, as a real store does; the calls in
    `broken` (counted from 1) fail as on a full disk, and all of them while it is `full`. `watch` is told of each call by its
    number, before and after."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.records = list(records)
        self.partial: Partial | None = None
        self.spilled: dict[str, str] = {}
        self.images: dict[str, bytes] = {}
        self.full = False
        self.broken: Container[int] = ()
        self.calls = 0
        self.watch: Callable[[int, bool], None] = lambda number, done: None

    read_only = ""

    @property
    def session(self) -> str:
        return "s1"

    async def write(self, *records: Record) -> None:
        async with self._call():
            known = {g.id for r in self.records if isinstance(r, Sealed) for g in r.groups}
            if any(g.id in known for r in records if isinstance(r, Sealed) for g in r.groups):
                raise StorageError("UNIQUE constraint failed: groups.id")
            self.records += records
            self.partial = None

    async def keep(self, partial: Partial) -> None:
        async with self._call():
            self.partial = partial

    async def spill(self, name: str, text: str) -> str:
        async with self._call():
            self.spilled[name] = text
        return name

    async def attach(self, name: str, data: bytes) -> str:
        async with self._call():
            self.images[f"attachments/{name}"] = data
        return f"attachments/{name}"

    async def attached(self, path: str) -> bytes:
        if path not in self.images:
            raise StorageError(f"{path} is missing.")
        return self.images[path]

    async def close(self, estimate: int = 0) -> None:
        return None

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        self.calls += 1
        number = self.calls
        self.watch(number, False)
        await asyncio.sleep(0)
        if self.full or number in self.broken:
            raise StorageError("The disk is full.", "Free some space.")
        yield
        self.watch(number, True)
        await asyncio.sleep(0)


class StillClock:
    """Time moves by a second a look, waiting takes none, unless there is something to `hold` it; `slept` are the waits asked
    for."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []
        self.hold: asyncio.Event | None = None

    def now(self) -> str:
        return f"2026-11-21T10:00:{int(self.time) % 60:02d}.000Z"

    def seconds(self) -> float:
        self.time += 0.01
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.hold:
            await self.hold.wait()
        self.time += seconds


class Around:
    """ContextSources that say what they are told to; `asked` counts how often they were."""

    def __init__(self, memory: Sequence[ContextBlock] = (), context: Sequence[ContextBlock] = ()) -> None:
        self.memory, self.context = tuple(memory), tuple(context)
        self.always: tuple[ContextBlock, ...] = ()
        self.late_sources: frozenset[str] = frozenset()
        self.asked = 0

    async def gather(self) -> Surroundings:
        self.asked += 1
        return Surroundings(self.memory, self.context, self.late_sources)

    def go_to(self, paths: Sequence[str]) -> bool:
        return False

    async def read_memory(self) -> tuple[ContextBlock, ...]:
        return self.memory

    async def every_request(self) -> tuple[ContextBlock, ...]:
        return self.always

    @property
    def troubles(self) -> dict[str, str]:
        return dict.fromkeys(self.late_sources, "was late")

    async def close(self) -> None:
        return None


class Echo:
    """A tool that gives back its argument `text`, `times` times; reading, unless it is said to write."""

    def __init__(self, name: str = "echo", *, writes: bool = False) -> None:
        self._name, self._writes = name, writes
        self.ran: list[dict[str, object]] = []

    @property
    def spec(self) -> ToolSpec:
        schema: dict[str, object] = {
            "type": "object",
            "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["text"],
        }
        return ToolSpec(self._name, "Gives back a text.", schema)

    def reads(self, arguments: Mapping[str, object]) -> bool:
        return not self._writes

    def access_request(self, arguments: dict[str, object], context: ToolContext) -> AccessRequest:
        if arguments["text"] == "refuse":
            raise ToolError("refused by the tool itself")
        target = str(arguments["text"])
        return AccessRequest("write" if self._writes else "read", target, summary=f"{self._name} {target}")

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        self.ran.append(arguments)
        if arguments["text"] == "crash":
            raise ZeroDivisionError("a bug of the tool")
        yield ToolText("working")
        times = arguments.get("times", 1)
        yield ToolOutput(str(arguments["text"]) * (times if isinstance(times, int) else 1))


class Recorded:
    """Runs no command of a hook: keeps what it was asked, answers as told."""

    def __init__(self, ran: Ran | Exception | None = None) -> None:
        self.ran = ran or Ran(0, "")
        self.asked: list[tuple[str, dict[str, object]]] = []

    async def __call__(self, action: RunCommand, event: bytes) -> Ran:
        self.asked.append((action.command, json.loads(event)))
        if isinstance(self.ran, Exception):
            raise self.ran
        return self.ran


class Desk:
    """All the parts of one session, to look into."""

    def __init__(
        self,
        model: ModelPort,
        *,
        tools: Sequence[ToolPort] = (),
        servers: ToolServers | None = None,
        options: Options | None = None,
        mode: Mode = "ask",
        rules: Sequence[Rule] = (),
        interactive: bool = True,
        approvals: Approvals | None = None,
        records: Sequence[Record] = (),
        around: ContextSources | None = None,
        summariser: Summariser | None = None,
        files_now: FilesNow | None = None,
        others: dict[str, ModelPort] | None = None,
        summariser_of: Callable[[ModelPort], Summariser] | None = None,
        knowledge_store: ModelKnowledgeStore = NOTHING_KNOWN,
        fallback_of: FallbackOf = lambda name: None,
        system: str = "You are a test.",
        journal: MemoryJournal | None = None,
        workspace: Path = Path("/"),
        files: WorkspaceFiles | None = None,
        hooks: Sequence[Hook] = (),
        run: CommandRunner | None = None,
        masked: MaskedRecord | None = None,
        configure: Configure | None = None,
        clock: StillClock | None = None,
        transforms: Sequence[Transform] = (),
        prompts: Sequence[PromptFile] = (),
        server_prompts: ServerPrompts | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.journal = journal or MemoryJournal(records)
        self.clock = clock or StillClock()
        self.approvals = approvals or Approvals(mode, rules, interactive=interactive)
        self.tool_runner = ToolRunner(
            tools, self.approvals, self.clock, Workplace(str(workspace), files=files), servers=servers
        )
        models = {model.name: model, **(others or {})}
        self.config = SessionConfig(
            system=system,
            context_sources=around or Around(),
            open_model=lambda name, at=None: models[name],
            summariser_of=summariser_of,
            fallback_of=fallback_of,
            options=options or Options(),
            mode=self.approvals.mode,
            lasting=interactive,
            hooks=tuple(hooks),
            transforms=tuple(transforms),
            prompts=tuple(prompts),
            server_prompts=server_prompts,
        )
        self.conversation = Conversation(
            self.journal,
            fold(records),
            model,
            self.config,
            ConversationPorts(
                self.clock,
                knowledge_store,
                knowledge_store.load(model.name),
                masked or MaskedRecord(str),
            ),
            self.tool_runner.specs,
        )
        self.compactor = Compactor(self.conversation, summariser=summariser, files_now=files_now, prices=prices)
        self.hooks = Hooks(hooks, self.conversation, self.compactor, run or Recorded())
        self.session = Session(
            SessionParts(self.conversation, self.tool_runner, self.compactor, self.hooks),
            self.config,
            configure=configure,
            files=files,
        )

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self.session.state

    def folded(self) -> SessionState:
        """The state as the journal alone would give it back."""
        return fold(self.journal.records)

    async def free_up(self, steps: Sequence[str] | None = None, **options: object) -> list[Event]:
        """A pass by hand, as previewed; its events."""
        preview = await self.session.preview()
        async with aclosing(self.session.free_up(preview, steps, **options)) as stream:  # type: ignore[arg-type]
            return [stamped.event async for stamped in stream]

    async def say(self, text: str, answers: Sequence[str] = ()) -> list[Event]:
        """Send and collect every event; questions are answered from `answers` in order."""
        left = list(answers)
        events: list[Event] = []
        async with aclosing(self.session.send(text)) as stream:
            async for stamped in stream:
                events.append(stamped.event)
                if isinstance(stamped.event, ApprovalRequested):
                    verdict, _, reason = left.pop(0).partition(":")
                    self.session.permissions.answer(stamped.event.call_id, Answer(verdict, reason))  # type: ignore[arg-type]
        return events
