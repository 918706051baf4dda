"""What a turn costs follows what it adds, not what was there before: counted in instructions, never in seconds."""

from __future__ import annotations

from pathlib import Path

import ctxchat
from ctxchat.core.budget import Window
from ctxchat.core.events import TurnFinished, Usage
from ctxchat.core.grouping import seal_round, single
from ctxchat.core.journal import Changed, Measured, Record, Sealed
from ctxchat.core.ledger import Change, Edit
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.options import Options
from ctxchat.core.view import Item
from ctxchat.storage.database import Database
from ctxchat.storage.journal import begin_journal
from tests.agent.desk import Desk, Echo
from tests.agent.test_turn import of
from tests.doubles.opcodes import Opcodes
from tests.doubles.scripted import ScriptedModel, calls, says

EVERY, KEPT = 90, 30
"""Groups between two compactions, and those that stay as they were."""


def past(groups: int) -> list[Record]:
    """A session of so many groups, with a compaction after each `EVERY` that leaves the last `KEPT`."""
    records: list[Record] = []
    made: list[Group] = []
    for place in range(0, groups, 3):
        turn, seq = place // 3 + 1, 1 + place // 3 * 4
        call = ToolCall(f"call-{turn}", "echo", '{"text": "hello"}')
        rounds = seal_round(
            Message(seq + 1, "assistant", "", (call,)), [Message(seq + 2, "tool", "x", call_id=call.id)], turn
        )
        made += [single("user", Message(seq, "user", f"question {turn}"), turn), rounds]
        made.append(single("reply", Message(seq + 3, "assistant", f"answer {turn}"), turn))
        records += [Sealed(tuple(made[-3:])), Measured("scripted/model", Usage(900, 10), 900 + turn, turn_end=True)]
        if len(made) % EVERY == 0:
            summary = single("summary", Message(0, "user", "what was said before"), 0, f"k{len(made)}")
            edit = Edit("digest", tuple(g.id for g in made[:-KEPT]), summary)
            records.append(Changed(Change(f"k{len(made)}", "compaction", edits=(edit,))))
    return records


async def work_of_a_turn(folder: Path, groups: int) -> int:
    """Instructions of a turn with two rounds of tools in a session that long, opened anew."""
    counter = Opcodes(str(Path(ctxchat.__file__).parent))
    script = [calls(("echo", {"text": "one"})), says("first"), *[calls(("echo", {"text": "two"}))] * 2, says("second")]
    with counter.installed(), Database(folder) as database:
        journal = begin_journal(database, "m", "/").journal
        records = past(groups)
        await journal.write(*records)
        model = ScriptedModel(script, window=Window(60_000, "configured"))
        desk = Desk(model, tools=[Echo()], options=Options(auto_compact="off"), journal=journal, records=records)  # type: ignore[arg-type]
        await desk.say("warm up")
        counter.on = True
        events = await desk.say("and now")
        counter.on = False
        assert of(events, TurnFinished)[0].text == "second" and len(desk.state.ledger.groups) == groups + 7
        await journal.close()
    return counter.counted


async def test_a_turn_in_a_long_session_is_no_more_work_than_in_a_short_one(tmp_path: Path) -> None:
    short, long = await work_of_a_turn(tmp_path / "short", 120), await work_of_a_turn(tmp_path / "long", 3000)
    assert short > 10_000, "something was counted"
    assert long < 1.5 * short, (short, long)


async def test_each_request_is_compiled_once_and_the_end_of_a_turn_once_more() -> None:
    seen: list[int] = []

    def watched(items: tuple[Item, ...]) -> tuple[Item, ...]:
        seen.append(len(items))
        return items

    script = [calls(("echo", {"text": "one"})), calls(("echo", {"text": "two"})), says("done")]
    model = ScriptedModel(script)
    desk = Desk(model, tools=[Echo()], options=Options(auto_compact="off"), transforms=[watched])
    await desk.say("look")
    assert len(model.requests) == 3 and len(seen) == 4
