"""A file that changed since the agent saw it is not overwritten; what changed is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxchat.core.errors import ToolError
from ctxchat.tools.checkpoints import Checkpoints
from ctxchat.tools.edit_file import EditFile, WriteFile
from ctxchat.tools.read_file import ReadFile
from ctxchat.tools.seen import SeenFiles


class Agent:
    """The tools of one session, which remember in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.seen = SeenFiles(folder)
        self.read, self.write, self.edit = ReadFile(self.seen), WriteFile(self.seen), EditFile(self.seen)


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "kept")


async def test_what_a_person_changed_is_told_once_and_then_kept(agent: Agent, call: Callable, workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("one\ntwo\n")
    await call(agent.read, path="a.txt")
    file.write_text("one\nmine\n")
    with pytest.raises(ToolError, match=r"(?s)changed by somebody else.*-two\n\+mine"):
        await call(agent.write, path="a.txt", content="theirs\n")
    assert file.read_text() == "one\nmine\n"
    await call(agent.edit, path="a.txt", old="one", new="1")
    assert file.read_text() == "1\nmine\n"


async def test_an_edit_is_refused_as_well(agent: Agent, call: Callable, workspace: Path) -> None:
    await call(agent.write, path="a.txt", content="one\ntwo\n")
    (workspace / "a.txt").write_text("one\nmine\n")
    with pytest.raises(ToolError, match="changed by somebody else"):
        await call(agent.edit, path="a.txt", old="one", new="1")


async def test_a_file_never_read_is_not_written_over_but_a_unique_piece_of_it_may_change(
    agent: Agent, call: Callable, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "empty").write_text("")
    with pytest.raises(ToolError, match="Read it first"):
        await call(agent.write, path="a.txt", content="x")
    await call(agent.edit, path="a.txt", old="one", new="1")
    await call(agent.write, path="empty", content="x")
    await call(agent.write, path="a.txt", content="x")  # it has written it by now


async def test_it_is_remembered_when_the_session_goes_on(
    agent: Agent, call: Callable, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    await call(agent.read, path="a.txt")
    later = Agent(tmp_path / "kept")
    (workspace / "a.txt").write_text("mine\n")
    with pytest.raises(ToolError, match=r"(?s)-one\n\+mine"):
        await call(later.edit, path="a.txt", old="mine", new="x")
    await call(Agent(tmp_path / "kept").write, path="a.txt", content="x")


async def test_a_change_too_long_to_tell_has_to_be_read(agent: Agent, call: Callable, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    await call(agent.read, path="a.txt")
    (workspace / "a.txt").write_text("".join(f"{n}\n" for n in range(500)))
    for _ in range(2):
        with pytest.raises(ToolError, match="Read it again"):
            await call(agent.write, path="a.txt", content="x")
    await call(agent.read, path="a.txt")
    await call(agent.write, path="a.txt", content="x")


async def test_what_its_own_command_did_is_not_somebody_elses(
    agent: Agent, call: Callable, workspace: Path, tmp_path: Path
) -> None:
    port = Checkpoints(workspace, tmp_path / "kept")
    port.seen.append(agent.seen)
    for name in ("mine", "theirs"):
        (workspace / name).write_text("one\n")
        await call(agent.read, path=name)
    (workspace / "theirs").write_text("a person was here\n")
    await port.begin_call("run", "a command")
    for name in ("mine", "theirs", "made"):
        with (workspace / name).open("a") as file:
            file.write("by the command\n")
    await port.end_call()
    await call(agent.write, path="mine", content="x")
    await call(agent.write, path="made", content="x")
    with pytest.raises(ToolError, match="somebody else"):
        await call(agent.write, path="theirs", content="x")


async def test_a_torn_memory_costs_its_last_line(agent: Agent, call: Callable, workspace: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        await call(agent.write, path=name, content="one\n")
    log = tmp_path / "kept" / "seen"
    log.write_bytes(log.read_bytes()[:-5])
    later = Agent(tmp_path / "kept")
    await call(later.write, path="a", content="x")
    with pytest.raises(ToolError, match="Read it first"):
        await call(later.write, path="b", content="x")
