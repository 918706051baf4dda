"""Changes by hand that once did something else than they said."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from ctxchat.core.budget import Window
from ctxchat.core.errors import LedgerError
from ctxchat.core.events import Usage
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Image, Message, Text, ToolCall
from ctxchat.core.options import Options
from ctxchat.core.ports import SummaryTask
from ctxchat.core.record import CompactionRecord
from ctxchat.core.strategies.oversize import KEPT
from tests.agent.desk import Desk
from tests.doubles.scripted import ScriptedModel, says

PICTURE = Image("data:image/png;base64,AAAA", 10, 10)


def imported() -> Desk:
    messages = [
        Message(1, "system", "Be brief. " * 50),
        Message(2, "user", (Text("look at this"), PICTURE)),
        Message(3, "assistant", "seen"),
    ]
    return Desk(ScriptedModel([says("ok")]), records=[Sealed((group,)) for group in group_messages(messages)])


async def test_instructions_that_stay_in_every_request_cannot_be_dropped_but_shrunk():
    desk = imported()
    before = (await desk.session.measure()).used
    with pytest.raises(LedgerError, match="instructions"):
        await desk.session.changes.drop("g1")
    assert desk.state.ledger.changes == ()
    assert (await desk.session.changes.shrink("g1")).used < before


async def test_an_image_that_is_put_back_is_an_image():
    desk = imported()
    await desk.session.changes.restore("g2")
    note = desk.session.view.items[-1].message
    assert "look at this" in note.text and PICTURE in note.content
    await desk.session.changes.undo()
    await desk.session.changes.quote(desk.state.ledger.group("g2"), "holidays")
    assert PICTURE in desk.session.view.items[-1].message.content


async def test_a_call_that_wrote_a_long_file_is_shrunk_by_hand_too():
    arguments = json.dumps({"path": "src/app.py", "content": "x = 1\n" * 5000})
    messages = [
        Message(1, "user", "Write it."),
        Message(2, "assistant", calls=(ToolCall("c", "write_file", arguments), ToolCall("d", "ls", '{"path": "."}'))),
        Message(3, "tool", "written", call_id="c"),
        Message(4, "tool", "src", call_id="d"),
        Message(5, "user", "And now?"),
    ]
    desk = Desk(ScriptedModel([says("ok")]), records=[Sealed((group,)) for group in group_messages(messages)])
    before = await desk.session.measure()
    assert (await desk.session.changes.shrink("g2")).used < before.used / 10
    [long, short] = next(item.message.calls for item in desk.session.view.items if item.message.calls)
    told = json.loads(long.arguments)
    assert told["path"] == "src/app.py" and "[… the whole in the archive as m2 …]" in told["content"]
    assert short.arguments == '{"path": "."}'
    assert (await desk.session.changes.undo()).used == before.used


async def test_who_wrote_a_mended_summary_is_recorded_with_what_its_draft_cost() -> None:
    class Dear:
        model = "dear"

        async def summarise(self, task: SummaryTask) -> AsyncIterator[str | Usage]:
            yield "## Goal\nKnow the gauge."
            yield Usage(10, 5, cost_usd=0.25)

    for mended, author in (("## Goal\nKnow the gauge.", ""), ("## Goal\nKnow both gauges.", "you")):
        desk = Desk(ScriptedModel([says("so it is " * 300)] * 8), options=Options(keep_recent=2), summariser=Dear())
        for _ in range(4):
            await desk.say("and? " * 300)
        preview = await desk.session.preview()
        drafted = "".join([piece async for piece in desk.session.compaction.draft(preview)])
        assert drafted == "## Goal\nKnow the gauge."
        await desk.free_up(summary=mended)
        record = desk.state.ledger.compactions[-1].record
        assert record is not None
        assert (record.author, record.model, record.cost_usd, record.summary) == (author, Dear.model, 0.25, mended)
        assert desk.state.cost_usd == pytest.approx(0.25)
        for _ in range(4):
            await desk.say("and? " * 300)
        await desk.free_up(summary="## Goal\nWritten by hand.")
        record = desk.state.ledger.compactions[-1].record
        assert record is not None and (record.outcome, record.cost_usd) == ("compacted", 0.0)
        await desk.session.close()


async def test_a_target_that_what_stays_does_not_allow_is_told_with_what_stands_in_the_way():
    call = ToolCall("c", "shell", '{"command": "find ."}')
    listing = "\n".join(f"./src/part{n}/file{n}.py" for n in range(2_000))
    messages = [
        *(Message(n, "assistant" if n % 2 else "user", f"words {n} " * 200) for n in range(2, 30)),
        Message(30, "user", "look at this: " + "trace " * 6_000),
        Message(31, "assistant", calls=(call,)),
        Message(32, "tool", listing, call_id="c", name="shell"),
        Message(33, "assistant", "Seen."),
        Message(34, "user", "and now?"),
        Message(35, "assistant", "Done."),
    ]
    records = [Sealed((group,)) for group in group_messages(messages)]
    desk = Desk(ScriptedModel([says("ok")], window=Window(64_000, "loaded")), records=records)
    await desk.session.measure()
    free = desk.session
    easy = await free.preview(keep_recent=12, strategy="truncate", target=0.8)
    assert easy.missed == "" and KEPT not in [step.name for step in easy.steps]
    preview = await free.preview(keep_recent=12, strategy="truncate", target=0.05)
    assert KEPT in [step.name for step in preview.steps], "a long result gives way"
    assert "above the target of" in preview.missed and "m30 alone" in preview.missed
    events = [stamped.event async for stamped in free.free_up(preview)]
    (record,) = (event for event in events if isinstance(event, CompactionRecord))
    assert record.outcome == "compacted" and record.missed == preview.missed
    assert any("trace " * 5_000 in item.message.text for item in desk.session.view.items), (
        "what the person pasted stays"
    )


async def test_a_small_target_is_met_by_fewer_messages_kept_and_missed_by_a_fifth_at_most() -> None:
    messages = [Message(n, "assistant" if n % 2 else "user", f"words {n} " * 150) for n in range(2, 120)]
    records = [Sealed((group,)) for group in group_messages(messages)]
    desk = Desk(ScriptedModel([], window=Window(120_000, "loaded")), records=records)
    await desk.session.measure()
    preview = await desk.session.preview(strategy="truncate", target=0.03)
    assert preview.keep_recent < desk.config.options.keep_recent and preview.missed == ""
    assert preview.after.used <= preview.after.limit * 0.03 * 1.2
