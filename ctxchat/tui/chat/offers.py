"""Questions over the composer that no tool call waits for: the first choice of a model, a suggested compaction, how to go on
where the model cannot be reached or a spending limit is, whether to import sessions; and the progress of an import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from rich.cells import cell_len
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.context_usage import OFFLINE_NAME, ContextUsage
from ctxchat.core.events import CompactionSuggested
from ctxchat.core.limits import Limit
from ctxchat.core.quantities import count
from ctxchat.importing.outcome import Importable, ReadSoFar, deleted_there, importable, size_words
from ctxchat.presentation.text import one_line, short
from ctxchat.presentation.usage_text import brief, percent
from ctxchat.tui.chat.asked import MOVING, KeyedAnswer, Keys, Offered
from ctxchat.tui.widgets.pressable import Pressable

if TYPE_CHECKING:
    from ctxchat.models.discovery import Offer

MAX_NAMED_PLACES = 4
"""Providers and servers offered by name; all of them are in the list of models."""


class FirstChoice(Offered):
    """The choice of a first model: a line for each provider or server, then the offline assistant, the whole list, and not
    now."""

    class Chosen(Message):
        """A model was chosen; an empty `name` asks for the whole list."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class Declined(Message):
        """The choice was put off."""

    def __init__(self, places: Sequence[Offer]) -> None:
        super().__init__(id="first-choice")
        self._places = foremost(places)

    def on_mount(self) -> None:
        self.screen.add_class("-choosing")

    def on_unmount(self) -> None:
        self.screen.remove_class("-choosing")

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        # keys are padded to the widest, so that the models are in one column
        rows = [(str(n), f"{n + 1:<3}", words, False) for n, words in enumerate(place_lines(self._places))]
        return (
            *rows,
            ("offline", "o  ", "the offline assistant: no network, quotes your files", False),
            ("all", "m  ", "all models …", False),
            ("later", "esc", "not now", False),
        )

    @property
    def own_keys(self) -> Keys:
        return MOVING

    @property
    def says_tab(self) -> bool:
        return True

    def body(self) -> Iterable[Widget]:
        question = Content.assemble(("? ", "bold $text-warning"), ("Which model should answer?", "bold"))
        hint = Content.styled("  tab chooses, /model changes it later", "$text-muted")
        yield Static(question.append(hint), classes="question")

    def answer(self, what: str) -> None:
        """Post the choice; more than once where the first one did not work."""
        if what == "later":
            self.post_message(self.Declined())
        elif what == "offline":
            self.post_message(self.Chosen(OFFLINE_NAME))
        else:
            self.post_message(self.Chosen("" if what == "all" else self._places[int(what)].model.name))


def foremost(places: Sequence[Offer]) -> tuple[Offer, ...]:
    """The offers that are shown, in their order; a provider whose key is set is among them, however many servers run here."""
    first, remaining = places[:MAX_NAMED_PLACES], places[MAX_NAMED_PLACES:]
    accounts = [place for place in remaining if not place.model.api_base]
    if accounts and all(place.model.api_base for place in first):
        first = [*first[:-1], accounts[0]]
    return tuple(first)


def place_lines(places: Sequence[Offer]) -> list[str]:
    """A line for each offer, in columns, most important first: `llama.cpp  qwen3.gguf  16k loaded  at 127.0.0.1:8080`."""
    rows = [_place_cells(place) for place in places]
    widths = [max(cell_len(row[i]) for row in rows) for i in range(3)] if rows else []
    return [
        "  ".join(
            (*(cell + " " * (room - cell_len(cell)) for cell, room in zip(row, widths, strict=False) if room), row[-1])
        ).rstrip()
        for row in rows
    ]


def _place_cells(place: Offer) -> tuple[str, str, str, str]:
    """Provider, model, window, and the price or the address."""
    model = place.model
    name = one_line(model.name.rsplit("/", 1)[-1], 40)
    paid = model.input_cost is not None and model.output_cost
    return (
        one_line(model.provider, 20),
        f"{name} +{place.others}" if place.others else name,
        f"{brief(model.window):>5} window" if model.window > 0 else "",
        f"${model.input_cost:g} / ${model.output_cost:g} per M" if paid else one_line(model.note, 60),
    )


Reply = Literal["now", "after", "later"]
REPLIES: tuple[Reply, ...] = get_args(Reply)


class SuggestionPanel(Offered):
    """The question whether to compact, with the tokens before and after."""

    IN_WORDS = "instruct"
    PLACEHOLDER = "what to keep; enter makes room"

    class Replied(Message):
        """The person's reply, and instructions on what the summary is to keep."""

        def __init__(self, reply: Reply, instructions: str = "") -> None:
            super().__init__()
            self.reply: Reply = reply
            self.instructions = instructions

    def __init__(self, suggested: CompactionSuggested) -> None:
        super().__init__(id="suggestion")
        self._suggested = suggested

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        return (
            ("now", "n", "now", False),
            ("after", "a", "after this task", False),
            ("later", "s", "snooze", False),
            ("instruct", "i", "add instructions", True),
        )

    def keep_up(self, context_usage: ContextUsage) -> None:
        """Update the figures: the window is this full by now. Tokens added since the question was asked would not be freed."""
        more = context_usage.used - self._suggested.used
        self._suggested = CompactionSuggested(
            context_usage.used, context_usage.limit, context_usage.pressure, max(0, self._suggested.after_used + more)
        )
        for question in self.query(".question").results(Static):
            question.update(self._head())

    def body(self) -> Iterable[Widget]:
        yield Static(self._head(), markup=False, classes="question")

    def _head(self) -> Content:
        suggested = self._suggested
        gain = f"{short(suggested.used)} → ~{short(suggested.after_used)}"
        words = f"The window is {percent(suggested.pressure)} full. Free up context?  "
        return Content.assemble(("? ", "bold $text-warning"), words, (gain, "bold"))

    def answer(self, what: str) -> None:
        """Post when to compact, if at all."""
        self.post_answer(self.Replied(REPLIES[REPLIES.index(what)]))

    def worded(self, text: str) -> None:
        self.post_answer(self.Replied("now", text))


Way = Literal["again", "another", "offline"]
WAYS: tuple[Way, ...] = get_args(Way)


class UnreachedPanel(Offered):
    """The question how to go on where the model cannot be reached: try again, another model, the offline assistant, or not now.
    `waiting` says that a message has no answer yet, or only part of one."""

    class Answered(Message):
        """The chosen way to go on, None for not now."""

        def __init__(self, way: Way | None, waiting: bool) -> None:
            super().__init__()
            self.way: Way | None = way
            self.waiting = waiting

    def __init__(self, model: str, address: str, *, waiting: bool) -> None:
        super().__init__(id="unreached")
        self._model, self._address, self._waiting = one_line(model, 80), one_line(address, 120), waiting

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        return (
            ("again", "r", "try again", False),
            ("another", "m", "other model", False),
            ("offline", "o", "offline assistant", False),
            ("later", "esc", "not now", False),
        )

    def body(self) -> Iterable[Widget]:
        where = f"{self._model} at {self._address}" if self._address else self._model
        words = f"{where} cannot be reached."
        if self._waiting:
            words = f"Your message waits for {where}."
        yield Static(Content.assemble(("? ", "bold $text-warning"), (words, "bold")), markup=False, classes="question")

    def answer(self, what: str) -> None:
        """Post the choice, once; if the model still cannot be reached, a new panel asks."""
        self.post_answer(self.Answered(next((way for way in WAYS if way == what), None), self._waiting))


class LimitPanel(Offered):
    """The question how to go on where a spending limit stopped the turn: with as much again, another limit, none, or not now."""

    IN_WORDS = "other"

    class Answered(Message):
        """The limit from now on is `most`, 0 for none, None for not now; `text` is a limit that the person typed."""

        def __init__(self, limit: Limit, most: float | None, text: str = "") -> None:
            super().__init__()
            self.limit, self.most, self.text = limit, most, text

    def __init__(self, limit: Limit) -> None:
        super().__init__(id="limit")
        self._limit = limit
        self.PLACEHOLDER = f"{'tokens' if limit.in_tokens else 'US dollars'} for this {limit.scope}; enter goes on"

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        return (
            ("more", "g", f"go on, {self._limit.amount(self._limit.most)} more", False),
            ("other", "a", "another limit", True),
            ("none", "n", "no limit", False),
            ("later", "esc", "not now", False),
        )

    def body(self) -> Iterable[Widget]:
        words = f"{self._limit.words}. The next request could pass it."
        yield Static(Content.assemble(("? ", "bold $text-warning"), (words, "bold")), markup=False, classes="question")

    def answer(self, what: str) -> None:
        """Post the choice, once; if the new limit is too low, a new panel asks."""
        most = {"more": self._limit.extended, "none": 0.0}.get(what)
        self.post_answer(self.Answered(self._limit, most))

    def worded(self, text: str) -> None:
        self.post_answer(self.Answered(self._limit, None, text))


class ImportOffer(Offered):
    """The offer to import sessions of other agents, from the usual folders or from `path`; with `follow` also those that come
    later."""

    class Answered(Message):
        """Whether to import, and whether to import later sessions too (`follow`), None where that was not asked."""

        def __init__(self, path: str, agreed: bool, follow: bool | None) -> None:
            super().__init__()
            self.path, self.agreed, self.follow = path, agreed, follow

    def __init__(self, found: Sequence[Importable], path: str = "", *, follow: bool = False) -> None:
        super().__init__(id="import-offer")
        self._found, self._path, self._follow = found, path, follow

    @property
    def answers(self) -> Sequence[KeyedAnswer]:
        follow: KeyedAnswer = ("follow", "f", "follow", False)
        return (("import", "i", "import", False), *([follow] * self._follow), ("later", "esc", "not now", False))

    def body(self) -> Iterable[Widget]:
        words = f"Import {one_line(importable(self._found), 200)}?"
        yield Static(Content.assemble(("? ", "bold $text-warning"), (words, "bold")), markup=False, classes="question")

    def below(self) -> Iterable[Widget]:
        if self._follow:
            words = f"f also imports what comes later. {deleted_there(self._found)}".rstrip()
            yield Static(Content.styled(words, "$text-muted"), markup=False)

    def answer(self, what: str) -> None:
        follow = what == "follow" if self._follow else None
        self.post_answer(self.Answered(self._path, what != "later", follow))


class ImportLine(Pressable):
    """The progress of an import, such as `importing 34 % of 1.2 GB, 120 sessions`; a click or `x` calls `stop`."""

    BINDINGS = [("x,delete", "press", "Stop")]
    key_words = (("x", "stop"),)

    def __init__(self, stop: Callable[[], object]) -> None:
        super().__init__("importing …", id="import-line", markup=False)
        self._stop = stop

    def show_progress(self, news: ReadSoFar, sessions: int) -> None:
        """Show the bytes read and the number of sessions so far."""
        done = min(100, news.read * 100 // max(1, news.of))
        words = f"importing {done} % of {size_words(news.of)}, {count(sessions, 'session')}"
        self.update(Content.assemble((words, "$text-muted"), ("   x", "$text-accent"), (" stops", "$text-muted")))

    def action_press(self) -> None:
        self._stop()
