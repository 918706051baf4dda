"""Whatever is inside a paste arrives as text; whatever is outside arrives as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual import events

from ctxchat.tui.pasting import END, START, PasteFilter, PasteSafeParser


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
