"""A tool call: one line with its key argument, outcome, time and tokens, that unfolds to diff and output; below it a
sub-agent's own gauge."""

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
"""How a delegated call says where its sub-agent's record lies."""

BAR_COLUMNS = 20
"""Of the bar, where there is room."""


def sub_gauge(said: Delegated, width: int) -> Content:
    """`  sub-agent  ██▏·············  12 %  3.9k/28.7k`."""
    share = said.used / said.limit if said.limit > 0 else 0.0
    fill = f"{percent(share) if said.limit > 0 else '?'}  {short(said.used)}/{short(said.limit)}"
    name = f"  {one_line(said.agent, 16)}  "
    columns = max(0, min(BAR_COLUMNS, width - len(name) - len(fill) - 2))
    filled = min(columns, max(1, round(share * columns))) if columns and said.used else 0
    return Content.assemble(
        (name, "$text-muted"),
        ("█" * filled, "$accent"),
        ("·" * (columns - filled), "$text-muted"),
        (f"  {fill}" if columns else fill, "$text-muted"),
    ).truncate(width, ellipsis=True)


MIN_OUTCOME_CELLS = 8
"""Columns below which no part of an outcome says anything."""

OUTCOME_COLUMN = 34
"""The column where outcomes begin when the call itself is shorter, so that they stand under each other."""

LIVE_LINES, MAX_LIVE_CHARS = 3, 4_000
"""Lines of a call at work that are shown while it is folded, and the characters they are looked for in."""

MAX_ITEM_CHARS = 500
"""Characters of an item of a to-do list that are shown."""

MAX_OUTPUT_CHARS = 65_536
"""Characters kept of the output of a tool at work; what it wrote is whole in its result."""


class ToolBlock(Fold):
    """A call from its start to its end. `result` is set when it is over."""

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
    ) -> None:
        super().__init__()
        self.call_id = call_id
        self._tool, self._key = one_line(name, 40) or "tool", visible(key_argument(arguments))
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
        """More output of a call at work."""
        self._progress = (self._progress + text)[-MAX_OUTPUT_CHARS:]
        self.changed()

    def ask(self, asking: bool) -> None:
        """It waits for a person's answer, or goes on with it: only then its time begins."""
        self._asking, self._since = asking, monotonic()
        self.changed()

    def touched(self, changes: Sequence[FileChange]) -> None:
        """What it did to files."""
        self._files = one_line(files_words(changes), 60)
        self.changed()

    def delegated(self, context_usage: Delegated) -> None:
        """The gauge of the sub-agent that works for this call."""
        self._delegated = context_usage
        self.changed()

    @property
    def _sub_session(self) -> str:
        """The session of the sub-agent that works for this call, or did; empty where there is none."""
        if self._delegated:
            return self._delegated.sub_session
        if self._tool != DELEGATE or (self._result is None and not self._progress):
            return ""
        said = SUB_SESSION.findall(self._result.output if self._result else self._progress)
        return said[-1 if self._result else 0] if said else ""  # ours is the last line, and the first while it works

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
        """So much of the window does its result hold by now; 0 where it is not in it."""
        if self._result is not None and self._result.tokens != tokens:
            self._result = msgspec.structs.replace(self._result, tokens=tokens)
            self.changed()

    def stop(self) -> None:
        """The turn ended before the call did."""
        if self._result is None:
            seconds = monotonic() - self._since
            self.finish(ToolFinished(self.call_id, self._tool, "cancelled", self._progress, 0, seconds))

    def foot(self, width: int) -> Sequence[Content]:
        """A sub-agent's gauge, and the newest lines of a call at work."""
        gauge = (self._sub_line(width),) if self._sub_session else ()
        return gauge if self.unfolded or self._result is not None else (*gauge, *self._live_lines(width))

    def _sub_line(self, width: int) -> Content:
        """The sub-agent's gauge, and the way to its work."""
        words = Content.styled("  its work", "$text-accent").append(
            Content.styled(" enter" if self._focused else "", "$text-muted")
        )
        gauge = sub_gauge(self._delegated, max(1, width - 16)) if self._delegated else Content("")
        return target(gauge.append(words).truncate(width, ellipsis=True), "work")

    def _live_lines(self, width: int) -> list[Content]:
        lines = [line for line in clean(self._progress[-MAX_LIVE_CHARS:]).split("\n") if line.strip()]
        return [
            Content.styled(f"    {one_line(line, 1_000)}", "$text-muted").truncate(width)
            for line in lines[-LIVE_LINES:]
        ]

    def head(self, width: int) -> Content:
        """`▸ grep "tide gauge"   3 hits  0.1 s   412`, or with a spinner while it runs."""
        result = self._result
        seconds = monotonic() - self._since if result is None else result.seconds
        mark = ("?" if self._asking else spin(seconds)) if result is None else self.sign
        call = Content.assemble((f"{mark} ", "$accent" if result is None else "$text-muted"), (self._tool, "bold"))
        call = call.append(Content(f" {self._key}"))
        if result is None:
            state = "waits for you" if self._asking else f"{seconds:.0f} s  esc stops"
            return spread(call, Content.styled(state, "$text-muted"), width)
        sign = SIGNS[result.status] or ("✗" if result.exit_code else "")
        style = {"✗": "$text-error", "⊘": "$text-warning", "◌": "$text-warning"}.get(sign, "$text-muted")
        said = outcome(result)
        words = said.removeprefix(self._key).lstrip() or said  # an error often begins with what was asked for
        if self._files and not result.diff:  # of a diff the lines are told already
            words = f"{words}   {self._files}"
        end = Content.styled(f"{sign} {words}".strip(), style)
        if result.seconds >= 0.05 and width >= 60:
            end = end.append(Content.styled(f"  {elapsed(result.seconds)}", "$text-muted"))
        tokens = Content.styled(f"{short(result.tokens):>7}" if result.tokens and width >= 50 else "", "$text-muted")
        room, least = width - end.cell_length - tokens.cell_length - 4, max(12, width // 2)
        if room < min(least, call.cell_length):  # both are cut, or what went wrong would not be seen
            call = call.truncate(least, ellipsis=True)
            left = width - call.cell_length - tokens.cell_length - 3
            if left < MIN_OUTCOME_CELLS:  # narrow: the outcome's sign stands for it
                return spread(call, Content.styled(sign, style), width)
            end, room = end.truncate(left, ellipsis=True), call.cell_length
        call = call.truncate(room, ellipsis=True)
        gap = max(3, min(OUTCOME_COLUMN, room) - call.cell_length)
        return spread(call.append(" " * gap).append(end), tokens, width)

    def body_lines(self, width: int) -> list[DrawnLine]:
        """Arguments in full, then diff or output; of the to-do list the items."""
        result = self._result
        if (items := items_of(self._tool, self._arguments)) and (result is None or result.status == "ok"):
            return [line for item in items for line in wrapped(item_line(item, MAX_ITEM_CHARS), width)]
        lines = _text_lines(self._called(), width)
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

    def _called(self) -> Content:
        if isinstance(self._arguments, str):
            return Content.styled(excerpt(clean(self._arguments), 8, 2), "$text-muted")
        long = {k: v for k, v in self._arguments.items() if isinstance(v, str) and ("\n" in v or len(v) > 60)}
        if self._result and self._result.diff:
            long = {}
        lines = [f"{one_line(k, 40)}: {excerpt(clean(str(v)), 12, 2)}" for k, v in long.items()]
        return Content.styled("\n".join(lines), "$text-muted")


def _text_lines(words: Content, width: int) -> list[DrawnLine]:
    return wrapped(words, width) if words else []
