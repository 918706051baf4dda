"""Runs the calls of one round: each checked and approved in turn, reading ones side by side, results in the order of the calls.

Closing the generator ends what is running. Knows no tool by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import cast

import msgspec

from ctxchat.agent.gate import Gate
from ctxchat.core.call_arguments import fields_of
from ctxchat.core.errors import CtxchatError, ToolError
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    Notice,
    QuestionAsked,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from ctxchat.core.messages import ToolCall
from ctxchat.core.permissions import Answer, Demand, Rule, parse_rule
from ctxchat.core.ports import (
    Clock,
    ToolContext,
    ToolLeave,
    ToolLimits,
    ToolNews,
    ToolOutput,
    ToolPiece,
    ToolPort,
    ToolQuestion,
    ToolText,
)
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
    """The tools of a session behind one gate. `guests` are those that come and go while it is open."""

    def __init__(
        self,
        tools: Sequence[ToolPort],
        gate: Gate,
        clock: Clock,
        *,
        workspace: str,
        session_folder: str = "",
        guests: Callable[[], Sequence[ToolPort]] = tuple,
    ) -> None:
        self._own = {tool.spec.name: tool for tool in tools}
        self._guests = guests
        self._offered: frozenset[str] | None = None
        self.limits = ToolLimits()
        self.gate = gate
        self._clock = clock
        self._workspace = workspace
        self._session_folder = session_folder
        self.begun: dict[str, str] = {}
        """What each call has shown so far, by id, from when it began to run and whatever came of it, until somebody clears it."""

    @property
    def _tools(self) -> dict[str, ToolPort]:
        guests = {tool.spec.name: tool for tool in self._guests()}
        return self._own | {name: tool for name, tool in guests.items() if name not in self._own}

    @property
    def every(self) -> Sequence[str]:
        """The names of all there are, on offer or not."""
        return tuple(self._tools)

    def offer(self, names: Collection[str] | None) -> None:
        """From now on only these; None for all."""
        self._offered = None if names is None else frozenset(names)

    @property
    def names(self) -> tuple[str, ...]:
        """Those on offer, in a fixed order."""
        return tuple(n for n in self._tools if self._offered is None or n in self._offered)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told, in a fixed order."""
        tools = self._tools
        return tuple(tools[name].spec for name in self.names)

    async def run(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event | Outcome, None]:
        """Events as they happen; an Outcome for each call, in the order in which they end."""
        waiting: list[Job] = []
        for call in calls:
            yield ToolStarted(call.id, call.name, fields_of(call.arguments) or call.arguments)
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
        limits = self.limits
        context = ToolContext(call.id, self._workspace, self._session_folder, limits.max_chars, limits.seconds)
        try:
            tool = self._find(call)
            arguments = self._arguments(call, tool.spec)
            demand = await asyncio.to_thread(tool.demand, arguments, context)
        except Exception as problem:  # a tool may come from a third party: its fault is a result, not our end
            yield Outcome(call, ToolOutput(_fault(call, problem), status="error"), 0.0)
            return
        judgement = self.gate.judge(call.name, demand)
        if judgement.verdict == "deny":
            yield ApprovalResolved(call.id, "deny", judgement.rule)
            yield Outcome(call, ToolOutput(judgement.reason, status="denied"), 0.0)
            return
        if judgement.verdict == "ask":
            future = self.gate.open(call.id)
            try:
                yield _question(call, demand)
                answer = await future
            finally:
                self.gate.close(call.id)
            for news in await self._settled(call, demand, answer):
                yield news
            if answer.verdict == "deny":
                return
            context = msgspec.structs.replace(context, allowance=answer.allowance)
        yield Job(call, tool, arguments, context)

    async def _settled(self, call: ToolCall, demand: Demand, answer: Answer) -> Sequence[Event | Outcome]:
        """What came of a question: a rule where one was given, and a refusal as the call's outcome."""
        if answer.verdict == "deny":
            reason = f" They said: {answer.reason}" if answer.reason else " They gave no reason; do not try it again."
            denied = ToolOutput(f"The user did not allow this.{reason}", status="denied")
            return (ApprovalResolved(call.id, "deny", "the user"), Outcome(call, denied, 0.0))
        if answer.verdict == "once":
            return (ApprovalResolved(call.id, "once", "the user"),)
        rule = parse_rule(answer.rule) or _rules(call, demand)[0]
        resolved = ApprovalResolved(call.id, answer.verdict, rule.text)
        try:
            await self.gate.allow(rule, answer.verdict)
        except CtxchatError as problem:
            return (Notice("warning", f"The rule holds for this session only. {problem}"), resolved)
        return (resolved,)

    def _find(self, call: ToolCall) -> ToolPort:
        tool = self._tools.get(call.name) if call.name in self.names else None
        if tool is None:
            raise ToolError(f"There is no tool {call.name!r}.", f"Available: {', '.join(self.names) or 'none'}.")
        return tool

    def _arguments(self, call: ToolCall, spec: ToolSpec) -> dict[str, object]:
        arguments = fields_of(call.arguments)
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
            async with aclosing(cast("AsyncGenerator[ToolPiece, None]", running)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ToolOutput):
                        output = piece
                    elif event := self._heard(job.call.id, piece):
                        news.put_nowait(event)
        except Exception as problem:  # as above
            output = ToolOutput(_fault(job.call, problem), status="error")
        finally:
            self.gate.close(job.call.id)
        news.put_nowait(Outcome(job.call, output, self._clock.seconds() - start))

    def _heard(self, call_id: str, piece: ToolText | ToolQuestion | ToolLeave | ToolNews) -> Event | None:
        """What a call at work lets be known, as an event; None where there is nobody whom it could concern."""
        match piece:
            case ToolText(text=text):
                self.begun[call_id] = (self.begun.get(call_id, "") + text)[-SHOWN:]
                return ToolProgress(call_id, text)
            case ToolQuestion(text=text, options=options):
                return QuestionAsked(call_id, text, options) if self.gate.ask(call_id, piece) else None
            case ToolLeave(request=request):
                self.gate.pass_on(piece)
                return request
            case ToolNews(event=event):
                return event


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
        rules=tuple(rule.text for rule in _rules(call, demand)),
        allowance=demand.allowance,
    )


def _rules(call: ToolCall, demand: Demand) -> tuple[Rule, ...]:
    return tuple(Rule(call.name, pattern) for pattern in demand.patterns or (demand.target,))


def _fault(call: ToolCall, problem: Exception) -> str:
    """What the model is told of a call that failed."""
    return (
        str(problem)
        if isinstance(problem, CtxchatError)
        else f"{call.name} failed: {type(problem).__name__}: {problem}"
    )
