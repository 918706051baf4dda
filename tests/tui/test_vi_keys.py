"""Vi's commands over a text: what vi itself makes of the same keys, where it is there to be asked."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ctxchat.tui.unsent.vi_keys import ViKeys

VIM = shutil.which("vim")
MARK = "#"

MOTIONS = ["h", "l", "0", "^", "$", "w", "b", "e", "gg", "G", "2G", "fa", "F.", "ta", "T ", "2w", "3l"]
OBJECTS = ["diw", "daw", 'di"', 'da"', "di(", "da("]
"""Tried in texts of one line: over several, vi has rules of its own for each."""

ASKED = [
    *MOTIONS, *(op + m for op in "dy" for m in ["h", "l", "0", "^", "$", "b", "e", "G", "fa", "ta"]), "dd", "2dd", "dw", "d2w",
    "yyp", "yyP", "ywP", "yep", "Yp", "ddp", "ddP", "xp", "x", "3x", "X", "D", "J", "~", "3~", "rz", "2rz",
    "k", "j", "2j", "dj", "dk", "2p", *OBJECTS,
]  # fmt: skip
WRITTEN = ["i", "a", "I", "A", "o", "O", "s", "S", "C", "cc", "cw", "ce", "cb", "c$", "ciw", 'ci"', "ci("]

texts = st.lists(st.text('ab (")._1', max_size=8), min_size=1, max_size=4).map("\n".join)


def ours(text: str, at: int, keys: str, typed: str) -> tuple[str, int]:
    """The text and the place of the cursor; what is `typed` only where the keys lead to writing."""
    vi = ViKeys()
    vi.normal = True
    for key in keys:
        done = vi.press(key, key, text, at)
        assert done is not None
        if done.change:
            start, end, put = done.change
            text = text[:start] + put + text[end:]
        at = at if done.cursor is None else done.cursor
    if not vi.normal:
        text, at = text[:at] + typed + text[at:], at + len(typed)
        done = vi.press("escape", "", text, at)
        assert done is not None and done.cursor is not None
        at = done.cursor
    return text, at


def vims(text: str, row: int, column: int, keys: str) -> tuple[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text"
        file.write_text(text + "\n")
        asked = [f"normal! {row}G{column}|", f"normal! {keys}", f"normal! i{MARK}", "wq!"]
        command = [
            str(VIM),
            "-Nu",
            "NONE",
            "-i",
            "NONE",
            "-n",
            "-es",
            "-c",
            "set nojs",
            *(w for a in asked for w in ("-c", a)),
            file,
        ]
        subprocess.run(command, check=False, timeout=20, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        found = file.read_text().removesuffix("\n")
    return found.replace(MARK, ""), found.index(MARK)


@pytest.mark.skipif(not VIM, reason="vi is missing")
@settings(max_examples=150)
@given(texts, st.data(), st.sampled_from([*((keys, "") for keys in ASKED), *((keys, "new") for keys in WRITTEN)]))
def test_it_does_what_vi_does(text: str, data: st.DataObject, keys: tuple[str, str]) -> None:
    if keys[0][1:] in {one[1:] for one in OBJECTS}:
        text = text.partition("\n")[0] or "x"
    lines = text.split("\n")
    row = data.draw(st.integers(0, len(lines) - 1))
    column = data.draw(st.integers(0, max(0, len(lines[row]) - 1)))
    at = sum(len(line) + 1 for line in lines[:row]) + column
    assume(text == text.rstrip())  # what becomes of blanks at the very end is another matter for each command
    assume("(" not in keys[0] or ("()" not in text and '"' not in text))
    assume('"' not in keys[0] or '""' not in text)
    assert ours(text, at, *keys) == vims(text, row + 1, column + 1, "".join(keys))


KEYS = st.sampled_from([*'hjklwbeGgdcyxXDCsSYpPuJ~iaIAoOrfFtT0^$12"( ', "escape", "enter", "ctrl+r", "left"])


@given(texts, st.lists(KEYS, max_size=30), st.integers(0, 40))
def test_any_keys_leave_the_cursor_in_the_text(text: str, keys: list[str], at: int) -> None:
    vi, at = ViKeys(), min(at, len(text))
    for key in ["escape", *keys]:
        done = vi.press(key, key if len(key) == 1 else "", text, at)
        if done and done.change:
            start, end, put = done.change
            assert 0 <= start <= end <= len(text)
            text = text[:start] + put + text[end:]
        at = at if done is None or done.cursor is None else done.cursor
        assert 0 <= at <= len(text)
