"""A line of memory is added once, by however many at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ctxchat.tools.conversation import append_line


def test_a_line_that_several_add_at_once_stands_there_once(tmp_path: Path) -> None:
    for number in range(50):
        path, start = tmp_path / f"{number}.md", threading.Barrier(6)
        path.write_text("Be brief.")

        def add(_: int, path: Path = path, start: threading.Barrier = start) -> bool:
            start.wait(30)
            return append_line(path, "- No tabs")

        with ThreadPoolExecutor(6) as pool:
            added = list(pool.map(add, range(6)))
        assert path.read_text() == "Be brief.\n- No tabs\n"
        assert added.count(True) == 1
