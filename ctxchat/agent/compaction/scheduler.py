"""Decides which compaction is due now, before a request or between the rounds of a turn, and with which strategy. Runs none."""

from __future__ import annotations

from typing import Literal

from ctxchat.agent.compaction.planner import Planner
from ctxchat.agent.compaction.policy import AutoCompactPolicy
from ctxchat.agent.compaction.run import CompactionRequest
from ctxchat.agent.conversation import Conversation
from ctxchat.core.context_usage import ContextUsage, Due, compaction_due, fits, inside_tokens, overhead
from ctxchat.core.events import CompactionSuggested
from ctxchat.core.record import Reason
from ctxchat.core.strategies.base import Plan
from ctxchat.core.summaries import too_little

Ready = Literal["now", "later", "never"]
"""When a summary is there: it is prepared (`now`), can be written in the background (`later`), or only when a compaction runs."""

Decision = CompactionRequest | Literal["wait"] | None
"""What to do about a compaction that is due: run it, wait for its summary to be written in the background, or nothing."""


class Scheduler:
    """Decides about the automatic compactions of one conversation."""

    def __init__(self, conversation: Conversation, planner: Planner, policy: AutoCompactPolicy) -> None:
        self._conversation = conversation
        self._planner = planner
        self._policy = policy
        self._inside = (0, 0)  # a turn, and the number of compactions inside it
        self._window_before = 0  # window of the last request's model, once another model gets the next one

    def switched(self) -> None:
        """Note that another model gets the next request. Called before the gauge is measured for it."""
        self._window_before = self._window_before or self._conversation.context_usage.window

    def room_made(self) -> None:
        """Note that room was made for the model in force: later compactions are not due to a switch."""
        self._window_before = 0

    def reason(self, otherwise: Reason) -> Reason:
        """The reason for a compaction now: a switch to a model with a smaller window, or else `otherwise`."""
        return "model_switch" if self._conversation.context_usage.window < self._window_before else otherwise

    def what_is_due(self, context_usage: ContextUsage, *, inside: bool) -> Due:
        """What is due. Inside a turn its own, higher marks decide: it is not interrupted for less."""
        options = self._conversation.options
        standing = compaction_due(context_usage, options.soft_mark)
        if not inside or standing == "overhead":
            return standing
        if context_usage.used >= inside_tokens(context_usage, options.micro_trigger):
            return "compact"
        return "prepare" if standing == "compact" else standing

    async def decide(self, context_usage: ContextUsage, *, inside: bool, ready: Ready = "never") -> Decision:
        """What to do now that a compaction is due; None where none may run, or none would help."""
        conversation = self._conversation
        if conversation.automatic.few or not self._policy.may_start(context_usage, inside=inside):
            return None
        if inside:
            return await self._inside_turn(context_usage, ready)
        plan = None if conversation.by_hook else await self._planner.usual()
        if plan is None:
            return None
        if ready != "now" and self._asks_model(plan):
            plan = await self._planner.by_code() or plan
        if self.can_wait(plan, context_usage, ready):
            return "wait"
        if ready == "later" and self._asks_model(plan):
            plan = await self._quick(self._planner.raw_budget().limit) or plan
        return CompactionRequest(plan, self.reason("auto"))

    def can_wait(self, plan: Plan, context_usage: ContextUsage, ready: Ready) -> bool:
        """Whether the plan's summary can be written in the background, because the next request fits without it."""
        return ready == "later" and self._asks_model(plan) and fits(context_usage)

    async def _quick(self, enough: int) -> Plan | None:
        """A plan that only cuts long results, by code; None where it leaves more than `enough` raw tokens."""
        plan = await self._planner.usual("shrink_tool_results")
        return plan if plan and plan.after <= enough else None

    def _asks_model(self, plan: Plan) -> bool:
        return bool(self._planner.writer) and any(step.needs_summary for step in plan.steps)

    async def _inside_turn(self, context_usage: ContextUsage, ready: Ready) -> Decision:
        """The compaction between two rounds. Where folding older rounds frees too little, the newest ones fill the window: then
        long texts and arguments in them are cut."""
        options, turn = self._conversation.options, self._conversation.ledger.turn
        if ready == "later":
            request_fits, budget = fits(context_usage), self._planner.raw_budget()
            if quick := await self._quick(budget.halfway if request_fits else budget.limit):
                return CompactionRequest(quick, self.reason("reactive_micro"))
            if request_fits:
                return "wait"
        reason: Reason = "reactive_full" if context_usage.pressure >= options.full_trigger else "reactive_micro"
        strategy: str = reason
        count = self._inside[1] if self._inside[0] == turn else 0
        if count >= options.reactive_per_turn and ready != "now":  # but a request that cannot fit must not go out
            if fits(context_usage):
                return None
            strategy, reason = "reactive_full", "context_overflow"
        by_model = self._policy.standing == "free" and reason != "context_overflow"  # an emergency asks no model
        for name in (strategy, "oversize"):
            plan = await self._planner.plan(name, by_model=by_model)
            if plan is not None and not too_little(plan.before, plan.after):
                self._inside = (turn, count + 1)
                return CompactionRequest(plan, self.reason(reason))
        return None

    async def suggestion(self, context_usage: ContextUsage) -> CompactionSuggested | None:
        """The question to the person whether to compact; None where they do not want to be asked, or it would not help."""
        if (
            compaction_due(context_usage) != "compact"
            or self._conversation.automatic.few
            or not self._policy.may_ask(context_usage)
        ):
            return None
        plan = await self._planner.usual()
        if plan is None or not self._policy.once_a_turn():
            return None
        return CompactionSuggested(
            context_usage.used, context_usage.limit, context_usage.pressure, self._planner.after_used(plan)
        )

    def too_long(self) -> bool:
        """Whether the conversation is longer than the known window of the model: then it must be cut in every mode."""
        context_usage = self._conversation.context_usage
        if context_usage.window_source == "assumed" or overhead(context_usage) >= context_usage.trigger_tokens:
            return False
        return context_usage.used > context_usage.window
