"""What is typed before the interface is there looks as it will in its editor."""

from __future__ import annotations

import re
from pathlib import Path

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.config.schema import Settings
from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.terminal.early_keys import PASTE, PASTED, EarlyKeys, cells, draw_input
from ctxchat.tui.terminal.parser import InputParser
from tests.tui.chatting import until
from tests.tui.fakes import FakeServices, FakeSession

KEYS = (
    "a",
    "b",
    "é",
    "漢",
    " ",
    ".",
    "\x7f",
    "\x1b[D",
    "\x1b[C",
    "\x15",
    "\x17",
    "\x01",
    "\x05",
    "\n",
    f"{PASTE}p q\rr{PASTED}",
)


def typed(*pieces: bytes) -> EarlyKeys:
    keys = EarlyKeys()
    for piece in pieces:
        keys.feed(piece)
    return keys


@pytest.mark.parametrize(
    ("keys", "text", "sent"),
    [
        ("hello\x7f\x7fp", "help", []),
        ("ac\x1b[Db", "abc", []),
        ("one two\x17three", "one three", []),
        ("gone\x15kept", "kept", []),
        ("b\x01a\x05c", "abc", []),
        ("a question\rand", "and", ["a question"]),
        ("  \r", "  ", []),
        ("a\nb\x15", "a\n", []),
        (f"{PASTE}x\r\ty\x07{PASTED}\r", "", ["x\n\ty"]),
        ("e\u0301\x7f", "", []),
        ("before\x1bOQ\rbehind", "before", []),
        ("half a key\x1b[", "half a key", []),
    ],
)
def test_keys_do_what_they_do_in_an_editor(keys: str, text: str, sent: list[str]) -> None:
    seen = typed(keys.encode())
    assert (seen.text, seen.sent) == (text, sent)


def test_what_could_not_be_shown_is_among_what_was_not_sent() -> None:
    assert typed(b"sent\rbegun\x1bOQbehind\rit\x1b").unsent == "sent\n\nbegun\n\nbehind\nit"


@given(st.lists(st.sampled_from([*KEYS, "\r", "\x1bOQ"]), max_size=12), st.integers(0, 60))
def test_wherever_what_comes_in_is_cut_it_is_the_same(keys: list[str], cut: int) -> None:
    data = "".join(keys).encode()
    whole, cut_once = typed(data), typed(data[:cut], data[cut:])
    assert (whole.text, whole.cursor, whole.sent) == (cut_once.text, cut_once.cursor, cut_once.sent)


async def test_it_looks_as_the_editor_will_have_it(tmp_path: Path) -> None:
    app = CtxchatApp(FakeServices(tmp_path, FakeSession()), Settings(), {})
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: app.session is not None)
        prompt = app.chat.composer.prompt

        @settings(max_examples=25, deadline=None)
        @given(st.lists(st.sampled_from(KEYS), max_size=10))
        def examples(keys: list[str]) -> None:
            wanted.append("".join(keys))

        wanted: list[str] = []
        examples()
        for keys in wanted:
            prompt.clear()
            for event in InputParser().feed(keys):
                app.post_message(event)
            await until(pilot, lambda: not app.taking_input)
            await pilot.pause()
            seen = typed(keys.encode())
            assert (prompt.text, prompt.document.get_index_from_location(prompt.cursor_location)) == (
                seen.text,
                seen.cursor,
            ), repr(keys)


@given(st.text(st.sampled_from("ab漢é\u0301\n🙂"), max_size=20), st.integers(0, 20), st.integers(2, 12))
def test_a_row_is_as_wide_as_it_may_be_and_shows_the_cursor(text: str, cursor: int, width: int) -> None:
    cursor = min(cursor, len(text))
    row = draw_input(text, cursor, width)
    assert "\x1b[7m" in row
    assert sum(map(cells, re.sub(r"\x1b\[\d+m", "", row))) == width
    screen = pyte.Screen(width, 2)
    pyte.Stream(screen).feed(row)
    assert not screen.display[1].strip()
