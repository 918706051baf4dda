"""A question typed while the program starts, with its Enter, is asked."""

from __future__ import annotations

import sys

import pytest

from tests.cli.conftest import Home
from tests.e2e.terminal import Terminal


@pytest.mark.pty
def test_a_question_typed_before_there_is_a_frame_is_asked(harbour: Home) -> None:
    with Terminal([sys.executable, "-m", "ctxchat"], harbour.environ, cwd=str(harbour.work)) as terminal:
        terminal.type("Where is INTERVAL set?\r")
        terminal.until("src/gauge.py:2")
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
