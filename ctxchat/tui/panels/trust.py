"""The question whether a folder is to be trusted, with everything that its settings would do then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ctxchat.presentation.text import clean, cut
from ctxchat.tui.panels.panel import Confirm


class TrustScreen(Confirm):
    """Whether a folder is to be trusted: enter after a pause, and nothing else, is yes. `lines` say what waits for it, `before`
    what was trusted at an earlier time."""

    BINDINGS = [Binding("enter", "say(True)", "trust it", key_display="enter")]

    def __init__(self, folder: Path, lines: Sequence[str], before: Sequence[str] | None = None) -> None:
        super().__init__(f"Trust {clean(str(folder))}?")
        self._lines, self._before = lines, before

    def body(self) -> ComposeResult:
        yield from super().body()
        yield Static(self._about(), classes="quiet", markup=False)
        with VerticalScroll(classes="held"):
            for sign, line in marked(self._lines, self._before):
                yield Static(Content(f"{sign} {cut(line)}"), classes="-wrong" if sign in "+−" else "", markup=False)

    def _about(self) -> str:
        if self._before is not None and set(self._before) != set(self._lines):
            return "Its settings changed since you trusted them: + is new, − is gone. From then on they do this:"
        if self._before is not None:
            return "Something in its settings changed that these lines do not show. From then on they do this:"
        if not self._lines:
            return "It has no settings of its own now. Those it gets later must be trusted again."
        return "From then on its own settings do this:"


def marked(lines: Sequence[str], before: Sequence[str] | None) -> list[tuple[str, str]]:
    """Each line with a sign: `·` as it was, `+` new, `−` no longer there; what changed first."""
    if before is None:
        return [("·", line) for line in lines]
    gone = [("−", line) for line in before if line not in lines]
    return [*(("+", line) for line in lines if line not in before), *gone, *(("·", x) for x in lines if x in before)]
