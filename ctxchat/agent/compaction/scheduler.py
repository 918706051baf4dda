"""Which compaction is due now, before a request or between the rounds of a turn, and with what strategy. Runs none."""

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
"""Whether a summary stands ready, can be made beside the conversation, or is only made when a compaction asks for it."""

Decision = CompactionRequest | Literal["wait"] | None
"""The compaction that is due: to be made now, once its summary is written beside the conversation, or not at all."""


class Scheduler:
    """Compactions that start by themselves, for one conversation."""

    def __init__(self, conversation: Conversation, planner: Planner, policy: AutoCompactPolicy) -> None:
        self._conversation = conversation
        self._planner = planner
        self._policy = policy
        self._inside = (0, 0)  # the turn, and how many compactions there were inside it
        self._window_before = 0  # of the last request, once another model is to have the next one

    def switched(self) -> None:
        """Another model than that of the last request is to have the next one; said before the gauge is measured for it."""
        self._window_before = self._window_before or self._conversation.context_usage.window

    def room_made(self) -> None:
        """Room was made for the model in force: what comes now is no longer due to a switch."""
        self._window_before = 0

    def reason(self, otherwise: Reason) -> Reason:
        """Why a compaction is made now: for a model with a smaller window than the one of the last request, else `otherwise`."""
        return "model_switch" if self._conversation.context_usage.window < self._window_before else otherwise

    def what_is_due(self, context_usage: ContextUsage, *, inside: bool) -> Due:
        """What is due: inside a turn the marks for that decide, since it is not to be interrupted for less."""
        options = self._conversation.options
        standing = compaction_due(context_usage, options.soft_mark)
        if not inside or standing == "overhead":
            return standing
        if context_usage.used >= inside_tokens(context_usage, options.micro_trigger):
            return "compact"
        return "prepare" if standing == "compact" else standing

    async def decide(self, context_usage: ContextUsage, *, inside: bool, ready: Ready = "never") -> Decision:
        """What is to be done now that a compaction is due; None where nothing may or can be done."""
        conversation = self._conversation
        if conversation.automatic.few or not self._policy.may_start(context_usage, inside=inside):
            return None
        if inside:
            return await self._inside_turn(context_usage, ready)
        plan = None if conversation.by_hook else await self._planner.usual()
        if plan is None:
            return None
        if self.can_wait(plan, context_usage, ready):
            return "wait"
        if ready == "later" and self._asks_model(plan):
            plan = await self._quick(self._planner.raw_budget().limit) or plan
        return CompactionRequest(plan, self.reason("auto"))

    def can_wait(self, plan: Plan, context_usage: ContextUsage, ready: Ready) -> bool:
        """The summary of a plan can be written beside the conversation, and the next request fits without it: nobody waits."""
        return ready == "later" and self._asks_model(plan) and fits(context_usage)

    async def _quick(self, enough: int) -> Plan | None:
        """Long results cut, by code, where that leaves at most so many raw tokens: room while a summary is written."""
        plan = await self._planner.usual("shrink_tool_results")
        return plan if plan and plan.after <= enough else None

    def _asks_model(self, plan: Plan) -> bool:
        return bool(self._planner.writer) and any(step.needs_summary for step in plan.steps)

    async def _inside_turn(self, context_usage: ContextUsage, ready: Ready) -> Decision:
        """The compaction between two rounds. Where recaps free too little, what fills the window stands in the newest rounds: too
        long a text, or a call's arguments."""
        options, turn = self._conversation.options, self._conversation.ledger.turn
        if ready == "later":
            as_it_is, budget = fits(context_usage), self._planner.raw_budget()
            if quick := await self._quick(budget.halfway if as_it_is else budget.limit):
                return CompactionRequest(quick, self.reason("reactive_micro"))
            if as_it_is:
                return "wait"
        reason: Reason = "reactive_full" if context_usage.pressure >= options.full_trigger else "reactive_micro"
        strategy: str = reason
        made = self._inside[1] if self._inside[0] == turn else 0
        if made >= options.reactive_per_turn and ready != "now":  # but a request that cannot fit must not go out
            if fits(context_usage):
                return None
            strategy, reason = "reactive_full", "context_overflow"
        by_model = self._policy.standing == "free" and reason != "context_overflow"  # an emergency asks no model
        for name in (strategy, "oversize"):
            plan = await self._planner.plan(name, by_model=by_model)
            if plan is not None and not too_little(plan.before, plan.after):
                self._inside = (turn, made + 1)
                return CompactionRequest(plan, self.reason(reason))
        return None

    async def suggestion(self, context_usage: ContextUsage) -> CompactionSuggested | None:
        """A question to the person, where they want to be asked and a compaction would help."""
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
        """The conversation is longer than the whole window of a model whose window is known: in every mode it must be cut."""
        context_usage = self._conversation.context_usage
        if context_usage.window_source == "assumed" or overhead(context_usage) >= context_usage.trigger_tokens:
            return False
        return context_usage.used > context_usage.window
