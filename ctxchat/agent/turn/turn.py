"""One turn: the user's message, then rounds of model call and tools until the model has nothing left to call. What the user says
meanwhile joins it between two rounds.

Whatever ends it, what was said is sealed into the record first, so the next request is valid. `replies` makes the model calls,
`tool_calls` runs the tools, `in_flight` is what is open between them. Knows no provider, no tool and no screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from ctxchat.agent.attachments import saved_image, weights
from ctxchat.agent.emitting import Emit, to_the_end
from ctxchat.agent.file_undo import Files
from ctxchat.agent.session_parts import SessionParts
from ctxchat.agent.setup import Setup
from ctxchat.agent.titles import title_of
from ctxchat.agent.turn.fallback import Fallback
from ctxchat.agent.turn.in_flight import CANCELLED, FAILED, LAST_ROUND, InFlight
from ctxchat.agent.turn.replies import Replies
from ctxchat.agent.turn.tool_round import Stuck, ToolRounds
from ctxchat.agent.turn.tool_runner import CallOutcome
from ctxchat.core.errors import CtxchatError, ModelError, StorageError
from ctxchat.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    Failed,
    FilesChanged,
    Notice,
    Steered,
    TurnFinished,
    TurnStarted,
    TurnStatus,
)
from ctxchat.core.grouping import single
from ctxchat.core.journal import Named, Record, Sealed
from ctxchat.core.ledger import NOTHING_OPEN, open_end
from ctxchat.core.messages import Attached, Message, Part, Text, ToolCall, attached
from ctxchat.core.notes import CONTINUE_REQUEST
from ctxchat.core.ports import ToolOutput
from ctxchat.core.prompt_files import FilledPrompt, called_name, called_prompt
from ctxchat.core.tool_names import SHELL

NextSteeringMessage = Callable[[], Awaitable[tuple[str, Sequence[Part]] | None]]
"""The next message a person sent while the turn runs, with what goes along; None where none waits. Asked between two rounds."""


async def no_steering_message() -> None:
    """For turns during which nobody can send a message."""


class Turn:
    """One turn, from its message to its end; an object for each."""

    def __init__(
        self,
        parts: SessionParts,
        fallback: Fallback,
        setup: Setup,
        files: Files | None,
        next_steering_message: NextSteeringMessage,
        emit: Emit,
    ) -> None:
        self._parts = parts
        self._conversation = parts.conversation
        self._tool_runner = parts.tool_runner
        self._compactor = parts.compactor
        self._hooks = parts.hooks
        self._fallback = fallback
        self._setup = setup
        self._files = files
        self._next_steering_message = next_steering_message
        self._emit = emit
        self._open = InFlight(parts.conversation, parts.tool_runner.begun)
        self._rounds = 0
        self._began = 0.0

    async def run(self, text: str, attachments: Sequence[Part]) -> None:
        """The whole turn, from the user's message; a session without a title gets one from it. Being cancelled interrupts it and
        keeps what exists.

        Raises StorageError when the message itself could not be written: then nothing has happened.
        """
        conversation = self._conversation
        await self._ready()
        await self._hooks.before_message(text, self._emit)
        message, along = await self._make_message(text, (*attachments, *await self._called_prompt(text)))
        records: list[Record] = [Sealed((single("user", message, conversation.ledger.turn + 1),))]
        if not conversation.state.title and (title := await asyncio.to_thread(title_of, text)):
            records.append(Named(title))
        await conversation.write(*records)
        await self._emit(TurnStarted(conversation.ledger.turn, message.id, text, attachments=along))
        await self._run_to_end()

    async def resume(self) -> None:
        """As `run`, without a message: the last turn goes on where it broke off, within its half reply where there is one.

        Raises CtxchatError where the last reply is whole.
        """
        last = open_end(self._conversation.ledger)
        if last is None:
            raise CtxchatError(NOTHING_OPEN, "Send a message instead.")
        await self._ready()
        half = last.kind == "reply"
        if half:
            await self._conversation.write_note(CONTINUE_REQUEST)
        await self._emit(TurnStarted(self._conversation.ledger.turn, last.first.id, "", resumed=True))
        await self._run_to_end(last.first.text if half else "")

    async def _ready(self) -> None:
        """Put settings in force that were edited meanwhile, and write what is owed to the journal."""
        await self._setup.catch_up()
        self._began = self._conversation.clock.seconds()
        await self._conversation.flush()

    async def _take_steering_messages(self) -> None:
        """Put what the user sent meanwhile into the record, message by message, in its order."""
        steered = False
        while (sent := await self._next_steering_message()) is not None:
            text, attachments = sent
            try:
                await self._hooks.before_message(text, self._emit)
                called = await self._called_prompt(text)
            except CtxchatError as problem:
                await self._emit(Notice("warning", f"{problem} It was: {text}"))
                continue
            message, along = await self._make_message(text, (*attachments, *called))
            await self._conversation.write(Sealed((single("user", message, self._conversation.ledger.turn),)))
            await self._emit(Steered(message.id, text, along))
            steered = True
        if steered:
            await self._conversation.tell_context()

    async def _called_prompt(self, text: str) -> tuple[Part, ...]:
        """The text that a message calls by `/name`: a skill or command file with the output of its commands, each approved like
        any call, or a prompt as its server writes it now. Raises CtxchatError where a command is not allowed, or the server
        fails: the message is not sent then."""
        called = called_prompt(text, self._setup.prompts)
        if called is None and ":" in (name := called_name(text)):  # a server's, which may still be on its way
            await self._setup.await_server(name.partition(":")[0])
            called = called_prompt(text, self._setup.prompts)
        if called is None:
            return ()
        await self._hooks.before_command(called, text, self._emit)
        if called.file.origin == "server":
            written = await self._setup.get_prompt(called)
            text = written.text
            images = [await saved_image(self._conversation, called.file.name, data) for data in written.images]
        else:
            text, images = called.with_outputs(await self._outputs(called)), []
        return (Text(await asyncio.to_thread(self._tool_runner.mask, text), called.file.title), *images)

    async def _outputs(self, filled: FilledPrompt) -> list[str]:
        """What the commands of a prompt file print, in their order. Raises CtxchatError for one that did not run."""
        outputs: dict[str, ToolOutput] = {}

        async def ended(outcome: CallOutcome) -> None:
            outputs[outcome.call.id] = outcome.output

        async def tell(event: Event) -> None:
            if isinstance(event, FilesChanged) and self._files:
                self._files.add_change(event)
            if isinstance(event, ApprovalRequested | ApprovalResolved | FilesChanged | Notice):
                await self._emit(event)  # their output is part of the record, the calls themselves are not

        calls = [
            ToolCall(f"{filled.file.name}-{place}", SHELL, msgspec.json.encode({"command": command}).decode())
            for place, command in enumerate(filled.commands)
        ]
        if calls:
            await self._tool_runner.run(calls, tell, ended)
        ran = set(self._tool_runner.begun)
        self._tool_runner.begun.clear()
        for call, command in zip(calls, filled.commands, strict=True):
            if call.id not in ran:
                output = outputs[call.id]
                why = "allowed." if output.status == "denied" else f"run. {output.text}"
                raise CtxchatError(
                    f"/{filled.file.name} was not sent: its command `{command}` was not {why}",
                    f"{filled.file.path} holds it.",
                )
        return [outputs[call.id].text for call in calls]

    async def _make_message(self, text: str, attachments: Sequence[Part]) -> tuple[Message, tuple[Attached, ...]]:
        """The user's message for the end of the record, and its attachments as they are shown."""
        conversation = self._conversation
        along = await asyncio.to_thread(weights, conversation.counter, attachments)
        content = (Text(text), *attachments) if attachments else text
        message = Message(seq=conversation.ledger.next_seq, role="user", content=content, at=conversation.clock.now())
        return message, attached(content, along)

    async def _run_to_end(self, before: str = "") -> None:
        """Run rounds until the turn ends, seal what is open whatever ended it, and do what follows a turn. `before` is the half
        reply that goes on."""
        self._conversation.spending.begin_turn(self._conversation.journal.session)
        self._conversation.under_way = True
        try:
            status = await self._rounds_until_done(before)
            self._conversation.under_way = False
            await self._finish(agreed=status == "done")
        except asyncio.CancelledError:
            self._conversation.under_way = False
            await to_the_end(self._stop())
            self._fallback.step_back()
            await self._emit(self._finished_event("cancelled"))
            raise
        except Exception as problem:  # a third party's transform may fail in what follows a turn, too
            await self._emit(failure(problem, partial=False))
            status = "error"
        await self._emit(self._finished_event(status))

    def _finished_event(self, status: TurnStatus) -> TurnFinished:
        seconds = round(self._conversation.clock.seconds() - self._began, 3)
        return TurnFinished(status, self._open.text, self._rounds, seconds)

    async def _rounds_until_done(self, before: str) -> TurnStatus:
        """Run rounds until a reply calls nothing, or their number is used up. Only a cancel leaves something open."""
        conversation, emit = self._conversation, self._emit
        replies = Replies(self._parts, self._open, self._fallback, emit, before)
        calls = ToolRounds(conversation, self._tool_runner, self._open, self._files, emit)
        try:
            if conversation.ledger.head is None:
                await self._tool_runner.wait_for_guests()
            conversation.offer(self._tool_runner.specs, self._tool_runner.approvals.mode)
            await conversation.tell_context()
            while True:
                conversation.offer(self._tool_runner.specs, self._tool_runner.approvals.mode)
                await replies.next(inside=self._rounds > 0)
                self._rounds += 1
                if self._open.reply is None:
                    if replies.follow_up and self._rounds < conversation.options.max_rounds:
                        await conversation.write_note(replies.follow_up)
                        continue
                    if self._rounds < conversation.options.max_rounds and await self._hooks.wants_more(
                        self._open.text, emit
                    ):
                        continue
                    return "done"
                if self._rounds >= conversation.options.max_rounds:
                    break
                reply = self._open.reply
                await calls.run(reply, replies.cut_at)
                await self._hooks.after_round(reply.calls, emit)
                await self._conversation.tell_memory_below()
                await self._take_steering_messages()
        except Exception as problem:  # of a third party's strategy or provider, too; what was said is kept
            begun = self._open.draft.has_begun
            await to_the_end(self._open.seal(FAILED))
            await emit(failure(problem, begun, conversation.model.name))
            return "error"
        await self._open.seal(LAST_ROUND)
        await emit(Notice("warning", f"Stopped after {self._rounds} rounds. /continue goes on (or say «go on»)."))
        return "max_rounds"

    async def _stop(self) -> None:
        """Seal what is open after a cancel; a cancelled call may have changed files before it ended."""
        if self._files:
            await self._files.finish_cancelled_call()
        await self._open.seal(CANCELLED)

    async def _finish(self, *, agreed: bool) -> None:
        """After a turn: tell the gauge, run compactions put off until now, go back to the chosen model, write what is owed."""
        await self._emit(self._conversation.remeasured())
        if said := self._conversation.knowledge.unknown():
            await self._emit(Notice("warning", said))
        await self._compactor.after_turn(self._emit, agreed=agreed)
        if self._fallback.step_back():
            await self._emit(await self._conversation.remeasure())
        with suppress(StorageError):  # what is still owed is asked for again at the next turn
            await self._conversation.flush()


def failure(problem: Exception, partial: bool, model: str = "") -> Failed:
    """The event that says why a turn cannot go on; `partial`: part of a reply had arrived from `model`."""
    kept = "What had arrived is kept. /continue goes on from there (or say «go on»)." if partial else ""
    match problem:
        case ModelError(kind="connection"):
            return Failed(
                problem.kind, f"{model}: {problem.text}".removeprefix(": "), _joined_hints(problem.hint, kept)
            )
        case ModelError():
            return Failed(problem.kind, problem.text, _joined_hints(problem.hint, kept))
        case StorageError():
            return Failed("storage", problem.text, problem.hint or kept)
        case Stuck():
            return Failed("stuck", problem.text, problem.hint)
        case CtxchatError():
            return Failed("failed", problem.text, problem.hint or kept)
        case _:
            return Failed("internal", f"{type(problem).__name__}: {problem}", kept or "Nothing that was said is lost.")


def _joined_hints(hint: str, kept: str) -> str:
    return kept if kept and "kept" in hint else f"{hint} {kept}".strip()
