"""The question before a call that may change something: what it would do, whole and with nothing hidden, and the answers to it.

A panel over the composer, not a window over everything: the draft stays where it is, and so does the focus while someone types.
"""

from __future__ import annotations

from typing import get_args

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ctxchat.core.access import Verdict
from ctxchat.core.events import ApprovalRequested
from ctxchat.tui.text import visible
from ctxchat.tui.widgets.answer import Answer

SHOWN_LINES = 2_000
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class ApprovalPanel(Widget, can_focus=True):
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

    class Answered(Message):
        """What the person said."""

        def __init__(self, request: ApprovalRequested, verdict: Verdict, reason: str = "") -> None:
            super().__init__()
            self.request = request
            self.verdict: Verdict = verdict
            self.reason = reason

    def __init__(self, request: ApprovalRequested) -> None:
        super().__init__(id="approval", classes="asked")
        self.request = request
        self._done = False

    def compose(self) -> ComposeResult:
        request = self.request
        head = Content.assemble(
            ("? ", "bold $text-warning"), (_shown(request.name, 1), "bold"), "  ", _shown(request.summary, 2)
        )
        yield Static(head, markup=False, classes="question")
        if request.preview.strip():
            with VerticalScroll(classes="preview", can_focus=False):
                yield Static(_preview(request.preview, request.access), markup=False)
        with Widget(classes="answers"):
            yield Answer("once", "y", "once")
            if request.rule:
                yield Answer("session", "s", "session", more=True)
                yield Answer("always", "a", "always", more=True)
            yield Answer("deny", "n", "deny")
            yield Answer("reason", "r", "say why", more=True)
        if request.rule:
            rule = Content.assemble(("s and a allow  ", "$text-muted"), _shown(request.rule, 1))
            yield Static(rule, markup=False, classes="rule")

    def action_answer(self, verdict: str) -> None:
        """Say it, once."""
        if verdict in {"session", "always"} and not self.request.rule:
            return
        if verdict == "reason":
            self._ask_why()
        elif not self._done:
            self._done = True
            said = VERDICTS[VERDICTS.index(verdict)] if verdict in VERDICTS else "deny"
            self.post_message(self.Answered(self.request, said))

    def action_scroll_text(self, lines: int) -> None:
        """Move in a long preview."""
        for box in self.query(VerticalScroll):
            box.scroll_relative(y=lines, animate=False)

    def on_answer_pressed(self, event: Answer.Pressed) -> None:
        event.stop()
        self.action_answer(event.what)

    def _ask_why(self) -> None:
        if not self.query(Input):
            why = Input(placeholder="why not, for the model; enter denies, esc goes back", classes="why")
            self.mount(why)
            why.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self._done:
            self._done = True
            self.post_message(self.Answered(self.request, "deny", event.value.strip()))

    def on_key(self, event: Key) -> None:
        if event.key == "escape" and self.query(Input):
            event.stop()
            event.prevent_default()
            self.query(Input).remove()
            self.focus()


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
