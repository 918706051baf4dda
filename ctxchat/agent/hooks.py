"""Runs the hooks of a session: sees every event and carries out the actions of hooks. A faulty hook never fails a turn.

Commands and notices happen at once; notes and compactions wait until no tool call is without its result, and notes then become
part of the record. Which hooks act is decided in `core.hooks`; the runner of commands is passed in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol, cast, get_args

import msgspec

from ctxchat.agent.compaction.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.emitting import Emit, Work
from ctxchat.core.call_arguments import fields_of
from ctxchat.core.claude_hooks import (
    BLOCKING_EXIT_CODE,
    CLAUDE_AGENTS,
    CLAUDE_ERRORS,
    CLAUDE_MODES,
    OF_THE_PERSON,
    answer_in,
    event_fields,
    matches,
    tool_input,
    verdict_of,
)
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.events import (
    ApprovalRequested,
    CompactionStarted,
    Event,
    Failed,
    Notice,
    QuestionAsked,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    fields,
)
from ctxchat.core.grouping import single
from ctxchat.core.hooks import (
    ASKED,
    UNSTREAMED,
    CompactContext,
    Hook,
    HookEvent,
    HookVerdict,
    Inject,
    Moment,
    Notify,
    RunCommand,
    Tally,
    firing,
)
from ctxchat.core.journal import HookFired, Sealed
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.ports import ToolOutput
from ctxchat.core.prompt_files import FilledPrompt
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.core.tool_names import claude_name


class HookNote(msgspec.Struct, frozen=True):
    """A text from the hook of that name, on its way into the conversation."""

    hook: str
    text: str


class Notes:
    """The queue of notes that wait to be written into the record; false while it is empty."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: list[HookNote] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add_note(self, hook: str, text: str) -> None:
        """Queue a text for the next request; an equal note that already waits is not queued twice."""
        if (note := HookNote(hook, text)) not in self._waiting:
            self._waiting.append(note)

    def take_all(self) -> list[HookNote]:
        """Remove and return all notes."""
        taken, self._waiting = self._waiting, []
        return taken

    async def write_notes(self, notes: list[HookNote]) -> None:
        """Write these notes into the record. Raises StorageError."""
        conversation = self._conversation
        await conversation.flush()
        groups = [await self._group(note, seq) for seq, note in enumerate(notes, conversation.ledger.next_seq)]
        await conversation.write(Sealed(tuple(groups)))

    async def _group(self, note: HookNote, seq: int) -> Group:
        """The note as a group of the record; of a long one only head and tail, its whole text being saved as a file."""
        conversation = self._conversation
        text = note.text
        cap = max(200, min(conversation.options.tool_result_tokens, conversation.budget.limit // 4))
        tokens = await asyncio.to_thread(conversation.counter.count_text, text)
        if tokens > cap:
            text = await conversation.put_away(f"tool-results/hook-m{seq}.txt", text, tokens, cap)
        content = f"[note of the hook {note.hook}]\n{text}"
        return single(
            "note",
            Message(seq, "user", content, at=conversation.clock.now()),
            conversation.ledger.turn,
            f"hook:{note.hook}",
        )


NOT_RUN = frozenset({126, 127})
"""Exit codes by which a shell says that it could not run the command."""

MAX_CONTINUATIONS = 5
"""How often in a turn hooks can make the model continue after it has answered."""

BACKGROUND_END_S = 5.0
"""Seconds that background commands have to end by themselves when the session ends."""

MAX_FAILURE_CHARS = 300
"""Characters of a failing command's last line of output that its notice quotes."""


class Ran(msgspec.Struct, frozen=True):
    """The result of a command. `exit_code` is None where it was stopped at its timeout. `output` includes standard error, except
    for a hook in Claude Code's form, where that is in `errors`."""

    exit_code: int | None
    output: str
    errors: str = ""


class CommandRunner(Protocol):
    """Runs a command line with `event` on its standard input. When cancelled, or at the timeout, no process is left running."""

    async def __call__(self, action: RunCommand, event: bytes) -> Ran: ...


class HookStop(CtxchatError):
    """A hook ended the turn."""


class Hooks:
    """The hooks of one session; false where there are none. `above` is the id of the session a sub-agent works for, else
    empty."""

    def __init__(
        self,
        hooks: Sequence[Hook],
        conversation: Conversation,
        compactor: Compactor,
        run: CommandRunner,
        workspace: str = "",
        above: str = "",
    ) -> None:
        self._workspace, self._above = workspace, above
        compactor.ask_hooks = self.before_compaction
        self._hooks = tuple(hooks)
        self._conversation = conversation
        self._compactor = compactor
        self._run = run
        self._tallies: dict[str, Tally] = dict(conversation.state.hooks)
        self._notes = Notes(conversation)
        self._compactions_asked: list[Hook] = []
        self._told: set[str] = set()  # names of hooks whose fault was reported
        self._left_out: set[str] = set()
        self._seen: ContextUsage | None = None  # the gauge as last shown, which counts a round that is not sealed yet
        self._results = 0  # tokens of results that came after `_seen`
        self._calls = 0
        self._begun = False
        self._asked_calls = 0  # number of calls of the turn that hooks were asked about before they ran
        self._continuations = 0  # times in the turn that a hook had the model go on
        self._stop: HookVerdict | None = None  # the verdict that ends the turn after the round under way
        self._ended_calls: list[
            dict[str, object]
        ] = []  # the ended calls of the round under way, in the form that hooks read
        self._beside: set[asyncio.Task[None]] = set()  # background commands
        self._late: list[Event] = []  # events from background commands, still to be emitted

    def __len__(self) -> int:
        return len(self._hooks)

    def use(self, hooks: Sequence[Hook]) -> None:
        """Replace the hooks. One that was changed and had been left out is run again, and may be reported again."""
        same = {hook.name for hook in hooks if hook in self._hooks}
        self._told &= same
        self._left_out &= same
        self._hooks = tuple(hooks)

    # ── what the session asks for ──

    def run_around(self, work: Work) -> Work:
        """`work` with hooks run after each of its events. `TurnFinished` stays the last event of a turn, and hooks run before it;
        a cancelled turn runs none at its end."""

        async def with_hooks(emit: Emit) -> None:
            async def tell(event: Event) -> None:
                if not isinstance(event, TurnFinished):
                    await emit(event)
                    await self._handle_event(event, emit)
                    return
                if event.status != "cancelled":
                    await self._handle_event(event, emit)
                    await self._run_waiting(emit)
                await emit(event)

            await work(tell)
            await self._run_waiting(emit)

        return with_hooks

    async def between(self, emit: Emit) -> None:
        """Run one waiting compaction, then write the waiting notes. To be called only while no tool call is open."""
        asked, self._compactions_asked = self._compactions_asked, []
        for hook in asked:
            try:
                if await self._made_room(hook, emit):
                    break  # made or tried: the other hooks asked for the same
            except Exception as problem:  # a strategy may come from a third party
                for notice in self._failed(hook.name, str(problem) or type(problem).__name__):
                    await emit(notice)
        if self._notes:
            for event in await self._delivered():
                await emit(event)

    async def end_session(self) -> tuple[Notice, ...]:
        """Run the hooks for the end of the session and everything that still waits. Returns their notices."""
        if not self._begun:
            return ()
        self._begun = False
        events = list(await self._fire("session_finished", None))
        await self._decide("session_finished", events.append, "other")
        await self._end_background()
        events += self._late

        async def keep(event: Event) -> None:
            events.append(event)

        await self._run_waiting(keep)
        return tuple(event for event in events if isinstance(event, Notice))

    # ── seeing ──

    async def _run_waiting(self, emit: Emit) -> None:
        """Run waiting compactions and notes until none are left; hooks see the events of these as well."""

        async def tell(event: Event) -> None:
            await emit(event)
            await self._handle_event(event, emit)

        while self._compactions_asked or self._notes:
            await self.between(tell)
        with suppress(StorageError):  # it is written later
            await self._conversation.flush()

    async def _handle_event(self, event: Event, emit: Emit) -> None:
        """Run the hooks for an event, and emit what comes of them."""
        match event:
            case TurnStarted():
                self._calls, self._results, self._asked_calls, self._continuations = 0, 0, 0, 0
                self._stop = None
                self._ended_calls.clear()
            case ToolStarted():
                self._calls += 1
            case ToolFinished(tokens=tokens):
                self._results += tokens
            case ContextUsage():
                self._seen, self._results = event, 0
            case _:
                pass
        said, self._late = self._late, []
        if not self._begun:
            self._begun = True
            said += await self._fire("session_started", None)
            source = "startup" if self._conversation.ledger.turn <= 1 else "resume"
            await self._decide("session_started", said.append, source)
            if self._above:
                await self._decide("subagent_started", said.append, self._agent_type)
        in_vain = isinstance(event, CompactionRecord) and event.outcome != "compacted"
        name = type(event).__struct_config__.tag
        if name in get_args(HookEvent) and not in_vain:
            said += await self._fire(cast("HookEvent", name), event)
        if isinstance(event, ApprovalRequested):
            fields = {"message": event.summary}
            await self._decide("approval_requested", said.append, "permission_prompt", fields)
        if isinstance(event, QuestionAsked) and event.server:
            fields = {"message": event.text}
            await self._decide("approval_requested", said.append, "elicitation_dialog", fields)
        if isinstance(event, CompactionRecord) and not in_vain:
            await self._decide("compaction_finished", said.append)
        if isinstance(event, Failed) and event.kind in CLAUDE_ERRORS:
            told = {"error_details": event.text, "last_assistant_message": event.text}
            await self._decide("error", said.append, CLAUDE_ERRORS[event.kind], told)
        for news in said:
            await emit(news)

    async def _fire(self, name: HookEvent, event: Event | None, moment: Moment | None = None) -> Sequence[Event]:
        if all(hook.event != name for hook in self._hooks):
            return ()
        try:
            moment = moment or await self._moment(event)
        except Exception:  # the view cannot be compiled: the turn fails on the same next, and reports it
            return ()
        able = [hook for hook in self._hooks if hook.name not in self._left_out]
        said: list[Event] = []
        for hook in firing(able, name, moment, self._tallies):
            if _decides(hook):
                continue  # `_decide` asks it
            try:
                said += await self._act(hook, event, moment)
            except CtxchatError as problem:
                said += self._failed(hook.name, str(problem))
            except Exception as problem:  # whatever is wrong with a hook, the turn goes on
                said += self._failed(hook.name, f"{type(problem).__name__}: {problem}")
        return said

    async def _moment(self, event: Event | None) -> Moment:
        conversation = self._conversation
        tool = event.name if isinstance(event, ToolStarted | ToolFinished) else ""
        if tool:
            context_usage = self._seen or conversation.context_usage
        else:
            context_usage = (
                await self._measured()
                if event is None or isinstance(event, TurnStarted)
                else conversation.context_usage
            )
        return self._moment_of(context_usage, tool)

    def _moment_of(self, context_usage: ContextUsage, tool: str = "") -> Moment:
        conversation = self._conversation
        groups = conversation.ledger.groups_in_force
        return Moment(
            context_pressure=round((context_usage.used + (self._results if tool else 0)) / context_usage.limit, 4),
            turn_count=conversation.ledger.turn,
            tool_calls=self._calls,
            message_count=sum(bool(item.group) for item in conversation.view.items),
            session_calls=self._calls + sum(len(g.first.calls) for g in groups if g.turn < conversation.ledger.turn),
            session_messages=sum(len(g.messages) for g in groups),
            tool_name=tool,
        )

    async def _measured(self) -> ContextUsage:
        """The gauge with the message that has just arrived; only the first time with a full refresh, which the turn makes
        itself."""
        return await (self._conversation.remeasure() if self._seen else self._conversation.refresh())

    # ── asking: what may be answered with a no ──

    async def before_call(self, call: ToolCall, tell: Callable[[Event], object]) -> HookVerdict:
        """The verdict of hooks on a call, before permissions are checked."""
        self._asked_calls += 1
        fields = self._call_fields(call) | {"tool_use_id": call.id}
        return self._stopping(await self._decide("tool_started", tell, claude_name(call.name), fields, call.name))

    async def before_asking(self, call: ToolCall, tell: Callable[[Event], object]) -> HookVerdict:
        """The verdict of hooks on a call that the person is about to be asked about; hooks can refuse it in the person's
        place."""
        fields, name = self._call_fields(call), claude_name(call.name)
        return self._stopping(await self._decide("approval_needed", tell, name, fields, call.name))

    async def after_call(
        self, call: ToolCall, output: ToolOutput, seconds: float, tell: Callable[[Event], object]
    ) -> str:
        """The text that hooks add to the result of a call that ran; empty for nothing."""
        fields = self._call_fields(call) | {"tool_use_id": call.id}
        self._ended_calls.append(fields | {"tool_response": output.text})
        fields |= {"duration_ms": round(seconds * 1000)}
        if output.status == "ok":
            event: HookEvent = "tool_finished"
            fields |= {"tool_response": {"stdout": output.text, "stderr": "", "interrupted": False}}
        else:
            event, code = "tool_failed", output.exit_code
            fields |= {"error": f"Exit code {code}\n{output.text}" if code else output.text, "is_interrupt": False}
        said = self._stopping(await self._decide(event, tell, claude_name(call.name), fields, call.name))
        return "\n".join(text for text in (said.reason if said.blocks else "", said.context) if text)

    async def after_round(self, calls: Sequence[ToolCall], emit: Emit) -> None:
        """Run the hooks for a finished round, whose calls are in the record already. Raises HookStop where a hook ends the
        turn."""
        ids = {call.id for call in calls}
        ended, self._ended_calls = [each for each in self._ended_calls if each["tool_use_id"] in ids], []
        said: list[Event] = []
        verdict = await self._decide("round_finished", said.append, fields={"tool_calls": ended})
        for event in said:
            await emit(event)
        if verdict.context:
            self._notes.add_note(verdict.by, verdict.context)
        stop, self._stop = self._stop or (verdict if verdict.blocks or verdict.stops else None), None
        if stop:
            self._notes.add_note(stop.by, f"The turn was stopped here. {stop.reason}".rstrip())
            raise HookStop(
                f"The hook {stop.by} stopped the turn. {stop.reason}".rstrip(), "Say how to go on, or /continue."
            )

    def _stopping(self, verdict: HookVerdict) -> HookVerdict:
        """Returns the verdict, and remembers one that stops everything: the turn then ends after this round."""
        self._stop = verdict if verdict.stops else self._stop
        return verdict

    def _call_fields(self, call: ToolCall) -> dict[str, object]:
        return dict(tool_input(call.name, fields_of(call.arguments) or {}, self._workspace))

    async def before_message(self, text: str, emit: Emit) -> None:
        """Raises CtxchatError where a hook does not let a message of the person through."""
        await self._let_through("turn_started", emit, "", {"prompt": text})

    async def before_command(self, called: FilledPrompt, text: str, emit: Emit) -> None:
        """Like `before_message`, for a message that calls a skill, command or prompt by its name."""
        file = called.file
        fields = {
            "expansion_type": "mcp_prompt" if file.origin == "server" else "slash_command",
            "command_args": called.arguments,
            "command_source": file.origin,
            "prompt": text,
        }
        await self._let_through("command_called", emit, file.name, fields)

    async def _let_through(self, name: HookEvent, emit: Emit, subject: str, fields: Mapping[str, object]) -> None:
        said: list[Event] = []
        verdict = await self._decide(name, said.append, subject, fields)
        for event in said:
            await emit(event)
        if verdict.blocks or verdict.stops:
            raise CtxchatError(f"Not sent: a hook does not allow it. {verdict.reason}".rstrip())

    async def wants_more(self, answer: str, emit: Emit) -> bool:
        """Whether a hook makes the model continue after its `answer`; the hook's reason then waits as a note."""
        fields = {"stop_hook_active": self._continuations > 0, "last_assistant_message": answer}
        said: list[Event] = []
        verdict = await self._decide("turn_finished", said.append, fields=fields)
        if self._above and not verdict.blocks:
            fields["agent_transcript_path"] = ""
            verdict = await self._decide("subagent_finished", said.append, self._agent_type, fields)
        for event in said:
            await emit(event)
        wanted = verdict.blocks or verdict.context
        if not wanted or verdict.stops or self._continuations >= MAX_CONTINUATIONS:
            return False
        self._continuations += 1
        self._notes.add_note(verdict.by, verdict.reason or verdict.context or "Not done yet.")
        return True

    @property
    def _agent_type(self) -> str:
        """The sub-agent's type by Claude Code's name for it."""
        agent = self._conversation.agent
        return CLAUDE_AGENTS.get(agent, agent)

    async def before_compaction(self, reason: Reason, instructions: str, emit: Emit) -> HookVerdict:
        """The verdict of hooks on a compaction that is due; its `context` says what the compaction must keep."""
        trigger = "manual" if reason in {"manual", "model"} else "auto"
        said: list[Event] = []
        fields = {"custom_instructions": instructions}
        verdict = await self._decide("compaction_started", said.append, trigger, fields)
        for event in said:
            await emit(event)
        return verdict

    async def _decide(
        self,
        name: HookEvent,
        tell: Callable[[Event], object],
        subject: str = "",
        fields: Mapping[str, object] | None = None,
        tool: str = "",
    ) -> HookVerdict:
        """The joint verdict of the hooks whose answer counts, asked one after another until one blocks or stops; later answers
        are merged over earlier ones. Events that only exist with a person do not ask hooks in Claude Code's form in a
        sub-agent."""
        hooks = [
            h for h in self._hooks if h.event == name and not (self._above and name in OF_THE_PERSON and _is_claude(h))
        ]
        if not hooks:
            return HookVerdict()
        moment = await self._asked_moment(tool)
        if name in UNSTREAMED:
            for event in await self._fire(name, None, moment):
                tell(event)
        verdict, context = HookVerdict(), list[str]()
        for hook in firing([h for h in hooks if _decides(h)], name, moment, self._tallies):
            action = cast("RunCommand", hook.action)
            if action.form == "claude" and not matches(action.matcher, subject):
                continue
            try:
                said = await self._answer(hook, action, name, moment, event_fields(name, subject, fields or {}), tool)
            except Exception as problem:  # whatever is wrong with a hook, the turn goes on
                words = str(problem) if isinstance(problem, CtxchatError) else f"{type(problem).__name__}: {problem}"
                for notice in self._failed(hook.name, words):
                    tell(notice)
                continue
            for notice in self._told_person(hook, said):
                tell(notice)
            if said.context and name in _NOTED:
                self._note_once(hook.name, said.context)
            elif said.context:
                context.append(said.context)
            asks, arguments = said.asks or verdict.asks, said.arguments or verdict.arguments
            verdict = msgspec.structs.replace(said, by=hook.name, asks=asks, arguments=arguments)
            if said.blocks or said.stops:
                break
        return msgspec.structs.replace(verdict, context="\n".join(context))

    def _note_once(self, hook: str, text: str) -> None:
        """Queue a note, unless a sub-agent that is given more work still has it in view from its first start."""
        if not (self._above and any(text in item.message.text for item in self._conversation.view.items)):
            self._notes.add_note(hook, text)

    async def _answer(
        self, hook: Hook, action: RunCommand, name: HookEvent, moment: Moment, fields: dict[str, object], tool: str
    ) -> HookVerdict:
        ours = action.form != "claude"
        line = self._event_line(hook, None, moment, fields) if ours else self._claude_line(fields)
        if action.background:
            self._begin(hook, action, line, name)
            return HookVerdict()
        ran = await self._run(action, line)
        self._did(hook)
        if ran.exit_code is None:
            raise CtxchatError(
                f"did not end within {action.timeout:g} s and was ended; what had asked it went on without it"
            )
        verdict = verdict_of(name, tool, ran.exit_code, ran.output, ran.errors, ours=ours)
        if ran.exit_code not in {0, BLOCKING_EXIT_CODE} and answer_in(ran.output) is None:
            last = (ran.errors or ran.output).strip().rsplit("\n", 1)[-1][:MAX_FAILURE_CHARS]
            raise CtxchatError(f"exit code {ran.exit_code}{': ' if last else ''}{last}")
        if action.show_output and ran.output.strip() and verdict == HookVerdict():
            self._notes.add_note(hook.name, f"{_head(ran.exit_code)}\n{ran.output.strip()}")
        return verdict

    def _told_person(self, hook: Hook, verdict: HookVerdict) -> Sequence[Notice]:
        said = [Notice("info", f"Hook {hook.name}: {verdict.tells_person}")] if verdict.tells_person else []
        if verdict.blocks or verdict.stops:
            said.append(Notice("warning", f"Hook {hook.name} says no: {verdict.reason}".removesuffix(": ")))
        return said

    async def _asked_moment(self, tool: str) -> Moment:
        """The moment for a hook whose answer counts. The call it is asked about has not started yet, but is counted all the
        same."""
        if not tool:
            return self._moment_of(self._seen or self._conversation.context_usage)
        moment, asked = await self._moment(ToolStarted("", tool, {})), self._asked_calls
        before = moment.session_calls - moment.tool_calls
        return msgspec.structs.replace(moment, tool_calls=asked, session_calls=before + asked)

    def _claude_line(self, fields: Mapping[str, object]) -> bytes:
        """The JSON line that a hook in Claude Code's form reads. `transcript_path` is empty: no transcript file in its form
        exists."""
        own = self._conversation.journal.session
        session = {"session_id": self._above or own, "transcript_path": ""}
        if self._above:
            session |= {"agent_id": own, "agent_type": self._agent_type}
        around = {"cwd": self._workspace, "permission_mode": CLAUDE_MODES[self._conversation.mode]}
        return (json.dumps(session | around | dict(fields)) + "\n").encode()

    # ── doing ──

    async def _act(self, hook: Hook, event: Event | None, moment: Moment) -> Sequence[Event]:
        match hook.action:
            case Notify(text=text):
                self._did(hook)
                return (Notice("info", text),)
            case Inject(text=text):
                self._did(hook)
                self._notes.add_note(hook.name, text)
            case CompactContext():
                own = isinstance(event, CompactionStarted | CompactionRecord) and event.reason == "hook"
                if not own and hook not in self._compactions_asked:  # a hook's compaction calls for no other
                    self._compactions_asked.append(hook)
            case RunCommand():
                return await self._command(hook, hook.action, self._event_line(hook, event, moment))
        return ()

    def _begin(self, hook: Hook, action: RunCommand, line: bytes, name: HookEvent) -> None:
        """Start a background command; text it has for the model becomes a note with the next request."""

        async def run() -> None:
            try:
                ran = await self._run(action, line)
            except Exception as problem:  # whatever is wrong with a hook, the session goes on
                self._late += self._failed(hook.name, str(problem) or type(problem).__name__)
                return
            verdict = verdict_of(name, "", ran.exit_code or 0, ran.output, ran.errors)
            if words := verdict.context or verdict.reason or (ran.output.strip() if action.show_output else ""):
                self._notes.add_note(hook.name, words)
            if verdict.tells_person:
                self._late.append(Notice("info", f"Hook {hook.name}: {verdict.tells_person}"))
            if ran.exit_code is None:
                self._late += self._failed(hook.name, f"did not end within {action.timeout:g} s and was ended")

        self._did(hook)
        task = asyncio.create_task(run(), name=f"hook {hook.name}")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _end_background(self) -> None:
        """End the background commands, after `BACKGROUND_END_S` in which each may end by itself."""
        left = list(self._beside)
        if left:
            await asyncio.wait(left, timeout=BACKGROUND_END_S)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _command(self, hook: Hook, action: RunCommand, line: bytes) -> Sequence[Event]:
        if action.background:
            self._begin(hook, action, line, hook.event)
            return ()
        ran = await self._run(action, line)
        self._did(hook)
        if ran.exit_code is None:
            self._left_out.add(hook.name)
            what = f"did not end within {action.timeout:g} s and was ended. It is left out until the session is opened again"
            return self._failed(hook.name, f"{what}; raise its timeout if it needs longer")
        if ran.exit_code in NOT_RUN or (ran.exit_code and not action.show_output):
            last = ran.output.strip().rsplit("\n", 1)[-1][:MAX_FAILURE_CHARS]
            return self._failed(hook.name, f"exit code {ran.exit_code}{': ' if last else ''}{last}")
        if action.show_output and ran.output.strip():
            self._notes.add_note(hook.name, f"{_head(ran.exit_code)}\n{ran.output.strip()}")
        return ()

    async def _made_room(self, hook: Hook, emit: Emit) -> bool:
        """Run the compaction a hook asked for. True if one was made or tried, False where there was nothing to free."""
        action = cast("CompactContext", hook.action)
        record = await self._compactor.for_hook(emit, action.strategy, action.instructions)
        if record and record.outcome == "compacted":
            self._did(hook)
        return record is not None

    async def _delivered(self) -> Sequence[Event]:
        """Write the waiting notes into the record; if the store refuses they are dropped. Returns the events to emit."""
        notes = self._notes.take_all()
        names = tuple(dict.fromkeys(note.hook for note in notes))
        try:
            await self._notes.write_notes(notes)
        except StorageError as problem:
            return tuple(n for name in names for n in self._failed(name, f"its note could not be written. {problem}"))
        said = (Notice("info", f"Hook {name}: a note went to the model.") for name in names)
        return (*said, await self._conversation.remeasure())

    def _did(self, hook: Hook) -> None:
        """Count a run of a hook. It is written with the next record: writing now, during a round, would discard the saved partial
        round."""
        turn = self._conversation.ledger.turn
        self._tallies[hook.name] = self._tallies.get(hook.name, Tally()).count_turn(turn)
        if hook.counts:
            self._conversation.write_later(HookFired(hook.name, turn, self._conversation.clock.now()))

    def _failed(self, hook: str, why: str) -> Sequence[Notice]:
        """A notice of a hook's fault, only the first time for each hook."""
        if hook in self._told:
            return ()
        self._told.add(hook)
        return (Notice("warning", f"Hook {hook}: {why.removesuffix('.')}."),)

    def _event_line(
        self, hook: Hook, event: Event | None, moment: Moment, told: Mapping[str, object] | None = None
    ) -> bytes:
        """The JSON line that a hook of our own form reads: the event as in `run --json`, the hook's name and the moment its
        condition saw, in ASCII."""
        at = self._conversation.clock.now()
        body = fields(event, at) if event else {}
        head = {"type": hook.event, "session": self._conversation.journal.session, "at": at}
        more = {"hook": hook.name, "moment": msgspec.to_builtins(moment)}
        return (json.dumps(dict(told or {}) | body | head | more) + "\n").encode()


_NOTED: frozenset[HookEvent] = frozenset({"session_started", "turn_started", "subagent_started", "command_called"})
"""Events for which a hook's context becomes a note for the model."""


def _is_claude(hook: Hook) -> bool:
    return isinstance(hook.action, RunCommand) and hook.action.form == "claude"


def _decides(hook: Hook) -> bool:
    """Whether the hook's answer counts, so that `_decide` asks it and `_fire` does not."""
    return isinstance(hook.action, RunCommand) and (_is_claude(hook) or hook.event in ASKED)


def _head(exit_code: int) -> str:
    return "[what its command printed]" if not exit_code else f"[what its command printed; exit code {exit_code}]"
