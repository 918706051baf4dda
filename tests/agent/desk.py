"""A session for tests: the real agent over a scripted model, a journal in memory, a clock that never waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from ctxchat.agent.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.gate import Gate
from ctxchat.agent.options import Options
from ctxchat.agent.session import Session
from ctxchat.agent.toolbox import Toolbox
from ctxchat.core.access import Demand, Mode, Rule
from ctxchat.core.errors import StorageError, ToolError
from ctxchat.core.events import ApprovalRequested, Event
from ctxchat.core.journal import Partial, Record, SessionState, fold
from ctxchat.core.ports import ModelPort, Summariser, ToolContext, ToolOutput, ToolPort, ToolText
from ctxchat.core.view import Insert, ToolSpec


class MemoryJournal:
    """Keeps records in a list; `full` makes the next write fail as a full disk would."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.records = list(records)
        self.partial: Partial | None = None
        self.spilled: dict[str, str] = {}
        self.full = False

    @property
    def session(self) -> str:
        return "s1"

    async def write(self, *records: Record) -> None:
        if self.full:
            raise StorageError("The disk is full.", "Free some space.")
        self.records += records
        self.partial = None

    async def keep(self, partial: Partial) -> None:
        self.partial = partial

    async def spill(self, name: str, text: str) -> str:
        self.spilled[name] = text
        return name

    async def close(self) -> None:
        return None


class StillClock:
    """Time moves by a second a look, waiting takes none; `slept` are the waits asked for."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> str:
        return f"2026-11-21T10:00:{int(self.time) % 60:02d}.000Z"

    def seconds(self) -> float:
        self.time += 0.01
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class Around:
    """Surroundings that say what they are told to."""

    def __init__(self, memory: Sequence[Insert] = (), injected: Sequence[Insert] = ()) -> None:
        self._memory, self._injected = tuple(memory), tuple(injected)

    async def memory(self) -> tuple[Insert, ...]:
        return self._memory

    async def injected(self) -> tuple[Insert, ...]:
        return self._injected


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

    @property
    def parallel(self) -> bool:
        return not self._writes

    def demand(self, arguments: dict[str, object], context: ToolContext) -> Demand:
        if arguments["text"] == "refuse":
            raise ToolError("refused by the tool itself")
        target = str(arguments["text"])
        return Demand("write" if self._writes else "read", target, summary=f"{self._name} {target}")

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        self.ran.append(arguments)
        if arguments["text"] == "crash":
            raise ZeroDivisionError("a bug of the tool")
        yield ToolText("working")
        times = arguments.get("times", 1)
        yield ToolOutput(str(arguments["text"]) * (times if isinstance(times, int) else 1))


class Desk:
    """All the parts of one session, to look into."""

    def __init__(
        self,
        model: ModelPort,
        *,
        tools: Sequence[ToolPort] = (),
        options: Options | None = None,
        mode: Mode = "ask",
        rules: Sequence[Rule] = (),
        interactive: bool = True,
        records: Sequence[Record] = (),
        around: Around | None = None,
        summariser: Summariser | None = None,
        others: dict[str, ModelPort] | None = None,
        system: str = "You are a test.",
    ) -> None:
        self.journal = MemoryJournal(records)
        self.clock = StillClock()
        self.gate = Gate(mode, rules, interactive=interactive)
        self.toolbox = Toolbox(tools, self.gate, self.clock, workspace="/")
        self.conversation = Conversation(
            self.journal,
            fold(records),
            model,
            options or Options(),
            self.clock,
            system=system,
            tools=self.toolbox.specs,
            surroundings=around or Around(),
        )
        self.compactor = Compactor(self.conversation, summariser=summariser)
        models = {model.name: model, **(others or {})}
        self.session = Session(
            self.conversation, self.toolbox, self.gate, self.compactor, open_model=models.__getitem__
        )

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self.session.state

    def folded(self) -> SessionState:
        """The state as the journal alone would give it back."""
        return fold(self.journal.records)

    async def say(self, text: str, answers: Sequence[str] = ()) -> list[Event]:
        """Send and collect every event; questions are answered from `answers` in order."""
        left = list(answers)
        events: list[Event] = []
        async with aclosing(self.session.send(text)) as stream:
            async for stamped in stream:
                events.append(stamped.event)
                if isinstance(stamped.event, ApprovalRequested):
                    verdict, _, reason = left.pop(0).partition(":")
                    self.session.answer(stamped.event.call_id, verdict, reason)  # type: ignore[arg-type]
        return events
