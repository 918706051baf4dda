"""`ctxchat` alone: the chat, or a clear word where there is no terminal to open it in."""

from __future__ import annotations

import asyncio
import os
import sys

from ctxchat.bootstrap.flags import Flags
from ctxchat.cli.common import narrate

NO_TERMINAL = (
    'ctxchat: this is not a terminal the chat can be drawn in ({why}). Use `ctxchat run "…"` for an answer on '
    "standard output, or see `ctxchat --help`."
)


def open_chat(flags: Flags) -> int:
    """Open the interface until it is left; the exit code."""
    if why := _no_terminal():
        narrate(NO_TERMINAL.format(why=why))
        return 2
    from ctxchat.bootstrap.program import Program
    from ctxchat.config import paths
    from ctxchat.config.themes import load_themes
    from ctxchat.tui.app import CtxchatApp

    async def work() -> int:
        async with Program.started(flags) as program:
            themes = load_themes(paths.config_dir())
            app = CtxchatApp(
                program,
                program.settings,
                themes.themes,
                session_id=flags.session,
                history_file=program.database.folder / "history.txt",
                notices=[p.text for p in themes.problems],
            )
            return await app.run_async(mouse=program.settings.interface.mouse) or 0

    return asyncio.run(work())


def _no_terminal() -> str:
    if not sys.stdin.isatty():
        return "standard input is a pipe or a file"
    if not sys.stdout.isatty():
        return "standard output is a pipe or a file"
    if not sys.stderr.isatty():  # the interface is drawn through it
        return "standard error is a pipe or a file"
    return "TERM is dumb" if os.environ.get("TERM", "") in {"", "dumb"} else ""
