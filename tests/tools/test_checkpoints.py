"""Checkpoints on real files: what is taken back is as it was byte for byte, and nothing a person wrote is ever lost."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from ctxchat.core import file_changes
from ctxchat.core.errors import CtxchatError
from ctxchat.core.file_changes import Checkpoint, FileChange
from ctxchat.tools.checkpoints import Checkpoints
from ctxchat.tools.contents import Contents, digest_of
from ctxchat.tools.tree import MAX_FILE_BYTES
from tests.tools.folders import Hands, Snapshot, snapshot


class Session:
    """What the agent does with checkpoints, with a list for a journal."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.port = Checkpoints(root, folder)
        self.done: list[Checkpoint] = []
        self.turn = 0

    async def call(self, work, access: str = "run", target: str = "") -> None:
        """One call of the turn."""
        await self.port.begin_call(access, target)  # type: ignore[arg-type]
        work()
        name, changes, _ = await self.port.end_call()
        if name:
            self.done.append(Checkpoint(name, self.turn, changes, seq=self.turn))

    async def look(self, steps) -> file_changes.Restoring:
        steps = tuple(steps)
        now = await self.port.now([c.path for s in steps for c in s.changes])
        digests = {c.before.digest for s in steps for c in s.changes if c.before}
        return file_changes.restoring(steps, now, await self.port.stored_digests(digests))

    async def take_back(self, wanted: file_changes.Restoring, *, copy: bool = False) -> Checkpoint:
        stays = set() if copy else {m.path for m in wanted.mine}
        changes = tuple(c for c in wanted.changes if c.path not in stays)
        planned = Checkpoint(f"u{len(self.done)}", self.turn, changes, undoes=wanted.undoes)
        made = await self.port.restore(planned, {m.path for m in wanted.mine} if copy else ())
        self.port.end_restore()
        self.done.append(made)
        return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "outside"
    folder.mkdir()
    (folder / "theirs").write_text("not yours\n")
    return folder


@pytest.fixture
def session(workspace: Path, tmp_path: Path) -> Session:
    return Session(workspace, tmp_path / "kept")


@pytest.mark.parametrize("seed", range(20))
async def test_undo_and_rewind_give_the_tree_back(session: Session, outside: Path, seed: int) -> None:
    """Ten turns each; the person touches nothing."""
    hands = Hands(session.root, outside, random.Random(seed))
    hands.work(12)
    (session.root / ".git").mkdir()
    (session.root / ".git" / "config").write_text("[core]\n\tautocrlf = true\n")
    (session.root / ".gitattributes").write_text("* text eol=crlf filter=lfs\n")
    trees: list[Snapshot] = []
    for session.turn in range(1, 11):
        trees.append(snapshot(session.root))
        for _ in range(hands.chance.randrange(3)):
            await session.call(lambda: hands.work(hands.chance.randrange(6)))
    last = snapshot(session.root)
    newest = file_changes.last_turn(session.done)
    looked = await session.look(newest)
    assert not looked.mine
    assert not looked.lost
    await session.take_back(looked)
    assert snapshot(session.root) == trees[newest[-1].turn - 1]
    back = hands.chance.randrange(1, 11)
    wanted = await session.look(file_changes.since(session.done, back - 1))
    assert not wanted.mine
    await session.take_back(wanted)
    assert snapshot(session.root) == trees[back - 1]
    while again := file_changes.redoable(session.done):
        await session.take_back(await session.look([again]))
    assert snapshot(session.root) == last
    assert snapshot(outside) == {"theirs": ("file", 0o644, b"not yours\n")}


@pytest.mark.parametrize("seed", range(20))
async def test_nothing_a_person_wrote_is_lost(session: Session, outside: Path, seed: int) -> None:
    """A person works between the turns and after them. What they left stays where it is, or can be had back."""
    chance = random.Random(1000 + seed)
    agent, person = Hands(session.root, outside, chance), Hands(session.root, outside, chance)
    agent.work(8)
    for session.turn in range(1, 6):
        await session.call(lambda: agent.work(chance.randrange(1, 5)))
        person.work(chance.randrange(3))
    theirs = snapshot(session.root)
    copy = bool(seed % 2)
    looked = await session.look(file_changes.since(session.done, chance.randrange(5)))
    await session.take_back(looked, copy=copy)
    now = snapshot(session.root)
    if not copy:
        for mine in looked.mine:
            path = os.fsdecode(mine.path[1:].encode("latin-1")) if mine.path.startswith("\0") else mine.path
            assert now.get(path) == theirs.get(path)
    contents = {content for kind, _, content in now.values() if kind == "file"}
    for mine in looked.mine:
        if copy and mine.now and mine.now.kind == "file":
            path = os.fsdecode(mine.path[1:].encode("latin-1")) if mine.path.startswith("\0") else mine.path
            assert theirs[path][2] in contents
    again = file_changes.redoable(session.done)
    assert again
    await session.take_back(await session.look([again]))
    assert snapshot(session.root) == theirs


def changed(before: Snapshot, after: Snapshot) -> set[str]:
    """Paths that are not the same."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def track(root: Path) -> None:
    """What is there now is git's; what comes later is untracked."""
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)


def apart(path: str, others: set[str]) -> bool:
    """Neither one of these nor above or below one of them."""
    return not any(path == o or path.startswith(f"{o}/") or o.startswith(f"{path}/") for o in others)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
async def test_through_200_turns_with_a_person_at_work_between_them(session: Session, outside: Path, seed: int) -> None:
    """Edits, commands, modes, renames, deletions, tracked and untracked and binary files; now and then an undo. What the
    person did not touch comes back byte for byte; what they wrote stays as they left it."""
    turns = 200 if seed else 20
    agent = Hands(session.root, outside, random.Random(2000 + seed))
    person = Hands(session.root, outside, random.Random(3000 + seed))
    agent.work(12)
    track(session.root)
    trees: list[Snapshot] = []
    theirs: list[set[str]] = []  # what the person touched after each turn
    for session.turn in range(1, turns + 1):
        trees.append(snapshot(session.root))
        for _ in range(agent.chance.randrange(3)):
            if agent.chance.random() < 0.5 and (paths := agent.paths(files=True)):
                path = agent.chance.choice(paths)
                await session.call(lambda path=path: path.write_bytes(agent.bytes()), "write", str(path))
            else:
                await session.call(lambda: agent.work(agent.chance.randrange(4)))
        if agent.chance.random() < 0.1:  # as it was, and back again
            last = snapshot(session.root)
            await session.take_back(await session.look(file_changes.last_turn(session.done)))
            if again := file_changes.redoable(session.done):
                await session.take_back(await session.look([again]))
            assert snapshot(session.root) == last
        before = snapshot(session.root)
        person.work(person.chance.randrange(2))
        theirs.append(changed(before, snapshot(session.root)))
    end = snapshot(session.root)
    for back in sorted(agent.chance.sample(range(1, turns + 1), 5), reverse=True):
        touched = set().union(*theirs[back - 1 :])
        wanted = await session.look(file_changes.since(session.done, back - 1))
        kept = {os.fsdecode(m.path[1:].encode("latin-1")) if m.path[:1] == "\0" else m.path for m in wanted.mine}
        now = snapshot(session.root)
        await session.take_back(wanted)
        there = snapshot(session.root)
        assert {path for path in kept if path in now and there.get(path) != now[path]} == set(), "the person's own"
        assert all(there[path][0] == "folder" for path in kept - now.keys() if path in there), (
            "needed for what lies in it"
        )
        wrong = changed(trees[back - 1], there)
        assert {path for path in wrong if apart(path, touched | kept)} == set(), "byte for byte"
    while again := file_changes.redoable(session.done):
        await session.take_back(await session.look([again]))
    assert snapshot(session.root) == end
    assert snapshot(outside) == {"theirs": ("file", 0o644, b"not yours\n")}


class Killed(BaseException):
    """No handler sees it: what is left is what a kill leaves."""


class Breaking(Checkpoints):
    """Ends with `problem` at the step it is told."""

    problem: BaseException = Killed()
    left = 0

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.problem

    def _remove(self, change: FileChange, opened: dict[str, int]) -> None:
        self._step()
        super()._remove(change, opened)

    def _restore_file(self, name: str, state: file_changes.FileState, opened: dict[str, int]) -> None:
        self._step()
        super()._restore_file(name, state, opened)


def tree(root: Path) -> None:
    """Something of everything."""
    (root / "folder" / "empty").mkdir(parents=True)
    (root / "folder" / "script").write_bytes(b"#!/bin/sh\r\n")
    (root / "folder" / "script").chmod(0o750)
    (root / "image").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("folder/script")


def havoc(root: Path) -> None:
    """What a command might do to it."""
    shutil.rmtree(root / "folder")
    (root / "image").write_bytes(b"")
    (root / "link").unlink()
    (root / "link").mkdir()
    (root / "link" / "new").write_text("new\n")


@pytest.mark.parametrize("step", range(1, 8))
async def test_a_kill_in_the_middle_of_a_restore_is_brought_to_its_end(
    session: Session, tmp_path: Path, step: int
) -> None:
    tree(session.root)
    before = snapshot(session.root)
    await session.call(lambda: havoc(session.root))
    looked = await session.look(session.done)
    port = Breaking(session.root, tmp_path / "kept")
    port.left = step
    with pytest.raises(Killed):
        await port.restore(Checkpoint("u", 1, looked.changes, undoes=looked.undoes))
    assert await Checkpoints(session.root, tmp_path / "kept").unfinished()
    assert snapshot(session.root) == before


@pytest.mark.parametrize("step", range(1, 8))
async def test_a_disk_that_fails_in_the_middle_leaves_all_as_it_was(
    session: Session, tmp_path: Path, step: int
) -> None:
    tree(session.root)
    await session.call(lambda: havoc(session.root))
    after = snapshot(session.root)
    looked = await session.look(session.done)
    port = Breaking(session.root, tmp_path / "kept")
    port.left, port.problem = step, OSError(28, "No space left on device")
    with pytest.raises(CtxchatError, match="Nothing was restored: No space left"):
        await port.restore(Checkpoint("u", 1, looked.changes, undoes=looked.undoes))
    assert snapshot(session.root) == after
    assert await port.unfinished() is None


async def test_a_kill_in_the_middle_of_a_command_loses_nothing(session: Session, tmp_path: Path) -> None:
    tree(session.root)
    before = snapshot(session.root)
    await session.port.begin_call("run", "a command")
    havoc(session.root)
    session.port = Checkpoints(session.root, tmp_path / "kept")
    name, changes, unnamed = await session.port.end_call()
    session.done.append(Checkpoint(name, 1, changes))
    assert await Checkpoints(session.root, tmp_path / "kept").end_call() == (name, changes, unnamed), (
        "until it is written down"
    )
    session.port.forget()
    assert await session.port.end_call() == ("", (), ())
    await session.take_back(await session.look(session.done))
    assert snapshot(session.root) == before


@pytest.mark.parametrize("torn", [1, 7, 30, 200])
async def test_a_torn_store_costs_what_was_torn(tmp_path: Path, torn: int) -> None:
    contents = Contents(tmp_path / "kept")
    texts = [bytes([n]) * 300 + os.urandom(50) for n in range(5)]
    for text in texts:
        contents.add_contents([(digest_of(text), text)])
    file = tmp_path / "kept"
    file.write_bytes(file.read_bytes()[:-torn])
    later = Contents(file)
    whole = [text for text in texts if later.get(digest_of(text)) == text]
    assert whole == texts[: len(whole)]
    assert len(whole) >= 2
    later.add_contents((digest_of(text), text) for text in texts)
    assert [Contents(file).get(digest_of(text)) for text in texts] == texts


async def test_what_is_left_out_is_never_touched(session: Session, tmp_path: Path) -> None:
    root = session.root
    (root / ".gitignore").write_text("*.log\n")
    for name in ("node_modules/x/a.js", "theirs/.git/config", "theirs/code", "a.log", ".git/index", "kept.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("as it was\n")

    def work() -> None:
        for name in ("node_modules/x/a.js", "theirs/code", "a.log", ".git/index", "kept.txt"):
            (root / name).write_text("other\n")
        (root / ".gitignore").write_text("kept.txt\n")

    await session.call(work)
    assert [c.path for c in session.done[0].changes] == [".gitignore", "kept.txt"]
    await session.take_back(await session.look(session.done))
    assert (root / "kept.txt").read_text() == "as it was\n"
    assert (root / "a.log").read_text() == (root / ".git/index").read_text() == "other\n"


async def test_a_write_needs_no_look_at_the_whole_folder(session: Session) -> None:
    target = session.root / "node_modules" / "deep" / "new.txt"
    (session.root / "other").write_text("x")

    def write() -> None:
        target.parent.mkdir(parents=True)
        target.write_text("new\n")
        (session.root / "other").write_text("a person's")

    await session.call(write, "write", str(target))
    assert [c.path for c in session.done[0].changes] == [
        "node_modules",
        "node_modules/deep",
        "node_modules/deep/new.txt",
    ]
    await session.take_back(await session.look(session.done))
    assert [p.name for p in session.root.iterdir()] == ["other"]


async def test_a_large_file_is_named_and_left_alone(session: Session) -> None:
    big = session.root / "big"
    big.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    await session.call(lambda: big.write_bytes(b"y" * (MAX_FILE_BYTES + 1)))
    looked = await session.look(session.done)
    assert looked.lost == ("big",)
    assert not looked.changes


async def test_a_link_put_in_the_way_is_not_followed(session: Session, outside: Path) -> None:
    tree(session.root)
    await session.call(lambda: (session.root / "folder" / "script").unlink())
    looked = await session.look(session.done)
    shutil.rmtree(session.root / "folder")
    (session.root / "folder").symlink_to(outside)
    with pytest.raises(CtxchatError):
        await session.take_back(await session.look(session.done), copy=True)
    with pytest.raises(CtxchatError):
        await session.port.restore(Checkpoint("u", 1, looked.changes, undoes=looked.undoes))
    assert list(snapshot(outside)) == ["theirs"]


async def test_in_a_folder_that_is_too_large_commands_are_said_not_to_be_kept(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxchat.tools.tree.MAX_ENTRIES", 3)
    tree(session.root)
    with pytest.raises(CtxchatError, match="cannot be undone: this folder holds more than"):
        await session.port.begin_call("run", "a command")
    await session.call(lambda: (session.root / "image").write_text("x"), "write", str(session.root / "image"))
    assert [c.path for c in session.done[0].changes] == ["image"]


async def test_nothing_is_kept_of_a_command_that_only_reads(session: Session, tmp_path: Path) -> None:
    tree(session.root)
    await session.call(lambda: None)
    assert not session.done
    assert not (tmp_path / "kept" / "begun").exists()
    await session.port.close()
    assert not any((tmp_path / "kept").iterdir())


async def test_what_a_call_did_to_many_files_is_never_held_at_once(session: Session) -> None:
    chance = random.Random(1)

    def rewrite() -> None:
        for number in range(40):
            (session.root / f"{number}.bin").write_bytes(b"\0" + chance.randbytes(1_000_000))

    await session.call(rewrite)
    tracemalloc.start()
    await session.call(rewrite)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(session.done[1].changes) == 40 and peak < 20_000_000
