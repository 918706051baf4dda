"""Whatever bytes a terminal sends, in whatever pieces: nothing raises, what was typed arrives, what is inside a paste is text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual import events
from textual.drivers import web_driver

from ctxchat.tui.terminal.parser import (
    PASTE_END,
    PASTE_START,
    PASTE_TIMEOUT_S,
    InputParser,
    PasteFilter,
    lenient_decoder,
    patch_web_driver,
)
from tests.examples import examples

PRESSES = [
    "\x1b[97;1:1u",
    "\x1b[1;2:1A",
    "\x1b[97:65;2u",
    "\x1b[13u",
    "\x1b[97;5:2u",
    "\x1bOQ",
    "\x1b[15~",
    "\x1b[1;5C",
]
NOTHING = [
    *("\x1b[999999999999u", "\x1b[1114112u", "\x1b[55296u", "\x1b[97;1:3u", "\x1b[97;999999u", "\x1b[:u", "\x1b[;;:u"),
    *("\x1b[?62;22c", "\x1b[>0;276;0c", "\x1b[?1u", "\x1b[5;5;5z", "\x1b[48;0;0;0;0t"),
    *("\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", "\x1bP1$r0m\x1b\\", "\x1b]0;title\x07", "\x1b_Gi=1;OK\x1b\\"),
    *("\x1b[<0;99999999999999;5M", "\x1b[<0;0;0M", "\x1b[48;99999999;9999999;1;1t"),
]
ODD = [
    *PRESSES,
    *NOTHING,
    "\x1b",
    "\x1b[",
    "\x1b[<35;4;5M",
    "\x1b[<0;4;5m",
    "\x1b[48;24;80;0;0t",
    "\x1b[M   ",
    "\x1b[?2026;1$y",
]


def keys(found: Iterable[Any]) -> list[tuple[str, str | None]]:
    return [(event.key, event.character) for event in found if isinstance(event, events.Key)]


def typed(found: Iterable[Any]) -> str:
    """Letters and pasted words, in their order."""
    return "".join(
        e.text if isinstance(e, events.Paste) else e.character or ""
        for e in found
        if isinstance(e, events.Key | events.Paste)
    )


def in_pieces(data: bytes, cuts: list[int], parser: InputParser) -> list[Any]:
    decode, found, at = lenient_decoder("utf-8")().decode, [], 0
    for cut in [*cuts, len(data)]:
        found += parser.feed(decode(data[at : at + cut]))  # nothing, where it is half of a character
        at += cut
    parser._timeout_time = 0.0  # the time in which a sequence would go on is over
    return [*found, *parser.tick()]


@pytest.mark.parametrize(
    ("sequence", "key"),
    [
        ("\x1b[97;1:1u", ("a", "a")),
        ("\x1b[97u", ("a", "a")),
        ("\x1b[97;1:2u", ("a", "a")),
        ("\x1b[97:65;2u", ("A", "A")),
        ("\x1b[97;2u", ("A", "A")),
        ("\x1b[97;65u", ("A", "A")),
        ("\x1b[97;5:1u", ("ctrl+a", None)),
        ("\x1b[228;1;228u", ("ä", "ä")),
        ("\x1b[97:::;;1114112u", ("a", "a")),
        ("\x1b[0;;229u", ("å", "å")),
        ("\x1b[1;2:1A", ("shift+up", None)),
        ("\x1b[1;1:1A", ("up", None)),
        ("\x1b[3;5:1~", ("ctrl+delete", None)),
        ("\x1b[13;1:1u", ("enter", None)),
    ],
)
def test_key_events_of_the_kitty_protocol_are_the_keys_they_are(sequence: str, key: tuple[str, str | None]) -> None:
    assert keys(InputParser().feed(f"{sequence}b")) == [key, ("b", "b")]


@pytest.mark.parametrize("sequence", NOTHING)
def test_what_is_no_key_press_types_nothing_and_takes_nothing_along(sequence: str) -> None:
    found = list(InputParser().feed(f"one {sequence}two"))
    assert typed(found) == "one two"
    assert not any(isinstance(e, events.MouseEvent | events.Resize) for e in found)


@given(
    st.lists(
        st.sampled_from(ODD) | st.text(max_size=6) | st.just(f"{PASTE_START}x\x1b[97;1:1uy{PASTE_END}"), max_size=8
    ),
    st.lists(st.integers(1, 9), max_size=30),
)
@examples(37, 150)
@example(["\x1b[48;24;80;0;0t", "\x1b[<35;4;5M"], [])
def test_no_bytes_in_any_pieces_raise_and_the_parser_lives(pieces: list[str], cuts: list[int]) -> None:
    parser = InputParser()
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    in_pieces(data, cuts, parser)
    assert typed(in_pieces(PASTE_END.encode() + b"after", [], parser)).endswith("after")


@given(st.binary(max_size=60), st.lists(st.integers(1, 9), max_size=30))
def test_nor_do_those_that_are_no_text(data: bytes, cuts: list[int]) -> None:
    parser = InputParser()
    in_pieces(data, cuts, parser)
    assert typed(in_pieces(b"\x1b[201~after", [], parser)).endswith("after")


@given(
    st.lists(st.tuples(st.text("abcäß 世", max_size=5), st.sampled_from([*NOTHING, *PRESSES[:2]])), max_size=6),
    st.lists(st.integers(1, 200), max_size=6),
)
def test_text_between_sequences_is_never_lost(parts: list[tuple[str, str]], cuts: list[int]) -> None:
    words = "".join(text for text, _ in parts)
    data = "".join(f"{text}{sequence}" for text, sequence in parts)
    got = typed(InputParser().feed(data))
    assert got.replace("a", "") == words.replace("a", "")  # the first of the presses is an `a` itself
    rest = iter(typed(in_pieces(data.encode(), cuts, InputParser())))  # cut, an answer may be typed: nothing is missing
    assert all(sign in rest for sign in words)


def test_what_is_no_utf8_becomes_a_sign_and_ends_nothing() -> None:
    patch_web_driver()
    for made in (lenient_decoder, vars(web_driver)["getincrementaldecoder"]):
        decode = made("utf-8")().decode
        assert [decode(piece) for piece in (b"a\xff b\xc3", b"\xa9\xe9", b"c")] == ["a\ufffd b", "\u00e9", "\ufffdc"]


def test_a_paste_with_escape_sequences_and_controls_presses_no_key():
    got = list(InputParser().feed(f"a{PASTE_START}rm \x1b[2J x\ny\x07z \x1b]0;t\x07{PASTE_END}b"))
    assert [type(e) for e in got] == [events.Key, events.Paste, events.Key]
    assert got[1].text == "rm [2J x\nyz ]0;t"


def test_a_paste_whose_end_never_comes_keeps_no_key_for_ever() -> None:
    time = [0.0]
    parser = InputParser(now=lambda: time[0])
    assert list(parser.feed(f"{PASTE_START}half a paste \x1b[20")) == []
    assert list(parser.tick()) == []
    time[0] = PASTE_TIMEOUT_S + 1
    assert typed(parser.tick()) == "half a paste [20"
    assert keys(parser.feed("q")) == [("q", "q")]


def test_a_lone_key_after_a_silence_ends_a_paste_that_nobody_ended() -> None:
    time = [0.0]
    parser = InputParser(now=lambda: time[0])
    assert list(parser.feed(f"{PASTE_START}half a paste")) == []
    time[0] += 0.5
    assert list(parser.feed("\x11")) == []  # within the run it is text, and none that is kept
    time[0] += 0.5
    assert list(parser.feed(" and more")) == []
    time[0] += 1.5
    paste, key = parser.feed("\x11")
    assert (paste.text, key.key) == ("half a paste and more", "ctrl+q")
    assert keys(parser.feed("q")) == [("q", "q")]
    list(parser.feed(f"{PASTE_START}begun"))
    assert list(parser.feed("\x11")) == []
    time[0] += PASTE_TIMEOUT_S + 1
    paste, key = parser.tick()
    assert (paste.text, key.key) == ("begun", "ctrl+q")
    list(parser.feed(f"{PASTE_START}x"))
    time[0] += 1.5
    assert list(parser.feed("y")) == []  # a letter may well be the rest of it
    time[0] += 1.5
    assert typed(parser.feed(PASTE_END)) == "xy"


def test_what_comes_late_of_a_paste_is_pasted_too() -> None:
    time = [0.0]
    parser = InputParser(now=lambda: time[0])
    list(parser.feed(f"{PASTE_START}first line\r"))
    for piece in ("second line\rthird line\r", f"last\r\x11{PASTE_END}"):
        time[0] += PASTE_TIMEOUT_S + 1
        (before,) = parser.tick()
        (*_, paste) = [before, *parser.feed(piece)]
        assert isinstance(before, events.Paste)
    assert isinstance(paste, events.Paste) and paste.text == "last\r"
    assert keys(parser.feed("q\r")) == [("q", "q"), ("enter", "\r")]
    list(parser.feed(f"{PASTE_START}never ended"))
    time[0] += PASTE_TIMEOUT_S + 1
    list(parser.tick())
    assert keys(parser.feed("ok\r")) == [("o", "o"), ("k", "k"), ("enter", "\r")]
    assert len(keys(parser.feed("typed behind it\r"))) == 16  # a hand was seen
    assert keys(parser.feed(PASTE_END)) == []


@given(st.text(alphabet="ab\x1b[201~\x07\n", max_size=40), st.lists(st.integers(1, 7), max_size=30))
def test_cut_anywhere_it_is_the_same(inner: str, cuts: list[int]):
    inner = inner.replace(PASTE_END, "")
    data = f"x\x1b[A{PASTE_START}{inner}{PASTE_END}y"
    filter_, out = PasteFilter(), []
    rest = data
    for cut in cuts:
        piece, rest = rest[:cut], rest[cut:]
        out.append(filter_.feed(piece))
    out.append(filter_.feed(rest))
    assert "".join(out) == PasteFilter().feed(data)
    inside = "".join(out).split(PASTE_START, 1)[1].rsplit(PASTE_END, 1)[0]
    assert "\x1b" not in inside.replace(PASTE_END, "") and "\x07" not in inside


def test_only_for_the_rest_of_a_key_or_a_paste_is_there_a_limit_to_wait() -> None:
    parser = InputParser(debug=False)
    for text, within in (
        ("a", False),
        ("\x1b[A", False),
        ("\x1b", True),
        ("[B", False),
        (PASTE_START, True),
        ("x", True),
        (PASTE_END, False),
    ):
        list(parser.feed(text))
        assert parser.is_incomplete is within, text
