"""Base classes of the questions over the composer, which are answered once, by a key, a click or a typed text.

A question never takes the focus from somebody who is typing: its keys are letters of the draft until `tab` has moved the focus to
it, as it says. It cannot be answered by accident: it accepts no key and no click in its first half second, nor while keys keep
coming; a letter answers only if no other follows, else both go to the draft; an answer that applies from then on has to be
confirmed with Enter.
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
    """A clickable answer with its key. `more` marks an answer that small windows do not show; its key works there too."""

    class Pressed(Message):
        """The answer named `what` was chosen by click or Enter."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    def __init__(self, what: str, key: str, words: str, *, more: bool = False, classes: str = "") -> None:
        super().__init__("", markup=False, classes=f"answer {classes} {'-more' * more}".strip())
        self.what, self.key = what, key
        self.reword(words)

    def reword(self, words: str) -> None:
        """Change the label."""
        self.words = words
        self.update(Content.assemble((f" {self.key} ", "bold $text-accent"), (f"{words} ", "$text")))

    def action_press(self) -> None:
        self.post_message(self.Pressed(self.what))


def is_whole(line: Static) -> bool:
    """Whether the whole text of a line is visible."""
    try:
        seen = line.screen.find_widget(line).visible_region
    except NoWidget:
        return False
    return seen.height > 0 and seen.width >= len(str(line.render()).rstrip())


KeyedAnswer = tuple[str, str, str, bool]
"""An answer: its name, its key (padded with blanks to a column), its label, and whether small windows leave it out."""


Keys = tuple[tuple[str, str], ...]
"""Keys and labels for the key line."""

TO_IT = ("=tab", "to answer")

MOVING: Keys = (("=tab", "next"), ("palette", "commands"))
"""Keys that work in every question and are not shown in it."""


KEY_PAUSE_S = 0.5
"""Seconds without a key before a question accepts one, and before an accepted key takes effect."""

AFTER_TAB_S = 0.1
"""The same after `tab` that followed a pause: long enough for the rest of a paste that arrives as keys."""


class Asked(Widget):
    """A question that is answered once. While it is `held` it is disabled: keys go to the draft, clicks do nothing."""

    class KeyTaken(Message):
        """A letter was accepted that takes effect after a pause."""

    class Grew(Message):
        """The question shows another line: heights are to be fitted again, even if its own height stays the same."""

    now: Callable[[], float] = staticmethod(monotonic)
    """A steadily rising count of seconds."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="asked")
        self._done = False
        self.held = False
        self.seen = False  # there was a pause since it appeared
        self._until = 0.0

    def on_mount(self) -> None:
        self.screen.add_class("-asked")

    def on_unmount(self) -> None:
        self.screen.set_class(bool(self.screen.query(Asked)), "-asked")

    @property
    def answering(self) -> bool:
        """Whether the focus is in the question."""
        return self.has_focus or self.has_pseudo_class("focus-within")

    def hold_until(self, until: float) -> None:
        """Accept no answer before `until`, in seconds of `now`."""
        self._until = max(self._until, until)
        self._set_held(True)

    def became_answerable(self, now: float) -> bool:
        """Release it where it was held long enough; True where that was just now."""
        free = self.held and now >= self._until
        if free:
            self.seen = True
            self._set_held(False)
        return free

    @property
    def waits(self) -> bool:
        """Whether `became_answerable` is to be called again soon."""
        return self.held

    def take_back(self) -> str:
        """Discard and return the letters that were pressed and have not taken effect, because others followed."""
        return ""

    def _set_held(self, held: bool) -> None:
        self.held = self.disabled = held
        self.set_class(held, "-held")

    @property
    def own_keys(self) -> Keys:
        """The keys that work in the question and are not shown in it."""
        raise NotImplementedError

    @property
    def says_tab(self) -> bool:
        """Whether the question itself says that `tab` leads to it."""
        return False

    @property
    def keys(self) -> Keys:
        """The keys that work with the present focus, without those the question itself shows."""
        if self.answering:
            return self.own_keys
        return (*([] if self.says_tab else [TO_IT]), ("send", "queue"), ("interrupt", "stop"))

    def post_answer(self, message: Message) -> None:
        """Post the answer; later ones are ignored."""
        if not self._done:
            self._done = True
            self.post_message(message)


class Offered(Asked, can_focus=True):
    """A question with answers to choose from. It consists of its `body`, its `answers`, whose keys work while it has the focus,
    and what is `below` them; a chosen answer is passed to `answer`, a typed one to `worded`."""

    ON_ESCAPE = "later"
    """The answer that Escape chooses."""

    IN_WORDS = ""
    """The answer that opens a text field, empty for none."""

    PLACEHOLDER = ""
    """The placeholder of that field."""

    AT_ONCE: frozenset[str] = frozenset()
    """Answers that take effect without a pause, as they only open a text field."""

    CONFIRMED: Mapping[str, str] = {}
    """Answers that Enter has to confirm, with the label of that confirmation."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._letters = ""  # pressed letters, which may begin a sentence
        self._chosen = ""  # the answer that they choose
        self._acts_at = 0.0
        self._confirming = ""  # the answer that waits for Enter

    def body(self) -> Iterable[Widget]:
        """The widgets above the answers."""
        raise NotImplementedError

    def below(self) -> Iterable[Widget]:
        """The widgets below the answers: those that may be long, or that only some answers need."""
        return ()

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        """The possible answers."""
        raise NotImplementedError

    @property
    def letters(self) -> Mapping[str, str]:
        """The answer that each letter chooses."""
        return {key.strip(): what for what, key, *_ in self.answers}

    def answer(self, what: str) -> None:
        """Handle the chosen answer."""
        raise NotImplementedError

    def worded(self, text: str) -> None:
        """Handle the typed text."""
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
        """Open a text field; Enter answers, Escape closes it."""
        if not self.query(Input):
            line = Field(placeholder=self.PLACEHOLDER, classes="why")
            self.mount(line, after=self.query(".answers").last())
            line.focus()

    def action_answer(self, what: str) -> None:
        """Act on an answer, chosen by a letter that no other followed, by another key, or by a button."""
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
        """Ask for Enter before this answer counts; empty to ask no longer."""
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
            if (
                chosen
            ):  # from this widget: a message posted while another handles its own would bubble up to that one only
                self.call_later(self.action_answer, chosen)
        return free

    def take_back(self) -> str:
        letters = self._letters
        self._forget()
        return letters

    def _forget(self) -> None:
        """Discard the pressed letters, which have taken effect or never will."""
        self._letters, self._chosen = "", ""

    def on_answer_button_pressed(self, event: AnswerButton.Pressed) -> None:
        event.stop()
        self.action_answer(event.what)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.worded(event.value.strip())

    def on_key(self, event: Key) -> None:
        """Handle a key that no field in the question has used. A letter that chooses no answer goes to the draft, with those
        before it."""
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
        """Accept a letter, whose answer takes effect after a pause. False where it chooses none, or follows a letter for another
        answer, as in a sentence."""
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
