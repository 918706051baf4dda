"""The calls of a reply: run, fitted into the view, and sealed with it as one round. Knows no model and no tool by name."""

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
"""Tokens that any result may have, however small the window."""

MAX_BATCH_SHARE = 0.6
"""Share of the room around which the results of one batch stay together, however empty the window: the next has room, too."""


TOLD, STOPPED = 3, 5
"""How often the same call may fail the same way before the model is told, and before the turn is stopped."""

TELLING = (
    "[This same call has now failed in the same way {times} times. Do something else, or say what stands in the way.]"
)


class Stuck(CtxchatError):
    """The turn was stopped because it went in circles."""


class Repeats:
    """Counts for one turn. A call that works begins them anew: what failed before it may now go well."""

    def __init__(self) -> None:
        self._failed: Counter[tuple[str, str, str]] = Counter()
        self._stuck = ""

    def remark(self, call: ToolCall, status: ToolStatus, output: str) -> str:
        """What the model is told beside the result of a call, empty for nothing. Said once for each kind of failure."""
        if status == "ok":
            self._failed.clear()
            return ""
        kind = (call.name, same_arguments(call.arguments), output)
        self._failed[kind] += 1
        if self._failed[kind] >= STOPPED:
            self._stuck = call.name
        return TELLING.format(times=TOLD) if self._failed[kind] == TOLD else ""

    def check(self) -> None:
        """Between two rounds. Raises Stuck where a call has failed too often."""
        if self._stuck:
            raise Stuck(
                f"Stopped: {self._stuck} was called {STOPPED} times with the same arguments and failed the same way.",
                "Say what to do differently, or /continue.",
            )


class ToolRounds:
    """The rounds of one turn, as far as tools are concerned."""

    def __init__(
        self, conversation: Conversation, tool_runner: ToolRunner, in_flight: InFlight, files: Files | None, emit: Emit
    ) -> None:
        self._conversation = conversation
        self._tool_runner = tool_runner
        self._open = in_flight
        self._files = files
        self._emit = emit
        self._repeats = Repeats()
        self._paid: dict[str, float] = {}  # US dollars, by the call of this round that a sub-agent works for

    async def run(self, reply: Message, cut_at: int = 0) -> None:
        """Run the calls of an open reply and seal the round; `cut_at` as in `ToolRunner.run`. Raises Stuck, after it, where the
        model runs in circles."""
        conversation, emit, results = self._conversation, self._emit, self._open.results
        places = {call.id: reply.seq + 1 + place for place, call in enumerate(reply.calls)}
        taken = 0

        async def ended(outcome: CallOutcome) -> None:
            nonlocal taken
            call = outcome.call
            cap = self._cap(len(places), len(places) - len(results), taken)
            message, spilled, trouble = await self._fitted(outcome, places[call.id], cap)
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
        """What a sub-agent costs is the session's, as it is spent: it may be stopped at any time. True where it is more now."""
        more = sub.cost_usd - self._paid.get(sub.call_id, 0.0)
        if more > 0:
            self._paid[sub.call_id] = sub.cost_usd
            self._conversation.apply_now_write_later(Spent(sub.model, more, "sub-agents"))
        return more > 0

    def _cap(self, calls: int, left: int, taken: int) -> int:
        """Tokens that the next result of a batch may have: its share, of which two rounds of so many calls have room beside what
        is always there, and half of what is free beyond the shares of those that come after it, where that is more. `taken` is
        what those before it have."""
        conversation = self._conversation
        room = conversation.budget.limit - overhead(conversation.context_usage)
        share = room // max(4, 3 * calls)
        free = min(conversation.budget.limit - conversation.context_usage.used, int(room * MAX_BATCH_SHARE)) - taken
        most = min(conversation.options.tool_result_tokens, conversation.budget.limit // 4)
        return max(MIN_RESULT_TOKENS, min(most, max(share, (free - (left - 1) * share) // 2)))

    async def _fitted(self, outcome: CallOutcome, seq: int, cap: int) -> tuple[Message, str, str]:
        """The result as the model sees it: what is over the cap goes to a file in full, head and tail stay. With it the file,
        and why there is none where the store refuses: the call has run, and what is known of it stays."""
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
