"""Over the composer: the question whether to import sessions of other agents, and how far an import is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual.binding import Binding
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.words import count
from ctxchat.importing.outcome import Importable, ReadSoFar, importable, size_words
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.widgets.asked import Offer, Offered


class ImportOffer(Offered):
    """Import what was found, in the usual places or where `path` says, or not now."""

    BINDINGS = [
        Binding("i", "answer('import')", "Import", show=False),
        Binding("escape", "answer('later')", "Not now", show=False),
    ]
    ELSEWHERE = (("=tab", "to the question"), ("send", "send"), ("palette", "all commands"))

    class Answered(Message):
        """Whether to."""

        def __init__(self, path: str, agreed: bool) -> None:
            super().__init__()
            self.path, self.agreed = path, agreed

    def __init__(self, found: Sequence[Importable], path: str = "") -> None:
        super().__init__(id="import-offer")
        self._found, self._path = found, path

    @property
    def offers(self) -> Sequence[Offer]:
        return (("import", "i", "import", False), ("later", "esc", "not now", False))

    def body(self) -> Iterable[Widget]:
        words = f"Import {one_line(importable(self._found), 200)}?"
        yield Static(Content.assemble(("? ", "bold $text-warning"), (words, "bold")), markup=False, classes="question")

    def answer(self, what: str) -> None:
        self.say(self.Answered(self._path, what == "import"))


class ImportLine(Static, can_focus=True):
    """`importing 34 % of 1.2 GB, 120 sessions`; x, enter or a click stops it, once."""

    BINDINGS = [Binding("x,enter,delete", "stop", "Stop")]

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__("importing …", id="import-line", markup=False)
        self._stop = stop

    def show(self, news: ReadSoFar, sessions: int) -> None:
        """So far."""
        done = min(100, news.read * 100 // max(1, news.of))
        words = f"importing {done} % of {size_words(news.of)}, {count(sessions, 'session')}"
        self.update(Content.assemble((words, "$text-muted"), ("   x", "$text-accent"), (" stops", "$text-muted")))

    def action_stop(self) -> None:
        self._stop()

    def on_click(self, event: Click) -> None:
        event.stop()
        self._stop()
