"""What is loaded when the first screen stands: nothing that can wait, and of litellm nothing at any time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import Home
from tests.e2e.conftest import READY, Open
from tests.e2e.terminal import Terminal

LATER = {"litellm", "tiktoken", "httpx", "sqlite3", "aiohttp", "markdown_it", "mcp"}

START = """
import json, sys
from ctxchat.bootstrap.flags import Flags
from ctxchat.bootstrap.lazy_program import LazyProgram
from ctxchat.tui.terminal.first_frame import FirstFrame

def loaded():
    return sorted({name.split(".")[0] for name in sys.modules} | {n for n in sys.modules if n.startswith("ctxchat.")})

class Noted(LazyProgram):
    async def open(self, session_id=""):
        open(sys.argv[1], "w").write(json.dumps(loaded()))
        return await super().open(session_id)

with FirstFrame() as first:
    program = Noted(Flags())
    from ctxchat.cli.interface import run
    code = run(program, "", first)
open(sys.argv[2], "w").write(json.dumps(loaded()))
sys.exit(code)
"""


@pytest.mark.pty
def test_what_can_wait_waits_until_the_first_screen_stands(harbour: Home) -> None:
    at_first, at_end = harbour.root / "first.json", harbour.root / "end.json"
    command = [sys.executable, "-c", START, str(at_first), str(at_end)]
    with Terminal(command, harbour.environ, cwd=str(harbour.work)) as terminal:
        terminal.until(READY)
        terminal.until("/28.7k")
        terminal.type("Where is INTERVAL set?\r")
        terminal.until("src/gauge.py:2")
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
    first, end = set(json.loads(at_first.read_text())), set(json.loads(at_end.read_text()))
    assert "textual" in first
    assert not first & LATER
    assert not {name for name in first if name.startswith(("ctxchat.storage", "ctxchat.models", "ctxchat.context"))}
    assert {"tiktoken", "sqlite3"} <= end
    assert "litellm" not in end


@pytest.mark.parametrize(("own", "most", "told"), [({}, 1 / 240, "None"), ({"TEXTUAL_FPS": "30"}, 1 / 30, "30")])
def test_a_screen_is_painted_often_enough_for_a_key(harbour: Home, own: dict[str, str], most: float, told: str) -> None:
    code = (
        "import os; from ctxchat.cli.chat import painting_often\n"
        "with painting_often(): import ctxchat.cli.interface\n"
        "from textual.screen import UPDATE_PERIOD; print(UPDATE_PERIOD, os.environ.get('TEXTUAL_FPS'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=harbour.environ | own, check=True
    )
    assert done.stdout.split() == [str(most), told]


def test_a_listing_asks_the_store_alone(harbour: Home) -> None:
    code = (
        "import sys; from ctxchat.cli import main; main(['sessions', 'list'])\n"
        "print([n for n in sys.modules if n.startswith(('ctxchat.agent', 'ctxchat.tools.catalogue', 'httpx', 'litellm'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=harbour.environ, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "No sessions yet.\n")


def test_the_first_frame_comes_before_all_libraries(harbour: Home) -> None:
    code = "import sys, ctxchat.cli.chat; print(sorted(n for n in sys.modules if n.split('.')[0] in sys.argv[1:]))"
    heavy = ("textual", "rich", "click", "msgspec", "asyncio", *LATER)
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, env=harbour.environ, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_built_in_assistant_is_loaded_where_it_is_asked(harbour: Home) -> None:
    code = "import sys, ctxchat.bootstrap.program; print([n for n in sys.modules if n.startswith('ctxchat.models.offline.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=harbour.environ, check=True)
    assert done.stdout.strip() == "[]"


def test_the_size_is_the_terminals_and_not_the_environments(chat: Open) -> None:
    with chat(COLUMNS="40", LINES="9") as terminal:
        terminal.until(READY, 180)
        terminal.settle()
        assert max(map(len, terminal.lines)) > 100 and any(terminal.lines[20:])
