"""A command at work that exchanges a link all the while, between a place in the folder and one outside of it: what was judged to
lie inside is read and written there, or not at all."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctxchat.core.errors import CtxchatError
from ctxchat.core.ports import ToolContext, ToolOutput, ToolPort
from ctxchat.tools.edit_file import WriteFile
from ctxchat.tools.mentions import look_all
from ctxchat.tools.read_file import ReadFile
from ctxchat.tools.search_worker import GrepJob, perform
from tests.tools.test_checkpoints import Session

FLIP = """
import os, sys
name, inside, outside = sys.argv[1:]
while True:
    for target in (outside, inside):
        os.symlink(target, name + "~")
        os.rename(name + "~", name)
"""
TRIES = 300


@contextmanager
def flipping(name: Path, inside: str, outside: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", FLIP, str(name), inside, outside])
    try:
        while not name.is_symlink():
            pass
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "work"
    for place, word in ((folder / "deep", "fine"), (folder.parent / "outside", "stolen-words")):
        place.mkdir(parents=True)
        (place / "a.txt").write_text(word)
    return folder


async def free(tool: ToolPort, work: Path, number: int, **arguments: object) -> str:
    """What comes of a call that asks nobody, because it stays inside; empty for any other."""
    context = ToolContext(f"c{number}", str(work), "", 5_000, 20.0)
    try:
        if not (await asyncio.to_thread(tool.access_request, dict(arguments), context)).inside:
            return ""
        pieces = [piece async for piece in tool.run(dict(arguments), context)]
    except CtxchatError:
        return ""
    return "".join(piece.text for piece in pieces if isinstance(piece, ToolOutput))


@pytest.mark.parametrize("link", ["x.txt", "x/a.txt"])
async def test_no_file_outside_is_read(work: Path, link: str) -> None:
    inside, outside = ("deep/a.txt", "../outside/a.txt") if link == "x.txt" else ("deep", "../outside")
    with flipping(work / Path(link).parts[0], inside, outside):
        said = [await free(ReadFile(), work, number, path=link) for number in range(TRIES)]
        along = [file.text for _ in range(TRIES) for file in look_all(f"@{link}", work)]
    assert not any("stolen" in text for text in (*said, *along)) and any(said) and any(along)


def test_no_search_reads_outside(work: Path) -> None:
    (work / "a.txt").write_text("fine")
    found: list[str] = []
    for answer in perform(GrepJob(str(work), "fine|stolen")):
        found.append(getattr(answer, "text", ""))
        if len(found) == 1:  # it has seen the folder, and not yet what is in it
            (work / "deep").rename(work / "kept")
            (work / "deep").symlink_to("../outside")
    assert found == ["fine", ""]


async def test_nothing_outside_is_written_or_restored(work: Path) -> None:
    session = Session(work, work.parent / "session")
    outside = work.parent / "outside" / "a.txt"
    await session.call(lambda: (work / "deep" / "a.txt").write_text("changed"))
    (change,) = session.done[0].changes
    (work / "deep").rename(work / "kept")
    with flipping(work / "deep", "kept", "../outside"):
        for number in range(TRIES):
            await free(WriteFile(), work, number, path=f"deep/new{number}.txt", content="planted")
            try:
                await session.take_back(await session.look([session.done[0]]))
            except CtxchatError:
                continue
    assert change.before and outside.read_text() == "stolen-words"
    assert [file.name for file in outside.parent.iterdir()] == ["a.txt"]
