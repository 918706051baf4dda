"""Carries out one compaction: writes the summary, records the change, compiles the view anew. Nothing else executes plans.

Nothing is changed before everything is ready, and then in one transaction: a cancel, a crash or a poor summary leaves the state
exactly as it was. Does not decide when a compaction runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import cast

import msgspec

from ctxchat.agent.compaction.dry_run import DryRun, gains, look_ahead, missed, tried
from ctxchat.agent.compaction.within import request_within
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.emitting import Emit, to_the_end
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError, ModelError
from ctxchat.core.events import CompactionStarted, Notice, SummaryDelta, Usage
from ctxchat.core.journal import Changed, CompactionBegun, CompactionFinished, PrefixRead, Spent
from ctxchat.core.ports import Summariser, SummaryNews, SummaryTask
from ctxchat.core.prepared import Prepared
from ctxchat.core.quantities import count, made_smaller
from ctxchat.core.record import YOU, CompactionRecord, FactCount, Outcome, Reason, SideUsage, StepGain
from ctxchat.core.sections import OUTSIDE
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summaries import too_little, too_long
from ctxchat.core.summary_task import summary_task
from ctxchat.core.tokens import Count
from ctxchat.core.view import View


class Drafted(msgspec.Struct, frozen=True):
    """A summary that a model drafted for a person to mend; what it cost is booked already."""

    text: str
    model: str
    cost_usd: float


class CompactionRequest(msgspec.Struct, frozen=True):
    """What is to be done: a plan, why, and for its summary what to heed, the text a person has written, or one that was
    prepared ahead; `drafted` is what the person was given to mend."""

    plan: Plan
    reason: Reason
    instructions: str = ""
    summary: str | None = None
    prepared: Prepared | None = None
    drafted: Drafted | None = None


class Refused(CtxchatError):
    """The compaction would not help; the text says why in a sentence."""


PARTIAL = frozenset({"reactive_micro", "reactive_full", "context_overflow"})
"""Reasons of compactions that go only as far down as the next request needs."""


class CompactionRun:
    """One compaction. `complete` may put a prepared summary into the request; it is called after the compaction has begun, since
    it may have to wait for that summary."""

    def __init__(
        self,
        conversation: Conversation,
        request: CompactionRequest,
        options: PlanOptions,
        summariser: Summariser | None,
        complete: Callable[[CompactionRequest], Awaitable[CompactionRequest]],
    ) -> None:
        self._conversation = conversation
        self._request = request
        self._options = options
        self._summariser = summariser
        self._complete = complete
        self._id = f"{conversation.journal.session}-c{conversation.next_compaction}"
        self._start = conversation.clock.seconds()
        self._scale = conversation.scale
        self._before = side(conversation.context_usage, conversation.view)
        self._cost = 0.0
        self._model = ""
        self._attempts = 0

    async def run(self, emit: Emit) -> CompactionRecord:
        """Run it; the record of its outcome. A cancel leaves everything as it was, or the compaction finished and emitted."""
        conversation, request = self._conversation, self._request
        try:
            await emit(CompactionStarted(self._id, request.reason, request.plan.strategy))
            await conversation.write(
                CompactionBegun(self._id, conversation.clock.now(), request.reason, request.plan.strategy)
            )
            self._request = await self._complete(request)
            steps = [step for step in self._request.plan.steps if step.needs_summary]
            written = "".join([await self._write_summary(step, emit) for step in steps])
            ended = await self._apply_change(self._accepted_summary(written.strip()))
        except asyncio.CancelledError:
            if (record := self._in_force) is None:
                await to_the_end(self._end_without_change("failed", "Cancelled; everything is as it was."))
            else:  # the change was being made, or made, when the cancel came
                await to_the_end(conversation.remeasure())
                await emit(record)
                await emit(conversation.context_usage)
            raise
        except Exception as problem:  # a strategy, a summariser or a transform may come from a third party
            ended = self._in_force or await self._end_without_change(*_failure(problem))
        await emit(ended)
        await emit(conversation.context_usage)
        return ended

    @property
    def _in_force(self) -> CompactionRecord | None:
        """The record of this compaction, once its change is in the ledger."""
        return next((c.record for c in self._conversation.ledger.changes if c.id == self._id), None)

    async def _write_summary(self, step: Step, emit: Emit) -> str:
        """The summary of a step's groups, emitted as it is written, with the earlier summary merged in. A prepared one is emitted
        at once."""
        request, prepared, summariser = self._request, self._request.prepared, self._summariser
        if request.summary is not None:
            self._model = request.drafted.model if request.drafted else ""
            await emit(SummaryDelta(self._id, request.summary))
            return request.summary
        self._model = summariser.model if summariser else ""
        if prepared is not None and set(prepared.covers) == set(step.fold):
            await emit(SummaryDelta(self._id, prepared.text))
            return prepared.text
        if summariser is None:
            raise Refused("No model can write the summary. Nothing was changed.")
        self._attempts += 1
        written: list[str] = []
        async with aclosing(
            writing(self._conversation, step, summariser, self._options, request.instructions, prepared)
        ) as pieces:
            async for piece in pieces:
                if isinstance(piece, Usage):
                    self._cost += piece.cost_usd
                elif isinstance(piece, Notice):
                    await emit(piece)
                else:
                    written.append(piece)
                    await emit(SummaryDelta(self._id, piece))
        return await self._fit_summary("".join(written), step, summariser, emit)

    async def _fit_summary(self, summary: str, step: Step, summariser: Summariser, emit: Emit) -> str:
        """The summary; where it is too long for its room, the model is asked once for a shorter one."""
        count = self._conversation.counter.count_text
        if not self._model or not too_long(summary, step.summary_tokens, count):
            return summary
        await emit(Notice("info", "The summary is too long: a shorter one is asked for."))
        self._attempts += 1
        text, cost = await shorter(summary, step.summary_tokens, summariser, count)
        self._cost += cost
        return text

    def _accepted_summary(self, summary: str) -> str:
        """The summary as written, which is never cut. Raises Refused for one that is more than twice as long as its room."""
        most = sum(step.summary_tokens for step in self._request.plan.steps)
        if self._request.summary is None and self._model and self._conversation.counter.count_text(summary) > 2 * most:
            raise Refused("The summary came back more than twice as long as it may be. Nothing was changed.")
        return summary

    async def _apply_change(self, summary: str) -> CompactionRecord:
        """Try the change on a copy; if the result is valid, record the change and make the view anew, in one transaction."""
        conversation, plan = self._conversation, self._request.plan
        if not summary and any(s.needs_summary for s in plan.steps):
            raise Refused("The summary came back empty. Nothing was changed.")
        at = conversation.clock.now()
        await look_ahead(self._options.memory, conversation.ledger, plan.covers)
        await conversation.look_around()
        head = conversation.next_head
        dry_run = await asyncio.to_thread(
            tried,
            conversation.ledger,
            plan,
            self._id,
            self._options,
            conversation.compile,
            summary=summary,
            at=at,
            head=head,
        )
        if dry_run.problem:
            raise Refused(f"The compaction would have left an invalid view ({dry_run.problem}). Nothing was changed.")
        if not plan.asked_for and (why := too_little(conversation.view.raw, dry_run.view.raw)):
            raise Refused(f"{why} Nothing was changed.")
        for spill in (spill for step in plan.steps for spill in step.spills):
            await conversation.journal.spill(spill.name, spill.text)
        record = self._record_of(dry_run)
        await conversation.write(
            Changed(msgspec.structs.replace(dry_run.change, record=record), conversation.as_counted)
        )
        await conversation.remeasure()
        if record.filled:
            await conversation.knowledge.wrote(self._model, record.filled)
        return record

    async def _end_without_change(self, outcome: Outcome, detail: str) -> CompactionRecord:
        """Journal the record of a compaction that changed nothing, and return it."""
        record = self._record(outcome, detail)
        await self._conversation.write_or_owe(CompactionFinished(record))
        self._conversation.remeasured()  # for the cost
        return record

    def _record(self, outcome: Outcome, detail: str) -> CompactionRecord:
        """The part of the record that every outcome has."""
        request, conversation = self._request, self._conversation
        return CompactionRecord(
            id=self._id,
            reason=request.reason,
            strategy=request.plan.strategy,
            outcome=outcome,
            at=conversation.clock.now(),
            model=self._model,
            before=self._before,
            after=self._before,
            seconds=round(conversation.clock.seconds() - self._start, 3),
            cost_usd=self._cost,
            attempts=self._attempts,
            detail=detail,
        )

    def _record_of(self, dry_run: DryRun) -> CompactionRecord:
        """The record of a compaction that succeeds."""
        conversation, request = self._conversation, self._request
        expected = conversation.expected(dry_run.view, dry_run.changes)
        after = side(expected, dry_run.view)
        freed = gains(request.plan, self._scale, self._before.used - after.used)
        booked = sum(one.cost_usd for one in (request.prepared, request.drafted) if one)
        allowed = sum(s.summary_tokens for s in request.plan.steps) if self._model else 0
        mended = request.summary is not None and (request.drafted is None or request.summary != request.drafted.text)
        calls = [f"{c.name} {c.arguments}" for g in conversation.ledger.groups[-40:] for c in g.first.calls]
        return msgspec.structs.replace(
            self._record("compacted", _detail(dry_run)),
            after=after,
            missed=missed(request.plan, dry_run.view, expected, self._scale) if request.reason not in PARTIAL else "",
            steps=tuple(StepGain(s.name, gain, s.groups) for s, gain in zip(request.plan.steps, freed, strict=False)),
            folded=tuple(g.id for g in dry_run.folded),
            folded_messages=dry_run.messages,
            shortened=dry_run.shortened,
            keep_recent=request.plan.keep_recent,
            facts=dry_run.facts,
            cost_usd=self._cost + booked,
            booked_usd=booked,
            filled=round(conversation.counter.count_text(dry_run.summary) / allowed, 3)
            if allowed and not mended
            else 0.0,
            summary=dry_run.summary,
            author=YOU if mended else "",
            evidence=dry_run.evidence,
            lost=dry_run.lost,
            tools=tuple(t.name for t in conversation.view.tools),
            memory=tuple(i.source for i in conversation.view.items if i.section == "memory"),
            recent_calls=tuple(c[:200] for c in calls[-10:]),
        )


def _failure(problem: Exception) -> tuple[Outcome, str]:
    """Outcome and reason of a compaction that failed with this."""
    match problem:
        case Refused(text=text):
            return "rejected", text
        case CtxchatError(text=text):
            return "failed", f"{text} Nothing was changed."
        case _:
            return "failed", f"{type(problem).__name__}: {problem}. Nothing was changed."


async def writing(
    conversation: Conversation,
    step: Step,
    summariser: Summariser,
    options: PlanOptions,
    instructions: str = "",
    prepared: Prepared | None = None,
) -> AsyncGenerator[str | Usage | Notice, None]:
    """Stream the summary of a step's groups, with the summary in force merged in; or, where one is `prepared`, of the groups that
    it lacks, with that one merged in. Raises ModelError."""
    task = await asyncio.to_thread(summary_task, conversation.ledger, step, options, instructions)
    if prepared is not None:
        left = tuple(g for g in task.groups if g.id not in prepared.covers)
        task = msgspec.structs.replace(task, groups=left, previous=prepared.text, instead=())
    elif summariser.model == conversation.model.name:
        task = msgspec.structs.replace(task, within=await request_within(conversation, task))
    written = summariser.summarise(task)
    async with aclosing(cast("AsyncGenerator[SummaryNews, None]", written)) as pieces:
        async for piece in pieces:
            if isinstance(piece, PrefixRead):
                conversation.apply_now_write_later(piece)
            else:
                yield piece


async def shorter(summary: str, max_tokens: int, summariser: Summariser, count: Count) -> tuple[str, float]:
    """A shorter version of a summary by the same writer, and its cost in US dollars; the summary itself where that fails or comes
    out longer."""
    task = SummaryTask((), max_tokens=max_tokens, shorten=summary)
    pieces: list[str] = []
    cost = 0.0
    try:
        written = summariser.summarise(task)
        async with aclosing(cast("AsyncGenerator[SummaryNews, None]", written)) as news:
            async for piece in news:
                if isinstance(piece, Usage):
                    cost += piece.cost_usd
                elif isinstance(piece, str):
                    pieces.append(piece)
    except ModelError:
        return summary, cost
    text = "".join(pieces).strip()
    return (text if text and count(text) < count(summary) else summary), cost


class SummaryDraft:
    """A summary that is written before a compaction, for a person to edit or in the background: its text and cost so far. The
    cost is booked even when the summary is not used."""

    def __init__(self, conversation: Conversation, model: str) -> None:
        self._conversation = conversation
        self._model = model
        self._pieces: list[str] = []
        self.cost_usd = 0.0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces).strip()

    async def receive_text(self, written: AsyncIterator[SummaryNews]) -> AsyncGenerator[str, None]:
        """Stream the text."""
        try:
            async with aclosing(cast("AsyncGenerator[SummaryNews, None]", written)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Usage):
                        self.cost_usd += piece.cost_usd
                    elif isinstance(piece, str):
                        self._pieces.append(piece)
                        yield piece
        finally:
            if self.cost_usd:
                self._conversation.apply_now_write_later(Spent(self._model, self.cost_usd, "summaries"))


def side(context_usage: ContextUsage, view: View) -> SideUsage:
    """The state before or after a compaction: tokens in use without the draft, messages in the view, tokens by section."""
    sections = {s.name: s.tokens for s in context_usage.sections if s.name not in OUTSIDE and s.name != "draft"}
    return SideUsage(context_usage.used - context_usage.tokens("draft"), len(view.items), sections)


def _detail(dry_run: DryRun) -> str:
    files = f", {count(len(dry_run.files), 'file')} shown as on disk" if dry_run.files else ""
    return f"{made_smaller(dry_run.messages, dry_run.shortened)}{survived(dry_run.facts)}{files}"


def survived(facts: FactCount) -> str:
    """How many facts were kept, as the end of a sentence; empty where there were none."""
    if not facts.found:
        return ""
    of = f"{facts.kept} of " if facts.kept < facts.found else "all " if facts.found > 1 else ""
    return f", kept {of}{count(facts.found, 'fact')}" + (f" ({facts.near} of them one read away)" if facts.near else "")
