"""Plans compactions of the conversation as it is now: runs strategies with the options in force, and makes previews of their
plans.

Does not decide when a compaction runs, and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing

import msgspec

from ctxchat.agent.compaction.dry_run import doubt, estimated, gains, look_ahead, missed, seen_to_fill, unneeded
from ctxchat.agent.compaction.preview import Preview, PreviewStep, rewrite_of
from ctxchat.agent.compaction.run import writing
from ctxchat.agent.compaction.summariser import MAX_REREAD_PARTS
from ctxchat.agent.compaction.within import ASKED_TOKENS, held_for
from ctxchat.agent.conversation import Conversation
from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Budget
from ctxchat.core.changes import deferred_edits
from ctxchat.core.context_usage import ContextUsage, overhead
from ctxchat.core.errors import UsageError
from ctxchat.core.facts import Memory
from ctxchat.core.ledger import DeferredKind, Ledger
from ctxchat.core.options import StrategyOptions
from ctxchat.core.ports import FilesNow, Summariser, SummaryTask
from ctxchat.core.quantities import short
from ctxchat.core.strategies.base import DEFERRED, Plan, Step, Strategy
from ctxchat.core.strategies.builtin import LABELS
from ctxchat.core.strategies.drop_superseded import DropSuperseded
from ctxchat.core.strategies.folding import tolerance
from ctxchat.core.strategies.oversize import KEPT, bound_kept, clip_kept
from ctxchat.core.strategies.pipeline import Pipeline
from ctxchat.core.strategies.planning import Basis, PlanOptions, after_step
from ctxchat.core.summaries import written
from ctxchat.core.summary_task import input_tokens, share_for, shortened
from ctxchat.core.view import View
from ctxchat.core.working_set import MAX_FILES, CurrentFile, edits_in, touched, worked_on

Registry = Callable[[PlanOptions], Mapping[str, Strategy]]
"""Makes every strategy, plug-ins' included, with these options; by name."""

Prices = Callable[[str, int, int], float]
"""What a call costs in US dollars, by model, prompt tokens and output tokens; 0 where nobody knows."""

SUMMARY_SECONDS = 10.0
"""Expected duration of a summary before the first one was measured."""

MAX_EXAMINED_FILES = 48
"""Files in which the names that they define are looked up; the first of them may stand beside a summary."""

MAX_SMALL_LIMIT = 60_000
"""Tokens that a prompt may hold in a window that counts as small: so many summaries would be needed there that cutting long
results comes first, even where it does not reach the target."""

MAX_QUICK_GROUPS = 1_000
"""Up to so many groups a summary by code is quick enough for a preview."""


class PlanningSnapshot(msgspec.Struct, frozen=True):
    """The state that a plan is made from, taken at one moment, since work in a thread must not see half of a change. `budget` is
    in raw tokens, `scale` are gauge tokens per raw token, `filled` is the share of their room that summaries of this writer took
    (0 where none was seen), `deferred` are changes by hand that wait for a compaction, by group."""

    view: View
    ledger: Ledger
    context_usage: ContextUsage
    budget: Budget
    scale: float
    filled: float
    deferred: Mapping[str, DeferredKind]

    @property
    def used(self) -> int:
        """Tokens in use without the draft."""
        return self.context_usage.used - self.context_usage.tokens("draft")

    def reaches(self, plan: Plan | None) -> bool:
        """Whether a plan comes down to the target or near it, as far as can be estimated; without a plan, whether the view is
        there already, with twice the tolerance."""
        target, near = self.budget.target, tolerance(self.budget.limit, self.budget.target)
        if plan is None:
            return self.view.raw <= min(target + 2 * near, self.budget.trigger)
        return plan.after - unneeded(plan, self.filled) <= target + near


class Planner:
    """Makes plans for one conversation, off the event loop. `summariser` would write the summaries."""

    def __init__(
        self,
        conversation: Conversation,
        registry: Registry,
        summariser: Summariser | None,
        prices: Prices | None,
        files_now: FilesNow | None,
    ) -> None:
        self._conversation = conversation
        self._registry = registry
        self._prices = prices
        self._files_now = files_now
        self._files: tuple[CurrentFile, ...] = ()
        self._looked = 0  # groups whose facts were found already
        self._filled_before = 0.0  # the share of their room that summaries of this writer take, over all sessions
        self.memory = Memory(conversation.masked.group)
        self.summariser = summariser

    @property
    def writer(self) -> str:
        """The model that would write summaries; empty where code writes them."""
        return self.summariser.model if self.summariser else ""

    @property
    def _filled(self) -> float:
        return seen_to_fill(self._conversation.ledger, self.writer, self._filled_before)

    async def plan(
        self,
        name: str = "",
        *,
        keep_recent: int | None = None,
        keep_turns: int | None = None,
        clip_current: bool = False,
        by_model: bool = False,
        target: float | None = None,
    ) -> Plan | None:
        """The plan of a strategy (the configured one without a name) for the view as last compiled; None where it frees nothing.

        `keep_recent` in messages, `keep_turns` in turns, `target` as a share of the limit; None for the usual. Raises
        UsageError for a name nobody has.
        """
        await self.refresh_inputs()
        options = self.options(keep_recent, keep_turns, clip_current=clip_current, by_model=by_model)
        name = name or self._conversation.options.strategy
        return await asyncio.to_thread(
            self._with_deferred, name, self._snapshot(target), lambda rest: self._plan(name, options, rest)
        )

    async def usual(self, name: str = "", target: float | None = None) -> Plan | None:
        """As `plan`, with as many recent messages kept as the settings say. Where that misses the target, as in a window that
        these alone fill, half as many are kept, and so on: otherwise the next request would need a compaction again."""
        await self.refresh_inputs()
        return await self._usual_plan(name or self._conversation.options.strategy, self._snapshot(target))

    async def _usual_plan(self, name: str, snapshot: PlanningSnapshot, floor: int | None = None) -> Plan | None:
        return await asyncio.to_thread(self._with_deferred, name, snapshot, lambda rest: self._usual(name, rest, floor))

    async def ahead(self, *, inside: bool, needed: bool = False) -> Plan | None:
        """The plan of the next compaction, made before the trigger is reached: what comes until then is assumed to be like what
        is there. Where the trigger is reached already, the plan for now. `inside` a turn all but its newest rounds are folded,
        where cutting long results is not enough. None where no summary will be, or is, `needed`."""
        await self.refresh_inputs()
        snapshot = self._snapshot()
        if not needed and await asyncio.to_thread(self._by_code, snapshot):
            return None
        budget = snapshot.budget
        if snapshot.view.raw < budget.trigger:
            aim = int(budget.target * snapshot.view.raw / budget.trigger) + tolerance(budget.limit, budget.target)
            snapshot = msgspec.structs.replace(snapshot, budget=msgspec.structs.replace(budget, target=aim))
        plan = await self._usual_plan(self._conversation.options.strategy, snapshot)
        if inside and plan and any(step.needs_summary for step in plan.steps):
            return await self.plan("reactive_full", by_model=True)
        return plan

    async def by_code(self) -> Plan | None:
        """In a small window, a plan without a summary that frees enough for now: it goes halfway from the trigger to the target.
        None where there is none, or the window is larger: there a summary costs little beside a second reading of the rest."""
        await self.refresh_inputs()
        return await asyncio.to_thread(self._by_code, self._snapshot())

    def _by_code(self, snapshot: PlanningSnapshot) -> Plan | None:
        """A plan without a summary for a small window: the one that shortens results, where it leaves enough room for the
        conversation to grow up to the trigger. Else None."""
        budget, raw, strategy = snapshot.budget, snapshot.view.raw, self._conversation.options.strategy
        pipeline = self._registry(self.options()).get(strategy)
        if budget.limit > MAX_SMALL_LIMIT or not raw or not isinstance(pipeline, Pipeline):
            return None
        plan = self._usual("shrink_tool_results", snapshot)
        growth = max(1.0, budget.trigger / raw)  # what comes until the trigger is like what is there
        return plan if plan and plan.after * growth <= budget.halfway else None

    async def with_summary(self, plan: Plan, summary: str) -> tuple[Plan, int]:
        """A plan whose summary is written already, and the raw tokens in use after it. Where these are above halfway from trigger
        to target, long results among what stays are cut as well: one rewrite instead of two."""
        return await asyncio.to_thread(self._with_summary, plan, summary, self._snapshot())

    def _with_summary(self, plan: Plan, summary: str, snapshot: PlanningSnapshot) -> tuple[Plan, int]:
        """The plan and the raw tokens it leaves, by a summary that is written already. Where that leaves more than halfway from
        trigger to target, results are shortened before it as well."""
        change = apply_plan(snapshot.ledger, plan, "estimate", self.options(), summary=summary)
        ledger = snapshot.ledger.apply(change)
        view = self._conversation.compile(ledger)
        left, budget = view.raw, snapshot.budget
        if left <= budget.halfway:
            return plan, left
        after = msgspec.structs.replace(snapshot, view=view, ledger=ledger)
        more = self._usual("shrink_tool_results", after)
        if more is None:
            return plan, left
        at = next(place for place, step in enumerate(plan.steps) if step.needs_summary)
        steps = (*plan.steps[:at], *more.steps, *plan.steps[at:])
        return msgspec.structs.replace(plan, steps=steps, after=more.after), more.after

    async def refresh_inputs(self) -> None:
        """Read the files that were touched last as they are on disk, find the facts of new groups, and load what earlier sessions
        learned about the writer of summaries."""
        conversation = self._conversation
        fresh = conversation.ledger.groups[self._looked :]  # found bit by bit, so that a plan need not find all
        await look_ahead(self.memory, conversation.ledger, [group.id for group in fresh])
        self._looked = len(conversation.ledger.groups)
        self._filled_before = (
            await asyncio.to_thread(conversation.knowledge.filled, self.writer) if self.writer else 0.0
        )
        if self._files_now is None or not conversation.options.working_set:
            self._files = ()
            return
        paths = touched(conversation.ledger.groups_in_force, MAX_EXAMINED_FILES)
        found = [file for file in await asyncio.gather(*map(self._files_now, paths)) if file is not None]
        self.memory.names = {name: file.names for file in found for name in file.written}
        near = set(paths[:MAX_FILES])
        shown = [file for file in found if not near.isdisjoint(file.written)]
        self._files = await asyncio.to_thread(self._weighed, shown)

    def _weighed(self, files: Sequence[CurrentFile]) -> tuple[CurrentFile, ...]:
        """The files with their tokens and edited lines; one that was called by several names only once."""
        known: dict[str, CurrentFile] = {}
        for file in files:
            before = known.get(file.path)
            if before is None:
                known[file.path] = msgspec.structs.replace(
                    file, tokens=self._conversation.counter.count_text(file.text)
                )
            else:
                known[file.path] = msgspec.structs.replace(before, written=(*before.written, *file.written))
        lines = worked_on(self._conversation.ledger.groups_in_force)  # the newest first
        edited = {f.path: next((line for path, line in lines.items() if path in f.written), ()) for f in known.values()}
        return tuple(msgspec.structs.replace(f, edited=edits_in(f.text, edited[f.path])) for f in known.values())

    def _usual(self, name: str, snapshot: PlanningSnapshot, floor: int | None = None) -> Plan | None:
        """The plan of a strategy that keeps as many recent messages as it can while reaching the target, from `keep_recent` down
        to `floor`; the one that leaves least where none reaches it."""
        keep = self._conversation.options.keep_recent
        floor = self._conversation.options.emergency_floor if floor is None else floor
        best = self._plan(name, self.options(), snapshot)
        while keep > floor and (best is None or not snapshot.reaches(best)):
            keep = max(floor, keep // 2)
            plan = self._plan(name, self.options(keep), snapshot)
            best = plan if plan is not None and (best is None or plan.after < best.after) else best
        return self._to_target(name, best, snapshot)

    def _to_target(self, name: str, plan: Plan | None, snapshot: PlanningSnapshot) -> Plan | None:
        """The plan, with kept messages shortened where one result is beyond its bound, or where the target would be missed."""
        reached = snapshot.reaches(plan)
        if plan is None and reached:
            return None
        options = self._options_for(plan.keep_recent if plan else None)
        basis, strategy = Basis(snapshot.view, snapshot.ledger, options), self._strategy(name, options)
        if plan is not None and reached:
            return bound_kept(basis, strategy, plan, snapshot.budget)
        return clip_kept(basis, strategy, plan, snapshot.budget)

    def _strategy(self, name: str, options: PlanOptions) -> Strategy:
        """The strategy of this name. Raises UsageError where there is none."""
        registry = self._registry(options)
        if name not in registry:
            raise UsageError(f"There is no strategy {name!r}.", f"There are: {', '.join(sorted(registry))}.")
        return registry[name]

    def _plan(self, name: str, options: PlanOptions, snapshot: PlanningSnapshot) -> Plan | None:
        plan = self._strategy(name, options).plan(snapshot.view, snapshot.ledger, snapshot.budget)
        return msgspec.structs.replace(plan, target=snapshot.budget.target) if plan else None

    def _snapshot(self, target: float | None = None) -> PlanningSnapshot:
        """The state to plan with, taken from the conversation now."""
        conversation = self._conversation
        return PlanningSnapshot(
            conversation.view,
            conversation.ledger,
            conversation.context_usage,
            self.raw_budget(target),
            conversation.scale,
            self._filled,
            conversation.state.deferred,
        )

    def _deferred(self, snapshot: PlanningSnapshot) -> tuple[Step | None, PlanningSnapshot]:
        """The step that does the deferred changes (None without any), and the snapshot after it, on which the rest is planned."""
        edits = deferred_edits(snapshot.ledger, snapshot.deferred)
        if not edits:
            return None, snapshot
        step = Step(DEFERRED, 0, len(edits), edits)
        view, ledger = after_step(snapshot.view, snapshot.ledger, step, self._conversation.counter)
        step = msgspec.structs.replace(step, tokens_freed=max(0, snapshot.view.raw - view.raw))
        return step, msgspec.structs.replace(snapshot, view=view, ledger=ledger, deferred={})

    def _with_deferred(
        self, name: str, snapshot: PlanningSnapshot, plan_rest: Callable[[PlanningSnapshot], Plan | None]
    ) -> Plan | None:
        """A plan that first does the deferred changes, and then what is still needed."""
        step, rest = self._deferred(snapshot)
        plan = plan_rest(rest)
        if step is None:
            return plan
        raw, keep = rest.view.raw, self._conversation.options.keep_recent
        plan = plan or Plan(name, (), raw, raw, keep, snapshot.budget.target)
        return msgspec.structs.replace(plan, steps=(step, *plan.steps), before=snapshot.view.raw)

    def options(
        self,
        keep_recent: int | None = None,
        keep_turns: int | None = None,
        *,
        clip_current: bool = False,
        by_model: bool = False,
    ) -> PlanOptions:
        """The options that strategies get, from those in force. `by_model`: summaries between rounds are the model's, if there is
        one. Where another `keep_recent` is asked for, more must go than usual, so no results are kept for being recent."""
        options = self._conversation.options
        plan_options = PlanOptions(
            **{name: getattr(options, name) for name in StrategyOptions.__struct_fields__},
            counter=self._conversation.counter,
            memory=self.memory,
            clip_current=clip_current,
            by_model=by_model and bool(self.writer),
            files=() if clip_current else self._files,
            files_tokens=int(self.raw_budget().limit * options.working_set),
            summary_share=share_for(self.raw_budget().limit),
        )
        if keep_recent is not None:
            plan_options = msgspec.structs.replace(plan_options, keep_recent=keep_recent, recent_results=0)
        return plan_options if keep_turns is None else msgspec.structs.replace(plan_options, keep_turns=keep_turns)

    def _options_for(self, keep_recent: int | None) -> PlanOptions:
        """As `options`, where a person may have chosen the number of messages that are kept."""
        return self.options(None if keep_recent == self._conversation.options.keep_recent else keep_recent)

    def raw_budget(self, target: float | None = None) -> Budget:
        """The budget in the view's raw tokens; `target` as a share of the limit where it is not the usual one."""
        budget, scale = self._conversation.budget, self._conversation.scale
        goal = budget.target if target is None else int(budget.limit * target)
        return msgspec.structs.replace(
            budget,
            window=msgspec.structs.replace(budget.window, tokens=int(budget.window.tokens / scale)),
            reserved=int(budget.reserved / scale),
            trigger=int(budget.trigger / scale),
            target=int(goal / scale),
        )

    def goal_by_hand(self) -> float:
        """The target of a compaction that somebody asked for, as a share of the limit: the usual one, or half of what is used
        where that is less."""
        context_usage = self._conversation.context_usage
        return min(
            self._conversation.options.target,
            (context_usage.used - context_usage.tokens("draft")) / context_usage.limit / 2,
        )

    async def ticked(self, plan: Plan, names: Sequence[str] | None) -> Plan:
        """The plan with the named steps only; with all where `names` is None. They are planned anew: each builds on the ones
        before."""
        if names is None:
            return plan
        return await asyncio.to_thread(self._ticked, plan, names, self._snapshot())

    def _ticked(self, plan: Plan, names: Sequence[str], snapshot: PlanningSnapshot) -> Plan:
        """The plan with only the steps of these names. Where that differs from the plan as it is, its strategy plans again, since
        what a step frees depends on the others; steps that the strategy does not make (deferred changes, `KEPT`) are put in
        front."""
        unticked = [s.name for s in plan.steps if s.name not in names]
        strategy = self._registry(self._options_for(plan.keep_recent)).get(plan.strategy)
        added = [name for name in names if all(s.name != name for s in plan.steps)]
        if (unticked or added) and strategy is not None:
            if isinstance(strategy, Pipeline):
                strategy = strategy.with_steps(names, added)
            budget = msgspec.structs.replace(snapshot.budget, target=plan.after)
            deferred, rest = self._deferred(snapshot) if DEFERRED in names else (None, snapshot)
            kept = [s for s in plan.steps if s.name == KEPT and s.name in names]
            view, ledger = rest.view, rest.ledger
            for step in kept:
                view, ledger = after_step(view, ledger, step, self._conversation.counter)
            again = strategy.plan(view, ledger, budget) or msgspec.structs.replace(plan, steps=(), after=view.raw)
            first = [deferred, *kept] if deferred else kept
            steps = (*first, *(s for s in again.steps if s.name != KEPT))
            plan = msgspec.structs.replace(again, steps=steps, before=snapshot.view.raw, target=plan.target)
        return msgspec.structs.replace(plan, steps=tuple(s for s in plan.steps if s.name in names))

    async def preview(
        self, instructions: str = "", keep_recent: int | None = None, strategy: str = "", target: float | None = None
    ) -> Preview:
        """What freeing up context would do now. With `instructions`, which say what a summary should keep, a summary is part of
        the plan if it frees anything. Raises UsageError for a strategy nobody has, LedgerError for one whose plan cannot be
        carried out."""
        await self.refresh_inputs()
        goal = target if target is not None else self.goal_by_hand()
        snapshot = self._snapshot(goal)
        name = strategy or self._conversation.options.strategy
        if keep_recent is None:
            plan = await self._usual_plan(name, snapshot, 1)
        else:
            options = self._options_for(keep_recent)
            plan = await asyncio.to_thread(
                self._with_deferred,
                name,
                snapshot,
                lambda rest: self._to_target(name, self._plan(name, options, rest), rest),
            )
        if plan is not None:
            aim = snapshot.budget if target is not None else self.raw_budget()
            plan = msgspec.structs.replace(plan, target=aim.target)
            if instructions and not any(step.needs_summary for step in plan.steps):
                others = await asyncio.to_thread(self._other_steps, plan, snapshot)
                asked = [step.name for step in others if step.needs_model]
                plan = await asyncio.to_thread(self._ticked, plan, [*(s.name for s in plan.steps), *asked], snapshot)
        if plan is None:
            untouched = Plan(name, (), snapshot.view.raw, snapshot.view.raw, keep_recent or 1)
            return Preview(
                snapshot.context_usage,
                snapshot.context_usage,
                other_steps=await asyncio.to_thread(self._other_steps, untouched, snapshot),
                reason=nothing_to_free(snapshot.context_usage),
                instructions=instructions,
            )
        return await self._preview_of(plan, snapshot, instructions)

    async def with_steps(self, preview: Preview, names: Sequence[str]) -> Preview:
        """The preview with the named steps only, as `ticked` plans them."""
        if preview.plan is None:
            return preview
        snapshot = self._snapshot()
        return await self._preview_of(await self.ticked(preview.plan, names), snapshot, preview.instructions)

    async def _preview_of(self, plan: Plan, snapshot: PlanningSnapshot, instructions: str) -> Preview:
        await look_ahead(self.memory, snapshot.ledger, plan.covers)
        text = await self._summary_by_code(plan, instructions)
        return await asyncio.to_thread(self._make_preview, plan, snapshot, instructions, text)

    async def _summary_by_code(self, plan: Plan, instructions: str) -> str:
        """The summary itself, where code writes it quickly; empty where a model will write it."""
        step = next((s for s in plan.steps if s.needs_summary), None)
        if step is None or self.summariser is None or self.writer or len(step.fold) > MAX_QUICK_GROUPS:
            return ""
        async with aclosing(writing(self._conversation, step, self.summariser, self.options(), instructions)) as pieces:
            return "".join([piece async for piece in pieces if isinstance(piece, str)])

    def _make_preview(self, plan: Plan, snapshot: PlanningSnapshot, instructions: str, text: str) -> Preview:
        """The preview of a plan. `text` is a written summary, empty for one of the size to be expected."""
        conversation = self._conversation
        dry_run = estimated(
            snapshot.ledger, plan, self.options(), conversation.compile, text, snapshot.filled, conversation.next_head
        )
        after = conversation.expected(dry_run.view, dry_run.changes)
        less, more = (0, 0) if text else doubt(plan, snapshot.filled)
        seconds, cost = self._price(plan, snapshot)
        return Preview(
            before=snapshot.context_usage,
            after=after,
            after_range=(after.used - round(less * snapshot.scale), after.used + round(more * snapshot.scale)),
            steps=self._preview_steps(plan, snapshot, snapshot.used - after.used),
            other_steps=self._other_steps(plan, snapshot),
            plan=plan,
            keep_recent=plan.keep_recent,
            pinned=len(snapshot.ledger.pinned),
            facts=dry_run.facts,
            seconds=seconds,
            cost_usd=cost,
            model=self.writer,
            other_provider=bool(self.writer) and self.writer.split("/")[0] != conversation.model.name.split("/")[0],
            rewrite=rewrite_of(
                plan,
                snapshot.view,
                snapshot.context_usage,
                binds=conversation.model.binds_thinking,
                head=bool(conversation.state.setup_deferred),
            ),
            instructions=instructions,
            changes=tuple(c.id for c in snapshot.ledger.changes),
            missed=missed(plan, dry_run.view, after, snapshot.scale),
            files=dry_run.files,
            facts_text=dry_run.evidence,
            after_messages=len(dry_run.view.items),
            folded_messages=dry_run.messages,
        )

    def _preview_steps(
        self, plan: Plan, snapshot: PlanningSnapshot, freed: int, before: Ledger | None = None
    ) -> tuple[PreviewStep, ...]:
        """The steps as a person sees them; together they free `freed` tokens of the gauge. `before` is the ledger that they start
        from, where that is not the present one."""
        ledger, registry = snapshot.ledger, self._registry(self.options())
        groups = [{*step.fold, *(name for edit in step.edits for name in edit.covers)} for step in plan.steps]
        turns = [sorted(ledger.group(name).turn for name in names) for names in groups]
        shown = [frozenset(e.group.id for e in ledger.live() if e.group and names & {*e.covers}) for names in groups]
        labels = {
            name: getattr(strategy, "label", name) for name, strategy in registry.items()
        }  # a plug-in may have none
        labels |= {name: LABELS[name] for name in (KEPT, DEFERRED)}
        return tuple(
            PreviewStep(
                s.name, labels.get(s.name, s.name), gain, s.groups, s.needs_summary, (at[0], at[-1]), goes, stays
            )
            for s, gain, at, goes, stays in zip(
                plan.steps,
                gains(plan, snapshot.scale, freed),
                turns,
                shown,
                _unchanged(plan, before or ledger),
                strict=True,
            )
        )

    def _other_steps(self, plan: Plan, snapshot: PlanningSnapshot) -> tuple[PreviewStep, ...]:
        """The steps that are not part of the plan: what each would free in addition, or why it frees nothing."""
        options = self._options_for(plan.keep_recent)
        pipeline = self._registry(options).get(plan.strategy)
        view, ledger, found = snapshot.view, snapshot.ledger, list[PreviewStep]()
        waiting = None if any(step.name == DEFERRED for step in plan.steps) else self._deferred(snapshot)[0]
        if waiting is not None:
            alone = msgspec.structs.replace(plan, steps=(waiting,))
            found += self._preview_steps(alone, snapshot, round(waiting.tokens_freed * snapshot.scale))
        if not isinstance(pipeline, Pipeline):
            return tuple(found)
        for step in plan.steps:
            if not step.needs_summary:
                view, ledger = after_step(view, ledger, step, options.counter)
        most = msgspec.structs.replace(snapshot.budget, target=0)
        for strategy in pipeline.strategies:
            if any(step.name == strategy.name for step in plan.steps):
                continue
            if (alone := strategy.plan(view, ledger, most)) is None:
                nothing = getattr(strategy, "nothing", "nothing to free")
                why = strategy.why_nothing(view, ledger) if isinstance(strategy, DropSuperseded) else nothing
                found.append(
                    PreviewStep(strategy.name, getattr(strategy, "label", strategy.name), 0, 0, why_nothing=why)
                )
            else:
                freed = alone.before - alone.after + unneeded(alone, snapshot.filled)
                found += self._preview_steps(alone, snapshot, round(freed * snapshot.scale), ledger)
        return tuple(found)

    def after_used(self, plan: Plan) -> int:
        """Tokens in use after a plan, with a summary of the expected length. A quick estimate; `preview` is more exact."""
        conversation, context_usage = self._conversation, self._conversation.context_usage
        freed = round((plan.before - plan.after + unneeded(plan, self._filled)) * conversation.scale)
        return max(0, context_usage.used - context_usage.tokens("draft") - freed)

    def cost_of(self, plan: Plan) -> float:
        """Estimated cost of the summary of a plan in US dollars; 0 where it is unknown."""
        return self._price(plan, self._snapshot())[1]

    def _price(self, plan: Plan, snapshot: PlanningSnapshot) -> tuple[float, float]:
        """Estimated seconds and US dollars of a plan's summary: by the last one, and by the price list."""
        steps = [s for s in plan.steps if s.needs_summary]
        if not steps or not self.writer:
            return 0.1, 0.0
        records = [c.record for c in snapshot.ledger.compactions if c.record and c.record.attempts]
        seconds = records[-1].seconds if records else SUMMARY_SECONDS
        if self._prices is None:
            return seconds, 0.0
        known, *instead = written(snapshot.ledger)
        groups = (snapshot.ledger.group(name) for s in steps for name in s.fold if name not in known.covers)
        task = SummaryTask(tuple(groups), known.text, instead=tuple(instead))
        task = shortened(
            task, MAX_REREAD_PARTS * snapshot.budget.limit
        )  # as if the window of the one who writes were this one's
        most = sum(s.summary_tokens for s in steps)
        conversation, price = self._conversation, snapshot.context_usage.price
        if self.writer == conversation.model.name and (hold := held_for(conversation, task)):
            read = hold.tokens * price.cached + (snapshot.used - hold.tokens + ASKED_TOKENS) * price.written
            return seconds, read + self._prices(self.writer, 0, most)
        read = input_tokens(task.groups) + conversation.counter.count_text(task.previous)
        return seconds, self._prices(self.writer, read + most, most)


def _unchanged(plan: Plan, before: Ledger) -> Iterator[frozenset[int]]:
    """For each step, the numbers of the messages that it leaves as they are in groups of which it shortens others."""
    shown = {m.seq: m for entry in before.live() if entry.group for m in entry.group.messages}
    for step in plan.steps:
        made = [m for e in step.edits if e.kind == "shrink" and e.replacement for m in e.replacement.messages]
        yield frozenset(m.seq for m in made if shown.get(m.seq) == m)
        shown |= {m.seq: m for m in made}


def nothing_to_free(context_usage: ContextUsage) -> str:
    """Why there is nothing to free, in a sentence or two."""
    used = context_usage.used - context_usage.tokens("draft")
    around = overhead(context_usage)
    if used <= around:
        return "Nothing to free: the conversation is empty."
    held = (
        (around, "are around the conversation"),
        (context_usage.tokens("summary"), "in the summary"),
        (context_usage.tokens("pinned"), "pinned"),
    )
    parts = ", ".join(f"{short(tokens)} {what}" for tokens, what in held if tokens)
    return f"Nothing to free. Of {short(used)} tokens, {parts}; the newest messages stay as they are."
