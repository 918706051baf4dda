"""What a transcript is made of: what the person said, notices, errors, waits, marks. One widget each, drawn from plain values.

All text is foreign: it is cleaned and enters as `Content` only. Tool calls are in `tool_block`, replies in `reply`.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Literal

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.selection import Selection
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.attachments import Attached
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.manual_changes import put_back
from ctxchat.core.messages import Group
from ctxchat.core.record import CompactionRecord
from ctxchat.core.words import count
from ctxchat.tui.reading.history import folded_messages
from ctxchat.tui.reading.text import clean, clock, one_line, short
from ctxchat.tui.widgets.hanging import Hanging

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
        self._words = Content(clean(text))
        super().__init__(Hanging(SIGNS[level], self._words), markup=False, classes=f"notice -{level}")

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        """The words that were marked, without the sign."""
        return selection.extract(self._words.plain), "\n"


class ErrorBlock(Static):
    """A turn that could not go on, and what to do about it."""

    def __init__(self, text: str, hint: str = "") -> None:
        words = Content.styled(f"✗ {excerpt(clean(text), 12, 4)}", "$text-error")
        if hint:
            words = words.append("\n  ").append(Content.styled(clean(hint), "$text-muted"))
        super().__init__(words, markup=False, classes="error")


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


class CompactionMark(Widget, can_focus=True):
    """A ruled line where a compaction was made, with what can be done about it."""

    BINDINGS = [
        Binding("v,enter", "choose('view')", "View", show=False),
        Binding("u", "choose('undo')", "Undo", show=False),
        Binding("b", "choose('branch')", "Branch", show=False),
        Binding("r", "choose('re-insert')", "Re-insert", show=False),
    ]

    class Chosen(Message):
        """A person wants to view, undo or branch from a compaction, or have what it lost."""

        def __init__(self, change: Change, what: str) -> None:
            super().__init__()
            self.change, self.what = change, what

    def __init__(self, change: Change, facts_back: bool = False) -> None:
        super().__init__(classes="mark")
        self._change, self._facts_back = change, facts_back

    def keep_up(self, ledger: Ledger) -> None:
        """Tell of the compaction as it is in force: some of what it put away, or lost, may be back."""
        change = next((c for c in ledger.compactions if c.id == self._change.id), self._change)
        back = change.id in put_back(ledger)
        if change is not self._change or back != self._facts_back:
            self._change, self._facts_back = change, back
            self.refresh(layout=True)

    def render(self) -> Content:
        """Rule, figures, and the words to choose from; as many lines as they need where one is too narrow."""
        width = self.size.width
        figures = [Content.styled(words, "$text") for words in self._figures(self._change.record, wide=width >= 30)]
        verbs = [self._verb(what, words) for what, words in self._verbs()]
        rule = Content.styled("──── " if width >= 30 else "─ ", "$rule")
        one = rule.append(Content("  ").join(figures)).append("   ").append(Content("   ").join(verbs)).append(" ")
        at = Content.styled(clock(self._change.at), "$text-muted")
        if one.cell_length + at.cell_length + 4 <= width:
            fill = Content.styled("─" * (width - one.cell_length - at.cell_length - 1) + " ", "$rule")
            return one.append(fill).append(at)
        indent = Content("     " if width >= 30 else " ")
        first, *more = _lines(figures, width - rule.cell_length, "  ")
        head = rule.append(first).append(" ").truncate(width, ellipsis=True)
        head = head.append(Content.styled("─" * max(0, width - head.cell_length), "$rule"))
        more += _lines(verbs, width - indent.cell_length, "   " if width >= 60 else "  ")
        return Content("\n").join([head, *(indent.append(line).truncate(width, ellipsis=True) for line in more)])

    def _figures(self, record: CompactionRecord | None, *, wide: bool) -> list[str]:
        folded = folded_messages(self._change, record)
        words = [f"{count(folded, 'message')} compacted" if wide else f"{folded:,} compacted"]
        if record:
            words.append(f"−{short(max(0, record.freed))}")
            if record.back.messages:
                words.append(f"{record.back.messages:,} put back")
            elif record.facts.found:
                of = f" of {count(record.facts.found, 'fact')}" if wide else f" of {record.facts.found}"
                back = f", {len(record.lost)} put back" if self._facts_back else ""
                words.append(f"kept {record.facts.kept}{of}{back}")
        return words

    def _verbs(self) -> list[tuple[str, str]]:
        """What can be done, and how that reads."""
        lost = len(self._change.record.lost) if self._change.record else 0
        verbs = [("view", "view"), ("undo", "undo"), ("branch", "branch")]
        return [*verbs, ("re-insert", f"re-insert {lost}")] if lost and not self._facts_back else verbs

    def _verb(self, what: str, words: str) -> Content:
        return Content.styled(words, "$text-accent").append(Content.styled(f" {what[0]}", "$text-muted"))

    def on_click(self, event: Click) -> None:
        """A click on one of the words."""
        line = self.render().plain.split("\n")
        row = line[event.y] if event.y < len(line) else ""
        for what, words in self._verbs():
            start = row.find(f"{words} {what[0]}")
            if start >= 0 and start <= event.x < start + len(words) + 2:
                event.stop()
                self.action_choose(what)

    def action_choose(self, what: str) -> None:
        if what in dict(self._verbs()):
            self.post_message(self.Chosen(self._change, what))


def _lines(pieces: Sequence[Content], width: int, gap: str) -> list[Content]:
    """The pieces in lines of at most `width` cells, each whole."""
    lines: list[Content] = []
    for piece in pieces:
        if lines and lines[-1].cell_length + len(gap) + piece.cell_length <= width:
            lines[-1] = lines[-1].append(gap).append(piece)
        else:
            lines.append(piece)
    return lines


class PassLine(Static):
    """How a pass that is not in the record as a change ended (refused, failed, nothing to free)."""

    def __init__(self, outcome: str, detail: str) -> None:
        sign = {"failed": "✗", "rejected": "!"}.get(outcome, "·")
        super().__init__(Content(f"{sign} {clean(detail) or outcome}"), markup=False, classes=f"notice -pass-{outcome}")
