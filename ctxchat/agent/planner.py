"""Plans for the conversation as it stands: strategies by name, told the options in force, and what a preview shows of them.

Decides nothing about when, and changes nothing.
"""

from __future__ import annotations

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

SUMMARY_SECONDS = 10.0
"""What a summary takes, as far as anybody can say before."""

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
    """Makes plans for one conversation. `writer` names the model that would write summaries, empty for code."""

    def __init__(self, conversation: Conversation, registry: Registry = builtin_strategies, writer: str = "") -> None:
        self._talk = conversation
        self._registry = registry
        self._writer = writer
        self._memory = Memory()

    def plan(
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
        name = name or self._talk.options.strategy
        registry = self._registry(self.options(keep_recent, keep_turns, clip_current=clip_current))
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

    def ticked(self, plan: Plan, names: Sequence[str]) -> Plan:
        """The plan with the named steps only. A pipeline plans anew: its steps build on the ones before."""
        unticked = [s.name for s in plan.steps if s.name not in names]
        strategy = self._registry(self.options(plan.keep_recent)).get(plan.strategy)
        if unticked and isinstance(strategy, Pipeline):
            budget = msgspec.structs.replace(self.raw_budget(), target=plan.after)
            plan = strategy.without(*unticked).plan(self._talk.view, self._talk.ledger, budget) or plan
        return msgspec.structs.replace(plan, steps=tuple(s for s in plan.steps if s.name in names))

    def preview(
        self, instructions: str = "", keep_recent: int | None = None, strategy: str = "", target: float | None = None
    ) -> Preview:
        """What freeing up context would do now."""
        talk, figures = self._talk, self._talk.figures
        used = figures.used - figures.tokens("draft")
        goal = target if target is not None else self.goal_by_hand()
        plan = self.plan(strategy, keep_recent=keep_recent, target=goal)
        if plan is None:
            return Preview(figures, used, (), None, reason=nothing_to_free(figures), instructions=instructions)
        groups = [talk.ledger.group(g) for g in plan.covers]
        writes = any(s.needs_summary for s in plan.steps)
        return Preview(
            before=figures,
            after_used=max(0, used - round((plan.before - plan.after) * talk.scale)),
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
            seconds=SUMMARY_SECONDS if writes and self._writer else 0.1,
            model=self._writer,
            other_provider=bool(self._writer) and self._writer.split("/")[0] != talk.model.name.split("/")[0],
            cache_lost=talk.state.cached,
            instructions=instructions,
        )


def nothing_to_free(figures: Figures) -> str:
    """Why there is nothing to do, calmly."""
    used = figures.used - figures.tokens("draft")
    if not used:
        return "Nothing to free: the conversation is empty."
    share = figures.tokens("system") + figures.tokens("tools")
    return f"Nothing to free: system and tools hold {share:,} of {used:,} tokens. F4 shows the parts."
