"""An empty chat: what can be asked here, three examples from the folder, ways to begin, and the gauge in a line."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.presentation.text import one_line
from ctxchat.tui.commands import Keys, shown_key
from ctxchat.tui.widgets.notice import Hanging
from ctxchat.tui.widgets.pressable import Pressable

MAX_EXAMPLES = 3

TOUR = "tour"
"""In place of a command: the tour is a session of its own."""


LATER = (
    ("free_up", "makes room, after a look at what goes"),
    ("undo_compaction", "takes that back"),
    ("archive", "has every message that was replaced"),
    ("search", "finds anything ever said"),
    ("xray", "lists what fills the window"),
)
"""What is good to know once there is a conversation: an action, and what its key does."""


class Example(Pressable):
    """A way to begin, with its key: a question for the composer, or a command."""

    BINDINGS = [
        ("up", "app.focus_previous", "Before"),
        ("down", "app.focus_next", "Next"),
    ]

    class Pressed(Message):
        """Take the words into the composer, or run the command."""

        def __init__(self, text: str, command: str) -> None:
            super().__init__()
            self.text, self.command = text, command

    def __init__(self, key: str, text: str, command: str = "") -> None:
        super().__init__(Hanging(Content.styled(key, "$text-accent"), Content(one_line(text))), markup=False)
        self.add_class("example")
        self.key, self._text, self._command = key, text, command

    def action_press(self) -> None:
        self.post_message(self.Pressed(self._text, self._command))


class EmptyChat(Widget):
    """Shown until something is said. Its keys work where one of its lines has the focus: `tab` in an empty draft goes there."""

    BINDINGS = [(key, f"choose('{key}')") for key in ("1", "2", "3", "m", "s", "t")]  # as in `offer_ways`

    def __init__(self, folder: str, keys: Keys) -> None:
        super().__init__(id="empty")
        self._keys = keys
        self._folder = folder
        self._questions: Sequence[str] = ()
        self._ways: Sequence[tuple[str, str, str]] = ()

    def compose(self) -> ComposeResult:
        folder = one_line(self._folder, 60) or "this folder"
        yield Static(
            Content.assemble("Ask about the files in ", (folder, "bold"), ", or have them changed and commands run."),
            markup=False,
        )
        yield Static(
            Content.assemble("Or press ", ("tab", "$text-accent"), ", then one of these:"),
            markup=False,
            classes="ways",
        )
        yield Vertical(id="examples")
        gauge = "The bar below is the context window: letters name what fills it; compaction starts at ╷ and ends at ╎."
        yield Static("", markup=False, id="first-note")
        yield Static(Content.styled(gauge, "$text-muted"), markup=False, classes="explain")
        yield Static(self._later(), markup=False, classes="later")

    def use_keys(self, keys: Keys) -> None:
        """Show these keys from now on."""
        self._keys = keys
        for place in self.query(".later").results(Static):
            place.update(self._later())

    def _later(self) -> Content:
        known = [(shown_key(self._keys[action][0]), words) for action, words in LATER if self._keys.get(action)]
        room = max((len(key) for key, _ in known), default=0)
        lines = [Content.assemble((key.ljust(room), "$text-accent"), f"  {words}") for key, words in known]
        return Content("\n").join([Content.styled("Later on:", "$text-muted"), *lines])

    def action_choose(self, key: str) -> None:
        """The line with this key, where there is one."""
        for each in self.query(Example):
            if each.key == key:
                each.action_press()

    def focus_example(self) -> bool:
        """Move the focus from the empty editor to the first example; False if none is on screen."""
        seen = [each for each in self.screen.focus_chain if isinstance(each, Example)]
        if seen:
            seen[0].focus()
        return bool(seen)

    def offer_questions(self, questions: Sequence[str]) -> None:
        """Examples made from the folder."""
        self._questions = questions[:MAX_EXAMPLES]
        self._show_ways()

    def offer_ways(self, *, has_model: bool, has_sessions: bool, in_tour: bool) -> None:
        """A model to connect where there is none; earlier sessions where there are some, else the tour."""
        ways: list[tuple[str, str, str]] = []
        if not has_model:
            ways.append(("m", "connect a model", "model"))
        if has_sessions:
            ways.append(("s", "go on with an earlier session", "sessions"))
        elif not in_tour:
            ways.append(("t", "take the two-minute tour", TOUR))
        self._ways = ways
        self._show_ways()

    def say(self, note: str) -> None:
        """A sentence below the examples; empty for none any more."""
        place = self.query_one("#first-note", Static)
        place.update(Content.styled(note, "$text-muted"))
        place.set_class(bool(note), "-said")

    def _show_ways(self) -> None:
        questions = [Example(str(n), text) for n, text in enumerate(self._questions, 1)]
        box = self.query_one("#examples")
        box.remove_children()
        box.mount(*questions, *(Example(*way) for way in self._ways))
