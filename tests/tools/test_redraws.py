"""What a command drew comes to what a terminal shows in the end; a terminal of another maker is the judge."""

from __future__ import annotations

import pyte
import pyte.modes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.tools.redraws import Redraws


def shown(*pieces: bytes) -> tuple[str, int]:
    redraws = Redraws()
    text = b"".join(map(redraws.add, pieces)) + redraws.remaining()
    return text.decode(), redraws.redrawn


def on_a_terminal(text: str) -> list[str]:
    screen = pyte.Screen(200, 200)
    screen.set_mode(pyte.modes.LNM)
    pyte.Stream(screen).feed(text)
    return [line.rstrip() for line in screen.display]


_move = st.one_of(
    st.builds("\x1b[{}{}".format, st.sampled_from(["", "0", "1", "2", "7"]), st.sampled_from("ABCDEFG")),
    st.builds("\x1b[{}{}".format, st.sampled_from(["", "0", "1", "2"]), st.sampled_from("KJ")),
)
_pieces = st.one_of(
    st.text("abcdé #", min_size=1, max_size=6),
    st.sampled_from(["\n", "\n", "\r", "\r\n", "\b", "\x1b[2K", "\x1b[3;5H", "\x1b[H"]),
    st.sampled_from(["\x1b[1;31m", "\x1b[0m", "\x1b[?25l", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b(B"]),
    _move,
)


@given(st.lists(_pieces, max_size=30), st.data())
def test_it_shows_what_a_terminal_shows(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    raw = text.encode()
    at = data.draw(st.integers(0, len(raw)))
    found = shown(raw[:at], raw[at:])
    assert [line.rstrip() for line in found[0].split("\n")] == on_a_terminal(text)[: found[0].count("\n") + 1]
    assert not any(on_a_terminal(text)[found[0].count("\n") + 1 :])
    assert found == shown(raw)


def test_two_thousand_redraws_are_one_line() -> None:
    bar = b"".join(f"\r{at / 20:5.1f} % [{'#' * (at // 100):20}]".encode() for at in range(2001))
    assert shown(b"begin\n" + bar + b"\ndone\n") == ("begin\n100.0 % [####################]\ndone\n", 2000)
    spinner = b"".join(b"\x1b[2K\x1b[1Gstep %d" % at for at in range(2000))
    assert shown(spinner + b"\n") == ("step 1999\n", 1999)


def test_several_bars_are_several_lines() -> None:
    drawn = b"".join(b"\x1b[2A\x1b[Kone %d\n\x1b[Ktwo %d\n" % (at, at) for at in range(1, 500))
    text, many = shown(b"one 0\ntwo 0\n" + drawn)
    assert text == "one 499\ntwo 499\n" and many == 998


@pytest.mark.parametrize("text", ["", "plain\n", "a\r\nb\r\n", "no end", "\x1b", "\n\n\n", "é" * 100_000, "x\n" * 5000])
def test_what_is_not_drawn_over_stays_as_it_is(text: str) -> None:
    raw = text.encode()
    found = shown(*(raw[at : at + 999] for at in range(0, len(raw), 999)))
    assert found == (text.replace("\r\n", "\n").replace("\x1b", ""), 0)


def test_nothing_makes_it_hold_more_and_more() -> None:
    redraws = Redraws()
    for piece in (
        b"x" * 65_536,
        b"\x1b[9999999999B\x1b[9999999999C.",
        b"\x1b]" + b"x" * 65_536,
        b"\r" + b"y\n" * 30_000,
    ):
        for _ in range(20):
            redraws.add(piece)
            assert sum(map(len, redraws._lines)) < 1_000_000 and len(redraws._lines) < 2_000
