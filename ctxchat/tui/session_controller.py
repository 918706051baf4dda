"""Controls the session on screen: runs one turn or compaction at a time, queues messages, switches to another session, closes it.

Knows the chat screen and the services; commands, keys and the screens over the chat belong to the app.
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
"""Prepares a turn or a compaction and returns the generator of its events. Raises CtxchatError."""

Alert = Callable[[str], None]
"""Notifies a person who looks elsewhere; the argument is the text."""

ALERT_AFTER_S = 10.0
"""Seconds a turn or compaction has to run for its end to be worth an alert."""


class NotYetOpen(CtxchatError):
    """Raised while the first session is still being opened."""


class SessionController:
    """The session on screen, its running turn or compaction, and the queue of messages. `writes_titles` says whether the model is
    to write the session's title."""

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
        self._leaving: Draft | None = None  # taken from the queue and not in the record yet
        self._min_seq = 0  # lowest sequence number it can have in the record
        self._worker: Worker[None] | None = None
        self.trouble = ""  # the reason why no session could be opened, empty where one could
        self.settled = asyncio.Event()
        """Set once the first session is open, or could not be opened."""

    # ── the session ──

    @property
    def busy(self) -> bool:
        """A turn or a compaction is running."""
        return self._worker is not None and not self._worker.is_finished

    def open_session(self) -> Session:
        """The session on screen. Raises CtxchatError before there is one."""
        if self.trouble:
            raise CtxchatError(self.trouble)
        if self.session is None:
            raise NotYetOpen("The session is still being opened.", "Try again in a moment.")
        return self.session

    def idle_session(self) -> Session:
        """The session on screen, for an action that cannot run during a turn. Raises CtxchatError during one, or without a
        session."""
        if self.busy:
            raise CtxchatError("This has to wait for the end of the turn.", "Esc stops it.")
        return self.open_session()

    async def switch(self, session_id: str) -> None:
        """Show another session (a new one without an id) and close the present one, which stays open where this fails. The draft
        stays in the editor. Raises CtxchatError."""
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
            stored_draft = await self._drafts.load_draft(session.id)
            if not stored_draft.empty:
                self._chat.composer.put_back(stored_draft)
        if before is not None:
            if not session.read_only:
                await self.keep_draft()
                await self._drafts.keep(before.id, Draft())  # its draft belongs to the new session now
            for notice in await before.close():
                self._chat.notice(notice.level, notice.text)
            arriving = partial(arrive, self._chat, session)
            self._chat.run_worker(arriving, group="arrive", exclusive=True, exit_on_error=False)
        self.send_next()

    def cannot_open(self, why: str) -> None:
        """Note that no session could be opened, and why; queued messages go back into the editor."""
        self.trouble = why
        self.settled.set()
        waiting, self._queue = self._queue, []
        if waiting:
            self._chat.composer.put_back(joined(waiting))
        self._chat.composer.queued.show_drafts(self._queue)

    @property
    def unsent(self) -> Draft:
        """All unsent text as one draft: the message being sent, those in the queue, and the one in the editor."""
        waiting = [self._leaving] if self._leaving else []
        return joined([*waiting, *self._queue, self._chat.composer.whole_draft])

    async def keep_draft(self) -> bool:
        """Save the unsent text with the session. False where that is not possible."""
        session = self.session
        return bool(session and not session.read_only and await self._drafts.keep(session.id, self.unsent))

    async def close(self, workers: WorkerManager) -> tuple[str, Sequence[str]]:
        """Stop all of `workers`, save the unsent text and close the session; neither it nor the store may be used afterwards.

        Returns the text that could not be saved, empty for none, and notices to print at the end. Raises nothing: the app closes
        in any case."""
        unsent = self.unsent.text
        kept = await self.keep_draft()
        self._queue.clear()
        workers.cancel_all()
        ends = (worker.wait() for worker in workers if worker.is_running)
        with suppress(
            TimeoutError
        ):  # each was cancelled, has failed, or is the worker that closes the app: all are over
            await asyncio.wait_for(asyncio.gather(*ends, return_exceptions=True), LEAVING_TIMEOUT_S)
        if not (
            kept and self.session and self.session.state.ledger.groups
        ):  # an empty session is not kept, nor is its draft
            kept = self._chat.composer.prompt.input_history.add_entry(unsent)
        notices: list[str] = []
        if self.session:
            with suppress(
                CtxchatError
            ):  # a turn that will not end dies with the process; what it said is in the journal
                notices += (notice.text for notice in await self.session.close())
        return "" if kept else unsent, notices

    # ── messages ──

    def send_draft(self, draft: Draft | str) -> None:
        """Queue a message, or just its text. It is sent at once, between two steps of the running turn, or (`later`) after the
        turn."""
        self._queue.append(Draft(draft) if isinstance(draft, str) else draft)
        self.send_next()

    def take_back(self, draft: Draft) -> bool:
        """Remove a message from the queue; False where it was sent already."""
        index = next((index for index, each in enumerate(self._queue) if each is draft), None)
        if index is not None:
            del self._queue[index]
            self._chat.composer.queued.show_drafts(self._queue)
        return index is not None

    def send_next(self) -> None:
        """Send the next message of the queue, where no turn is running."""
        if not self._chat.is_running or not self._chat.is_attached:
            return  # the app is closing
        if not self.busy:
            self._bring_back()  # a message whose turn was stopped before it began
            if self._queue and self.session:
                self._leaving = self._queue.pop(0)
                called = called_prompt(self._leaving.text, self.session.setup.prompts)
                what = f"preparing /{called.file.name}" if called else WAITING
                self._start_run(partial(self._begin_turn, self.session, self._leaving), what)
        self._chat.composer.queued.show_drafts(self._queue)

    async def _begin_turn(self, session: Session, draft: Draft | None = None) -> AsyncGenerator[Stamped, None]:
        """Start the turn of a message and return its events; without a draft, resume the turn that broke off."""
        next_steering_message = self._next_of(session)
        if draft:
            attachments = await self._mark_leaving(session, draft)
            events = session.send(draft.text, attachments, next_steering_message=next_steering_message)
        else:
            events = session.resume(next_steering_message=next_steering_message)
        self._chat.tell_page(session.id)
        return events

    def _next_of(self, session: Session) -> NextSteeringMessage:
        """A function that gives the running turn the next queued message that need not wait for its end, or None."""

        async def next_steering_message() -> tuple[str, Sequence[Part]] | None:
            self._has_left()
            self._bring_back()  # a message before this one that the turn did not accept
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
        """Note that this message is being sent, and return its attachments. Raises CtxchatError."""
        self._leaving, self._min_seq = draft, session.state.ledger.next_seq
        return await prepared(draft, session, self._services.workspace, self._chat.composer.resources)

    def _has_left(self) -> bool:
        """Whether the message being sent has arrived in the record; from then on none is being sent."""
        if not self._leaving or not self.session:
            return False
        new = takewhile(lambda group: group.first.seq >= self._min_seq, reversed(self.session.state.ledger.groups))
        if recorded := any(group.kind == "user" for group in new):
            self._leaving = None
        return recorded

    def _bring_back(self) -> None:
        """Put a message that was being sent, and did not arrive in the record, back into the editor."""
        draft, self._leaving = self._leaving, None
        if draft:
            self._chat.composer.put_back(draft)

    def resume(self) -> None:
        """Resume the turn that broke off."""
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
        """Carry out the answer to a suggested compaction. During a turn, the turn itself compacts where no call is open, or at
        its end."""
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

    # ── the running work ──

    def interrupt(self) -> None:
        """Stop the turn or the compaction; the text received so far is kept."""
        if (
            self._worker and self.busy
        ):  # not at once: a worker cancelled before it began would count as running for ever
            asyncio.get_running_loop().call_soon(self._worker.cancel)

    def is_of(self, worker: Worker[object]) -> bool:
        """Whether this worker runs, or ran, the last turn or compaction."""
        return worker is self._worker

    def _start_run(self, begin: BeginWork, what: str, stopped: str = "") -> None:
        run = partial(self._run, begin, what, stopped)
        self._worker = self._chat.app.run_worker(run, group="turn", exclusive=True, exit_on_error=False)

    def _look_up_branch(self) -> None:
        """Look up the git branch in the background and show it in the header."""

        async def look_up() -> None:
            self._chat.show_branch(await self._services.branch())

        self._chat.run_worker(look_up, group="branch", exclusive=True, exit_on_error=False)

    async def _run(self, begin: BeginWork, what: str, stopped: str) -> None:
        """Run a turn or compaction and show its events. A message that did not arrive in the record goes back into the editor.
        `what` is the text of the work line, `stopped` a notice for a compaction that was interrupted before it changed
        anything."""
        interrupted, began, compacted = True, _now(), False
        try:
            await self._chat.begin_work(what)
            async with aclosing(await begin()) as events:
                async for stamped in events:
                    if self._has_left():
                        await self.keep_draft()
                    compacted = compacted or isinstance(stamped.event, CompactionRecord)
                    if (live := self._chat.presenter.live) is None:
                        continue  # another session is on screen by now
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
            self._has_left()  # a cancel may have come while the message was being recorded
            self._bring_back()
            await self._chat.end(interrupted)
            self._look_up_branch()
            if not interrupted and self._writes_titles():
                self._chat.run_worker(self._write_title, group="title", exclusive=True, exit_on_error=False)
            if interrupted and stopped and not compacted:
                self._chat.notice("info", stopped)
            if not interrupted and _now() - began >= ALERT_AFTER_S:
                self._alert("ctxchat is done")

    async def _write_title(self) -> None:
        """Let the model write the session's title in the background, and show it in the header."""
        session = self.session
        if session and await session.write_title() and session is self.session:
            self._chat.show_header()


def _now() -> float:
    """Seconds of the event loop's clock."""
    return asyncio.get_running_loop().time()
