"""Runs the hooks of a session. A faulty hook never fails a turn.

There are two kinds of hooks. Most only act, at an event that passes in the session's stream (`_fire`). The others are asked, and
their answer is waited for, because it may stop or change what is about to happen (`_decide`). Commands and notices are carried
out at once; compactions, and notes for the model, wait until no tool call is without its result (`between`).

Which hooks act is decided in `core.hooks`, by the figures of `hook_moments`; notes are queued in `hook_notes`; the function that
runs a command is passed in.
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
from ctxchat.agent.hook_moments import HookMoments
from ctxchat.agent.hook_notes import HookNotes
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
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.events import (
    ApprovalRequested,
    CompactionStarted,
    Event,
    Failed,
    Notice,
    QuestionAsked,
    TurnFinished,
    TurnStarted,
    fields,
)
from ctxchat.core.hooks import (
    DECIDABLE,
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
from ctxchat.core.journal import HookFired
from ctxchat.core.messages import ToolCall
from ctxchat.core.ports import ToolOutput
from ctxchat.core.prompt_files import FilledPrompt
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.core.tool_names import claude_name

NOT_RUN = frozenset({126, 127})
"""Exit codes by which a shell says that it could not run the command."""

MAX_CONTINUATIONS = 5
"""How often in a turn hooks can make the model continue after it has answered."""

BACKGROUND_END_S = 5.0
"""Seconds that background commands have to end by themselves when the session ends."""

MAX_FAILURE_CHARS = 300
"""Characters of a failing command's last line of output that its notice quotes."""


class Ran(msgspec.Struct, frozen=True):
    """The result of a hook's command. `exit_code` is None where it was stopped at its timeout. `output` includes standard error,
    except for a hook in Claude Code's form, where that is in `errors`."""

    exit_code: int | None
    output: str
    errors: str = ""


class CommandRunner(Protocol):
    """Runs a command line with `event` on its standard input. When cancelled, or at the timeout, no process is left running."""

    async def __call__(self, action: RunCommand, event: bytes) -> Ran: ...


class HookStop(CtxchatError):
    """A hook ended the turn."""


class Hooks:
    """The hooks of one session; false where there are none.

    `run` runs a command, `workspace` is the session's folder, and `above` the id of the session that a sub-agent works for (empty
    for a person's session).
    """

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
        self._moments = HookMoments(conversation)
        self._notes = HookNotes(conversation)
        self._compactions_asked: list[Hook] = []  # hooks that want a compaction, which waits for `between`
        self._reported: set[str] = set()  # names of hooks whose fault was reported
        self._left_out: set[str] = set()  # names of hooks that are not run again
        self._begun = False  # the hooks for the start of the session have run
        self._continuations = 0  # times in the turn that a hook had the model go on
        self._stop: HookVerdict | None = None  # the verdict that ends the turn after the round under way
        # the ended calls of the round under way, in the form that hooks read
        self._ended_calls: list[dict[str, object]] = []
        self._background: set[asyncio.Task[None]] = set()  # background commands that still run
        self._late_events: list[Event] = []  # events from background commands, still to be emitted

    def __len__(self) -> int:
        return len(self._hooks)

    def use(self, hooks: Sequence[Hook]) -> None:
        """Replace the hooks. One that was changed and had been left out is run again, and may be reported again."""
        same = {hook.name for hook in hooks if hook in self._hooks}
        self._reported &= same
        self._left_out &= same
        self._hooks = tuple(hooks)

    # ── what a turn and the session call ──

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
        asking, self._compactions_asked = self._compactions_asked, []
        for hook in asking:
            try:
                if await self._compact_for(hook, emit):
                    break  # made or tried: the other hooks asked for the same
            except Exception as problem:  # a strategy may come from a third party
                for notice in self._fault_notices(hook.name, str(problem) or type(problem).__name__):
                    await emit(notice)
        if self._notes:
            for event in await self._deliver_notes():
                await emit(event)

    async def end_session(self) -> tuple[Notice, ...]:
        """Run the hooks for the end of the session and everything that still waits. Returns their notices."""
        if not self._begun:
            return ()
        self._begun = False
        events = list(await self._fire("session_finished", None))
        await self._decide("session_finished", events.append, "other")
        await self._end_background()
        events += self._late_events

        async def keep(event: Event) -> None:
            events.append(event)

        await self._run_waiting(keep)
        return tuple(event for event in events if isinstance(event, Notice))

    async def before_message(self, text: str, emit: Emit) -> None:
        """Ask hooks about a message of the person. Raises CtxchatError where one does not let it through."""
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

    async def before_call(self, call: ToolCall, tell: Callable[[Event], object]) -> HookVerdict:
        """The verdict of hooks on a call, before permissions are checked."""
        self._moments.count_asked_call()
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
        verdict = self._stopping(await self._decide(event, tell, claude_name(call.name), fields, call.name))
        return "\n".join(text for text in (verdict.reason if verdict.blocks else "", verdict.context) if text)

    async def after_round(self, calls: Sequence[ToolCall], emit: Emit) -> None:
        """Run the hooks for a finished round, whose calls are in the record already. Raises HookStop where a hook ends the
        turn."""
        ids = {call.id for call in calls}
        ended, self._ended_calls = [each for each in self._ended_calls if each["tool_use_id"] in ids], []
        events: list[Event] = []
        verdict = await self._decide("round_finished", events.append, fields={"tool_calls": ended})
        for event in events:
            await emit(event)
        if verdict.context:
            self._notes.add_note(verdict.by, verdict.context)
        stop, self._stop = self._stop or (verdict if verdict.blocks or verdict.stops else None), None
        if stop:
            self._notes.add_note(stop.by, f"The turn was stopped here. {stop.reason}".rstrip())
            raise HookStop(
                f"The hook {stop.by} stopped the turn. {stop.reason}".rstrip(), "Say how to go on, or /continue."
            )

    async def wants_more(self, answer: str, emit: Emit) -> bool:
        """Whether a hook makes the model continue after its `answer`; the hook's reason then waits as a note."""
        fields = {"stop_hook_active": self._continuations > 0, "last_assistant_message": answer}
        events: list[Event] = []
        verdict = await self._decide("turn_finished", events.append, fields=fields)
        if self._above and not verdict.blocks:
            fields["agent_transcript_path"] = ""
            verdict = await self._decide("subagent_finished", events.append, self._agent_type, fields)
        for event in events:
            await emit(event)
        wanted = verdict.blocks or verdict.context
        if not wanted or verdict.stops or self._continuations >= MAX_CONTINUATIONS:
            return False
        self._continuations += 1
        self._notes.add_note(verdict.by, verdict.reason or verdict.context or "Not done yet.")
        return True

    async def before_compaction(self, reason: Reason, instructions: str, emit: Emit) -> HookVerdict:
        """The verdict of hooks on a compaction that is due; its `context` says what the compaction must keep."""
        trigger = "manual" if reason in {"manual", "model"} else "auto"
        events: list[Event] = []
        fields = {"custom_instructions": instructions}
        verdict = await self._decide("compaction_started", events.append, trigger, fields)
        for event in events:
            await emit(event)
        return verdict

    # ── events ──

    async def _handle_event(self, event: Event, emit: Emit) -> None:
        """Run the hooks for an event, and emit the events that they cause. Before the first event, run those for the session's
        start."""
        self._moments.count_event(event)
        if isinstance(event, TurnStarted):
            self._continuations, self._stop = 0, None
            self._ended_calls.clear()
        caused, self._late_events = self._late_events, []
        if not self._begun:
            self._begun = True
            caused += await self._fire("session_started", None)
            source = "startup" if self._conversation.ledger.turn <= 1 else "resume"
            await self._decide("session_started", caused.append, source)
            if self._above:
                await self._decide("subagent_started", caused.append, self._agent_type)
        unsuccessful = isinstance(event, CompactionRecord) and event.outcome != "compacted"
        name = type(event).__struct_config__.tag
        if name in get_args(HookEvent) and not unsuccessful:
            caused += await self._fire(cast("HookEvent", name), event)
        # Below, hooks in Claude Code's form, which are asked also where their answer changes nothing any more.
        if isinstance(event, ApprovalRequested):
            fields = {"message": event.summary}
            await self._decide("approval_requested", caused.append, "permission_prompt", fields)
        if isinstance(event, QuestionAsked) and event.server:
            fields = {"message": event.text}
            await self._decide("approval_requested", caused.append, "elicitation_dialog", fields)
        if isinstance(event, CompactionRecord) and not unsuccessful:
            await self._decide("compaction_finished", caused.append)
        if isinstance(event, Failed) and event.kind in CLAUDE_ERRORS:
            fields = {"error_details": event.text, "last_assistant_message": event.text}
            await self._decide("error", caused.append, CLAUDE_ERRORS[event.kind], fields)
        for each in caused:
            await emit(each)

    async def _run_waiting(self, emit: Emit) -> None:
        """Run waiting compactions and notes until none are left; hooks see the events of these as well."""

        async def tell(event: Event) -> None:
            await emit(event)
            await self._handle_event(event, emit)

        while self._compactions_asked or self._notes:
            await self.between(tell)
        with suppress(StorageError):  # it is written later
            await self._conversation.flush()

    async def _compact_for(self, hook: Hook, emit: Emit) -> bool:
        """Run the compaction a hook asked for. True if one was made or tried, False where there was nothing to free."""
        action = cast("CompactContext", hook.action)
        record = await self._compactor.for_hook(emit, action.strategy, action.instructions)
        if record and record.outcome == "compacted":
            self._count_run(hook)
        return record is not None

    async def _deliver_notes(self) -> Sequence[Event]:
        """Write the waiting notes into the record; if the store refuses they are dropped. Returns the events to emit."""
        notes = self._notes.take_all()
        names = tuple(dict.fromkeys(note.hook for note in notes))
        try:
            await self._notes.write_notes(notes)
        except StorageError as problem:
            why = f"its note could not be written. {problem}"
            return tuple(notice for name in names for notice in self._fault_notices(name, why))
        notices = (Notice("info", f"Hook {name}: a note went to the model.") for name in names)
        return (*notices, await self._conversation.remeasure())

    # ── hooks that only act ──

    async def _fire(self, name: HookEvent, event: Event | None, moment: Moment | None = None) -> Sequence[Event]:
        """Run the hooks of an event whose answer does not count. Returns the events that they cause."""
        if all(hook.event != name for hook in self._hooks):
            return ()
        try:
            moment = moment or await self._moments.at_event(event)
        except Exception:  # the view cannot be compiled; the turn is about to fail on that, too, and reports it
            return ()
        candidates = [hook for hook in self._hooks if hook.name not in self._left_out]
        caused: list[Event] = []
        for hook in firing(candidates, name, moment, self._tallies):
            if _decides(hook):
                continue  # `_decide` asks it
            try:
                caused += await self._act(hook, event, moment)
            except CtxchatError as problem:
                caused += self._fault_notices(hook.name, str(problem))
            except Exception as problem:  # whatever is wrong with a hook, the turn goes on
                caused += self._fault_notices(hook.name, f"{type(problem).__name__}: {problem}")
        return caused

    async def _act(self, hook: Hook, event: Event | None, moment: Moment) -> Sequence[Event]:
        """Carry out a hook's action, or queue it. Returns the events that it causes."""
        match hook.action:
            case Notify(text=text):
                self._count_run(hook)
                return (Notice("info", text),)
            case Inject(text=text):
                self._count_run(hook)
                self._notes.add_note(hook.name, text)
            case CompactContext():
                own = isinstance(event, CompactionStarted | CompactionRecord) and event.reason == "hook"
                if not own and hook not in self._compactions_asked:  # a hook's compaction must not cause another one
                    self._compactions_asked.append(hook)
            case RunCommand():
                return await self._command(hook, hook.action, self._event_line(hook, event, moment))
        return ()

    async def _command(self, hook: Hook, action: RunCommand, line: bytes) -> Sequence[Event]:
        """Run a hook's command with `line` as its input; its output may become a note. Returns notices of its fault. One that
        times out is not run again, since each of its runs would hold up the turn as long."""
        if action.background:
            self._begin(hook, action, line, hook.event)
            return ()
        ran = await self._run(action, line)
        self._count_run(hook)
        if ran.exit_code is None:
            self._left_out.add(hook.name)
            what = f"did not end within {action.timeout:g} s and was ended. It is left out until the session is opened again"
            return self._fault_notices(hook.name, f"{what}; raise its timeout if it needs longer")
        if ran.exit_code in NOT_RUN or (ran.exit_code and not action.show_output):
            last = ran.output.strip().rsplit("\n", 1)[-1][:MAX_FAILURE_CHARS]
            return self._fault_notices(hook.name, f"exit code {ran.exit_code}{': ' if last else ''}{last}")
        if action.show_output and ran.output.strip():
            self._notes.add_note(hook.name, f"{_output_heading(ran.exit_code)}\n{ran.output.strip()}")
        return ()

    def _begin(self, hook: Hook, action: RunCommand, line: bytes, name: HookEvent) -> None:
        """Start a background command; text it has for the model becomes a note with the next request."""

        async def run() -> None:
            try:
                ran = await self._run(action, line)
            except Exception as problem:  # whatever is wrong with a hook, the session goes on
                self._late_events += self._fault_notices(hook.name, str(problem) or type(problem).__name__)
                return
            verdict = verdict_of(name, "", ran.exit_code or 0, ran.output, ran.errors)
            if words := verdict.context or verdict.reason or (ran.output.strip() if action.show_output else ""):
                self._notes.add_note(hook.name, words)
            if verdict.tells_person:
                self._late_events.append(Notice("info", f"Hook {hook.name}: {verdict.tells_person}"))
            if ran.exit_code is None:
                why = f"did not end within {action.timeout:g} s and was ended"
                self._late_events += self._fault_notices(hook.name, why)

        self._count_run(hook)
        task = asyncio.create_task(run(), name=f"hook {hook.name}")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _end_background(self) -> None:
        """End the background commands, after `BACKGROUND_END_S` in which each may end by itself."""
        running = list(self._background)
        if running:
            await asyncio.wait(running, timeout=BACKGROUND_END_S)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _event_line(
        self, hook: Hook, event: Event | None, moment: Moment, described: Mapping[str, object] | None = None
    ) -> bytes:
        """The JSON line that a hook of our own form reads, in ASCII: the event as in `run --json` (or, where hooks are asked, as
        it is `described`), the hook's name and the figures that its condition saw."""
        at = self._conversation.clock.now()
        body = fields(event, at) if event else {}
        head = {"type": hook.event, "session": self._conversation.journal.session, "at": at}
        more = {"hook": hook.name, "moment": msgspec.to_builtins(moment)}
        return (json.dumps(dict(described or {}) | body | head | more) + "\n").encode()

    # ── hooks whose answer counts ──

    async def _let_through(self, name: HookEvent, emit: Emit, subject: str, fields: Mapping[str, object]) -> None:
        """Ask hooks about something the person sends. Raises CtxchatError where one does not let it through."""
        events: list[Event] = []
        verdict = await self._decide(name, events.append, subject, fields)
        for event in events:
            await emit(event)
        if verdict.blocks or verdict.stops:
            raise CtxchatError(f"Not sent: a hook does not allow it. {verdict.reason}".rstrip())

    def _stopping(self, verdict: HookVerdict) -> HookVerdict:
        """Returns the verdict, and remembers one that stops everything: the turn then ends after this round."""
        self._stop = verdict if verdict.stops else self._stop
        return verdict

    def _call_fields(self, call: ToolCall) -> dict[str, object]:
        """The fields that describe a call to hooks."""
        return dict(tool_input(call.name, fields_of(call.arguments) or {}, self._workspace))

    @property
    def _agent_type(self) -> str:
        """The sub-agent's type by Claude Code's name for it."""
        agent = self._conversation.agent
        return CLAUDE_AGENTS.get(agent, agent)

    async def _decide(
        self,
        name: HookEvent,
        tell: Callable[[Event], object],
        subject: str = "",
        fields: Mapping[str, object] | None = None,
        tool: str = "",
    ) -> HookVerdict:
        """The joint verdict of the hooks whose answer counts. They are asked one after another until one blocks or stops; later
        answers are merged over earlier ones.

        `tell` takes the events that hooks cause. `subject` is what the matchers of hooks in Claude Code's form are compared with,
        `fields` describe the event to hooks, and `tool` is our name of the tool where it is about a call. Events that only a
        person's session has do not ask hooks in Claude Code's form in a sub-agent.
        """
        hooks = [
            h for h in self._hooks if h.event == name and not (self._above and name in OF_THE_PERSON and _is_claude(h))
        ]
        if not hooks:
            return HookVerdict()
        moment = self._moments.at_question(tool)
        if name in UNSTREAMED:
            for event in await self._fire(name, None, moment):
                tell(event)
        verdict, context = HookVerdict(), list[str]()
        for hook in firing([h for h in hooks if _decides(h)], name, moment, self._tallies):
            action = cast("RunCommand", hook.action)
            if action.form == "claude" and not matches(action.matcher, subject):
                continue
            try:
                answer = await self._ask(hook, action, name, moment, event_fields(name, subject, fields or {}), tool)
            except Exception as problem:  # whatever is wrong with a hook, the turn goes on
                words = str(problem) if isinstance(problem, CtxchatError) else f"{type(problem).__name__}: {problem}"
                for notice in self._fault_notices(hook.name, words):
                    tell(notice)
                continue
            for notice in _answer_notices(hook, answer):
                tell(notice)
            if answer.context and name in _NOTED:
                self._note_once(hook.name, answer.context)
            elif answer.context:
                context.append(answer.context)
            asks, arguments = answer.asks or verdict.asks, answer.arguments or verdict.arguments
            verdict = msgspec.structs.replace(answer, by=hook.name, asks=asks, arguments=arguments)
            if answer.blocks or answer.stops:
                break
        return msgspec.structs.replace(verdict, context="\n".join(context))

    def _note_once(self, hook: str, text: str) -> None:
        """Queue a note, unless a sub-agent that is given more work still has it in view from its first start."""
        if not (self._above and any(text in item.message.text for item in self._conversation.view.items)):
            self._notes.add_note(hook, text)

    async def _ask(
        self, hook: Hook, action: RunCommand, name: HookEvent, moment: Moment, fields: dict[str, object], tool: str
    ) -> HookVerdict:
        """Run a hook's command and return its answer; that of a background command is empty. Raises CtxchatError where it fails
        or times out."""
        ours = action.form != "claude"
        line = self._event_line(hook, None, moment, fields) if ours else self._claude_line(fields)
        if action.background:
            self._begin(hook, action, line, name)
            return HookVerdict()
        ran = await self._run(action, line)
        self._count_run(hook)
        if ran.exit_code is None:
            raise CtxchatError(
                f"did not end within {action.timeout:g} s and was ended; what had asked it went on without it"
            )
        verdict = verdict_of(name, tool, ran.exit_code, ran.output, ran.errors, ours=ours)
        if ran.exit_code not in {0, BLOCKING_EXIT_CODE} and answer_in(ran.output) is None:
            last = (ran.errors or ran.output).strip().rsplit("\n", 1)[-1][:MAX_FAILURE_CHARS]
            raise CtxchatError(f"exit code {ran.exit_code}{': ' if last else ''}{last}")
        if action.show_output and ran.output.strip() and verdict == HookVerdict():
            self._notes.add_note(hook.name, f"{_output_heading(ran.exit_code)}\n{ran.output.strip()}")
        return verdict

    def _claude_line(self, fields: Mapping[str, object]) -> bytes:
        """The JSON line that a hook in Claude Code's form reads. `transcript_path` is empty: no transcript file in its form
        exists."""
        own = self._conversation.journal.session
        session = {"session_id": self._above or own, "transcript_path": ""}
        if self._above:
            session |= {"agent_id": own, "agent_type": self._agent_type}
        around = {"cwd": self._workspace, "permission_mode": CLAUDE_MODES[self._conversation.mode]}
        return (json.dumps(session | around | dict(fields)) + "\n").encode()

    # ── bookkeeping ──

    def _count_run(self, hook: Hook) -> None:
        """Count a run of a hook. It is written with the next record: writing now, during a round, would discard the saved partial
        round."""
        turn = self._conversation.ledger.turn
        self._tallies[hook.name] = self._tallies.get(hook.name, Tally()).count_turn(turn)
        if hook.counts:
            self._conversation.write_later(HookFired(hook.name, turn, self._conversation.clock.now()))

    def _fault_notices(self, hook: str, why: str) -> Sequence[Notice]:
        """A notice of a hook's fault; none after the first for each hook."""
        if hook in self._reported:
            return ()
        self._reported.add(hook)
        return (Notice("warning", f"Hook {hook}: {why.removesuffix('.')}."),)


_NOTED: frozenset[HookEvent] = frozenset({"session_started", "turn_started", "subagent_started", "command_called"})
"""Events for which a hook's context becomes a note for the model."""


def _is_claude(hook: Hook) -> bool:
    return isinstance(hook.action, RunCommand) and hook.action.form == "claude"


def _decides(hook: Hook) -> bool:
    """Whether the hook's answer counts, so that `_decide` asks it and `_fire` does not."""
    return isinstance(hook.action, RunCommand) and (_is_claude(hook) or hook.event in DECIDABLE)


def _answer_notices(hook: Hook, verdict: HookVerdict) -> Sequence[Notice]:
    """What the person is shown of a hook's answer."""
    notices = [Notice("info", f"Hook {hook.name}: {verdict.tells_person}")] if verdict.tells_person else []
    if verdict.blocks or verdict.stops:
        notices.append(Notice("warning", f"Hook {hook.name} says no: {verdict.reason}".removesuffix(": ")))
    return notices


def _output_heading(exit_code: int) -> str:
    """The line above a command's output in a note."""
    return "[what its command printed]" if not exit_code else f"[what its command printed; exit code {exit_code}]"
