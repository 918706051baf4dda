"""What a search found: two lines for each hit, the passage around the one under the cursor, or words for when there is none; and
what putting it back did.
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
"""What stands around the words that were found: characters no snippet holds otherwise."""

FOUND = "bold $text-accent"


def highlighted(marked: str, width: int = 0) -> Content:
    """A snippet with what was found made to stand out; in `width` cells the first of it is on screen."""
    shown = Content("")
    for i, piece in enumerate(re.split(f"[{OPEN}{CLOSE}]", clean(marked))):
        shown = shown.append(Content.styled(piece, FOUND) if i % 2 else Content(piece))
    first = min((span.start for span in shown.spans), default=0)
    if width and first > width // 2:
        start = first - width // 3
        word = shown.plain.find(" ", start, first) + 1  # on a word, where one begins before it
        shown = Content("…").append(shown[word or start :])
    return shown


def passage_of(hit: Hit, query: str = "") -> Content:
    """The lines around what was found, the same words standing out, and those of the query."""
    words = {found.casefold() for found in re.findall(f"{OPEN}([^{CLOSE}]*){CLOSE}", hit.snippet)}
    words |= {word.casefold() for word in re.findall(r"\w{3,}", query)}
    text = clean(hit.passage)
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if word.strip())
    shown = Content(text)
    for match in re.finditer(pattern, text, re.IGNORECASE) if pattern else ():
        shown = shown.stylize(FOUND, match.start(), match.end())
    return shown


MIN_TITLE_CELLS = 30
"""Columns that a session's title may take before what stands behind it goes."""


def lines_of(hit: Hit, here: bool, width: int) -> Content:
    """Two lines: the words, and where they stand and what putting them back costs. `here`: in the session on screen."""
    who = NOTE if hit.note else WHO.get(hit.role, hit.role)
    if hit.tool:
        who = f"{'result' if hit.role == 'tool' else 'call'} of {hit.tool}"
    said = [one_line(who, 24), f"~{short(hit.tokens)} tokens"]
    told = [f"turn {hit.turn}"] if hit.turn else []
    told += [*filter(None, [day_and_clock(hit.at)]), "in archive" if hit.compaction else "in window"]
    left = width - sum(len(fact) + 3 for fact in (*said, *told))
    title = "this session" if here else one_line(hit.title, max(MIN_TITLE_CELLS, left)) or "without a title"
    line = ""
    for fact in (*said, title, *told):
        if len(line) + 3 + len(fact) <= width:
            line += f" · {fact}" if line else fact
    words = highlighted(hit.snippet, width).truncate(width, ellipsis=True)
    return words.append("\n").append(Content.styled(line, MUTED))


def put_back_words(context_usage: ContextUsage) -> str:
    """How full the window is after something was put back, and by how much too full."""
    full = f"Put back at the end, as a quotation: the window is {tilde(context_usage)}{percent(context_usage.pressure)} full."
    return (
        f"{full} That is {short(context_usage.excess)} too much: free up some of it." if context_usage.excess else full
    )


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

    def show_hits(self, hits: Sequence[Hit], words: str, nothing: str) -> None:
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
