"""A list of rows in columns that draws only what is on screen, so that ten thousand rows scroll like ten.

Cells are plain text, never markup. In a narrow window the least important columns are left out. Knows nothing of what it shows.
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
"""Gives a further line of an item, for a width in cells."""


class Column(msgspec.Struct, frozen=True):
    """One column of a list, `width` cells wide.

    With width 0 it takes its `share` of the room that is left, but at least `least` cells. In a narrow window the columns with
    the highest `rank` are left out first; those of rank 0 stay. Text is aligned at the `right` if set. A `path` that is too long
    is cut at its beginning: to what follows its last slash, or to the end of that.
    """

    title: str
    width: int = 0
    right: bool = False
    rank: int = 0
    least: int = 12
    path: bool = False
    share: int = 1


_WHOLE_LINE = (Column("", least=1),)


def fit_columns(columns: Sequence[Column], width: int) -> list[tuple[int, int, int]]:
    """The columns that fit into `width` cells: for each its index, the cell it begins at, and its width."""
    shown = _fitting_columns(columns, width)
    gaps = [_gap(columns[i]) for i in shown[:-1]]
    if _min_width(columns, shown, width) - len(gaps) + sum(gaps) > width:
        gaps = [1] * len(gaps)
    room = max(0, width - sum(columns[i].width for i in shown) - sum(gaps))
    shares = sum(columns[i].share for i in shown if columns[i].width == 0)
    fitting: list[tuple[int, int, int]] = []
    start = 0
    for index, gap in zip(shown, (*gaps, 0), strict=True):
        column_width = columns[index].width or room * columns[index].share // shares
        fitting.append((index, start, column_width))
        start += column_width + gap
    return fitting


def _gap(column: Column) -> int:
    """Cells behind a column if there is room: one behind a sign, which belongs to the next column; else two."""
    return 1 if column.width == 1 else 2


def _fitting_columns(columns: Sequence[Column], width: int) -> list[int]:
    """The indexes of the columns that fit, left to right."""
    shown = list(range(len(columns)))
    while removable := [i for i in shown if columns[i].rank]:
        if _min_width(columns, shown, width) <= width:
            break
        shown.remove(max(removable, key=lambda i: (columns[i].rank, i)))
    return shown


def _min_width(columns: Sequence[Column], shown: Sequence[int], width: int) -> int:
    """Cells that the columns with the indexes `shown` need at least, with one cell between two of them."""
    return sum(columns[i].width or min(columns[i].least, width) for i in shown) + max(0, len(shown) - 1)


def fitted(text: str, width: int, right: bool = False) -> str:
    """The text in exactly `width` cells: cut with `…`, or filled with blanks, at its left if aligned at the `right`."""
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
    """A list of items of one kind, with a cursor. Posts a message when the cursor moved, an item was chosen or a title was
    clicked.

    An item is one line of cells (from `draw`) and below it one line for each function in `below`; then an empty line separates
    the items. `empty` is shown if there are no items.
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
        """The cursor is on another item, or (None) on none."""

        def __init__(self, rows: Rows[Any], item: Any) -> None:
            super().__init__()
            self.rows, self.item = rows, item

        @property
        def control(self) -> Rows[Any]:
            return self.rows

    class Chosen(Moved):
        """An item was clicked twice. Enter is not handled here: it belongs to the screen, whose footer says what it does."""

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
        """Whether `show_items` was called, if only with no items."""

    # ── what it shows ──

    def show_items(self, items: Sequence[Item], *, at: int | None = None, empty: str | None = None) -> None:
        """Show these items, with the cursor on the index `at` (None: where it was). `empty`, if given, is shown from now on when
        there are no items."""
        self._items, self.filled = items, True
        self._empty = self._empty if empty is None else empty
        self._resize()
        self.cursor = self._clamped(self.cursor if at is None else at)
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved(self, self.current))

    def retitle(self, columns: Sequence[Column]) -> None:
        """Replace the columns by the same ones with other titles."""
        self._columns = columns
        self.refresh()

    @property
    def items(self) -> Sequence[Item]:
        """The items shown."""
        return self._items

    @property
    def current(self) -> Item | None:
        """The item under the cursor."""
        return self._items[self.cursor] if 0 <= self.cursor < len(self._items) else None

    # ── moving ──

    def watch_cursor(self, old: int, new: int) -> None:
        if old != new:
            self._scroll_to_cursor()
            self.refresh()
            self.post_message(self.Moved(self, self.current))

    def action_move(self, by: int) -> None:
        self.cursor = self._clamped(self.cursor + by)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, (self.size.height - self._title_lines) // self._item_height - 1))

    def on_click(self, event: events.Click) -> None:
        line = event.y - self.gutter.top
        if self._title_lines and line == 0:
            title = self._title_at(event.x - self.gutter.left)
            if title:
                self.post_message(self.TitleClicked(self, title))
            return
        index = (line - self._title_lines + self.scroll_offset.y) // self._item_height
        if 0 <= index < len(self._items):
            double = index == self.cursor and event.chain > 1
            self.cursor = index
            if double:
                self.post_message(self.Chosen(self, self.current))

    def _clamped(self, index: int) -> int:
        """The nearest index that there is."""
        return max(0, min(index, len(self._items) - 1))

    @property
    def _title_lines(self) -> int:
        """Number of lines with titles: none if there are no items."""
        return int(self._titles and bool(self._items))

    @property
    def _item_height(self) -> int:
        """Lines from one item to the next."""
        return len(self._below) + 2 if self._below else 1

    @property
    def _line_count(self) -> int:
        """Number of lines of titles and items together."""
        return max(0, len(self._items) * self._item_height - bool(self._below)) + self._title_lines

    def _scroll_to_cursor(self) -> None:
        """Bring the whole item under the cursor into sight."""
        height = max(1, self.scrollable_content_region.height - self._title_lines)
        top = self.scroll_offset.y
        first = self.cursor * self._item_height
        last = first + len(self._below)
        if first < top or last - first >= height:
            self.scroll_to(y=first, animate=False)
        elif last >= top + height:
            self.scroll_to(y=last - height + 1, animate=False)

    def _resize(self) -> None:
        lines = self._line_count
        self.virtual_size = Size(0, lines)
        self.set_class(
            lines <= self.screen.size.height // 2, "-few"
        )  # then the description of a row stands right below the list

    def on_resize(self) -> None:
        self._resize()
        self.call_after_refresh(self._scroll_to_cursor)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._line_count or max(1, len(wrap(self._empty, max(1, width))))

    # ── drawing ──

    @property
    def _width(self) -> int:
        """Width of a row in cells: one is left free beside the scrollbar, so that no figure touches it."""
        return max(0, self.scrollable_content_region.width - bool(self.show_vertical_scrollbar))

    def render_line(self, y: int) -> Strip:
        width, plain = self._width, self.rich_style
        index, part = divmod(y - self._title_lines + self.scroll_offset.y, self._item_height)
        if self._title_lines and y == 0:
            strip = self._row_strip(
                [(c.title, "") for c in self._columns], width, self._style("title", plain), self._columns
            )
        elif 0 <= index < len(self._items) and part <= len(self._below):
            strip = self._row(index, part, width, plain)
        elif not self._items:
            text_lines = dict(enumerate(wrap(self._empty, max(1, width)), self._title_lines))
            strip = Strip([Segment(fitted(text_lines.get(y, ""), width), self._style("dim", plain))])
        else:
            strip = Strip.blank(width, plain)
        return strip.adjust_cell_length(self.size.width, plain)

    def _row(self, index: int, part: int, width: int, plain: Style) -> Strip:
        """One line of an item: its cells (`part` 0), or one of the lines below them."""
        item = self._items[index]
        drawn = self._draw(item) if part == 0 else (self._below[part - 1](item, width),)
        columns = self._columns if part == 0 else _WHOLE_LINE
        cells = [c if isinstance(c, tuple) else (c, "") for c in drawn]
        if index != self.cursor:
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
        for index, start, room in fit_columns(columns, width):
            text, name = cells[index] if index < len(cells) else ("", "")
            column = columns[index]
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
        """The title of the column at a cell; empty between columns."""
        for index, start, room in fit_columns(self._columns, self._width):
            if start <= x < start + room:
                return self._columns[index].title
        return ""
