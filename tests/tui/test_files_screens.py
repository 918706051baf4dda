"""Diff, rewind, undo and redo of files as a person does them, over real files."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ctxchat.tools.checkpoints import Checkpoints
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.shell import Shell
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.widgets.rows import Rows
from tests.doubles.scripted import calls, says
from tests.tools.folders import snapshot
from tests.tui.chatting import until, words
from tests.tui.real import say, talking


@asynccontextmanager
async def changed(tmp_path: Path, size: tuple[int, int]) -> AsyncIterator[tuple[CtxchatApp, Pilot[int], Path]]:
    """A chat in which two turns changed files."""
    work = tmp_path / "work"
    work.mkdir()
    script = []
    for command in ("printf 'one\\ntwo\\n' > notes.txt", "echo three >> notes.txt; touch 'odd [b]name'"):
        script += [calls(("shell", {"command": command})), says("Done.")]
    port = Checkpoints(work, tmp_path / "kept")
    shell = Shell(Sandbox(), os.environ)
    async with talking(work, script, size=size, tools=[shell], files=port, mode="all", window=64_000) as (
        app,
        pilot,
        _,
    ):
        await say(app, pilot, "the first wish")
        await say(app, pilot, "the second wish")
        yield app, pilot, work


@pytest.mark.parametrize("size", [(80, 24), (40, 20), (140, 30)])
async def test_the_difference_of_the_last_turn_and_of_all(tmp_path: Path, size: tuple[int, int]) -> None:
    async with changed(tmp_path, size) as (app, pilot, _):
        await pilot.press("ctrl+l")
        await until(pilot, lambda: "+three" in words(app))
        assert "turn 2" in words(app) and "odd [b]name" in words(app)
        await pilot.press("t")
        await until(pilot, lambda: "+one" in words(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_rewind_gives_files_and_message_back_and_undo_takes_it_back(tmp_path: Path) -> None:
    async with changed(tmp_path, (80, 24)) as (app, pilot, work):
        after = snapshot(work)
        await pilot.press("ctrl+b")
        await until(pilot, lambda: "2 files changed" in words(app))
        assert app.screen.query_one(Rows).cursor == 1, "the last message is what one most often means"
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.composer.prompt.text == "the second wish")
        assert snapshot(work)["notes.txt"][2] == b"one\ntwo\n"
        await until(
            pilot, lambda: "Rewound to here" in words(app) and "the second wish" not in words(app).split("╭")[0]
        )
        await pilot.press("alt+u")
        await until(pilot, lambda: "the second wish" in words(app).split("╭")[0])
        assert snapshot(work) == after  # looked at last: a file is being exchanged meanwhile


async def test_undo_asks_about_what_the_person_changed_since(tmp_path: Path) -> None:
    async with changed(tmp_path, (80, 24)) as (app, pilot, work):
        (work / "notes.txt").write_text("mine\n")
        await pilot.press("alt+u")
        await until(pilot, lambda: "You changed this file since" in words(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert (work / "notes.txt").read_text() == "mine\n"
        await pilot.press("alt+u")
        await until(pilot, lambda: "You changed this file since" in words(app))
        await pilot.press("c")
        await until(pilot, lambda: "notes.txt.yours" in words(app))
        assert (work / "notes.txt.yours").read_text() == "mine\n"
        assert (work / "notes.txt").read_text() == "one\ntwo\n"
        await pilot.press("alt+z")
        await until(pilot, lambda: (work / "notes.txt").read_text() == "mine\n")
        assert set(snapshot(work)) == {"notes.txt", "odd [b]name"}


async def test_undo_asks_about_what_a_command_or_the_person_made(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    script = [calls(("shell", {"command": "for i in 1 2; do echo $i > f$i; done"})), says("Done.")]
    tools, port = [Shell(Sandbox(), os.environ)], Checkpoints(work, tmp_path / "kept")
    async with talking(work, script, size=(40, 24), tools=tools, files=port, mode="all") as (app, pilot, _):
        await say(app, pilot, "count")
        await pilot.press("alt+u")
        await until(pilot, lambda: "by a command or by you" in " ".join(words(app).split()) and "f2" in words(app))
        await pilot.press("k")
        await until(pilot, lambda: "left as they are: f1" in " ".join(words(app).split()))
        assert set(snapshot(work)) == {"f1", "f2"}
        await pilot.press("alt+z")
        await until(pilot, lambda: "Redone" in words(app))
        await pilot.press("alt+u")
        await until(pilot, lambda: "by a command or by you" in " ".join(words(app).split()))
        await pilot.press("r")
        await until(pilot, lambda: not snapshot(work))


async def test_what_lies_under_something_the_person_put_there_is_left_out_and_named(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for folder in ("here", "taken", "gone"):
        (work / folder).mkdir(parents=True)
        (work / folder / "a.txt").write_text("a\n")
    script = [calls(("shell", {"command": "rm */a.txt"})), says("Done.")]
    shell = Shell(Sandbox(), os.environ)
    port = Checkpoints(work, tmp_path / "kept")
    async with talking(work, script, size=(100, 24), tools=[shell], files=port, mode="all") as (app, pilot, _):
        await say(app, pilot, "clean up")
        (work / "taken").rmdir()
        (work / "taken").write_text("mine\n")
        (work / "gone").rmdir()
        await pilot.press("alt+u")
        await until(pilot, lambda: "left out" in words(app))
        assert "your versions" not in words(app), "the folder that came back is none"
        told = " ".join(words(app).split())
        assert (
            "2 files created +2 −0; left out, since something else stands where their folder was: taken/a.txt" in told
        )
        assert snapshot(work).keys() == {"here", "here/a.txt", "gone", "gone/a.txt", "taken"}
        assert (work / "taken").read_text() == "mine\n"


async def test_where_no_file_was_changed_that_is_said(tmp_path: Path) -> None:
    port = Checkpoints(tmp_path, tmp_path / "kept")
    async with talking(tmp_path, [says("Hello.")], size=(60, 20), files=port) as (app, pilot, _):
        await pilot.press("ctrl+l")
        await until(pilot, lambda: "No file was changed" in words(app))
        await pilot.press("escape")
        await pilot.press("ctrl+b")
        await until(pilot, lambda: "Nothing was said" in words(app))
        await pilot.press("enter", "escape")
        await until(pilot, lambda: app.screen is app.chat)
