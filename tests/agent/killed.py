"""Runs a turn and a pass on a real store and dies at a given call of the journal: `python -m tests.agent.killed FOLDER`.

Makes `FOLDER/start` once, then a copy of it for each call, each worked on by a child that is gone once that call is done, as with
`kill -9`: between two calls nothing is written, so that is before the next one as well. Prints the names of the copies.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from ctxchat.agent.compaction.compactor import Compactor
from ctxchat.agent.conversation import Conversation, ConversationPorts
from ctxchat.agent.hooks import Hooks
from ctxchat.agent.session import Session
from ctxchat.agent.session_config import SessionConfig
from ctxchat.agent.session_parts import SessionParts
from ctxchat.agent.turn.approvals import Approvals
from ctxchat.agent.turn.tool_runner import ToolRunner, Workplace
from ctxchat.core.budget import Window
from ctxchat.core.journal import Partial, Record
from ctxchat.core.options import Options
from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from ctxchat.storage.journal import Journal, open_journal
from tests.agent.desk import Around, Echo, Recorded, StillClock
from tests.agent.test_compaction import LONG, Writer
from tests.doubles.scripted import ScriptedModel, calls, says

TURNS = 3
QUESTION = "What is left to do?"
ANSWER = "Nothing is left to do."
OPTIONS = Options(keep_recent=2, prepare=False, auto_compact="off", stream_figures_every=0.0)


class Deadly:
    """A journal that ends the process once its `at`-th call is done."""

    read_only = ""

    def __init__(self, journal: Journal, at: int) -> None:
        self._journal, self._at = journal, at
        self.calls = 0

    @property
    def session(self) -> str:
        return self._journal.session

    def _done(self) -> None:
        self.calls += 1
        if self.calls == self._at:
            os._exit(9)

    async def write(self, *records: Record) -> None:
        await self._journal.write(*records)
        self._done()

    async def keep(self, partial: Partial) -> None:
        await self._journal.keep(partial)
        self._done()

    async def spill(self, name: str, text: str) -> str:
        path = await self._journal.spill(name, text)
        self._done()
        return path

    async def attach(self, name: str, data: bytes) -> str:
        return await self._journal.attach(name, data)

    async def attached(self, path: str) -> bytes:
        return await self._journal.attached(path)

    async def close(self, estimate: int = 0) -> None:
        await self._journal.close(estimate)


def session_of(journal: Deadly, state: object, model: ScriptedModel) -> Session:
    clock, approvals = StillClock(), Approvals("all")
    tool_runner = ToolRunner([Echo()], approvals, clock, Workplace("/"))
    config = SessionConfig(
        system="You are a test.", context_sources=Around(), open_model=lambda name, at=None: model, options=OPTIONS
    )
    conversation = Conversation(journal, state, model, config, ConversationPorts(clock), tool_runner.specs)  # type: ignore[arg-type]
    compactor = Compactor(conversation, summariser=Writer("## Goal\nAnswer."))
    hooks = Hooks((), conversation, compactor, Recorded())
    return Session(SessionParts(conversation, tool_runner, compactor, hooks), config)


async def work(folder: Path, at: int, *, begin: bool) -> None:
    """Turns with long results at the beginning; a compaction and one more turn after that."""
    with Database(folder) as database:
        name = sessions.create(database) if begin else sessions.rows(database)[0].id
        opened = open_journal(database, name)
        journal = Deadly(opened.journal, at)
        model = ScriptedModel(replies(begin), window=Window(60_000, "configured"))
        session = session_of(journal, opened.state, model)
        if begin:
            for number in range(TURNS):
                await consume(session.send(f"question {number} {LONG}"))
        else:
            await consume(session.free_up(await session.preview()))
            await consume(session.send(QUESTION))
        await session.close()


def replies(begin: bool) -> list[object]:
    if not begin:
        return [calls(("echo", {"text": "looked"}), text="Looking. "), says(ANSWER)]
    one = [calls(("echo", {"text": "long result\n", "times": 90})), says(LONG)]
    return [reply for _ in range(TURNS) for reply in one]


async def consume(stream: object) -> None:
    async for _ in stream:  # type: ignore[attr-defined]
        pass


def in_a_child(what: Callable[[], object]) -> int:
    """Run it in a process of its own; its exit code. No thread has been started here, so a fork is safe."""
    child = os.fork()
    if child == 0:
        what()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path) -> None:
    start = folder / "start"
    in_a_child(lambda: asyncio.run(work(start, 0, begin=True)))
    at, code = 0, 9
    while code == 9:
        at += 1
        copy = folder / str(at)
        shutil.copytree(start, copy)
        code = in_a_child(lambda c=copy, n=at: asyncio.run(work(c, n, begin=False)))
        print(copy.name if code == 9 else f"whole:{copy.name}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
