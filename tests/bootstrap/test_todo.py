"""The to-do list stands in every request until it is done: after a compaction, and in a session that is opened again."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import msgspec

from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.program import Program
from ctxchat.config.effective import load_settings
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message, ToolCall
from ctxchat.storage import sessions
from ctxchat.storage.database import Database

ITEMS = [{"text": "read the schema", "status": "done"}, {"text": "move the table"}]


def record() -> list[Message]:
    arguments = msgspec.json.encode({"items": ITEMS}).decode()
    said = [
        Message(1, "user", "Move it."),
        Message(2, "assistant", calls=(ToolCall("c", "todo", arguments),)),
        Message(3, "tool", "[x] read the schema\n[ ] move the table", call_id="c", name="todo"),
    ]
    for seq in range(4, 40, 2):
        said += [Message(seq, "assistant", "I look further. " * 40), Message(seq + 1, "user", "Go on.")]
    return said


async def test_the_list_outlives_a_compaction_and_the_program(tmp_path: Path):
    database = Database(tmp_path / "data")
    session = sessions.create(database, records=[Sealed(group_messages(record()))])
    loaded = load_settings(
        tmp_path, environ={"CTXCHAT_CONFIG_DIR": str(tmp_path), "CTXCHAT_DATA_DIR": str(tmp_path / "data")}
    )
    program = Program(Flags(), loaded, tmp_path, database)
    opened = await program.open(session, interactive=False)
    await opened.measure()
    assert not [item for item in opened.view.items if item.source == "todo"], "it stands in view where it was written"
    preview = await opened.preview("", 2, strategy="truncate", target=0.0)
    async with aclosing(opened.free_up(preview)) as events:
        async for _ in events:
            pass
    await opened.measure()
    assert len(opened.state.ledger.compactions) == 1
    assert not any(item.message.calls for item in opened.view.items), "the call itself is folded"
    [shown] = [item for item in opened.view.items if item.source == "todo"]
    assert shown.section == "injected" and "[x] read the schema\n[ ] move the table" in shown.message.text
    await opened.close()
    await program.close()
