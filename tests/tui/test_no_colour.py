"""Styles without colour: what stood out by its ground is reversed, quiet greys are dim, warnings are not."""

from __future__ import annotations

import pytest
from rich.style import Style
from textual.color import Color

from ctxchat.config.themes import Theme, load_themes
from ctxchat.tui.style.themed_app import uncoloured


@pytest.mark.parametrize("theme", load_themes().themes.values(), ids=lambda theme: theme.name)
def test_in_every_theme_the_cursor_stands_out_and_warnings_are_not_dim(theme: Theme) -> None:
    def plain(ink: str, paper: str) -> Style:
        style = uncoloured(Style.parse(f"{Color.parse(ink).hex} on {Color.parse(paper).hex}"), theme.background)
        assert not style.color or style.color.is_default
        assert not style.bgcolor or style.bgcolor.is_default
        return style

    assert plain(theme.background, theme.accent).reverse
    assert not plain(theme.foreground, theme.background).reverse
    assert not plain(theme.foreground, theme.background).dim
    for ink in (theme.error, theme.warning):
        assert not plain(ink, theme.background).reverse


def test_a_grey_is_dim_and_what_was_reversed_on_purpose_stays_told_apart() -> None:
    assert uncoloured(Style.parse("#5a5d66 on #101216"), "#101216").dim
    assert not uncoloured(Style.parse("#d05050 on #101216"), "#101216").dim
    assert uncoloured(Style.parse("reverse #e0e0e0 on #101216"), "#101216").reverse
    assert uncoloured(Style.parse("bold #e0e0e0 on #101216"), "#101216").bold
