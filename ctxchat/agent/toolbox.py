"""Runs the calls of one round: each checked and approved in turn, reading ones side by side, results in the order of the calls.

Closing the generator ends what is running. Knows no tool by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

import msgspec

from ctxchat.agent.gate import Answer, Gate
from ctxchat.core.access import Demand, Rule
from ctxchat.core.errors import CtxchatError, ToolError
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    Notice,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from ctxchat.core.messages import ToolCall
from ctxchat.core.ports import Clock, ToolContext, ToolOutput, ToolPort, ToolText
from ctxchat.core.view import ToolSpec

PATIENCE = 1.0
"""Seconds that cancelled calls have to clean up."""

SHOWN = 20_000
"""Characters kept of what a call has shown, for when it is stopped before its end."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a call, before it is fitted into the view."""

    call: ToolCall
    output: ToolOutput
    seconds: float


class Job(msgspec.Struct, frozen=True):
    """A call that may run."""

    call: ToolCall
    tool: ToolPort
    arguments: dict[str, object]
    context: ToolContext


class Toolbox:
    """The tools of a session behind one gate."""

    def __init__(
        self, tools: Sequence[ToolPort], gate: Gate, clock: Clock, *, workspace: str, session_folder: str = ""
    ) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._gate = gate
        self._clock = clock
        self._workspace = workspace
        self._session_folder = session_folder
        self.begun: dict[str, str] = {}  # calls that began, by id, with what they have shown so far
        """Ids of the calls that began to run, whatever came of them, until somebody clears it."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told, in a fixed order."""
        return tuple(tool.spec for tool in self._tools.values())

    async def run(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event | Outcome, None]:
        """Events as they happen; an Outcome for each call, in the order in which they end."""
        waiting: list[Job] = []
        for call in calls:
            yield ToolStarted(call.id, call.name, decoded(call.arguments) or call.arguments)
            job: Job | None = None
            async with aclosing(self._admit(call)) as admitting:
                async for news in admitting:
                    if isinstance(news, Job):
                        job = news
                    else:
                        yield news
            if job is not None and job.tool.parallel:
                waiting.append(job)
                continue
            batches, waiting = ([waiting, [job]], []) if job is not None else ([], waiting)
            for batch in batches:
                async with aclosing(self._together(batch)) as running:
                    async for news in running:
                        yield news
        async with aclosing(self._together(waiting)) as running:
            async for news in running:
                yield news

    async def _admit(self, call: ToolCall) -> AsyncGenerator[Event | Outcome | Job, None]:
        """The call as a job, or its refusal as an outcome."""
        context = ToolContext(call_id=call.id, workspace=self._workspace, session_folder=self._session_folder)
        try:
            tool = self._find(call)
            arguments = self._arguments(call, tool.spec)
            demand = await asyncio.to_thread(tool.demand, arguments, context)
        except Exception as problem:  # a tool may come from a third party: its fault is a result, not our end
            yield Outcome(call, ToolOutput(_fault(call, problem), status="error"), 0.0)
            return
        judgement = self._gate.judge(call.name, demand)
        if judgement.verdict == "deny":
            yield ApprovalResolved(call.id, "deny", judgement.rule)
            yield Outcome(call, ToolOutput(judgement.reason, status="denied"), 0.0)
            return
        if judgement.verdict == "ask":
            future = self._gate.open(call.id)
            try:
                yield _question(call, demand)
                answer = await future
            finally:
                self._gate.close(call.id)
            for news in await self._settled(call, demand, answer):
                yield news
            if answer.verdict == "deny":
                return
        yield Job(call, tool, arguments, context)

    async def _settled(self, call: ToolCall, demand: Demand, answer: Answer) -> Sequence[Event | Outcome]:
        """What came of a question: a rule where one was given, and a refusal as the call's outcome."""
        if answer.verdict == "deny":
            reason = f" They said: {answer.reason}" if answer.reason else " They gave no reason; do not try it again."
            denied = ToolOutput(f"The user did not allow this.{reason}", status="denied")
            return (ApprovalResolved(call.id, "deny", "the user"), Outcome(call, denied, 0.0))
        if answer.verdict == "once":
            return (ApprovalResolved(call.id, "once", "the user"),)
        rule = _rule(call, demand)
        resolved = ApprovalResolved(call.id, answer.verdict, rule.text)
        try:
            await self._gate.allow(rule, answer.verdict)
        except CtxchatError as problem:
            return (Notice("warning", f"The rule holds for this session only. {problem}"), resolved)
        return (resolved,)

    def _find(self, call: ToolCall) -> ToolPort:
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(f"There is no tool {call.name!r}.", f"Available: {', '.join(self._tools)}.")
        return tool

    def _arguments(self, call: ToolCall, spec: ToolSpec) -> dict[str, object]:
        arguments = decoded(call.arguments)
        if arguments is None:
            raise ToolError("The arguments are not a JSON object.", "Send the call again with valid JSON.")
        required = cast("list[str]", spec.parameters.get("required", []))
        if missing := [name for name in required if name not in arguments]:
            raise ToolError(f"{call.name} needs {', '.join(missing)}.")
        return arguments

    async def _together(self, jobs: Sequence[Job]) -> AsyncGenerator[Event | Outcome, None]:
        """Runs jobs side by side; closing the generator cancels them all and waits until they are gone, or have had
        `PATIENCE`: a tool that swallows its cancel is left to itself."""
        if not jobs:
            return
        news: asyncio.Queue[Event | Outcome] = asyncio.Queue()
        tasks = [asyncio.create_task(self._work(job, news)) for job in jobs]
        left = len(jobs)
        try:
            while left:
                item = await news.get()
                left -= isinstance(item, Outcome)
                yield item
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=PATIENCE)

    async def _work(self, job: Job, news: asyncio.Queue[Event | Outcome]) -> None:
        start = self._clock.seconds()
        self.begun[job.call.id] = ""
        output = ToolOutput(f"{job.call.name} ended without a result.", status="error")
        try:
            running = job.tool.run(job.arguments, job.context)
            async with aclosing(cast("AsyncGenerator[ToolText | ToolOutput, None]", running)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ToolText):
                        self.begun[job.call.id] = (self.begun.get(job.call.id, "") + piece.text)[-SHOWN:]
                        news.put_nowait(ToolProgress(job.call.id, piece.text))
                    else:
                        output = piece
        except Exception as problem:  # as above
            output = ToolOutput(_fault(job.call, problem), status="error")
        news.put_nowait(Outcome(job.call, output, self._clock.seconds() - start))


def decoded(arguments: str) -> dict[str, object] | None:
    """Call arguments as an object, None when the text is not one. No text at all is an empty object."""
    try:
        value: object = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def finished(outcome: Outcome, shown: str, tokens: int, spilled: str) -> ToolFinished:
    """The event for a call that ended; `shown` is what the model sees of its output."""
    output = outcome.output
    return ToolFinished(
        call_id=outcome.call.id,
        name=outcome.call.name,
        status=output.status,
        output=shown,
        tokens=tokens,
        seconds=round(outcome.seconds, 3),
        diff=output.diff,
        exit_code=output.exit_code,
        spilled=spilled,
    )


def _question(call: ToolCall, demand: Demand) -> ApprovalRequested:
    return ApprovalRequested(
        call_id=call.id,
        name=call.name,
        summary=demand.summary or f"{call.name} {demand.target}",
        access=demand.access,
        preview=demand.preview,
        rule=_rule(call, demand).text,
    )


def _rule(call: ToolCall, demand: Demand) -> Rule:
    return Rule(call.name, demand.pattern or demand.target)


def _fault(call: ToolCall, problem: Exception) -> str:
    """What the model is told of a call that failed."""
    return (
        str(problem)
        if isinstance(problem, CtxchatError)
        else f"{call.name} failed: {type(problem).__name__}: {problem}"
    )
