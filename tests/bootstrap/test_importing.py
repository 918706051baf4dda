"""An import beside a chat: a process of its own that says how far it is, and leaves no half session when it is ended."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from ctxchat.bootstrap.history_import import (
    Following,
    first_found,
    following_answered,
    import_lock,
    importable,
    may_offer_following,
    run_import,
)
from ctxchat.config import paths
from ctxchat.core.errors import CtxchatError
from ctxchat.importing.outcome import Imported, ReadSoFar
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database
from tests.importing import wild


def written(file: Path, lines: list[wild.Line]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\n".join(map(msgspec.json.encode, lines)) + b"\n")
    return file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CTXCHAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CTXCHAT_CONFIG_DIR", str(tmp_path / "config"))
    written(tmp_path / ".claude/projects/p/a.jsonl", wild.claude())
    no_model = [
        line for line in wild.codex() if line["type"] != "turn_context"
    ]  # whose tokens want a table of their own
    written(tmp_path / ".codex/sessions/2026/rollout-x.jsonl", no_model)
    return tmp_path


async def test_what_is_found_is_brought_in_and_offered_no_more(home: Path) -> None:
    with Database(paths.data_dir()) as database:
        assert [(f.agent, f.files) for f in await first_found(database)] == [("Claude Code", 1), ("Codex", 1)]
        assert not await first_found(database)
        assert [f.agent for f in await importable(database, home / ".codex")] == ["Codex"]
        assert not await importable(database, home / "nowhere")
        async with aclosing(run_import(None)) as news:
            told = [each async for each in news]
        assert [t.outcome for t in told if isinstance(t, Imported)] == ["new", "new"]
        last = [t for t in told if isinstance(t, ReadSoFar)][-1]
        assert last.read == last.of > 0
        assert not await importable(database, None)
        while database.index_pending():
            pass
        assert len(sessions.rows(database)) == 2
        assert archive.search(database, "the question meant")


async def test_what_cannot_be_imported_is_said(home: Path) -> None:
    with pytest.raises(CtxchatError, match="does not exist"):
        async with aclosing(run_import(home / "nowhere")) as news:
            assert not [each async for each in news]


async def test_an_import_that_is_ended_leaves_whole_sessions(home: Path) -> None:
    for number in range(150):
        written(home / f".claude/projects/p/b{number}.jsonl", 20 * wild.claude(f"s{number}"))
    async with aclosing(run_import(None)) as news:
        async for each in news:
            if isinstance(each, Imported):
                break
    with Database(paths.data_dir()) as database:
        assert 0 < len(sessions.rows(database)) < 152
        assert database.check() == []


async def brought(following: Following) -> list[Imported]:
    async with aclosing(following.bring_new()) as news:
        return [each async for each in news if isinstance(each, Imported)]


async def test_what_is_new_or_has_grown_comes_with_the_next_pass_and_what_is_broken_is_tried_once(home: Path) -> None:
    with Database(paths.data_dir()) as database:
        following = Following(database)
        assert [one.outcome for one in await brought(following)] == ["new", "new"]
        assert await brought(following) == []
        grown = home / ".claude/projects/p/a.jsonl"
        more = {"type": "user", "uuid": "more", "parentUuid": wild.claude()[-1].get("uuid"), "sessionId": "s"}
        more["message"] = {"role": "user", "content": "and one thing more"}
        grown.write_bytes(grown.read_bytes() + msgspec.json.encode(more) + b"\n")
        broken = home / ".local/share/opencode/opencode.db"
        broken.parent.mkdir(parents=True)
        broken.write_bytes(b"SQLite format 3\0 cut")
        second = {one.agent: one for one in await brought(following)}
        assert {agent: one.outcome for agent, one in second.items()} == {"claude-code": "grown", "opencode": "failed"}
        assert second["opencode"].problem
        assert await brought(following) == []
        written(home / ".claude/projects/p/b.jsonl", wild.claude("another"))
        assert {one.outcome for one in await brought(following)} == {"new", "failed"}
        assert len(sessions.rows(database)) == 3


async def test_of_two_windows_one_brings_in_and_a_command_waits_for_its_end(home: Path) -> None:
    waits = asyncio.Event()
    with Database(paths.data_dir()) as database:  # one of each: windows are processes, and one opens its store once
        async with import_lock(database):
            assert await brought(Following(database)) == []
            command = asyncio.create_task(_all_imported())
            waiting = asyncio.create_task(_alone(database, waits))
            await waits.wait()
            assert not sessions.rows(database)
        await waiting
        assert await command == ["new", "new"]
        assert await brought(Following(database)) == []
        two = await asyncio.gather(brought(Following(database)), brought(Following(database)))
        assert two == [[], []] and len(sessions.rows(database)) == 2


async def _alone(database: Database, waits: asyncio.Event) -> None:
    async with import_lock(database, waits.set):
        pass


async def _all_imported() -> list[str]:
    async with aclosing(run_import(None)) as news:
        return [each.outcome async for each in news if isinstance(each, Imported)]


async def test_two_windows_at_once_bring_nothing_in_twice(home: Path) -> None:
    with Database(paths.data_dir()) as database:  # one of each: windows are processes, and one opens its store once
        both = await asyncio.gather(brought(Following(database)), brought(Following(database)))
        assert sorted(one.outcome for each in both for one in each) == ["new", "new"]
        assert len(sessions.rows(database)) == 2


async def test_whether_to_follow_is_asked_until_it_was_answered(home: Path) -> None:
    with Database(paths.data_dir()) as database:
        assert await may_offer_following(database) and await may_offer_following(database)
        await following_answered(database)
        assert not await may_offer_following(database)
