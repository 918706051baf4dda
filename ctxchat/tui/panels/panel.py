"""What the screens over the chat are made of: a heading, keys at the bottom, a way back, errors said instead of raised; and what
several of them are: lists that words narrow, lists that write into the person's settings, short questions in a box."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Literal, TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Footer, Input, Static
from textual.widgets._footer import FooterKey

from ctxchat.config.effective import Loaded
from ctxchat.core.errors import CtxchatError
from ctxchat.presentation.text import clean, cut
from ctxchat.tui.style import MUTED, STYLE
from ctxchat.tui.style.themed_app import ThemedApp
from ctxchat.tui.terminal.input_queue import InOrder
from ctxchat.tui.widgets.current_size import CurrentSizeScreen
from ctxchat.tui.widgets.field import Field
from ctxchat.tui.widgets.line import Line
from ctxchat.tui.widgets.lines import spread
from ctxchat.tui.widgets.rows import Cell, Column, Rows

Result = TypeVar("Result")
Value = TypeVar("Value")

CONFIRM_PAUSE_S = 0.5
"""Seconds without a key before enter confirms."""

WAYS_BACK = frozenset({"back", "say(False)"})
"""Actions whose key is shown however narrow it gets."""

KEY_PADDING_COLUMNS = 3
"""Columns a key takes beside its words: one inside, two after it."""


class Heading(Line):
    """What this is at the left, what it says at the right: the longest of several ways to say it that fits."""

    def __init__(self, left: str = "") -> None:
        super().__init__(classes="panel-heading")
        self._left = Content.styled(left, "bold $text-accent")
        self._rights: Sequence[Content] = ()

    def show_heading(self, left: str, *rights: Content | str) -> None:
        """From now on; what follows three spaces in `left` is its quieter part. `rights` the longest first."""
        name, _, rest = clean(left).partition("   ")
        self._left = Content.assemble((name, "bold $text-accent"), (f"   {rest}" if rest else "", MUTED))
        self._rights = [r if isinstance(r, Content) else Content.styled(clean(r), MUTED) for r in rights]
        self.refresh()

    def draw_line(self, width: int) -> Content:
        for left in (40, 24):  # a shorter way to say it rather than half a title
            room = width - min(self._left.cell_length, left) - 2
            if right := next((r for r in self._rights if r.cell_length <= room), None):
                return spread(self._left, right, width)
        return spread(self._left, Content(""), width)


class PanelKeys(Footer):
    """The line of keys: the way back always, of the others as many as fit whole. Textual's own would cut the end off."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def compose(self) -> ComposeResult:
        idle = self.screen.idle if isinstance(self.screen, Panel) else frozenset[str]()
        keys = [key for key in super().compose() if isinstance(key, FooterKey) and key.action not in idle]
        back = [key for key in keys if key.action in WAYS_BACK]
        room = self.screen.size.width - sum(_columns(key) for key in back)
        for key in sorted((key for key in keys if key not in back), key=lambda key: key.action == "find"):
            if _columns(key) <= room:  # what is too long gives its place to what is not
                room -= _columns(key)
                yield key
        yield from back

    def on_resize(self) -> None:
        self.refresh(recompose=True)


def _columns(key: FooterKey) -> int:
    return len(key.key_display) + len(key.description) + KEY_PADDING_COLUMNS


class Over(CurrentSizeScreen[Result]):
    """Lies over the chat, or over another such screen. Made of its `body`, with its keys below it."""

    CSS_PATH = STYLE / "panels.tcss"
    BINDINGS = [Binding("escape", "back", "back")]

    def body(self) -> ComposeResult:
        """What is in it."""
        return ()

    def action_back(self) -> None:
        """Out of the screen with nothing chosen."""
        self.dismiss(None)

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """As Textual's, which closes whatever is on top: this one, and before it what lies over it; once."""
        stack = self.app.screen_stack
        if self not in stack:
            return AwaitComplete.nothing()
        for above in reversed(stack[stack.index(self) + 1 :]):
            above.dismiss(None)
        return super().dismiss(result)


class Panel(Over[Result]):
    """All of the window. Esc leaves a field first, then the screen."""

    DEFAULT_CLASSES = "panel"
    HOME: ClassVar[type[Widget]] = Rows
    """Where the focus is at rest, if there is one of these."""

    def compose(self) -> ComposeResult:
        yield Heading(self.title or "")
        yield from self.body()
        yield PanelKeys()

    def on_mount(self) -> None:
        self.set_focus(self.home)

    @property
    def home(self) -> Widget | None:
        """Where the focus is at rest; None for nowhere in particular."""
        return next(iter(self.query(self.HOME)), None)

    @property
    def rows(self) -> Rows[Any]:
        """The list."""
        return self.query_one(Rows)

    @property
    def idle(self) -> frozenset[str]:
        """Actions whose keys are not told now: there is nothing they could be for, and pressed they say so."""
        return frozenset()

    def head(self, *rights: Content | str, left: str = "") -> None:
        """What the heading says."""
        self.query_one(Heading).show_heading(left or self.title or "", *rights)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_choose()

    def action_choose(self) -> object:
        """What Enter does with a row, and so does a double click; nothing, where rows are only looked at."""

    def action_back(self) -> None:
        """Out of a field, or out of the screen with nothing chosen."""
        if isinstance(self.focused, Input) and (home := self.home):
            self.set_focus(home)
        else:
            super().action_back()

    def reread(self, loaded: Loaded) -> None:
        """The settings were edited."""

    def opened_again(self) -> None:
        """The key that opened this was pressed once more."""
        self.dismiss(None)

    def notify_here(self, text: str, *, error: bool = False) -> None:
        """In a corner."""
        self.notify(clean(text), severity="error" if error else "information", markup=False)

    async def sure(self, question: str) -> bool:
        """Asked before a letter changes what the model sees: letters are typed by mistake. In a worker."""
        return bool(await self.app.push_screen_wait(Confirm(question)))

    async def attempt(self, work: Awaitable[Value]) -> Value | None:
        """The result of something that may fail; a failure is said and gives None."""
        try:
            return await work
        except CtxchatError as problem:
            self.notify_here(str(problem), error=True)
            return None


class Listing(Panel[Result]):
    """A list, a field whose words narrow it, and below them what is to be known `about` the item under the cursor."""

    COLUMNS: ClassVar[Sequence[Column]]
    EMPTY = ""
    """What is said where there is nothing at all."""

    NOT_FOUND = "Nothing found."
    """What is said where nothing holds the words in the field."""

    FILTER_PLACEHOLDER = "part of a name"
    """What the field says while it is empty."""

    ABOUT = True

    OF_ITEMS: ClassVar = frozenset(
        {"choose", "find", "remove", "allow", "default", "rename", "fork", "delete", "edit", "stop"}
    )
    """What is done with something in the list."""

    BINDINGS = [Binding("slash", "find", "find", key_display="/")]

    @property
    def idle(self) -> frozenset[str]:
        return frozenset() if self.rows.items or self.words or not self.rows.filled else self.OF_ITEMS

    def body(self) -> ComposeResult:
        yield Rows(self.COLUMNS, self.cells, empty="looking …")
        yield Field(placeholder=self.FILTER_PLACEHOLDER, classes="find", compact=True)
        if self.ABOUT:
            yield Static(id="about", markup=False)

    def cells(self, item: Any, /) -> Sequence[Cell]:
        """The line of an item."""
        raise NotImplementedError

    def describe_item(self, item: Any, /) -> Content | str:
        """What is to be known of it; of None, where nothing is shown."""
        raise NotImplementedError

    def apply_filter(self) -> None:
        """The words in the field are others."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """What stands in the field."""
        return self.query_one(Input).value

    @property
    def nothing(self) -> str:
        """What is said where no item is shown."""
        return self.NOT_FOUND if self.words else self.EMPTY

    def holding(self, items: Iterable[Value], text: Callable[[Value], str]) -> list[Value]:
        """Those whose text holds all the words in the field."""
        wanted = self.words.casefold().split()
        return [item for item in items if all(word in text(item).casefold() for word in wanted)]

    def set_items(self, items: Sequence[Value], at: object, key: Callable[[Value], object] = lambda item: item) -> None:
        """Show these, with the cursor on the one that has this key, else on the first."""
        place = next((place for place, item in enumerate(items) if key(item) == at), 0)
        self.rows.show_items(items, at=place, empty=self.nothing)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.refresh_bindings()
        if self.ABOUT:
            self.query_one("#about", Static).update(self.describe_item(event.item))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.input.set_class(bool(event.value), "-filled")
        if self.rows.filled:  # else they are still being looked for
            self.apply_filter()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.set_focus(self.home)

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))


class EditableListing(Listing[bool]):
    """Shows the settings that are `loaded`, writes into the person's own `file`, and comes back with True where something was
    written, else None. `load` reads everything anew."""

    def __init__(self, loaded: Loaded, load: Callable[[], Loaded], file: Path) -> None:
        super().__init__()
        self._loaded, self._load, self._file = loaded, load, file
        self._touched = False
        self._writing = asyncio.Lock()

    def reread(self, loaded: Loaded) -> None:
        """Show these settings."""
        self._loaded = loaded
        self.apply_filter()

    def action_back(self) -> None:
        if isinstance(self.focused, Input):
            super().action_back()
        else:
            self.opened_again()

    def opened_again(self) -> None:
        leaving = asyncio.create_task(self._leave_when_written(), name="leaving")
        if isinstance(self.app, InOrder):  # what is typed from now on is for the screen below
            gone = self.app.expect_screen()
            leaving.add_done_callback(lambda _: None if gone.done() else gone.set_result(None))

    async def _leave_when_written(self) -> None:
        """Once what is being written is in the file: only then is it known whether anything was."""
        async with self._writing:
            self.dismiss(True if self._touched else None)

    async def change_file(self, change: Callable[..., None], *given: Any) -> None:
        """Change the file, off the loop; say what is wrong with that, and show what stands in it then."""
        await self.write_next(change, lambda: given)

    async def write_next(self, change: Callable[..., None], given: Callable[[], Sequence[Any]]) -> None:
        """As `change_file`; what is given is asked for once all before it is in the file, and shown."""
        async with self._writing:
            try:
                await asyncio.to_thread(change, self._file, *given())
            except CtxchatError as problem:
                self.notify_here(str(problem), error=True)
            except OSError as problem:
                self.notify_here(f"{self._file}: {problem.strerror or problem}", error=True)
            else:
                self._touched = True
                self.reread(await asyncio.to_thread(self._load))


class Dialog(Over[Result], ModalScreen[Result]):
    """A short question in a box over a screen."""

    DEFAULT_CLASSES = "asking"

    def compose(self) -> ComposeResult:
        with Vertical():
            yield from self.body()
            yield PanelKeys()

    def action_say(self, answer: Any) -> None:
        """This is the answer."""
        self.dismiss(answer)


class Confirm(Dialog[bool | Literal["later"]]):
    """A question that enter answers with yes, after a pause: neither a key on its way nor a sentence does. A letter is no, and is
    looked at again where it was meant. `danger`: what yes does is said in red. `may_wait`: `w` puts it off until the next
    compaction, and the answer is `later`."""

    BINDINGS = [
        Binding("enter", "say(True)", "yes", key_display="enter"),
        Binding("w", "say('later')", "with the next compaction"),
        Binding("escape,n", "say(False)", "no", key_display="esc"),
    ]

    def __init__(self, question: str, *, danger: str = "", may_wait: bool = False) -> None:
        super().__init__()
        self._question, self._danger, self._may_wait = question, danger, may_wait
        self._last_key = 0.0

    def body(self) -> ComposeResult:
        if self._danger:
            yield Static(Content.styled(cut(self._danger), "bold $text-error"), markup=False)
        yield Static(Content(cut(self._question)), markup=False)

    def on_mount(self) -> None:
        self._last_key = self._now()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._may_wait or parameters != ("later",)

    def _now(self) -> float:
        return self.app.now() if isinstance(self.app, ThemedApp) else monotonic()

    def on_key(self, event: Key) -> None:
        before, self._last_key = self._last_key, self._now()
        waits = self._may_wait and event.key == "w"
        if (event.key == "enter" or waits) and self._last_key - before < CONFIRM_PAUSE_S:
            event.stop()
        elif event.is_printable and event.key != "n" and not waits:
            event.stop()
            self.dismiss(False)
            if isinstance(self.app, InOrder):
                self.app.look_again(event)


class AnswerField(Field):
    """The field of a short question: the footer says that enter takes what is in it."""

    BINDINGS = [Binding("enter", "submit", "take it", key_display="enter")]


class AskText(Dialog[str]):
    """A line of text, or None."""

    def __init__(self, question: str, text: str = "") -> None:
        super().__init__()
        self._question, self._text = question, text

    def body(self) -> ComposeResult:
        yield Static(Content(cut(self._question)), markup=False)
        yield AnswerField(self._text, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)
