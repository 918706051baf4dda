"""Whatever is inside a paste arrives as text; whatever is outside arrives as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.drivers import linux_driver

from ctxchat.tui.unsent.pasting import END, START, PasteFilter, PasteSafeParser, entered, make_pastes_safe


def test_what_is_no_utf8_becomes_a_sign_and_ends_nothing() -> None:
    make_pastes_safe()
    decode = linux_driver.getincrementaldecoder("utf-8")().decode
    assert [decode(piece) for piece in (b"a\xff b\xc3", b"\xa9\xe9", b"c")] == ["a\ufffd b", "\u00e9", "\ufffdc"]


def test_a_paste_with_escape_sequences_and_controls_presses_no_key():
    parser = PasteSafeParser()
    got = list(parser.feed(f"a{START}rm \x1b[2J x\ny\x07z \x1b]0;t\x07{END}b"))
    assert [type(e) for e in got] == [events.Key, events.Paste, events.Key]
    assert got[1].text == "rm [2J x\nyz ]0;t"


@given(st.text(alphabet="ab\x1b[201~\x07\n", max_size=40), st.lists(st.integers(1, 7), max_size=30))
def test_cut_anywhere_it_is_the_same(inner: str, cuts: list[int]):
    inner = inner.replace(END, "")
    data = f"x\x1b[A{START}{inner}{END}y"
    filter_, out = PasteFilter(), []
    rest = data
    for cut in cuts:
        piece, rest = rest[:cut], rest[cut:]
        out.append(filter_.feed(piece))
    out.append(filter_.feed(rest))
    assert "".join(out) == PasteFilter().feed(data)
    inside = "".join(out).split(START, 1)[1].rsplit(END, 1)[0]
    assert "\x1b" not in inside.replace(END, "") and "\x07" not in inside


@given(st.text(st.sampled_from("aä\n\r😀x"), max_size=20), st.integers(0, 60), st.lists(st.integers(0, 20), max_size=3))
def test_enter_typed_before_the_frame_stays_enter_and_later_lines_stay_lines(
    text: str, early: int, cuts: list[int]
) -> None:
    whole, left = entered(text, early)
    places = sorted({min(c, len(text)) for c in cuts})
    pieces, rest = "", early
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        piece, rest = entered(text[start:end], rest)
        pieces += piece
    assert pieces == whole and rest == left == max(0, early - len(text.encode()))
    assert whole.replace("\r", "\n") == text.replace("\r", "\n")
    first = len(text.encode()[:early].decode("utf-8", "ignore"))
    assert "\n" not in whole[:first] and whole[first:] == text[first:]
