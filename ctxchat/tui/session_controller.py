"""The session on screen and what runs in it: one turn or compaction at a time, messages that wait, another session, the end.

Knows the chat screen and the services; commands, keys and the screens over the chat are the app's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from textual.worker import Worker

from ctxchat.core.automatic import SNOOZE_TURNS
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import ApprovalRequested, Stamped
from ctxchat.core.prompt_files import called_prompt
from ctxchat.core.record import CompactionRecord
from ctxchat.tui.chat.offers import Reply
from ctxchat.tui.chat.screen import ChatScreen
from ctxchat.tui.own_commands import OwnCommands
from ctxchat.tui.services import Services
from ctxchat.tui.starting import arrive
from ctxchat.tui.transcript.presenter import MAKING_ROOM, WAITING, Growing
from ctxchat.tui.unsent.draft import Draft, Drafts, joined, prepared

if TYPE_CHECKING:
    from textual.worker_manager import WorkerManager

    from ctxchat.agent.session import Session
    from ctxchat.agent.turn.turn import NextSteeringMessage
    from ctxchat.core.messages import Part

LEAVING_TIMEOUT_S = 5.0
"""Seconds that work under way is given to end when the app is left."""

NOT_MADE = "Stopped. Nothing was compacted: everything is as it was."

BeginWork = Callable[[], Awaitable[AsyncGenerator[Stamped, None]]]
"""Makes a turn or a compaction ready, and gives its events. Raises CtxchatError."""

Alert = Callable[[str], None]
"""Told what has come about, for a person who is elsewhere."""

ALERT_AFTER_S = 10.0
"""Seconds from which the end of work is worth an alert."""


class NotYetOpen(CtxchatError):
    """There is no session yet, but there will be."""


class SessionController:
    """What the person set going. `alert` tells someone who looks elsewhere, `writes_titles` whether the model is to name
    sessions."""

    def __init__(
        self,
        chat: ChatScreen,
        services: Services,
        alert: Alert,
        drafts: Drafts | None = None,
        writes_titles: Callable[[], bool] = lambda: False,
    ) -> None:
        self.session: Session | None = None
        self._chat, self._services = chat, services
        self.own_commands = OwnCommands(chat)
        self._alert, self._writes_titles = alert, writes_titles
        self._drafts = drafts or Drafts()
        self._queue: list[Draft] = []
        self._leaving: Draft | None = None  # out of the queue and not in the record yet
        self._place = 0  # of it in the record, at least
        self._worker: Worker[None] | None = None
        self.trouble = ""  # why no session could be opened
        self.settled = asyncio.Event()
        """There is a session, or it is known that there can be none."""

    # ── the session ──

    @property
    def busy(self) -> bool:
        """A turn or a compaction runs."""
        return self._worker is not None and not self._worker.is_finished

    def open_session(self) -> Session:
        """The session on screen. Raises CtxchatError before there is one."""
        if self.trouble:
            raise CtxchatError(self.trouble)
        if self.session is None:
            raise NotYetOpen("The session is still being opened.", "Try again in a moment.")
        return self.session

    def idle_session(self) -> Session:
        """The session, for what cannot be done beside a turn."""
        if self.busy:
            raise CtxchatError("This has to wait for the end of the turn.", "Esc stops it.")
        return self.open_session()

    async def switch(self, session_id: str) -> None:
        """Open another session (a new one without an id). The draft stays; the one before stays open when this fails."""
        under_way = CtxchatError("A turn is under way in this session.", "Esc stops it; then open the other one.")
        if self.busy:
            raise under_way
        session = await self._services.open(session_id)
        if self.busy:  # a message was sent meanwhile
            await session.close()
            raise under_way
        if self.trouble:
            self._chat.banner.clear()
        self.own_commands.stop()
        before, self.session, self.trouble = self.session, session, ""
        await self._chat.show_session(session)
        self._look_up_branch()
        if session.state.ledger.groups:
            self._chat.tell_page(session.id)
        self.settled.set()
        if not session.read_only:
            left = await self._drafts.load_draft(session.id)
            if not left.empty:
                self._chat.composer.put_back(left)
        if before is not None:
            if not session.read_only:
                await self.keep_draft()
                await self._drafts.keep(before.id, Draft())  # it has come along
            for notice in await before.close():
                self._chat.notice(notice.level, notice.text)
            arriving = partial(arrive, self._chat, session)
            self._chat.run_worker(arriving, group="arrive", exclusive=True, exit_on_error=False)
        self.send_next()

    def cannot_open(self, why: str) -> None:
        """There is no session to write to: what waited for it goes back to where it can be seen."""
        self.trouble = why
        self.settled.set()
        waiting, self._queue = self._queue, []
        if waiting:
            self._chat.composer.put_back(joined(waiting))
        self._chat.composer.queued.show_drafts(self._queue)

    @property
    def unsent(self) -> Draft:
        """What is on its way, what waits, and what is being written."""
        waiting = [self._leaving] if self._leaving else []
        return joined([*waiting, *self._queue, self._chat.composer.whole_draft])

    async def keep_draft(self) -> bool:
        """Keep what is unsent. False where it could not be kept with the session."""
        session = self.session
        return bool(session and not session.read_only and await self._drafts.keep(session.id, self.unsent))

    async def close(self, workers: WorkerManager) -> tuple[str, Sequence[str]]:
        """Stop all of `workers`, which is what runs beside the screens, keep what is unsent, and give the session free: nobody
        asks it or the store for anything after that. The words that could be kept nowhere, empty for none, and what there is to
        say at the end. Raises nothing: whoever leaves, leaves."""
        unsent = self.unsent.text
        kept = await self.keep_draft()
        self._queue.clear()
        workers.cancel_all()
        ends = (worker.wait() for worker in workers if worker.is_running)
        with suppress(TimeoutError):  # each was cancelled, or failed, or is who leaves: either way it is over
            await asyncio.wait_for(asyncio.gather(*ends, return_exceptions=True), LEAVING_TIMEOUT_S)
        if not (
            kept and self.session and self.session.state.ledger.groups
        ):  # an empty session is not kept, nor is its draft
            kept = self._chat.composer.prompt.input_history.add_entry(unsent)
        told: list[str] = []
        if self.session:
            with suppress(
                CtxchatError
            ):  # a turn that will not end dies with the process; what it said is in the journal
                told += (notice.text for notice in await self.session.close())
        return "" if kept else unsent, told

    # ── messages ──

    def send_draft(self, draft: Draft | str) -> None:
        """A message, or just its words: for now, for the next boundary of the work under way, or for the end of the turn."""
        self._queue.append(Draft(draft) if isinstance(draft, str) else draft)
        self.send_next()

    def take_back(self, draft: Draft) -> bool:
        """A message that waits is not to go out; False where it is gone already."""
        place = next((place for place, each in enumerate(self._queue) if each is draft), None)
        if place is not None:
            del self._queue[place]
            self._chat.composer.queued.show_drafts(self._queue)
        return place is not None

    def send_next(self) -> None:
        """The next message that waits, when nothing runs."""
        if not self._chat.is_running or not self._chat.is_attached:
            return  # on the way out
        if not self.busy:
            self._bring_back()  # stopped before its turn began
            if self._queue and self.session:
                self._leaving = self._queue.pop(0)
                called = called_prompt(self._leaving.text, self.session.setup.prompts)
                what = f"preparing /{called.file.name}" if called else WAITING
                self._start_run(partial(self._begin_turn, self.session, self._leaving), what)
        self._chat.composer.queued.show_drafts(self._queue)

    async def _begin_turn(self, session: Session, draft: Draft | None = None) -> AsyncGenerator[Stamped, None]:
        """The events of a message's turn, without one of the turn that goes on where the last broke off."""
        next_steering_message = self._next_of(session)
        if draft:
            attachments = await self._mark_leaving(session, draft)
            events = session.send(draft.text, attachments, next_steering_message=next_steering_message)
        else:
            events = session.resume(next_steering_message=next_steering_message)
        self._chat.tell_page(session.id)
        return events

    def _next_of(self, session: Session) -> NextSteeringMessage:
        """The messages that are not to wait for the end of the turn, one at a time."""

        async def next_steering_message() -> tuple[str, Sequence[Part]] | None:
            self._has_left()
            self._bring_back()  # the one before was not let into the conversation
            for draft in self._queue:
                if not draft.later and self.take_back(draft):
                    try:
                        return draft.text, await self._mark_leaving(session, draft)
                    except CtxchatError as problem:  # the turn goes on without it
                        self._bring_back()
                        self._chat.notice(
                            "warning", f"{problem.text} Your message was not sent; it is back in the editor."
                        )
                    break
            return None

        return next_steering_message

    async def _mark_leaving(self, session: Session, draft: Draft) -> Sequence[Part]:
        """On its way from now on; what goes along with it. Raises CtxchatError."""
        self._leaving, self._place = draft, session.state.ledger.next_seq
        return await prepared(draft, session, self._services.workspace, self._chat.composer.resources)

    def _has_left(self) -> bool:
        """Whether a message on its way is in the record by now; it is on its way no more then."""
        if not self._leaving or not self.session:
            return False
        new = takewhile(lambda group: group.first.seq >= self._place, reversed(self.session.state.ledger.groups))
        if left := any(group.kind == "user" for group in new):
            self._leaving = None
        return left

    def _bring_back(self) -> None:
        draft, self._leaving = self._leaving, None
        if draft:
            self._chat.composer.put_back(draft)

    def resume(self) -> None:
        """Go on where the last turn broke off."""
        if self.session and not self.busy:
            self._start_run(partial(self._begin_turn, self.session), WAITING)

    # ── compactions ──

    def run_compaction(self, events: AsyncGenerator[Stamped, None]) -> None:
        """Run a compaction a person asked for."""

        async def begin() -> AsyncGenerator[Stamped, None]:
            return events

        if not self.busy:
            self._start_run(begin, MAKING_ROOM, NOT_MADE)

    def agree(self, reply: Reply, instructions: str = "") -> None:
        """What a person said to the question whether to make room; beside a turn, the turn does it at the right place."""
        session = self.open_session()
        if reply == "later":
            session.policy.pause_for(SNOOZE_TURNS)
            self._chat.notice(
                "info", f"Not for this turn and the next {SNOOZE_TURNS}. F8 makes room whenever you like."
            )
        elif self.busy:
            session.policy.agree(reply, instructions)
            when = "at the next place where no call is open" if reply == "now" else "when this turn has ended"
            self._chat.notice("info", f"Room is made {when}.")
        else:
            session.policy.agree("now", instructions)
            self.run_compaction(session.make_room())

    # ── what runs ──

    def interrupt(self) -> None:
        """Stop the turn or the compaction; what exists is kept."""
        if self._worker and self.busy:  # not at once: one that never began would count as under way for ever
            asyncio.get_running_loop().call_soon(self._worker.cancel)

    def is_of(self, worker: Worker[object]) -> bool:
        """That worker runs, or ran, our turn."""
        return worker is self._worker

    def _start_run(self, begin: BeginWork, what: str, stopped: str = "") -> None:
        run = partial(self._run, begin, what, stopped)
        self._worker = self._chat.app.run_worker(run, group="turn", exclusive=True, exit_on_error=False)

    def _look_up_branch(self) -> None:
        """Beside everything else: the header says it when it is known."""

        async def look_up() -> None:
            self._chat.show_branch(await self._services.branch())

        self._chat.run_worker(look_up, group="branch", exclusive=True, exit_on_error=False)

    async def _run(self, begin: BeginWork, what: str, stopped: str) -> None:
        """Show work to its end. A message that could not be written down goes back to where it was written."""
        interrupted, began, made = True, _now(), False
        try:
            await self._chat.begin_work(what)
            async with aclosing(await begin()) as events:
                async for stamped in events:
                    if self._has_left():
                        await self.keep_draft()
                    made = made or isinstance(stamped.event, CompactionRecord)
                    if (live := self._chat.presenter.live) is None:
                        continue  # another session came on screen
                    if isinstance(stamped.event, Growing):
                        live.show_event(stamped.event, stamped.at)
                    await self._chat.show_event(stamped.event)
                    if isinstance(stamped.event, ApprovalRequested):
                        self._alert("ctxchat asks before it goes on")
            interrupted = False
        except CtxchatError as problem:
            interrupted = False
            self._chat.failed(problem.text, problem.hint)
        finally:
            self._has_left()  # also where a cancel came while it was being written
            self._bring_back()
            await self._chat.end(interrupted)
            self._look_up_branch()
            if not interrupted and self._writes_titles():
                self._chat.run_worker(self._write_title, group="title", exclusive=True, exit_on_error=False)
            if interrupted and stopped and not made:
                self._chat.notice("info", stopped)
            if not interrupted and _now() - began >= ALERT_AFTER_S:
                self._alert("ctxchat is done")

    async def _write_title(self) -> None:
        """Beside everything else: the header says it when it is there."""
        session = self.session
        if session and await session.write_title() and session is self.session:
            self._chat.show_header()


def _now() -> float:
    return asyncio.get_running_loop().time()
