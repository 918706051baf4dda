"""Plans for the conversation as it stands: strategies by name, told the options in force, and what a preview shows of them.

Decides nothing about when, and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.preview import Preview, PreviewStep
from ctxchat.core.budget import Budget
from ctxchat.core.errors import UsageError
from ctxchat.core.evidence import Memory, collect
from ctxchat.core.figures import Figures
from ctxchat.core.strategies.base import Plan, Strategy
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.ground import PlanOptions
from ctxchat.core.strategies.pipeline import Pipeline

Registry = Callable[[PlanOptions], Mapping[str, Strategy]]
"""Every strategy by name, made with these options; plug-ins add theirs."""

Prices = Callable[[str, int, int], float]
"""What a call costs in US dollars, by model, prompt tokens and output tokens; 0 where nobody knows."""

SUMMARY_SECONDS = 10.0
"""What a summary takes, as far as anybody can say before the first."""

LABELS = {
    "drop_superseded": "older results of the same file or command",
    "shrink_tool_results": "old tool results to one line, text kept on disk",
    "strip_reasoning": "old reasoning",
    "oversize": "very long messages to head and tail, text kept on disk",
    "summarize": "summary of the older part",
    "truncate": "recap of the older part, by code",
    "sliding_window": "recap of all but the last turns",
    "drop_tool_calls": "old tool calls, whole",
    "token_budget": "oldest messages until it fits",
}


class Planner:
    """Makes plans for one conversation, off the event loop. `writer` names the model that would write summaries, empty for
    code."""

    def __init__(
        self,
        conversation: Conversation,
        registry: Registry = builtin_strategies,
        writer: str = "",
        prices: Prices | None = None,
    ) -> None:
        self._talk = conversation
        self._registry = registry
        self._prices = prices
        self._memory = Memory()
        self.writer = writer

    async def plan(
        self,
        name: str = "",
        *,
        keep_recent: int | None = None,
        keep_turns: int | None = None,
        clip_current: bool = False,
        target: float | None = None,
    ) -> Plan | None:
        """What a strategy (the usual one without a name) would do with the view as last compiled, None for nothing.

        `keep_recent` in messages, `keep_turns` in turns, `target` as a share of the limit; None for the usual. Raises
        UsageError for a name nobody has.
        """
        options = self.options(keep_recent, keep_turns, clip_current=clip_current)
        return await asyncio.to_thread(self._plan, name or self._talk.options.strategy, options, target)

    def _plan(self, name: str, options: PlanOptions, target: float | None) -> Plan | None:
        registry = self._registry(options)
        if name not in registry:
            raise UsageError(f"There is no strategy {name!r}.", f"There are: {', '.join(sorted(registry))}.")
        return registry[name].plan(self._talk.view, self._talk.ledger, self.raw_budget(target))

    def options(
        self, keep_recent: int | None = None, keep_turns: int | None = None, *, clip_current: bool = False
    ) -> PlanOptions:
        """What strategies are told, from the options in force."""
        options, usual = self._talk.options, PlanOptions()
        return PlanOptions(
            meter=self._talk.meter,
            memory=self._memory,
            keep_recent=options.keep_recent if keep_recent is None else keep_recent,
            keep_turns=usual.keep_turns if keep_turns is None else keep_turns,
            clip_current=clip_current,
            summary_tokens=options.summary_max_tokens,
            micro_batch_groups=options.micro_batch_groups,
            preserve_recent_rounds=options.preserve_recent_rounds,
        )

    def raw_budget(self, target: float | None = None) -> Budget:
        """The budget in the view's raw tokens; `target` as a share of the limit where it is not the usual one."""
        budget, scale = self._talk.budget, self._talk.scale
        goal = budget.target if target is None else int(budget.limit * target)
        return msgspec.structs.replace(
            budget,
            window=msgspec.structs.replace(budget.window, tokens=int(budget.window.tokens / scale)),
            reserved=int(budget.reserved / scale),
            trigger=int(budget.trigger / scale),
            target=int(goal / scale),
        )

    def goal_by_hand(self) -> float:
        """How far down a pass goes that somebody asked for, as a share of the limit: further than the window alone demands,
        to the target, or to half of what is used where that is less."""
        figures = self._talk.figures
        return min(self._talk.options.target, (figures.used - figures.tokens("draft")) / figures.limit / 2)

    async def ticked(self, plan: Plan, names: Sequence[str]) -> Plan:
        """The plan with the named steps only. A pipeline plans anew: its steps build on the ones before."""
        return await asyncio.to_thread(self._ticked, plan, names)

    def _ticked(self, plan: Plan, names: Sequence[str]) -> Plan:
        unticked = [s.name for s in plan.steps if s.name not in names]
        strategy = self._registry(self.options(plan.keep_recent)).get(plan.strategy)
        if unticked and isinstance(strategy, Pipeline):
            budget = msgspec.structs.replace(self.raw_budget(), target=plan.after)
            plan = strategy.without(*unticked).plan(self._talk.view, self._talk.ledger, budget) or plan
        return msgspec.structs.replace(plan, steps=tuple(s for s in plan.steps if s.name in names))

    async def preview(
        self, instructions: str = "", keep_recent: int | None = None, strategy: str = "", target: float | None = None
    ) -> Preview:
        """What freeing up context would do now. Raises UsageError for a strategy nobody has."""
        goal = target if target is not None else self.goal_by_hand()
        plan = await self.plan(strategy, keep_recent=keep_recent, target=goal)
        return await asyncio.to_thread(self._drawn, plan, instructions)

    def _drawn(self, plan: Plan | None, instructions: str) -> Preview:
        talk, figures = self._talk, self._talk.figures
        used = figures.used - figures.tokens("draft")
        if plan is None:
            return Preview(figures, used, (), None, reason=nothing_to_free(figures), instructions=instructions)
        groups = [talk.ledger.group(g) for g in plan.covers]
        seconds, cost = self._price(plan)
        return Preview(
            before=figures,
            after_used=self.after_used(plan),
            steps=tuple(
                PreviewStep(
                    s.name, LABELS.get(s.name, s.name), round(s.tokens_freed * talk.scale), s.groups, s.needs_summary
                )
                for s in plan.steps
            ),
            plan=plan,
            keep_recent=plan.keep_recent,
            pinned=len(talk.ledger.pinned),
            facts=len(collect(groups, None, self._memory.facts_of).facts),
            seconds=seconds,
            cost_usd=cost,
            model=self.writer,
            other_provider=bool(self.writer) and self.writer.split("/")[0] != talk.model.name.split("/")[0],
            cache_lost=talk.state.cached,
            instructions=instructions,
            changes=tuple(c.id for c in talk.ledger.changes),
        )

    def after_used(self, plan: Plan) -> int:
        """Where the gauge would stand after a plan."""
        figures = self._talk.figures
        freed = round((plan.before - plan.after) * self._talk.scale)
        return max(0, figures.used - figures.tokens("draft") - freed)

    def _price(self, plan: Plan) -> tuple[float, float]:
        """Seconds and US dollars that a plan's summary takes, as far as can be said: by the last one, and by the price list."""
        steps = [s for s in plan.steps if s.needs_summary]
        if not steps or not self.writer:
            return 0.1, 0.0
        records = [c.record for c in self._talk.ledger.compactions if c.record and c.record.attempts]
        seconds = records[-1].seconds if records else SUMMARY_SECONDS
        folded = {name for s in steps for name in s.fold}
        read = sum(item.tokens for item in self._talk.view.items if item.group in folded)
        written = sum(s.summary_tokens for s in steps)
        return seconds, self._prices(self.writer, read + written, written) if self._prices else 0.0


def nothing_to_free(figures: Figures) -> str:
    """Why there is nothing to do, calmly."""
    used = figures.used - figures.tokens("draft")
    if not used:
        return "Nothing to free: the conversation is empty."
    share = figures.tokens("system") + figures.tokens("tools")
    return f"Nothing to free: system and tools hold {share:,} of {used:,} tokens. F4 shows the parts."
