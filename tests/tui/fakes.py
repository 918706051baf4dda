"""A session for the interface alone: real ledger, view and figures, and turns that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ctxchat.agent.preview import Preview
from ctxchat.core.attachments import attached
from ctxchat.core.budget import Window, make_budget
from ctxchat.core.errors import CtxchatError
from ctxchat.core.events import Event, Stamped, Steered, TextDelta, TurnFinished, TurnStarted
from ctxchat.core.figures import Counting, Figures, Past, Pending, measure
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.images import size_in
from ctxchat.core.journal import SessionState, Undone, fold
from ctxchat.core.ledger import Change, Edit, Ledger
from ctxchat.core.manual_changes import reinserted
from ctxchat.core.messages import Group, Image, Message, Part, Text
from ctxchat.core.permissions import Answer, Mode
from ctxchat.core.record import CompactionRecord, FactCount, SideFigures
from ctxchat.core.search import Hit, Scope
from ctxchat.core.secrets import Masking
from ctxchat.core.tokens import Meter, rough_count
from ctxchat.core.undo import Undoing, found, look
from ctxchat.core.view import Frame, View, compile
from tests.tui.parts import OfOnePiece

if TYPE_CHECKING:  # a start is measured with these: what they stand for is heavy
    from ctxchat.agent.turn import Meanwhile
    from ctxchat.config.files import Loaded
    from ctxchat.importing.outcome import Importable, ImportNews
    from ctxchat.models.discovery import FirstLook, FoundModel, Offer
    from ctxchat.storage.glance import LastSaid
    from ctxchat.storage.sessions import SessionRow
    from ctxchat.tools.mcp.server import ServerRow

AT = datetime(2026, 11, 21, 14, 2).astimezone().isoformat()  # two minutes past two wherever the tests run
LATER = datetime(2026, 11, 21, 14, 5).astimezone().isoformat()
LATEST = datetime(2026, 11, 21, 14, 9).astimezone().isoformat()


class Pause(msgspec.Struct, frozen=True):
    """The script waits until the test lets it go on."""

    name: str = "go"


class Boundary(msgspec.Struct, frozen=True):
    """Between two rounds: what was said meanwhile joins the turn."""


Step = Event | Pause | Boundary | Group | float
"""What a scripted turn does: an event, a wait for the test, a boundary, a group into the record, or a sleep in seconds."""


def reply(text: str) -> list[Step]:
    return [*(TextDelta(text[i : i + 12]) for i in range(0, len(text), 12)), TurnFinished("done", text, 1, 0.5)]


class FakeSession(OfOnePiece):
    """Follows `script` for each message: the text in, the steps out."""

    def __init__(
        self,
        script: Callable[[str], Sequence[Step]] = lambda text: reply(f"You said: {text}"),
        messages: Sequence[Message] = (),
        *,
        id: str = "s1",
        title: str = "",
        window: int = 200_000,
        model: str = "anthropic/claude-sonnet-4-5",
        read_only: str = "",
        notices: Sequence[str] = (),
    ) -> None:
        self.notices = tuple(notices)
        self.files = None
        self.ghost = 0
        self.at = AT
        self.reinserted: list[str] = []
        self.agreed: list[tuple[str, str]] = []
        self.snoozed: list[int] = []
        self.script, self.id, self.read_only, self.model = script, id, read_only, model
        self.meter = Meter(rough_count)
        self.budget = make_budget(Window(window, "catalogue"), 4096, 0.8, 0.5)
        self.state = SessionState(ledger=Ledger(groups=group_messages(messages)), title=title, model=model)
        self.mode: Mode = "ask"
        self.busy = False
        self.sent: list[str] = []
        self.adapted = 0
        self.sent_along: list[tuple[Part, ...]] = []
        self.saved: dict[str, bytes] = {}
        self.seen = True
        self.replies: list[tuple[str, str]] = []
        self.answers: list[tuple[str, Answer]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.answered = asyncio.Event()
        self.interrupted = 0
        self.closed = False
        self.seq = 0

    # ── values ──

    @property
    def view(self) -> View:
        return compile(self.state.ledger, Frame(system="You help."), self.meter)

    @property
    def figures(self) -> Figures:
        return self._measure(0)

    @property
    def attachments(self) -> FakeSession:
        return self

    def mask(self, text: str) -> str:
        return text

    def weigh(self, part: Part) -> int:
        return self.meter.part(part)

    async def carried(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        return tuple(groups)

    async def save(self, name: str, data: bytes) -> Image:
        self.saved[name] = data
        return Image(f"attachments/{name}", *size_in(data), name)

    async def put_away(self, name: str, text: str) -> Text:
        self.saved[name] = text.encode()
        return Text(f"{text[:100]} [full text: tool-results/{name}]", name)

    async def count(self, parts: Sequence[Part]) -> None:
        return None

    def with_draft(self, text: str, parts: Sequence[Part] = ()) -> Figures:
        return self._measure(self.meter.text(text) + sum(map(self.meter.part, parts)))

    def _measure(self, draft: int) -> Figures:
        pending, past = Pending(draft), Past(self.state.fills)
        return measure(self.view, self.budget, Counting(self.model), pending=pending, past=past)

    # ── verbs ──

    def gate(self, name: str = "go") -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    def seal(self, *groups: Group) -> None:
        self.state = msgspec.structs.replace(self.state, ledger=self.state.ledger.append(*groups))

    def fold(self, lost: tuple[str, ...] = ()) -> Change:
        """A compaction of all there is before the last message, made after it."""
        ledger = self.state.ledger
        covers = tuple(takewhile(lambda g: g not in ledger.current, (g.id for g in ledger.groups)))
        self.at = LATEST
        note = single("summary", Message(ledger.next_seq + 500, "user", "what was said"), 0, source="k1")
        record = CompactionRecord(
            id="k1",
            reason="manual",
            strategy="summarize",
            outcome="compacted",
            at=LATER,
            before=SideFigures(9_000, 4),
            after=SideFigures(800, 1),
            folded_messages=len(covers),
            facts=FactCount(44, 44 - len(lost)),
            lost=lost,
        )
        change = Change("k1", "compaction", at=LATER, edits=(Edit("digest", covers, note),), record=record)
        self.state = msgspec.structs.replace(self.state, ledger=ledger.apply(change))
        return change

    def lost_facts(self, change_id: str) -> tuple[str, ...]:
        return next(c.record.lost for c in self.state.ledger.changes if c.id == change_id and c.record)

    async def reinsert(self, change_id: str) -> Figures:
        self.reinserted.append(change_id)
        note, change = reinserted(self.state.ledger, change_id, LATEST)
        ledger = self.state.ledger.append(note).apply(change)
        self.state = msgspec.structs.replace(self.state, ledger=ledger)
        return self.figures

    async def resume(self, *, meanwhile: Meanwhile) -> AsyncGenerator[Stamped, None]:
        raise CtxchatError("nothing broke off here")
        yield

    async def send(
        self, text: str, attachments: Sequence[Part] = (), *, meanwhile: Meanwhile
    ) -> AsyncGenerator[Stamped, None]:
        self.sent.append(text)
        self.sent_along.append(tuple(attachments))
        turn = self.state.ledger.turn + 1
        content = (Text(text), *attachments) if attachments else text
        message = Message(seq=self.state.ledger.next_seq, role="user", content=content, at=self.at)
        along = attached(content, [0, *map(self.weigh, attachments)] if attachments else [])
        self.seal(single("user", message, turn))
        answer = ""
        self.busy = True
        try:
            yield self._stamp(TurnStarted(turn, message.id, text, attachments=along))
            for step in self.script(text):
                match step:
                    case Pause(name=name):
                        await self.gate(name).wait()
                    case float():
                        await asyncio.sleep(step)
                    case Group():
                        self.seal(step)
                    case Boundary():
                        while (more := await meanwhile()) is not None:
                            self.sent.append(more[0])
                            message = Message(seq=self.state.ledger.next_seq, role="user", content=more[0], at=self.at)
                            self.seal(single("user", message, turn))
                            yield self._stamp(Steered(message.id, more[0]))
                    case TurnFinished():
                        answer = self._seal_reply(answer, turn)
                        yield self._stamp(self.figures)
                        yield self._stamp(step)
                    case _:
                        answer += step.text if isinstance(step, TextDelta) else ""
                        yield self._stamp(step)
        finally:
            self.busy = False
            if answer:
                self.interrupted += 1
                self._seal_reply(answer, turn, interrupted=True)

    def _seal_reply(self, said: str, turn: int, interrupted: bool = False) -> str:
        if said:
            seq = self.state.ledger.next_seq
            self.seal(
                single(
                    "reply", Message(seq=seq, role="assistant", content=said, at=self.at, interrupted=interrupted), turn
                )
            )
        return ""

    def _stamp(self, event: Event) -> Stamped:
        self.seq += 1
        return Stamped(self.id, self.seq, AT, event)

    def answer(self, call_id: str, answer: Answer) -> None:
        self.answers.append((call_id, answer))
        self.gate(f"answer:{call_id}").set()

    def objection(self, call_id: str, rule: str) -> str:
        return "" if "make" in rule and ":" in rule else "This does not cover the call that waits."

    def reply(self, call_id: str, text: str) -> None:
        self.replies.append((call_id, text))
        self.gate(f"answer:{call_id}").set()

    async def measure(self) -> Figures:
        return self.figures

    async def preview(self, instructions: str = "", keep_recent: int | None = None) -> Preview:
        return Preview(self.figures, self.figures, reason="Nothing to free: system and tools hold 31k of 33k.")

    async def free_up(self, preview: Preview, steps: Sequence[str] | None = None) -> AsyncGenerator[Stamped, None]:
        yield self._stamp(self.figures)

    def agree(self, when: str, instructions: str = "") -> None:
        self.agreed.append((when, instructions))

    def snooze(self, turns: int) -> None:
        self.snoozed.append(turns)

    async def make_room(self) -> AsyncGenerator[Stamped, None]:
        yield self._stamp(self.figures)

    async def undoing(self, change_id: str = "") -> Undoing:
        ledger = self.state.ledger
        return look(ledger, change_id, lambda found: (compile(found, Frame(), self.meter), self.figures))

    async def undo(self, change_id: str = "", groups: Sequence[str] = ()) -> Figures:
        self.state = fold([Undone(found(self.state.ledger, change_id).id)], self.state)
        return self.figures

    async def pin(self, group_id: str) -> Figures:
        return self.figures

    drop = shrink = restore = pin

    async def rename(self, title: str) -> None:
        self.state = msgspec.structs.replace(self.state, title=title)

    async def switch_model(self, name: str) -> Figures:
        self.model = name
        return self.figures

    async def close(self) -> None:
        self.closed = True


class FakeServices:
    """Doors beside a few sessions."""

    def __init__(
        self, workspace: Path, *sessions: FakeSession, notices: Sequence[str] = (), sandboxed: bool = True
    ) -> None:
        self.workspace, self.notices, self.sandboxed = workspace, tuple(notices), sandboxed
        self.by_id = {s.id: s for s in sessions}
        self.first = sessions[0]
        self.closed = False
        self.warmed = False
        self.forks: list[tuple[str, str]] = []
        self.offered: tuple[Offer, ...] = ()
        self.note = ""
        self.adopted: list[Loaded] = []
        self.masking = Masking(bytes(32))
        self.mcp: Sequence[ServerRow] = ()

    def adopt(self, loaded: Loaded) -> None:
        self.adopted.append(loaded)

    async def open(self, session_id: str = "") -> FakeSession:
        if not session_id:
            return self.first
        if session_id not in self.by_id:
            raise CtxchatError(f"There is no session {session_id}.", "ctxchat sessions list shows them.")
        return self.by_id[session_id]

    async def sessions(self) -> Sequence[SessionRow]:
        from ctxchat.storage.sessions import SessionRow

        return [SessionRow(s.id, s.state.title, AT, AT, 0, s.model, 0, 0, "") for s in self.by_id.values()]

    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        return ()

    async def delete(self, session_id: str) -> None:
        del self.by_id[session_id]

    async def hand_off(self, session_id: str, title: str) -> str:
        self.by_id["fresh"] = FakeSession(id="fresh", title=title)
        return "fresh"

    async def fork(self, session_id: str, message_id: str = "") -> str:
        self.forks.append((session_id, message_id))
        copy = FakeSession(id=f"{session_id}-branch", title="branch")
        copy.state = self.by_id[session_id].state
        self.by_id[copy.id] = copy
        return copy.id

    async def models(self) -> Sequence[FoundModel]:
        from ctxchat.models.discovery import FoundModel

        return [FoundModel("anthropic/claude-sonnet-4-5", "anthropic", True, 200_000, "catalogue")]

    async def indexed(self) -> float:
        return 1.0

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        return []

    async def group(self, session_id: str, message_id: str) -> Group:
        raise CtxchatError(f"There is no message {message_id}.")

    async def mcp_servers(self) -> Sequence[ServerRow]:
        return self.mcp

    async def switch_server(self, name: str) -> ServerRow:
        raise CtxchatError(f"There is no MCP server {name}.")

    async def importable(self, path: Path | None = None) -> Sequence[Importable]:
        return ()

    async def first_found(self) -> Sequence[Importable]:
        return ()

    async def importing(self, path: Path | None = None) -> AsyncGenerator[ImportNews, None]:
        for news in ():
            yield news

    async def first_look(self) -> FirstLook:
        from ctxchat.models.discovery import FirstLook

        return FirstLook(self.offered, self.note)

    async def warm_up(self, model: str = "") -> None:
        self.warmed = True

    async def close(self) -> None:
        self.closed = True
