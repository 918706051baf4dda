"""One turn: the user's message, then rounds of model call and tools until the model has nothing left to call.

Whatever ends it, what was said is sealed into the record first, so the next request is valid. Knows no provider, no tool
and no screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress

import msgspec

from ctxchat.agent.calls import Draft, Tally, ask
from ctxchat.agent.compactor import Compactor
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.rescue import Rescue
from ctxchat.agent.toolbox import Outcome, Toolbox, finished
from ctxchat.agent.waiting import to_the_end
from ctxchat.core.clip import clip
from ctxchat.core.errors import CtxchatError, ModelError, StorageError
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
from ctxchat.core.journal import Named, Record, Sealed, Spent
from ctxchat.core.messages import Group, Message, Part, Text
from ctxchat.core.ports import CallPiece, ModelRequest, ReasoningPiece, ReplyEnd, TextPiece
from ctxchat.core.triggers import overhead

CANCELLED = "[cancelled by the user before it finished]"
FAILED = "[not run: the turn ended with an error]"
NOT_KEPT = "[this ran, but the turn ended with an error and its result was not kept]"
ENOUGH = "[not run: the turn had reached its last round]"

STOPPED_RESULT = 1000
"""Tokens kept of what a call had shown when it was stopped."""

LEAST_RESULT = 200
"""Tokens that any result may have, however small the window."""

Steps = AsyncGenerator[Event, None]


class Turn:
    """A turn that is under way. Made anew for each."""

    def __init__(
        self,
        conversation: Conversation,
        toolbox: Toolbox,
        compactor: Compactor,
        *,
        between: Callable[[], Steps] | None = None,
    ) -> None:
        self._talk = conversation
        self._toolbox = toolbox
        self._compactor = compactor
        self._between = between
        self._draft = Draft()
        self._reply: Message | None = None  # whole, but not sealed
        self._results: dict[str, Message] = {}
        self._text = ""
        self._rounds = 0

    async def run(self, text: str, attachments: Sequence[Part] = ()) -> Steps:
        """The events of the turn. Closing it interrupts the turn and keeps what exists.

        Raises StorageError when the message itself could not be written: then nothing has happened.
        """
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
                await self._seal(ENOUGH)
                yield Notice("warning", f"Stopped after {self._rounds} rounds. Say «go on» to continue.")
        except (asyncio.CancelledError, GeneratorExit):
            await to_the_end(self._seal(CANCELLED))
            raise
        except (
            Exception
        ) as problem:  # a strategy or a provider may come from a third party; what was said is kept anyway
            status = "error"
            partial = self._draft.begun
            await to_the_end(self._seal(FAILED))
            yield failure(problem, partial)
        yield self._talk.figures
        async with aclosing(self._compactor.after_turn(agreed=status == "done")) as events:
            async for event in events:
                yield event
        with suppress(StorageError):  # what is still owed is asked for again at the next turn
            await self._talk.settle()
        yield TurnFinished(status, self._text, self._rounds, round(clock.seconds() - start, 3))

    async def _open(self, text: str, attachments: Sequence[Part]) -> TurnStarted:
        """Write the user's message down; a session without a title gets one from it."""
        talk = self._talk
        await talk.settle()
        content = (Text(text), *attachments) if attachments else text
        message = Message(seq=talk.ledger.next_seq, role="user", content=content, at=talk.clock.now())
        records: list[Record] = [Sealed((single("user", message, talk.ledger.turn + 1),))]
        if not talk.state.title and (title := title_of(text)):
            records.append(Named(title))
        await talk.write(*records)
        return TurnStarted(talk.ledger.turn, message.id, text)

    async def _rounds_until_done(self) -> Steps:
        """Rounds until a reply calls nothing, or there were enough of them (then `_reply` is still open)."""
        while True:
            async with aclosing(self._answered()) as events:
                async for event in events:
                    yield event
            if self._reply is None or self._rounds >= self._talk.options.max_rounds:
                return
            async with aclosing(self._worked(self._reply)) as events:
                async for event in events:
                    yield event

    async def _answered(self) -> Steps:
        """One model call, made to fit and made again after an overflow; its reply sealed, or open with calls to run."""
        async with aclosing(self._ready()) as events:
            async for event in events:
                yield event
        rescue = self._compactor.rescue()
        while self._draft.end is None:
            self._draft = Draft()
            try:
                async with aclosing(self._listen(rescue.output)) as events:
                    async for event in events:
                        yield event
            except ModelError as problem:
                async with aclosing(self._mended(problem, rescue)) as events:
                    async for event in events:
                        yield event
        self._rounds += 1
        async with aclosing(self._heard()) as events:
            async for event in events:
                yield event

    async def _mended(self, problem: ModelError, rescue: Rescue) -> Steps:
        """What makes a refused request fit. Raises the problem where that is not what is wrong, or nothing helps."""
        mending = rescue.mend(problem)
        if mending is None:
            raise problem
        self._draft = Draft()  # what an overflowing call said is no answer
        for step in (mending, self._between()) if self._between else (mending,):
            async with aclosing(step) as events:
                async for event in events:
                    yield event

    async def _ready(self) -> Steps:
        """Room is made, and what hooks have to add is in the view: what they did before, and what they say to a pass."""
        room = self._compactor.make_room(self._rounds)
        for step in (self._between(), room, self._between()) if self._between else (room,):
            async with aclosing(step) as events:
                async for event in events:
                    yield event

    async def _listen(self, output: int) -> Steps:
        """The stream of one call as events; the gauge grows with it. Raises ModelError."""
        talk = self._talk
        tally, shown = Tally(talk.meter.text), talk.clock.seconds()
        async with aclosing(
            ask(talk.model, ModelRequest(talk.view, output), talk.clock, talk.options.retries)
        ) as pieces:
            async for piece in pieces:
                if isinstance(piece, Retry):
                    yield piece
                    continue
                self._draft.take(piece)
                match piece:
                    case TextPiece(text=text):
                        yield TextDelta(text)
                        tally.add(text)
                    case ReasoningPiece(text=text):
                        yield ReasoningDelta(text)
                        tally.add(text if talk.model.keeps_reasoning else "")
                    case CallPiece(arguments=arguments):
                        tally.add(arguments)
                    case ReplyEnd():
                        pass
                if talk.clock.seconds() - shown >= talk.options.stream_figures_every:
                    shown = talk.clock.seconds()
                    await talk.keep(self._draft.message(talk.ledger.next_seq, talk.clock.now(), interrupted=True))
                    yield talk.streaming(tally.tokens)
        if self._draft.end is None or not (self._draft.begun or self._draft.end.calls):
            usage = self._draft.end.usage if self._draft.end else None
            if usage and usage.cost_usd:  # no reply, but paid for
                talk.note(Spent(talk.model.name, usage.cost_usd))
            raise _without_end(self._draft)

    async def _heard(self) -> Steps:
        """Take in a whole reply: seal it, or keep it open for its calls; anchor the gauge on what the server counted."""
        talk, end = self._talk, self._draft.end
        assert end is not None
        message = self._draft.message(talk.ledger.next_seq, talk.clock.now())
        self._reply, self._results, self._draft = message, {}, Draft()
        self._toolbox.begun.clear()
        self._text = message.text or self._text
        usage = end.usage if end.usage and end.usage.prompt > 0 else self._own_count(message, end.usage)
        cut = talk.cut(usage)
        measured = talk.counted(usage, message, turn_end=not message.calls)
        if message.calls:
            talk.note(measured)
            await talk.keep(message)
            figures = talk.streaming(talk.weight(message))
        else:
            await talk.write(Sealed((single("reply", message, talk.ledger.turn),)), measured)
            self._reply = None
            figures = await talk.again()
        yield usage
        for text in _remarks(end, message, cut):
            yield Notice("warning", text)
        yield figures
        await talk.unlearn_window(usage)

    def _own_count(self, message: Message, usage: Usage | None) -> Usage:
        """What a server that counted nothing, or nonsense, would have counted."""
        talk = self._talk
        cost = usage.cost_usd if usage else 0.0
        return Usage(talk.prompt_tokens, talk.meter.message(message), cost_usd=cost, estimated=True)

    async def _worked(self, reply: Message) -> Steps:
        """Run the calls of an open reply and seal the round."""
        talk = self._talk
        places = {call.id: reply.seq + 1 + place for place, call in enumerate(reply.calls)}
        async with aclosing(self._toolbox.run(reply.calls)) as news:
            async for item in news:
                if not isinstance(item, Outcome):
                    yield item
                    continue
                message, spilled, trouble = await self._fitted(item, places[item.call.id], len(places))
                self._results[item.call.id] = message
                if trouble:
                    yield Notice("warning", f"The whole result of {item.call.name} could not be saved. {trouble}")
                await talk.keep(reply, tuple(self._results.values()))
                yield finished(item, message.text, talk.meter.message(message), spilled)
        await talk.write(Sealed((seal_round(reply, list(self._results.values()), talk.ledger.turn),)))
        self._reply = None

    async def _fitted(self, outcome: Outcome, seq: int, calls: int) -> tuple[Message, str, str]:
        """The result as the model sees it: what is over the cap goes to a file in full, head and tail stay. With it the file,
        and why there is none where the store refuses: the call has run, and what is known of it stays.

        The cap leaves room for two rounds of so many calls beside what is always there.
        """
        talk = self._talk
        text, spilled, trouble = outcome.output.text, "", ""
        room = talk.budget.limit - overhead(talk.figures)
        cap = max(LEAST_RESULT, min(talk.options.tool_result_tokens, room // max(4, 3 * calls)))
        tokens = await asyncio.to_thread(talk.meter.text, text)
        if tokens > cap:
            spilled = f"tool-results/m{seq}.txt"
            rest = f"full text: {spilled}, {tokens:,} tokens"
            try:
                await talk.journal.spill(spilled, text)
            except StorageError as problem:
                spilled, rest, trouble = "", f"the rest of {tokens:,} tokens could not be saved", str(problem)
            mark = f"\n[… {{tokens}} tokens left out; {rest} …]\n"
            text = await asyncio.to_thread(clip, text, cap, talk.meter.text, mark)
        call = outcome.call
        return Message(seq, "tool", text, call_id=call.id, name=call.name, at=talk.clock.now()), spilled, trouble

    async def _seal(self, closing: str) -> None:
        """Seal whatever is open. Never raises: what the store refuses is owed to it."""
        talk = self._talk
        group = self._open_group(closing)
        self._reply, self._draft = None, Draft()
        if group is not None:
            await talk.write_or_owe(Sealed((group,)))
        with suppress(Exception):  # the next request compiles anew, and then says what is wrong
            await talk.again()

    def _open_group(self, closing: str) -> Group | None:
        """What was said and is not in the record: a half reply as interrupted, a round with `closing` for calls without a
        result."""
        talk, reply = self._talk, self._reply
        if reply is not None:
            if reply.seq < talk.ledger.next_seq:
                return None  # the cancel came while it was being sealed
            if not reply.calls:
                return single("reply", reply, talk.ledger.turn)
            free = reply.seq + len(reply.calls) + 1
            results = dict(self._results)
            for place, call in enumerate(reply.calls, reply.seq + 1):
                if call.id in self._toolbox.begun and call.id not in results:
                    shown = self._cut_off(self._toolbox.begun[call.id], NOT_KEPT if closing == FAILED else closing)
                    results[call.id] = Message(place, "tool", shown, call_id=call.id, name=call.name, at=reply.at)
            return close_round(reply, list(results.values()), talk.ledger.turn, free, closing)
        if not self._draft.begun:
            return None
        message = self._draft.message(talk.ledger.next_seq, talk.clock.now(), interrupted=True)
        self._text = message.text
        return single("reply", msgspec.structs.replace(message, calls=()), talk.ledger.turn)

    def _cut_off(self, shown: str, closing: str) -> str:
        """What a call had shown when it was stopped, and that it was."""
        if not shown.strip():
            return closing
        text = clip(shown.rstrip(), STOPPED_RESULT, self._talk.meter.text)
        return f"{text}\n{closing}"


def failure(problem: Exception, partial: bool) -> Failed:
    """How a turn that cannot go on says so; `partial` where part of a reply had arrived."""
    kept = "What had arrived is kept. Say «go on» to continue." if partial else ""
    match problem:
        case ModelError():
            return Failed(problem.kind, problem.text, problem.hint or kept)
        case StorageError():
            return Failed("storage", problem.text, problem.hint or kept)
        case CtxchatError():
            return Failed("failed", problem.text, problem.hint or kept)
        case _:
            return Failed("internal", f"{type(problem).__name__}: {problem}", kept or "Nothing that was said is lost.")


def _without_end(draft: Draft) -> ModelError:
    if draft.begun:
        return ModelError("The reply broke off before its end.", kind="interrupted")
    return ModelError(
        "The model sent an empty reply.", "Its server may have cut the prompt: check the window.", kind="empty"
    )


def _remarks(end: ReplyEnd, message: Message, cut: int) -> list[str]:
    """What a person should know of a reply that came, in sentences."""
    said: list[str] = []
    if cut:
        text = f"The server cut ~{cut:,} tokens from the prompt without a word: its window is smaller than believed."
        said.append(f"{text} Set the window it really has (--window, or `window` in config.toml).")
    if end.finish == "length":
        said.append("The reply was cut at the output limit. Raise context.output_reserved for longer ones.")
    elif end.finish == "content_filter":
        said.append("The provider's content filter ended the reply.")
    elif not message.calls and not message.text.strip():
        said.append("The model thought, and then said nothing.")
    return said


def title_of(text: str) -> str:
    """A title from the first words of a conversation, on one line, at most 60 characters."""
    words = " ".join(text.split())
    return words if len(words) <= 60 else words[:59].rsplit(" ", 1)[0] + "…"
