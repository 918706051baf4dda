"""`ctxchat tour`, step by step as it says: it goes on when that has been done, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from signal import SIGTERM

import pytest

from tests.cli.conftest import Home
from tests.e2e.conftest import Open, left_clean


@pytest.mark.pty
def test_each_step_leads_to_the_next_and_nothing_is_left_behind(chat: Open, harbour: Home, tmp_path: Path) -> None:
    before = sorted(harbour.work.rglob("*"))
    (tmp_path / "tmp").mkdir()
    with chat("tour", columns=100, rows=34, TMPDIR=str(tmp_path / "tmp")) as terminal:
        for step, keys in enumerate((("enter",), ("enter",), ("f8",), ("f3",), ("ctrl+f",), ("/undo", "enter")), 1):
            terminal.until(f"tour {step}/6")
            terminal.settle(0.5, 3)
            terminal.press(*keys)
            if step == 3:
                terminal.until("before  ST")
                terminal.press("enter")
            elif step == 4:
                terminal.until("Archive")
                terminal.press("esc")
            elif step == 5:
                terminal.until("Search")
                terminal.type("silted")
                terminal.until("in archive")
                terminal.press("esc")
        terminal.until("ctrl+q leaves")
        assert any((tmp_path / "tmp").glob("ctxchat-tour-*"))
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
        assert left_clean(terminal)
    assert not any((tmp_path / "tmp").iterdir())
    assert sorted(harbour.work.rglob("*")) == before and not any(harbour.settings.iterdir())
    assert not harbour.data.exists()


@pytest.mark.pty
def test_ended_before_the_interface_is_there_it_leaves_nothing_behind(chat: Open, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    with chat("tour", TMPDIR=str(tmp_path / "tmp")) as terminal:
        terminal.until("Ask, or type")
        assert any((tmp_path / "tmp").glob("ctxchat-tour-*"))
        terminal.kill(SIGTERM)
        assert terminal.wait() == 128 + SIGTERM
        assert left_clean(terminal)
    assert not any((tmp_path / "tmp").iterdir())


@pytest.mark.pty
def test_the_first_screen_has_a_key_for_it_and_is_there_again_behind_it(chat: Open) -> None:
    with chat(columns=100, rows=34) as terminal:
        terminal.until("take the two-minute tour")
        terminal.settle(0.5, 3)
        terminal.press("\t", "t")
        terminal.until("tour 1/6")
        terminal.settle(0.5, 3)
        terminal.press("ctrl+q")
        terminal.until("take the two-minute tour")
        terminal.settle(0.5, 3)
        terminal.press("ctrl+q")
        assert terminal.wait() == 0
        assert left_clean(terminal)
