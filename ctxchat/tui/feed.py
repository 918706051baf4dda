"""Keeps the transcript in step with one session: its record, and the turn in progress on top of it.

Knows nothing of what lies around the transcript; what stands outside of a turn (gauge, header, questions) is the chat screen's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ctxchat.core.ledger import open_end
from ctxchat.core.record import CompactionRecord
from ctxchat.tui.live_turn import Growing, LiveTurn
from ctxchat.tui.reading.history import items, last_answer
from ctxchat.tui.reading.inventory import weighed
from ctxchat.tui.transcript.block import ErrorBlock, NoticeBlock
from ctxchat.tui.transcript.transcript import Transcript
from ctxchat.tui.widgets.notice import Level

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

WAITING = "waiting for the model"

LEVELS: Mapping[str, Level] = {"failed": "error", "rejected": "warning"}
"""How a pass that changed nothing is told, by its outcome."""


class Feed:
    """One session at a time, one turn at a time."""

    def __init__(self, transcript: Transcript, *, show_reasoning: bool) -> None:
        self._transcript, self.show_reasoning = transcript, show_reasoning
        self._session: Session | None = None
        self._live: LiveTurn | None = None
        self._groups = 0
        self._told = False  # a word of ours stands there
        self._in_vain: NoticeBlock | None = None  # the newest word here is that a pass came to nothing

    @property
    def running(self) -> bool:
        """A turn or a pass is under way."""
        return self._live is not None

    @property
    def empty(self) -> bool:
        """There is nothing to read yet."""
        return not (self._transcript.items or self.running or self._told)

    # ── the record ──

    def show(self, session: Session) -> None:
        """Another session, from its record."""
        self._session, self._live, self._told = session, None, False
        shown = items(session.state.ledger, session.state.checkpoints)
        self._groups = len(session.state.ledger.groups)
        self._transcript.show(shown, _tokens(session))
        self._offer_to_go_on()

    def settle(self) -> None:
        """What the record holds by now takes the place of what grew; changes in force are drawn."""
        if (session := self._session) is None:
            return
        shown = items(session.state.ledger, session.state.checkpoints)
        places = self._live.places(shown[len(self._transcript.items) :]) if self._live else {}
        self._transcript.settle(shown, _tokens(session), places)
        self._groups = len(session.state.ledger.groups)

    def weigh(self) -> None:
        """What was shown before anything was measured says its tokens now."""
        if self._session and not self.running:
            self._transcript.weigh(_tokens(self._session))

    def catch_up(self) -> None:
        """As `settle`, where the record has more groups than are shown."""
        if self._session and len(self._session.state.ledger.groups) != self._groups:
            self.settle()

    def last_answer(self) -> str:
        """The newest answer: on screen, else in the record."""
        shown = self._transcript.last_answer()
        whole = last_answer(self._session.state.ledger) if self._session else ""
        return whole if whole.endswith(shown) else shown  # what was gone on with is one answer, in the record

    # ── a turn ──

    def begin(self, what: str) -> None:
        """Work has begun."""
        self._live = LiveTurn(self._transcript, show_reasoning=self.show_reasoning)
        self._offer_to_go_on()
        self._transcript.get_ready()
        self._transcript.to_end()
        self._live.wait(what)

    def take(self, event: Growing, at: str) -> None:
        """One event that makes the transcript grow, and when it came about."""
        if self._live:
            self._live.take(event, at)

    def compacted(self, event: CompactionRecord) -> None:
        """A pass is over."""
        if self._live is None:
            return
        self._live.compacted(kept=event.outcome == "compacted")
        if event.outcome == "compacted":
            self.settle()
        else:
            self._in_vain = NoticeBlock(LEVELS.get(event.outcome, "info"), event.detail or event.outcome)
            self._transcript.add(self._in_vain)
        self._live.wait(WAITING)

    def close_turn(self, interrupted: bool) -> None:
        """The last word of the turn was said; what still grows stands as it is."""
        if self._live:
            self._live.end(interrupted)

    def end(self, interrupted: bool) -> None:
        """Work is over, whatever came of it."""
        self.close_turn(interrupted)
        self.settle()
        self._live = None
        end = open_end(self._session.state.ledger) if self._session and interrupted else None
        if end is not None and end.kind != "reply":
            self.notice("info", "Stopped. /continue goes on from here.")
        self._offer_to_go_on()

    def _offer_to_go_on(self) -> None:
        """A half reply at the end can be gone on with, once nothing runs."""
        end = open_end(self._session.state.ledger) if self._session and not self.running else None
        self._transcript.offer_to_go_on(end is not None and end.kind == "reply")

    # ── words of ours ──

    def notice(self, level: Level, text: str) -> None:
        """A sentence at the end."""
        self._told = True
        line, self._in_vain = self._in_vain, None
        if line and text.startswith(line.text):  # it says the same, and when the next try is
            self._transcript.discard(line)
        self._transcript.add(NoticeBlock(level, text))

    def failed(self, text: str, hint: str = "") -> None:
        """Something a person asked for did not work."""
        self._told = True
        self._transcript.add(ErrorBlock(text, hint))


def _tokens(session: Session) -> dict[int | tuple[int, int], int]:
    view = session.view
    tokens: dict[int | tuple[int, int], int] = {}
    for item, held in zip(view.items, weighed(view, session.figures), strict=True):
        if not item.group:
            continue
        tokens[item.message.seq] = held
        parts = item.message.content
        for place, part in enumerate(parts if isinstance(parts, tuple) else ()):
            tokens[item.message.seq, place] = round(session.attachments.weigh(part) * held / max(1, item.tokens))
    return tokens
