"""Only what changed is rendered, and what is painted is what Textual paints."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from random import Random

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region

from ctxchat.tui.app import CtxchatApp
from ctxchat.tui.style.compositor import CroppingCompositor
from tests.tui.chatting import chatting, idle
from tests.tui.fakes import FakeSession

WIDTH, HEIGHT = 120, 36


def plain(compositor: Compositor) -> Compositor:
    """As Textual has it."""
    other = copy(compositor)
    other.__class__ = Compositor
    return other


def painted(app: CtxchatApp, compositor: Compositor, regions: list[Region]) -> str:
    compositor._dirty_regions = set(regions)
    update = compositor.render_partial_update()
    assert isinstance(update, ChopsUpdate)
    return update.render_segments(app.console)


async def test_what_is_painted_is_what_textual_paints(tmp_path: Path) -> None:
    random = Random(7)
    async with chatting(tmp_path, FakeSession(), (WIDTH, HEIGHT)) as (app, pilot):
        await pilot.press(*"hello", "enter")
        await idle(app, pilot)
        await pilot.press("/", "c")  # a list over the conversation
        app.say_briefly("and a note over both")
        await pilot.pause(0.1)
        cropping = app.chat._compositor
        assert isinstance(cropping, CroppingCompositor)
        assert len(cropping.layers_visible[HEIGHT // 2]) < len(cropping.visible_widgets)
        for _ in range(200):
            regions: list[Region] = []
            for _ in range(random.randint(1, 3)):
                x, y = random.randrange(WIDTH), random.randrange(HEIGHT)
                regions.append(Region(x, y, random.randint(1, WIDTH - x), random.randint(1, HEIGHT - y)))
            assert painted(app, cropping, regions) == painted(app, plain(cropping), regions), regions


async def test_textual_renders_the_whole_screen_for_one_line(tmp_path: Path) -> None:
    """Where this fails there is no need for a compositor of ours any more."""
    async with chatting(tmp_path, FakeSession(), (WIDTH, HEIGHT)) as (app, pilot):
        await pilot.pause()
        line = Region(0, HEIGHT // 2, 10, 1)
        ours, theirs = (
            [len(strips) for _, _, strips in each._get_renders(line)]
            for each in (app.chat._compositor, plain(app.chat._compositor))
        )
        assert set(ours) == {1}
        assert sum(theirs) > 2 * HEIGHT
