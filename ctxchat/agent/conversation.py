"""A session while it is being worked on: its state and journal, the view compiled from them, and the gauge.

Knows nothing of turns or screens.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence

import msgspec

from ctxchat.agent.journal_writer import JournalWriter
from ctxchat.agent.model_knowledge import Known, ModelKnowledge, ModelKnowledgeStore, NothingKnown
from ctxchat.agent.session_config import SessionConfig
from ctxchat.agent.spending_budget import SpendingBudget
from ctxchat.core.automatic import Automatic
from ctxchat.core.backoff import Backoff
from ctxchat.core.budget import Budget, Window, make_budget
from ctxchat.core.cache import Beginning, CacheRules, cache_state, found_beginnings, marked_lengths
from ctxchat.core.cache_state import CacheState
from ctxchat.core.calibration import Anchor, Mix, total
from ctxchat.core.clip import clip
from ctxchat.core.context_usage import (
    BUDGET,
    NO_MIX,
    ContextUsage,
    Counting,
    Past,
    PriceRise,
    TokenPrice,
    budget_note,
    measure,
)
from ctxchat.core.errors import StorageError
from ctxchat.core.head import ContextBlock, Head, Surroundings, ToolSpec
from ctxchat.core.hooks import replaces_automatic
from ctxchat.core.journal import HeadSet, Measured, Record, Sealed, SessionState, ThoughtsLeftOut, ToolRefused
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.masked_record import MaskedRecord
from ctxchat.core.notes import (
    change_note,
    context_note,
    described_tools,
    known_context,
    tools_block,
    without_tool_told,
)
from ctxchat.core.permissions import Mode
from ctxchat.core.ports import Clock, JournalPort, ModelPort, ModelRequest, ReplyNotes
from ctxchat.core.prefix_break import PrefixBreak
from ctxchat.core.prefix_guard import PrefixGuard, SentPrefix, request_of
from ctxchat.core.prices import TOKENS_PER_PRICE, ModelPrices
from ctxchat.core.refused import accepted_tools
from ctxchat.core.stored_usage import stored_usage
from ctxchat.core.times import epoch
from ctxchat.core.tool_share import ON_DEMAND, Afforded, afford
from ctxchat.core.view import Item, View, compile
from ctxchat.core.working_set import touched

MODEL = "model"
"""The source of what a model is told of its own name: another one may go on with a session."""

MODE = "mode"
"""The source of what a model is told of how its calls are judged, where that is not the usual way."""

MODES: Mapping[Mode, str] = {
    "plan": "The session is in plan mode: only calls that read are run. Where a change is asked for, answer with a plan of it.",
    "read-only": "The session is read-only: only calls that read files are run.",
}

MODES_BELOW: Mapping[Mode, str] = {
    **MODES,
    "plan": "Only calls that read are run: files, and commands that write nothing. Say in your answer what would have to change.",
}
"""The same for a sub-agent: it was mostly asked to find something out, and nobody waits for a plan."""

MAX_REMEMBERED_CHANGES = 30
"""Changes that are told apart where a request differs from the one before."""

MAX_EARLIER_PATHS = 100
"""Paths that a session worked on before it was opened, whose folders' memory files go on to apply."""

STRICT = os.environ.get("_CTXCHAT_STRICT_PREFIX") == "1"
"""A request whose beginning differs for no reason of ours fails; elsewhere it is told in the record. For tests."""


class UnexplainedBreak(BaseException):
    """A request does not begin with the one before, and nothing of ours says why. Nothing that mends a turn may catch it."""

    def __init__(self, broke: PrefixBreak, view: View) -> None:
        shown = view.items[broke.place - 1].message if 0 < broke.place <= len(view.items) else "(none)"
        super().__init__(f"a request differs from the one before at {broke.place} ({broke.message}): {shown}")


class Conversation(JournalWriter):
    """The journal of one session, and the view and figures that follow from it."""

    def __init__(
        self,
        journal: JournalPort,
        state: SessionState,
        model: ModelPort,
        clock: Clock,
        config: SessionConfig,
        *,
        tools: Sequence[ToolSpec],
        knowledge_store: ModelKnowledgeStore | None = None,
        known: Known | None = None,
        masked: MaskedRecord | None = None,
        spending: SpendingBudget | None = None,
    ) -> None:
        super().__init__(journal, state)
        self.spending = spending or SpendingBudget()
        """What may still be spent, sub-agents and summaries included."""
        self.options = config.options
        self.clock = clock
        self.backoff = Backoff.remembered(state.automatic)
        self.under_way = False
        """A turn is under way."""
        self._config = config
        self._tools = tuple(tools)
        self.mode: Mode = config.mode
        self._knowledge_store: ModelKnowledgeStore = knowledge_store or NothingKnown()
        self.masked = masked or MaskedRecord(str)
        """What of the record a model is told."""
        self._afforded = Afforded()
        self._afforded_of: tuple[tuple[ToolSpec, ...], int, frozenset[str]] = (self._tools, 0, frozenset())
        self._looking = asyncio.Lock()
        self._told: set[str] = set()
        self._weighed = len(state.ledger.changes)  # changes in force when the counter last forgot what is not in view
        self._looks = self._newest = 0  # looks begun, and which of them the view stands on
        self._streamed = Mix()
        self.use(ModelKnowledge(self, self._knowledge_store, model, known or Known()))
        self._around: Surroundings | None = None  # as they were asked for last
        config.context_sources.go_to(touched(state.ledger.groups_in_force, MAX_EARLIER_PATHS))
        self._every_request: tuple[ContextBlock, ...] = ()
        self._prefix_guard = PrefixGuard(state.sent)
        self._requests = 0  # made so far
        self._breaks: PrefixBreak | None = None  # what the next request does to the beginning of the one before
        self._sent: tuple[SentPrefix | None, PrefixBreak | None] = (None, None)  # of the request under way
        self._instructed_anew = False  # by settings that were edited, or as another agent: the head no longer holds
        self.view: View = View((), (), (), 0, 0)
        self.context_usage: ContextUsage = stored_usage(self.measured(), state, self.knowledge.off(state.used))

    async def learned_of(self, model: ModelPort) -> ModelKnowledge:
        """What earlier sessions have learned of a model; it may have to be read."""
        return ModelKnowledge(
            self, self._knowledge_store, model, await asyncio.to_thread(self._knowledge_store.load, model.name)
        )

    def use(self, knowledge: ModelKnowledge) -> None:
        """Go on with the model of which this is known; what it can hold is asked at the next refresh."""
        self.model = knowledge.model
        self._prices: ModelPrices | None = None
        self._rules = CacheRules()
        self._held: tuple[Beginning, ...] = ()  # beginnings of the next request that its server keeps
        self.knowledge = knowledge
        self.counter = knowledge.counter

    async def configure(self, config: SessionConfig, tools: Sequence[ToolSpec]) -> None:
        """Be set up so from the next look on. Sources of context that are exchanged are closed."""
        before, self._config = self._config, config
        self.options, self._tools = config.options, tuple(tools)
        if (before.system, before.tools) != (config.system, config.tools):
            self._instructed_anew = True
        if before.context_sources is not config.context_sources:
            config.context_sources.go_to(touched(self.ledger.groups_in_force, MAX_EARLIER_PATHS))
            self._around = None
            await before.context_sources.close()

    def offer(self, tools: Sequence[ToolSpec], mode: Mode) -> None:
        """What the model can call from the next request on (servers come and go while a session is open), and how its calls
        are judged."""
        self._tools, self.mode = tuple(tools), mode

    # ── reading ──

    @property
    def window(self) -> Window:
        """What the model can hold, as far as it is known."""
        return self.knowledge.window

    @property
    def budget(self) -> Budget:
        """The token budget with the window as known now."""
        o, step = self.options, self._price_step
        working = o.working_limit or (step.above if step else 0)
        return make_budget(self.window, o.output_reserved, o.compression_trigger, o.target, o.section_budgets, working)

    @property
    def on_own_server(self) -> bool:
        """Its model is served on this machine, or by a server that tells how fast it reads, which no provider does."""
        return self.model.may_queue or self.context_usage.cache.cold.seconds is not None

    @property
    def lasting(self) -> bool:
        """A person reads and thinks between the messages, and more of them are to be expected."""
        return self._config.lasting

    @property
    def agent(self) -> str:
        """The name of the agent it is, empty for the usual one."""
        return self._config.agent

    @property
    def by_hook(self) -> bool:
        """Hooks say when room is made, so no compaction starts by itself before a request."""
        return replaces_automatic(self._config.hooks)

    @property
    def automatic(self) -> Automatic:
        """Whether compaction starts by itself in the turn under way, else in the next."""
        said = sum(1 for item in self.view.items if item.group)
        return self.backoff.automatic(
            self.options,
            self.clock.seconds() if self.backoff.failures else 0.0,
            self.ledger.turn + (not self.under_way),
            by_hook=self.by_hook,
            few=said + (not self.under_way) < self.options.min_messages,
        )

    @property
    def effort(self) -> str:
        """The level of effort asked for: chosen in this session, else as the settings have it; empty where there is none, or the
        model has no such level."""
        wanted, levels = self.state.effort or self._config.effort, self.model.efforts
        return wanted if levels is None or wanted in levels else ""

    async def refresh(self) -> ContextUsage:
        """Ask what the model can hold and, between turns, what stands around; compile and measure what the next request would
        hold. Whoever is asked may take long, so nobody waits for another's look: one that was overtaken by a later one changes
        nothing."""
        self._looks += 1
        look, model = self._looks, self.model
        claimed = await self.knowledge.asked()
        prices, rules = await asyncio.to_thread(self._asked_prices, model)
        every_request = await self._config.context_sources.every_request()
        if not self.under_way or self._around is None:
            await self.look_around()
        async with self._looking:
            if look < self._newest or model is not self.model:
                return self.context_usage
            self.knowledge.apply(*claimed)
            self._newest, self._every_request = look, every_request
            self._prices, self._rules = prices, rules
            await self._afford_tools()
            return self._adopt(await self.compiled(self.ledger))

    def _asked_prices(self, model: ModelPort) -> tuple[ModelPrices | None, CacheRules]:
        """What it costs now, some at other hours less, and how its server keeps what it is sent."""
        return model.prices(), model.cache_rules(lasting=self._config.lasting)

    async def look_around(self) -> None:
        """Ask what stands around the conversation now: for the next head, and for the note on what has changed."""
        sources = self._config.context_sources
        around = await sources.gather()
        if sources is self._config.context_sources:
            self._around = around

    @property
    def next_head(self) -> Head:
        """The head as it would be made now, by what was seen around last."""
        around = self._around or Surroundings()
        own = [ContextBlock(MODEL, f"You are served by the model {self.model.name}.")]
        own += [ContextBlock(ON_DEMAND, names)] if (names := self._afforded.on_demand) else []
        modes = MODES_BELOW if self._config.delegated else MODES
        own += [ContextBlock(MODE, words)] if (words := modes.get(self.mode, "")) else []
        context = (*around.context, *own)
        return Head(self._config.system, self._afforded.tools, around.memory, context, self._config.agent)

    def _head_is_outdated(self, head: Head) -> bool:
        return self._instructed_anew or head.agent != self._config.agent

    def _pending_note(self, ledger: Ledger, head: Head) -> tuple[str, tuple[ContextBlock, ...]]:
        """What a note would say now of what has changed around."""
        known, now = known_context(head, ledger), self.next_head
        known.pop(BUDGET, "")  # told by itself
        blocks = [*now.memory, *now.context, tools_block(head.tools, now.tools)]
        missing = (self._around or Surroundings()).late_sources.difference(b.source_id for b in blocks)
        blocks += [ContextBlock(source, known[source]) for source in missing if source in known]
        return change_note(known, blocks, ledger)

    async def tell_context(self) -> None:
        """Before a message of the person is answered: the head is made where there is none that holds, else a note goes into the
        record on what has changed around since."""
        await self.look_around()
        if await self.renew_head():
            return
        head = self.ledger.head
        assert head
        text, context = await asyncio.to_thread(self._pending_note, self.ledger, head)
        if text:
            await self.write_note(text, context)

    async def renew_head(self) -> bool:
        """Make the head, by what was seen around last, where there is none that holds; False where there is."""
        await self._afford_tools()
        head = self.ledger.head
        if head and not self._head_is_outdated(head):
            return False
        head = without_tool_told(self.next_head, self.ledger)
        tokens = await asyncio.to_thread(self._head_tokens, head)
        self._instructed_anew = False  # behind what a cancel may cut off
        await self._write_or_note(HeadSet(head, tokens))
        return True

    async def tell_memory_below(self) -> None:
        """After a round: where its calls went to folders with memory files of their own, a note says what those say."""
        sources, ledger = self._config.context_sources, self.ledger
        if ledger.head is None or not ledger.groups or not sources.go_to(touched(ledger.groups[-1:])):
            return
        memory = await sources.read_memory()
        known = known_context(ledger.head, ledger)
        text, context = change_note({}, [block for block in memory if block.source_id not in known], ledger)
        if self._around is not None:
            self._around = msgspec.structs.replace(self._around, memory=memory)
        if text:
            await self.write_note(text, context)

    async def tell_budget(self) -> bool:
        """Between the rounds of a turn: a note on how full the window is, each time it has become fuller by a step. False where
        there is nothing to say."""
        head = self.ledger.head
        known = known_context(head, self.ledger).get(BUDGET, "") if head else ""
        step, text = budget_note(self.context_usage)
        if not text or step <= known:
            return False
        await self.write_note(ContextBlock(BUDGET, text).attributed, (ContextBlock(BUDGET, step),))
        return True

    async def write_note(self, text: str, context: Sequence[ContextBlock] = ()) -> None:
        """A note of ours behind what was said last, as an entry of the record."""
        ledger = self.ledger
        await self._write_or_note(
            Sealed((context_note(ledger.next_seq, self.clock.now(), ledger.turn, text, context),))
        )

    async def _write_or_note(self, record: Record) -> None:
        """What was said must not depend on a disk: where the store refuses, it is asked again with whatever comes next."""
        try:
            await self.write(record)
        except StorageError:
            self.apply_now_write_later(record)

    # ── sending ──

    async def checked_view(self) -> View:
        """The view as it goes out now, held against the request before. Where its beginning has changed, reasoning that a
        provider has bound to it is left out for good. Raises UnexplainedBreak in a run that asks for it (`STRICT`)."""
        self._requests += 1
        request = request_of(self.view, self._explanations, self.effort)
        broke = await asyncio.to_thread(self._prefix_guard.check, self.model.name, request)
        if broke and broke.thoughts and self.model.binds_thinking and (span := self._bound_thoughts(broke)):
            self.apply_now_write_later(ThoughtsLeftOut(*span))
            await self.remeasure()
            request = request_of(self.view, self._explanations, self.effort)
        if broke and not broke.cause and STRICT:
            raise UnexplainedBreak(broke, self.view)
        marked = {n: self._share(n) for n in marked_lengths(self.view)} if self._rules.marks else {}
        prefix = await asyncio.to_thread(self._prefix_guard.remember, self.model.name, request, marked)
        prefix = msgspec.structs.replace(prefix, started=self.clock.now(), life=self._rules.life)
        self._sent = (prefix, broke)
        return self.view

    async def request(self, max_output: int, images: Mapping[str, str]) -> ModelRequest:
        """The next model call, with room for so many tokens of a reply. Raises as `checked_view`."""
        return self.call_with(await self.checked_view(), max_output, images)

    def call_with(self, view: View, max_output: int, images: Mapping[str, str]) -> ModelRequest:
        """A call to the model of the conversation, of which its provider finds what it has cached."""
        return ModelRequest(
            view,
            max_output,
            images,
            session=self.journal.session,
            lasting=self._config.lasting,
            effort=self.effort,
        )

    async def refuse_tools(self, names: Collection[str], *, reduced: bool) -> None:
        """The server of this model refused how these are described: from now on it is not told of them, or it is told of their
        arguments in words (`reduced`). Raises StorageError."""
        model, head = self.model.name, self.ledger.head
        records: list[Record] = [ToolRefused(model, name, reduced) for name in names]
        if head:
            tools = accepted_tools(head.tools, () if reduced else names, names if reduced else ())
            head = msgspec.structs.replace(head, tools=tools)
            records.append(HeadSet(head, await asyncio.to_thread(self._head_tokens, head)))
        await self.write(*records)

    def _head_tokens(self, head: Head) -> int:
        return compile(Ledger(), head, self.counter).raw

    async def leave_out_thoughts(self) -> bool:
        """A provider refused reasoning because of what stands before it: none so far goes back from now on. False where none
        did."""
        if not any(item.message.reasoning for item in self.view.items):
            return False
        self.apply_now_write_later(ThoughtsLeftOut(0, self.ledger.next_seq))
        await self.remeasure()
        return True

    def as_sent(self, measured: Measured, notes: ReplyNotes = ReplyNotes()) -> Measured:  # noqa: B008 (frozen)
        """With what is to be remembered of the request that was counted, and what its server told besides."""
        sent, broke = self._sent
        miss, prefill = notes.cache_miss, notes.prefill
        return msgspec.structs.replace(measured, sent=sent, broke=broke, cache_miss=miss, prefill=prefill)

    def _share(self, length: int) -> float:
        """Of the next request's tokens the share that so many messages have, tools being the first, by how the server is known to
        count: what a request costs besides is for its tools."""
        known, view = self.knowledge.calibration, self.view
        begun = total((Mix(tools=sum(view.tool_tokens)), *(item.kinds for item in view.items[: length - 1])))
        return min(1.0, known.estimate_request(begun) / max(1, known.estimate_request(view.kinds)))

    def _bound_thoughts(self, broke: PrefixBreak) -> tuple[int, int] | None:
        """The numbers of the messages whose reasoning stands behind the first difference."""
        behind = self.view.items[max(0, broke.place - 1) :]
        thinking = [item.message.seq for item in behind if item.message.reasoning]
        return (min(thinking), self.ledger.next_seq) if thinking else None

    @property
    def _explanations(self) -> dict[str, str]:
        """All of ours that may make the beginning of a request another one, by what it is called in words."""
        changes = self.ledger.changes
        found = {
            self._change_name(change): f"{change.id} {sum(len(edit.covers) for edit in change.edits)}"
            for change in changes[-MAX_REMEMBERED_CHANGES:]
        }
        found |= {"earlier changes": str(len(changes))} if len(changes) > MAX_REMEMBERED_CHANGES else {}
        if head := self.ledger.head:
            found["the head"] = hashlib.blake2b(msgspec.json.encode(head), digest_size=6).hexdigest()
        if spans := self.ledger.thoughts_left_out:
            found["reasoning left out"] = str(spans)
        if self.model.keeps_reasoning:
            found["reasoning sent back"] = ""
        found["masked secrets"] = self.masked.settings_digest
        found |= dict.fromkeys(self._config.rewriting, str(self._requests))
        found |= {f"{b.source_id}, said with every request": str(self._requests) for b in self._every_request}
        return found

    def _change_name(self, change: Change) -> str:
        """A change as people know it: a compaction by its number, any other by the message it begins with."""
        touched = [*change.pins, *change.adds, *(name for edit in change.edits for name in edit.covers[:1])]
        if change.kind == "compaction" or not touched:
            return f"{change.kind} {change.id.rpartition('-c')[2]}"  # without the id of the session
        return f"{change.kind} of {self.ledger.group(touched[0]).first.id}"

    # ── tools, troubles, long texts ──

    async def _afford_tools(self) -> None:
        """Find those of the tools on offer that are described to the model; off the loop, since some servers bring hundreds."""
        head, counter, model, state = self.ledger.head, self.counter, self.model.name, self.state
        offered = accepted_tools(self._tools, state.refused_tools.get(model, ()), state.reduced_tools.get(model, ()))
        holds = head is not None and not self._head_is_outdated(head)
        told = described_tools(head, self.ledger) if head and holds else frozenset[str]()
        of = (offered, self.budget.limit, told)
        if of != self._afforded_of:
            self._afforded = await asyncio.to_thread(
                afford, of[0], lambda tool: counter.tool(tool.schema), counter.count_text, *of[1:]
            )
            self._afforded_of = of

    async def remeasure(self) -> ContextUsage:
        """Compile and measure in the frame of the last request: for what was added to it since, without asking anybody."""
        async with self._looking:
            return self._adopt(await self.compiled(self.ledger))

    def troubles(self) -> tuple[str, ...]:
        """Who around the conversation was late or failed, in a sentence each; nobody is named twice."""
        troubles = self._config.context_sources.troubles
        said = {source: f"Context from {source} {why}." for source, why in troubles.items()}
        new = {source: text for source, text in said.items() if source not in self._told}
        self._told.update(new)
        return tuple(new.values())

    async def put_away(self, name: str, text: str, tokens: int, most: int) -> str:
        """Keep a text of so many tokens as a file of the session: its head and tail in at most `most` tokens, and where the rest
        lies. Raises StorageError."""
        path = await self.journal.spill(name, text)
        return await self.clipped(text, most, f"full text: {path}, {tokens:,} tokens")

    async def clipped(self, text: str, most: int, rest: str) -> str:
        """Head and tail of a text in at most `most` tokens, with a word on the rest between them."""
        mark = f"\n[… {{lines}}{{tokens}} tokens left out; {rest} …]\n"
        return await asyncio.to_thread(clip, text, most, self.counter.count_text, mark)

    async def stop_background_work(self) -> None:
        """End what is still at work around the conversation."""
        await self._config.context_sources.close()

    def _adopt(self, view: View) -> ContextUsage:
        if self._weighed != len(self.ledger.changes):
            self._weighed = len(self.ledger.changes)
            self.counter.forget_all_but(item.message for item in view.items)
        self.view, self._streamed = view, Mix()
        request, model = request_of(view, self._explanations, self.effort), self.model.name
        self._breaks = self._prefix_guard.check(model, request)
        held = self._prefix_guard.held_part(model, request, self.state.held.get(model, ()))
        self._held = found_beginnings(view, held, self._rules)
        self.context_usage = self.measured()
        return self.context_usage

    async def compiled(self, ledger: Ledger) -> View:
        """The view a ledger has in the frame of the last refresh, made off the event loop."""
        return await asyncio.to_thread(self.compile, ledger)

    def compile(self, ledger: Ledger) -> View:
        """As `compiled`, at once: for work that is off the event loop already."""
        head = (
            ledger.head
            if ledger.head and not self._head_is_outdated(ledger.head)
            else without_tool_told(self.next_head, ledger)
        )
        note = (
            self._pending_note(ledger, head)[0] if ledger.head is head and not self.under_way and self._around else ""
        )
        return compile(
            ledger,
            head,
            self.counter,
            self._config.compiler,
            (self._mask, *self._config.transforms),
            keep_reasoning=self.model.keeps_reasoning,
            note=note,
            every_request=self._every_request,
        )

    def _mask(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return self.masked.items(items, self.counter)

    def expected(self, view: View, compactions: int, anchor: Anchor | None = None) -> ContextUsage:
        """The gauge such a view would show: an estimate, unless a server has counted it when it was there before (`anchor`)."""
        counting = msgspec.structs.replace(self._counting, anchor=anchor, scale=self.as_counted)
        return measure(view, self.budget, counting, past=Past(compactions=compactions), automatic=self.automatic)

    @property
    def as_counted(self) -> float:
        """Gauge tokens for a token of our estimate of the present view: what comes before and after a change is on one scale."""
        used, whole = (
            self.context_usage.used - self.context_usage.tokens("draft"),
            self.knowledge.calibration.estimate_request(self.view.kinds),
        )
        return used / whole if self.view.raw and used > 0 and whole > 0 else self._counting.scale

    @property
    def scale(self) -> float:
        """Gauge tokens for a raw token of the present view."""
        raw, used = self.view.raw, self.context_usage.used
        return used / raw if raw and used else self.knowledge.calibration.ratio

    def streaming(self, reply: Mix) -> ContextUsage:
        """The gauge with our count of a reply that is not sealed yet, on top of the last view."""
        self._streamed = reply
        return self.remeasured()

    def remeasured(self) -> ContextUsage:
        """The gauge of the last view, with what has been booked since."""
        self.context_usage = self.measured()
        return self.context_usage

    def measured(self, view: View | None = None, *, draft: Mix = NO_MIX) -> ContextUsage:
        """The gauge of a view; without one, of the last, of what is arriving on top of it, and of what is being typed."""
        state, automatic = self.state, self.automatic
        others = state.anchor is not None and self.knowledge.anchor is None  # counted, and cached, by another's server
        cached = 0 if others else state.cached
        if self.under_way and draft.raw:
            automatic = msgspec.structs.replace(automatic, joins=True)
        context_usage = measure(
            self.view if view is None else view,
            self.budget,
            self._counting,
            draft=draft,
            streamed=self._streamed if view is None else NO_MIX,
            past=Past(state.fills, len(state.ledger.compactions), state.cost_usd, cached, state.cut),
            automatic=automatic,
        )
        if view is not None:
            return context_usage
        cache = self._cache_state(context_usage.used)
        context_usage = msgspec.structs.replace(context_usage, cache=cache, price_step=self._price_step)
        return context_usage if self._breaks is None else self._breaking(context_usage, self._breaks)

    @property
    def _price_step(self) -> PriceRise | None:
        """Where the model's price rises first."""
        if self._prices is None or not self._prices.steps:
            return None
        step, usual = self._prices.steps[0], self._prices.rates.input
        return PriceRise(step.above, round(step.rates.input / usual, 2)) if usual else None

    def _cache_state(self, used: int) -> CacheState:
        """What the server holds of a next request of so many tokens."""
        state, name = self.state, self.model.name
        return cache_state(
            self._held,
            used=used,
            known=bool(state.held.get(name)),
            rules=self._rules,
            prices=self._prices,
            reply=state.replied,
            prefill=state.prefill.get(name, 0.0),
            broke=state.cache_breaks[-1] if state.cache_breaks else None,
        )

    def _breaking(self, context_usage: ContextUsage, breaks: PrefixBreak) -> ContextUsage:
        """With what the next request does to the beginning of the one before, in tokens as the gauge counts them. What its server
        still holds of an earlier request that began so is not lost, nor what it no longer held anyway."""
        scale = context_usage.used / self.view.raw if self.view.raw else 1.0
        kept, lost = round(breaks.kept * scale), round(breaks.lost * scale)
        if hold := context_usage.cache.held_at(epoch(self.clock.now())):
            held = min(kept + lost, max(kept, hold.tokens))
            kept, lost = held, kept + lost - held
        if known := self.state.held.get(self.model.name):
            now = epoch(self.clock.now())
            lost = min(lost, max(0, max((h.tokens for h in known if now < h.until), default=0) - kept))
        thoughts = breaks.thoughts if self.model.binds_thinking else 0
        breaks = msgspec.structs.replace(breaks, kept=kept, lost=lost, thoughts=thoughts)
        return msgspec.structs.replace(context_usage, breaks=breaks)

    @property
    def _counting(self) -> Counting:
        knowledge = self.knowledge
        return Counting(self.model.name, knowledge.calibration, knowledge.anchor, self._price, self.state.scale)

    @property
    def _price(self) -> TokenPrice:
        """What a token of a prompt as long as the present one costs."""
        rates = self._prices.rates_at(self.state.used) if self._prices else None
        if rates is None:
            return TokenPrice()
        written = rates.written_long if self._rules.long else rates.written
        return TokenPrice(rates.input / TOKENS_PER_PRICE, rates.cached / TOKENS_PER_PRICE, written / TOKENS_PER_PRICE)
