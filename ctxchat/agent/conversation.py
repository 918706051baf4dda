"""Holds an open session: its state and journal, the view compiled from them, and the gauge measured from the view.

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
from ctxchat.core.budget import Budget, Window, make_budget, working_limit
from ctxchat.core.cache import Beginning, CacheRules, cache_state, found_beginnings, marked_lengths
from ctxchat.core.cache_state import CacheState, HeldPrefix
from ctxchat.core.calibration import Anchor, Mix
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
from ctxchat.core.prefix_guard import PrefixGuard, SentPrefix, SentRequest, request_of
from ctxchat.core.prices import TOKENS_PER_PRICE, ModelPrices
from ctxchat.core.refused import accepted_tools
from ctxchat.core.stored_usage import stored_usage
from ctxchat.core.times import epoch
from ctxchat.core.tool_share import ON_DEMAND, Afforded, afford
from ctxchat.core.view import Item, View, compile
from ctxchat.core.working_set import touched

MODEL = "model"
"""Source id of the context block that tells the model its own name: the model may be exchanged during a session."""

MODE = "mode"
"""Source id of the context block that tells the model which permission mode is in force, where it is not the usual one."""

MODES: Mapping[Mode, str] = {
    "plan": "The session is in plan mode: only calls that read are run. Where a change is asked for, answer with a plan of it.",
    "read-only": "The session is read-only: only calls that read files are run.",
}

MODES_BELOW: Mapping[Mode, str] = {
    **MODES,
    "plan": "Only calls that read are run: files, and commands that write nothing. Say in your answer what would have to change.",
}
"""`MODES` as a sub-agent is told them: it was mostly asked to find something out, and nobody waits for a plan from it."""

MAX_REMEMBERED_CHANGES = 30
"""Newest changes that can each be named as the cause of a request's difference from the one before; older ones are one cause."""

MAX_EARLIER_PATHS = 100
"""Last paths used in the record of a reopened session whose folders' memory files still apply."""

STRICT = os.environ.get("_CTXCHAT_STRICT_PREFIX") == "1"
"""Whether an unexplained change at the beginning of a request raises UnexplainedBreak instead of only being recorded. For
tests."""


class UnexplainedBreak(BaseException):
    """A request does not begin with the previous one, and no change of ours explains it. A BaseException, so that no error
    handling of a turn catches it."""

    def __init__(self, broke: PrefixBreak, view: View) -> None:
        shown = view.items[broke.place - 1].message if 0 < broke.place <= len(view.items) else "(none)"
        super().__init__(f"a request differs from the one before at {broke.place} ({broke.message}): {shown}")


class ConversationPorts(msgspec.Struct, frozen=True):
    """What a conversation calls besides its journal and its model: the clock; the store of what was learned about models, with
    what is `known` about its own at first; what replaces secrets in texts for the model; the money that may still be spent,
    sub-agents and summaries included."""

    clock: Clock
    knowledge_store: ModelKnowledgeStore = msgspec.field(default_factory=NothingKnown)
    known: Known = msgspec.field(default_factory=Known)
    masked: MaskedRecord = msgspec.field(default_factory=lambda: MaskedRecord(str))
    spending: SpendingBudget = msgspec.field(default_factory=SpendingBudget)


class Conversation(JournalWriter):
    """The journal of one session, and the view and figures that follow from it. `tools` are those that the model is offered at
    first."""

    def __init__(
        self,
        journal: JournalPort,
        state: SessionState,
        model: ModelPort,
        config: SessionConfig,
        ports: ConversationPorts,
        tools: Sequence[ToolSpec] = (),
    ) -> None:
        super().__init__(journal, state)
        self.clock, self.masked, self.spending = ports.clock, ports.masked, ports.spending
        self.options = config.options
        self.backoff = Backoff.remembered(state.automatic)
        self.under_way = False
        """Whether a turn is under way."""
        self._config = config
        self._tools = tuple(tools)
        self.mode: Mode = config.mode
        self._knowledge_store = ports.knowledge_store
        self._afforded = Afforded()
        self._afforded_of: tuple[tuple[ToolSpec, ...], int, frozenset[str]] = (self._tools, 0, frozenset())
        self._looking = asyncio.Lock()
        self._told: set[str] = set()
        # how many changes were in force when the token counter last forgot the messages outside the view
        self._weighed = len(state.ledger.changes)
        self._looks = self._newest = 0  # refreshes begun, and the number of the one the view comes from
        self._streamed = Mix()
        self.use(ModelKnowledge(self, self._knowledge_store, model, ports.known))
        self._around: Surroundings | None = None  # as last gathered; None before the first time
        config.context_sources.go_to(touched(state.ledger.groups_in_force, MAX_EARLIER_PATHS))
        self._every_request: tuple[ContextBlock, ...] = ()
        self._prefix_guard = PrefixGuard(state.sent)
        self._requests = 0  # number of requests made so far
        self._breaks: PrefixBreak | None = None  # what the next request does to the beginning of the one before
        self._sent: tuple[SentPrefix | None, PrefixBreak | None] = (None, None)  # of the request under way
        self._instructed_anew = False  # edited settings or another agent made the head outdated
        self.view: View = View((), (), (), 0, 0)
        self.context_usage: ContextUsage = stored_usage(self.measured(), state, self.knowledge.off(state.used))

    async def learned_of(self, model: ModelPort) -> ModelKnowledge:
        """The knowledge that earlier sessions stored about a model, read off the event loop."""
        return ModelKnowledge(
            self, self._knowledge_store, model, await asyncio.to_thread(self._knowledge_store.load, model.name)
        )

    def use(self, knowledge: ModelKnowledge) -> None:
        """Switch to the model of `knowledge`; its context window is asked for at the next refresh."""
        self.model = knowledge.model
        self._prices: ModelPrices | None = None
        self._rules = CacheRules()
        self._held: tuple[Beginning, ...] = ()  # beginnings of the next request that its server keeps
        self._counted: Anchor | None = None  # the server's count of the view's beginning
        self.knowledge = knowledge
        self.counter = knowledge.counter

    async def configure(self, config: SessionConfig, tools: Sequence[ToolSpec]) -> None:
        """Apply another configuration from the next refresh on. Context sources that it replaces are closed."""
        before, self._config = self._config, config
        self.options, self._tools = config.options, tuple(tools)
        instructed = (config.system, config.tools, config.disallowed_tools)
        if (before.system, before.tools, before.disallowed_tools) != instructed:
            self._instructed_anew = True
        if before.context_sources is not config.context_sources:
            config.context_sources.go_to(touched(self.ledger.groups_in_force, MAX_EARLIER_PATHS))
            self._around = None
            await before.context_sources.close()

    def offer(self, tools: Sequence[ToolSpec], mode: Mode) -> None:
        """Set the tools the model can call from the next request on (servers come and go while a session is open), and the
        permission mode."""
        self._tools, self.mode = tuple(tools), mode

    # ── reading ──

    @property
    def window(self) -> Window:
        """The model's context window, as far as it is known."""
        return self.knowledge.window

    @property
    def budget(self) -> Budget:
        """The token budget with the window as known now."""
        o, step = self.options, self._price_step
        working = working_limit(self.window.tokens, o.working_limit, step.above if step else 0)
        return make_budget(self.window, o.output_reserved, o.compression_trigger, o.target, o.section_budgets, working)

    @property
    def on_own_server(self) -> bool:
        """Whether the model runs on this machine, or on a server that tells how fast it reads a prompt, which no provider
        does."""
        return self.model.may_queue or self.context_usage.cache.cold.seconds is not None

    @property
    def lasting(self) -> bool:
        """Whether more messages are expected, with pauses in which a person reads and thinks."""
        return self._config.lasting

    @property
    def agent(self) -> str:
        """The name of the configured agent, empty for the usual one."""
        return self._config.agent

    @property
    def by_hook(self) -> bool:
        """Whether hooks decide when to compact, so that no compaction starts by itself before a request."""
        return replaces_automatic(self._config.hooks)

    @property
    def automatic(self) -> Automatic:
        """Whether compaction starts by itself in the turn under way, else in the next."""
        messages = sum(1 for item in self.view.items if item.group)
        return self.backoff.automatic(
            self.options,
            self.clock.seconds() if self.backoff.failures else 0.0,
            self.ledger.turn + (not self.under_way),
            by_hook=self.by_hook,
            few=messages + (not self.under_way) < self.options.min_messages,
        )

    @property
    def effort(self) -> str:
        """The level of effort to request: the one chosen in this session, else that of the settings; empty where there is none,
        or the model has no such level."""
        wanted, levels = self.state.effort or self._config.effort, self.model.efforts
        return wanted if levels is None or wanted in levels else ""

    async def refresh(self) -> ContextUsage:
        """Ask for the model's context window, prices and, between turns, its surroundings; then compile and measure the next
        request. The answers may take long, so several refreshes may run at the same time: one that was overtaken by a later one
        changes nothing."""
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
        """The model's prices now, which may depend on the hour, and its server's rules for caching prompts."""
        return model.prices(), model.cache_rules(lasting=self._config.lasting)

    async def look_around(self) -> None:
        """Gather context and memory files anew: for the next head, and for the note on what has changed."""
        sources = self._config.context_sources
        around = await sources.gather()
        if sources is self._config.context_sources:
            self._around = around

    @property
    def next_head(self) -> Head:
        """The head as it would be made now, from the surroundings gathered last."""
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
        """The text and blocks of a note on what has changed in the surroundings since the model was last told; empty for
        nothing."""
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
        """Write a new head, from the surroundings gathered last, unless the present one still holds: then False."""
        await self._afford_tools()
        head = self.ledger.head
        if head and not self._head_is_outdated(head):
            return False
        head = without_tool_told(self.next_head, self.ledger)
        tokens = await asyncio.to_thread(self._head_tokens, head)
        self._instructed_anew = False  # only now: a cancel during the awaits above must leave it set
        await self._write_or_note(HeadSet(head, tokens))
        return True

    async def tell_memory_below(self) -> None:
        """After a round: write a note with the memory files of folders that its calls used for the first time."""
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
        """Between the rounds of a turn: write a note on how full the window is, each time it has become fuller by a step. False
        where there is nothing to say."""
        head = self.ledger.head
        known = known_context(head, self.ledger).get(BUDGET, "") if head else ""
        step, text = budget_note(self.context_usage)
        if not text or step <= known:
            return False
        await self.write_note(ContextBlock(BUDGET, text).attributed, (ContextBlock(BUDGET, step),))
        return True

    async def write_note(self, text: str, context: Sequence[ContextBlock] = ()) -> None:
        """Append a note of ours to the record, after the last message."""
        ledger = self.ledger
        await self._write_or_note(
            Sealed((context_note(ledger.next_seq, self.clock.now(), ledger.turn, text, context),))
        )

    async def _write_or_note(self, record: Record) -> None:
        """Write a record; if the store refuses, apply it all the same and write it together with the next: a turn must not fail
        because of a note."""
        try:
            await self.write(record)
        except StorageError:
            self.apply_now_write_later(record)

    # ── sending ──

    async def checked_view(self) -> View:
        """The view for a request now, after it was compared with the previous request. Where its beginning has changed, reasoning
        that a provider has bound to that beginning is left out for good. Raises UnexplainedBreak where `STRICT` is set."""
        self._requests += 1
        request = self._request_of(self.view)
        broke = await asyncio.to_thread(self._prefix_guard.check, self.model.name, request)
        if broke and broke.thoughts and self.model.binds_thinking and (span := self._bound_thoughts(broke)):
            self.apply_now_write_later(ThoughtsLeftOut(*span))
            await self.remeasure()
            request = self._request_of(self.view)
        if broke and not broke.cause and STRICT:
            raise UnexplainedBreak(broke, self.view)
        marked = {n: self._share(n) for n in marked_lengths(self.view)} if self._rules.marks else {}
        prefix = await asyncio.to_thread(self._prefix_guard.remember, self.model.name, request, marked)
        prefix = msgspec.structs.replace(prefix, started=self.clock.now(), life=self._rules.life)
        self._sent = (prefix, broke)
        return self.view

    def _request_of(self, view: View) -> SentRequest:
        return request_of(view, self._explanations, self.effort, by_reference=self.model.refers_to_tools)

    async def request(self, max_output: int, images: Mapping[str, str]) -> ModelRequest:
        """The next model call, with at most `max_output` tokens of a reply. Raises like `checked_view`."""
        return self.call_with(await self.checked_view(), max_output, images)

    def call_with(self, view: View, max_output: int, images: Mapping[str, str]) -> ModelRequest:
        """A model call with any view, under the id of this session, by which its provider finds what it has cached."""
        return ModelRequest(
            view,
            max_output,
            images,
            session=self.journal.session,
            lasting=self._config.lasting,
            effort=self.effort,
        )

    async def refuse_tools(self, names: Collection[str], *, reduced: bool) -> None:
        """Record that the model's server refused the schemas of these tools: from now on they are not sent, or with `reduced`
        only with their arguments described in words. Raises StorageError."""
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
        """After a provider refused reasoning because of what stands before it: leave out all reasoning so far. False where the
        view has none."""
        if not any(item.message.reasoning for item in self.view.items):
            return False
        self.apply_now_write_later(ThoughtsLeftOut(0, self.ledger.next_seq))
        await self.remeasure()
        return True

    def as_sent(self, measured: Measured, notes: ReplyNotes = ReplyNotes()) -> Measured:  # noqa: B008 (frozen)
        """`measured` with what is remembered of the request under way, and what its server told about caching and reading
        speed."""
        sent, broke = self._sent
        miss, prefill = notes.cache_miss, notes.prefill
        return msgspec.structs.replace(measured, sent=sent, broke=broke, cache_miss=miss, prefill=prefill)

    def _count_of(self, view: View, held: Sequence[HeldPrefix]) -> Anchor | None:
        """The server's count of the longest of the prefixes `held` of a view that it counted; None without one."""
        known = max((each for each in held if not each.estimated), key=lambda each: each.length, default=None)
        return (
            Anchor(known.tokens, view.kinds_of_prefix(known.length), view.changes, self.model.name) if known else None
        )

    def _share(self, length: int) -> float:
        """The share (0 to 1) of the next request's tokens in its first `length` messages, tools counting as the first, as its
        server is known to count; the fixed overhead of a request is taken to be for its tools."""
        known, view = self.knowledge.calibration, self.view
        part = known.estimate_request(view.kinds_of_prefix(length))
        return min(1.0, part / max(1, known.estimate_request(view.kinds)))

    def _bound_thoughts(self, broke: PrefixBreak) -> tuple[int, int] | None:
        """The range of message numbers whose reasoning stands behind the first difference; None where there is no reasoning."""
        behind = self.view.items[max(0, broke.place - 1) :]
        thinking = [item.message.seq for item in behind if item.message.reasoning]
        return (min(thinking), self.ledger.next_seq) if thinking else None

    @property
    def _explanations(self) -> dict[str, str]:
        """Every cause of ours for a changed beginning of a request: its name for people, and a value that changes with it."""
        changes = self.ledger.changes
        causes = {
            self._change_name(change): f"{change.id} {sum(len(edit.covers) for edit in change.edits)}"
            for change in changes[-MAX_REMEMBERED_CHANGES:]
        }
        causes |= {"earlier changes": str(len(changes))} if len(changes) > MAX_REMEMBERED_CHANGES else {}
        if head := self.ledger.head:
            causes["the head"] = hashlib.blake2b(msgspec.json.encode(head), digest_size=6).hexdigest()
        if spans := self.ledger.thoughts_left_out:
            causes["reasoning left out"] = str(spans)
        if self.model.keeps_reasoning:
            causes["reasoning sent back"] = ""
        causes["masked secrets"] = self.masked.settings_digest
        causes |= dict.fromkeys(self._config.rewriting, str(self._requests))
        causes |= {f"{b.source_id}, said with every request": str(self._requests) for b in self._every_request}
        return causes

    def _change_name(self, change: Change) -> str:
        """A change's name for people: a compaction with its number, any other with the message it begins with."""
        touched = [*change.pins, *change.adds, *(name for edit in change.edits for name in edit.covers[:1])]
        if change.kind == "compaction" or not touched:
            return f"{change.kind} {change.id.rpartition('-c')[2]}"  # without the id of the session
        return f"{change.kind} of {self.ledger.group(touched[0]).first.id}"

    # ── tools, troubles, long texts ──

    async def _afford_tools(self) -> None:
        """Choose which of the tools on offer are described to the model; off the event loop, since some servers offer
        hundreds."""
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
        """Compile and measure with the answers of the last refresh, asking nobody: after something was added to the record."""
        async with self._looking:
            return self._adopt(await self.compiled(self.ledger))

    def troubles(self) -> tuple[str, ...]:
        """A sentence for each context source that was late or failed; none is reported twice."""
        troubles = self._config.context_sources.troubles
        sentences = {source: f"Context from {source} {why}." for source, why in troubles.items()}
        new = {source: text for source, text in sentences.items() if source not in self._told}
        self._told.update(new)
        return tuple(new.values())

    async def put_away(self, name: str, text: str, tokens: int, most: int) -> str:
        """Save a text of `tokens` tokens as a file of the session. Return its head and tail in at most `most` tokens, with the
        path of the file between them. Raises StorageError."""
        path = await self.journal.spill(name, text)
        return await self.clipped(text, most, f"full text: {path}, {tokens:,} tokens")

    async def clipped(self, text: str, most: int, rest: str) -> str:
        """Head and tail of a text in at most `most` tokens, with `rest` between them: where the part left out can be found."""
        mark = f"\n[… {{lines}}{{tokens}} tokens left out; {rest} …]\n"
        return await asyncio.to_thread(clip, text, most, self.counter.count_text, mark)

    async def stop_background_work(self) -> None:
        """Close the context sources, with whatever they still have running."""
        await self._config.context_sources.close()

    def _adopt(self, view: View) -> ContextUsage:
        """Make this the view of the conversation: compare it with the last request, find what of it the server has cached, and
        return its gauge."""
        if self._weighed != len(self.ledger.changes):
            self._weighed = len(self.ledger.changes)
            self.counter.forget_all_but(item.message for item in view.items)
        self.view, self._streamed = view, Mix()
        request, model = self._request_of(view), self.model.name
        self._breaks = self._prefix_guard.check(model, request)
        held = self._prefix_guard.held_part(model, request, self.state.held.get(model, ()))
        self._held = found_beginnings(view, held, self._rules)
        self._counted = self._count_of(view, held)
        self.context_usage = self.measured()
        return self.context_usage

    async def compiled(self, ledger: Ledger) -> View:
        """The view of a ledger with the answers of the last refresh, compiled off the event loop."""
        return await asyncio.to_thread(self.compile, ledger)

    def compile(self, ledger: Ledger) -> View:
        """Like `compiled`, without a thread: for callers that are off the event loop already."""
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
        """The gauge that `view` would show after `compactions`: an estimate, unless a server counted it earlier (`anchor`)."""
        scale = 1.0 if anchor else self.as_counted
        if anchor is None:
            name = self.model.name
            held = self._prefix_guard.held_part(name, self._request_of(view), self.state.held.get(name, ()))
            anchor = self._count_of(view, held)
        counting = msgspec.structs.replace(self._counting, anchor=anchor, scale=scale)
        return measure(view, self.budget, counting, past=Past(compactions=compactions), automatic=self.automatic)

    @property
    def as_counted(self) -> float:
        """Gauge tokens for each token of our estimate of the present view, so that figures before and after a change compare."""
        used, whole = (
            self.context_usage.used - self.context_usage.tokens("draft"),
            self.knowledge.calibration.estimate_request(self.view.kinds),
        )
        return used / whole if self.view.raw and used > 0 and whole > 0 else self._counting.scale

    @property
    def scale(self) -> float:
        """Gauge tokens for each raw token of the present view."""
        raw, used = self.view.raw, self.context_usage.used
        return used / raw if raw and used else self.knowledge.calibration.ratio

    def streaming(self, reply: Mix) -> ContextUsage:
        """The gauge of the last view plus our count of a reply that is not sealed yet."""
        self._streamed = reply
        return self.remeasured()

    def remeasured(self) -> ContextUsage:
        """The gauge of the last view, measured with the state as it is now."""
        self.context_usage = self.measured()
        return self.context_usage

    def measured(self, view: View | None = None, *, draft: Mix = NO_MIX) -> ContextUsage:
        """The gauge of `view` and of a message being typed (`draft`); without a view, of the last one and the reply arriving."""
        state, automatic = self.state, self.automatic
        others = (
            state.anchor is not None and self.knowledge.anchor is None
        )  # the last request was counted, and cached, by another model's server
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
        """The prompt length from which the model's input price rises, and by what factor; None where it does not rise."""
        if self._prices is None or not self._prices.steps:
            return None
        step, usual = self._prices.steps[0], self._prices.rates.input
        return PriceRise(step.above, round(step.rates.input / usual, 2)) if usual else None

    def _cache_state(self, used: int) -> CacheState:
        """What the server has cached of a next request of `used` tokens."""
        state, name = self.state, self.model.name
        return cache_state(
            self._held,
            used=used,
            known=bool(state.held.get(name)),
            rules=self._rules,
            prices=self._prices,
            prefill=state.prefill.get(name, 0.0),
            broke=state.cache_breaks[-1] if state.cache_breaks else None,
        )

    def _breaking(self, context_usage: ContextUsage, breaks: PrefixBreak) -> ContextUsage:
        """The gauge with how much of the previous request's beginning the next one keeps and loses, in gauge tokens. What the
        server still has cached of an earlier request with that beginning is not lost, nor what had expired anyway."""
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
        anchor = knowledge.anchor
        if anchor is None or anchor.passes != self.view.changes:
            anchor = self._counted
        return Counting(self.model.name, knowledge.calibration, anchor, self._price, self.state.scale)

    @property
    def _price(self) -> TokenPrice:
        """The price in US dollars of one token of a prompt as long as the present one."""
        rates = self._prices.rates_at(self.state.used) if self._prices else None
        if rates is None:
            return TokenPrice()
        written = rates.written_long if self._rules.long else rates.written
        return TokenPrice(rates.input / TOKENS_PER_PRICE, rates.cached / TOKENS_PER_PRICE, written / TOKENS_PER_PRICE)
