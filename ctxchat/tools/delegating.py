"""The tool `delegate`: gives a task to a sub-agent, which works in a session, and a context window, of its own.

Only the sub-agent's answer, its questions and its gauge come into the caller's session. How a session is opened is passed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Annotated, Protocol

import msgspec

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import ToolError
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Delegated,
    Event,
    Failed,
    FilesChanged,
    Notice,
    QuestionAsked,
    Stamped,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from ctxchat.core.journal import SessionState
from ctxchat.core.permissions import AccessRequest, Answer
from ctxchat.core.ports import ToolContext, ToolLeave, ToolNews, ToolOutput, ToolPiece, ToolQuestion, ToolText
from ctxchat.core.prompt_files import cut_descriptions
from ctxchat.core.tool_names import DELEGATE
from ctxchat.tools.text import clip_line
from ctxchat.tools.tool import Arguments, Pieces, Tool


class AnswerChannel(Protocol):
    """Takes a person's answers to the approvals and questions for which a sub-agent's calls wait."""

    def answer(self, call_id: str, answer: Answer) -> None: ...
    def reply(self, call_id: str, text: str) -> None: ...


class SubAgent(Protocol):
    """A sub-agent's session; implemented by `agent.session.Session`."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    @property
    def state(self) -> SessionState:
        """The session's state, its cost so far included."""
        ...

    def send(self, text: str) -> AsyncGenerator[Stamped, None]:
        """Run one turn, and yield its events."""
        ...

    @property
    def permissions(self) -> AnswerChannel:
        """Takes the answers to its approvals and questions."""
        ...

    async def close(self) -> object:
        """Close the session."""
        ...


MAX_AT_ONCE = 4
"""The largest number of sub-agents that work at the same time: providers limit simultaneous requests."""

Open = Callable[[str, str], Awaitable[SubAgent]]
"""Opens a sub-agent by its agent's name (empty: an agent like its caller), or again by the id of its session. Raises UsageError
for an unknown name, and for a session that is no sub-agent's of this caller."""


class DelegateArguments(Arguments, frozen=True):
    task: Annotated[str, msgspec.Meta(description="All it needs: it sees nothing of this conversation")]
    agent: Annotated[str, msgspec.Meta(description="Empty for one like you")] = ""
    session: Annotated[str, msgspec.Meta(description="Of an earlier one, to ask it more")] = ""


class Delegate(Tool[DelegateArguments]):
    """Gives tasks to sub-agents. `agents` maps the names a model may choose from to descriptions; `only_reads` returns whether
    the agent of this name, or of this session, can change nothing now; `seconds` returns the time limit for a task, 0 for
    none."""

    name = DELEGATE
    about = (
        "Give a task of its own, such as reading much to find little, to a sub-agent with its own window. You get its answer, "
        "not what it read. Several in one reply work side by side where they only read."
    )
    arguments = DelegateArguments
    reads_only = False

    def __init__(
        self,
        open_agent: Open,
        agents: Mapping[str, str] = {},
        only_reads: Callable[[str, str], bool] = lambda agent, session: False,
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        told = cut_descriptions(agents)
        known = "; ".join(f"{name} ({what.rstrip('.')})" if what else name for name, what in told.items())
        super().__init__(f"{self.about} Agents: {known}." if agents else "")
        self._open = open_agent
        self._only_reads, self._seconds = only_reads, seconds
        self._at_work = asyncio.Semaphore(MAX_AT_ONCE)

    def reads(self, arguments: Mapping[str, object]) -> bool:
        """Whether the sub-agent that is to do the task can change nothing."""
        agent, session = arguments.get("agent") or "", arguments.get("session") or ""
        return isinstance(agent, str) and isinstance(session, str) and self._only_reads(agent, session.strip())

    def access_needed(self, arguments: DelegateArguments, context: ToolContext) -> AccessRequest:
        if not arguments.task.strip():
            raise ToolError("The task is empty.")
        who = arguments.agent or ("the same sub-agent" if arguments.session else "a sub-agent")
        return AccessRequest("none", summary=f"delegate to {who}: {clip_line(' '.join(arguments.task.split()), 200)}")

    async def execute(self, arguments: DelegateArguments, context: ToolContext) -> Pieces:
        if self._at_work.locked():
            yield ToolText(f"waits for one of {MAX_AT_ONCE} to end\n")
        async with self._at_work:
            agent = await self._open(arguments.agent, arguments.session.strip())
            report = _Report(agent, arguments.agent or agent.state.agent or "sub-agent", context.call_id)
            yield ToolText(f"{report.where}\n")  # also where the call does not come to its end
            try:
                async with aclosing(agent.send(arguments.task.strip())) as events:
                    async for event in _in_time(events, self._seconds()):
                        for piece in report.pieces(event):
                            yield piece
            except TimeoutError:
                report.late = True
            finally:
                await agent.close()
            yield report.output()


async def _in_time(events: AsyncGenerator[Stamped, None], seconds: float) -> AsyncGenerator[Event, None]:
    """The events of a turn. Raises TimeoutError when it took longer than so many seconds (0 for never), those not counted that it
    waited for a person."""
    now = asyncio.get_running_loop().time
    deadline, asked = now() + seconds if seconds else None, 0.0
    while True:
        # The deadline is around this wait alone: around a yield it would cancel whoever is listening.
        async with asyncio.timeout_at(None if asked else deadline):
            stamped = await anext(events, None)
        if stamped is None:
            return
        if asked and deadline:
            deadline += now() - asked
        asked = now() if isinstance(stamped.event, ApprovalRequested | QuestionAsked) else 0.0
        yield stamped.event


class _Report:
    """Passes a sub-agent's events on to its caller, and keeps the outcome of its turn."""

    def __init__(self, agent: SubAgent, name: str, call_id: str) -> None:
        self._agent, self._name, self._call_id = agent, name, call_id
        self._before = agent.state.cost_usd
        self._end: TurnFinished | None = None
        self._failed: Failed | None = None
        self._shown: Delegated | None = None
        self.late = False
        """It was stopped because its time was up."""

    def pieces(self, event: Event) -> list[ToolPiece]:
        """The pieces one event makes."""
        match event:
            case ToolStarted(name=name, arguments=arguments):
                return [ToolText(f"{name} {_brief(arguments)}\n")]
            case ToolFinished(status=status, output=output) if status != "ok":
                return [ToolText(f"  {status}: {clip_line(output.strip().partition(chr(10))[0], 200)}\n")]
            case Notice(text=text):
                return [ToolText(f"{text}\n")]
            case ApprovalRequested(call_id=call_id):
                request = msgspec.structs.replace(
                    event, call_id=self._outer(call_id), summary=self._prefixed(event.summary)
                )
                return [ToolLeave(request, partial(self._agent.permissions.answer, call_id))]
            case ApprovalResolved(call_id=call_id):
                return [ToolNews(msgspec.structs.replace(event, call_id=self._outer(call_id)))]
            case QuestionAsked(call_id=call_id):
                return [
                    ToolQuestion(
                        self._prefixed(event.text),
                        event.options,
                        partial(self._agent.permissions.reply, call_id),
                        event.server,
                    )
                ]
            case FilesChanged(call_id=call_id):
                return [ToolNews(msgspec.structs.replace(event, call_id=self._outer(call_id)))]
            case ContextUsage():
                return self._gauge(event)
            case Failed():
                self._failed = event
            case TurnFinished():
                self._end = event
            case _:
                pass
        return []

    def _gauge(self, context_usage: ContextUsage) -> list[ToolPiece]:
        shown = Delegated(
            self._call_id,
            self._name,
            self._agent.id,
            context_usage.model,
            context_usage.used,
            context_usage.limit,
            context_usage.cost_usd - self._before,
        )
        if shown == self._shown:
            return []
        self._shown = shown
        return [ToolNews(shown)]

    def _outer(self, call_id: str) -> str:
        """The id of a sub-agent's call in its caller's session: models choose ids, so that two sessions may use the same."""
        return f"{self._call_id}/{call_id}"

    def _prefixed(self, text: str) -> str:
        return f"{self._name}: {text}"

    @property
    def where(self) -> str:
        """A remark for the caller that names the sub-agent's session, where all of its work can be read."""
        return f"[its record: session {self._agent.id}]"

    def output(self) -> ToolOutput:
        """The result of the call: the sub-agent's answer, or why there is none; with the id of its session in both cases."""
        end, where = self._end, self.where
        if self.late:
            return ToolOutput(f"The sub-agent was stopped: its time was up. There is no answer.\n{where}", "timeout")
        if self._failed or end is None:
            why = f"{self._failed.text} {self._failed.hint}".strip() if self._failed else "It ended without an answer."
            return ToolOutput(f"The sub-agent failed: {why}\n{where}", "error")
        if not end.text.strip():
            return ToolOutput(f"The sub-agent gave no answer ({end.status}).\n{where}", "error")
        cut = "" if end.status == "done" else f"[it was stopped: {end.status}]\n"
        return ToolOutput(f"{end.text.strip()}\n\n{cut}{where}")


class TaskNote:
    """The context provider `sub-agent`: tells a sub-agent that it is one."""

    source_id = "sub-agent"

    async def provide(self) -> str:
        """The text, which never changes."""
        return (
            "You are a sub-agent. Another agent gave you this task, and it sees nothing of your work but your last message: put "
            "all it asked for there, with paths and lines, and say what you could not find out or left undone."
        )


def _brief(arguments: dict[str, object] | str) -> str:
    text = arguments if isinstance(arguments, str) else " ".join(str(value) for value in arguments.values())
    return clip_line(" ".join(text.split()), 120)
