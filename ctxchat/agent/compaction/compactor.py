"""Starts compactions: before a request, between rounds, after a turn, by hand, for a hook. `scheduler` decides when, `planner`
what, `run` carries it out.

Knows no provider and no screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial

import msgspec

from ctxchat.agent.compaction.overflow_recovery import OverflowRecovery
from ctxchat.agent.compaction.planner import Planner, Prices, Registry
from ctxchat.agent.compaction.policy import ApprovedCompaction, AutoCompactPolicy
from ctxchat.agent.compaction.prefetch import Prefetch
from ctxchat.agent.compaction.preview import Preview
from ctxchat.agent.compaction.run import CompactionRequest, CompactionRun, Drafted, Refused, SummaryDraft, writing
from ctxchat.agent.compaction.scheduler import Decision, Scheduler
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.emitting import Emit
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Notice
from ctxchat.core.hooks import HookVerdict
from ctxchat.core.ports import FilesNow, Summariser
from ctxchat.core.record import CompactionRecord, Reason
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.times import epoch

AskHooks = Callable[[Reason, str, Emit], Awaitable[HookVerdict]]
"""Asks the hooks about a compaction, by its reason and instructions."""


class Compactor:
    """Makes room for one conversation, one compaction at a time. `prices` is for previews, `files_now` reads the files that stand
    beside a summary."""

    def __init__(
        self,
        conversation: Conversation,
        *,
        summariser: Summariser | None = None,
        registry: Registry = builtin_strategies,
        prices: Prices | None = None,
        files_now: FilesNow | None = None,
    ) -> None:
        self._conversation = conversation
        self.ask_hooks: AskHooks | None = None
        """Asks hooks before a compaction; None without hooks."""
        self.follow_deferred: Callable[[], Awaitable[str]] | None = None
        """Puts what waited for a compaction in force, and says what that was."""
        self.planner = Planner(conversation, registry, summariser, prices, files_now)
        self._prefetch = Prefetch(conversation, self.planner)
        self._drafted: Drafted | None = None  # the summary that a person is editing
        self.policy = AutoCompactPolicy(conversation)
        self.scheduler = Scheduler(conversation, self.planner, self.policy)

    # ── before a request ──

    async def make_room(self, emit: Emit, *, inside: bool = False) -> None:
        """Measure, and compact where that is due or agreed; `inside`: between two rounds of a turn."""
        if not inside:
            await self._prefetch.give_way()  # a summary in the making yields to the turn
        context_usage = await self._conversation.refresh()
        await emit(context_usage)
        for text in self._conversation.troubles():
            await emit(Notice("warning", text))
        if agreed := self.policy.take_agreed("now"):
            await self._as_agreed(agreed, emit, beside=True)
        else:
            await self._announce_due(context_usage, emit, inside=inside)
        if self.scheduler.too_long():
            await self.recovery().make_fit(self.scheduler.reason("context_overflow"), emit)
        self.scheduler.room_made()

    async def _announce_due(self, context_usage: ContextUsage, emit: Emit, *, inside: bool) -> None:
        """Do what is due before a request: run a compaction that may start by itself, prepare a summary ahead, ask the person, or
        tell them what happens."""
        due = self.scheduler.what_is_due(context_usage, inside=inside)
        if due == "prepare" and not inside and self._goes_in_cold(context_usage):
            due = "compact"
        if due == "overhead":
            for notice in self.policy.about_overhead(context_usage):
                await emit(notice)
            return
        try:
            decided: Decision = None  # or a request, or "wait" for the summary in the making
            if due == "compact":
                ready = self._prefetch.stands_ready()
                decided = await self.scheduler.decide(context_usage, inside=inside, ready=ready)
            asked = None if decided or due == "no" else await self.scheduler.suggestion(context_usage)
        except Exception as problem:  # a strategy may come from a third party, or be gone with its package
            if self.policy.once_a_turn():
                await emit(planning_failed(problem))
            return
        if isinstance(decided, CompactionRequest):
            await self._automatic(decided, emit, inside=inside)
        elif due != "no":
            self._prepare(inside=inside, beside=True, needed=decided == "wait")
            told = () if decided == "wait" else self.policy.about_trigger(context_usage, inside=inside)
            for event in (asked,) if asked else told:
                await emit(event)

    def _goes_in_cold(self, context_usage: ContextUsage) -> bool:
        """Whether the prepared summary is used before the trigger, since the server's cache is cold and the whole request is read
        anew."""
        conversation = self._conversation
        cold = context_usage.cache.warmth(epoch(conversation.clock.now())) == "cold"
        return cold and conversation.options.auto_cold == "compact" and self._prefetch.prepared is not None

    async def _automatic(self, request: CompactionRequest, emit: Emit, *, inside: bool = False) -> CompactionRecord:
        """Run a compaction that started by itself, and tell the policy how it ended. A cancel before anything changed counts as
        the person's stop."""
        changes = self._conversation.ledger.changes
        try:
            record = await self._perform(request, emit)
        except asyncio.CancelledError:
            if self._conversation.ledger.changes == changes:
                self.policy.stopped()
            raise
        for notice in self.policy.record_result(record, inside=inside):
            await emit(notice)
        return record

    # ── when a turn has ended ──

    async def after_turn(self, emit: Emit, *, agreed: bool) -> None:
        """Run the compaction that was put off until the end of the turn (`agreed` is False where the turn failed), and prepare
        the next summary. Nothing where no further message is expected."""
        if not self._conversation.lasting:
            return
        outstanding = self.policy.take_agreed("now", "after") if agreed else None
        if outstanding:
            await self._as_agreed(outstanding, emit, beside=False)
        self._prepare(inside=False, beside=False)

    async def _as_agreed(self, agreed: ApprovedCompaction, emit: Emit, *, beside: bool) -> None:
        """Carry out what a person agreed to, or what the model asked for; the latter may be put off until its summary is
        prepared. `beside`: a turn goes on."""
        by_agent = agreed.reason == "auto"  # unlike a person's, its instructions do not make a summary necessary
        try:
            preview = await self.planner.preview("" if by_agent else agreed.instructions)
            preview = msgspec.structs.replace(preview, instructions=agreed.instructions)
        except Exception as problem:  # as above; the turn goes on without the compaction
            await emit(planning_failed(problem))
            return
        if by_agent and preview.plan:  # the model asked, and goes on meanwhile
            if self.scheduler.can_wait(preview.plan, self._conversation.context_usage, self._prefetch.stands_ready()):
                self.policy.put_back(agreed)
                self._prefetch.prepare(preview.plan, beside=beside)
                return
            if agreed.instructions:
                said = f"The agent asks for room, and for this to be kept: {' '.join(agreed.instructions.split())}"
                await emit(Notice("info", said))
        await self.run(preview, emit, reason=agreed.reason)

    # ── ahead of time ──

    @property
    def ghost(self) -> int:
        """Tokens in use after the prepared compaction, for a mark on the gauge; 0 where none is prepared."""
        prepared, context_usage = self._prefetch.prepared, self._conversation.context_usage
        return max(0, context_usage.used - context_usage.tokens("draft") - prepared.freed) if prepared else 0

    def _prepare(self, *, inside: bool, beside: bool, needed: bool = False) -> None:
        """Prepare the next summary, where an automatic compaction may use it. `beside`: while a turn goes on. `needed`: a
        compaction waits for it."""
        if self.policy.may_start(self._conversation.context_usage, inside=inside):
            self._prefetch.prepare(inside=inside, beside=beside, needed=needed)

    # ── by hand ──

    async def run(
        self,
        preview: Preview,
        emit: Emit,
        steps: Sequence[str] | None = None,
        reason: Reason = "manual",
        summary: str | None = None,
    ) -> None:
        """Run a previewed compaction, with the named steps only where given; `summary` is a text that a person has edited. One
        that helps ends a pause of automatic ones, unless the model asked for it (`auto`)."""
        if preview.plan is None:
            await emit(Notice("info", preview.reason))
            return
        if preview.changes != tuple(c.id for c in self._conversation.ledger.changes):
            said = "The conversation has been compacted or changed since that was planned. Look again (F8)."
            await emit(Notice("info", said))
            return
        plan = await self.planner.ticked(preview.plan, steps)
        if not plan.steps:
            await emit(Notice("info", "No step was ticked: nothing was changed."))
            return
        drafted = self._drafted if summary is not None else None
        request = CompactionRequest(plan, reason, preview.instructions, summary, drafted=drafted)
        record = await self._perform(request, emit)
        if record.outcome == "compacted" and reason != "auto":
            self.policy.helped()

    async def draft(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[str, None]:
        """The summary of a previewed compaction as it is written, for a person to edit; nothing where none is needed. Changes
        nothing in the conversation. Raises ModelError."""
        self._drafted = None
        plan = await self.planner.ticked(preview.plan, steps) if preview.plan else None
        step = next((s for s in plan.steps if s.needs_summary), None) if plan else None
        if step is None or self.planner.summariser is None:
            return
        conversation, summariser = self._conversation, self.planner.summariser
        draft = SummaryDraft(conversation, summariser.model)
        written = writing(conversation, step, summariser, self.planner.options(), preview.instructions)
        try:
            async with aclosing(draft.receive_text(written)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._drafted = Drafted(draft.text, summariser.model, draft.cost_usd)

    # ── for a hook ──

    async def for_hook(self, emit: Emit, strategy: str, instructions: str) -> CompactionRecord | None:
        """Run a compaction that a hook asks for, with the target of one by hand. None where nothing can be freed, or compactions
        pause after failures. Raises UsageError for an unknown strategy."""
        await self._conversation.refresh()
        if self.policy.standing in {"waiting", "broken"}:
            return None
        plan = await self.planner.usual(strategy, self.planner.goal_by_hand())
        if plan is None:
            return None
        record = await self._automatic(CompactionRequest(plan, "hook", instructions), emit)
        if record.outcome == "compacted":
            self.policy.helped()
        return record

    # ── after an overflow ──

    def recovery(self) -> OverflowRecovery:
        """Recovery for one request that the server may refuse as too long."""
        return OverflowRecovery(self._conversation, self.planner, self._perform)

    async def close(self) -> None:
        """Stop preparing a summary."""
        await self._prefetch.close()

    async def _perform(self, request: CompactionRequest, emit: Emit) -> CompactionRecord:
        """Run a compaction; after a successful one, put in force the settings that waited for it."""
        await self.planner.refresh_inputs()  # a preview may have been open for long
        options, summariser = self.planner.options(), self.planner.summariser
        complete = partial(self._completed, emit=emit)
        record = await CompactionRun(self._conversation, request, options, summariser, complete).run(emit)
        if record.outcome == "compacted":
            self._prefetch.clear()
            self._drafted = None  # a later summary is not made of it
            if self.follow_deferred and (told := await self.follow_deferred()):
                await emit(Notice("info", told))
                await emit(self._conversation.context_usage)
        return record

    async def _completed(self, request: CompactionRequest, *, emit: Emit) -> CompactionRequest:
        """The request completed with the prepared summary and with what hooks want kept. Raises Refused where a hook does not
        allow it, unless the next model request cannot be sent without it."""
        if self.ask_hooks is None:
            return await self._prefetch.fitted(request)
        verdict = await self.ask_hooks(request.reason, request.instructions, emit)
        if (verdict.blocks or verdict.stops) and request.reason != "context_overflow":
            raise Refused(f"A hook does not allow it. {verdict.reason}".rstrip())
        instructions = "\n".join(text for text in (request.instructions, verdict.context) if text)
        return await self._prefetch.fitted(msgspec.structs.replace(request, instructions=instructions))


def planning_failed(problem: Exception) -> Notice:
    """The notice that a due compaction could not be planned: its strategy failed, or is missing."""
    text = str(problem) if isinstance(problem, CtxchatError) else f"{type(problem).__name__}: {problem}."
    return Notice("warning", f"No compaction could be planned. {text}")
