"""A sub-agent's gauge below its call."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.core.events import Delegated, ToolFinished, ToolStarted
from ctxchat.tui.transcript.tool_block import ToolBlock, sub_gauge
from tests.tui.chatting import HOSTILE, chatting, idle, words
from tests.tui.fakes import FakeSession, reply


def gauge(used: int, limit: int = 28_672, agent: str = "sub-agent") -> Delegated:
    return Delegated("c1", agent, "s2", "m", used, limit, 0.0)


async def test_it_grows_below_the_call_and_stays_after_it(tmp_path: Path) -> None:
    done = ToolFinished("c1", "delegate", "ok", "8123", 5, 0.1)
    script = [ToolStarted("c1", "delegate", {"task": "Find it."}), gauge(900), gauge(3900), done, *reply("ok")]
    async with chatting(tmp_path, FakeSession(lambda _: script), (80, 24)) as (app, pilot):
        await pilot.press("x", "enter")
        await idle(app, pilot)
        assert words(app).count("sub-agent  ") == 1
        assert "sub-agent  ███·················  14 %  3.9k/28.7k" in words(app)


@pytest.mark.parametrize("width", [80, 40, 20, 5])
@pytest.mark.parametrize(
    "context_usage", [gauge(0), gauge(28_672), gauge(90_000), gauge(500, 0), gauge(5, agent=f"[b]{HOSTILE}")]
)
def test_it_fits_any_width(width: int, context_usage: Delegated) -> None:
    line = sub_gauge(context_usage, width)
    assert line.cell_length <= width
    assert "\x1b" not in line.plain


def test_a_call_hides_nothing_in_its_line() -> None:
    line = ToolBlock("c1", "shell", {"command": "g\u0456t status\u2063 \U000e0041"}).head(80)
    assert "g\\u0456t status\\u2063 \\U000e0041" in line.plain
