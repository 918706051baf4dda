"""Shows the hits of a search: two lines for each, the passage around the hit under the cursor, or a text if there are none; and
says what putting a hit back did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.search import Hit
from ctxchat.presentation.text import NOTE, WHO, clean, one_line, short
from ctxchat.presentation.usage_text import day_and_clock, percent, tilde
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.field import AnySizeList

OPEN, CLOSE = "\ue000", "\ue001"
"""Characters before and after each match in a snippet; of private use, so that no text has them."""

FOUND = "bold $text-accent"
"""The style of matches."""


def highlighted(marked: str, width: int = 0) -> Content:
    """A snippet (with `OPEN` and `CLOSE` around its matches) whose matches are styled; cut at the beginning, if need be, so that
    the first match is within `width` cells (0: never cut)."""
    shown = Content("")
    for i, piece in enumerate(re.split(f"[{OPEN}{CLOSE}]", clean(marked))):
        shown = shown.append(Content.styled(piece, FOUND) if i % 2 else Content(piece))
    first = min((span.start for span in shown.spans), default=0)
    if width and first > width // 2:
        start = first - width // 3
        word_start = shown.plain.find(" ", start, first) + 1  # at a word, if one begins before the match
        shown = Content("…").append(shown[word_start or start :])
    return shown


def passage_of(hit: Hit, query: str = "") -> Content:
    """The lines around a hit, with the words that matched in its snippet, and those of the query, styled."""
    words = {found.casefold() for found in re.findall(f"{OPEN}([^{CLOSE}]*){CLOSE}", hit.snippet)}
    words |= {word.casefold() for word in re.findall(r"\w{3,}", query)}
    text = clean(hit.passage)
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word.strip())
    shown = Content(text)
    for match in re.finditer(pattern, text, re.IGNORECASE) if pattern else ():
        shown = shown.stylize(FOUND, match.start(), match.end())
    return shown


MIN_TITLE_CELLS = 30
"""Cells that a session's title may take even if there is no room then for what follows it."""


def lines_of(hit: Hit, here: bool, width: int) -> Content:
    """Two lines for a hit: the snippet; and below it who wrote it, what putting it back costs, and where and when it was written.
    `here`: it is in the session on screen."""
    who = NOTE if hit.note else WHO.get(hit.role, hit.role)
    if hit.tool:
        who = f"{'result' if hit.role == 'tool' else 'call'} of {hit.tool}"
    before_title = [one_line(who, 24), f"~{short(hit.tokens)} tokens"]
    after_title = [f"turn {hit.turn}"] if hit.turn else []
    after_title += [*filter(None, [day_and_clock(hit.at)]), "in archive" if hit.compaction else "in window"]
    left = width - sum(len(fact) + 3 for fact in (*before_title, *after_title))
    title = "this session" if here else one_line(hit.title, max(MIN_TITLE_CELLS, left)) or "without a title"
    line = ""
    for fact in (*before_title, title, *after_title):
        if len(line) + 3 + len(fact) <= width:
            line += f" · {fact}" if line else fact
    words = highlighted(hit.snippet, width).truncate(width, ellipsis=True)
    return words.append("\n").append(Content.styled(line, MUTED))


def put_back_words(context_usage: ContextUsage) -> str:
    """The notice after something was put back: how full the window is, and by how many tokens too full."""
    full = f"Put back at the end, as a quotation: the window is {tilde(context_usage)}{percent(context_usage.pressure)} full."
    return (
        f"{full} That is {short(context_usage.excess)} too much: free up some of it." if context_usage.excess else full
    )


class Hits(AnySizeList):
    """The list of hits; the footer says what Enter does."""

    BINDINGS = [Binding("enter", "select", "go there", key_display="enter")]


class SearchResults(Vertical):
    """The hits and the passage around the highlighted one. `session` is the id of the session on screen. Posts
    `OptionList.OptionHighlighted` and `OptionSelected`."""

    def __init__(self, session: str) -> None:
        super().__init__(id="found")
        self._session = session
        self._hits: Sequence[Hit] = ()
        self._query = ""

    def compose(self) -> ComposeResult:
        yield Static(id="nothing", markup=False)
        yield Hits(id="hits", markup=False)
        yield Static(id="passage", markup=False)

    def show_hits(self, hits: Sequence[Hit], words: str, nothing: str) -> None:
        """Show the hits of a search for `words`; `nothing` is shown if there are none."""
        self._hits, self._query = hits, words
        self._draw()
        self.list.highlighted = 0 if hits else None
        self.screen.set_class(not hits, "-nothing")
        self.query_one("#nothing", Static).update(nothing)
        self._show_passage()

    @property
    def list(self) -> Hits:
        """The list widget."""
        return self.query_one(Hits)

    @property
    def chosen(self) -> Hit | None:
        """The hit under the cursor."""
        index = self.list.highlighted
        return self._hits[index] if index is not None and index < len(self._hits) else None

    def _draw(self) -> None:
        highlighted, width = self.list.highlighted, max(16, (self.screen.size.width or 80) - 4)
        lines = (lines_of(hit, hit.session == self._session, width) for hit in self._hits)
        self.list.set_options([Option(each) for each in lines])
        self.list.highlighted = highlighted

    def on_resize(self, event: Resize) -> None:
        if self._hits:
            self.call_after_refresh(self._draw)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._show_passage()

    def _show_passage(self) -> None:
        hit = self.chosen
        self.query_one("#passage", Static).update(passage_of(hit, self._query) if hit else "")
        self.screen.refresh_bindings()
