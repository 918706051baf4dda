"""When to make room and how: the triggers before a request, by hand, and what a preview shows. `passes` carries it out.

Knows figures, plans and consent; no provider and no screen.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.guard import Guard
from ctxchat.agent.passes import Order, Pass
from ctxchat.agent.preview import Preview, PreviewStep
from ctxchat.agent.rescue import Rescue
from ctxchat.core.budget import Budget
from ctxchat.core.errors import UsageError
from ctxchat.core.events import CompactionFinished, Event, Notice
from ctxchat.core.evidence import Memory, collect
from ctxchat.core.figures import Figures
from ctxchat.core.ports import Summariser
from ctxchat.core.record import Reason
from ctxchat.core.strategies.base import Plan, Strategy
from ctxchat.core.strategies.builtin import strategies
from ctxchat.core.strategies.ground import PlanOptions
from ctxchat.core.strategies.pipeline import Pipeline
from ctxchat.core.triggers import OVERHEAD, due, overhead

Registry = Callable[[PlanOptions], Mapping[str, Strategy]]
"""Every strategy by name, made with these options; plug-ins add theirs."""

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


class Compactor:
    """Makes room for one conversation, one pass at a time."""

    def __init__(
        self, conversation: Conversation, *, summariser: Summariser | None = None, registry: Registry = strategies
    ) -> None:
        self._talk = conversation
        self._summariser = summariser
        self._registry = registry
        self._memory = Memory()
        self._guard = Guard()
        self._reactive = (0, 0)  # the turn, and how many passes there were inside it
        self._told = 0  # the turn in which overhead or consent was last talked about

    # ── before a request ──

    async def make_room(self, rounds: int) -> AsyncGenerator[Event, None]:
        """Measure, and compact where it is due. `rounds` is how many model calls this turn has made."""
        figures = await self._talk.refresh()
        yield figures
        standing = due(figures)
        if standing == "overhead":
            for notice in self._about_overhead(figures):
                yield notice
            return
        order = self._order(figures, rounds) if standing == "compact" else None
        if order is None:
            for notice in self._about_waiting(figures) if standing == "compact" else ():
                yield notice
            return
        async with aclosing(self._automatic(order)) as events:
            async for event in events:
                yield event

    def _order(self, figures: Figures, rounds: int) -> Order | None:
        """The pass that is due now, None where nothing may or can be done."""
        options, talk = self._talk.options, self._talk
        if options.consent != "auto" or len(talk.view.items) < options.min_messages:
            return None
        if self._guard.standing(talk.clock.seconds()) != "free":
            return None
        turn, passes = self._reactive if self._reactive[0] == talk.ledger.turn else (talk.ledger.turn, 0)
        reason: Reason = "auto"
        name = options.strategy
        if rounds:
            if figures.pressure < options.micro_trigger:
                return None
            if passes < options.reactive_per_turn:
                reason = "reactive_full" if figures.pressure >= options.full_trigger else "reactive_micro"
                name = reason
                self._reactive = (turn, passes + 1)
            elif figures.pressure < options.full_trigger:
                return None
            else:
                name = "reactive_full"  # past the cap, but a request that cannot fit must not go out
        plan = self.plan(name)
        return Order(plan, reason) if plan else None

    async def _automatic(self, order: Order) -> AsyncGenerator[Event, None]:
        async with aclosing(self._perform(order)) as events:
            async for event in events:
                yield event
                if isinstance(event, CompactionFinished):
                    for notice in self._learn(event):
                        yield notice

    def _learn(self, result: CompactionFinished) -> Sequence[Notice]:
        """What the guard makes of a pass, and what the user is told of it."""
        now = self._talk.clock.seconds()
        if result.outcome == "compacted":
            self._guard = self._guard.helped(self._talk.ledger.turn)
            if self._guard.standing(now) == "thrashing":
                advice = "Raise context.compression_trigger, use a larger window, or free up by hand (F8)."
                return (Notice("warning", f"The window fills again right after each compaction. {advice}"),)
            return ()
        self._guard = self._guard.failed(now)
        if self._guard.standing(now) == "broken":
            return (Notice("warning", f"{result.detail} Three passes failed: the next one is yours (F8)."),)
        minutes = max(1, round(Guard.wait(self._guard.failures) / 60))
        return (Notice("warning", f"{result.detail} Next try in {minutes} min, or F8."),)

    def _about_overhead(self, figures: Figures) -> Sequence[Notice]:
        if self._told == self._talk.ledger.turn:
            return ()
        self._told = self._talk.ledger.turn
        parts = sorted(((figures.tokens(n), n) for n in OVERHEAD), reverse=True)
        biggest = ", ".join(f"{name} {tokens:,}" for tokens, name in parts[:3] if tokens)
        text = f"Compaction would be in vain: {overhead(figures):,} tokens cannot be compacted ({biggest})."
        return (Notice("warning", f"{text} Fewer tools or shorter memory files make room."),)

    def _about_waiting(self, figures: Figures) -> Sequence[Notice]:
        if self._talk.options.consent == "auto" or self._told == self._talk.ledger.turn:
            return ()
        self._told = self._talk.ledger.turn
        return (
            Notice(
                "info", f"The window is {figures.pressure:.0%} full. F8 frees up context; nothing is done by itself."
            ),
        )

    # ── by hand ──

    def plan(
        self,
        name: str,
        *,
        keep_recent: int | None = None,
        keep_turns: int | None = None,
        clip_current: bool = False,
        target: float | None = None,
    ) -> Plan | None:
        """What a strategy would do with the view as last compiled, None for nothing.

        `keep_recent` in messages, `keep_turns` in turns, `target` as a share of the limit; None for the usual. Raises
        UsageError for a name nobody has.
        """
        options = self.options(keep_recent, keep_turns, clip_current=clip_current)
        strategies = self._registry(options)
        if name not in strategies:
            raise UsageError(f"There is no strategy {name!r}.", f"There are: {', '.join(sorted(strategies))}.")
        return strategies[name].plan(self._talk.view, self._talk.ledger, self.raw_budget(target))

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

    async def preview(
        self,
        instructions: str = "",
        keep_recent: int | None = None,
        strategy: str = "",
        target: float | None = None,
    ) -> Preview:
        """What freeing up context would do now. Pressed by hand it goes further down than the window alone demands:
        to the target, or to half of what is used where that is less."""
        talk = self._talk
        figures = await talk.refresh()
        used = figures.used - figures.tokens("draft")
        goal = target if target is not None else min(talk.options.target, used / figures.limit / 2)
        plan = self.plan(strategy or talk.options.strategy, keep_recent=keep_recent, target=goal)
        if plan is None:
            return Preview(figures, used, (), None, reason=_nothing(figures), instructions=instructions)
        scale = talk.scale
        groups = [talk.ledger.group(g) for g in plan.covers]
        writer = self._summariser.model if self._summariser else ""
        return Preview(
            before=figures,
            after_used=max(0, used - round((plan.before - plan.after) * scale)),
            steps=tuple(
                PreviewStep(
                    s.name, LABELS.get(s.name, s.name), round(s.tokens_freed * scale), s.groups, s.needs_summary
                )
                for s in plan.steps
            ),
            plan=plan,
            keep_recent=plan.keep_recent,
            pinned=len(talk.ledger.pinned),
            facts=len(collect(groups).facts),
            seconds=10.0 if writer and any(s.needs_summary for s in plan.steps) else 0.1,
            model=writer,
            other_provider=bool(writer) and writer.split("/")[0] != talk.model.name.split("/")[0],
            cache_lost=talk.state.cached,
            instructions=instructions,
        )

    async def run(
        self,
        preview: Preview,
        steps: Sequence[str] | None = None,
        reason: Reason = "manual",
        summary: str | None = None,
    ) -> AsyncGenerator[Event, None]:
        """A previewed pass, only the named steps of it where given. One that helps closes the breaker."""
        if preview.plan is None:
            yield Notice("info", preview.reason)
            return
        plan = preview.plan if steps is None else self._without(preview.plan, steps)
        order = Order(plan, reason, tuple(s.name for s in plan.steps), preview.instructions, summary)
        if not order.chosen:
            yield Notice("info", "No step was ticked: nothing was changed.")
            return
        async with aclosing(self._perform(order)) as events:
            async for event in events:
                yield event
                if isinstance(event, CompactionFinished) and event.outcome == "compacted":
                    self._guard = self._guard.closed()

    def _without(self, plan: Plan, ticked: Sequence[str]) -> Plan:
        """The plan with the ticked steps only. A pipeline plans anew: its steps build on the ones before."""
        unticked = [s.name for s in plan.steps if s.name not in ticked]
        strategy = self._registry(self.options(plan.keep_recent)).get(plan.strategy)
        if unticked and isinstance(strategy, Pipeline):
            budget = msgspec.structs.replace(self.raw_budget(), target=plan.after)
            again = strategy.without(*unticked).plan(self._talk.view, self._talk.ledger, budget)
            plan = again or plan
        return msgspec.structs.replace(plan, steps=tuple(s for s in plan.steps if s.name in ticked))

    # ── after an overflow ──

    def rescue(self) -> Rescue:
        """The way out for one request that the server may refuse as too long."""
        return Rescue(self._talk, self.plan, self._perform)

    async def _perform(self, order: Order) -> AsyncGenerator[Event, None]:
        async with aclosing(Pass(self._talk, order, self.options(), self._summariser).run()) as events:
            async for event in events:
                yield event


def _nothing(figures: Figures) -> str:
    used = figures.used - figures.tokens("draft")
    if not used:
        return "Nothing to free: the conversation is empty."
    share = figures.tokens("system") + figures.tokens("tools")
    return f"Nothing to free: system and tools hold {share:,} of {used:,} tokens. F4 shows the parts."
