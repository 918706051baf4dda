"""Runs the tool calls of one round (the calls of one reply): each is checked, approved and run, in an order that `batch.Batch`
decides.

The way of a call: `_run_call` takes it from its start to its outcome. `_before_hooks` lets hooks change or refuse it; `_admit`
checks it, judges it and asks the person; `_execute` runs it; then its result is masked, and `_with_hooks` adds what hooks say.
Events and outcomes go into one queue (`News`), which `run` empties. Knows no tool by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol, cast

import msgspec

from ctxchat.agent.emitting import Emit
from ctxchat.agent.turn.approvals import Approvals
from ctxchat.agent.turn.batch import Batch, Stage
from ctxchat.core.call_arguments import MAX_TOOL_NAME_CHARS, fault_of, fields_of, plain_name
from ctxchat.core.errors import CtxchatError, ToolError
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    FilesChanged,
    Notice,
    QuestionAsked,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from ctxchat.core.harm import harms
from ctxchat.core.head import ToolSpec
from ctxchat.core.hooks import HookVerdict
from ctxchat.core.messages import ToolCall
from ctxchat.core.permissions import AccessRequest, Answer, parse_rules
from ctxchat.core.ports import (
    BackgroundCommands,
    Clock,
    EditorFiles,
    ToolContext,
    ToolLeave,
    ToolLimits,
    ToolNews,
    ToolOutput,
    ToolPiece,
    ToolPort,
    ToolQuestion,
    ToolText,
    WorkspaceFiles,
)
from ctxchat.core.secrets import MaskedLines, marks_in
from ctxchat.core.tool_names import is_listed
from ctxchat.core.tool_share import CALL_TOOL, FIND_TOOL

HALF_LINE_PAUSE_S = 0.3
"""How long a line without an end is held back in case more of it comes, in seconds, so that no half of a secret is shown."""

CUT = "Your reply was cut off at its output limit of {limit} tokens, in the middle of this call, which did not run."
CUT_REMEDY = "Write less in one call: for a long file its first part now, and the rest with further calls."

CLEANUP_TIMEOUT_S = 1.0
"""Seconds that cancelled calls have to clean up."""

FIRST_WAIT_S = 1.0
"""Seconds that the first message waits for tool servers to start: tools added later change the beginning of requests, which
providers have cached."""

MAX_KEPT_CHARS = 20_000
"""Characters kept of the output of a running call, for the case that it is stopped."""


CALL_LATE_TOOL = ToolSpec(
    CALL_TOOL,
    f"Calls a tool that a note or {FIND_TOOL} has described. Only for those: all others are called directly.",
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
    },
)
"""The tool that calls tools of servers that join later, since the list of tools in requests stays as it was first sent."""


class CallOutcome(msgspec.Struct, frozen=True):
    """The result of a call, before it is fitted into the view."""

    call: ToolCall
    output: ToolOutput
    seconds: float


class RunnableCall(msgspec.Struct, frozen=True):
    """A call that may run, with its tool, its parsed arguments and what it was allowed."""

    call: ToolCall
    tool: ToolPort
    arguments: dict[str, object]
    context: ToolContext
    access_request: AccessRequest


MAX_SHOWN_ARGUMENTS = 2_000
"""The most characters of arguments that a hook changed that the model is shown."""

News = asyncio.Queue[Event | CallOutcome]
"""Events and results of the calls of a round, as they happen."""


class CallHooks(Protocol):
    """The hooks that decide about calls, as the runner needs them; `tell` takes their events."""

    async def before_call(self, call: ToolCall, tell: Callable[[Event], object]) -> HookVerdict:
        """The verdict on a call before it is checked and the person is asked."""
        ...

    async def before_asking(self, call: ToolCall, tell: Callable[[Event], object]) -> HookVerdict:
        """The verdict on a call that the person is about to be asked about."""
        ...

    async def after_call(
        self, call: ToolCall, output: ToolOutput, seconds: float, tell: Callable[[Event], object]
    ) -> str:
        """The text for the model that is added to the result of a call that ran; empty for none."""
        ...


class ToolServers(Protocol):
    """Servers of tools, which come and go while a session is open."""

    def tools(self) -> Sequence[ToolPort]:
        """The tools of the servers that are connected now."""
        ...

    async def settled(self, seconds: float) -> None:
        """Wait until no server is starting any more, at most so long."""
        ...


class Workplace(msgspec.Struct, frozen=True):
    """Where the calls of a session work: in the folder `workspace`, with `session_folder` for what they keep. `files` keeps
    copies of what they change, `editor` holds files that are open in an editor, `background` the commands that go on; None where
    there is no such thing."""

    workspace: str
    session_folder: str = ""
    files: WorkspaceFiles | None = None
    editor: EditorFiles | None = None
    background: BackgroundCommands | None = None


class ToolRunner:
    """Runs the tools of a session, with the approvals that calls need. `servers` offer further tools; None where there never are
    any. `mask` hides secrets in a text."""

    def __init__(
        self,
        tools: Sequence[ToolPort],
        approvals: Approvals,
        clock: Clock,
        workplace: Workplace,
        *,
        servers: ToolServers | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._own = {plain_name(tool.spec.name): tool for tool in tools}
        self._servers = servers
        self.mask = mask
        """Masks secrets in everything that a call brings back, before anybody sees it."""
        self._offered: tuple[str, ...] | None = None
        self._disallowed: tuple[str, ...] = ()
        self.limits = ToolLimits()
        self.approvals = approvals
        self._clock = clock
        self._workplace = workplace
        self._warned: set[str] = set()
        self.call_hooks: CallHooks | None = None
        self._looking = asyncio.Lock()  # tools say what access a call needs in one thread at a time
        self.begun: dict[str, str] = {}
        """The output so far of each call that began to run, by its id, until it is cleared."""

    @property
    def _tools(self) -> dict[str, ToolPort]:
        guests = {plain_name(tool.spec.name): tool for tool in self._servers.tools()} if self._servers else {}
        return self._own | {name: tool for name, tool in guests.items() if name not in self._own}

    @property
    def background(self) -> BackgroundCommands | None:
        """The commands that go on beside calls; None where there can be none."""
        return self._workplace.background

    @property
    def every(self) -> Sequence[str]:
        """The names of all tools, on offer or not."""
        return tuple(self._tools)

    def offer(self, names: Collection[str] | None, disallowed: Collection[str] = ()) -> None:
        """Offer only the tools of these `names` from now on (None: all), without the disallowed ones; `find_tools` stays on
        offer. Both may hold wildcards, and names of tools of servers that start later."""
        self._offered = None if names is None else (*names, FIND_TOOL)
        self._disallowed = tuple(disallowed)

    @property
    def names(self) -> tuple[str, ...]:
        """The names on offer, in a fixed order."""
        offered, disallowed = self._offered, self._disallowed
        return tuple(
            n for n in self._tools if (offered is None or is_listed(n, offered)) and not is_listed(n, disallowed)
        )

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The descriptions of the tools on offer, in a fixed order, with names in the form that providers accept."""
        tools = self._tools
        specs = tuple(msgspec.structs.replace(tools[name].spec, name=name) for name in self.names)
        return specs if self._servers is None else (*specs, CALL_LATE_TOOL)

    @property
    def guest_specs(self) -> tuple[ToolSpec, ...]:
        """The servers' tools among `specs`."""
        return tuple(spec for spec in self.specs if spec.name not in self._own and spec is not CALL_LATE_TOOL)

    async def wait_for_guests(self) -> None:
        """Wait for servers that are starting, as long as a first message may wait."""
        if self._servers is not None:
            await self._servers.settled(FIRST_WAIT_S)

    async def run(
        self, calls: Sequence[ToolCall], emit: Emit, ended: Callable[[CallOutcome], Awaitable[None]], cut_at: int = 0
    ) -> None:
        """Run all calls; `ended` gets their outcomes one at a time, in the order in which they end. A cancel cancels all of them
        and waits for their end, at most `CLEANUP_TIMEOUT_S`: a tool that ignores its cancel is abandoned. `cut_at`: the reply
        reached its output limit of so many tokens in its last call; 0 where it did not."""
        tools = self._tools
        calls = [self._unwrapped(call) for call in calls]
        batch = Batch([c.name not in tools or _only_reads(tools[c.name], fields_of(c.arguments) or {}) for c in calls])
        news: News = asyncio.Queue()
        cut = [0] * (len(calls) - 1) + [cut_at]
        tasks = [asyncio.create_task(self._run_call(c, n, batch, news, cut[n])) for n, c in enumerate(calls)]
        left = len(tasks)
        try:
            while left:
                item = await news.get()
                if isinstance(item, CallOutcome):
                    left -= 1
                    await ended(item)
                else:
                    await emit(item)
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=CLEANUP_TIMEOUT_S)

    def _unwrapped(self, call: ToolCall) -> ToolCall:
        """A call through `CALL_TOOL` as a call of the tool it names; any other as it is."""
        given = fields_of(call.arguments) if call.name == CALL_TOOL and self._servers is not None else None
        if given is None or not isinstance(name := given.get("name"), str) or name == CALL_TOOL:
            return call
        arguments = given.get("arguments", {})
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        return ToolCall(call.id, name, text)

    async def _run_call(self, call: ToolCall, place: int, batch: Batch, news: News, cut_at: int) -> None:
        """Take one call from its check to its outcome. One that is cut off fails with that reason (`cut_at` as in `run`)."""
        given, ran = call, False
        try:
            await batch.wait_for_earlier(place)
            news.put_nowait(ToolStarted(call.id, call.name, fields_of(call.arguments) or call.arguments))
            if cut_at and (not call.arguments.strip() or fields_of(call.arguments) is None):
                raise ToolError(CUT.format(limit=f"{cut_at:,}"), CUT_REMEDY)
            call, asks = await self._before_hooks(call, news)
            outcome = await self._admit(call, place, batch, news, asks=asks)
            batch.move(place, Stage.CLEARED)
            if isinstance(outcome, RunnableCall):
                await batch.run(place)
                ran = True
                outcome = await self._execute(outcome, news)
        except (Exception, asyncio.CancelledError) as problem:
            if _is_own_cancel(problem):
                raise
            outcome = CallOutcome(call, ToolOutput(_failure_text(call, problem), status="error"), 0.0)
        try:
            outcome = await asyncio.to_thread(self._masked, outcome)
        except Exception as problem:
            text = f"{call.name} ran, but what it brought back could not be looked through for secrets: {problem!r}"
            outcome = CallOutcome(call, ToolOutput(f"{text}. It is left out.", status="error"), outcome.seconds)
        try:
            outcome = await self._with_hooks(given, outcome, news, ran=ran)
        except (Exception, asyncio.CancelledError) as problem:
            if _is_own_cancel(problem):
                raise
        batch.move(place, Stage.OVER)
        news.put_nowait(outcome)

    async def _before_hooks(self, call: ToolCall, news: News) -> tuple[ToolCall, bool]:
        """The call as hooks changed it, and whether they want the person asked. Raises ToolError where one does not allow it."""
        if self.call_hooks is None or call.name not in self._tools or fields_of(call.arguments) is None:
            return call, False
        verdict = await self.call_hooks.before_call(call, news.put_nowait)
        if verdict.blocks or verdict.stops:
            raise ToolError(f"A hook does not allow this call. {verdict.reason}".rstrip())
        if verdict.arguments is not None:
            call = ToolCall(call.id, call.name, msgspec.json.encode(verdict.arguments).decode())
        return call, verdict.asks

    async def _with_hooks(self, given: ToolCall, outcome: CallOutcome, news: News, *, ran: bool) -> CallOutcome:
        """The outcome with notes for the model: what hooks changed of its call, and what they say to the result of one that
        `ran`."""
        if self.call_hooks is None:
            return outcome
        lines = [outcome.output.text]
        if fields_of(outcome.call.arguments) != fields_of(given.arguments):
            new = outcome.call.arguments
            shown = new if len(new) <= MAX_SHOWN_ARGUMENTS else f"{new[:MAX_SHOWN_ARGUMENTS]}…"
            lines.append(f"[a hook changed the arguments of this call to {self.mask(shown)}]")
        hooks, output = self.call_hooks, outcome.output
        if ran and (said := await hooks.after_call(outcome.call, output, outcome.seconds, news.put_nowait)):
            lines.append(f"[a hook says: {said}]")
        output = msgspec.structs.replace(outcome.output, text="\n".join(lines))
        return msgspec.structs.replace(outcome, output=output)

    def _masked(self, outcome: CallOutcome) -> CallOutcome:
        """The outcome with secrets masked in its text and diff."""
        output = outcome.output
        masked = msgspec.structs.replace(output, text=self.mask(output.text), diff=self.mask(output.diff))
        return msgspec.structs.replace(outcome, output=masked)

    async def _admit(
        self, call: ToolCall, place: int, batch: Batch, news: News, *, asks: bool = False
    ) -> RunnableCall | CallOutcome:
        """The call ready to run, or its refusal as an outcome. Raises ToolError for a wrong call.

        In this order: its tool and arguments are checked; the tool says what access it needs; mode and rules judge that; where
        they do not decide it, hooks and then the person do, once all earlier calls have their answers. `asks`: a hook wants the
        person asked even where a rule allows the call.
        """
        limits, workplace = self.limits, self._workplace
        context = ToolContext(
            call.id,
            workplace.workspace,
            workplace.session_folder,
            limits.max_chars,
            limits.seconds,
            editor=workplace.editor,
        )
        tool = self._find(call)
        arguments = self._arguments(call, tool.spec)
        async with self._looking:
            access_request = await asyncio.to_thread(tool.access_request, arguments, context)
        if access_request.access in {"write", "run", "network"} and (marks := marks_in(call.arguments)):
            raise ToolError(
                f"{marks[0]} stands for a secret that you are not shown: written as it is, it would take the secret's place.",
                "Leave that part as it is and edit around it, or let a command read the value where it lies.",
            )
        judgement = self.approvals.judge(call.name, access_request)
        if judgement.verdict == "ask":
            await batch.ask(place)
            # the answer to an earlier call may cover this one
            judgement = self.approvals.judge(call.name, access_request)
        if asks and judgement.verdict == "allow":
            await batch.ask(place)
            judgement = self.approvals.asking(judgement)
        if judgement.verdict == "deny":
            news.put_nowait(ApprovalResolved(call.id, "deny", judgement.rule))
            return CallOutcome(call, ToolOutput(judgement.reason, status="denied"), 0.0)
        allowance = judgement.allowance | access_request.asks
        if judgement.verdict == "ask" and self.call_hooks is not None:
            verdict = await self.call_hooks.before_asking(call, news.put_nowait)
            if verdict.blocks or verdict.stops:
                news.put_nowait(ApprovalResolved(call.id, "deny", f"hook {verdict.by}"))
                reason = f"A hook does not allow this call. {verdict.reason}".rstrip()
                return CallOutcome(call, ToolOutput(reason, status="denied"), 0.0)
        if judgement.verdict == "ask":
            future = self.approvals.open(call.id, (call.name, access_request))
            try:
                rules = self.approvals.offers(call.name, access_request)
                news.put_nowait(_question(call, access_request, rules))
                batch.move(place, Stage.ASKED)
                answer = await future
            finally:
                self.approvals.close(call.id)
            for event in await self._after_answer(call, rules, answer):
                news.put_nowait(event)
            if answer.verdict == "deny":
                reason = (
                    f" They said: {answer.reason}" if answer.reason else " They gave no reason; do not try it again."
                )
                return CallOutcome(call, ToolOutput(f"The user did not allow this.{reason}", status="denied"), 0.0)
            allowance |= answer.allowance  # a yes to the call allows what it asks for
        context = msgspec.structs.replace(
            context, allowance=allowance, read_only=judgement.read_only, unreadable=self.approvals.unreadable
        )
        return RunnableCall(call, tool, arguments, context, access_request)

    async def _after_answer(self, call: ToolCall, offered: Sequence[str], answer: Answer) -> Sequence[Event]:
        """Put in force the rules that the person gave with their answer (`offered` are those they could choose from). Returns the
        events about that."""
        if answer.verdict in {"once", "deny"}:
            return (ApprovalResolved(call.id, answer.verdict, "the user"),)
        text = answer.rule or next(iter(offered), "")
        rules = parse_rules(text)
        if rules is None:
            why = f"`{text}` is no rule" if text else "no rule could hold it"
            notice = Notice("warning", f"This call is allowed once only: {why}.")
            return (notice, ApprovalResolved(call.id, "once", "the user"))
        resolved = ApprovalResolved(call.id, answer.verdict, "\n".join(rule.text for rule in rules))
        try:
            await self.approvals.allow(rules, answer.verdict)
        except CtxchatError as problem:
            return (Notice("warning", f"The rule holds for this session only. {problem}"), resolved)
        return (resolved,)

    def _find(self, call: ToolCall) -> ToolPort:
        """The tool of a call. Raises ToolError where it is not on offer."""
        tool = self._tools.get(call.name) if call.name in self.names else None
        if call.name == CALL_TOOL and self._servers is not None:
            raise ToolError(f"{CALL_TOOL} needs `name`, the name of a tool, and `arguments`, an object.")
        if tool is None:
            wanted = call.name if len(call.name) <= MAX_TOOL_NAME_CHARS else f"{call.name[:MAX_TOOL_NAME_CHARS]}…"
            raise ToolError(f"There is no tool {wanted!r}.", f"Available: {', '.join(self.names) or 'none'}.")
        return tool

    def _arguments(self, call: ToolCall, spec: ToolSpec) -> dict[str, object]:
        """The arguments of a call as an object. Raises ToolError where they are none or lack a required one."""
        arguments = fields_of(call.arguments)
        if arguments is None:
            raise ToolError(
                f"The arguments are not a JSON object: {fault_of(call.arguments)}.",
                "Send the call again with valid JSON.",
            )
        required = cast("list[str]", spec.parameters.get("required", []))
        if missing := [name for name in required if name not in arguments]:
            raise ToolError(f"{call.name} needs {', '.join(missing)}.")
        return arguments

    async def _execute(self, job: RunnableCall, news: News) -> CallOutcome:
        """Run an allowed call to its end, and put the events of its output into `news` as it arrives. Never raises for the tool's
        own faults: these become the result. Secrets are masked line by line, so a line that pauses halfway is shown only after
        `HALF_LINE_PAUSE_S`."""
        start = self._clock.seconds()
        shown = MaskedLines(self.mask)
        self.begun[job.call.id] = ""

        def waited() -> None:
            if event := self._event_of(job.call.id, ToolText(shown.waited())):
                news.put_nowait(event)

        pause: asyncio.TimerHandle | None = None
        watched = await self._watch(job, news)
        output = ToolOutput(f"{job.call.name} ended without a result.", status="error")
        try:
            running = job.tool.run(job.arguments, job.context)
            async with aclosing(cast("AsyncGenerator[ToolPiece, None]", running)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ToolOutput):
                        output = piece
                        continue
                    if isinstance(piece, ToolText):
                        if pause:
                            pause.cancel()
                        piece = ToolText(await asyncio.to_thread(shown.feed, piece.text))
                        pause = asyncio.get_running_loop().call_later(HALF_LINE_PAUSE_S, waited)
                    if event := self._event_of(job.call.id, piece):
                        news.put_nowait(event)
        except (Exception, asyncio.CancelledError) as problem:
            if _is_own_cancel(problem):
                raise
            output = ToolOutput(_failure_text(job.call, problem), status="error")
        finally:
            if pause:
                pause.cancel()
            self.begun[job.call.id] += shown.rest()
            self.approvals.close(job.call.id)
        if watched:
            await self._tell_changes(watched, job, news)
        return CallOutcome(job.call, output, self._clock.seconds() - start)

    async def _watch(self, job: RunnableCall, news: News) -> WorkspaceFiles | None:
        """Begin to keep copies of the files that the call may change; None where it changes none. Where that fails, the person is
        told, and the call runs all the same, since it was allowed."""
        files = self._workplace.files
        if (
            files is None
            or _only_reads(job.tool, job.arguments)
            or job.context.read_only
            or job.access_request.access not in {"write", "run", "network"}
        ):
            return None
        if self._workplace.editor and job.access_request.access == "write":
            await self._workplace.editor.save(job.access_request.target)
        try:
            await files.begin_call(
                job.access_request.access, job.access_request.target, job.access_request.changing_words
            )
        except CtxchatError as problem:
            self._warn(str(problem), news)
            return None
        return files

    async def _tell_changes(self, files: WorkspaceFiles, job: RunnableCall, news: News) -> None:
        """Emit which files a call has changed, with a warning about those that are too large to be brought back."""
        try:
            name, changes, unnamed = await files.end_call()
        except CtxchatError as problem:
            self._warn(str(problem), news)
            return
        if name:
            news.put_nowait(FilesChanged(name, job.call.id, changes, unnamed))
            if unkept := [c.name for c in changes if any(s and not s.kept for s in (c.before, c.after))]:
                self._warn(f"Too large to keep, so undo cannot bring it back: {', '.join(unkept[:5])}.", news)

    def _warn(self, text: str, news: News) -> None:
        """Warn the person, only once with the same text."""
        if text not in self._warned:
            self._warned.add(text)
            news.put_nowait(Notice("warning", text))

    def _event_of(self, call_id: str, piece: ToolText | ToolQuestion | ToolLeave | ToolNews) -> Event | None:
        """A piece of a running call's output as an event; None where it is none. Output is kept in `begun`, and a question is
        opened."""
        match piece:
            case ToolText(text=text):
                self.begun[call_id] = (self.begun.get(call_id, "") + text)[-MAX_KEPT_CHARS:]
                return ToolProgress(call_id, text) if text else None
            case ToolQuestion(text=text, options=options, server=server):
                asked = self.approvals.ask(call_id, piece)
                return QuestionAsked(call_id, self.mask(text), options, server) if asked else None
            case ToolLeave(request=request):
                self.approvals.pass_on(piece)
                return request
            case ToolNews(event=event):
                return event


def finished(outcome: CallOutcome, shown: str, tokens: int, spilled: str) -> ToolFinished:
    """The event of a call that ended; `shown` is its output as the model sees it."""
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


def _question(call: ToolCall, access_request: AccessRequest, rules: tuple[str, ...]) -> ApprovalRequested:
    """The event that asks the person about a call."""
    return ApprovalRequested(
        call_id=call.id,
        name=call.name,
        summary=access_request.summary or f"{call.name} {access_request.target}",
        access=access_request.access,
        preview=access_request.preview,
        rules=rules,
        allowance=access_request.allowance,
        harms=harms(access_request.parts),
    )


def _is_own_cancel(problem: BaseException) -> bool:
    """Whether this task itself is cancelled. Anything else that a tool raises is a result of the call, since tools may come from
    a third party; so is the cancel of something that it waited for."""
    task = asyncio.current_task()
    return isinstance(problem, asyncio.CancelledError) and (task is None or task.cancelling() > 0)


def _failure_text(call: ToolCall, problem: BaseException) -> str:
    """The result for the model of a call that failed."""
    if isinstance(problem, asyncio.CancelledError):
        return f"{call.name} failed: something it waited for was cancelled."
    return (
        str(problem)
        if isinstance(problem, CtxchatError)
        else f"{call.name} failed: {type(problem).__name__}: {problem}"
    )


def _only_reads(tool: ToolPort, arguments: Mapping[str, object]) -> bool:
    """Whether a call changes nothing. A third party's tool that cannot say may change something."""
    try:
        return bool(tool.reads(arguments))
    except Exception:
        return False
