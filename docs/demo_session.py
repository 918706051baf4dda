"""A fixed conversation about a tide gauge, in the real agent: for the pictures of the documentation.

Nothing is called and nothing is waited for: the model plays a script, the clock stands where it is put.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ctxchat.agent.prompts import prompt
from ctxchat.agent.session import Session
from ctxchat.core.budget import Window
from ctxchat.core.calibration import level
from ctxchat.core.events import Usage
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import ContextBlock
from ctxchat.core.journal import Changed, Measured, Named, Record, Sealed, SessionState
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.ports import SummaryTask
from ctxchat.core.prices import ModelPrices, Rates
from ctxchat.core.search import Hit, Scope
from ctxchat.models.discovery import FoundModel
from ctxchat.storage import archive, sessions
from ctxchat.storage.archive import LastSaid
from ctxchat.storage.database import Database
from ctxchat.storage.sessions import SessionRow
from ctxchat.tools.catalogue import standard_tools
from ctxchat.tools.checkpoints import Checkpoints
from ctxchat.tools.sandbox import Sandbox
from tests.agent.desk import Around, Desk, StillClock
from tests.doubles.scripted import ScriptedModel, calls, says
from tests.tui.fakes import FakeServices

MODEL = "anthropic/claude-sonnet-4-5"
PRICES = ModelPrices(Rates(3, 15, 0.3, 3.75, 6), cache_life=300, long_cache_life=3600, least_cached=1_024)
TURNS = 46
FIRST = """## Goal
Find why the tide gauge at Pier 7 goes silent at night.

## Rules
- Answer with paths and lines; times are UTC.

## Decisions
- The gauge reports every 90 s; a gap of more than 180 s counts as a missed report (settled).
- A longer read timeout on the serial port, or a restart of the service at night (open).

## Progress
- done: the log of 14 nights read; the gaps begin at 02:00
- in progress: what else runs at 02:00

## Failed attempts
- Polling every 30 s: the hub drops every second answer.

## Files
- src/gauge.py, etc/cormorant.toml
"""
SECOND = """## Goal
Find why the tide gauge at Pier 7 goes silent at night, and make the logger Cormorant notice it.

## Rules
- Answer with paths and lines; times are UTC.

## Decisions
- The gauge reports every 90 s; a gap of more than 180 s counts as a missed report (settled).
- Cormorant opens its serial port again after three timeouts, instead of a restart (settled).
- Whether the alarm goes to the harbour office at night (open).

## Progress
- done: the log of 14 nights read; the gaps begin at 02:00, when the backup takes the serial hub
- in progress: `src/cormorant/port.py`, opening the port again

## Failed attempts
- Polling every 30 s: the hub drops every second answer.
- A longer read timeout (5 s, then 20 s): the gap only moved.

## Files
- src/cormorant/port.py, src/gauge.py, etc/cormorant.toml
"""

ASKED = (
    "Which logger does the tide gauge at Pier 7 report to?",
    "And how often does it fail?",
    "Show me the gaps of last night.",
    "What runs at two o'clock?",
    "Make the port open again after three timeouts.",
)
CALLS = (
    ("grep", '{{"pattern": "tide gauge", "path": "."}}', 8),
    ("read_file", '{{"path": "var/log/night-{n:02d}.log", "start": 1, "end": 2000}}', 60),
    ("shell", '{{"command": "journalctl -u cormorant --since 2026-11-{n:02d}"}}', 120),
    ("read_file", '{{"path": "etc/cormorant.d/{n:02d}.toml"}}', 24),
    ("shell", '{{"command": "pytest -q tests/test_port.py -k night_{n}"}}', 60),
)
ANSWERS = (
    "The gauge at Pier 7 reports every 90 s to the logger **Cormorant** (`README.md:3`, `src/gauge.py:2`).",
    "Four gaps in the last fourteen nights, all between 02:00 and 02:11, the longest 640 s (`cormorant.log:118`).",
    "Last night the reports stop at 02:00:14 and come back at 02:10:54. The port was open, but nothing arrived.",
    "The backup of the harbour office (`backup.timer`), which takes the same serial hub for its modem.",
    "Done: after three timeouts the port is closed and opened again. The tests pass; `port.py` has grown by eleven lines.",
)
DETAIL = (
    "The gauge sends a line every 90 s over the serial hub in the shed; Cormorant reads it with a timeout of five seconds and "
    "writes it to the day's log. When the hub is busy the read returns nothing, the timeout is counted, and the next report is "
    "waited for. Three in a row mean that the port has to be opened again, because the driver keeps the old handle."
)


class DemoClock(StillClock):
    """Stands where it is put; waiting takes no time."""

    minute = 0

    def now(self) -> str:
        return moment(self.minute)

    def seconds(self) -> float:
        return self.minute * 60.0


def moment(minute: int) -> str:
    """A time of the demo's day."""
    return f"2026-11-21T{8 + minute // 60:02d}:{minute % 60:02d}:00.000Z"


RULES = "Answer with paths and lines. Times are UTC. Never restart Cormorant between 05:00 and 07:00.\n"
AROUND = Around((ContextBlock("AGENTS.md", RULES * 40),), (ContextBlock("date", "Saturday, 21 November 2026"),))


class DemoSummariser:
    """Knows two summaries: the first, and the one that merges it."""

    model = "anthropic/claude-haiku-4-5"

    async def summarise(self, task: SummaryTask) -> AsyncIterator[str | Usage]:
        yield SECOND if task.previous else FIRST
        yield Usage(prompt=61_200, completion=410, cost_usd=0.04)


def log(lines: int, turn: int) -> str:
    """So many lines of the logger's log."""
    line = "2026-11-{day:02d}T02:{minute:02d}:{second:02d}Z cormorant[412]: pier-7 level={level:.2f} m seq={seq} ok"
    return "\n".join(
        line.format(
            day=1 + turn % 20, minute=n // 40 % 60, second=n * 90 % 60, level=2.1 + n % 17 / 20, seq=turn * 1000 + n
        )
        for n in range(lines)
    )


def turn(number: int, seq: int, minute: int, *, long: bool) -> tuple[Group, ...]:
    """A question, a call with its result, an answer."""
    name, arguments, lines = CALLS[number % len(CALLS)]
    details = [DETAIL] * (6 + number % 9 if long else 0)
    at, call = moment(minute), ToolCall(f"call_{number}", name, arguments.format(n=number % 28 + 1))
    messages = [
        Message(seq, "user", ASKED[number % len(ASKED)], at=at),
        Message(seq + 1, "assistant", "", calls=(call,), at=at),
        Message(seq + 2, "tool", log(lines, number), call_id=call.id, name=name, at=at),
        Message(seq + 3, "assistant", "\n\n".join([ANSWERS[number % len(ANSWERS)], *details]), at=at),
    ]
    groups = group_messages(messages)
    return tuple(msgspec.structs.replace(group, turn=number + 1) for group in groups)


async def demo_desk(window: int = 96_000, turns: int = TURNS) -> Desk:
    """The session and its parts: turns, two compactions by hand on the way, and what was said since."""
    clock, model = DemoClock(), ScriptedModel((), name=MODEL, window=Window(window, "catalogue"), prices=PRICES)
    desk = Desk(
        model,
        tools=standard_tools(sandbox=Sandbox(), environ={}),
        records=[Named("harbour-logger")],
        around=AROUND,
        summariser=DemoSummariser(),
        system=prompt("system"),
        clock=clock,
    )
    conversation, session = desk.conversation, desk.session
    await session.measure()
    for number in range(turns):
        clock.minute = number * 7
        await conversation.write(Sealed(turn(number, 4 * number + 1, clock.minute, long=turns - number >= 5)))
        used = (await session.measure()).used
        usage = Usage(prompt=used - 40, completion=40, cached=used * 3 // 4, cost_usd=0.021)
        knowledge = level(1.0, band=0.02, samples=9)
        await conversation.write(Measured(MODEL, usage, used, calibration=knowledge, at=clock.now(), turn_end=True))
        if number in (18, 33):
            clock.minute += 2
            async with aclosing(session.free_up(await session.preview())) as events:
                async for _ in events:
                    pass
    await session.measure()
    return desk


WRITTEN = (
    ("Write down when the gaps begin.", "notes.md", "# Gaps\n\n- 02:00:14 to 02:10:54, when the backup runs\n"),
    (
        "Open the port again after three timeouts.",
        "src/cormorant/port.py",
        "def reopen(port):\n    port.close()\n    port.open()\n",
    ),
    (
        "And say so in the notes.",
        "notes.md",
        "# Gaps\n\n- 02:00:14 to 02:10:54, when the backup runs\n- mended: the port is opened again\n",
    ),
)
"""What was asked for in the workspace of `writing_desk`: words, file, content."""


async def writing_desk(folder: Path) -> Desk:
    """A session whose turns wrote files, real ones in this folder."""
    work = folder / "harbour-logger"
    work.mkdir()
    script = [
        reply
        for _, path, content in WRITTEN
        for reply in (calls(("write_file", {"path": path, "content": content})), says("Done."))
    ]
    model = ScriptedModel(script, name=MODEL, window=Window(96_000, "catalogue"))
    files = Checkpoints(work, folder / "kept")
    tools = standard_tools(sandbox=Sandbox(), environ={})
    desk = Desk(model, tools=tools, records=[Named("harbour-logger")], mode="all", workspace=work, files=files)
    for text, _, _ in WRITTEN:
        await desk.say(text)
    return desk


async def empty_desk() -> Desk:
    """A session in which nothing was said yet."""
    model = ScriptedModel((), name=MODEL, window=Window(96_000, "catalogue"))
    tools = standard_tools(sandbox=Sandbox(), environ={})
    desk = Desk(model, tools=tools, around=AROUND, summariser=DemoSummariser(), system=prompt("system"))
    await desk.session.measure()
    return desk


class DemoServices(FakeServices):
    """What the interface is handed beside the session: a few more sessions and models, and a search that finds."""

    def __init__(self, session: Session) -> None:
        super().__init__(Path("harbour-logger"), session)
        self.session = session

    async def glance(self, session_id: str) -> Sequence[LastSaid]:
        groups = self.session.state.ledger.groups[-8:]
        said = [m for g in groups for m in g.messages if m.role in ("user", "assistant") and m.text]
        return [LastSaid(m.role, m.text, m.at) for m in said[-4:]]

    async def sessions(self) -> Sequence[SessionRow]:
        state: SessionState = self.session.state
        count, used = len(state.ledger.messages()), self.session.context_usage.used
        return [
            SessionRow("s1", "harbour-logger", moment(0), moment(322), count, MODEL, used, 2, ""),
            SessionRow("night", "what about the night shift?", moment(120), moment(250), 96, MODEL, 40_200, 1, "s1"),
            SessionRow("poll", "try with polling every 30 s", moment(130), moment(180), 38, MODEL, 20_100, 0, "night"),
            SessionRow("notes", "release notes for 0.4", moment(1), moment(40), 12, "ollama/qwen3:8b", 4_000, 0, ""),
        ]

    async def search(
        self, query: str, scope: Scope, *, limit: int = 20, marks: tuple[str, str] = ("«", "»")
    ) -> Sequence[Hit]:
        """The real search, over a store made for the occasion."""
        state = self.session.state
        records: list[Record] = [
            Named("harbour-logger"),
            Sealed(state.ledger.groups),
            *map(Changed, state.ledger.changes),
        ]
        with TemporaryDirectory() as folder, Database(Path(folder)) as database:
            sessions.create(database, records=records)
            hits = archive.search(
                database, query, scope=msgspec.structs.replace(scope, session=""), limit=limit, marks=marks
            )
        return [msgspec.structs.replace(hit, session=self.session.id) for hit in hits]

    async def group(self, session_id: str, message_id: str) -> Group:
        return next(g for g in self.session.state.ledger.groups for m in g.messages if m.id == message_id)

    async def models(self) -> Sequence[FoundModel]:
        return [
            FoundModel("offline/assistant", "ctxchat", True, 32_768, "configured", 0.0, 0.0, "quotes your files"),
            FoundModel(MODEL, "anthropic", True, 200_000, "catalogue", 3.0, 15.0),
            FoundModel("ollama/qwen3:8b", "ollama", True, 40_960, "loaded", 0.0, 0.0, "on this machine"),
            FoundModel("openai/gpt-5", "openai", False, 272_000, "catalogue", 1.25, 10.0, "no key: OPENAI_API_KEY"),
        ]
