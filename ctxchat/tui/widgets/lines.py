"""Lines, as blocks draw them for a width: words that can be marked and copied, and what stands before and behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.content import Content
from textual.style import Style

HARD = "\n"
"""What stands behind a line where its text ends there."""

MAX_LINE_CHARS = 20_000
"""Characters of one line of text from which on only its beginning is drawn: much more, and nothing else happens for seconds."""

MIN_TEXT_CELLS = 12
"""Cells below which nothing is given away for an indent."""

MAX_PROSE_CELLS = 100
"""Cells that a line of prose has at most, however wide the screen is: an eye loses its way back from the end of a longer one."""

NOTHING = Content("")


class DrawnLine:
    """One line on screen.

    `gutter` stands before the words and is not copied, `sign` is copied in its place (of a point of a list). `fill` is the style
    of the cells behind them, `glue` what is between the words of this line and the next when they are copied: a line end, or the
    blank (or nothing) a long text was broken at. `wide` is for code, which is never broken: cells of the longest line of its
    block where that has no room, 0 where all have; the words are whole, and a part of them is painted. `source` is the text of
    a code block that begins here, for copying.
    """

    __slots__ = ("fill", "glue", "gutter", "sign", "source", "wide", "words")

    def __init__(self, words: Content, gutter: Content = NOTHING, glue: str = HARD) -> None:
        self.words, self.gutter, self.glue = words, gutter, glue
        self.fill = self.sign = self.source = ""
        self.wide = 0

    def like(self, other: DrawnLine) -> bool:
        """Whether both lines look the same."""
        return self is other or (
            self.words.is_same(other.words)
            and self.gutter.is_same(other.gutter)
            and (self.fill, self.glue, self.wide) == (other.fill, other.glue, other.wide)
        )


def wrapped(words: Content, width: int) -> list[DrawnLine]:
    """The text in lines of at most `width` cells, broken between words where that can be."""
    lines: list[DrawnLine] = []
    for text in words.split("\n", allow_blank=True):
        if len(text) > MAX_LINE_CHARS:
            rest = len(text) - MAX_LINE_CHARS
            text = text[:MAX_LINE_CHARS].append(Content.styled(f" … {rest:,} more characters", "$text-muted"))
        if text.cell_length <= width:
            lines.append(DrawnLine(text))
            continue
        plain, at = text.plain, 0
        broken = text.wrap(max(1, width))
        for piece in broken:
            at += len(piece.plain)
            blank = len(plain) - at - len(plain[at:].lstrip(" "))
            lines.append(DrawnLine(piece, glue=plain[at : at + blank]))
            at += blank
        lines[-1].glue = HARD
    return lines


def code_lines(code: Content, width: int) -> list[DrawnLine]:
    """Lines of code as they are. The last of the `width` cells is kept for the sign of those that are cut there."""
    lines = [DrawnLine(text) for text in code.split("\n", allow_blank=True)]
    longest = max((line.words.cell_length for line in lines), default=0)
    for line in lines:
        line.wide = longest if longest >= width else 0
    return lines


def hung(lines: Iterable[DrawnLine], first: Content, more: Content | None = None) -> list[DrawnLine]:
    """The lines with `first` before the first of them and `more` before the others, blanks as wide where nothing is said."""
    rest = Content(" " * first.cell_length) if more is None else more
    found = list(lines)
    for place, line in enumerate(found):
        line.gutter = (rest if place else first).append(line.gutter)
    return found


def target(words: Content, what: str, about: str = "") -> Content:
    """The words as something to press: whoever owns the line is told `what`, and which."""
    return words.stylize(Style.from_meta({"press": (what, about)}))


def spread(left: Content, right: Content, width: int) -> Content:
    """Two ends of one line; the left is cut with `…` where both do not fit, the right goes where even that does not help."""
    room = width - right.cell_length - 1
    if room < min(8, left.cell_length) and right:
        return spread(left, Content(""), width)
    left = left.truncate(max(1, room), ellipsis=True)
    return left.append(" " * max(1 if right else 0, width - left.cell_length - right.cell_length)).append(right)


def excerpt(text: str, head: int, tail: int, widest: int = 4000) -> str:
    """A text of at most head + tail lines, with a line that says what is between; single lines are cut as well."""
    lines = text.strip("\n").split("\n")
    left_out = len(lines) - head - tail
    if left_out > 0:
        lines = [*lines[:head], f"… {left_out:,} more lines …", *lines[-tail:]]
    cut = [
        line if len(line) <= widest else f"{line[:widest]} … {len(line) - widest:,} more characters" for line in lines
    ]
    return "\n".join(cut)


def packed(pieces: Sequence[Content], width: int, gap: str) -> list[Content]:
    """The pieces in lines of at most `width` cells, each whole."""
    lines: list[Content] = []
    for piece in pieces:
        if lines and lines[-1].cell_length + len(gap) + piece.cell_length <= width:
            lines[-1] = lines[-1].append(gap).append(piece)
        else:
            lines.append(piece)
    return lines
