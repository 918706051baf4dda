"""A session while it is being worked on: its state and journal, the view compiled from them, and the gauge.

Knows nothing of turns or screens.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from ctxchat.agent.guard import Guard
from ctxchat.agent.journal_writer import JournalWriter
from ctxchat.agent.learned import Assumptions, Learned, NothingKnown
from ctxchat.agent.session_config import SessionConfig
from ctxchat.core.automatic import Automatic
from ctxchat.core.budget import Budget, Window, make_budget
from ctxchat.core.budget_note import budget_note
from ctxchat.core.calibration import Mix
from ctxchat.core.clip import clip
from ctxchat.core.figures import NO_MIX, Counting, Figures, Past, TokenPrice, measure
from ctxchat.core.hooks import replaces_automatic
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Ledger
from ctxchat.core.masked_record import MaskedRecord
from ctxchat.core.ports import Clock, JournalPort, ModelPort
from ctxchat.core.sections import section_of
from ctxchat.core.tool_share import Afforded, afford
from ctxchat.core.view import Frame, Item, ToolSpec, View, compile, grown, with_budget

CHARACTERS = 4
"""Characters of a token, for a first guess."""


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
        assumptions: Assumptions | None = None,
        price_of: Callable[[str], TokenPrice] = lambda model: TokenPrice(),
        masked: MaskedRecord | None = None,
    ) -> None:
        super().__init__(journal, state)
        self.options = config.options
        self.clock = clock
        self.guard = Guard.remembered(state.automatic)
        self.under_way = False
        """A turn is under way."""
        self._config = config
        self._tools = tuple(tools)
        self._assumptions: Assumptions = assumptions or NothingKnown()
        self._price_of = price_of
        self.masked = masked or MaskedRecord(str)
        """What of the record a model is told."""
        self._afforded, self._afforded_of = Afforded(), (self._tools, 0)
        self._looking = asyncio.Lock()
        self._told: set[str] = set()
        self._weighed = len(state.ledger.changes)  # changes in force when the meter last forgot what is not in view
        self._looks = self._newest = 0  # looks begun, and which of them the view stands on
        self._streamed = Mix()
        self.use(model)
        self._frame = Frame(config.system, self._tools)
        # changes that were in force when the memory in it was read, None before: with another of them the prefix is new
        self._framed: int | None = None
        self._note = ""
        self.view: View = View((), (), (), 0, "", 0)
        self.figures: Figures = closed_with(self.measured(), state, self.learned.off(state.used))

    def use(self, model: ModelPort) -> None:
        """Go on with this model; what it can hold is asked at the next refresh."""
        self.model = model
        self._price: TokenPrice | None = None
        self.learned = Learned(self, self._assumptions, model)
        self.meter = self.learned.meter

    async def configure(self, config: SessionConfig, tools: Sequence[ToolSpec]) -> None:
        """Be set up so from the next look on. Sources of context that are exchanged are closed."""
        before, self._config = self._config.context_sources, config
        self.options, self._tools = config.options, tuple(tools)
        if before is not config.context_sources:
            await before.close()

    def offer(self, tools: Sequence[ToolSpec]) -> None:
        """What the model can call from the next request on: servers come and go while a session is open."""
        self._tools = tuple(tools)

    # ── reading ──

    @property
    def window(self) -> Window:
        """What the model can hold, as far as it is known."""
        return self.learned.window

    @property
    def budget(self) -> Budget:
        """The token budget with the window as known now."""
        o = self.options
        return make_budget(self.window, o.output_reserved, o.compression_trigger, o.target, o.section_budgets)

    @property
    def by_hook(self) -> bool:
        """Hooks say when room is made, so no pass starts by itself before a request."""
        return replaces_automatic(self._config.hooks)

    @property
    def automatic(self) -> Automatic:
        """Whether compaction starts by itself in the turn under way, else in the next."""
        said = sum(1 for item in self.view.items if item.group)
        return self.guard.automatic(
            self.options,
            self.clock.seconds() if self.guard.failures else 0.0,
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

    async def refresh(self) -> Figures:
        """Ask what stands around, compile and measure what the next request would hold. Whoever is asked may take long, so
        nobody waits for another's look: one that was overtaken by a later one changes nothing."""
        self._looks += 1
        look, model = self._looks, self.model
        told = await self.learned.asked()
        price = self._price or await asyncio.to_thread(self._price_of, model.name)
        around = self._config.context_sources
        memory, injected = await asyncio.gather(around.memory(), around.injected())
        async with self._looking:
            if look < self._newest or model is not self.model:
                return self.figures
            self.learned.take(*told)
            self._newest, self._price = look, price
            tools = await self._affordable()
            passes = len(self.ledger.changes)
            memory, added = grown(self._frame.memory, memory) if self._framed == passes else (memory, ())
            if self.under_way or self._framed != passes:
                self._note = ""
            self._framed = passes
            self._frame = Frame(self._config.system, tools, memory, (*added, *injected), model.keeps_reasoning)
            view = await self.compiled(self.ledger)
            if self.under_way:
                self._note = budget_note(self.measured(view))
            return self._adopt(self._with_note(view))

    async def _affordable(self) -> tuple[ToolSpec, ...]:
        """Those of the tools on offer that the window has room for; weighed off the loop, since some servers bring hundreds."""
        of = (self._tools, self.budget.limit)
        if of != self._afforded_of:
            weigh = self.meter.tool
            self._afforded = await asyncio.to_thread(afford, of[0], lambda tool: weigh(tool.schema), of[1])
            self._afforded_of = of
        return self._afforded.tools

    async def again(self) -> Figures:
        """Compile and measure in the frame of the last request: for what was added to it since, without asking anybody."""
        async with self._looking:
            return self._adopt(await self.compiled(self.ledger))

    def troubles(self) -> tuple[str, ...]:
        """Who around the conversation was late, failed or is too heavy, in a sentence each; nobody is named twice."""
        troubles = self._config.context_sources.troubles
        said = {source: f"Context from {source} {why}." for source, why in troubles.items()}
        if trouble := self._afforded.trouble:
            said[trouble] = trouble
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
        return await asyncio.to_thread(clip, text, most, self.meter.text, mark)

    async def leave(self) -> None:
        """End what is still at work around the conversation."""
        await self._config.context_sources.close()

    def _adopt(self, view: View) -> Figures:
        if self._weighed != len(self.ledger.changes):
            self._weighed = len(self.ledger.changes)
            self.meter.forget_all_but(item.message for item in view.items)
        self.view, self._streamed = view, Mix()
        self.figures = self.measured()
        return self.figures

    async def compiled(self, ledger: Ledger) -> View:
        """The view a ledger has in the frame of the last refresh, made off the event loop."""
        return await asyncio.to_thread(self.compile, ledger)

    def compile(self, ledger: Ledger) -> View:
        """As `compiled`, at once: for work that is off the event loop already."""
        transforms = (self._mask, *self._config.transforms)
        return self._with_note(compile(ledger, self._frame, self.meter, self._config.compiler, transforms))

    def _with_note(self, view: View) -> View:
        """With what the newest request told the model of its window, which is true until something is changed."""
        return with_budget(view, self._note, self.meter) if self._note and view.passes == self._framed else view

    def _mask(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        return self.masked.items(items, self.meter)

    def expected(self, view: View, passes: int) -> Figures:
        """The gauge such a view would show: an estimate, since no server has counted it."""
        counting = msgspec.structs.replace(self._counting, anchor=None, scale=self.as_counted)
        return measure(view, self.budget, counting, past=Past(compactions=passes), automatic=self.automatic)

    @property
    def as_counted(self) -> float:
        """Gauge tokens for a token of our estimate of the present view: what comes before and after a change is on one scale."""
        used, whole = self.figures.used - self.figures.tokens("draft"), self.learned.calibration.whole(self.view.kinds)
        return used / whole if self.view.raw and used > 0 and whole > 0 else self._counting.scale

    @property
    def scale(self) -> float:
        """Gauge tokens for a raw token of the present view."""
        raw, used = self.view.raw, self.figures.used
        return used / raw if raw and used else self.learned.calibration.ratio

    def streaming(self, reply: Mix) -> Figures:
        """The gauge with our count of a reply that is not sealed yet, on top of the last view."""
        self._streamed = reply
        return self.remeasured()

    def remeasured(self) -> Figures:
        """The gauge of the last view, with what has been booked since."""
        self.figures = self.measured()
        return self.figures

    def measured(self, view: View | None = None, *, draft: Mix = NO_MIX) -> Figures:
        """The gauge of a view; without one, of the last, of what is arriving on top of it, and of what is being typed."""
        state, automatic = self.state, self.automatic
        others = state.anchor is not None and self.learned.anchor is None  # counted, and cached, by another's server
        cached = 0 if others else state.cached
        if self.under_way and draft.raw:
            automatic = msgspec.structs.replace(automatic, joins=True)
        return measure(
            self.view if view is None else view,
            self.budget,
            self._counting,
            draft=draft,
            streamed=self._streamed if view is None else NO_MIX,
            past=Past(state.fills, len(state.ledger.compactions), state.cost_usd, cached, state.cut),
            automatic=automatic,
        )

    @property
    def _counting(self) -> Counting:
        learned = self.learned
        price = self._price or TokenPrice()
        return Counting(self.model.name, learned.calibration, learned.anchor, price, self.state.scale)


def lengths_of(ledger: Ledger) -> Counter[str]:
    """Characters of what a view would show, by section."""
    lengths = Counter[str]()
    for entry in ledger.live():
        for message in entry.group.messages if entry.group and entry.group.kind != "system" else ():
            lengths[section_of(message, entry)] += len(message.text) + sum(len(c.arguments) for c in message.calls)
    return lengths


def shared_out(used: int, lengths: Counter[str]) -> dict[str, int]:
    """A total in tokens by section, in proportion to these lengths."""
    whole = sum(lengths.values())
    parts = {name: used * length // whole for name, length in lengths.items()} if whole else {}
    rest = max(parts, key=parts.__getitem__, default="assistant")
    return {**parts, rest: parts.get(rest, 0) + used - sum(parts.values())}


def closed_with(empty: Figures, state: SessionState, off: float) -> Figures:
    """The gauge of a stored session before the first look at it: the total and the parts it closed with. One that was imported,
    or that an older version wrote, knows the total only, which is shared out by the length of what is there; where nothing was
    ever measured, the total is estimated by it as well. `empty` is the gauge of an empty view, `off` the tokens by which the
    total may be off."""
    used, parts = state.used, state.parts
    if not used or sum(parts.values()) != used:
        lengths = lengths_of(state.ledger)
        if not used:
            used = sum(lengths.values()) // CHARACTERS
            off = used / 2
        parts = shared_out(used, lengths)
    if not used or empty.used:
        return empty
    free = max(0, empty.window - empty.reserved_output - used)
    tokens = {**parts, "free": free}
    sections = tuple(
        msgspec.structs.replace(s, tokens=tokens.get(s.name, s.tokens), estimated=s.name in tokens)
        for s in empty.sections
    )
    pressure = round(used / empty.limit, 4)
    band = round(min(0.5, off / used), 4)
    return msgspec.structs.replace(empty, used=used, estimated=True, pressure=pressure, sections=sections, band=band)
