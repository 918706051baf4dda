"""A web address in the person's browser, if that has a window of its own: one in the terminal would read the keys of the chat."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ctxchat.own_processes import code_command, outside_path

_TIMEOUT_S = 10.0
"""For a program that starts the browser; one that takes longer is the browser itself."""

_IN_TERMINALS = {"lynx", "w3m", "links", "links2", "elinks", "www-browser", "browsh", "carbonyl"}

_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1], 2))"


def open_in_browser(url: str, environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """Why the address was not opened, as the rest of a sentence; empty where it was. Blocks."""
    if why := _no_window(environ, platform):
        return why
    try:
        # In a session of its own: whatever starts there has no terminal, and so neither keys nor a screen to draw on.
        started = subprocess.Popen(
            code_command(_OPEN, url),
            env={**environ, "PATH": outside_path(path=environ.get("PATH"))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return "no browser took it" if started.wait(_TIMEOUT_S) else ""
    except subprocess.TimeoutExpired:
        return ""
    except OSError as problem:
        return f"no browser could be started ({problem.strerror})"


def _no_window(environ: Mapping[str, str], platform: str) -> str:
    if named := environ.get("BROWSER", "").split(os.pathsep)[0]:  # a remote editor names a helper that opens it at home
        words = shlex.split(named) if named.count("'") % 2 == 0 else [named]
        return "your browser is one for the terminal" if words and Path(words[0]).name in _IN_TERMINALS else ""
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return "over SSH no browser is at your side"
    if platform in {"darwin", "win32"} or environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
        return ""
    return "there is no browser with a window here"
