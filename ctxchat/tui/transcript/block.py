"""What the transcript is made of: blocks, which draw themselves as lines. Here those that say something and are done: what the
person said, notices, errors, quotations, waits. All text is foreign: it is cleaned and enters as `Content` only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from textual.content import Content
from textual.message import Message

from ctxchat.core.messages import Attached, Group
from ctxchat.tui.reading.text import clean, clock, cut, one_line, short
from ctxchat.tui.transcript.lines import LEAST, DrawnLine, excerpt, hung, spread, wrapped
from ctxchat.tui.widgets.notice import SIGNS, Level

ATTACHED_SIGN = "▪"
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
INDENT = Content(" ")


def spin(seconds: float) -> str:
    """The spinner after this time."""
    return SPINNER[int(seconds * 8) % len(SPINNER)]


class Block:
    """One thing in the transcript. What it says may change: then it calls `changed`, and is drawn anew."""

    above = below = 0
    """Empty lines before and behind it, at least; of two neighbours the larger wish counts."""

    yields = False
    """In a narrow window the lines behind it go."""

    keys: Mapping[str, str] = {}
    """What its keys press while it has the focus; none for a block that cannot have it."""

    moving = False
    """It is drawn anew several times a second: something in it counts."""

    changed: Callable[[], None] = staticmethod(lambda: None)
    """Whoever shows it wants to know."""

    def draw(self, width: int) -> list[DrawnLine]:
        """Its lines in `width` cells, top to bottom."""
        raise NotImplementedError

    def press(self, what: str) -> Message | None:
        """A key or a click on a target. What the program is to know of it, None for nothing."""
        return None


class UserBlock(Block):
    """What the person said, with a bar at its left. Very long texts show their head and tail; the record has it all."""

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
            lines += wrapped(Content(excerpt(clean(self.text), self.HEAD, self.TAIL)), room)
        for each in self.attached:
            what = Content.assemble((f"{ATTACHED_SIGN} ", "$text-accent"), one_line(each.name, 200))
            lines.append(DrawnLine(spread(what, Content.styled(attached_size(each), "$text-muted"), room)))
        return hung(lines, self.BAR, self.BAR)

    def weigh(self, attached: Sequence[Attached]) -> None:
        """What went along with it, as it is counted now."""
        if attached != self.attached:
            self.attached = attached
            self.changed()


def attached_size(attached: Attached) -> str:
    """`1280×800   1.1k`, `412 lines   3.1k`."""
    size = f"{attached.width}×{attached.height}" if attached.width else ""
    if attached.kind == "text":
        size = f"{attached.lines:,} line{'' if attached.lines == 1 else 's'}"
    return "   ".join(words for words in (size, short(attached.tokens) if attached.tokens else "") if words)


def signed(sign: str, words: Content, width: int, style: str) -> list[DrawnLine]:
    """The words hanging behind a sign."""
    sign = f" {sign} " if width >= LEAST else ""
    lines = wrapped(words.stylize_before(style), max(1, width - len(sign)))
    return hung(lines, Content.styled(sign, style))


class NoticeBlock(Block):
    """A sentence from ctxchat."""

    below = 1
    STYLES: Mapping[Level, str] = {"info": "$text-muted", "warning": "$text-warning", "error": "$text-error"}

    def __init__(self, level: Level, text: str) -> None:
        self.level: Level = level
        self.text = text

    def draw(self, width: int) -> list[DrawnLine]:
        return signed(SIGNS[self.level], Content(cut(self.text)), width, self.STYLES[self.level])


class ErrorBlock(Block):
    """A turn that could not go on, and what to do about it."""

    below = 1

    def __init__(self, text: str, hint: str = "") -> None:
        self.text, self.hint = text, hint

    def draw(self, width: int) -> list[DrawnLine]:
        words = Content(excerpt(clean(self.text), 12, 4))
        if self.hint:
            words = words.append("\n").append(Content.styled(clean(self.hint), "$text-muted"))
        return signed("✗", words, width, "$text-error")


class QuoteBlock(Block):
    """A note in the conversation that no person wrote: put back from the record, from a hook."""

    below = 1

    def __init__(self, group: Group) -> None:
        self._group = group

    def draw(self, width: int) -> list[DrawnLine]:
        group = self._group
        who = f"put back {group.source[8:]}" if group.source.startswith("restore:") else group.source or group.kind
        text = "\n".join(m.text for m in group.messages)
        words = Content.styled(f"{one_line(who, 60)}\n", "italic").append(excerpt(clean(text), 8, 2))
        bar = INDENT.append(Content.styled("│ ", "$rule")) if width >= LEAST else INDENT
        return hung(wrapped(words.stylize_before("$text-muted"), max(1, width - bar.cell_length)), bar, bar)


class Waiting(Block):
    """Something is under way and has nothing to show yet: a spinner, what, how long, how to stop it."""

    moving = True

    def __init__(self, what: str, stop: str = "esc stops") -> None:
        self.what, self._stop, self._since = what, stop, monotonic()

    def draw(self, width: int) -> list[DrawnLine]:
        seconds = monotonic() - self._since
        left = Content.assemble((spin(seconds), "$accent"), " ", (clean(self.what), "$text-muted"))
        right = Content.styled(f"{seconds:.0f} s  {self._stop}" if seconds >= 1 else "", "$text-muted")
        return [DrawnLine(spread(left, right, max(1, width - 1)), INDENT)]


class RetryBlock(Block):
    """The same request goes out again; counts down."""

    below = 1

    def __init__(self, attempt: int, after_seconds: float, cause: str) -> None:
        self.cause = one_line(cause, 200) or "no answer"
        self._over = ""
        self._attempt, self._until = attempt, monotonic() + after_seconds

    @property
    def moving(self) -> bool:  # type: ignore[override]
        return not self._over

    def over(self, *, stopped: bool = False) -> None:
        """The request went out again and was answered, or the wait was stopped."""
        again = "tried again" if self._attempt == 1 else f"tried again {self._attempt} times"
        self._over = "stopped" if stopped else again
        self.changed()

    def draw(self, width: int) -> list[DrawnLine]:
        words, room = Content(f"! {self.cause}"), max(1, width - 1)
        left = max(0.0, self._until - monotonic())
        when = f"again in {left:.0f} s" if left >= 0.5 else "trying again"
        right = self._over or (f"{left:.0f} s" if width < 60 else f"{when}, attempt {self._attempt + 1}   esc stops")
        return [DrawnLine(spread(words, Content(right), room).stylize_before("$text-warning"), INDENT)]
