"""What questions over the composer have in common: answers by key, by click or in words, given once.

A question never takes the focus from someone who writes. Its keys are letters of the draft until `tab` has gone to it, and that
is what it says. No accident answers it: it takes no key and no click in its first half second, nor while keys are still coming;
a letter acts only if no other follows it, else both are the draft's; what holds from then on wants enter besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic

from textual.app import ComposeResult
from textual.content import Content
from textual.errors import NoWidget
from textual.events import Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ctxchat.tui.widgets.field import Field
from ctxchat.tui.widgets.pressable import Pressable


class AnswerButton(Pressable):
    """`more` marks one that small windows leave out; its key works there too."""

    class Pressed(Message):
        """This one; `what` is its name."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    def __init__(self, what: str, key: str, words: str, *, more: bool = False, classes: str = "") -> None:
        super().__init__("", markup=False, classes=f"answer {classes} {'-more' * more}".strip())
        self.what, self.key = what, key
        self.reword(words)

    def reword(self, words: str) -> None:
        """Say it in other words."""
        self.words = words
        self.update(Content.assemble((f" {self.key} ", "bold $text-accent"), (f"{words} ", "$text")))

    def action_press(self) -> None:
        self.post_message(self.Pressed(self.what))


def is_whole(line: Static) -> bool:
    """All its words are in sight."""
    try:
        seen = line.screen.find_widget(line).visible_region
    except NoWidget:
        return False
    return seen.height > 0 and seen.width >= len(str(line.render()).rstrip())


KeyedAnswer = tuple[str, str, str, bool]
"""An answer: what it is, its key (blanks behind it fill a column of keys), its word, and whether small windows leave it out."""


Keys = tuple[tuple[str, str], ...]
"""For the line of keys: each with what it does."""

TO_IT = ("=tab", "to answer")

MOVING: Keys = (("=tab", "next"), ("palette", "commands"))
"""What no question says of itself."""


KEY_PAUSE_S = 0.5
"""Seconds without a key before a question takes one, and before one that it took acts."""

AFTER_TAB_S = 0.1
"""Seconds that take its place where `tab` came after a pause: enough for the rest of a paste that came as keys."""


class Asked(Widget):
    """One question, answered once. While it is `held` it is disabled: keys go on to the draft, clicks do nothing."""

    class KeyTaken(Message):
        """A letter was pressed that acts in a moment."""

    class Grew(Message):
        """It shows a line more: the room is shared out anew, though the question as a whole may be as high as before."""

    now: Callable[[], float] = staticmethod(monotonic)
    """A steadily rising count of seconds."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="asked")
        self._done = False
        self.held = False
        self.seen = False  # there was a pause since it is here
        self._until = 0.0

    def on_mount(self) -> None:
        self.screen.add_class("-asked")

    def on_unmount(self) -> None:
        self.screen.set_class(bool(self.screen.query(Asked)), "-asked")

    @property
    def answering(self) -> bool:
        """The focus is on it."""
        return self.has_focus or self.has_pseudo_class("focus-within")

    def hold_until(self, until: float) -> None:
        """Nothing answers it before this moment."""
        self._until = max(self._until, until)
        self._set_held(True)

    def became_answerable(self, now: float) -> bool:
        """Whether it may be answered from now on, and could not before."""
        free = self.held and now >= self._until
        if free:
            self.seen = True
            self._set_held(False)
        return free

    @property
    def waits(self) -> bool:
        """It is to be looked at again soon."""
        return self.held

    def take_back(self) -> str:
        """The letters pressed on it that have not acted, because more follow; none of them will."""
        return ""

    def _set_held(self, held: bool) -> None:
        self.held = self.disabled = held
        self.set_class(held, "-held")

    @property
    def own_keys(self) -> Keys:
        """The keys that work on it and are not said there."""
        raise NotImplementedError

    @property
    def says_tab(self) -> bool:
        """It tells itself how to come to it."""
        return False

    @property
    def keys(self) -> Keys:
        """Those that work where the focus is now, less what it says itself."""
        if self.answering:
            return self.own_keys
        return (*([] if self.says_tab else [TO_IT]), ("send", "queue"), ("interrupt", "stop"))

    def post_answer(self, message: Message) -> None:
        """The answer, once."""
        if not self._done:
            self._done = True
            self.post_message(message)


class Offered(Asked, can_focus=True):
    """One question with answers to choose from. Made of its `body`, its `offers`, whose keys work while the focus is on
    it, and what is `below` them; what is chosen goes to `answer`, what is typed to `worded`."""

    ON_ESCAPE = "later"
    """The offer that escape chooses."""

    IN_WORDS = ""
    """The offer that opens a line to type in, empty for none."""

    PLACEHOLDER = ""
    """What that line says while it is empty."""

    AT_ONCE: frozenset[str] = frozenset()
    """What waits for no further key: it only opens a line to write in."""

    CONFIRMED: Mapping[str, str] = {}
    """What counts only after enter, and what enter does then."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._letters = ""  # pressed, and perhaps the beginning of a sentence
        self._chosen = ""  # by the last of them
        self._acts_at = 0.0
        self._confirming = ""  # chosen, and enter confirms it

    def body(self) -> Iterable[Widget]:
        """What stands above the answers."""
        raise NotImplementedError

    def below(self) -> Iterable[Widget]:
        """What stands below them: what may be long, and what only some answers need."""
        return ()

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        """The answers there are."""
        raise NotImplementedError

    @property
    def letters(self) -> Mapping[str, str]:
        """What each letter chooses."""
        return {key.strip(): what for what, key, *_ in self.answers}

    def answer(self, what: str) -> None:
        """This was chosen."""
        raise NotImplementedError

    def worded(self, text: str) -> None:
        """This was typed."""
        raise NotImplementedError

    @property
    def own_keys(self) -> Keys:
        if self.query(Input):
            return (("=esc", "back"),)
        answers = self.query(f".answers.{'confirm' if self._confirming else 'offers'} AnswerButton").results(
            AnswerButton
        )
        return (*((f"={answer.key}", answer.words) for answer in answers if not is_whole(answer)), *MOVING)

    @property
    def says_tab(self) -> bool:
        return any(is_whole(hint) for hint in self.query(".hint").results(Static))

    def compose(self) -> ComposeResult:
        yield from self.body()
        with Widget(classes="answers offers"):
            for what, key, words, more in self.answers:
                yield AnswerButton(what, key, words, more=more)
            yield Static(Content("tab first"), markup=False, classes="hint")
            yield Static(Content("a moment"), markup=False, classes="hint held")  # no wider than the one before
        if self.CONFIRMED:
            with Widget(classes="answers confirm"):
                yield AnswerButton("confirm", "enter", "")
                yield AnswerButton("back", "esc", "back")
        yield from self.below()

    def ask_in_words(self) -> None:
        """A line to type in; enter answers, escape goes back."""
        if not self.query(Input):
            line = Field(placeholder=self.PLACEHOLDER, classes="why")
            self.mount(line, after=self.query(".answers").last())
            line.focus()

    def action_answer(self, what: str) -> None:
        """A letter that no other followed, another key, or a button."""
        self._forget()
        confirming = self._confirming
        if what == "confirm" and self.now() < self._acts_at:
            self._acts_at = self.now() + KEY_PAUSE_S  # a key held down, or a second click
            return
        self.confirm("")
        if what == self.IN_WORDS:
            self.ask_in_words()
        elif what == "confirm" and confirming:
            self.answer(confirming)
        elif what in self.CONFIRMED:
            self.confirm(what)
        elif any(what == offer[0] for offer in self.answers):
            self.answer(what)

    def confirm(self, what: str) -> None:
        """Ask once more before this; empty for nothing."""
        if what != self._confirming:
            self._confirming, self._acts_at = what, self.now() + KEY_PAUSE_S
            self.set_class(bool(what), "-confirming")
            if what:
                self.query(".confirm AnswerButton").first(AnswerButton).reword(self.CONFIRMED[what])
            self.screen.set_focus(self)  # at once: the next letter may be on its way

    @property
    def waits(self) -> bool:
        return super().waits or bool(self._letters)

    def became_answerable(self, now: float) -> bool:
        free = super().became_answerable(now)
        if self._letters and not self.answering:
            self.take_back()
        elif self._letters and now >= self._acts_at:
            chosen = self._chosen
            self._forget()
            if chosen:  # by itself: what another says in its name goes no further up than to that one
                self.call_later(self.action_answer, chosen)
        return free

    def take_back(self) -> str:
        letters = self._letters
        self._forget()
        return letters

    def _forget(self) -> None:
        """The letters pressed on it have acted, or never will."""
        self._letters, self._chosen = "", ""

    def on_answer_button_pressed(self, event: AnswerButton.Pressed) -> None:
        event.stop()
        self.action_answer(event.what)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.worded(event.value.strip())

    def on_key(self, event: Key) -> None:
        """Letters for a field on it have gone there. One that is not taken here is the draft's, with those before it."""
        if event.key == "escape" and self.query(Input):
            event.prevent_default()
            self.query(Input).remove()
            self.focus()
        elif event.key == "escape":
            self.action_answer("back" if self._confirming or self._letters else self.ON_ESCAPE)
        elif event.key == "enter" and self._letters:
            self._acts_at = self.now() + KEY_PAUSE_S  # it may be the end of a line that is being typed
        elif event.key == "enter" and self._confirming:
            self.action_answer("confirm")
        elif not self._press((event.character or "") if event.is_printable else ""):
            return
        event.stop()

    def _press(self, letter: str) -> bool:
        """A letter chooses something, in a moment. False where it chooses nothing, or is one more of a sentence."""
        what = self.letters.get(letter, "")
        if letter:
            self.confirm("")
        if not what or (self._chosen and what != self._chosen):
            return False
        if what in self.AT_ONCE:
            self.action_answer(what)
        else:
            self._letters += letter
            self._chosen = what
            self._acts_at = self.now() + KEY_PAUSE_S
            self.post_message(self.KeyTaken())
        return True
