"""A session as the outside sees it: values to read and verbs to act. Terminal, headless mode and tests all use this one door.

Composes the parts; what they do is theirs. One turn or pass at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress

from ctxchat.agent.by_hand import dropped, lost_facts, pinned, quoted, reinserted, restored, shrunk
from ctxchat.agent.compactor import Compactor
from ctxchat.agent.consent import When
from ctxchat.agent.conversation import Conversation
from ctxchat.agent.gate import Answer, Gate
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.preview import Preview
from ctxchat.agent.toolbox import Toolbox
from ctxchat.agent.turn import Turn
from ctxchat.core.access import Mode, Verdict
from ctxchat.core.errors import CtxchatError, LedgerError, SessionBusy
from ctxchat.core.events import Event, Notice, Stamped
from ctxchat.core.figures import Figures
from ctxchat.core.journal import Changed, ModelChosen, Named, Record, Sealed, SessionState, Undone
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group, Message, Part, Text
from ctxchat.core.ports import ModelPort, Summariser
from ctxchat.core.record import Reason
from ctxchat.core.tokens import rough_count
from ctxchat.core.view import View

ROUGH_FROM = 300_000
"""Characters from which a draft is estimated without the tokenizer, so that typing never waits for it."""

PATIENCE = 1.0
"""Seconds that closing waits for a change that is being made; a turn is not waited for."""


class Session:
    """One conversation, open for writing unless `read_only` says why not."""

    def __init__(
        self,
        conversation: Conversation,
        toolbox: Toolbox,
        gate: Gate,
        compactor: Compactor,
        *,
        open_model: Callable[[str], ModelPort],
        summariser_of: Callable[[ModelPort], Summariser] | None = None,
        hooks: Hooks | None = None,
        read_only: str = "",
        notices: Sequence[str] = (),
    ) -> None:
        self._talk = conversation
        self._toolbox = toolbox
        self._gate = gate
        self._compactor = compactor
        self._open_model = open_model
        self._summariser_of = summariser_of
        self._hooks = hooks
        self._closed = False
        self._lock = asyncio.Lock()
        self._seq = 0
        self.read_only = read_only
        self.notices = tuple(notices)

    # ── values ──

    @property
    def id(self) -> str:
        """The session's id."""
        return self._talk.journal.session

    @property
    def state(self) -> SessionState:
        """Ledger, title, fills, past passes."""
        return self._talk.state

    @property
    def view(self) -> View:
        """What the next request holds, as last compiled."""
        return self._talk.view

    @property
    def figures(self) -> Figures:
        """The gauge, as last measured."""
        return self._talk.figures

    @property
    def ghost(self) -> int:
        """Tokens the window would hold after the compaction that stands prepared, 0 for none."""
        prepared = self._compactor.prepared
        return prepared.after_used if prepared else 0

    def lost_facts(self, change_id: str) -> tuple[str, ...]:
        """The facts a compaction did not carry over, a line each. Raises LedgerError when it is not in force."""
        return lost_facts(self._talk.ledger, change_id)

    @property
    def busy(self) -> bool:
        """A turn or a pass is under way."""
        return self._lock.locked()

    @property
    def mode(self) -> Mode:
        """Which calls run without asking."""
        return self._gate.mode

    def set_mode(self, mode: Mode) -> None:
        """From now on."""
        self._gate.mode = mode

    def with_draft(self, text: str, attachments: Sequence[Part] = ()) -> Figures:
        """The gauge with this unsent message in it. Long texts are estimated without the tokenizer."""
        if not text and not attachments:
            return self._talk.measured()
        if len(text) > ROUGH_FROM:
            tokens = rough_count(text)
        else:
            content = (Text(text), *attachments) if attachments else text
            tokens = self._talk.meter.weigh(Message(seq=0, role="user", content=content))
        return self._talk.measured(draft=tokens)

    # ── verbs ──

    def send(self, text: str, attachments: Sequence[Part] = ()) -> AsyncGenerator[Stamped, None]:
        """One turn. Closing the generator interrupts it; what exists is kept. Raises SessionBusy for a read-only session."""
        turn = Turn(self._talk, self._toolbox, self._compactor, between=self._hooks.between if self._hooks else None)
        return self._stamped(turn.run(text, attachments))

    def answer(self, call_id: str, verdict: Verdict, reason: str = "") -> None:
        """What the person said to an ApprovalRequested."""
        self._gate.answer(call_id, Answer(verdict, reason))

    async def measure(self) -> Figures:
        """Compile and measure now; while a turn is under way, the gauge as it stands."""
        return self._talk.figures if self.busy else await self._talk.refresh()

    # ── making room ──

    async def preview(
        self,
        instructions: str = "",
        keep_recent: int | None = None,
        *,
        strategy: str = "",
        target: float | None = None,
    ) -> Preview:
        """What freeing up context would do. Calls no model, sends nothing anywhere."""
        return await self._compactor.preview(instructions, keep_recent, strategy, target, look=not self.busy)

    def draft_summary(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[str, None]:
        """The summary of a previewed pass as it is written, to be edited and handed to `free_up`. Nothing comes where the
        steps need none. Changes nothing; raises ModelError."""
        return self._compactor.draft(preview, steps)

    def free_up(
        self,
        preview: Preview,
        steps: Sequence[str] | None = None,
        *,
        summary: str | None = None,
        reason: Reason = "manual",
    ) -> AsyncGenerator[Stamped, None]:
        """Run a previewed pass, only the named steps of it where given, with a summary a person wrote where there is one.
        Closing it leaves everything as it was."""
        return self._stamped(self._compactor.run(preview, steps, reason, summary))

    def make_room(self) -> AsyncGenerator[Stamped, None]:
        """Between turns: the pass that is due or agreed, where there is one, without waiting for the next message."""
        return self._stamped(self._compactor.make_room(0))

    def agree(self, when: When, instructions: str = "") -> None:
        """Yes to a CompactionSuggested: `now`, at the next place where no call is open, or `after` the turn has ended."""
        self._compactor.consent.agree(when, instructions)

    def snooze(self, turns: int) -> None:
        """Later: nothing by itself and no question for the rest of this turn and `turns` more, while the window can hold it."""
        self._compactor.consent.rest(turns)

    # ── changes by hand ──

    async def undo(self, change_id: str = "") -> Figures:
        """Take back a change, the last one without an id. Raises LedgerError when there is none.

        Where what comes back no longer fits, `over` of the figures says by how much.
        """
        changes = self._talk.ledger.changes
        if not changes:
            raise LedgerError("There is nothing to undo.")
        undone = next((c for c in changes if c.id == change_id), changes[-1]) if change_id else changes[-1]
        self._talk.ledger.undo(change_id or undone.id)  # raises before anything is written
        if undone.kind == "compaction":
            self._compactor.consent.stopped()
        return await self._change(Undone(change_id or undone.id, self._talk.clock.now()))

    async def pin(self, group_id: str) -> Figures:
        """Keep a group word for word from now on."""
        return await self._by_hand(pinned(self._talk.ledger, group_id, self._talk.clock.now()))

    async def drop(self, group_id: str) -> Figures:
        """Take a group out of the view; the record keeps it."""
        return await self._by_hand(dropped(self._talk.ledger, group_id, self._talk.clock.now()))

    async def shrink(self, group_id: str) -> Figures:
        """Show a group as one line from now on."""
        return await self._by_hand(shrunk(self._talk.ledger, group_id, self._talk.clock.now()))

    async def restore(self, group_id: str) -> Figures:
        """Put a group of the record back at the end, as a marked quotation."""
        return await self._put_back(restored, group_id)

    async def quote(self, group: Group, source: str) -> Figures:
        """Put a group of another session at the end, as a marked quotation; `source` says which session, in words."""
        return await self._put_back(lambda ledger, of, at: quoted(ledger, group, of, at), source)

    async def reinsert(self, change_id: str) -> Figures:
        """Put the facts that a compaction lost back at the end, as one marked note."""
        return await self._put_back(reinserted, change_id)

    async def rename(self, title: str) -> None:
        """Give the session another title."""
        await self._change(Named(title))

    async def switch_model(self, name: str) -> Figures:
        """Go on with another model. What does not fit its window goes before the next request, or with `make_room`. Raises
        UsageError for one that cannot be had."""
        model = self._open_model(name)
        async with self._alone():
            await self._talk.write(ModelChosen(model.name))
            await self._talk.remember()
            self._talk.use(model)
            self._compactor.switched(self._summariser_of(model) if self._summariser_of else None)
            return await self._talk.refresh()

    async def close(self) -> tuple[Notice, ...]:
        """End what is being prepared, and give the session free for others. What hooks had to say at the end. A second time
        does nothing. Raises CtxchatError while a turn or a pass is under way: it would go on to write without the lock."""
        if self._closed:
            return ()
        try:
            await asyncio.wait_for(self._lock.acquire(), PATIENCE)
        except TimeoutError:
            raise CtxchatError("A turn is under way.", "Stop it with Esc, then close.") from None
        try:
            return () if self._closed else await self._end()
        finally:
            self._lock.release()

    # ── inside ──

    async def _end(self) -> tuple[Notice, ...]:
        self._closed = True
        try:
            return await self._hooks.finish() if self._hooks and not self.read_only else ()
        finally:
            await self._compactor.close()
            await self._talk.leave()
            with suppress(CtxchatError):  # nobody is left who could mend it
                await self._talk.settle()
            await self._talk.remember()
            await self._talk.journal.close()

    async def _by_hand(self, change: Change) -> Figures:
        self._talk.ledger.apply(change)  # raises before anything is written
        return await self._change(Changed(change))

    async def _put_back(self, make: Callable[[Ledger, str, str], tuple[Group, Change]], of: str) -> Figures:
        async with self._alone():
            await self._talk.settle()
            note, change = make(self._talk.ledger, of, self._talk.clock.now())
            await self._talk.write(Sealed((note,)), Changed(change))
            return await self._talk.refresh()

    async def _change(self, record: Record) -> Figures:
        async with self._alone():
            await self._talk.write(record)
            return await self._talk.refresh()

    def _alone(self) -> asyncio.Lock:
        if self.read_only:
            raise SessionBusy(self.read_only)
        if self._closed:
            raise CtxchatError("This session is closed.", "Open it again.")
        if self._lock.locked():
            raise CtxchatError("A turn is under way.", "Wait for its end, or stop it with Esc.")
        return self._lock

    async def _stamped(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Stamped, None]:
        """The events with their place in the session, hooks' among them. Holds the session for itself while they run."""
        if self._hooks:
            events = self._hooks.around(events)
        try:
            async with self._alone(), aclosing(events):
                async for event in events:
                    self._seq += 1
                    yield Stamped(self.id, self._seq, self._talk.clock.now(), event)
        finally:
            await events.aclose()
