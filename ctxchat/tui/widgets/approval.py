"""The question before a call that may change something: what it would do, whole and with nothing hidden, and the answers to it.

A panel over the composer, not a window over everything: the draft stays where it is, and so does the focus while someone types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import get_args

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.events import ApprovalRequested
from ctxchat.core.permissions import Answer, Verdict
from ctxchat.tui.reading.text import visible
from ctxchat.tui.widgets.asked import Offer, Offered

SHOWN_LINES = 2_000
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class ApprovalPanel(Offered):
    """One call that waits for an answer."""

    BINDINGS = [
        Binding("y", "answer('once')", "Once", show=False),
        Binding("s", "answer('session')", "This session", show=False),
        Binding("a", "answer('always')", "Always", show=False),
        Binding("n,escape", "answer('deny')", "Deny", show=False),
        Binding("r", "answer('reason')", "Deny with a reason", show=False),
        Binding("up", "scroll_text(-1)", show=False),
        Binding("down", "scroll_text(1)", show=False),
        Binding("pageup", "scroll_text(-8)", show=False),
        Binding("pagedown", "scroll_text(8)", show=False),
    ]
    IN_WORDS = "reason"
    PLACEHOLDER = "why not, for the model; enter denies, esc goes back"

    class Answered(Message):
        """What the person said."""

        def __init__(self, request: ApprovalRequested, answer: Answer) -> None:
            super().__init__()
            self.request = request
            self.answer = answer

    def __init__(self, request: ApprovalRequested) -> None:
        super().__init__(id="approval")
        self.request = request

    @property
    def offers(self) -> Sequence[Offer]:
        rule = (("session", "s", "session", True), ("always", "a", "always", True)) if self.request.rules else ()
        return (("once", "y", "once", False), *rule, ("deny", "n", "deny", False), ("reason", "r", "say why", True))

    def body(self) -> Iterable[Widget]:
        request = self.request
        head = Content.assemble(
            ("? ", "bold $text-warning"), (_shown(request.name, 1), "bold"), "  ", _shown(request.summary, 2)
        )
        yield Static(head, markup=False, classes="question")
        if request.preview.strip():
            preview = Static(_preview(request.preview, request.access), markup=False)
            yield VerticalScroll(preview, classes="preview", can_focus=False)
        if request.rules:
            rule = Content.assemble(("s and a allow  ", "$text-muted"), _shown(request.rules[0], 1))
            yield Static(rule, markup=False, classes="rule")

    def answer(self, what: str) -> None:
        """A verdict."""
        self.say(self.Answered(self.request, Answer(VERDICTS[VERDICTS.index(what)] if what in VERDICTS else "deny")))

    def worded(self, text: str) -> None:
        self.say(self.Answered(self.request, Answer("deny", text)))

    def action_scroll_text(self, lines: int) -> None:
        """Move in a long preview; at once, or keys that come faster than frames count once."""
        for box in self.query(VerticalScroll):
            box.scroll_relative(y=lines, animate=False, immediate=True)


def _shown(text: str, lines: int) -> str:
    return "\n".join(visible(text).split("\n")[:lines])


def _preview(text: str, access: str) -> Content:
    lines = visible(text.rstrip("\n")).split("\n")
    rest = 0 if access == "run" else len(lines) - SHOWN_LINES  # a command is shown whole, however long
    shown = [_line(line, access) for line in lines[: len(lines) - max(0, rest)]]
    if rest > 0:
        shown.append(Content.styled(f"… {rest:,} more lines", "$text-warning"))
    return Content("\n").join(shown)


def _line(line: str, access: str) -> Content:
    if access == "write" and line.startswith(("--- ", "+++ ")):
        return Content.styled(line, "$text-muted")
    if access == "write" and line[:1] in {"+", "-", "@"}:
        return Content.styled(line, {"+": "$text-success", "-": "$text-error", "@": "$text-accent"}[line[0]])
    return Content(line)
