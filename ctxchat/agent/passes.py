"""One compaction, carried out: digest, then journal, then ledger, then the view made anew. The one executor of plans.

Nothing is changed before everything is ready, and then by one transaction: a cancel, a crash or a poor summary leaves the state
exactly as it was. Decides nothing about when.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import cast

import msgspec

from ctxchat.agent.conversation import Conversation
from ctxchat.agent.prefetch import Prepared
from ctxchat.core.applying import apply_plan, groups_to_summarise
from ctxchat.core.errors import CtxchatError, LedgerError, ModelError
from ctxchat.core.events import CompactionFinished, CompactionStarted, Event, SummaryDelta, Usage
from ctxchat.core.evidence import collect, render, survival
from ctxchat.core.figures import Figures
from ctxchat.core.journal import Changed, PassEnded, PassStarted
from ctxchat.core.ledger import Edit
from ctxchat.core.messages import Group
from ctxchat.core.ports import Summariser
from ctxchat.core.record import (
    CompactionRecord,
    Evidence,
    FactCount,
    Outcome,
    Reason,
    SideFigures,
    StepGain,
)
from ctxchat.core.sections import OUTSIDE
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.ground import PlanOptions
from ctxchat.core.summaries import too_little
from ctxchat.core.view import View, problems


class Order(msgspec.Struct, frozen=True):
    """What is to be done: a plan, why, and for its summary what to heed, the text a person has written, or one that was
    prepared ahead."""

    plan: Plan
    reason: Reason
    instructions: str = ""
    summary: str | None = None
    prepared: Prepared | None = None


class Refused(CtxchatError):
    """The pass would not help; the text says why in a sentence."""


class Pass:
    """A pass that is under way. `result` is there when it has ended."""

    def __init__(
        self, conversation: Conversation, order: Order, options: PlanOptions, summariser: Summariser | None
    ) -> None:
        self._talk = conversation
        self._order = order
        self._options = options
        self._summariser = summariser
        self._id = f"{conversation.journal.session}-c{len(conversation.state.passes) + 1}"
        self._start = conversation.clock.seconds()
        self._before = side(conversation.figures, conversation.view)
        self._cost = 0.0
        self._model = ""
        self._attempts = 0
        self.result: CompactionFinished | None = None

    async def run(self) -> AsyncGenerator[Event, None]:
        """The events of the pass. Closing it leaves everything as it was."""
        talk, order = self._talk, self._order
        yield CompactionStarted(self._id, order.reason, order.plan.strategy)
        await talk.write(PassStarted(self._id, talk.clock.now()))
        try:
            written: list[str] = []
            for step in (s for s in order.plan.steps if s.needs_summary):
                async with aclosing(self._written(step)) as pieces:
                    async for piece in pieces:
                        written.append(piece)
                        yield SummaryDelta(self._id, piece)
            yield await self._swap("".join(written).strip())
            yield talk.figures
        except (asyncio.CancelledError, GeneratorExit):
            await asyncio.shield(self._end("failed", "Cancelled; everything is as it was."))
            raise
        except Refused as problem:
            yield await self._end("rejected", problem.text)
        except (ModelError, LedgerError) as problem:
            yield await self._end("failed", f"{problem.text} Nothing was changed.")

    async def _written(self, step: Step) -> AsyncGenerator[str, None]:
        """The summary of a step's groups as it comes, the earlier one merged into it. One that stands ready is told at once."""
        order, prepared = self._order, self._order.prepared
        if order.summary is not None:
            yield order.summary
            return
        if prepared is not None:
            self._cost += prepared.cost_usd
            self._model = self._summariser.model if self._summariser else ""
            if set(prepared.covers) == set(step.fold):
                yield prepared.text
                return
        if self._summariser is None:
            raise Refused("There is nobody to write a summary. Nothing was changed.")
        self._model = self._summariser.model
        self._attempts += 1
        groups, known = groups_to_summarise(self._talk.ledger, step)
        previous = "\n\n".join(part for part in (known.summary, known.recap) if part)
        if prepared is not None:
            groups = tuple(g for g in groups if g.id not in prepared.covers)
            previous = prepared.text
        written = self._summariser.summarise(groups, self._order.instructions, previous, step.summary_tokens)
        async with aclosing(cast("AsyncGenerator[str | Usage, None]", written)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Usage):
                    self._cost += piece.cost_usd
                else:
                    yield piece

    async def _swap(self, summary: str) -> CompactionFinished:
        """Try the change on the side; if it holds, archive first, swap second, in one transaction."""
        talk, plan = self._talk, self._order.plan
        if not summary and any(s.needs_summary for s in plan.steps):
            raise Refused("The summary came back empty. Nothing was changed.")
        at = talk.clock.now()
        change = await asyncio.to_thread(apply_plan, talk.ledger, plan, self._id, self._options, summary=summary, at=at)
        ledger = talk.ledger.apply(change)
        view = await talk.compiled(ledger)
        if found := problems(view):
            raise Refused(f"The pass would have left an invalid view ({found[0]}). Nothing was changed.")
        if why := too_little(talk.view.raw, view.raw):
            raise Refused(f"{why} Nothing was changed.")
        for spill in (spill for step in plan.steps for spill in step.spills):
            await talk.journal.spill(spill.name, spill.text)
        folded = [ledger.group(g) for edit in change.edits for g in edit.covers]
        evidence = await asyncio.to_thread(collect, folded, None)
        facts, _ = survival(evidence, view)
        after = side(talk.expected(view, passes=len(ledger.compactions)), view)
        result = self._figures("compacted", after, _detail(len(_messages(folded)), facts), folded, facts)
        record = self._record(result, change.edits, folded, evidence)
        await talk.write(PassEnded(result, at), Changed(msgspec.structs.replace(change, record=record)))
        await talk.refresh()
        self.result = result
        return result

    async def _end(self, outcome: Outcome, detail: str) -> CompactionFinished:
        self.result = self._figures(outcome, self._before, detail, (), FactCount(0, 0))
        await self._talk.write(PassEnded(self.result, self._talk.clock.now()))
        return self.result

    def _figures(
        self, outcome: Outcome, after: SideFigures, detail: str, folded: Sequence[Group], facts: FactCount
    ) -> CompactionFinished:
        order, done = self._order, outcome == "compacted"
        scale = self._talk.scale
        gains = tuple(StepGain(s.name, round(s.tokens_freed * scale), s.groups) for s in order.plan.steps)
        return CompactionFinished(
            outcome=outcome,
            id=self._id,
            reason=order.reason,
            strategy=order.plan.strategy,
            steps=gains if done else (),
            before=self._before,
            after=after,
            folded_messages=len(_messages(folded)),
            folded_groups=len(folded),
            facts=facts,
            seconds=round(self._talk.clock.seconds() - self._start, 3),
            cost_usd=self._cost,
            detail=detail,
        )

    def _record(
        self, result: CompactionFinished, edits: Sequence[Edit], folded: Sequence[Group], evidence: Evidence
    ) -> CompactionRecord:
        digest = next((e.digest for e in edits if e.digest), None)
        view, count = self._talk.view, self._talk.meter.text
        calls = [f"{c.name} {c.arguments}" for g in self._talk.ledger.groups[-40:] for c in g.first.calls]
        return CompactionRecord(
            id=result.id,
            reason=result.reason,
            strategy=result.strategy,
            outcome=result.outcome,
            at=self._talk.clock.now(),
            steps=result.steps,
            model=self._model,
            before=result.before,
            after=result.after,
            folded=tuple(g.id for g in folded),
            folded_messages=result.folded_messages,
            keep_recent=self._order.plan.keep_recent,
            facts=result.facts,
            seconds=result.seconds,
            cost_usd=result.cost_usd,
            attempts=self._attempts,
            summary="\n\n".join(p for p in (digest.summary, digest.recap) if p) if digest else "",
            evidence=render(digest.evidence if digest else evidence, 20_000, count),
            detail=result.detail,
            tools=tuple(t.name for t in view.tools),
            memory=tuple(i.source for i in view.items if i.section == "memory"),
            recent_calls=tuple(c[:200] for c in calls[-10:]),
        )


def side(figures: Figures, view: View) -> SideFigures:
    """One side of a pass from the gauge: tokens in use without the draft, messages in the view, tokens by section."""
    sections = {s.name: s.tokens for s in figures.sections if s.name not in OUTSIDE and s.name != "draft"}
    return SideFigures(figures.used - figures.tokens("draft"), len(view.items), sections)


def _messages(groups: Sequence[Group]) -> list[str]:
    return [m.id for g in groups for m in g.messages if not m.synthetic]


def _detail(messages: int, facts: FactCount) -> str:
    kept = f", kept {facts.kept} of {facts.found} facts" if facts.found else ""
    return f"{messages} messages compacted{kept}"
