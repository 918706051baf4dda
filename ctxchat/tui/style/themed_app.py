"""An app with our looks: the project's themes in Textual's terms, style sheets, sizes at which they change, no colours where none
are wanted (Textual turns them into greys, which are colours all the same: https://no-color.org), and text that stays text. Knows
no settings and no session.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from textwrap import wrap
from time import monotonic
from typing import Any

from rich.color import Color as RichColor
from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual._styles_cache import StylesCache
from textual.app import App
from textual.color import Color
from textual.events import Resize
from textual.filter import LineFilter, Monochrome
from textual.screen import Screen
from textual.style import Style as VisualStyle
from textual.theme import Theme as TextualTheme

from ctxchat.config.themes import Theme
from ctxchat.presentation.text import clean
from ctxchat.tui.style import STYLE
from ctxchat.tui.style.painted import PaintedCells, WriteChangedCells
from ctxchat.tui.style.stylesheet import RememberingStylesheet
from ctxchat.tui.widgets.gauge import GAUGE_COLOURS

DEFAULTS: Mapping[str, str] = {**GAUGE_COLOURS, "rule": "#4a5160", "gauge-ghost": "#3b4252"}
"""Our own variables where a theme (one of Textual's, say) does not set them."""


@lru_cache(1024)
def backgrounds(base: Color, background: Color) -> tuple[VisualStyle, VisualStyle]:
    """The background colours inside a widget and around it, without Textual's cache: that has the widget's painted lines in its
    key, and keeps those of a thousand removed widgets (8.2; github.com/Textualize/textual/issues/6665)."""
    return VisualStyle(background=base + background), VisualStyle(background=base)


setattr(StylesCache, "get_inner_outer", staticmethod(backgrounds))  # noqa: B010


def textual_theme(theme: Theme) -> TextualTheme:
    """A theme as Textual's: its colours under Textual's names, and our own as variables."""
    gauge = {f"gauge-{name.replace('_', '-')}": colour for name, colour in theme.gauge.items()}
    inks = {f"gauge-ink-{name.replace('_', '-')}": colour for name, colour in theme.gauge_ink.items()}
    signs = {f"gauge-sign-{name.replace('_', '-')}": str(ord(sign)) for name, sign in theme.patterns.items()}
    return TextualTheme(
        name=theme.name,
        dark=theme.dark,
        primary=theme.primary,
        secondary=theme.secondary,
        accent=theme.accent,
        foreground=theme.foreground,
        background=theme.background,
        surface=theme.surface,
        panel=theme.panel,
        success=theme.success,
        warning=theme.warning,
        error=theme.error,
        variables={
            **gauge,
            **inks,
            **signs,
            "gauge-ghost": theme.ghost,
            "gauge-target": theme.target,
            "gauge-trigger": theme.trigger,
            "rule": theme.border,
            "border": theme.border,
            "border-blurred": theme.border,
            "text-muted": theme.muted,
            "text-disabled": theme.muted,
            "text-accent": theme.accent,
            "text-warning": theme.warning,
            "text-error": theme.error,
            "text-success": theme.success,
            "link-color": theme.accent,
            "block-cursor-background": theme.accent,
            "block-cursor-foreground": theme.background,
            "input-cursor-background": theme.foreground,
            "input-cursor-foreground": theme.background,
            "scrollbar": theme.panel,
            "scrollbar-hover": theme.border,
            "scrollbar-active": theme.muted,
            "scrollbar-background": theme.background,
            "scrollbar-background-hover": theme.background,
            "scrollbar-background-active": theme.background,
            "scrollbar-corner-color": theme.background,
        },
    )


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


NARROW_COLUMNS, MAX_NOTICE_CHARS, BESIDE = 60, 1_000, 5
"""Columns below which a window is narrow, characters of what goes by itself, columns of a toast that hold no text."""

USUAL = "dark"
"""The theme worn where one is asked for that nobody has."""


class ThemedApp(App[int]):
    """Wears one of `themes`: the one asked for, else the usual one."""

    CSS_PATH = STYLE / "ctxchat.tcss"
    PAUSE_GC_ON_SCROLL = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW_COLUMNS, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (9, "-short"), (18, "-tall"), (36, "-high")]

    now: Callable[[], float] = staticmethod(monotonic)
    """A steadily rising count of seconds: how long keys have paused is measured with it."""

    def __init__(self, themes: Iterable[TextualTheme], theme: str = USUAL, driver: Any = None) -> None:
        """`driver` makes what speaks to the terminal; None for Textual's own."""
        super().__init__(driver_class=driver)
        self.stylesheet = RememberingStylesheet(variables=self.get_css_variables())
        self._uncoloured = NoColour(lambda: self.theme_variables["background"])
        self._painted = PaintedCells()
        self._themes: list[str] = []
        self._take_in(themes)
        worn = self._known_theme(theme)
        if worn in self._themes:  # before anything is painted: setting it later parses all style sheets once more
            self.set_reactive(App.theme, worn)
            self.stylesheet.set_variables(self.get_css_variables())

    def _take_in(self, themes: Iterable[TextualTheme]) -> None:
        found = list(themes)
        for theme in found:
            self.register_theme(theme)
        self._themes = [theme.name for theme in found]

    def _known_theme(self, theme: str) -> str:
        return theme if theme in self._themes else USUAL

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(DEFAULTS)

    def on_resize(self, event: Resize) -> None:
        """Textual draws nothing where another size was gone before it was seen; the terminal may have cut off what was there."""
        if self.screen_stack and event.size == self.screen.size:
            self.refresh(layout=True)

    def _check_resize(self) -> None:
        """Like Textual's, but draws everything: Textual draws only what moved, though the terminal may have cut off the rest as
        well."""
        super()._check_resize()
        if self.screen_stack:
            self.screen.call_later(self.screen.refresh)  # behind the size

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Like Textual's, but writes nothing that the terminal already shows."""
        drawn = isinstance(renderable, LayoutUpdate | ChopsUpdate)
        written: Any = WriteChangedCells(renderable, self._painted) if drawn else renderable
        super()._display(screen, written)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, but without colour there is none, not greys."""
        filters = super().get_line_filters()
        return [*(f for f in filters if not isinstance(f, Monochrome)), self._uncoloured] if self.no_color else filters

    @property
    def theme_names(self) -> Collection[str]:
        """The themes there are: ours and the person's, which are checked; not those that come with Textual."""
        return self._themes

    def learn_themes(self, themes: Iterable[TextualTheme]) -> None:
        """Use these themes, and apply the present one again."""
        self._take_in(themes)
        self.mutate_reactive(App.theme)

    def wear(self, theme: str) -> None:
        """Apply the theme of this name, or the default if there is none."""
        self.theme = self._known_theme(theme)

    def notify(self, message: str, *, title: str = "", markup: bool = False, **more: Any) -> None:
        """Like Textual's, but takes text as text, shows no notice twice, and is at most three lines high in a narrow window."""
        words = clean(message[:MAX_NOTICE_CHARS])
        if self.size.width < NARROW_COLUMNS:
            words = "\n".join(wrap(words, max(8, self.size.width - BESIDE), max_lines=3, placeholder=" …"))
        if any(each.message == words for each in self._notifications):
            return
        super().notify(words, title=clean(title[:MAX_NOTICE_CHARS]), markup=markup, **more)

    def say_briefly(self, text: str) -> None:
        """A sentence that goes by itself."""
        self.notify(text, timeout=3)
