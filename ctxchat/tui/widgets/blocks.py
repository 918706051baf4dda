"""What a transcript is made of: what the person said, notices, errors, waits. One widget each, drawn from plain values.

All text is foreign: it is cleaned and enters as `Content` only. Tool calls are in `tool_block`, replies in `reply`,
compactions in `compaction_mark`.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Literal

from rich.segment import Segment
from textual.app import ComposeResult
from textual.content import Content
from textual.css.styles import RulesMap
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.attachments import Attached
from ctxchat.core.messages import Group
from ctxchat.tui.reading.text import clean, clock, cut, one_line, short

LEAST = 12
"""Cells below which nothing is given away for an indent."""


class Hanging(Visual):
    """`sign` and `words`; as text it is both, with a space between them."""

    def __init__(self, sign: str, words: Content) -> None:
        self.sign, self.words = sign, words
        self._whole = Content(f"{sign} ").append(words)
        self._indent = len(sign) + 1

    def __str__(self) -> str:
        return self._whole.plain

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """The lines, each as wide as they are."""
        if width < LEAST:
            return self._whole.render_strips(width, height, style, options)
        lines = self.words.render_strips(width - self._indent, height, style, options)
        heads = [f"{self.sign} ", *[" " * self._indent] * len(lines)]
        return [Strip([Segment(head, style.rich_style), *line]) for head, line in zip(heads, lines, strict=False)]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """In cells, on one line."""
        return self._whole.get_optimal_width(rules, container_width)

    def get_height(self, rules: RulesMap, width: int) -> int:
        """In lines."""
        return (
            self._whole.get_height(rules, width)
            if width < LEAST
            else self.words.get_height(rules, width - self._indent)
        )


ATTACHED_SIGN = "▪"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

Level = Literal["info", "warning", "error"]
SIGNS: dict[Level, str] = {"info": "·", "warning": "!", "error": "✗"}


def spin(seconds: float) -> str:
    """The spinner after this time."""
    return SPINNER[int(seconds * 8) % len(SPINNER)]


def spread(left: Content, right: Content, width: int) -> Content:
    """Two ends of one line; the left is cut with `…` where both do not fit, the right goes where even that does not help."""
    room = width - right.cell_length - 1
    if room < min(8, left.cell_length) and right:
        return spread(left, Content(""), width)
    left = left.truncate(max(1, room), ellipsis=True)
    return left.append(" " * max(1 if right else 0, width - left.cell_length - right.cell_length)).append(right)


class Line(Widget):
    """One line that fits itself to its width."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    def line(self, width: int) -> Content:
        """What to draw in this many cells."""
        raise NotImplementedError

    def render(self) -> Content:
        return self.line(self.size.width)


class UserHead(Line):
    """`You`, and when."""

    def __init__(self, at: str, label: str = "You") -> None:
        super().__init__()
        self._label, self._at = Content.styled(label, "bold $accent"), Content.styled(clock(at), "$text-muted")

    def line(self, width: int) -> Content:
        return spread(self._label, self._at, width)


class UserBlock(Widget):
    """What the person said, with a bar at its left. Very long texts show their head and tail; the record has it all."""

    HEAD, TAIL = 60, 20

    def __init__(self, text: str, at: str = "", label: str = "You", *, attached: Sequence[Attached] = ()) -> None:
        super().__init__(classes="user")
        self._text, self._at, self._label = text, at, label
        self._attached = attached

    def compose(self) -> ComposeResult:
        yield UserHead(self._at, self._label)
        if self._text.strip() or not self._attached:
            yield Static(Content(excerpt(clean(self._text), self.HEAD, self.TAIL)), markup=False)
        for each in self._attached:
            yield AttachedLine(each)


class AttachedLine(Line):
    """What went along with a message: its name, its size, its tokens."""

    def __init__(self, attached: Attached) -> None:
        super().__init__()
        self._what = Content.assemble((f"{ATTACHED_SIGN} ", "$text-accent"), one_line(attached.name, 200))
        self._figures = Content.styled(attached_size(attached), "$text-muted")

    def line(self, width: int) -> Content:
        return spread(self._what, self._figures, width)


def attached_size(attached: Attached) -> str:
    """`1280×800   1.1k`, `412 lines   3.1k`."""
    size = f"{attached.width}×{attached.height}" if attached.width else ""
    if attached.kind == "text":
        size = f"{attached.lines:,} line{'' if attached.lines == 1 else 's'}"
    return "   ".join(words for words in (size, short(attached.tokens) if attached.tokens else "") if words)


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


class NoticeBlock(Static):
    """A sentence from ctxchat."""

    def __init__(self, level: Level, text: str) -> None:
        self._words = Content(cut(text))
        super().__init__(Hanging(SIGNS[level], self._words), markup=False, classes=f"notice -{level}")

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The words that were marked, without the sign."""
        return selection.extract(self._words.plain), "\n"


class ErrorBlock(Static):
    """A turn that could not go on, and what to do about it."""

    def __init__(self, text: str, hint: str = "") -> None:
        words = Content.styled(excerpt(clean(text), 12, 4), "$text-error")
        if hint:
            words = words.append("\n").append(Content.styled(clean(hint), "$text-muted"))
        super().__init__(Hanging("✗", words), markup=False, classes="error")


class QuoteBlock(Static):
    """A note in the conversation that no person wrote: put back from the record, from a hook."""

    def __init__(self, group: Group) -> None:
        who = f"put back {group.source[8:]}" if group.source.startswith("restore:") else group.source or group.kind
        head = Content.styled(f"{one_line(who, 60)}\n", "italic $text-muted")
        text = "\n".join(m.text for m in group.messages)
        super().__init__(head.append(Content(excerpt(clean(text), 8, 2))), markup=False, classes="quote")


class Waiting(Line):
    """Something is under way and has nothing to show yet: a spinner, what, how long, how to stop it."""

    def __init__(self, what: str, stop: str = "esc stops") -> None:
        super().__init__(classes="waiting")
        self.what, self._stop, self._since = what, stop, monotonic()

    def on_mount(self) -> None:
        self.set_interval(1 / 8, self.refresh)

    def line(self, width: int) -> Content:
        seconds = monotonic() - self._since
        left = Content.assemble((spin(seconds), "$accent"), " ", (clean(self.what), "$text-muted"))
        right = Content.styled(f"{seconds:.0f} s  {self._stop}" if seconds >= 1 else "", "$text-muted")
        return spread(left, right, width)


class RetryBlock(Line):
    """The same request goes out again; counts down."""

    def __init__(self, attempt: int, after_seconds: float, cause: str) -> None:
        super().__init__(classes="notice -warning")
        self._cause = one_line(cause, 200) or "no answer"
        self._over = ""
        self._attempt, self._until = attempt, monotonic() + after_seconds

    def on_mount(self) -> None:
        self.set_interval(1 / 4, self.refresh)

    def over(self, *, stopped: bool = False) -> None:
        """The request went out again and was answered, or the wait was stopped."""
        self._over = "stopped" if stopped else "tried again"
        self.refresh()

    def line(self, width: int) -> Content:
        if self._over:
            return spread(Content(f"! {self._cause}"), Content(self._over), width)
        left = max(0.0, self._until - monotonic())
        when = f"again in {left:.0f} s" if left >= 0.5 else "trying again"
        words = Content(f"! {self._cause}")
        if width < 60:
            return spread(words, Content(f"{left:.0f} s"), width)
        return spread(words, Content(f"{when}, attempt {self._attempt + 1}   esc stops"), width)
