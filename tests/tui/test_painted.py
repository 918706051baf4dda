"""What is written to the terminal is what differs there, and what stands there then is what Textual would have drawn."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyte
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual._compositor import CompositorUpdate
from textual.strip import Strip

from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.style.painted import PaintedCells, WriteChangedCells, changed_part
from tests.tui.chatting import chatting, idle
from tests.tui.fakes import FakeSession

SIZE = (100, 30)


class Filmed(CtxchatApp):
    """Draws on two terminals: on one all that Textual writes, on the other what differs."""

    def __init__(self, *given, **more) -> None:
        super().__init__(*given, **more)
        self.theirs, self.ours = pyte.Screen(*SIZE), pyte.Screen(*SIZE)
        self.cells = PaintedCells()

    def _display(self, screen, renderable) -> None:
        if isinstance(renderable, CompositorUpdate):
            whole = renderable.render_segments(self.console)
            changed = WriteChangedCells(renderable, self.cells).render_segments(self.console)
            pyte.Stream(self.theirs).feed(whole)
            pyte.Stream(self.ours).feed(changed)
        super()._display(screen, renderable)


async def test_the_terminal_shows_what_textual_draws(tmp_path: Path) -> None:
    random = Random(5)
    keys = [
        "a",
        "ö",
        "漢",
        "👍",
        "e\u0301",
        "f2",
        "f3",
        "f4",
        "f1",
        "escape",
        "escape",
        "down",
        "pageup",
        "tab",
        "ctrl+p",
    ]
    async with chatting(tmp_path, FakeSession(), SIZE, app=Filmed) as (app, pilot):
        for _ in range(6):
            await pilot.press(*"漢 hello 👩‍👩‍👧 there", "enter")
            await idle(app, pilot)
            app.say_briefly("a note over both")
            for key in random.choices(keys, k=12):
                await pilot.press(key)
                await pilot.pause()
                assert app.ours.display == app.theirs.display, key
                assert app.ours.buffer == app.theirs.buffer, key
            await pilot.press("escape", "escape", "escape")
            await idle(app, pilot)


PLAIN, LOUD = Style(), Style(bold=True)
TEXT = st.text("ab .é漢👍\u0301\ufe0f☀", max_size=6)
STRIPS = st.lists(st.builds(Segment, TEXT, st.sampled_from([PLAIN, LOUD])), max_size=4).map(Strip)


@given(STRIPS, STRIPS)
def test_a_part_laid_over_the_old_strip_is_the_new_one(old: Strip, new: Strip) -> None:
    skipped, part = changed_part(old, new)
    rest = old.crop(skipped + part.cell_length) if part is not new else Strip([])
    laid = Strip.join([old.crop(0, skipped) if skipped else Strip([]), part, rest])
    assert [*cells(laid)] == [*cells(new)]


def cells(strip: Strip) -> list[tuple[str, Style | None]]:
    return [(character, style) for text, style, _ in strip for character in text]
