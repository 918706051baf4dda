"""NO_COLOR on a real terminal: no colour is sent, and what matters is told without one."""

from __future__ import annotations

import re

import pytest

from tests.e2e.conftest import READY, Open

COLOURS = {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}


def colours(raw: str) -> list[str]:
    """The styles that set a colour."""
    styles = re.findall(r"\x1b\[([0-9;:]*)m", raw)
    return [style for style in styles if COLOURS.intersection(int(n) for n in re.split("[;:]", style) if n)]


@pytest.mark.pty
def test_no_colour_is_sent_and_the_gauge_the_cursor_and_the_screens_still_read(chat: Open) -> None:
    with chat(NO_COLOR="1", columns=100, rows=30) as terminal:
        terminal.until(READY)
        terminal.until("/28.7k")
        terminal.type("Where is INTERVAL set?\r")
        terminal.until("src/gauge.py:2")
        assert re.search(r"S+T+.*[:·]+╎·+╷", terminal.text)
        terminal.press("f2")
        terminal.until("compaction from")
        terminal.press("f2")
        terminal.type("/xray\r")
        terminal.until(lambda: terminal.shows("biggest first") and not terminal.shows("looking …"))
        row = next(y for y, line in enumerate(terminal.lines) if "system" in line or "tool" in line)
        assert any(terminal.screen.buffer[y][4].reverse for y in range(row, row + 6)), "the cursor is seen"
        terminal.press("esc")
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
        assert colours(terminal.raw) == []


@pytest.mark.pty
def test_the_example_that_enter_would_take_is_seen(chat: Open) -> None:
    with chat(NO_COLOR="1", columns=100, rows=30) as terminal:
        terminal.until(READY)
        terminal.until("/28.7k")
        terminal.type("\t")
        terminal.until(lambda: sum(terminal.screen.buffer[y][4].reverse for y in range(10, 24)) == 1)
        terminal.press("ctrl+q")
        assert terminal.wait() == 0


@pytest.mark.pty
def test_otherwise_there_is_colour(chat: Open) -> None:
    with chat() as terminal:
        terminal.until(READY)
        terminal.until("/28.7k")
        assert colours(terminal.raw)
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
