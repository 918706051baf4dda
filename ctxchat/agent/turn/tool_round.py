"""Runs the tool calls of a reply, shortens their results to fit the view, and seals reply and results as one round.

Knows no model and no tool by name.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from ctxchat.agent.attachments import saved_image
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.emitting import Emit
from ctxchat.agent.file_undo import Files
from ctxchat.agent.turn.in_flight import InFlight
from ctxchat.agent.turn.tool_runner import CallOutcome, ToolRunner, finished
from ctxchat.core.context_usage import overhead
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.events import Delegated, Event, FilesChanged, Notice, ToolStatus
from ctxchat.core.grouping import seal_round
from ctxchat.core.journal import Sealed, Spent
from ctxchat.core.messages import Message, Text, ToolCall
from ctxchat.core.tooluse import same_arguments

MIN_RESULT_TOKENS = 200
"""Least tokens that a result may have, however small the window."""

MAX_BATCH_SHARE = 0.6
"""Share of the room for messages that the results of one batch may take together, so that the next batch has room too."""


TOLD, STOPPED = 3, 5
"""How often the same call may fail the same way before the model is told, and before the turn is stopped."""

TELLING = (
    "[This same call has now failed in the same way {times} times. Do something else, or say what stands in the way.]"
)


class Stuck(CtxchatError):
    """The turn was stopped because the model repeated the same failing call."""


class Repeats:
    """Counts equal failures of the calls of one turn. A successful call resets the counts: what failed before may now work."""

    def __init__(self) -> None:
        self._failed: Counter[tuple[str, str, str]] = Counter()
        self._stuck = ""

    def remark(self, call: ToolCall, status: ToolStatus, output: str) -> str:
        """A warning to add to the result of a call, empty for none. Given once for each kind of failure."""
        if status == "ok":
            self._failed.clear()
            return ""
        kind = (call.name, same_arguments(call.arguments), output)
        self._failed[kind] += 1
        if self._failed[kind] >= STOPPED:
            self._stuck = call.name
        return TELLING.format(times=TOLD) if self._failed[kind] == TOLD else ""

    def check(self) -> None:
        """Raises Stuck where a call has failed too often; to be called between two rounds."""
        if self._stuck:
            raise Stuck(
                f"Stopped: {self._stuck} was called {STOPPED} times with the same arguments and failed the same way.",
                "Say what to do differently, or /continue.",
            )


class ToolRounds:
    """Runs the tool calls of one turn, round by round. `in_flight` holds the open reply and the results so far."""

    def __init__(
        self, conversation: Conversation, tool_runner: ToolRunner, in_flight: InFlight, files: Files | None, emit: Emit
    ) -> None:
        self._conversation = conversation
        self._tool_runner = tool_runner
        self._open = in_flight
        self._files = files
        self._emit = emit
        self._repeats = Repeats()
        self._paid: dict[
            str, float
        ] = {}  # US dollars that sub-agents have cost, by the id of the call of this round that they work for

    async def run(self, reply: Message, cut_at: int = 0) -> None:
        """Run the calls of an open reply and seal the round; `cut_at` as in `ToolRunner.run`. Raises Stuck, after sealing, where
        the model repeats a failing call."""
        conversation, emit, results = self._conversation, self._emit, self._open.results
        numbers = {call.id: seq for seq, call in enumerate(reply.calls, reply.seq + 1)}
        taken = 0

        async def ended(outcome: CallOutcome) -> None:
            nonlocal taken
            call = outcome.call
            cap = self._cap(len(numbers), len(numbers) - len(results), taken)
            message, spilled, trouble = await self._fitted(outcome, numbers[call.id], cap)
            results[call.id] = message
            taken += conversation.counter.message(message)
            if trouble:
                await emit(Notice("warning", f"The whole result of {call.name} could not be saved. {trouble}"))
            await conversation.keep(reply, tuple(results.values()))
            weight = conversation.knowledge.calibration.part(conversation.counter.mix(message))
            await emit(finished(outcome, message.text, max(0, weight), spilled))

        async def tell(event: Event) -> None:
            if isinstance(event, Delegated) and self._pay(event):
                await conversation.keep(reply, tuple(results.values()))
            if isinstance(event, FilesChanged) and self._files:
                self._files.add_change(event)
                if await conversation.keep(reply, tuple(results.values())):
                    self._files.mark_written()
            await emit(event)

        self._tool_runner.begun.clear()
        self._paid.clear()  # a server may use an id again
        await self._tool_runner.run(reply.calls, tell, ended, cut_at)
        await conversation.write(Sealed((seal_round(reply, list(results.values()), conversation.ledger.turn),)))
        self._open.reply = None
        self._tool_runner.begun.clear()  # a server may use an id again
        self._repeats.check()

    def _pay(self, sub: Delegated) -> bool:
        """Book what a sub-agent has cost since the last time, at once, as it may be stopped at any time. True where that is more
        than nothing."""
        more = sub.cost_usd - self._paid.get(sub.call_id, 0.0)
        if more > 0:
            self._paid[sub.call_id] = sub.cost_usd
            self._conversation.apply_now_write_later(Spent(sub.model, more, "sub-agents"))
        return more > 0

    def _cap(self, calls: int, left: int, taken: int) -> int:
        """Most tokens that the next result of a batch may have: the larger of an equal share, small enough for three rounds of
        `calls` calls, and half of what is free after the shares of the results still to come. `left` counts the results that
        are missing, this one included; `taken` is the tokens of those before it."""
        conversation = self._conversation
        room = conversation.budget.limit - overhead(conversation.context_usage)
        share = room // max(4, 3 * calls)
        free = min(conversation.budget.limit - conversation.context_usage.used, int(room * MAX_BATCH_SHARE)) - taken
        most = min(conversation.options.tool_result_tokens, conversation.budget.limit // 4)
        return max(MIN_RESULT_TOKENS, min(most, max(share, (free - (left - 1) * share) // 2)))

    async def _fitted(self, outcome: CallOutcome, seq: int, cap: int) -> tuple[Message, str, str]:
        """The result as a message for the model, the file with its whole text, and why that could not be saved; the latter two
        empty where it is not over `cap` tokens. Only head and tail of a longer one stay in the message. A store that refuses
        raises nothing, for the call has run and its result must stay."""
        conversation = self._conversation
        text, spilled, trouble = outcome.output.text, "", ""
        remark = self._repeats.remark(outcome.call, outcome.output.status, text)
        tokens = await asyncio.to_thread(conversation.counter.count_text, text)
        if tokens > cap:
            spilled = f"tool-results/m{seq}.txt"
            try:
                text = await conversation.put_away(spilled, text, tokens, cap)
            except StorageError as problem:
                spilled, trouble = "", str(problem)
                text = await conversation.clipped(text, cap, f"the rest of {tokens:,} tokens could not be saved")
        text = "\n".join(part for part in (text, remark) if part)
        call, failed = outcome.call, outcome.output.status != "ok"
        try:
            images = [await saved_image(conversation, call.name, data) for data in outcome.output.images]
        except StorageError as problem:
            images, trouble = [Text("[its images could not be saved]")], str(problem)
        content = (*((Text(text),) if text else ()), *images) if images else text
        message = Message(
            seq, "tool", content, call_id=call.id, name=call.name, at=conversation.clock.now(), failed=failed
        )
        return message, spilled, trouble
