"""What a search found: two lines for each hit, the passage around the one under the cursor, or words for when there is none."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ctxchat.core.search import Hit
from ctxchat.tui.style.hit_text import lines_of, passage_of
from ctxchat.tui.widgets.options import AnySizeList


class Hits(AnySizeList):
    """The list of what was found; its footer says what Enter does."""

    BINDINGS = [Binding("enter", "select", "go there", key_display="enter")]


class SearchResults(Vertical):
    """`session` is the one on screen. Says `OptionList.OptionHighlighted` and `OptionSelected`."""

    def __init__(self, session: str) -> None:
        super().__init__(id="found")
        self._session = session
        self._hits: Sequence[Hit] = ()
        self._words = ""

    def compose(self) -> ComposeResult:
        yield Static(id="nothing", markup=False)
        yield Hits(id="hits", markup=False)
        yield Static(id="passage", markup=False)

    def show(self, hits: Sequence[Hit], words: str, nothing: str) -> None:
        """These hits of a search for `words`; `nothing` is said where there are none."""
        self._hits, self._words = hits, words
        self._draw()
        self.list.highlighted = 0 if hits else None
        self.screen.set_class(not hits, "-nothing")
        self.query_one("#nothing", Static).update(nothing)
        self._show_passage()

    @property
    def list(self) -> Hits:
        """The hits as they stand."""
        return self.query_one(Hits)

    @property
    def chosen(self) -> Hit | None:
        """The hit under the cursor."""
        place = self.list.highlighted
        return self._hits[place] if place is not None and place < len(self._hits) else None

    def _draw(self) -> None:
        place, width = self.list.highlighted, max(16, (self.screen.size.width or 80) - 4)
        lines = (lines_of(hit, hit.session == self._session, width) for hit in self._hits)
        self.list.set_options([Option(each) for each in lines])
        self.list.highlighted = place

    def on_resize(self, event: Resize) -> None:
        if self._hits:
            self.call_after_refresh(self._draw)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._show_passage()

    def _show_passage(self) -> None:
        hit = self.chosen
        self.query_one("#passage", Static).update(passage_of(hit, self._words) if hit else "")
        self.screen.refresh_bindings()
