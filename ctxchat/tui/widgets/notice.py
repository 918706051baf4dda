"""A sentence from ctxchat as a widget: above the conversation, and on the screen that lists them all."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content
from textual.css.styles import RulesMap
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import Static

from ctxchat.core.events import Level
from ctxchat.presentation.text import cut
from ctxchat.tui.widgets.lines import MIN_TEXT_CELLS

SIGNS: Mapping[Level, str] = {"info": "·", "warning": "!", "error": "✗"}


class Hanging(Visual):
    """`sign` and `words`; as text it is both, with a space between them."""

    def __init__(self, sign: str | Content, words: Content) -> None:
        self.words = words
        self._sign = Content.assemble(sign, " ")
        self._whole = self._sign.append(words)
        self._indent = self._sign.cell_length

    def __str__(self) -> str:
        return self._whole.plain

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """The lines, each as wide as they are."""
        if width < MIN_TEXT_CELLS:
            return self._whole.render_strips(width, height, style, options)
        lines = self.words.render_strips(width - self._indent, height, style, options)
        blank = Strip.blank(self._indent, style.rich_style)
        heads = [*self._sign.render_strips(self._indent, 1, style, options), *[blank] * len(lines)]
        return [Strip.join(pair) for pair in zip(heads, lines, strict=False)]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """The width in cells on one line."""
        return self._whole.get_optimal_width(rules, container_width)

    def get_height(self, rules: RulesMap, width: int) -> int:
        """The height in lines."""
        return (
            self._whole.get_height(rules, width)
            if width < MIN_TEXT_CELLS
            else self.words.get_height(rules, width - self._indent)
        )


class NoticeText(Static):
    """The sentence behind its sign."""

    def __init__(self, level: Level, text: str) -> None:
        self._words = Content(cut(text))
        super().__init__(Hanging(SIGNS[level], self._words), markup=False, classes=f"notice -{level}")

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The words that were marked, without the sign."""
        return selection.extract(self._words.plain), "\n"
