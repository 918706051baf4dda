"""Sessions of another agent that come and grow while the interface is open: the real program, store and import."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.lazy_program import LazyProgram
from ctxchat.storage import sessions
from ctxchat.tui.app import AppFiles, CtxchatApp, Runtime
from tests.importing import wild
from tests.importing.conftest import put
from tests.tui.chatting import THEMES, until
from tests.tui.test_starting import banner


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, folder in {"HOME": "", "CTXCHAT_DATA_DIR": "data", "CTXCHAT_CONFIG_DIR": "config"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "work").mkdir()
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.toml").write_text("sessions.follow = true\n")
    return tmp_path


async def test_a_session_that_grows_while_the_interface_is_open_is_there_once(home: Path) -> None:
    lines = wild.claude()
    file = put(home / ".claude/projects/p/a.jsonl", lines[:3])
    put(home / ".claude/projects/p/broken.jsonl", []).write_bytes(b'{"type": "user", "sessionId"\n\xff\xfe{')
    program = LazyProgram(Flags(cwd=str(home / "work")))
    runtime = Runtime(follow_interval=0.3, follow_pause_factor=0)
    app = CtxchatApp(program, program.settings, THEMES, files=AppFiles(loaded=program.loaded), runtime=runtime)
    async with app.run_test() as pilot:
        database = (await program.program()).database

        def imported() -> list[int]:
            return [row.messages for row in sessions.rows(database) if row.folder == "/w/tides"]

        await until(pilot, imported)
        (few,) = imported()
        await until(pilot, lambda: "1 session of other agents brought in; F9 shows them." in banner(app))
        put(file, lines)
        await until(pilot, lambda: imported() != [few])
        assert len(imported()) == 1 and imported()[0] > few
        put(home / ".claude/projects/p/b.jsonl", wild.claude("another"))
        await until(pilot, lambda: len(imported()) == 2)
        await app.leave()
