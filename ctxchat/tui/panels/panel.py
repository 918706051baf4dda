"""Base classes of the screens over the chat: panels with a heading, a line of keys, a way back, and errors that are shown instead
of raised; lists with a filter; lists that edit the person's settings; dialogs with a short question."""

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
"""Actions whose keys are shown however narrow the window is: those that leave the screen."""

KEY_PADDING_COLUMNS = 3
"""Cells that a key in the footer takes beside its text: one inside, two after it."""


DIALOG_COLUMNS, DIALOG_PADDING_COLUMNS = 64, 4
"""Cells of a dialog where the window has as many, and those of them at its sides that stay empty."""


class Heading(Line):
    """The top line of a panel: its name at the left, and at the right the longest of several texts that fits."""

    def __init__(self, left: str = "") -> None:
        super().__init__(classes="panel-heading")
        self._left = Content.styled(left, "bold $text-accent")
        self._right_texts: Sequence[Content] = ()

    def show_heading(self, left: str, *rights: Content | str) -> None:
        """Show these texts. What follows three spaces in `left` is muted; `rights` say the same, the longest first."""
        name, _, muted = clean(left).partition("   ")
        self._left = Content.assemble((name, "bold $text-accent"), (f"   {muted}" if muted else "", MUTED))
        self._right_texts = [r if isinstance(r, Content) else Content.styled(clean(r), MUTED) for r in rights]
        self.refresh()

    def draw_line(self, width: int) -> Content:
        for left in (40, 24):  # cells kept for the left: rather a shorter text at the right than half a title
            room = width - min(self._left.cell_length, left) - 2
            if right := next((r for r in self._right_texts if r.cell_length <= room), None):
                return spread(self._left, right, width)
        return spread(self._left, Content(""), width)


class PanelKeys(Footer):
    """The footer: always the keys that leave the screen, and as many of the others as fit whole. Textual's own cuts the end
    off. A dialog asks for one of its keys, so it shows them all, below each other where the window is narrow."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def compose(self) -> ComposeResult:
        idle = self.screen.idle if isinstance(self.screen, Panel) else frozenset[str]()
        keys = [key for key in super().compose() if isinstance(key, FooterKey) and key.action not in idle]
        back = [key for key in keys if key.action in WAYS_BACK]
        others = sorted((key for key in keys if key not in back), key=lambda key: key.action == "find")
        if isinstance(self.screen, Dialog):
            room = min(DIALOG_COLUMNS, self.screen.size.width) - DIALOG_PADDING_COLUMNS
            self.set_class(sum(map(_cells_of_key, keys)) > room, "-stacked")
            yield from others
        else:
            room = self.screen.size.width - sum(_cells_of_key(key) for key in back)
            for key in others:
                if _cells_of_key(key) <= room:  # after one that is too long, a shorter one may still fit
                    room -= _cells_of_key(key)
                    yield key
        yield from back

    def on_resize(self) -> None:
        self.refresh(recompose=True)


def _cells_of_key(key: FooterKey) -> int:
    return len(key.key_display) + len(key.description) + KEY_PADDING_COLUMNS


class Over(CurrentSizeScreen[Result]):
    """A screen over the chat, or over another such screen: its `body`, and its keys below."""

    CSS_PATH = STYLE / "panels.tcss"
    BINDINGS = [Binding("escape", "back", "back")]

    def body(self) -> ComposeResult:
        """The widgets in it."""
        return ()

    def action_back(self) -> None:
        """Leave the screen with nothing chosen."""
        self.dismiss(None)

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this screen, and before it those that lie over it; nothing if it is closed already. Textual's own closes
        whichever screen is on top."""
        stack = self.app.screen_stack
        if self not in stack:
            return AwaitComplete.nothing()
        for above in reversed(stack[stack.index(self) + 1 :]):
            above.dismiss(None)
        return super().dismiss(result)


class Panel(Over[Result]):
    """A screen that fills the window, with a heading. Esc leaves a field first, then the screen."""

    DEFAULT_CLASSES = "panel"
    HOME: ClassVar[type[Widget]] = Rows
    """The kind of widget that has the focus unless a person moves it: the first of this kind, if there is one."""

    def compose(self) -> ComposeResult:
        yield Heading(self.title or "")
        yield from self.body()
        yield PanelKeys()

    def on_mount(self) -> None:
        self.set_focus(self.home)

    @property
    def home(self) -> Widget | None:
        """The widget that has the focus unless a person moves it; None for none."""
        return next(iter(self.query(self.HOME)), None)

    @property
    def rows(self) -> Rows[Any]:
        """The list."""
        return self.query_one(Rows)

    @property
    def idle(self) -> frozenset[str]:
        """Actions whose keys the footer leaves out now, as there is nothing to use them on; pressed, they say so."""
        return frozenset()

    def head(self, *rights: Content | str, left: str = "") -> None:
        """Set the heading: `left` (else the title), and at the right the longest of `rights` that fits."""
        self.query_one(Heading).show_heading(left or self.title or "", *rights)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_choose()

    def action_choose(self) -> object:
        """Act on the row under the cursor, after Enter or a double click; here nothing, for lists that are only looked at."""

    def action_back(self) -> None:
        """Leave the field; outside of a field, leave the screen with nothing chosen."""
        if isinstance(self.focused, Input) and (home := self.home):
            self.set_focus(home)
        else:
            super().action_back()

    def reread(self, loaded: Loaded) -> None:
        """Take over settings that were edited meanwhile."""

    def opened_again(self) -> None:
        """Handle the key that opened this screen, pressed once more: close it."""
        self.dismiss(None)

    def notify_here(self, text: str, *, error: bool = False) -> None:
        """Show a text in a corner of the screen for a while."""
        self.notify(clean(text), severity="error" if error else "information", markup=False)

    async def confirm(self, question: str) -> bool:
        """Ask whether to do something whose key is a letter and that changes what the model sees, as letters are typed by
        mistake. Only within a worker."""
        return bool(await self.app.push_screen_wait(Confirm(question)))

    async def attempt(self, work: Awaitable[Value]) -> Value | None:
        """The result of `work`; if that raises a `CtxchatError`, the error is shown and the result is None."""
        try:
            return await work
        except CtxchatError as problem:
            self.notify_here(str(problem), error=True)
            return None


class FindField(Field):
    """The field of a list; the footer says how to come back to the list: enter does."""

    BINDINGS = [Binding("enter", "submit", "to the list", key_display="enter")]


class Listing(Panel[Result]):
    """A list, a field whose words filter it, and below them (where `ABOUT`) a description of the item under the cursor."""

    COLUMNS: ClassVar[Sequence[Column]]
    EMPTY = ""
    """The text in place of the list if there are no items at all."""

    NOT_FOUND = "Nothing found."
    """The text in place of the list if no item has the words in the field."""

    FILTER_PLACEHOLDER = "part of a name"
    """The text in the field while it is empty."""

    ABOUT = True
    """Whether there is a description below the list."""

    OF_ITEMS: ClassVar = frozenset(
        {"choose", "find", "remove", "allow", "default", "rename", "fork", "delete", "edit", "stop"}
    )
    """Actions on an item of the list."""

    BINDINGS = [Binding("slash", "find", "find", key_display="/")]

    @property
    def idle(self) -> frozenset[str]:
        return frozenset() if self.rows.items or self.words or not self.rows.filled else self.OF_ITEMS

    def body(self) -> ComposeResult:
        yield Rows(self.COLUMNS, self.cells, empty="looking …")
        yield FindField(placeholder=self.FILTER_PLACEHOLDER, classes="find", compact=True)
        if self.ABOUT:
            yield Static(id="about", markup=False)

    def cells(self, item: Any, /) -> Sequence[Cell]:
        """The cells of an item, one for each of `COLUMNS`."""
        raise NotImplementedError

    def describe_item(self, item: Any, /) -> Content | str:
        """The description of the item under the cursor, or of None if the list is empty."""
        raise NotImplementedError

    def apply_filter(self) -> None:
        """Show the items that have the words in the field, as these have changed."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The text in the field."""
        return self.query_one(Input).value

    @property
    def nothing(self) -> str:
        """The text in place of the list if no item is shown."""
        return self.NOT_FOUND if self.words else self.EMPTY

    def matching(self, items: Iterable[Value], text: Callable[[Value], str]) -> list[Value]:
        """The items whose `text` has all the words in the field, in upper or lower case."""
        wanted = self.words.casefold().split()
        return [item for item in items if all(word in text(item).casefold() for word in wanted)]

    def set_items(self, items: Sequence[Value], at: object, key: Callable[[Value], object] = lambda item: item) -> None:
        """Show these items, with the cursor on the one whose key is `at`, else on the first."""
        index = next((index for index, item in enumerate(items) if key(item) == at), 0)
        self.rows.show_items(items, at=index, empty=self.nothing)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.refresh_bindings()
        if self.ABOUT:
            self.query_one("#about", Static).update(self.describe_item(event.item))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.input.set_class(bool(event.value), "-filled")
        if self.rows.filled:  # else the items are still being read
            self.apply_filter()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.set_focus(self.home)

    def action_find(self) -> None:
        self.set_focus(self.query_one(Input))


class EditableListing(Listing[bool]):
    """A list that shows the `loaded` settings and writes changes into the person's own `file`. Its result is True if something
    was written, else None. `load` reads all settings anew."""

    def __init__(self, loaded: Loaded, load: Callable[[], Loaded], file: Path) -> None:
        super().__init__()
        self._loaded, self._load, self._file = loaded, load, file
        self._has_written = False
        self._writing = asyncio.Lock()

    def reread(self, loaded: Loaded) -> None:
        """Show these settings in place of the present ones."""
        self._loaded = loaded
        self.apply_filter()

    def action_back(self) -> None:
        if isinstance(self.focused, Input):
            super().action_back()
        else:
            self.opened_again()

    def opened_again(self) -> None:
        leaving = asyncio.create_task(self._leave_when_written(), name="leaving")
        if isinstance(self.app, InOrder):  # keys from now on wait for the screen below
            closed = self.app.expect_screen()
            leaving.add_done_callback(lambda _: None if closed.done() else closed.set_result(None))

    async def _leave_when_written(self) -> None:
        """Close the screen once a change under way is in the file, as only then the result is known."""
        async with self._writing:
            self.dismiss(True if self._has_written else None)

    async def change_file(self, change: Callable[..., None], *given: Any) -> None:
        """Call `change(file, *given)` in a thread, then show the settings as they are; show an error if it fails."""
        await self.write_next(change, lambda: given)

    async def write_next(self, change: Callable[..., None], given: Callable[[], Sequence[Any]]) -> None:
        """Like `change_file`, but `given` is called once all earlier changes are in the file and shown."""
        async with self._writing:
            try:
                await asyncio.to_thread(change, self._file, *given())
            except CtxchatError as problem:
                self.notify_here(str(problem), error=True)
            except OSError as problem:
                self.notify_here(f"{self._file}: {problem.strerror or problem}", error=True)
            else:
                self._has_written = True
                self.reread(await asyncio.to_thread(self._load))


class Dialog(Over[Result], ModalScreen[Result]):
    """A short question in a box over a screen."""

    DEFAULT_CLASSES = "asking"

    def compose(self) -> ComposeResult:
        with Vertical():
            yield from self.body()
            yield PanelKeys()

    def action_say(self, answer: Any) -> None:
        """Close the dialog with this answer."""
        self.dismiss(answer)


class Confirm(Dialog[bool | Literal["later"]]):
    """A yes-or-no question. Enter says yes, but only after a pause without keys, so that somebody who is typing does not agree by
    accident. A letter says no, and is then handled by the screen below. `danger` is shown in red above the question. `may_wait`:
    the answer may also be `later`, by the key `w`: with the next compaction.
    """

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
        puts_off = self._may_wait and event.key == "w"
        if (event.key == "enter" or puts_off) and self._last_key - before < CONFIRM_PAUSE_S:
            event.stop()
        elif event.is_printable and event.key != "n" and not puts_off:
            event.stop()
            self.dismiss(False)
            if isinstance(self.app, InOrder):
                self.app.look_again(event)


class AnswerField(Field):
    """The field of a dialog; the footer says that enter takes the text in it."""

    BINDINGS = [Binding("enter", "submit", "take it", key_display="enter")]


class AskText(Dialog[str]):
    """A dialog that asks for a line of text. Its result is that text, or None if it is empty or the dialog was left."""

    def __init__(self, question: str, text: str = "") -> None:
        super().__init__()
        self._question, self._text = question, text

    def body(self) -> ComposeResult:
        yield Static(Content(cut(self._question)), markup=False)
        yield AnswerField(self._text, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)
