"""A data folder in which nothing may be written: the interface opens, says so and shows the session; what is typed stays."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.lazy_program import LazyProgram
from ctxchat.bootstrap.program import Program
from ctxchat.config.themes import load_themes
from ctxchat.storage import chat_import
from ctxchat.storage.database import FILE
from ctxchat.tui.app import CtxchatApp
from tests.cli.conftest import Home
from tests.cli.conftest import home as home
from tests.tui.chatting import until, words


@contextmanager
def only_read(folder: Path) -> Iterator[None]:
    """The folder as if its disk were mounted for reading only; by its permissions where those count (not for root)."""
    if os.geteuid():
        folder.chmod(0o555)
        (folder / FILE).chmod(0o444)
        yield
        folder.chmod(0o755)
        (folder / FILE).chmod(0o644)
        return
    mount = ["mount", "--bind", str(folder), str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("nothing may be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def said(app: CtxchatApp) -> str:
    """What is on screen, however its lines are broken."""
    return " ".join(words(app).split())


async def test_it_opens_for_reading_and_says_so(home: Home) -> None:
    flags = Flags(cwd=str(home.work), model="offline/assistant")
    file = Path(home.put("talk.json", [{"role": "user", "content": "Where is the harbour?"}]))
    async with Program.started(flags) as program:
        session = chat_import.import_file(program.database, file, "tides")
    with only_read(home.data):
        lazy = LazyProgram(flags)
        try:
            app = CtxchatApp(lazy, lazy.settings, load_themes(home.settings).themes, session_id=session)
            async with app.run_test(size=(100, 30)) as pilot:
                await until(pilot, lambda: "You can read here" in said(app))
                assert "Where is the harbour?" in said(app) and "cannot be opened for writing" in said(app)
                assert lazy.masking.seen == {}, "screens that show it open here too"
                await pilot.press(*"hello", "enter")
                await until(pilot, lambda: app.session is not None and not app.session.busy)
                assert app.chat.composer.draft == "hello", "what cannot be sent stays where it was typed"
                assert app.session and len(app.session.state.ledger.groups) == 1
        finally:
            await lazy.close()
