"""A session's state while it is being worked on: the journal's fold, the view compiled from it, and the gauge.

The one place that writes to the journal and moves the state with it, in that order. Knows nothing of turns or screens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from ctxchat.agent.assumptions import Assumptions, Known, NothingKnown
from ctxchat.agent.options import Options
from ctxchat.agent.waiting import to_the_end
from ctxchat.core.budget import Budget, Window, make_budget
from ctxchat.core.compilers import Compiler, all_sections
from ctxchat.core.errors import StorageError
from ctxchat.core.events import Usage
from ctxchat.core.figures import Figures, measure, used_tokens
from ctxchat.core.journal import Measured, Partial, PassEnded, Record, SessionState, WindowLearned, fold
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message
from ctxchat.core.ports import Clock, JournalPort, ModelPort
from ctxchat.core.tokens import Anchor, Calibration, Meter
from ctxchat.core.view import Frame, Insert, ToolSpec, Transform, View, compile

UNKNOWN = Window(32_768, "assumed")
"""What is believed until the model has been asked for its window."""


class Surroundings(Protocol):
    """What stands around a conversation besides the tools: made anew for each request, never stored."""

    async def memory(self) -> tuple[Insert, ...]:
        """Memory files, word for word."""
        ...

    async def injected(self) -> tuple[Insert, ...]:
        """What the context providers say now."""
        ...

    @property
    def troubles(self) -> Mapping[str, str]:
        """Who was late or failed when last asked, and what came of it, as the rest of a sentence."""
        ...

    async def close(self) -> None:
        """End whoever is still at work."""
        ...


class Conversation:
    """State, view and figures of one session, kept in step with its journal."""

    def __init__(
        self,
        journal: JournalPort,
        state: SessionState,
        model: ModelPort,
        options: Options,
        clock: Clock,
        *,
        system: str,
        tools: Sequence[ToolSpec],
        surroundings: Surroundings,
        compiler: Compiler = all_sections,
        transforms: Sequence[Transform] = (),
        assumptions: Assumptions | None = None,
    ) -> None:
        self.journal = journal
        self.state = state
        self.options = options
        self.clock = clock
        self._system = system
        self._tools = tuple(tools)
        self._surroundings = surroundings
        self._compiler = compiler
        self._transforms = tuple(transforms)
        self._assumptions: Assumptions = assumptions or NothingKnown()
        self._noted: tuple[Record, ...] = ()  # in the state already
        self._owed: tuple[Record, ...] = ()
        self._writing = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._told: set[str] = set()
        self._looks = self._newest = 0  # looks begun, and which of them the view stands on
        self._streamed = 0
        self._claimed: Window | None = None
        self.use(model)
        self._frame = Frame(self._system, self._tools)
        self.view: View = View((), (), (), 0, "", 0)
        self.figures: Figures = closed_with(self.measured(), state.used)

    def use(self, model: ModelPort) -> None:
        """Go on with this model; what it can hold is asked at the next refresh."""
        self.model = model
        self.meter = Meter(model.count)
        self.known = self._assumptions.load(model.name)
        self._claimed = None

    # ── writing ──

    async def write(self, *records: Record) -> None:
        """To the journal, then into the state. When it returns both hold it; when it raises StorageError neither does.
        A cancel waits for the end of it."""
        await to_the_end(self._write(records))

    async def _write(self, records: Sequence[Record]) -> None:
        async with self._writing:
            noted, owed = self._noted, self._owed
            await self.journal.write(*noted, *owed, *records)
            self._noted, self._owed = self._noted[len(noted) :], self._owed[len(owed) :]
            self.state = fold((*owed, *records), self.state)

    def note(self, *records: Record) -> None:
        """Into the state at once, and to the journal with whatever is written next: in the middle of a round a write would
        forget what was kept of it."""
        self._noted += records
        self.state = fold(records, self.state)

    def owe(self, *records: Record) -> None:
        """Write these with whatever is written next."""
        self._owed += records

    async def settle(self) -> None:
        """Write what is owed. Raises StorageError while that is not possible; it stays owed then."""
        if self._noted or self._owed:
            await self.write()

    @property
    def next_pass(self) -> int:
        """The number of the next pass: those whose end is owed to the store count, too."""
        return len(self.state.passes) + sum(isinstance(record, PassEnded) for record in self._owed) + 1

    async def write_or_owe(self, *records: Record) -> bool:
        """Write, or owe it where the store refuses: what was said must not depend on a disk. False when it is owed."""
        try:
            await self.write(*records)
        except StorageError:
            self.owe(*records)
            return False
        return True

    async def keep(self, assistant: Message, results: Sequence[Message] = ()) -> bool:
        """Remember an unsealed round, so that a kill loses nothing that was said. False where the store refuses: that ends no
        round, since sealing it asks the store again."""
        try:
            await self.journal.keep(Partial(assistant, tuple(results), self.ledger.turn))
        except StorageError:
            return False
        return True

    # ── reading ──

    @property
    def ledger(self) -> Ledger:
        """All groups and changes."""
        return self.state.ledger

    @property
    def calibration(self) -> Calibration:
        """How this model's counts compare with ours, from this session or earlier ones."""
        return self.state.calibrations.get(self.model.name, self.known.calibration)

    @property
    def anchor(self) -> Anchor | None:
        """The newest count of this model's server, None where another model's is newer."""
        anchor = self.state.anchor
        return anchor if anchor and anchor.model in {"", self.model.name} else None

    @property
    def window(self) -> Window:
        """What the model says it can hold, unless a rejection has corrected just that."""
        claimed = self._claimed or UNKNOWN
        learned = self.state.windows.get(self.model.name, self.known.window)
        if learned and 0 < learned.tokens < claimed.tokens and learned.believed in {0, claimed.tokens}:
            return Window(learned.tokens, "learned")
        return claimed

    @property
    def budget(self) -> Budget:
        """The token budget with the window as known now."""
        options = self.options
        return make_budget(self.window, options.output_reserved, options.compression_trigger, options.target)

    async def refresh(self) -> Figures:
        """Ask what stands around, compile and measure what the next request would hold. Whoever is asked may take long, so
        nobody waits for another's look: one that was overtaken by a later one changes nothing."""
        self._looks += 1
        look, model = self._looks, self.model
        claimed = self._claimed or await model.window()
        memory, injected = await asyncio.gather(self._surroundings.memory(), self._surroundings.injected())
        async with self._looking:
            if look < self._newest or model is not self.model:
                return self.figures
            self._newest, self._claimed = look, claimed
            self._frame = Frame(self._system, self._tools, memory, injected, model.keeps_reasoning)
            return self._adopt(await self.compiled(self.ledger))

    async def again(self) -> Figures:
        """Compile and measure in the frame of the last request: for what was added to it since, without asking anybody."""
        async with self._looking:
            return self._adopt(await self.compiled(self.ledger))

    def troubles(self) -> tuple[str, ...]:
        """Who around the conversation was late or failed, in a sentence each; nobody is named twice."""
        new = {source: why for source, why in self._surroundings.troubles.items() if source not in self._told}
        self._told.update(new)
        return tuple(f"Context from {source} {why}." for source, why in new.items())

    async def leave(self) -> None:
        """End what is still at work around the conversation."""
        await self._surroundings.close()

    def _adopt(self, view: View) -> Figures:
        self.view, self._streamed = view, 0
        self.figures = self.measured()
        return self.figures

    async def compiled(self, ledger: Ledger) -> View:
        """The view a ledger has in the frame of the last refresh, made off the event loop."""
        return await asyncio.to_thread(self.compile, ledger)

    def compile(self, ledger: Ledger) -> View:
        """As `compiled`, at once: for work that is off the event loop already."""
        return compile(ledger, self._frame, self.meter, self._compiler, self._transforms)

    def expected(self, view: View, passes: int) -> Figures:
        """The gauge such a view would show: an estimate, since no server has counted it."""
        return measure(view, self.budget, model=self.model.name, calibration=self.calibration, compactions=passes)

    @property
    def scale(self) -> float:
        """Gauge tokens for a raw token of the present view."""
        return self.figures.used / self.view.raw if self.view.raw and self.figures.used else self.calibration.ratio

    @property
    def prompt_tokens(self) -> int:
        """What a server should count for the present view."""
        return used_tokens(self.view.raw, self.view.passes, self.calibration, self.anchor)[0]

    def streaming(self, raw: int) -> Figures:
        """The gauge with so many raw tokens of a reply that is not sealed yet, on top of the last view."""
        self._streamed = raw
        return self.remeasured()

    def remeasured(self) -> Figures:
        """The gauge of the last view, with what has been booked since."""
        self.figures = self.measured()
        return self.figures

    def measured(self, *, draft: int = 0) -> Figures:
        """The gauge with what is being typed, in raw tokens, on top of the last view and of what is arriving."""
        state = self.state
        return measure(
            self.view,
            self.budget,
            model=self.model.name,
            calibration=self.calibration,
            anchor=self.anchor,
            draft=draft,
            streamed=self._streamed,
            fills=state.fills,
            compactions=len(state.ledger.compactions),
            cost_usd=state.cost_usd,
            cached=state.cached,
        )

    # ── learning ──

    def counted(self, usage: Usage, assistant: Message, *, turn_end: bool) -> Measured:
        """The journal entry for a reply to the current view: what the server counted becomes the gauge's anchor.

        A prompt the server seems to have cut, or figures that are not its own, teach nothing. Where it does not say how much
        of a reply will be sent again, the anchor is the prompt alone, and the reply our own estimate.
        """
        calibration = self.calibration
        raw = self.view.raw + self.weight(assistant)
        anchor = self.anchor
        if not usage.estimated and not self.cut(usage):
            calibration = calibration.learn(real=usage.prompt, raw=self.view.raw)
            kept = self._kept(usage, assistant)
            anchor = Anchor(usage.prompt + kept, raw if kept else self.view.raw, self.view.passes, self.model.name)
        used, _ = used_tokens(raw, self.view.passes, calibration, anchor)
        return Measured(
            model=self.model.name,
            usage=usage,
            used=used,
            anchor=anchor,
            calibration=calibration,
            at=self.clock.now(),
            turn_end=turn_end,
        )

    def _kept(self, usage: Usage, assistant: Message) -> int:
        """Tokens of a reply that the next request holds, as its server counted them; 0 where that is not known."""
        if self.model.keeps_reasoning:
            return usage.completion
        thought = assistant.reasoning is not None and bool(assistant.reasoning.text)
        return 0 if thought and not usage.reasoning else max(0, usage.completion - usage.reasoning)

    def weight(self, message: Message) -> int:
        """Raw tokens of a message of the model as the next request holds it."""
        shown = message if self.model.keeps_reasoning else msgspec.structs.replace(message, reasoning=None)
        return self.meter.message(shown)

    def cut(self, usage: Usage) -> int:
        """Tokens a server seems to have cut from the prompt in silence, 0 when it did not (SPEC 4.4).

        A first estimate may be far off by itself, so less is made of it.
        """
        expected = self.prompt_tokens
        missing = expected - usage.prompt
        share = 0.6 if self.calibration.samples else 0.4
        return missing if not usage.estimated and missing > 1000 and usage.prompt < share * expected else 0

    async def unlearn_window(self, usage: Usage) -> None:
        """A server that took more than its learned window holds that much; one that took a fifth more was misunderstood."""
        window, taken = self.window, usage.prompt + usage.completion
        if window.source == "learned" and taken > window.tokens and not usage.estimated:
            await self.learn_window(taken if taken < window.tokens * 1.2 else 0)

    async def learn_window(self, tokens: int) -> None:
        """The server refused what this window was believed to hold: from now on it is `tokens`, for this claim. 0: it is not
        so after all."""
        believed = self._claimed.tokens if self._claimed else 0
        self.note(WindowLearned(self.model.name, tokens, believed))
        await self.remember()

    async def remember(self) -> None:
        """Keep what was learned of this model for other sessions."""
        learned = self.state.windows.get(self.model.name, self.known.window)
        known = Known(learned if learned and learned.tokens else None, self.calibration)
        if known != self.known:
            self.known = known
            await self._assumptions.save(self.model.name, known)


def closed_with(empty: Figures, used: int) -> Figures:
    """The gauge of a stored session before the first look at it: the total it closed with, told as conversation until its
    parts are known. `empty` is the gauge of an empty view."""
    if not used or empty.used:
        return empty
    free = max(0, empty.window - empty.reserved_output - used)
    tokens = {"assistant": used, "free": free}
    sections = tuple(
        msgspec.structs.replace(s, tokens=tokens.get(s.name, s.tokens), estimated=s.name in tokens)
        for s in empty.sections
    )
    pressure = round(used / empty.limit, 4)
    return msgspec.structs.replace(empty, used=used, estimated=True, pressure=pressure, sections=sections)
