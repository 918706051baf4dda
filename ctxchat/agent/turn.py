"""One turn: the user's message, then rounds of model call and tools until the model has nothing left to call.

Whatever ends it, what was said is sealed into the record first, so the next request is valid. Knows no provider, no tool
and no screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import msgspec

from ctxchat.agent.calls import Draft, ask
from ctxchat.agent.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.toolbox import Outcome, Toolbox, finished
from ctxchat.core.clip import clip
from ctxchat.core.errors import ModelError
from ctxchat.core.events import (
    Event,
    Failed,
    Notice,
    ReasoningDelta,
    Retry,
    TextDelta,
    TurnFinished,
    TurnStarted,
    TurnStatus,
    Usage,
)
from ctxchat.core.grouping import close_round, seal_round, single
from ctxchat.core.journal import Measured, Named, Record, Sealed
from ctxchat.core.messages import Message, Part, Text
from ctxchat.core.ports import CallPiece, ModelRequest, ReasoningPiece, ReplyEnd, TextPiece

CANCELLED = "[cancelled by the user before it finished]"
FAILED = "[not run: the turn ended with an error]"


class Turn:
    """A turn that is under way. Made anew for each."""

    def __init__(
        self,
        conversation: Conversation,
        toolbox: Toolbox,
        compactor: Compactor,
        *,
        settle: Callable[[], AsyncGenerator[Event, None]] | None = None,
    ) -> None:
        self._talk = conversation
        self._toolbox = toolbox
        self._compactor = compactor
        self._settle = settle
        self._draft = Draft()
        self._reply: Message | None = None
        self._results: dict[str, Message] = {}
        self._text = ""
        self._rounds = 0

    async def run(self, text: str, attachments: Sequence[Part] = ()) -> AsyncGenerator[Event, None]:
        """The events of the turn. Closing it interrupts the turn and keeps what exists."""
        clock = self._talk.clock
        start = clock.seconds()
        yield await self._open(text, attachments)
        status: TurnStatus = "done"
        try:
            async with aclosing(self._rounds_until_done()) as events:
                async for event in events:
                    yield event
            if self._reply is not None:
                status = "max_rounds"
                await self._seal(FAILED)
                yield Notice("warning", f"Stopped after {self._rounds} rounds. Say «go on» to continue.")
        except ModelError as problem:
            partial = self._draft.begun
            await self._seal(FAILED)
            status = "error"
            hint = problem.hint or ("What had arrived is kept. Say «go on» to continue." if partial else "")
            yield Failed(problem.kind, problem.text, hint)
        except (asyncio.CancelledError, GeneratorExit):
            await asyncio.shield(self._seal(CANCELLED))
            raise
        yield await self._talk.refresh()
        yield TurnFinished(status, self._text, self._rounds, round(clock.seconds() - start, 3))

    async def _open(self, text: str, attachments: Sequence[Part]) -> TurnStarted:
        """Write the user's message down; a session without a title gets one from it."""
        talk = self._talk
        content = (Text(text), *attachments) if attachments else text
        message = Message(seq=talk.ledger.next_seq, role="user", content=content, at=talk.clock.now())
        records: list[Record] = [Sealed((single("user", message, talk.ledger.turn + 1),))]
        if not talk.state.title:
            records.append(Named(title_of(text)))
        await talk.write(*records)
        return TurnStarted(talk.ledger.turn, message.id, text)

    async def _rounds_until_done(self) -> AsyncGenerator[Event, None]:
        """Rounds until a reply calls nothing, or there were enough of them (then `_reply` is still open)."""
        while self._rounds < self._talk.options.max_rounds:
            async with aclosing(self._answered()) as events:
                async for event in events:
                    yield event
            if self._reply is None:
                return
            if self._rounds >= self._talk.options.max_rounds:
                return
            async with aclosing(self._worked(self._reply)) as events:
                async for event in events:
                    yield event

    async def _answered(self) -> AsyncGenerator[Event, None]:
        """One model call, made to fit and made again after an overflow; its reply sealed, or open with calls to run."""
        rescue = self._compactor.rescue()
        while True:
            async with aclosing(self._ready()) as events:
                async for event in events:
                    yield event
            self._draft = Draft()
            try:
                async with aclosing(self._listen()) as events:
                    async for event in events:
                        yield event
            except ModelError as problem:
                if not rescue.recognises(problem):
                    raise
                self._draft = Draft()  # what an overflowing call said is no answer
                async with aclosing(rescue.shrink(problem)) as events:
                    async for event in events:
                        yield event
                continue
            break
        self._rounds += 1
        async with aclosing(self._heard()) as events:
            async for event in events:
                yield event

    async def _ready(self) -> AsyncGenerator[Event, None]:
        """Room is made, and what hooks have to add is in the view: what they did before, and what they say to a pass."""
        room = self._compactor.make_room(self._rounds)
        for step in (self._settle(), room, self._settle()) if self._settle else (room,):
            async with aclosing(step) as events:
                async for event in events:
                    yield event

    async def _listen(self) -> AsyncGenerator[Event, None]:
        """The stream of one call as events; the gauge grows with it."""
        talk = self._talk
        request = ModelRequest(talk.view, talk.budget.reserved)
        streamed, shown = 0, talk.clock.seconds()
        async with aclosing(ask(talk.model, request, talk.clock, talk.options.retries)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Retry):
                    yield piece
                    continue
                self._draft.take(piece)
                match piece:
                    case TextPiece(text=text):
                        yield TextDelta(text)
                        streamed += talk.meter.text(text)
                    case ReasoningPiece(text=text):
                        yield ReasoningDelta(text)
                        streamed += talk.meter.text(text) if talk.model.keeps_reasoning else 0
                    case CallPiece(arguments=arguments):
                        streamed += talk.meter.text(arguments)
                    case ReplyEnd():
                        pass
                if talk.clock.seconds() - shown >= talk.options.stream_figures_every:
                    shown = talk.clock.seconds()
                    await talk.keep(self._draft.message(talk.ledger.next_seq, talk.clock.now(), interrupted=True))
                    yield talk.measured(streamed=streamed)

    async def _heard(self) -> AsyncGenerator[Event, None]:
        """Take in a whole reply: seal it, or keep it open for its calls; anchor the gauge on what the server counted."""
        talk, end = self._talk, self._draft.end
        if end is None or not (self._draft.begun or end.calls):
            raise ModelError(
                "The model sent an empty reply.", "Its server may have cut the prompt: check the window.", kind="empty"
            )
        message = self._draft.message(talk.ledger.next_seq, talk.clock.now())
        self._text = message.text or self._text
        usage = end.usage or self._own_count(message)
        cut = talk.cut(usage)
        measured = talk.counted(usage, message, turn_end=not message.calls)
        self._draft = Draft()
        unsealed = talk.meter.message(message) if message.calls else 0
        if message.calls:
            self._reply, self._results = message, {}
            await talk.write(measured)
            await talk.keep(message)
        else:
            await self._seal_reply(message, measured)
        yield usage
        if cut:
            text = (
                f"The server cut ~{cut:,} tokens from the prompt without a word: its window is smaller than believed."
            )
            yield Notice("warning", f"{text} Set the window it really has (--window, or `window` in config.toml).")
        if end.finish == "length":
            yield Notice(
                "warning", "The reply was cut at the output limit. Raise context.output_reserved for longer ones."
            )
        if end.finish == "content_filter":
            yield Notice("warning", "The provider's content filter ended the reply.")
        yield talk.measured(streamed=unsealed)

    def _own_count(self, message: Message) -> Usage:
        view = self._talk.view
        prompt = self._talk.calibration.apply(view.raw)
        return Usage(prompt, self._talk.meter.message(message), estimated=True)

    async def _seal_reply(self, message: Message, measured: Measured | None = None) -> None:
        group = single("reply", message, self._talk.ledger.turn)
        await self._talk.write(Sealed((group,)), *([measured] if measured else []))
        await self._talk.refresh()

    async def _worked(self, reply: Message) -> AsyncGenerator[Event, None]:
        """Run the calls of an open reply and seal the round."""
        places = {call.id: reply.seq + 1 + place for place, call in enumerate(reply.calls)}
        async with aclosing(self._toolbox.run(reply.calls)) as news:
            async for item in news:
                if not isinstance(item, Outcome):
                    yield item
                    continue
                message, spilled = await self._fitted(item, places[item.call.id])
                self._results[item.call.id] = message
                await self._talk.keep(reply, tuple(self._results.values()))
                yield finished(item, message.text, self._talk.meter.message(message), spilled)
        group = seal_round(reply, list(self._results.values()), self._talk.ledger.turn)
        await self._talk.add(group)
        self._reply = None
        yield await self._talk.refresh()

    async def _fitted(self, outcome: Outcome, seq: int) -> tuple[Message, str]:
        """The result as the model sees it: what is over the cap goes to a file in full, head and tail stay."""
        talk = self._talk
        text, spilled = outcome.output.text, ""
        cap = max(200, min(talk.options.tool_result_tokens, talk.budget.limit // 4))
        tokens = await asyncio.to_thread(talk.meter.text, text)
        if tokens > cap:
            spilled = f"tool-results/m{seq}.txt"
            await talk.journal.spill(spilled, text)
            mark = f"\n[… {{tokens}} tokens left out; full text: {spilled}, {tokens:,} tokens …]\n"
            text = await asyncio.to_thread(clip, text, cap, talk.meter.text, mark)
        call = outcome.call
        return Message(seq, "tool", text, call_id=call.id, name=call.name, at=talk.clock.now()), spilled

    async def _seal(self, closing: str) -> None:
        """Seal whatever is open: a half reply as interrupted, a round with `closing` for calls without a result."""
        talk = self._talk
        if self._reply is not None:
            reply, self._reply = self._reply, None
            last = max((m.seq for m in self._results.values()), default=reply.seq)
            free = max(last, reply.seq + len(reply.calls)) + 1
            group = close_round(reply, list(self._results.values()), talk.ledger.turn, free, closing)
            await talk.add(group)
        elif self._draft.begun:
            message = self._draft.message(talk.ledger.next_seq, talk.clock.now(), interrupted=True)
            self._draft, self._text = Draft(), message.text
            await self._seal_reply(msgspec.structs.replace(message, calls=()))


def title_of(text: str) -> str:
    """A title from the first words of a conversation, on one line, at most 60 characters."""
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59].rsplit(" ", 1)[0] + "…"
