"""An empty chat: what can be asked here, three examples from the folder, and the gauge in a line."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.presentation.text import one_line
from ctxchat.tui.widgets.notice import Hanging
from ctxchat.tui.widgets.pressable import Pressable


class Example(Pressable):
    """A question to begin with."""

    BINDINGS = [
        ("up", "app.focus_previous", "Before"),
        ("down", "app.focus_next", "Next"),
    ]

    class Pressed(Message):
        """Take it into the composer."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, text: str) -> None:
        sign = Content.styled("›", "$text-accent")
        super().__init__(Hanging(sign, Content(one_line(text))), markup=False, classes="example")
        self._question = text

    def action_press(self) -> None:
        self.post_message(self.Pressed(self._question))


class EmptyChat(Widget):
    """Shown until something is said."""

    def __init__(self, folder: str) -> None:
        super().__init__(id="empty")
        self._folder = folder

    def compose(self) -> ComposeResult:
        folder = one_line(self._folder, 60) or "this folder"
        yield Static(
            Content.assemble("Ask about the files in ", (folder, "bold"), ", or have them changed and commands run."),
            markup=False,
        )
        yield Vertical(id="examples")
        gauge = "The bar below is the context window: letters name what fills it; compaction starts at ╷ and ends at ╎."
        yield Static(Content.styled(gauge, "$text-muted"), markup=False, classes="explain")

    def focus_example(self) -> bool:
        """From the empty editor to the first of them; False where none is to be seen."""
        seen = [each for each in self.screen.focus_chain if isinstance(each, Example)]
        if seen:
            seen[0].focus()
        return bool(seen)

    def offer(self, questions: Sequence[str]) -> None:
        """Examples made from the folder."""
        box = self.query_one("#examples")
        box.remove_children()
        box.mount(*[Example(q) for q in questions])
