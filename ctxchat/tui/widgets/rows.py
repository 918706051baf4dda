"""A list of rows in columns that draws only what is on screen, so that ten thousand rows scroll like ten.

Cells are plain text, never markup. Where it is narrow, the columns that matter least go first. Knows nothing of what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any, Generic, TypeVar

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ctxchat.core.sections import SECTIONS
from ctxchat.tui.widgets.gauge import component

Item = TypeVar("Item")

Cell = str | tuple[str, str]
"""Text, or text and the name of a style: `dim`, `warn`, `good`, `strong`, or a component class of the gauge."""

LineBelow = Callable[[Any, int], Cell]
"""A further line of an item, in words for so many cells."""


class Column(msgspec.Struct, frozen=True):
    """One column. Width 0 takes its `share` of what is left, `least` cells at least; the higher its `rank`, the earlier it goes
    where it is narrow; rank 0 stays. Of a `path` the end is kept where it is too long: all behind the last slash, or the last
    of it."""

    title: str
    width: int = 0
    right: bool = False
    rank: int = 0
    least: int = 12
    path: bool = False
    share: int = 1


_WHOLE_LINE = (Column("", least=1),)


def fit_columns(columns: Sequence[Column], width: int) -> list[tuple[int, int, int]]:
    """Of the columns that are shown in so many cells: the place of each, where it begins, how wide it is."""
    shown = _fitting_columns(columns, width)
    gaps = [_gap(columns[i]) for i in shown[:-1]]
    if _least(columns, shown, width) - len(gaps) + sum(gaps) > width:
        gaps = [1] * len(gaps)
    room = max(0, width - sum(columns[i].width for i in shown) - sum(gaps))
    shares = sum(columns[i].share for i in shown if columns[i].width == 0)
    found: list[tuple[int, int, int]] = []
    start = 0
    for place, between in zip(shown, (*gaps, 0), strict=True):
        wide = columns[place].width or room * columns[place].share // shares
        found.append((place, start, wide))
        start += wide + between
    return found


def _gap(column: Column) -> int:
    """Cells behind it where there is room for more than one: a sign belongs to what it stands before."""
    return 1 if column.width == 1 else 2


def _fitting_columns(columns: Sequence[Column], width: int) -> list[int]:
    shown = list(range(len(columns)))
    while goers := [i for i in shown if columns[i].rank]:
        if _least(columns, shown, width) <= width:
            break
        shown.remove(max(goers, key=lambda i: (columns[i].rank, i)))
    return shown


def _least(columns: Sequence[Column], shown: Sequence[int], width: int) -> int:
    """Cells that these columns need, with one between two of them."""
    return sum(columns[i].width or min(columns[i].least, width) for i in shown) + max(0, len(shown) - 1)


def fitted(text: str, width: int, right: bool = False) -> str:
    """The text in exactly so many cells, cut with `…`."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    return " " * (width - cell_len(text)) + text if right else set_cell_size(text, width)


def path_end(text: str, width: int) -> str:
    """As much of the end of a path as fits: `anthropic/claude-haiku-4-5`, `claude-haiku-4-5`, `…haiku-4-5`."""
    name = text if cell_len(text) <= width else text.rsplit("/", 1)[-1]
    while cell_len(name) > max(1, width):
        name = "…" + name.removeprefix("…")[1:]
    return name


class Rows(ScrollView, Generic[Item], can_focus=True):
    """Rows of one kind of item, with a cursor. Says when the cursor moved, when an item was chosen, when a title was clicked.

    An item is one line of cells, and under it as many lines as there are functions in `below`; a free line parts such items.
    """

    COMPONENT_CLASSES = {
        *(component(name) for name in SECTIONS),
        "rows--title",
        "rows--cursor",
        "rows--dim",
        "rows--warn",
        "rows--good",
        "rows--strong",
    }
    BINDINGS = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
    ]

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor is on another item, or on none."""

        def __init__(self, rows: Rows[Any], item: Any) -> None:
            super().__init__()
            self.rows, self.item = rows, item

        @property
        def control(self) -> Rows[Any]:
            return self.rows

    class Chosen(Moved):
        """A double click. Enter belongs to the screen, which says in its footer what it does."""

    class TitleClicked(Message):
        """A column's title was clicked."""

        def __init__(self, rows: Rows[Any], title: str) -> None:
            super().__init__()
            self.rows, self.title = rows, title

        @property
        def control(self) -> Rows[Any]:
            return self.rows

    def __init__(
        self,
        columns: Sequence[Column],
        draw: Callable[[Item], Sequence[Cell]],
        *,
        empty: str = "",
        titles: bool = True,
        below: Sequence[LineBelow] = (),
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._below = below
        self._columns, self._draw, self._empty, self._titles = columns, draw, empty, titles
        self._items: Sequence[Item] = ()
        self.filled = False
        """It was shown something, if only that there is nothing."""

    # ── what it shows ──

    def show_items(self, items: Sequence[Item], *, at: int | None = None, empty: str | None = None) -> None:
        """Show these; the cursor stays where it was unless told `at` which place. `empty` is said from now on where there are
        none."""
        self._items, self.filled = items, True
        self._empty = self._empty if empty is None else empty
        self._resize()
        self.cursor = self._inside(self.cursor if at is None else at)
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(self, self.current))

    def retitle(self, columns: Sequence[Column]) -> None:
        """Other titles over the same columns."""
        self._columns = columns
        self.refresh()

    @property
    def items(self) -> Sequence[Item]:
        """What is shown."""
        return self._items

    @property
    def current(self) -> Item | None:
        """The item under the cursor."""
        return self._items[self.cursor] if 0 <= self.cursor < len(self._items) else None

    # ── moving ──

    def watch_cursor(self, old: int, new: int) -> None:
        if old != new:
            self._reveal()
            self.refresh()
            self.post_message(self.Moved(self, self.current))

    def action_move(self, by: int) -> None:
        self.cursor = self._inside(self.cursor + by)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, (self.size.height - self._head) // self._item_height - 1))

    def on_click(self, event: events.Click) -> None:
        line = event.y - self.gutter.top
        if self._head and line == 0:
            title = self._title_at(event.x - self.gutter.left)
            if title:
                self.post_message(self.TitleClicked(self, title))
            return
        place = (line - self._head + self.scroll_offset.y) // self._item_height
        if 0 <= place < len(self._items):
            again = place == self.cursor and event.chain > 1
            self.cursor = place
            if again:
                self.post_message(self.Chosen(self, self.current))

    def _inside(self, place: int) -> int:
        return max(0, min(place, len(self._items) - 1))

    @property
    def _head(self) -> int:
        """Lines of titles; over nothing there are none."""
        return int(self._titles and bool(self._items))

    @property
    def _item_height(self) -> int:
        """Lines from one item to the next."""
        return len(self._below) + 2 if self._below else 1

    @property
    def _lines(self) -> int:
        """Lines of all that is shown."""
        return max(0, len(self._items) * self._item_height - bool(self._below)) + self._head

    def _reveal(self) -> None:
        height = max(1, self.scrollable_content_region.height - self._head)
        top = self.scroll_offset.y
        first = self.cursor * self._item_height
        last = first + len(self._below)
        if first < top or last - first >= height:
            self.scroll_to(y=first, animate=False)
        elif last >= top + height:
            self.scroll_to(y=last - height + 1, animate=False)

    def _resize(self) -> None:
        lines = self._lines
        self.virtual_size = Size(0, lines)
        self.set_class(
            lines <= self.screen.size.height // 2, "-few"
        )  # what is said of a row stands right below the list then

    def on_resize(self) -> None:
        self._resize()
        self.call_after_refresh(self._reveal)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._lines or max(1, len(wrap(self._empty, max(1, width))))

    # ── drawing ──

    @property
    def _width(self) -> int:
        """Cells for a row: one is left free beside the scrollbar, so that no figure touches it."""
        return max(0, self.scrollable_content_region.width - bool(self.show_vertical_scrollbar))

    def render_line(self, y: int) -> Strip:
        width, plain = self._width, self.rich_style
        place, part = divmod(y - self._head + self.scroll_offset.y, self._item_height)
        if self._head and y == 0:
            strip = self._row_strip(
                [(c.title, "") for c in self._columns], width, self._style("title", plain), self._columns
            )
        elif 0 <= place < len(self._items) and part <= len(self._below):
            strip = self._row(place, part, width, plain)
        elif not self._items:
            said = dict(enumerate(wrap(self._empty, max(1, width)), self._head))
            strip = Strip([Segment(fitted(said.get(y, ""), width), self._style("dim", plain))])
        else:
            strip = Strip.blank(width, plain)
        return strip.adjust_cell_length(self.size.width, plain)

    def _row(self, place: int, part: int, width: int, plain: Style) -> Strip:
        """A line of an item: its cells, or one of those below them."""
        item = self._items[place]
        drawn = self._draw(item) if part == 0 else (self._below[part - 1](item, width),)
        columns = self._columns if part == 0 else _WHOLE_LINE
        cells = [c if isinstance(c, tuple) else (c, "") for c in drawn]
        if place != self.cursor:
            return self._row_strip(cells, width, plain, columns)
        cursor = self.get_component_rich_style("rows--cursor")
        if self.app.no_color:
            cursor = plain + Style(reverse=self.has_focus, underline=not self.has_focus)
        return self._row_strip(
            [(text, name if name.startswith("gauge") else "") for text, name in cells], width, cursor, columns
        )

    def _row_strip(
        self, cells: Sequence[tuple[str, str]], width: int, ground: Style, columns: Sequence[Column]
    ) -> Strip:
        segments: list[Segment] = []
        end = 0
        for place, start, room in fit_columns(columns, width):
            text, name = cells[place] if place < len(cells) else ("", "")
            column = columns[place]
            text = path_end(text, room) if column.path else text
            segments.append(Segment(" " * (start - end), ground))
            segments.append(Segment(fitted(text, room, column.right), self._style(name, ground)))
            end = start + room
        return Strip(segments).adjust_cell_length(width, ground)

    def _style(self, name: str, ground: Style) -> Style:
        if not name or self.app.no_color:
            return ground
        if name.startswith("gauge"):
            return self.get_component_rich_style(name)
        return ground + Style(
            color=self.get_component_rich_style(f"rows--{name}").color, bold=name in ("strong", "title")
        )

    def _title_at(self, x: int) -> str:
        for place, start, room in fit_columns(self._columns, self._width):
            if start <= x < start + room:
                return self._columns[place].title
        return ""
