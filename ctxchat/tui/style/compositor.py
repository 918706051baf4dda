"""What is painted of a screen where only some of its lines changed."""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class CroppingCompositor(Compositor):
    """As Textual's, which (seen with 8.2) renders all of each widget on the screen, line by line, whatever has changed: a letter
    in the editor would cost the lines of the whole conversation and the panel. Here the lines that changed are rendered, of the
    widgets they cross. There is no public way to it; `tests/tui/test_compositor.py` tells when it is not needed any more."""

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
