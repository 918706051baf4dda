"""Makes the model calls of a turn. Before each, room is made in the window; a request that the server refuses is changed so that
it can be sent again; where the model fails for good, a fallback model is asked. Knows no provider and no tool.

The order: `next` makes room (`_ready`), streams a call (`_stream_call`), lets `_remedy` decide what helps against a failure, and
takes in the complete reply (`_accept_reply`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from ctxchat.agent.attachments import images_for
from ctxchat.agent.compaction.overflow_recovery import OverflowRecovery
from ctxchat.agent.emitting import Emit
from ctxchat.agent.session_parts import SessionParts
from ctxchat.agent.turn.fallback import Fallback
from ctxchat.agent.turn.in_flight import InFlight
from ctxchat.agent.turn.model_calls import ArrivingReply, TokenTally, stream_reply
from ctxchat.agent.turn.refused_tools import RefusedTools
from ctxchat.core.cache_state import NOTHING_KNOWN
from ctxchat.core.changes import media_change
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Notice, ReasoningDelta, Retry, TextDelta, Usage
from ctxchat.core.grouping import single
from ctxchat.core.journal import Changed, Sealed, Spent
from ctxchat.core.messages import Message
from ctxchat.core.notes import CONTINUE_REQUEST, MISSING_CALL
from ctxchat.core.ports import CallPiece, ModelPiece, ReplyEnd
from ctxchat.core.quantities import server_cut
from ctxchat.core.refused import blamed_tool, blames_media, blames_tools

MAX_LEFT_OUT = 5
"""The most times in a turn that something which a server refuses is left out of the request."""


class Replies:
    """Makes the model calls of one turn. Replies arrive in `in_flight`; `before` is the text of a half reply that is
    continued."""

    def __init__(
        self,
        parts: SessionParts,
        in_flight: InFlight,
        fallback: Fallback,
        emit: Emit,
        before: str,
    ) -> None:
        self._conversation = parts.conversation
        self._compactor = parts.compactor
        self._hooks = parts.hooks
        self._open = in_flight
        self._fallback = fallback
        self._emit = emit
        self._before = before
        self._refused = 0  # how often something was left out of a refused request
        self._first = ""  # the first part of a reply that was cut off and is continued
        self.cut_at = 0
        """The output limit in tokens at which the last reply was cut off; 0 for a complete one."""
        self._went_on = False  # a reply of this turn was continued already
        self.goes_on = False
        """Whether the last reply was cut off in its text: the next one continues it, once in a turn."""
        self.follow_up = ""
        """A note for the model where its last reply was not the end: to go on, or to make the call it announced. Empty for
        none."""
        self._missed = False  # in this turn, the model was told of an announced call that did not come

    async def next(self, *, inside: bool) -> None:
        """Get one reply. It is added to the record, or stays in flight where it has calls to run. `inside`: it is not the first
        of the turn. Raises ModelError."""
        await self._ready(inside=inside)
        recovery = self._compactor.recovery()
        while self._open.draft.end is None:
            self._open.draft, asked = ArrivingReply(), self._conversation.model
            try:
                await self._stream_call(recovery.output)
            except ModelError as problem:
                if self._first and problem.kind == "empty":  # the reply to be continued had been complete after all
                    self._open.draft, self.goes_on, self._before, self._first = ArrivingReply(), False, "", ""
                    self.follow_up = ""
                    return
                await self._remedy(problem, recovery, inside=inside)
                if self._conversation.model is not asked:
                    recovery = self._compactor.recovery()
        self._fallback.answered()
        await self._accept_reply()
        self._before = self._first = self._open.text if self.goes_on else ""

    async def _ready(self, *, inside: bool) -> None:
        """Make room for the request, and write the notes of hooks into the record: those that waited, and those about a
        compaction."""
        conversation = self._conversation
        await self._hooks.between(self._emit)
        await self._compactor.make_room(self._emit, inside=inside)
        await self._hooks.between(self._emit)
        if await conversation.tell_budget():
            await self._emit(await conversation.remeasure())

    async def _remedy(self, problem: ModelError, recovery: OverflowRecovery, *, inside: bool) -> None:
        """Do what lets the request be made again: leave out reasoning, shorten it, leave out what was refused, or change to
        another model. Raises the problem where none of these helps."""
        conversation = self._conversation
        if problem.kind == "prefix_changed" and await conversation.leave_out_thoughts():
            self._open.draft = ArrivingReply()
            text = "The model's own reasoning so far no longer fits what stands before it, so it is not sent back any more."
            await self._emit(Notice("warning", f"{text} Nothing that was said is lost."))
        elif remedy := recovery.remedy(problem):
            self._open.draft = ArrivingReply()  # what came before an overflow is no answer
            await remedy(self._emit)
            await self._hooks.between(self._emit)
        elif not self._open.draft.has_begun and (
            notice := await self._left_out(problem) or await self._fallback.step_in(problem)
        ):
            self._open.draft = ArrivingReply()
            await self._emit(Notice("warning", notice))
            await self._ready(inside=inside)
        else:
            raise problem

    async def _left_out(self, problem: ModelError) -> str:
        """Leave out for good what the server refused of the request: a tool whose description it blames, or images and files.
        Returns a sentence about that for the person; empty where it blames none of these, or too much was left out in this turn
        already."""
        conversation = self._conversation
        if self._refused >= MAX_LEFT_OUT:
            return ""
        self._refused += 1
        if notice := await self._without_refused_tools(problem):
            return notice
        if blames_media(problem) and (media := media_change(conversation.ledger, conversation.clock.now())):
            change, names = media
            await conversation.write(Changed(change, conversation.as_counted))
            left_out = ", ".join(names)
            return f"The server refused {left_out}, left out from now on (undo brings it back): {problem.text}"
        return ""

    async def _without_refused_tools(self, problem: ModelError) -> str:
        """`_left_out` for tools. Where the refusal names none, they are found by sending requests with some of the tools. A tool
        that was found so is first sent again with its arguments described in words, and left out only where that is refused as
        well."""
        conversation = self._conversation
        tools = conversation.view.tools
        if tool := blamed_tool(problem, [spec.name for spec in tools]):
            await conversation.refuse_tools([tool], reduced=False)
            return f"The server refused the tool {tool}, which is left out from now on: {problem.text}"
        if not tools or not blames_tools(problem):
            return ""
        looking = "The server refused how a tool is described, and does not say which: it is looked for."
        await self._emit(Notice("info", f"{looking} {problem.text}"))
        refused = await RefusedTools(conversation, self._fallback.retries).find(tools)
        parts: list[str] = []
        in_words = conversation.state.reduced_tools.get(conversation.model.name, ())
        for reduced in (True, False):
            if names := [name for name in refused if (name not in in_words) == reduced]:
                await conversation.refuse_tools(names, reduced=reduced)
                left = "in words from now on" if reduced else "left out from now on: its server takes none of it"
                parts.append(f"{', '.join(names)}: {left}")
        return f"The server refused how arguments are described. {'; '.join(parts)}." if parts else ""

    async def _stream_call(self, output: int) -> None:
        """Make one call and emit what streams in; the gauge grows with it. Raises ModelError."""
        conversation, draft, continuation = self._conversation, self._open.draft, Continuation(self._before)
        tally, shown = TokenTally(conversation.counter.text_mix), conversation.clock.seconds()
        request = await conversation.request(output, await images_for(conversation))
        asked = stream_reply(
            conversation.model,
            request,
            conversation.clock,
            self._fallback.retries,
            self._fallback.in_vain,
            budget=conversation.spending,
            on_wait=lambda text: self._emit(Notice("info", text)),
        )
        async with aclosing(asked) as pieces:
            async for received in pieces:
                if isinstance(received, Retry):
                    await self._emit(received)
                    continue
                for piece in continuation.fresh(received):
                    draft.add_piece(piece)
                    match piece:
                        case TextDelta(text=text):
                            await self._emit(piece)
                            tally.add_text(text)
                        case ReasoningDelta(text=text):
                            await self._emit(piece)
                            tally.add_text(text if conversation.model.keeps_reasoning else "")
                        case CallPiece(arguments=arguments):
                            tally.add_text(arguments)
                        case ReplyEnd():
                            pass
                if conversation.clock.seconds() - shown >= conversation.options.stream_figures_every:
                    shown = conversation.clock.seconds()
                    await conversation.keep(
                        draft.message(conversation.ledger.next_seq, conversation.clock.now(), interrupted=True)
                    )
                    await self._emit(conversation.streaming(tally.mix))
        if draft.end is None or not (draft.answered or draft.end.calls):
            raise self._no_reply_error(draft)

    def _no_reply_error(self, draft: ArrivingReply) -> ModelError:
        """The error for a call that brought no complete reply. Books what the call cost."""
        usage = draft.end.usage if draft.end else None
        if usage and usage.cost_usd:
            self._conversation.apply_now_write_later(Spent(self._conversation.model.name, usage.cost_usd, "replies"))
        if draft.has_begun and draft.end:
            return ModelError(
                "The model thought, and then said nothing.",
                "Its thoughts are kept; ask again, or let it think less."
                if draft.end.finish != "length"
                else "They filled the output limit: raise it (max_output), or let it think less (/effort).",
                kind="empty",
            )
        if draft.has_begun:
            return ModelError(
                "The reply broke off before its end.", "What came of it is kept; ask for the rest.", kind="interrupted"
            )
        if self._before and draft.end:
            return ModelError("The model has nothing to add to its reply.", kind="empty")
        return ModelError(
            "The model sent an empty reply.", "Its server may have cut the prompt: check the window.", kind="empty"
        )

    async def _accept_reply(self) -> None:
        """Take in a complete reply: seal it (add it to the record), or keep it in flight for its calls. The server's count
        becomes the gauge's anchor; then usage, cache, remarks and the gauge are emitted."""
        conversation, end = self._conversation, self._open.draft.end
        assert end is not None
        unfinished = end.finish == "length" and not end.calls and bool(self._open.draft.text.strip())
        message = self._open.draft.message(
            conversation.ledger.next_seq, conversation.clock.now(), interrupted=unfinished
        )
        self._open.set_reply(message, self._first)
        usage = end.usage if end.usage and end.usage.prompt > 0 else self._counted_here(message, end.usage)
        self.cut_at = (end.limit or usage.completion) if end.finish == "length" else 0
        self.goes_on, self._went_on = unfinished and not self._went_on, self._went_on or unfinished
        missing = end.finish == "tool_calls" and not end.calls and not self._missed
        self._missed = self._missed or missing
        self.follow_up = CONTINUE_REQUEST if self.goes_on else MISSING_CALL if missing else ""
        turn_end = not message.calls and not self.follow_up
        measured = conversation.knowledge.counted(
            usage, conversation.view, message, conversation.clock.now(), turn_end=turn_end
        )
        measured = conversation.as_sent(measured, end.notes)
        if message.calls:
            conversation.apply_now_write_later(measured)
            await conversation.keep(message)
            context_usage = conversation.streaming(conversation.knowledge.weight(message))
        else:
            await conversation.write(Sealed((single("reply", message, conversation.ledger.turn),)), measured)
            self._open.reply = None
            context_usage = await conversation.remeasure()
        cache = (context_usage.cache,) if context_usage.cache != NOTHING_KNOWN else ()
        texts = remarks(end, message, measured.cut, goes_on=self.goes_on)
        notices = (Notice("info" if self.goes_on else "warning", text) for text in texts)
        spending = (Notice("warning", text) for text in conversation.spending.warnings())
        for event in (usage, *cache, *notices, *spending, context_usage):
            await self._emit(event)
        await conversation.knowledge.unlearn_window(usage)

    def _counted_here(self, message: Message, usage: Usage | None) -> Usage:
        """The usage by our own count, for a server that reported none that can be true."""
        conversation = self._conversation
        cost = usage.cost_usd if usage else 0.0
        return Usage(
            conversation.knowledge.prompt_tokens(conversation.view),
            conversation.counter.message(message),
            cost_usd=cost,
            estimated=True,
        )


def remarks(end: ReplyEnd, message: Message, cut: int, *, goes_on: bool = False) -> list[str]:
    """Sentences for the person about what is unusual in a reply. `cut` is the number of tokens that the server left out of the
    prompt; `goes_on`: the model is asked for the rest."""
    texts = [end.notes.remark] if end.notes.remark else []
    if cut:
        texts.append(server_cut(cut))
    if end.finish == "length":
        limit = f" of {end.limit:,} tokens" if end.limit else ""
        texts.append(f"The reply was cut at its output limit{limit}{_after_cut(message, goes_on)}")
    elif end.finish == "tool_calls" and not end.calls:
        texts.append("The model said that it would call a tool, and did not.")
    elif end.finish == "content_filter":
        texts.append("The provider's content filter ended the reply.")
    elif end.finish == "refusal":
        texts.append("The model refused to answer.")
    return texts


def _after_cut(message: Message, goes_on: bool) -> str:
    """The end of a sentence about a reply that was cut off: what happens now, or what helps."""
    if goes_on:
        return "; it goes on."
    if message.calls:
        return "; the model is told that its last call is not whole."
    return ". /continue goes on from there; a higher max_output allows longer ones."


MIN_REPEATED_CHARS = 24
"""The shortest repetition that is left out, in characters: a word or two may well be meant to follow itself."""


class Continuation:
    """Leaves out of a reply, piece by piece, what it repeats of `before`, the half reply that it continues.

    Some servers (llama.cpp, Mistral's) return the half reply that they were sent as a part of the new one, and a model that is
    asked to go on often begins its last sentence again.
    """

    def __init__(self, before: str) -> None:
        self._before = before
        self._held = ""
        self._open = bool(before)

    def fresh(self, piece: ModelPiece) -> Sequence[ModelPiece]:
        """The pieces to use in place of one that arrived: without what it repeats, and behind text that was held back."""
        match piece:
            case TextDelta(text=text):
                return (TextDelta(new),) if (new := self.new_text(text)) else ()
            case CallPiece() | ReplyEnd() if held := self.release_held():
                return (TextDelta(held), piece)
            case _:
                return (piece,)

    def new_text(self, text: str) -> str:
        """The new part of `text`; empty while all of it may still be a repetition, so that it is held back."""
        if not self._open:
            return text
        self._held += text
        return "" if self._held in self._before else self.release_held()

    def release_held(self) -> str:
        """The part of the text held back that is no repetition. From then on nothing is held back."""
        held, self._held, self._open = self._held, "", False
        new = held[repeated_chars(self._before, held) :]
        return new.lstrip() if self._before[-1:].isspace() else new


def repeated_chars(before: str, after: str) -> int:
    """How many characters at the beginning of `after` repeat the end of `before`; 0 for fewer than `MIN_REPEATED_CHARS`,
    unless they are all of it. White space at the end of `before` may be missing: no provider is sent it."""
    trimmed = before.rstrip()
    least = max(1, min(MIN_REPEATED_CHARS, len(trimmed)))
    for length in range(min(len(before), len(after)), least - 1, -1):
        if before.endswith(after[:length]) or trimmed.endswith(after[:length]):
            return length
    return 0
