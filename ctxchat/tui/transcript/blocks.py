"""The blocks that the transcript is made of, each of which draws itself as lines: messages of the person, replies, reasoning,
notices, errors, quotations, waits, marks of compactions. Calls of tools are in `tool_block`.

All text is foreign: it is cleaned and enters as `Content` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from time import monotonic

from textual.content import Content
from textual.message import Message

from ctxchat.core.events import Level
from ctxchat.core.ledger import Change
from ctxchat.core.messages import Attached, Group
from ctxchat.core.quantities import count, made_smaller
from ctxchat.core.record import CompactionRecord
from ctxchat.presentation.history import folded_messages
from ctxchat.presentation.text import clean, clock, cut, one_line, short
from ctxchat.tui.transcript.markdown import GrowingMarkdown
from ctxchat.tui.widgets.lines import (
    MAX_PROSE_CELLS,
    MIN_TEXT_CELLS,
    NOTHING,
    DrawnLine,
    excerpt,
    hung,
    packed,
    spread,
    target,
    wrapped,
)
from ctxchat.tui.widgets.notice import SIGNS

ATTACHED_SIGN = "▪"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
INDENT = Content(" ")

PAST = "┊"
"""The sign before messages that the model no longer sees as they were."""


def spin(seconds: float) -> str:
    """The character of the spinner after so many seconds."""
    return SPINNER[int(seconds * 8) % len(SPINNER)]


class Block:
    """One piece of the transcript that draws itself as lines. It calls `changed` when it has to be drawn anew."""

    above = below = 0
    """How many empty lines it wants before and behind it; between two neighbours the larger number counts."""

    yields = False
    """Whether the empty lines behind it are left out in a narrow window."""

    keys: Mapping[str, str] = {}
    """Maps keys to what they `press` while it has the focus; empty for a block that cannot have the focus."""

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        """The block's keys, and what each does in a word or two, for the footer."""
        return tuple(self.keys.items())

    moving = False
    """Whether it is drawn anew several times a second, as something in it counts or spins."""

    left = 0
    """Cells by which its long lines of code are moved to the left, to show what is behind the right edge."""

    changed: Callable[[], None] = staticmethod(lambda: None)
    """Set by whoever shows the block; called when it has to be drawn anew."""

    def draw(self, width: int) -> list[DrawnLine]:
        """The block's lines in `width` cells, top to bottom."""
        raise NotImplementedError

    @property
    def source(self) -> str:
        """The text that copying it gives; empty for its lines as they are drawn."""
        return ""

    def press(self, what: str) -> Message | None:
        """Handle a key (see `keys`) or a click on a target; return a message for the program, None if there is none."""
        return None

    def show_focus(self, focused: bool) -> None:
        """Show that it has the focus, so that its keys work, or no longer."""


class UserBlock(Block):
    """A message of the person, with a bar at its left. Very long texts show their head and tail; the record has it all."""

    above = below = 1
    yields = True
    HEAD, TAIL = 60, 20
    BAR = Content.styled("▌", "$accent 80%").append(" ")

    def __init__(self, text: str, at: str = "", *, attached: Sequence[Attached] = ()) -> None:
        self.text, self.at, self.attached = text, at, attached

    def draw(self, width: int) -> list[DrawnLine]:
        room = max(1, width - 2)
        at = Content.styled(clock(self.at), "$text-muted")
        lines = [DrawnLine(spread(Content.styled("You", "bold $accent"), at, room))]
        if self.text.strip() or not self.attached:
            text = excerpt(clean(self.text), self.HEAD, self.TAIL)
            lines += wrapped(Content(text), min(room, MAX_PROSE_CELLS))
        for each in self.attached:
            what = Content.assemble((f"{ATTACHED_SIGN} ", "$text-accent"), one_line(each.name, 200))
            lines.append(DrawnLine(spread(what, Content.styled(attached_size(each), "$text-muted"), room)))
        return hung(lines, self.BAR, self.BAR)

    @property
    def source(self) -> str:
        return self.text

    def set_attached(self, attached: Sequence[Attached]) -> None:
        """Set the attachments with the sizes and tokens counted for them now."""
        if attached != self.attached:
            self.attached = attached
            self.changed()


def attached_size(attached: Attached) -> str:
    """The size of an attachment, with its tokens: `1280×800 1.1k`, `exit 1 412 lines 3.1k`."""
    size = f"{attached.width}×{attached.height}" if attached.width else ""
    if attached.kind == "text":
        size = count(attached.lines, "line")
    tokens = short(attached.tokens) if attached.tokens else ""
    return "   ".join(words for words in (attached.ended, size, tokens) if words)


def signed(sign: str, words: Content, width: int, style: str) -> list[DrawnLine]:
    """The text in lines that are indented behind a sign."""
    sign = f" {sign} " if width >= MIN_TEXT_CELLS else ""
    lines = wrapped(words.stylize_before(style), max(1, width - len(sign)))
    return hung(lines, Content.styled(sign, style))


class NoticeBlock(Block):
    """A sentence from ctxchat."""

    below = 1
    STYLES: Mapping[Level, str] = {"info": "$text-muted", "warning": "$text-warning", "error": "$text-error"}

    def __init__(self, level: Level, text: str) -> None:
        self.level: Level = level
        self.text = text

    @property
    def source(self) -> str:
        return self.text

    def draw(self, width: int) -> list[DrawnLine]:
        return signed(SIGNS[self.level], Content(cut(self.text)), width, self.STYLES[self.level])


class ErrorBlock(Block):
    """An error, such as one that ended a turn, and what to do about it."""

    below = 1

    def __init__(self, text: str, hint: str = "") -> None:
        self.text, self.hint = text, hint

    def draw(self, width: int) -> list[DrawnLine]:
        words = Content(excerpt(clean(self.text), 12, 4))
        if self.hint:
            words = words.append("\n").append(Content.styled(clean(self.hint), "$text-muted"))
        return signed("✗", words, width, "$text-error")


class QuoteBlock(Block):
    """A message in the conversation that no person wrote: put back from the record, or from a hook."""

    below = 1

    def __init__(self, group: Group) -> None:
        self._group = group

    def draw(self, width: int) -> list[DrawnLine]:
        group = self._group
        who = f"put back {group.source[8:]}" if group.source.startswith("restore:") else group.source or group.kind
        text = "\n".join(m.text for m in group.messages)
        words = Content.styled(f"{one_line(who, 60)}\n", "italic").append(excerpt(clean(text), 8, 2))
        bar = INDENT.append(Content.styled("│ ", "$rule")) if width >= MIN_TEXT_CELLS else INDENT
        return hung(wrapped(words.stylize_before("$text-muted"), max(1, width - bar.cell_length)), bar, bar)


class Waiting(Block):
    """Work that has nothing to show yet: a spinner, what is done, for how long, and how to stop it."""

    moving = True

    def __init__(self, what: str) -> None:
        self.what, self._since = what, monotonic()

    def draw(self, width: int) -> list[DrawnLine]:
        seconds = monotonic() - self._since
        left = Content.assemble((spin(seconds), "$accent"), " ", (clean(self.what), "$text-muted"))
        right = Content.styled(f"{seconds:.0f} s  esc stops" if seconds >= 1 else "", "$text-muted")
        return [DrawnLine(spread(left, right, max(1, width - 1)), INDENT)]


class RetryBlock(Block):
    """A request that failed and will be sent again: the cause, and the seconds until then."""

    below = 1

    def __init__(self, attempt: int, after_seconds: float, cause: str) -> None:
        self.cause = one_line(cause, 200) or "no answer"
        self._outcome = ""  # empty while it waits or tries
        self._attempt, self._until = attempt, monotonic() + after_seconds

    @property
    def moving(self) -> bool:  # type: ignore[override]
        return not self._outcome

    def end_retry(self, *, stopped: bool = False) -> None:
        """The request went out again and was answered, or the wait was stopped."""
        retried = "tried again" if self._attempt == 1 else f"{self._attempt} more tries"
        self._outcome = "stopped" if stopped else retried
        self.changed()

    def draw(self, width: int) -> list[DrawnLine]:
        words, room = Content(f"! {self.cause}"), max(1, width - 1)
        left = max(0.0, self._until - monotonic())
        when = f"again in {left:.0f} s" if left >= 0.5 else "trying again"
        right = self._outcome or (f"{left:.0f} s" if width < 60 else f"{when}, attempt {self._attempt + 1}   esc stops")
        return [DrawnLine(spread(words, Content(right), room).stylize_before("$text-warning"), INDENT)]


class Fold(Block):
    """A block that is folded to one line until it is unfolded."""

    keys = {"enter": "fold", "space": "fold"}

    def __init__(self, *, unfolded: bool = False) -> None:
        self.unfolded = unfolded

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        return (("enter", "fold" if self.unfolded else "unfold"),)

    def head(self, width: int) -> Content:
        """The line that is always shown, in `width` cells."""
        raise NotImplementedError

    def foot(self, width: int) -> Sequence[Content]:
        """Lines below `head` that are shown even while it is folded."""
        return ()

    def body_lines(self, width: int) -> list[DrawnLine]:
        """The lines, `width` cells wide, that are shown when the block is unfolded."""
        raise NotImplementedError

    @property
    def sign(self) -> str:
        """▸ folded, ▾ unfolded."""
        return "▾" if self.unfolded else "▸"

    def press(self, what: str) -> Message | None:
        if what == "fold":
            self.unfolded = not self.unfolded
            self.changed()
        return None

    def draw(self, width: int) -> list[DrawnLine]:
        room = max(1, width - 1)
        lines = [DrawnLine(target(self.head(room), "fold"), INDENT)]
        lines += [DrawnLine(line, INDENT) for line in self.foot(room)]
        bar = Content.assemble("   ", ("│", "$rule"), " ") if width >= MIN_TEXT_CELLS else INDENT
        if self.unfolded and (body := self.body_lines(max(1, width - bar.cell_length))):
            lines += hung(body, bar, bar)
            lines.append(DrawnLine(NOTHING))
        return lines


class ThinkingBlock(Fold):
    """Reasoning, folded to a line with its size. `words` says what it is while it arrives, and afterwards."""

    def __init__(
        self,
        text: str = "",
        *,
        streaming: bool = False,
        unfolded: bool = False,
        words: tuple[str, str] = ("thinking", "thought"),
    ) -> None:
        super().__init__(unfolded=unfolded)
        self._words = words
        self._text, self._streaming = text, streaming

    @property
    def source(self) -> str:
        return self._text

    @property
    def moving(self) -> bool:  # type: ignore[override]
        return self._streaming

    def append_text(self, text: str) -> None:
        """Add text that has arrived."""
        self._text += text
        self.changed()

    def finish(self) -> None:
        """Note that nothing more will arrive."""
        self._streaming = False
        self.changed()

    def head(self, width: int) -> Content:
        """`▸ thinking   ~1.2k`, and while folded its newest line."""
        word = self._words[0 if self._streaming else 1]
        left = Content.styled(f"{self.sign} {word}", "$text-muted")
        if self._streaming:
            left = left.append(Content.styled(f" {spin(monotonic())}", "$accent"))
        if not self.unfolded:
            newest = (
                clean(self._text[-400:]).rstrip().rsplit("\n", 1)[-1] if self._streaming else clean(self._text[:200])
            )
            left = left.append(Content.styled("  " + " ".join(newest.split()), "italic $text-disabled"))
        return spread(left, Content.styled(f"~{short(max(1, len(self._text) // 4))}", "$text-muted"), width)

    def body_lines(self, width: int) -> list[DrawnLine]:
        text = excerpt(clean(self._text), 60, 60).strip()
        return wrapped(Content.styled(text, "$text-muted"), min(width, MAX_PROSE_CELLS)) if text else []


WORDS = Content.styled("◌ interrupted, kept as it was", "$text-warning")
OFFER = WORDS.append("   ").append(Content.styled("/continue", "$text-accent")).append(" goes on from here")

MAX_REPLY_CHARS = 400_000
"""Characters of a stored reply that are drawn; below them a line says how many more there are. No model writes so much."""


class ReplyBlock(Block):
    """One text by the model. If it was `interrupted` it says so, and after `offer` how to go on from it. While more of it arrives
    (`streaming`), a spinner stands behind its last word."""

    above = below = 1

    def __init__(self, text: str = "", *, interrupted: bool = False, streaming: bool = False) -> None:
        self._pieces = [text] if text else []
        self.interrupted, self._offered, self._streaming = interrupted, False, streaming
        self._growing: GrowingMarkdown | None = None

    @property
    def text(self) -> str:
        """The text that has arrived so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def source(self) -> str:
        return self.text

    @property
    def moving(self) -> bool:  # type: ignore[override]
        return self._streaming

    def append_text(self, text: str) -> None:
        """Add text that has arrived."""
        self._pieces.append(text)
        if self._growing:
            self._growing.append_text(text)
        self.changed()

    def finish(self, interrupted: bool = False) -> None:
        """Note that nothing more will arrive; `interrupted`: the reply is incomplete."""
        self.interrupted, self._streaming = interrupted, False
        if self._growing and self._growing.patched:
            self._growing = None
        self.changed()

    def offer(self, offered: bool) -> None:
        """Say that /continue goes on from it, as it is the end of the conversation; or no longer."""
        if offered != self._offered:
            self._offered = offered
            self.changed()

    def draw(self, width: int) -> list[DrawnLine]:
        if self._growing is None or self._growing.width != width:
            self._growing = GrowingMarkdown(width, INDENT)
            self._growing.append_text(cut(self.text, MAX_REPLY_CHARS))
        lines = self._growing.lines()
        if self._streaming and lines:
            lines[-1] = _still_coming(lines[-1], width)
        if self.interrupted:
            lines += hung(wrapped(OFFER if self._offered else WORDS, max(1, width - 1)), INDENT)
        return lines


def _still_coming(line: DrawnLine, width: int) -> DrawnLine:
    """The line with a spinner behind it, if there is room: a line of its own for the spinner would appear and disappear."""
    mark = Content.styled(f" {spin(monotonic())}", "$accent")
    if line.gutter.cell_length + line.words.cell_length + mark.cell_length > width:
        return line
    marked = copy(line)
    marked.words = line.words.append(mark)
    return marked


class CompactionMark(Block):
    """A ruled line where a compaction was made, with its figures and what can be done about it. `facts_back`: the facts it lost
    were put back already."""

    above = below = 1
    yields = True
    keys = {"v": "view", "enter": "view", "u": "undo", "b": "branch", "r": "re-insert"}

    class Chosen(Message):
        """A person wants to do something with a compaction; `what` is `view`, `undo`, `branch` or `re-insert` (the facts it
        lost)."""

        def __init__(self, change: Change, what: str) -> None:
            super().__init__()
            self.change, self.what = change, what

    def __init__(self, change: Change, facts_back: bool = False) -> None:
        self._change, self._facts_back, self._focused = change, facts_back, False
        self.archive_key = ""
        """The key that opens the archive wherever the focus is, as people are shown it; empty for none."""

    def draw(self, width: int) -> list[DrawnLine]:
        """The rule, the figures and the actions: in one line, or if that is too narrow in as many as they need."""
        lines = self._mark_lines(max(1, width - 1))
        return [DrawnLine(line.stylize_before("$text-muted"), INDENT) for line in lines]

    def _mark_lines(self, width: int) -> list[Content]:
        figures = [Content.styled(words, "$text") for words in self._figures(self._change.record, wide=width >= 30)]
        verbs = [self._verb(what, words) for what, words in self._verbs()]
        rule = Content.styled("──── " if width >= 30 else "─ ", "$rule")
        single_line = (
            rule.append(Content("  ").join(figures)).append("   ").append(Content("   ").join(verbs)).append(" ")
        )
        at = Content.styled(clock(self._change.at), "$text-muted")
        if single_line.cell_length + at.cell_length + 4 <= width:
            fill = Content.styled("─" * (width - single_line.cell_length - at.cell_length - 1) + " ", "$rule")
            return [single_line.append(fill).append(at)]
        indent = Content("     " if width >= 30 else " ")
        first, *more = packed(figures, width - rule.cell_length, "  ")
        head = rule.append(first).append(" ").truncate(width, ellipsis=True)
        head = head.append(Content.styled("─" * max(0, width - head.cell_length), "$rule"))
        more += packed(verbs, width - indent.cell_length, "   " if width >= 60 else "  ")
        return [head, *(indent.append(line).truncate(width, ellipsis=True) for line in more)]

    def _figures(self, record: CompactionRecord | None, *, wide: bool) -> list[str]:
        """Short texts on what the compaction folded, freed and kept."""
        folded = folded_messages(self._change, record)
        kept_in = "in summary" if record and record.summary else "in archive"
        words = [f"{PAST} {kept_in}"] if wide and folded else []
        words += [made_smaller(folded, record.shortened if record else 0, wide=wide)]
        if record:
            words.append(f"−{short(max(0, record.freed))}")
            if record.back.messages:
                words.append(f"{record.back.messages:,} put back")
            elif record.facts.found:
                of = f" of {count(record.facts.found, 'fact')}" if wide else f" of {record.facts.found}"
                back = f", {len(record.lost)} put back" if self._facts_back else ""
                words.append(f"kept {record.facts.kept}{of}{back}")
            if record.missed and wide:
                words.append("above the target")
        return words

    def _verbs(self) -> list[tuple[str, str]]:
        """The actions, each with its label."""
        lost = len(self._change.record.lost) if self._change.record else 0
        verbs = [("view", "view"), ("undo", "undo"), ("branch", "branch")]
        return [*verbs, ("re-insert", f"re-insert {lost}")] if lost and not self._facts_back else verbs

    def _verb(self, what: str, words: str) -> Content:
        anywhere = self.archive_key if what == "view" else ""
        # a key is shown where it works; its room is kept, so that nothing moves
        key = (what[0] if self._focused else anywhere).ljust(max(1, len(anywhere)))
        return target(Content.styled(words, "$text-accent").append(Content.styled(f" {key}", "$text-muted")), what)

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        return tuple((what[0], words) for what, words in self._verbs())

    def show_focus(self, focused: bool) -> None:
        self._focused = focused
        self.changed()

    def press(self, what: str) -> Message | None:
        return self.Chosen(self._change, what) if what in dict(self._verbs()) else None
