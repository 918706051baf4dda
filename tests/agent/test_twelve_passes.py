"""An hour of work in which decisions change, through twelve compactions: nothing that code or a summary says is out of date, and
no sentence of the person is lost."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator

from ctxchat.core.budget import Window
from ctxchat.core.events import Failed, Usage
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask, ToolContext, ToolOutput, ToolText
from ctxchat.core.record import CompactionRecord
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.scripted import Reply, ScriptedModel, calls, says

TURNS = 48
STORES = ("Sqlite", "Postgres", "Duckdb", "Redis", "Badger")
_VALUE = re.compile(r"\b(\w+_limit)`?(?: to|:| =) `?(\d+ s)")
_STORE = re.compile(r"the archive (?:goes to|is in) (\w+)")


class Scribe:
    """A summariser that writes of what it was given what was said last, and nothing else."""

    model = "scribe/one"

    async def summarise(self, task: SummaryTask) -> AsyncGenerator[str | Usage, None]:
        said = [task.previous, *(m.text for g in task.groups for m in g.messages), task.beside]
        text = "\n".join(part.partition("Facts that code keeps")[0] for part in said)
        values = dict(_VALUE.findall(text))
        stores = _STORE.findall(text)
        lines = [*(f"- {name} = {value} (settled)" for name, value in values.items())]
        yield "\n".join(["## Decisions", *lines, *(f"- the archive is in {store} (settled)" for store in stores[-1:])])
        yield Usage(1000, 50)


class Works(Echo):
    """Gives the text it is asked for: a long file, or what a command says."""

    async def run(self, arguments: dict[str, object], context: ToolContext) -> AsyncIterator[ToolText | ToolOutput]:
        if "command" in arguments:
            bad = str(arguments["text"]) == "bad"
            yield ToolOutput("gauge.py:3: error: no such name\n[exit code 1]" if bad else "12 passed\n[exit code 0]")
        else:
            yield ToolOutput("value = 1\n" * 560)


def said(turn: int) -> str:
    """What the person says in a turn: a value is set anew, each fifth turn another store is chosen."""
    store, before = STORES[turn // 5 % len(STORES)], STORES[(turn // 5 - 1) % len(STORES)]
    words = f"Sentence {turn}: set read_{turn % 4}_limit to {turn + 10} s."
    return f"{words} We decided: the archive goes to {store} instead of {before}." if turn % 5 == 0 else words


def script() -> list[Reply]:
    made: list[Reply] = []
    for turn in range(TURNS):
        path = f"src/part_{turn % 3}.py"
        made.append(
            calls(("read_file", {"path": path, "text": "x"}), ("shell", {"command": "make check", "text": "bad"}))
        )
        made.append(calls(("edit_file", {"path": path, "text": f"limit = {turn + 10}"})))
        made.append(calls(("shell", {"command": "make check 2>&1 | tail -3", "text": "good"})))
        made.append(says(f"Done. `read_{turn % 4}_limit`: `{turn + 10} s`, in {path}."))
    return made


async def test_nothing_said_by_code_or_summary_is_out_of_date_after_twelve_passes() -> None:
    model = ScriptedModel(script(), window=Window(32_000, "loaded"))
    tools = [Works("read_file"), Works("shell"), Works("edit_file")]
    desk = Desk(model, tools=tools, options=Options(strategy="summarize", prepare=False), summariser=Scribe())
    passes = 0
    for turn in range(TURNS):
        events = await desk.say(said(turn))
        assert not of(events, Failed)
        made = [p.reason for p in of(events, CompactionRecord) if p.outcome == "compacted"]
        passes += len(made)
        if not made:
            continue
        summary = next(i.message.text for i in desk.session.view.items if i.section == "summary")
        shown = "\n".join(i.message.text for i in desk.session.view.items)
        assert all(f"Sentence {n}: " in shown for n in range(turn + 1)), "every sentence of the person"
        words = re.search(r"The person's messages, word for word[^\n]*:\n(?:- .*\n)*", summary)
        told = summary.replace(words[0], "") if words else summary
        now = {f"read_{n % 4}_limit": f"{n + 10} s" for n in range(turn + 1)}
        for name, value in _VALUE.findall(told):
            assert value == now[name], (turn, name, value)
        current = STORES[turn // 5 % len(STORES)]
        assert {store for store in STORES if re.search(rf"archive (?:goes to|is in) {store}", told)} <= {current}, told
        if made == ["auto"]:  # inside a turn it may be open still
            assert "no such name" not in told, "the error was mended each time"
        assert told.count("make check") <= 2, "the form that works, and the one that failed since"
    assert passes >= 12
    await desk.session.close()
