"""What a turn costs as a session grows: CPU time of a turn with one tool call, and memory, over 3,000 turns in one process with
passes in between, once as most turns are and once with the passes shared out. The record (messages, and what passes put in
their place) is told apart: it is what there is to grow.
`python benchmarks/growth.py [turns]`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from ctxchat.bootstrap.program import hold_no_freed_memory
from ctxchat.core.budget import Window
from ctxchat.core.events import Usage
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask
from ctxchat.storage.database import Database
from ctxchat.storage.journal import begin_journal

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.agent.desk import Desk, Echo
from tests.doubles.scripted import Reply, ScriptedModel, calls, says

TOLD, OVER = (100, 300, 1000, 2000, 3000), 50
"""After how many turns it is told what the last `OVER` cost."""


class Brief:
    """A summariser that needs no model."""

    model = "brief/any"

    async def summarise(self, task: SummaryTask) -> AsyncIterator[str | Usage]:
        yield "They asked about the service, and were told."


def conversation() -> Iterator[Reply]:
    number = 0
    while True:
        number += 1
        yield calls(("echo", {"text": f"line {number} of the log\n" * 10}))
        yield says(f"The service is well, as it was before turn {number}. " * 5)


def resident() -> float:
    """Memory in use, MB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def size(value: object, seen: set[int]) -> int:
    """Bytes of a value and all it is made of, each thing once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    fields: Sequence[str] = getattr(value, "__struct_fields__", ())
    parts = value if isinstance(value, tuple | list) else [getattr(value, name) for name in fields]
    return sys.getsizeof(value) + sum(size(part, seen) for part in parts)


async def main(turns: int) -> None:
    hold_no_freed_memory()
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "data") as database:
        journal = begin_journal(database, "scripted/model", folder).journal
        model = ScriptedModel(conversation(), window=Window(16_000, "configured"))
        options = Options(auto_compact="off", output_reserved=500)
        echo = Echo()
        desk = Desk(model, tools=[echo], options=options, journal=journal, summariser=Brief())  # type: ignore[arg-type]
        print(f"{'turn':>6} {'CPU ms/turn':>12} {'with passes':>12} {'MB':>7} {'passes':>7}")
        spent: list[float] = []
        told = 0
        for turn in range(1, turns + 1):
            began = time.process_time()
            await desk.say(f"question {turn}: how is the service?")
            spent.append(time.process_time() - began)
            model.requests.clear()
            echo.ran.clear()
            if turn in TOLD or turn == turns:
                passes = len(desk.state.ledger.compactions)
                median = 1000 * sorted(spent[-OVER:])[min(OVER, len(spent)) // 2]
                mean = 1000 * sum(spent[told:]) / (turn - told)
                print(f"{turn:6} {median:12.1f} {mean:12.1f} {resident():7.1f} {passes:7}", flush=True)
                told = turn
        seen: set[int] = set()
        for what in ("groups", "changes"):  # at the end, for it takes memory, too
            print(f"the record's {what}: {size(getattr(desk.state.ledger, what), seen) / 2**20:.1f} MB")
        await journal.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else TOLD[-1]))
