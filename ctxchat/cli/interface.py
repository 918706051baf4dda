"""The interface until it is left. Imports only what it takes to paint; the rest follows when a session is opened."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from functools import partial
from typing import Any

from ctxchat.bootstrap.lazy_program import LazyProgram
from ctxchat.cli.ending import written_down
from ctxchat.config import paths
from ctxchat.config.themes import load_themes
from ctxchat.tui.app import AppFiles, CtxchatApp, Runtime
from ctxchat.tui.terminal.first_frame import FirstFrame, in_browser

ENDING_TIMEOUT_S = 7.0
"""Seconds an orderly end may take once it was asked for."""

EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGQUIT": 131, "SIGTERM": 143}
"""Signals that ask for the end, with the exit code: 128 and the number of the signal, as shells expect. What stops the program
and lets it go on (SIGTSTP, SIGCONT) and another size (SIGWINCH) is the terminal's, see `tui.terminal`; a terminal that went
away without a word counts as SIGHUP."""


def run(program: LazyProgram, session: str, first: FirstFrame, *, tour: bool = False) -> int:
    """Take over from the first frame, and run until the person leaves; the exit code."""
    themes = load_themes(paths.config_dir())
    app = CtxchatApp(
        program,
        program.settings,
        themes.themes,
        session_id=session,
        files=AppFiles(
            loaded=program.loaded,
            load_settings=program.load_settings,
            settings_file=program.settings_file,
            history_file=paths.data_dir() / "history.txt",
            data_folder=paths.data_dir(),
            problems=tuple(p.text for p in themes.problems),
        ),
        runtime=Runtime(driver=_driver(first), write_down=written_down),
    )
    if tour:
        from ctxchat.tui.guide import Guide

        app.chat.guide = Guide()
    asyncio.run(_until_left(app, first, program.settings.interface.mouse))
    for number in _asking():
        signal.signal(number, signal.SIG_IGN)  # it is being done
    return app.return_code or 0


def _driver(first: FirstFrame) -> Any:
    """The driver by which Textual speaks to the terminal; None for Textual's own."""
    if in_browser():
        from ctxchat.tui.terminal.served import Served

        return Served
    if sys.platform == "win32":
        return None
    from ctxchat.tui.terminal.driver import Terminal

    return partial(Terminal, first=first)


async def _until_left(app: CtxchatApp, first: FirstFrame, mouse: bool) -> None:
    """Being asked to end is leaving too: the turn stops, the session and what was not sent are kept."""
    loop = asyncio.get_running_loop()
    for number, code in _asking().items():
        signal.signal(number, partial(_leave_on_signal, app, loop, code))
    first.hand_over()
    await app.run_async(mouse=mouse)
    await app.leave(app.return_code or 0)  # where it ended without that


def _asking() -> dict[int, int]:
    """The signals of `EXIT_CODES` that this system has, with their exit codes, by number."""
    return {getattr(signal, name): code for name, code in EXIT_CODES.items() if hasattr(signal, name)}


def _leave_on_signal(app: CtxchatApp, loop: asyncio.AbstractEventLoop, code: int, *_: object) -> None:
    """Leave in good order, and in any case: a terminal that takes no output holds up the loop, and the session would stay
    locked. What was said is in the journal long before. Comes in the middle of anything, so the loop does the rest."""
    end = threading.Timer(ENDING_TIMEOUT_S, _give_up, (app, code))
    end.daemon = True
    end.start()
    if not loop.is_closed():
        loop.call_soon_threadsafe(app.call_later, app.leave, code)


def _give_up(app: CtxchatApp, code: int) -> None:
    app.give_back_terminal()
    os._exit(code)
