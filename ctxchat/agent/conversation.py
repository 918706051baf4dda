"""A session's state while it is being worked on: the journal's fold, the view compiled from it, and the gauge.

The one place that writes to the journal and moves the state with it, in that order. Knows nothing of turns or screens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ctxchat.agent.options import Options
from ctxchat.core.budget import Budget, Window, make_budget
from ctxchat.core.compilers import Compiler, all_sections
from ctxchat.core.events import Usage
from ctxchat.core.figures import Figures, measure, used_tokens
from ctxchat.core.journal import Measured, Partial, Record, Sealed, SessionState, fold
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.ports import Clock, JournalPort, ModelPort
from ctxchat.core.tokens import Anchor, Calibration, Meter
from ctxchat.core.view import Frame, Insert, ToolSpec, Transform, View, compile


class Surroundings(Protocol):
    """What stands around a conversation besides the tools: made anew for each request, never stored."""

    async def memory(self) -> tuple[Insert, ...]:
        """Memory files, word for word."""
        ...

    async def injected(self) -> tuple[Insert, ...]:
        """What the context providers say now."""
        ...


class Assumptions(msgspec.Struct, frozen=True):
    """What was learned about a model outside this session: its window from a rejection, how its counts compare with ours."""

    learned_window: int = 0
    calibration: Calibration = Calibration()


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
        self._assumptions = assumptions or Assumptions()
        self.use(model)
        self._frame = Frame(self._system, self._tools)
        self.view: View = View((), (), (), 0, "", 0)
        self.figures: Figures = self._measured()

    def use(self, model: ModelPort) -> None:
        """Go on with this model; what it can hold is asked at the next refresh. The old model's anchor is not its."""
        changed = hasattr(self, "model") and self.model.name != model.name
        self.model = model
        self.meter = Meter(model.count)
        self.window: Window | None = None
        if changed:
            self.state = msgspec.structs.replace(self.state, anchor=None)

    # ── writing ──

    async def write(self, *records: Record) -> None:
        """To the journal, then into the state. When it returns both hold it; when it raises neither does."""
        await asyncio.shield(self._write(records))

    async def _write(self, records: Sequence[Record]) -> None:
        await self.journal.write(*records)
        self.state = fold(records, self.state)

    async def keep(self, assistant: Message, results: Sequence[Message] = ()) -> None:
        """Remember an unsealed round, so that a kill loses nothing that was said."""
        await self.journal.keep(Partial(assistant, tuple(results), self.ledger.turn))

    # ── reading ──

    @property
    def ledger(self) -> Ledger:
        """All groups and changes."""
        return self.state.ledger

    @property
    def calibration(self) -> Calibration:
        """How this model's counts compare with ours, from this session or earlier ones."""
        return self.state.calibrations.get(self.model.name, self._assumptions.calibration)

    @property
    def budget(self) -> Budget:
        """The token budget with the window as known now."""
        options = self.options
        window = self.window or Window(32_768, "assumed")
        return make_budget(window, options.output_reserved, options.compression_trigger, options.target)

    async def refresh(self) -> Figures:
        """Compile and measure what the next request would hold. Counting is done off the event loop."""
        if self.window is None:
            self.window = self._believed(await self.model.window())
        memory, injected = await asyncio.gather(self._surroundings.memory(), self._surroundings.injected())
        self._frame = Frame(self._system, self._tools, memory, injected, self.model.keeps_reasoning)
        self.view = await self.compiled(self.ledger)
        self.figures = self._measured()
        return self.figures

    async def compiled(self, ledger: Ledger) -> View:
        """The view another ledger would have in the frame of the last refresh."""
        return await asyncio.to_thread(compile, ledger, self._frame, self.meter, self._compiler, self._transforms)

    def expected(self, view: View, passes: int) -> Figures:
        """The gauge such a view would show: an estimate, since no server has counted it."""
        return measure(view, self.budget, model=self.model.name, calibration=self.calibration, compactions=passes)

    @property
    def scale(self) -> float:
        """Gauge tokens for a raw token of the present view."""
        return self.figures.used / self.view.raw if self.view.raw and self.figures.used else self.calibration.ratio

    def _believed(self, window: Window) -> Window:
        """A window learned from a rejection beats a larger claim, unless the server says what it has loaded."""
        learned = self._assumptions.learned_window
        if learned and window.source != "loaded" and learned < window.tokens:
            return Window(learned, "learned")
        return window

    def measured(self, *, draft: int = 0, streamed: int = 0) -> Figures:
        """The gauge with what is being typed and what is arriving, both in raw tokens, on top of the last view."""
        return self._measured(draft=draft, streamed=streamed)

    def _measured(self, *, draft: int = 0, streamed: int = 0) -> Figures:
        state = self.state
        return measure(
            self.view,
            self.budget,
            model=self.model.name,
            calibration=self.calibration,
            anchor=state.anchor,
            draft=draft,
            streamed=streamed,
            fills=state.fills,
            compactions=len(state.ledger.compactions),
            cost_usd=state.cost_usd,
            cached=state.cached,
        )

    # ── learning ──

    def counted(self, usage: Usage, assistant: Message, *, turn_end: bool) -> Measured:
        """The journal entry for a reply to the current view: what the server counted becomes the gauge's anchor.

        A prompt the server seems to have cut, or figures that are not its own, teach nothing.
        """
        calibration = self.calibration
        shown = assistant if self.model.keeps_reasoning else msgspec.structs.replace(assistant, reasoning=None)
        raw = self.view.raw + self.meter.message(shown)
        anchor: Anchor | None = None
        if not usage.estimated and usage.prompt > 0 and not self.cut(usage):
            calibration = calibration.learn(real=usage.prompt, raw=self.view.raw)
            kept = usage.completion if self.model.keeps_reasoning else usage.completion - usage.reasoning
            anchor = Anchor(usage.prompt + max(0, kept), raw, self.view.passes)
        used, _ = used_tokens(raw, self.view.passes, calibration, anchor)
        return Measured(
            model=self.model.name,
            usage=usage,
            used=used,
            anchor=anchor or self.state.anchor,
            calibration=calibration,
            at=self.clock.now(),
            turn_end=turn_end,
        )

    def cut(self, usage: Usage) -> int:
        """Tokens a server seems to have cut from the prompt in silence, 0 when it did not (SPEC 4.4)."""
        expected, _ = used_tokens(self.view.raw, self.view.passes, self.calibration, self.state.anchor)
        missing = expected - usage.prompt
        return missing if not usage.estimated and missing > 1000 and usage.prompt < 0.6 * expected else 0

    def learn_window(self, tokens: int) -> None:
        """The server refused more than this: from now on it is the window."""
        self.window = Window(tokens, "learned")

    def next_seqs(self, count: int = 1) -> range:
        """The next free places in the record."""
        start = self.ledger.next_seq
        return range(start, start + count)

    async def add(self, *groups: Group) -> None:
        """Seal groups into the record."""
        await self.write(Sealed(groups))
