"""Writes the next summary in the background, so that nobody waits for it, and fits it into a compaction when one runs. This never
blocks a turn or makes it fail.

Holds the one prepared summary, which is used as far as it still fits; does not decide when a compaction runs.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import msgspec

from ctxchat.agent.compaction.dry_run import look_ahead
from ctxchat.agent.compaction.planner import Planner
from ctxchat.agent.compaction.run import CompactionRequest, SummaryDraft, shorter, writing
from ctxchat.agent.compaction.scheduler import Ready
from ctxchat.agent.conversation import Conversation
from ctxchat.core.context_usage import compaction_due, inside_tokens
from ctxchat.core.errors import StorageError
from ctxchat.core.journal import Spent
from ctxchat.core.prepared import Prepared, bearing
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.summaries import too_little, too_long

MIN_ADDED_SHARE, MIN_NEEDED_SHARE = 0.3, 0.1
"""A prepared summary is extended when it could cover so much more, as a share of the limit; the smaller share counts where the
prepared one would leave the window nearer to the trigger than to the target."""

MAX_AHEAD_TOKENS = 20_000
"""Inside a turn a summary is prepared once only so many tokens are left until it is needed: more than come while it is
written."""

MAX_FAILURES = 2
"""Failures in a row after which none is prepared until a compaction has succeeded; compactions then write their own."""


class Prefetch:
    """Prepares the summary of the next compaction."""

    def __init__(self, conversation: Conversation, planner: Planner) -> None:
        self._conversation = conversation
        self._planner = planner
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._closed = False

    @property
    def prepared(self) -> Prepared | None:
        """The prepared summary, where there is one that still fits."""
        state = self._conversation.state
        summary = state.prepared
        if summary is None or not state.deferred.keys().isdisjoint(
            summary.covers
        ):  # it covers something that the person wants dropped
            return None
        return summary if summary.is_current(state.ledger) else None

    def stands_ready(self) -> Ready:
        """Whether a compaction has a prepared summary that frees enough, or one can be written in the background."""
        prepared, used = self.prepared, self._conversation.context_usage.used
        if prepared is not None and not too_little(used, used - prepared.freed):
            return "now"
        return "later" if self._planner.writer and (self.busy or self._may_prepare()) else "never"

    def _may_prepare(self) -> bool:
        able = self._conversation.options.prepare and self._planner.summariser is not None
        return able and not self._closed and self._failures < MAX_FAILURES

    @property
    def busy(self) -> bool:
        """Whether one is being written."""
        return self._task is not None and not self._task.done()

    def prepare(
        self, plan: Plan | None = None, *, inside: bool = False, beside: bool = False, needed: bool = False
    ) -> None:
        """Begin to write the summary of a plan, or without one that of the next compaction once the soft mark is passed, or to
        extend the prepared one. `inside` a turn only when it may be needed there. `beside` a turn only where another server
        answers that. `needed`: a compaction waits for it. Where it fails, the compaction writes its own."""
        if self.busy or not self._may_prepare() or (beside and self._shares_server):
            return
        context_usage, options = self._conversation.context_usage, self._conversation.options
        if inside and context_usage.used < inside_tokens(context_usage, options.micro_trigger) - MAX_AHEAD_TOKENS:
            return
        if plan or compaction_due(context_usage, options.soft_mark) in {"prepare", "compact"}:
            self._task = asyncio.create_task(self._make(plan, inside=inside, needed=needed))

    @property
    def _shares_server(self) -> bool:
        """Whether the writer is the conversation's model on a local server, which may do one request at a time."""
        return self._conversation.on_own_server and self._planner.writer == self._conversation.model.name

    async def give_way(self) -> None:
        """End what is being written on the server that has to answer a message now."""
        if self._task is not None and self.busy and self._shares_server:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self, plan: Plan | None, *, inside: bool, needed: bool) -> None:
        """Write and keep it. Nobody asked for it yet, so a failure is counted and not told."""
        try:
            summary = await self._written(plan or await self._planner.ahead(inside=inside, needed=needed))
            if summary is not None:  # that there was nothing to write tells nothing about failures
                self._failures = 0
                await self._keep(summary)
        except Exception:
            self._failures += 1

    async def _keep(self, summary: Prepared) -> None:
        """Record it, so that it outlives a restart; inside a turn it is written with the next records."""
        conversation = self._conversation
        conversation.apply_now_write_later(summary)
        if not conversation.under_way:
            with suppress(StorageError):  # then it is written with the next records, too
                await conversation.flush()

    async def _written(self, plan: Plan | None) -> Prepared | None:
        """Write the summary of a plan ahead, or extend the one that is prepared. None where the plan needs none, where that would
        add too little or cost more than `prepare_cost`, and where the summary came out far too long."""
        conversation, summariser, options = self._conversation, self._planner.summariser, self._planner.options()
        step = next((s for s in plan.steps if s.needs_summary), None) if plan else None
        if plan is None or step is None or summariser is None:
            return None
        before = self.prepared
        if before is not None and not self._adds(step, before):
            return None
        due = compaction_due(conversation.context_usage) == "compact"
        if not due and self._planner.cost_of(plan) > conversation.options.prepare_cost:
            return None
        if before is not None and not set(before.covers) <= set(step.fold):
            before = None
        changes = bearing(conversation.ledger)
        freed = (
            conversation.context_usage.used
            - conversation.context_usage.tokens("draft")
            - self._planner.after_used(plan)
        )
        await look_ahead(options.memory, conversation.ledger, step.fold)
        draft = SummaryDraft(conversation, summariser.model)
        async with aclosing(
            draft.receive_text(writing(conversation, step, summariser, options, prepared=before))
        ) as pieces:
            async for _ in pieces:
                pass
        whole, more = draft.text, 0.0
        if too_long(whole, step.summary_tokens, conversation.counter.count_text):
            whole, more = await shorter(whole, step.summary_tokens, summariser, conversation.counter.count_text)
            if more:
                conversation.apply_now_write_later(Spent(summariser.model, more, "summaries"))
        if conversation.counter.count_text(whole) > 2 * step.summary_tokens:
            return None
        paid = draft.cost_usd + more + (before.cost_usd if before else 0.0)
        return Prepared(step.fold, changes, whole, max(0, freed), paid) if whole else None

    def _adds(self, step: Step, before: Prepared) -> bool:
        """Whether a summary of this step covers so much more than the one there is that it is worth a call."""
        more = set(step.fold).difference(before.covers)
        context_usage = self._conversation.context_usage
        left = max(context_usage.used, context_usage.trigger_tokens) - before.freed
        needed = left > (context_usage.trigger_tokens + context_usage.target_tokens) / 2
        share = MIN_NEEDED_SHARE if needed else MIN_ADDED_SHARE
        return self._weight(more) >= self._conversation.budget.limit * share

    def _weight(self, groups: set[str]) -> int:
        """Tokens of these groups in the view."""
        return sum(item.tokens for item in self._conversation.view.items if item.group in groups)

    async def fitted(self, request: CompactionRequest) -> CompactionRequest:
        """The request with the prepared summary: unchanged where that makes the next request fit (the rest can be folded at the
        next pause), else to be extended. Waits for one that is being written where none is ready."""
        step = next((s for s in request.plan.steps if s.needs_summary), None)
        keep_words = request.instructions.strip()
        if step is None or request.summary is not None or (keep_words and request.reason == "manual"):
            return request
        if self.prepared is None or request.reason == "manual":
            await self.wait()
        prepared = self.prepared
        if prepared is None:
            return request
        if keep_words:  # of the model or a hook: it is put word for word below the finished summary
            prepared = msgspec.structs.replace(prepared, text=f"{prepared.text}\n\n## Asked to be kept\n{keep_words}")
        covered, fold = set(prepared.covers), set(step.fold)
        if request.reason == "manual":  # exactly what the person has seen in the preview
            return msgspec.structs.replace(request, prepared=prepared) if covered <= fold else request
        smaller_plan = self._folding(request.plan, step, covered)
        plan, left = await self._planner.with_summary(smaller_plan, prepared.text)
        if left > self._planner.raw_budget().limit:
            plan = self._folding(request.plan, step, covered | fold)
        return msgspec.structs.replace(request, plan=plan, prepared=prepared)

    def _folding(self, plan: Plan, step: Step, names: set[str]) -> Plan:
        """The plan with exactly these groups folded. Edits of groups that are no longer folded are left out: their texts were not
        kept, since the groups were to be folded."""
        left_out = set(step.fold).difference(names)
        gain = self._weight(names.difference(step.fold)) - self._weight(left_out)
        fold = tuple(g.id for g in self._conversation.ledger.groups if g.id in names)
        changed = msgspec.structs.replace(step, fold=fold, tokens_freed=max(0, step.tokens_freed + gain))
        steps = [changed if s is step else _without(s, left_out) for s in plan.steps]
        return msgspec.structs.replace(plan, steps=tuple(s for s in steps if s.edits or s.fold))

    async def wait(self) -> None:
        """Wait until the one being written is ready or failed. A cancel ends the waiting, not the writing."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def clear(self) -> None:
        """After a compaction: a prepared summary that still fits stays, with the tokens that it frees now."""
        summary, conversation = self.prepared, self._conversation
        self._failures = 0
        if summary is not None:
            left = round(self._weight(set(summary.covers)) * conversation.scale) - conversation.counter.count_text(
                summary.text
            )
            conversation.apply_now_write_later(msgspec.structs.replace(summary, freed=max(0, min(summary.freed, left))))

    async def close(self) -> None:
        """End what is being written; no other is begun."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _without(step: Step, groups: set[str]) -> Step:
    edits = tuple(edit for edit in step.edits if groups.isdisjoint(edit.covers))
    return msgspec.structs.replace(step, edits=edits)
