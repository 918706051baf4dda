"""The block of a tool call: one line with the main argument, outcome, time and tokens, which unfolds to the diff or the output;
below it the gauge of a sub-agent that works for the call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from time import monotonic

import msgspec
from textual.content import Content
from textual.message import Message

from ctxchat.core.events import Delegated, ToolFinished
from ctxchat.core.file_changes import FileChange, files_words
from ctxchat.core.tool_names import DELEGATE
from ctxchat.presentation.file_reads import read_path
from ctxchat.presentation.text import clean, elapsed, one_line, short, visible
from ctxchat.presentation.tool_words import SIGNS, key_argument, outcome
from ctxchat.presentation.usage_text import percent
from ctxchat.tui.transcript.blocks import Fold, spin
from ctxchat.tui.transcript.source_lines import HEAD_LINES, TAIL_LINES, diff_lines, file_lines
from ctxchat.tui.transcript.todo_lines import item_line, items_of
from ctxchat.tui.widgets.lines import DrawnLine, excerpt, spread, target, wrapped

SUB_SESSION = re.compile(r"^\[its record: session (\w+)\]$", re.MULTILINE)
"""The line in the output of a delegated call that names the session of its sub-agent."""

BAR_COLUMNS = 20
"""Width of a sub-agent's bar, where there is room."""


def sub_gauge(usage: Delegated, width: int) -> Content:
    """How full a sub-agent's window is: `  sub-agent  ██▏·············  12 %  3.9k/28.7k`."""
    share = usage.used / usage.limit if usage.limit > 0 else 0.0
    fill = f"{percent(share) if usage.limit > 0 else '?'}  {short(usage.used)}/{short(usage.limit)}"
    name = f"  {one_line(usage.agent, 16)}  "
    columns = max(0, min(BAR_COLUMNS, width - len(name) - len(fill) - 2))
    filled = min(columns, max(1, round(share * columns))) if columns and usage.used else 0
    return Content.assemble(
        (name, "$text-muted"),
        ("█" * filled, "$accent"),
        ("·" * (columns - filled), "$text-muted"),
        (f"  {fill}" if columns else fill, "$text-muted"),
    ).truncate(width, ellipsis=True)


MIN_OUTCOME_CELLS = 8
"""Cells below which a cut outcome would say nothing."""

OUTCOME_COLUMN = 34
"""The column where outcomes begin if the call before them is shorter, so that they stand under each other."""

LIVE_LINES, MAX_LIVE_CHARS = 3, 4_000
"""How many lines of the output of a running call are shown while it is folded, and how many characters from the end are searched
for them."""

MAX_ITEM_CHARS = 500
"""Characters of an item of a to-do list that are shown."""

MAX_OUTPUT_CHARS = 65_536
"""Characters that are kept of the output of a running call; its result has all of it."""


class ToolBlock(Fold):
    """A tool call, running (`result` is None) or over. `arguments` are text where they could not be parsed; `files` says in words
    what it did to files."""

    class SubAgentChosen(Message):
        """A person wants to see the work of a sub-agent."""

        def __init__(self, session_id: str) -> None:
            super().__init__()
            self.session_id = session_id

    def __init__(
        self,
        call_id: str,
        name: str,
        arguments: dict[str, object] | str,
        result: ToolFinished | None = None,
        files: str = "",
        *,
        stops: bool = True,
    ) -> None:
        """`stops` says that esc stops the call while it runs; in a record that is only looked at, esc leads back."""
        super().__init__()
        self.call_id, self._stops = call_id, stops
        self._tool, self._key_argument = one_line(name, 40) or "tool", visible(key_argument(arguments))
        self._arguments = arguments
        self._result = result
        self._files = files
        self._progress = ""
        self._since = monotonic()
        self._asking = False
        self._delegated: Delegated | None = None
        self._focused = False

    @property
    def moving(self) -> bool:  # type: ignore[override]
        return self._result is None

    @property
    def source(self) -> str:
        return self._progress if self._result is None else self._result.diff or self._result.output

    def progress(self, text: str) -> None:
        """Add output of the running call."""
        self._progress = (self._progress + text)[-MAX_OUTPUT_CHARS:]
        self.changed()

    def ask(self, asking: bool) -> None:
        """Show that the call waits for a person's answer, or no longer: its time is counted from the answer on."""
        self._asking, self._since = asking, monotonic()
        self.changed()

    def touched(self, changes: Sequence[FileChange]) -> None:
        """Show what the call did to files."""
        self._files = one_line(files_words(changes), 60)
        self.changed()

    def delegated(self, context_usage: Delegated) -> None:
        """Show the gauge of the sub-agent that works for this call."""
        self._delegated = context_usage
        self.changed()

    @property
    def _sub_session(self) -> str:
        """The session of the sub-agent that works for this call, or did; empty where there is none."""
        if self._delegated:
            return self._delegated.sub_session
        if self._tool != DELEGATE or (self._result is None and not self._progress):
            return ""
        sessions = SUB_SESSION.findall(self._result.output if self._result else self._progress)
        # the line that ctxchat wrote: the last of a result, the first of the output so far
        return sessions[-1 if self._result else 0] if sessions else ""

    @property
    def keys(self) -> Mapping[str, str]:  # type: ignore[override]
        return {**super().keys, "enter": "work"} if self._sub_session else super().keys

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        (fold,) = super().key_words
        return (("enter", "its work"), ("space", fold[1])) if self._sub_session else (fold,)

    def press(self, what: str) -> Message | None:
        if what == "work":
            return self.SubAgentChosen(self._sub_session)
        return super().press(what)

    def show_focus(self, focused: bool) -> None:
        self._focused = focused
        if self._sub_session:
            self.changed()

    def finish(self, result: ToolFinished) -> None:
        """The call is over."""
        self._result = result
        self.changed()

    def set_tokens(self, tokens: int) -> None:
        """Set how many tokens of the window its result takes now; 0 if it is not in the window."""
        if self._result is not None and self._result.tokens != tokens:
            self._result = msgspec.structs.replace(self._result, tokens=tokens)
            self.changed()

    def stop(self) -> None:
        """Show the call as cancelled if it is not over: the turn ended before it."""
        if self._result is None:
            seconds = monotonic() - self._since
            self.finish(ToolFinished(self.call_id, self._tool, "cancelled", self._progress, 0, seconds))

    def foot(self, width: int) -> Sequence[Content]:
        """The gauge of a sub-agent, and the newest lines of a running call."""
        gauge = (self._sub_agent_line(width),) if self._sub_session else ()
        return gauge if self.unfolded or self._result is not None else (*gauge, *self._live_lines(width))

    def _sub_agent_line(self, width: int) -> Content:
        """The sub-agent's gauge, and a target that shows its work."""
        words = Content.styled("  its work", "$text-accent").append(
            Content.styled(" enter" if self._focused else "", "$text-muted")
        )
        gauge = sub_gauge(self._delegated, max(1, width - 16)) if self._delegated else Content("")
        return target(gauge.append(words).truncate(width, ellipsis=True), "work")

    def _live_lines(self, width: int) -> list[Content]:
        lines = clean(self._progress[-MAX_LIVE_CHARS:]).split("\n")
        lines = [line for line in lines if line.strip() and not (self._sub_session and SUB_SESSION.match(line))]
        return [
            Content.styled(f"    {one_line(line, 1_000)}", "$text-muted").truncate(width, ellipsis=True)
            for line in lines[-LIVE_LINES:]
        ]

    def head(self, width: int) -> Content:
        """The call, its outcome, seconds and tokens: `▸ grep "tide gauge" 3 hits 0.1 s 412`; while it runs with a spinner."""
        result = self._result
        seconds = monotonic() - self._since if result is None else result.seconds
        mark = ("?" if self._asking else spin(seconds)) if result is None else self.sign
        call = Content.assemble((f"{mark} ", "$accent" if result is None else "$text-muted"), (self._tool, "bold"))
        call = call.append(Content(f" {self._key_argument}"))
        if result is None:
            state = "waits for you" if self._asking else f"{seconds:.0f} s{'  esc stops' if self._stops else ''}"
            return spread(call, Content.styled(state, "$text-muted"), width)
        sign = SIGNS[result.status] or ("✗" if result.exit_code else "")
        style = {"✗": "$text-error", "⊘": "$text-warning", "◌": "$text-warning"}.get(sign, "$text-muted")
        words = outcome(result)
        words = (
            words.removeprefix(self._key_argument).lstrip(" :") or words
        )  # an error often repeats the argument at first
        if self._files and not result.diff:  # the outcome of a diff counts lines already
            words = f"{words}   {self._files}"
        end = Content.styled(f"{sign} {words}".strip(), style)
        if result.seconds >= 0.05 and width >= 60:
            end = end.append(Content.styled(f"  {elapsed(result.seconds)}", "$text-muted"))
        tokens = Content.styled(f"{short(result.tokens):>7}" if result.tokens and width >= 50 else "", "$text-muted")
        room, min_call = width - end.cell_length - tokens.cell_length - 4, max(12, width // 2)
        if room < min(min_call, call.cell_length):  # both are cut: a cut call alone would hide what went wrong
            call = call.truncate(min_call, ellipsis=True)
            left = width - call.cell_length - tokens.cell_length - 3
            if left < MIN_OUTCOME_CELLS:  # too narrow for words: only the sign of the outcome
                return spread(call, Content.styled(sign, style), width)
            end, room = end.truncate(left, ellipsis=True), call.cell_length
        call = call.truncate(room, ellipsis=True)
        gap = max(3, min(OUTCOME_COLUMN, room) - call.cell_length)
        return spread(call.append(" " * gap).append(end), tokens, width)

    def body_lines(self, width: int) -> list[DrawnLine]:
        """The long arguments, then the diff or the output; for the to-do list its items."""
        result = self._result
        if (items := items_of(self._tool, self._arguments)) and (result is None or result.status == "ok"):
            return [line for item in items for line in wrapped(item_line(item, MAX_ITEM_CHARS), width)]
        lines = _text_lines(self._arguments_text(), width)
        if result is None:
            return lines + _text_lines(Content(excerpt(clean(self._progress), 4, TAIL_LINES)), width)
        if result.diff:
            lines += diff_lines(result.diff, width)
        elif result.status == "ok" and (path := read_path(self._tool, self._arguments)):
            lines += file_lines(result.output, path, width)
        else:
            lines += _text_lines(Content(excerpt(clean(result.output), HEAD_LINES, TAIL_LINES)), width)
        if result.spilled:
            lines += _text_lines(Content.styled(f"full text: {one_line(result.spilled)}", "$text-muted"), width)
        return lines

    def _arguments_text(self) -> Content:
        """The arguments that the first line has no room for; none if a diff shows them anyway."""
        if isinstance(self._arguments, str):
            return Content.styled(excerpt(clean(self._arguments), 8, 2), "$text-muted")
        long = {k: v for k, v in self._arguments.items() if isinstance(v, str) and ("\n" in v or len(v) > 60)}
        if self._result and self._result.diff:
            long = {}
        lines = [f"{one_line(k, 40)}: {excerpt(clean(str(v)), 12, 2)}" for k, v in long.items()]
        return Content.styled("\n".join(lines), "$text-muted")


def _text_lines(words: Content, width: int) -> list[DrawnLine]:
    return wrapped(words, width) if words else []
