"""Has a model write summaries: it reads whole groups in chunks that fit its window, and merges each into the record so far.

A reply that was cut off, called a tool or is empty is an error, never a result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial

import msgspec

from ctxchat.agent.prompts import prompt
from ctxchat.agent.spending_budget import UNLIMITED, SpendingBudget
from ctxchat.agent.turn.model_calls import ArrivingReply, stream_reply
from ctxchat.core.clip import head
from ctxchat.core.errors import ModelError
from ctxchat.core.events import Notice, Retry, TextDelta, Usage
from ctxchat.core.journal import PrefixRead
from ctxchat.core.messages import Message
from ctxchat.core.overflow import is_context_overflow, stated_window
from ctxchat.core.ports import Clock, ModelPort, ModelRequest, SummaryNews, SummaryTask
from ctxchat.core.summaries import room_in_words
from ctxchat.core.summary_task import (
    chunks,
    output_room,
    request_text,
    room_for_new,
    shortened,
    shorter_text,
    within_text,
)
from ctxchat.core.summary_update import room_for_rewrite, room_for_update, tokens_over, updated
from ctxchat.core.tokens import Count
from ctxchat.core.view import Item, View

MAX_FILLED_SHARE = 0.75
"""Share of the free window that a chunk may fill: counts are estimates, and this model may never have been calibrated."""

MAX_REREAD_PARTS = 3
"""Most chunks in which messages that another agent summarised are read anew; beyond, its summary stands for the earliest."""

SAMPLE_CHARS = 8_000
"""Characters of the agent's replies from which the tokens of a word are estimated."""

OPENING_CHARS = 200
"""Characters after which a reply is taken to be a summary, and passed on as it arrives."""

MIN_CHUNK_TOKENS = 500
"""Least tokens of a chunk: a smaller one is not worth a call."""


MAX_INSTRUCTIONS_CHARS = 16_384
"""Most characters of the instructions to a provider's own compaction."""

WithinNews = str | Usage | PrefixRead


class ModelSummariser:
    """Implements `core.ports.Summariser` with any model. `own`: it is the conversation's model, which can summarise from its
    cached context. `by_provider`: the provider's own compaction is tried first, until it is refused."""

    def __init__(
        self,
        model: ModelPort,
        clock: Clock,
        budget: SpendingBudget = UNLIMITED,
        *,
        own: bool = False,
        by_provider: bool = False,
    ) -> None:
        self._own, self._by_provider = own, by_provider
        self._model = model
        self._clock = clock
        self._budget = budget

    @property
    def model(self) -> str:
        """The name of the model that writes."""
        return self._model.name

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[SummaryNews, None]:
        """The summary piece by piece, and the usage of each call. Of several chunks only the last one's text is passed on.

        Where the model refuses a chunk as too long, all is cut into chunks again, once, to the window its server states, or to
        half.
        """
        window = (await self._model.window()).tokens
        if task.shorten:
            asked = shorter_text(task.shorten, task.max_tokens, self._model.count)
            system, draft = self._prompt("summary", task), ArrivingReply()
            request = await asyncio.to_thread(_saying, system, asked, output_room(task, window), self._model.count)
            async with aclosing(self._stream_model(request, draft)) as news:
                async for each in news:
                    yield each
            _checked(draft)
            return
        for ask in self._ways_within(task) if self._own else ():
            draft, written = ArrivingReply(), False
            try:
                async with aclosing(ask(draft)) as news:
                    async for each in news:
                        written = written or isinstance(each, str)
                        yield each
            except ModelError:
                if written:
                    raise
            if written:
                _checked(draft)
                return
        told = False
        for second in (False, True):
            output = output_room(task, window)
            beside = head(task.beside, window // 8, self._model.count)
            known = max((task.previous, *(one.text for one in task.instead)), key=len)
            system = self._prompt("summary", task, known)
            fixed = self._model.count(system + task.instructions + beside + known) + output
            room = max(MIN_CHUNK_TOKENS, int((window - fixed - task.max_tokens) * MAX_FILLED_SHARE))
            read = await asyncio.to_thread(shortened, task, room * MAX_REREAD_PARTS)
            pieces = await asyncio.to_thread(chunks, read.groups, room, self._model.count)
            if len(pieces) > 1:
                yield Notice(
                    "info", f"What goes is longer than the summary model's window: read in {len(pieces)} parts."
                )
            try:
                told_of = msgspec.structs.replace(read, beside=beside)
                async with aclosing(self._merged(told_of, pieces, output)) as news:
                    async for each in news:
                        told = True
                        yield each
                return
            except ModelError as problem:
                if second or told or not is_context_overflow(problem, estimated_tokens=room + fixed, window=window):
                    raise
                window = min(stated_window(problem) or window, (room + fixed) // 2)

    def _ways_within(self, task: SummaryTask) -> Iterator[Callable[[ArrivingReply], AsyncGenerator[WithinNews, None]]]:
        """The calls that can summarise within the conversation's own context, the preferred one first."""
        if task.within is None:
            return
        if self._by_provider and self._model.compacts:
            yield partial(self._compacted, task, task.within)
        yield partial(self._within, task, task.within)

    async def _compacted(
        self, task: SummaryTask, request: ModelRequest, draft: ArrivingReply
    ) -> AsyncGenerator[WithinNews, None]:
        """The summary by the provider's own compaction, instructed to write a record; nothing where the instructions are too long
        for it. Only the text is kept of its signed result."""
        asked = f"{self._prompt('summary_within', task)}\n\n{within_text(task)}"
        if len(asked) > MAX_INSTRUCTIONS_CHARS:
            return
        started, told = self._clock.now(), list[str]()
        try:
            async with aclosing(self._stream_model(msgspec.structs.replace(request, compaction=asked), draft)) as news:
                async for each in news:
                    if isinstance(each, str):
                        told.append(each)
                        continue
                    yield each
                    if not each.estimated:
                        yield PrefixRead(self.model, started, each.cached)
        except ModelError as problem:
            self._by_provider = problem.kind != "bad_request"
            raise
        if told and _is_record(draft.text):
            yield "".join(told)

    async def _within(
        self, task: SummaryTask, request: ModelRequest, draft: ArrivingReply
    ) -> AsyncGenerator[WithinNews, None]:
        """The summary that the model writes when asked after the last message of the conversation. Passed on only once it is
        surely a record: the model may continue its work instead."""
        room = self._update_room(task, task.previous)
        asked = f"{self._prompt('summary_within', task, task.previous)}\n\n{within_text(task, update=bool(room))}"
        at = max((item.message.seq for item in request.view.items), default=0) + 1
        view = request.view.followed_by([Message(at, "user", asked)], self._model.count)
        request = msgspec.structs.replace(request, view=view)
        pending, started = list[str](), self._clock.now()
        async with aclosing(self._stream_model(request, draft)) as news:
            async for each in news:
                if isinstance(each, Usage):
                    yield each
                    if not each.estimated:
                        yield PrefixRead(self.model, started, each.cached)
                    continue
                pending.append(each)
                if not room and len(draft.text) >= OPENING_CHARS:
                    yield "".join(pending)
                    pending.clear()
        if room:
            pending = [updated(task.previous, _checked(draft))] if _is_record(draft.text) else []
        if _is_record(draft.text) and (rest := "".join(pending)):
            yield rest

    def _prompt(
        self, opening: str, task: SummaryTask, previous: str = "", *, whole: bool = False, parts: int = 1
    ) -> str:
        """The system prompt, with the length limit in words, converted from tokens by this conversation's text. Of a record only
        the changes are asked for, unless `whole` is set. `parts`: the task's groups are read in so many parts."""
        sample = (
            task.shorten
            or task.previous
            or "\n".join(g.first.text for g in task.groups if g.kind == "reply")[-SAMPLE_CHARS:]
        )
        count, update = self._model.count, 0 if whole else self._update_room(task, previous, parts)
        if update:
            over = tokens_over(previous, update, task.max_tokens, count)
            brief = over or 0 < room_for_new(task, count) // parts <= update
            full = f"{prompt('make_room').replace('{over}', room_in_words(over, sample, count))}\n\n" if over else ""
            room = prompt("update_brief" if brief else "update_room")
            room = room.replace("{room}", room_in_words(update, sample, count))
            length = f"{prompt('update')}\n\n{full}{room}"
        else:
            most = room_for_rewrite(previous, task.max_tokens, count)
            new = 0 if previous else room_for_new(task, count)
            length = prompt("length").replace("{room}", room_in_words(min(most, new or most), sample, count))
        return f"{prompt(opening)}\n\n{prompt('record')}\n\n{length}"

    def _update_room(self, task: SummaryTask, previous: str, parts: int = 1) -> int:
        """Most tokens of an update to the record so far; 0 where the whole record is to be written."""
        most = room_for_update(previous, task.max_tokens, self._model.count) if task.max_tokens else 0
        return min(most, room_for_new(task, self._model.count) // parts or most)

    async def _merged(self, task: SummaryTask, pieces: Sequence[str], output: int) -> AsyncGenerator[str | Usage, None]:
        """Summarise the chunks in order, each merged into the record from those before it. An update is passed on as the whole
        updated record; where a reply cannot be applied as an update, the whole record is asked for."""
        record = task.previous
        for number, piece in enumerate(pieces, 1):
            last, whole = number == len(pieces), ""
            for update in (True, False) if self._update_room(task, record, len(pieces)) else (False,):
                draft = ArrivingReply()
                asked = request_text(
                    piece, record, task.beside, task.instructions, number=number, of=len(pieces), update=update
                )
                system = self._prompt("summary", task, record, whole=not update, parts=len(pieces))
                request = await asyncio.to_thread(_saying, system, asked, output, self._model.count)
                async with aclosing(self._stream_model(request, draft)) as stream:
                    async for news in stream:
                        if (last and not update) or isinstance(news, Usage):
                            yield news
                whole = updated(record, _checked(draft)) if update else _checked(draft)
                if whole:
                    if last and update:
                        yield whole
                    break
            record = whole

    async def _stream_model(self, request: ModelRequest, draft: ArrivingReply) -> AsyncGenerator[str | Usage, None]:
        """The text of one call as it arrives, and its usage; the whole reply collects in `draft`."""
        async with aclosing(stream_reply(self._model, request, self._clock, 1, budget=self._budget)) as stream:
            async for news in stream:
                if isinstance(news, Retry):
                    continue
                draft.add_piece(news)
                if isinstance(news, TextDelta):
                    yield news.text
        if draft.end and draft.end.usage:
            yield draft.end.usage


def _saying(system: str, text: str, output: int, count: Count) -> ModelRequest:
    """A request of a system prompt and a text, for a reply of at most `output` tokens. Its tokens are counted, since spending
    limits need them and a server's figures are checked against them."""
    items = (
        Item(Message(seq=0, role="system", content=system), "system", count(system), "system"),
        Item(Message(seq=0, role="user", content=text), "user", count(text), "user"),
    )
    return ModelRequest(View(items, (), (), sum(item.tokens for item in items), 0), output)


def _is_record(text: str) -> bool:
    """Whether a reply is a record, or an update of one, and not a remark on the work."""
    return len(text) >= OPENING_CHARS or text.lstrip().startswith("#")


def _checked(draft: ArrivingReply) -> str:
    """The text of a complete summary. Raises ModelError (`bad_summary`) for any other reply."""
    end = draft.end
    if end is None:
        raise ModelError("The summary broke off before its end.", kind="bad_summary")
    if end.calls or end.finish == "tool_calls":
        raise ModelError("The summary model called a tool instead of writing.", kind="bad_summary")
    if end.finish == "length":
        raise ModelError("The summary was cut off by the output limit.", kind="bad_summary")
    if end.finish in {"content_filter", "refusal"}:
        raise ModelError("The provider's content filter ended the summary.", kind="bad_summary")
    if not draft.text.strip():
        raise ModelError("The summary came back empty.", kind="bad_summary")
    return draft.text
