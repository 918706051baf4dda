"""The interface until it is left. Imports only what it takes to paint; the rest follows when a session is opened."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import suppress

from ctxchat.bootstrap.lazy_program import LazyProgram
from ctxchat.config import paths
from ctxchat.config.themes import load_themes
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.first_frame import FirstFrame
from ctxchat.tui.unsent.pasting import make_pastes_safe

PATIENCE = 5.0
"""Seconds an orderly end may take once the terminal is gone."""


def run(program: LazyProgram, session: str, first: FirstFrame) -> int:
    """Take over from the first frame, and run until the person leaves; the exit code."""
    themes = load_themes(paths.config_dir())
    app = CtxchatApp(
        program,
        program.settings,
        themes.themes,
        session_id=session,
        loaded=program.loaded,
        load_settings=program.load_settings,
        settings_file=program.settings_file,
        history_file=paths.data_dir() / "history.txt",
        data_folder=paths.data_dir(),
        notices=[p.text for p in themes.problems],
    )
    make_pastes_safe(first.early)
    first.hand_over()
    asyncio.run(_until_left(app, program.settings.interface.mouse))
    return app.return_code or 0


async def _until_left(app: CtxchatApp, mouse: bool) -> None:
    """Being asked to end (the terminal was closed, the machine goes down) is leaving too: the turn stops, the session is kept."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows
        for asked in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(asked, _leave, app)
    await app.run_async(mouse=mouse)


def _leave(app: CtxchatApp) -> None:
    """Leave in good order, and in any case: with its terminal gone Textual may wait for ever for it to take output, and the
    session would stay locked. What was said is in the journal long before."""
    end = threading.Timer(PATIENCE, os._exit, (129,))
    end.daemon = True
    end.start()
    app.call_later(app.leave)
