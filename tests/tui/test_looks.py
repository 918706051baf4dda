"""How the chat looks, at a few sizes and in two themes. `pytest --snapshot-update` after a change that is meant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ctxchat.config.schema import Settings
from ctxchat.config.themes import load_themes
from ctxchat.core.events import ApprovalRequested, ReasoningDelta, TextDelta, ToolFinished, ToolStarted
from ctxchat.tui.app import CtxchatApp, Runtime
from ctxchat.tui.chat.approval import ApprovalPanel
from tests.tui.chatting import until, words
from tests.tui.fakes import FakeServices, FakeSession, Pause, Step, reply

ANSWER = """The gauge at **Pier 7** reports every 90 s to `Cormorant` (README.md:3).

## What I found

- it speaks Modbus
- it retries three times

```python
for attempt in range(3):  # [bold]not markup[/bold]
    send(level())
```
"""
DIFF = "--- a/src/gauge.py\n+++ b/src/gauge.py\n@@ -1,2 +1,3 @@\n import time\n-INTERVAL = 90\n+INTERVAL = 60\n+RETRIES = 3\n"

TURN: list[Step] = [
    ReasoningDelta("Let me search the files for the gauge."),
    ToolStarted("a", "grep", {"pattern": "tide gauge"}),
    ToolFinished("a", "grep", "ok", "1\n2\n3", 412, 0.12),
    ToolStarted("b", "edit", {"path": "src/gauge.py"}),
    ToolFinished("b", "edit", "ok", "edited", 60, 0.0, diff=DIFF),
    ToolStarted("c", "shell", {"command": "pytest -q"}),
    ToolFinished("c", "shell", "ok", "1 failed", 310, 3.2, exit_code=1),
    ToolFinished("d", "shell", "denied", "no", 12, 0.0),
    *reply(ANSWER),
]
ASK: list[Step] = [
    TextDelta("I change the interval."),
    ApprovalRequested("t1", "edit", "write src/gauge.py  +2 −1", "write", DIFF, ("edit: src/*",)),
    Pause(),
]


def app_with(folder: Path, steps: list[Step], theme: str = "dark") -> CtxchatApp:
    workspace = folder / "harbour"
    workspace.mkdir()
    (workspace / "README.md").write_text("")
    session = FakeSession(lambda _: steps, title="harbour-logger")
    return CtxchatApp(
        FakeServices(workspace, session),
        Settings(theme=theme),
        load_themes(folder).themes,
        runtime=Runtime(now=count().__next__),
    )


async def still(pilot: Pilot[int]) -> None:
    """Wait until nothing moves any more: the same picture five times in a row, with the gauge measured."""
    app = pilot.app
    assert isinstance(app, CtxchatApp)
    await until(pilot, lambda: "%" in words(app))
    shown, same = words(app), 0
    while same < 5:
        await pilot.pause(0.05)
        same = same + 1 if words(app) == shown else 0
        shown = words(app)


async def settle_turn(pilot: Pilot[int]) -> None:
    app = pilot.app
    assert isinstance(app, CtxchatApp)
    await until(pilot, lambda: app.session is not None)
    await pilot.press(*"how often", "enter")
    await until(pilot, lambda: len(app.chat.transcript.items) == 2 and not app.controller.busy)
    await still(pilot)


async def settle_question(pilot: Pilot[int]) -> None:
    app = pilot.app
    assert isinstance(app, CtxchatApp)
    await until(pilot, lambda: app.session is not None)
    await pilot.press("x", "enter")
    await until(pilot, lambda: app.query(ApprovalPanel))
    assert app.session
    app.chat.show_figures(
        app.session.context_usage
    )  # the draft's may have been told before the message stood in the record
    await still(pilot)


async def settle_empty(pilot: Pilot[int]) -> None:
    app = pilot.app
    assert isinstance(app, CtxchatApp)
    await until(pilot, lambda: "README.md" in words(app))
    await still(pilot)


@pytest.mark.parametrize(
    ("steps", "settle", "size", "theme"),
    [
        (TURN, settle_turn, (100, 34), "dark"),
        (TURN, settle_turn, (40, 20), "light"),
        (TURN, settle_turn, (20, 5), "dark"),
        (ASK, settle_question, (80, 24), "dark"),
        ([], settle_empty, (80, 24), "dark"),
    ],
    ids=["turn", "narrow", "tiny", "question", "empty"],
)
def test_looks(
    snap_compare: Callable[..., bool],
    tmp_path: Path,
    steps: list[Step],
    settle: Callable[[Pilot[int]], object],
    size: tuple[int, int],
    theme: str,
) -> None:
    assert snap_compare(app_with(tmp_path, steps, theme), terminal_size=size, run_before=settle)
