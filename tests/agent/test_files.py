"""What turns do to files, over the real tools: told, journalled, taken back, brought back, and gone back to before a message."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from ctxchat.core import file_changes
from ctxchat.core.errors import CtxchatError, StorageError
from ctxchat.core.events import Event, FilesChanged, ToolFinished, ToolProgress
from ctxchat.core.journal import fold
from ctxchat.core.view import problems
from ctxchat.tools.checkpoints import Checkpoints
from ctxchat.tools.edit_file import EditFile, WriteFile
from ctxchat.tools.read_file import ReadFile
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.seen import SeenFiles
from ctxchat.tools.shell import Shell
from tests.agent.desk import Desk, MemoryJournal
from tests.doubles.scripted import Reply, ScriptedModel, calls, says
from tests.tools.folders import snapshot


class Room:
    """A session in a folder of its own, with real tools and a model that follows a script."""

    def __init__(self, tmp_path: Path, script: Sequence[Reply], journal: MemoryJournal | None = None) -> None:
        self.root = tmp_path.resolve() / "work"
        self.root.mkdir(exist_ok=True)
        self.kept = tmp_path / "kept"
        seen = SeenFiles(self.kept)
        self.port = Checkpoints(self.root, self.kept)
        self.port.seen.append(seen)
        tools = (ReadFile(seen), WriteFile(seen), EditFile(seen), Shell(Sandbox(), os.environ))
        journal = journal or MemoryJournal()
        self.model = ScriptedModel(script)
        self.desk = Desk(
            self.model,
            tools=tools,
            mode="all",
            workspace=self.root,
            files=self.port,
            journal=journal,
            records=journal.records,
        )
        assert self.desk.session.files
        self.files = self.desk.session.files

    async def say(self, text: str = "do it") -> list[Event]:
        return await self.desk.say(text)


def shell(command: str) -> Reply:
    return calls(("shell", {"command": command}))


def write(path: str, content: str) -> Reply:
    return calls(("write_file", {"path": path, "content": content}))


DONE = says("Done.")


async def test_a_call_tells_what_it_did_before_it_is_said_to_have_finished(tmp_path: Path) -> None:
    room = Room(tmp_path, [shell("mkdir d; printf 'a\\nb\\n' > d/new"), write("x", "y\n"), shell("cat d/new"), DONE])
    told = [e for e in await room.say() if isinstance(e, FilesChanged | ToolFinished)]
    assert [type(e).__name__ for e in told] == [
        "FilesChanged",
        "ToolFinished",
        "FilesChanged",
        "ToolFinished",
        "ToolFinished",
    ]
    assert [file_changes.files_words(e.changes) for e in told if isinstance(e, FilesChanged)] == [
        "1 file created +2 −0",
        "1 file created +1 −0",
    ]
    assert room.desk.folded().checkpoints == room.desk.state.checkpoints
    assert [c.turn for c in room.desk.state.checkpoints] == [1, 1]


async def test_undo_takes_the_last_turn_back_and_redo_brings_it_back(tmp_path: Path) -> None:
    room = Room(tmp_path, [write("a", "1\n"), DONE, shell("echo 2 >> a; chmod 755 a; touch b"), DONE, DONE])
    await room.say()
    first = snapshot(room.root)
    await room.say()
    second = snapshot(room.root)
    await room.files.restore(await room.files.preview_undo())
    assert snapshot(room.root) == first
    await room.files.restore(await room.files.preview_undo())
    assert snapshot(room.root) == {}
    await room.files.restore(await room.files.redoing())
    assert snapshot(room.root) == first
    await room.files.restore(await room.files.redoing())
    assert snapshot(room.root) == second
    assert not (await room.files.redoing()).undoes
    await room.say("and now?")
    told = [
        i.message.text.split(":")[0] for i in room.model.requests[-1].view.items if i.message.text.startswith("[The")
    ]
    undone = "[The user took changes to files back, so these are no longer as you left them"
    assert told == [undone] * 2 + ["[The user brought back changes to files that had been taken back"] * 2
    assert room.desk.folded().checkpoints == room.desk.state.checkpoints


async def test_what_a_person_wrote_since_stays_or_lies_beside(tmp_path: Path) -> None:
    room = Room(tmp_path, [shell("echo agent > a; echo agent > b"), DONE])
    await room.say()
    (room.root / "a").write_text("agent\nmine\n")
    looked = await room.files.preview_undo()
    assert [m.path for m in looked.mine] == ["a"]
    await room.files.restore(looked, "mine")
    assert snapshot(room.root).keys() == {"a"}
    await room.files.restore(await room.files.redoing())
    await room.files.restore(await room.files.preview_undo(), "copy")
    assert {name: content for name, (_, _, content) in snapshot(room.root).items()} == {"a.yours": b"agent\nmine\n"}
    await room.files.restore(await room.files.redoing())
    assert (room.root / "a").read_text() == "agent\nmine\n"


async def test_what_a_person_makes_while_a_command_runs_is_named_and_stays_unless_they_say_otherwise(
    tmp_path: Path,
) -> None:
    command = "mkdir -p d/e; echo 1 > d/e/f; echo x >> a; until [ -e mine ]; do sleep 0.02; done; cat mine > /dev/null"
    room = Room(tmp_path, [write("a", "1\n"), write("odd", "2\n"), DONE, shell(command), DONE])
    await room.say()
    before = snapshot(room.root)

    def person() -> None:
        while "x" not in (room.root / "a").read_text():
            time.sleep(0.02)
        (room.root / "odd").write_text("theirs")
        (room.root / "mine").write_text("theirs")

    await asyncio.gather(room.say(), asyncio.to_thread(person))
    after = snapshot(room.root)
    looked = await room.files.preview_undo()
    assert looked.unnamed == ("mine", "odd") and not looked.mine
    assert room.desk.folded().checkpoints[-1].unnamed == ("mine", "odd")
    await room.files.restore(looked)
    assert snapshot(room.root) == before | {name: after[name] for name in ("mine", "odd")}
    await room.files.restore(await room.files.redoing())
    await room.files.restore(await room.files.preview_undo(), "copy")
    assert {"mine.yours", "odd.yours"} <= snapshot(room.root).keys()
    await room.files.restore(await room.files.redoing())
    await room.files.restore(await room.files.preview_undo(), "none")
    assert snapshot(room.root) == before
    await room.files.restore(await room.files.redoing())
    assert snapshot(room.root) == after


async def test_rewind_takes_talk_and_files_back_and_an_undo_brings_both(tmp_path: Path) -> None:
    room = Room(tmp_path, [write("a", "1\n"), DONE, shell("rm a; echo 2 > b"), DONE, says("Third."), says("Other.")])
    await room.say("first")
    before = snapshot(room.root)
    for text in ("second", "third"):
        await room.say(text)
    after, seen = snapshot(room.root), room.desk.session.view
    group = next(g for g in room.desk.state.ledger.groups if g.first.text == "second")
    await room.files.rewind(group.id, await room.files.rewinding(group.id))
    assert snapshot(room.root) == before
    assert [i.message.text for i in room.desk.session.view.items if i.kind == "user"] == ["first"]
    assert len(room.desk.folded().ledger.groups) == len(room.desk.state.ledger.groups)
    assert room.desk.folded() == room.desk.state
    change = room.desk.state.ledger.changes[-1].id
    await room.files.unrewind(change, await room.files.unrewinding(change))
    assert snapshot(room.root) == after
    assert [i.message for i in room.desk.session.view.items] == [i.message for i in seen.items]
    await room.files.rewind(group.id, None)
    assert snapshot(room.root) == after, "the talk only"
    await room.say("something else")
    texts = [i.message.text for i in room.desk.session.view.items if i.kind == "user"]
    assert texts == ["first", "something else"]
    assert problems(room.desk.session.view) == []


async def test_a_rewind_past_a_pin_and_past_everything(tmp_path: Path) -> None:
    room = Room(tmp_path, [DONE, DONE, DONE])
    for text in ("one", "two"):
        await room.say(text)
    first, _, second, _ = room.desk.state.ledger.groups
    await room.desk.session.changes.pin(second.id)
    await room.files.rewind(second.id, None)
    assert second.id not in room.desk.state.ledger.pinned
    await room.files.rewind(first.id, None)
    assert not [i for i in room.desk.session.view.items if i.group]
    with pytest.raises(CtxchatError):
        await room.files.rewind(second.id, None)
    await room.say("three")
    await room.desk.session.changes.undo(room.desk.state.ledger.changes[-1].id)
    await room.desk.session.changes.undo(room.desk.state.ledger.changes[-1].id)
    assert second.id in room.desk.state.ledger.pinned


async def test_a_call_that_is_stopped_can_be_undone(tmp_path: Path) -> None:
    room = Room(tmp_path, [shell("echo half > a; echo on; sleep 60"), DONE])

    async def run() -> None:
        async with aclosing(room.desk.session.send("go")) as events:
            async for stamped in events:
                if isinstance(stamped.event, ToolProgress):
                    asyncio.current_task().cancel()  # type: ignore[union-attr]

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(run())
    assert [c.path for c in room.desk.state.checkpoints[0].changes] == ["a"]
    await room.files.restore(await room.files.preview_undo())
    assert snapshot(room.root) == {}


async def test_a_kill_in_a_command_is_found_when_the_session_opens(tmp_path: Path) -> None:
    room = Room(tmp_path, [DONE])
    await room.say()
    await room.port.begin_call("run", "x", ("touch", "a"))
    (room.root / "a").write_text("half")
    later = Room(tmp_path, [DONE], room.desk.journal)
    assert "1 file created" in await later.files.recover()
    assert fold(later.desk.journal.records).checkpoints
    assert await later.files.recover() == ""
    await later.files.restore(await later.files.preview_undo())
    assert snapshot(room.root) == {}


async def test_where_the_journal_refuses_files_are_as_they_were(tmp_path: Path) -> None:
    room = Room(tmp_path, [write("a", "1\n"), DONE])
    await room.say()
    looked = await room.files.preview_undo()
    room.desk.journal.full = True
    with pytest.raises(StorageError):
        await room.files.restore(looked)
    assert snapshot(room.root)["a"][2] == b"1\n"
    room.desk.journal.full = False
    await room.files.restore(await room.files.preview_undo())
    assert snapshot(room.root) == {}


async def test_a_file_changed_by_a_person_is_not_overwritten_and_the_turn_goes_on(tmp_path: Path) -> None:
    read = calls(("read_file", {"path": "a"}))
    edit = calls(("edit_file", {"path": "a", "old": "one", "new": "1"}))
    room = Room(tmp_path, [read, DONE, write("a", "theirs\n"), edit, DONE])
    (room.root / "a").write_text("one\ntwo\n")
    await room.say()
    (room.root / "a").write_text("one\ntwo\nmine\n")
    finished = [e for e in await room.say() if isinstance(e, ToolFinished)]
    assert [e.status for e in finished] == ["error", "ok"]
    assert "+mine" in finished[0].output
    assert (room.root / "a").read_text() == "1\ntwo\nmine\n"
