"""The next summary, made ahead so that the swap takes no model call when it is due, and fitted into a compaction when it comes.
The background work never blocks or fails a turn.

Holds the one prepared summary and trusts it no further than it fits; decides nothing about when a compaction runs.
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
"""What is prepared is added to once this share of the limit has come to it; less is enough where it would leave the window
nearer to the trigger than to the target."""

MAX_AHEAD_TOKENS = 20_000
"""Inside a turn nothing is prepared before so many tokens are left until it is needed: more than come while it is written."""

MAX_FAILURES = 2
"""Failures in a row after which none is made ahead until a compaction has succeeded: the swap makes its own."""


class Prefetch:
    """Prepares the summary of what will go next."""

    def __init__(self, conversation: Conversation, planner: Planner) -> None:
        self._conversation = conversation
        self._planner = planner
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._closed = False

    @property
    def prepared(self) -> Prepared | None:
        """The summary that stands ready and still fits."""
        state = self._conversation.state
        made = state.prepared
        if made is None or not state.deferred.keys().isdisjoint(
            made.covers
        ):  # it tells of what shall go without a word
            return None
        return made if made.is_current(state.ledger) else None

    def stands_ready(self) -> Ready:
        """Whether a compaction has a summary without waiting for one: it has to free enough to be worth it."""
        prepared, used = self.prepared, self._conversation.context_usage.used
        if prepared is not None and not too_little(used, used - prepared.freed):
            return "now"
        return "later" if self._planner.writer and (self.busy or self._may_prepare()) else "never"

    def _may_prepare(self) -> bool:
        able = self._conversation.options.prepare and self._planner.summariser is not None
        return able and not self._closed and self._failures < MAX_FAILURES

    @property
    def busy(self) -> bool:
        """One is being made."""
        return self._task is not None and not self._task.done()

    def prepare(self, plan: Plan | None = None, *, inside: bool = False, beside: bool = False) -> None:
        """Begin to make the summary of a plan, or that of the next compaction once the soft mark is passed, or to add to the one
        that stands ready what has come to it since; `inside` a turn only when it may be needed there. Not `beside` a turn that
        the same server answers. If it fails the swap makes its own."""
        if self.busy or not self._may_prepare() or (beside and self._shares_server):
            return
        context_usage, options = self._conversation.context_usage, self._conversation.options
        if inside and context_usage.used < inside_tokens(context_usage, options.micro_trigger) - MAX_AHEAD_TOKENS:
            return
        if plan or compaction_due(context_usage, options.soft_mark) in {"prepare", "compact"}:
            self._task = asyncio.create_task(self._make(plan, inside=inside))

    @property
    def _shares_server(self) -> bool:
        """Who writes is the model of the conversation on a server of one's own, which may have one place for both."""
        return self._conversation.on_own_server and self._planner.writer == self._conversation.model.name

    async def give_way(self) -> None:
        """A message is to be answered: what is being made on the same server ends, so that the answer does not wait for it."""
        if self._task is not None and self.busy and self._shares_server:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _make(self, plan: Plan | None, *, inside: bool) -> None:
        """Nobody asked for it yet, so nobody is told when it fails, whatever the fault."""
        try:
            made = await self._written(plan or await self._planner.ahead(inside=inside))
            if made is not None:  # nothing to make says nothing about whether making works
                self._failures = 0
                await self._keep(made)
        except Exception:
            self._failures += 1

    async def _keep(self, made: Prepared) -> None:
        """It outlives a restart; inside a turn it is written with what comes next."""
        conversation = self._conversation
        conversation.apply_now_write_later(made)
        if not conversation.under_way:
            with suppress(StorageError):  # then as well
                await conversation.flush()

    async def _written(self, plan: Plan | None) -> Prepared | None:
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
        """A summary of this step would stand for so much more than the one there is that it is worth a call."""
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
        """The request with the prepared summary: as it is where that makes the next request fit, since what is left can be folded
        at the next pause; else to be topped up with the rest. One that is being made is waited for where none stands ready."""
        step = next((s for s in request.plan.steps if s.needs_summary), None)
        wish = request.instructions.strip()
        if step is None or request.summary is not None or (wish and request.reason == "manual"):
            return request
        if self.prepared is None or request.reason == "manual":
            await self.wait()
        prepared = self.prepared
        if prepared is None:
            return request
        if wish:  # of the model or of a hook: it stands word for word below a record that is written already
            prepared = msgspec.structs.replace(prepared, text=f"{prepared.text}\n\n## Asked to be kept\n{wish}")
        covered, fold = set(prepared.covers), set(step.fold)
        if request.reason == "manual":  # a person has seen what goes: no more, and no less
            return msgspec.structs.replace(request, prepared=prepared) if covered <= fold else request
        as_it_is = self._folding(request.plan, step, covered)
        plan, left = await self._planner.with_summary(as_it_is, prepared.text)
        if left > self._planner.raw_budget().limit:
            plan = self._folding(request.plan, step, covered | fold)
        return msgspec.structs.replace(request, plan=plan, prepared=prepared)

    def _folding(self, plan: Plan, step: Step, names: set[str]) -> Plan:
        """The plan with these groups folded and no others. What it no longer folds stays as it is: other steps counted on its
        being folded, and would not keep its texts."""
        left_out = set(step.fold).difference(names)
        gain = self._weight(names.difference(step.fold)) - self._weight(left_out)
        fold = tuple(g.id for g in self._conversation.ledger.groups if g.id in names)
        changed = msgspec.structs.replace(step, fold=fold, tokens_freed=max(0, step.tokens_freed + gain))
        steps = [changed if s is step else _without(s, left_out) for s in plan.steps]
        return msgspec.structs.replace(plan, steps=tuple(s for s in steps if s.edits or s.fold))

    async def wait(self) -> None:
        """Until the one being made is ready, or failed. A cancel ends the waiting and not the making."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def clear(self) -> None:
        """A compaction was made, with what was prepared or without: it stays where it still fits, and frees what is left of
        it."""
        made, conversation = self.prepared, self._conversation
        self._failures = 0
        if made is not None:
            left = round(self._weight(set(made.covers)) * conversation.scale) - conversation.counter.count_text(
                made.text
            )
            conversation.apply_now_write_later(msgspec.structs.replace(made, freed=max(0, min(made.freed, left))))

    async def close(self) -> None:
        """End what is being made; no other is begun."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _without(step: Step, groups: set[str]) -> Step:
    edits = tuple(edit for edit in step.edits if groups.isdisjoint(edit.covers))
    return msgspec.structs.replace(step, edits=edits)
