"""Renders only the changed lines of a screen."""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class CroppingCompositor(Compositor):
    """Textual's compositor (8.2) renders every line of each widget on the screen, whatever has changed: a letter in the editor
    would cost the lines of the whole conversation and the panel. This one renders the changed lines only. It overrides private
    methods, as there is no public way; `tests/tui/test_compositor.py` fails when it is no longer needed."""

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if crop is None:
            yield from super()._get_renders()
            return
        rows = Region(0, crop.y, self.size.width, crop.height)  # whole lines: they are cut where widgets begin and end
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            if seen.overlaps(crop):
                seen = seen.intersection(rows)
                yield region, clip.intersection(rows), widget.render_lines(seen.translate((-region.x, -region.y)))
