"""NO_COLOR: the screen in the terminal's own two colours. What stood out by its ground is reversed, quiet greys are dim.

Textual turns colours into greys instead, which are colours all the same (https://no-color.org). Knows no widget.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

STANDS_OUT, QUIET, GREY = 0.1, 0.5, 0.3
"""From how much another brightness than the ground's a ground is reversed, up to how much other brightness and up to which
saturation an ink is dim; all from 0 to 1."""

PLAIN = Style.from_color(RichColor.default(), RichColor.default())


class NoColour(LineFilter):
    """`ground` gives the colour of the whole screen's background, as the theme has it now."""

    def __init__(self, ground: Callable[[], str]) -> None:
        super().__init__()
        self._ground = ground

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        ground = self._ground()
        return [
            Segment(text, style if style is None else uncoloured(style, ground), control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def uncoloured(style: Style, ground: str) -> Style:
    """The style without colours, on a screen whose background is `ground`."""
    base = Color.parse(ground)
    paper = _seen(style.bgcolor, base)
    plain = style + PLAIN
    if abs(paper.brightness - base.brightness) > STANDS_OUT:
        return plain + Style(reverse=not style.reverse, dim=False)
    ink = _seen(style.color, base.inverse)
    quiet = abs(ink.brightness - paper.brightness) < QUIET and ink.hsl.s < GREY
    return plain + Style(dim=True) if quiet else plain


def _seen(colour: RichColor | None, otherwise: Color) -> Color:
    return Color.from_rich_color(colour) if colour and not colour.is_default else otherwise
