"""The line on top: what this is, which session, which model, what it may do."""

from __future__ import annotations

import msgspec
from textual.content import Content

from ctxchat.tui.reading.text import one_line
from ctxchat.tui.transcript.lines import spread
from ctxchat.tui.widgets.line import Line


class HeaderState(msgspec.Struct, frozen=True):
    """What the header says."""

    title: str = ""
    model: str = ""
    mode: str = ""
    sandboxed: bool = True
    read_only: bool = False
    agent: str = ""


def model_words(name: str, room: int) -> str:
    """A model's name in at most `room` characters: who provides it goes first, then what stands at the left."""
    if name == "offline/assistant":
        words = "offline assistant"
        return words if len(words) <= room else "offline"
    flat = one_line(name, 200)
    shown = flat.rsplit("/", 1)[-1] if len(flat) > room or flat.count("/") == 1 else flat
    if len(shown) > room:
        shown = shown.removeprefix("claude-").removesuffix("-latest")
    return shown if len(shown) <= room else "…" + shown[1 - room :]


class Header(Line):
    """`ctxchat  title      model  mode  sandboxed`, shorter where there is less room."""

    def __init__(self) -> None:
        super().__init__(id="header")
        self._heading = HeaderState()

    def show(self, heading: HeaderState) -> None:
        """From now on."""
        if heading != self._heading:
            self._heading = heading
            self.refresh()

    def line(self, width: int) -> Content:
        heading = self._heading
        model = model_words(heading.model, max(8, width // 3))
        mode = "read-only session" if heading.read_only else heading.mode
        sandbox = ("sandboxed" if heading.sandboxed else "not sandboxed") if model else ""  # nothing is known before it
        agent = one_line(heading.agent, 20) if width >= 50 else ""
        words: list[tuple[str, str]] = [(agent, "$text-accent"), (model, "$text"), (mode, "$text-muted")]
        if width >= 70:
            words.append((sandbox, "$text-muted" if heading.sandboxed else "$text-warning"))
        elif not heading.sandboxed and width >= 44:
            words.append(("no sandbox", "$text-warning"))
        if width < 34:
            words = words[2:]
        right = Content("   " if width >= 70 else "  ").join([Content.styled(w, s) for w, s in words if w])
        left = Content.styled("ctxchat", "bold $accent")
        if heading.title and width >= 56:
            left = left.append("  ").append(Content(one_line(heading.title, 120)))
        return spread(left, Content("  ").append(right), width)
