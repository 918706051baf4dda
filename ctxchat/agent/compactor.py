"""When to make room: before a request, between rounds, by hand, ahead of time. `planner` says how, `passes` carries it out.

Knows figures, plans and consent; no provider and no screen.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.guard import Guard
from ctxchat.agent.passes import Order, Pass
from ctxchat.agent.planner import Planner, Registry
from ctxchat.agent.prefetch import Prefetch, Prepared
from ctxchat.agent.preview import Preview
from ctxchat.agent.rescue import Rescue
from ctxchat.core.applying import groups_to_summarise
from ctxchat.core.events import CompactionFinished, Event, Notice, Usage
from ctxchat.core.figures import Figures
from ctxchat.core.ports import Summariser
from ctxchat.core.record import Reason
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.triggers import OVERHEAD, due, overhead


class Compactor:
    """Makes room for one conversation, one pass at a time. `by_hooks`: hooks say when, so no pass starts by itself at the
    beginning of a turn; those within a long turn and after an overflow remain."""

    def __init__(
        self,
        conversation: Conversation,
        *,
        summariser: Summariser | None = None,
        registry: Registry = builtin_strategies,
        by_hooks: bool = False,
    ) -> None:
        self._talk = conversation
        self._summariser = summariser
        self._planner = Planner(conversation, registry, summariser.model if summariser else "")
        self._by_hooks = by_hooks
        self._prefetch = Prefetch()
        self._guard = Guard()
        self._inside = (0, 0)  # the turn, and how many passes there were inside it
        self._told = 0  # the turn in which overhead or consent was last talked about

    # ── before a request ──

    async def make_room(self, rounds: int) -> AsyncGenerator[Event, None]:
        """Measure, and compact where it is due. `rounds` is how many model calls this turn has made."""
        figures = await self._talk.refresh()
        yield figures
        standing = due(figures, self._talk.options.soft_mark)
        if standing == "prepare":
            self.prepare()
        elif standing == "overhead":
            for notice in self._about_overhead(figures):
                yield notice
        elif standing == "compact":
            order = self._order(figures, rounds)
            if order is None:
                for notice in self._about_waiting(figures):
                    yield notice
                return
            async with aclosing(self._automatic(await self._with_prepared(order))) as events:
                async for event in events:
                    yield event

    def _order(self, figures: Figures, rounds: int) -> Order | None:
        """The pass that is due now, None where nothing may or can be done."""
        options, talk = self._talk.options, self._talk
        if options.consent != "auto" or len(talk.view.items) < options.min_messages:
            return None
        if self._by_hooks and not rounds:
            return None
        if self._guard.standing(talk.clock.seconds()) != "free":
            return None
        name, reason = self._inside_turn(figures) if rounds else (options.strategy, "auto")
        plan = self._planner.plan(name) if name else None
        return Order(plan, reason) if plan else None

    def _inside_turn(self, figures: Figures) -> tuple[str, Reason]:
        """Strategy and reason between two rounds; no strategy where none is due."""
        options, turn = self._talk.options, self._talk.ledger.turn
        passes = self._inside[1] if self._inside[0] == turn else 0
        full = figures.pressure >= options.full_trigger
        if figures.pressure < options.micro_trigger:
            return "", "auto"
        if passes >= options.reactive_per_turn:  # past the cap, but a request that cannot fit must not go out
            return ("reactive_full", "auto") if full else ("", "auto")
        self._inside = (turn, passes + 1)
        return ("reactive_full", "reactive_full") if full else ("reactive_micro", "reactive_micro")

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
            if result.reason == "auto":
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
        text = f"The window is {figures.pressure:.0%} full. F8 frees up context; nothing is done by itself."
        return (Notice("info", text),)

    # ── ahead of time ──

    @property
    def prepared(self) -> Prepared | None:
        """The summary that stands ready."""
        return self._prefetch.ready(self._talk.ledger)

    def prepare(self) -> None:
        """Make the next summary in the background, once the soft mark is passed. If that fails the swap makes its own."""
        options = self._talk.options
        if not options.prepare or options.consent == "off" or self._summariser is None or self._prefetch.failed >= 2:
            return
        if due(self._talk.figures, options.soft_mark) in {"prepare", "compact"} and self.prepared is None:
            self._prefetch.start(self._made_ahead)

    async def _made_ahead(self) -> Prepared | None:
        talk, summariser = self._talk, self._summariser
        plan = self._planner.plan()
        step = next((s for s in plan.steps if s.needs_summary), None) if plan else None
        if plan is None or step is None or summariser is None:
            return None
        ledger, after = talk.ledger, round(plan.after * talk.scale)
        groups, known = groups_to_summarise(ledger, step)
        previous = "\n\n".join(part for part in (known.summary, known.recap) if part)
        text: list[str] = []
        cost = 0.0
        written = summariser.summarise(groups, "", previous, step.summary_tokens)
        async with aclosing(cast("AsyncGenerator[str | Usage, None]", written)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Usage):
                    cost += piece.cost_usd
                else:
                    text.append(piece)
        whole = "".join(text).strip()
        return Prepared(step.fold, tuple(c.id for c in ledger.changes), whole, after, cost) if whole else None

    async def _with_prepared(self, order: Order) -> Order:
        """The order with the prepared summary: as it is where it frees enough, else to be topped up with the rest."""
        step = next((s for s in order.plan.steps if s.needs_summary), None)
        if step is None:
            return order
        if self._prefetch.busy:
            await self._prefetch.wait()
        prepared = self.prepared
        if prepared is None or not set(prepared.covers) <= set(step.fold):
            return order
        left_out = set(step.fold) - set(prepared.covers)
        more = sum(item.tokens for item in self._talk.view.items if item.group in left_out)
        budget = self._planner.raw_budget()
        if order.plan.after + more <= (budget.target + budget.trigger) // 2:
            small = msgspec.structs.replace(step, fold=prepared.covers, tokens_freed=step.tokens_freed - more)
            steps = tuple(small if s is step else s for s in order.plan.steps)
            order = msgspec.structs.replace(order, plan=msgspec.structs.replace(order.plan, steps=steps))
        return msgspec.structs.replace(order, prepared=prepared)

    # ── by hand ──

    async def preview(
        self, instructions: str = "", keep_recent: int | None = None, strategy: str = "", target: float | None = None
    ) -> Preview:
        """What freeing up context would do now, on a view made anew."""
        await self._talk.refresh()
        return self._planner.preview(instructions, keep_recent, strategy, target)

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
        plan = preview.plan if steps is None else self._planner.ticked(preview.plan, steps)
        if not plan.steps:
            yield Notice("info", "No step was ticked: nothing was changed.")
            return
        async with aclosing(self._perform(Order(plan, reason, preview.instructions, summary))) as events:
            async for event in events:
                yield event
                if isinstance(event, CompactionFinished) and event.outcome == "compacted":
                    self._guard = self._guard.closed()

    # ── for a hook ──

    async def for_hook(self, strategy: str = "", instructions: str = "") -> AsyncGenerator[Event, None]:
        """A pass a hook asks for, as far down as one by hand. None, in silence, where nothing can be freed or passes rest
        after failures. Raises UsageError for a strategy nobody has."""
        await self._talk.refresh()
        if self._guard.standing(self._talk.clock.seconds()) in {"waiting", "broken"}:
            return
        plan = self._planner.plan(strategy, target=self._planner.goal_by_hand())
        if plan is None:
            return
        order = Order(plan, "hook", instructions)
        async with aclosing(self._automatic(order if instructions else await self._with_prepared(order))) as events:
            async for event in events:
                yield event
                if isinstance(event, CompactionFinished) and event.outcome == "compacted":
                    self._guard = self._guard.closed()

    # ── after an overflow ──

    def rescue(self) -> Rescue:
        """The way out for one request that the server may refuse as too long."""
        return Rescue(self._talk, self._planner, self._perform)

    async def close(self) -> None:
        """End what is being prepared."""
        await self._prefetch.close()

    async def _perform(self, order: Order) -> AsyncGenerator[Event, None]:
        async with aclosing(Pass(self._talk, order, self._planner.options(), self._summariser).run()) as events:
            async for event in events:
                yield event
                if isinstance(event, CompactionFinished) and event.outcome == "compacted":
                    self._prefetch.clear()
