"""The first question of all: which of the models found here should answer. Asked once, over the composer, and in nobody's way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.tui.reading.figures_text import brief
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.widgets import asked
from ctxchat.tui.widgets.asked import Keys, Offered

if TYPE_CHECKING:
    from ctxchat.models.discovery import Offer

OFFLINE = "offline/assistant"

MOST = 4
"""Places that are offered by name; all of them are in the list of models."""


class FirstChoice(Offered):
    """One line a place, then the offline assistant, the whole list, and not now."""

    BINDINGS = [
        *(Binding(str(n + 1), f"answer('{n}')", "Use", show=False) for n in range(MOST)),
        Binding("o", "answer('offline')", "Offline assistant", show=False),
        Binding("m", "answer('all')", "All models", show=False),
        Binding("escape", "answer('later')", "Not now", show=False),
    ]
    ELSEWHERE = (("=tab", "to the question"), ("send", "send"), ("models", "models"), ("palette", "all commands"))

    class Chosen(Message):
        """This model, or one of the whole list (`name` is empty)."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class Declined(Message):
        """Not now."""

    def __init__(self, places: Sequence[Offer]) -> None:
        super().__init__(id="first-choice")
        self._places = foremost(places)

    def on_mount(self) -> None:
        self.screen.add_class("-choosing")

    def on_unmount(self) -> None:
        self.screen.remove_class("-choosing")

    @property
    def offers(self) -> Sequence[asked.Offer]:
        # keys as wide as the widest, so that what they choose stands in one column
        rows = [(str(n), f"{n + 1:<3}", words, False) for n, words in enumerate(place_lines(self._places))]
        return (
            *rows,
            ("offline", "o  ", "the offline assistant: no network, quotes your files", False),
            ("all", "m  ", "all models …", False),
            ("later", "esc", "not now", False),
        )

    @property
    def own_keys(self) -> Keys:
        return (("=1", "use"), ("=o", "offline"), ("=m", "all"), ("=escape", "not now"))

    def body(self) -> Iterable[Widget]:
        question = Content.assemble(("? ", "bold $text-warning"), ("Which model should answer?", "bold"))
        hint = Content.styled("  tab chooses, /model changes it later", "$text-muted")
        yield Static(question.append(hint), classes="question")

    def answer(self, what: str) -> None:
        """More than once where the first did not work out."""
        if what == "later":
            self.post_message(self.Declined())
        elif what == "offline":
            self.post_message(self.Chosen(OFFLINE))
        else:
            self.post_message(self.Chosen("" if what == "all" else self._places[int(what)].model.name))


def foremost(places: Sequence[Offer]) -> tuple[Offer, ...]:
    """As many as are shown, in their order; an account whose key is set is among them, however many servers run here."""
    first, rest = places[:MOST], places[MOST:]
    accounts = [place for place in rest if not place.model.api_base]
    if accounts and all(place.model.api_base for place in first):
        first = [*first[:-1], accounts[0]]
    return tuple(first)


def place_lines(places: Sequence[Offer]) -> list[str]:
    """A line a place, in columns, what matters most first: `llama.cpp  qwen3.gguf  16k loaded  at 127.0.0.1:8080`."""
    rows = [_cells(place) for place in places]
    widths = [max(cell_len(row[i]) for row in rows) for i in range(3)] if rows else []
    return [
        "  ".join(
            (*(cell + " " * (room - cell_len(cell)) for cell, room in zip(row, widths, strict=False) if room), row[-1])
        ).rstrip()
        for row in rows
    ]


def _cells(place: Offer) -> tuple[str, str, str, str]:
    """Provider, model, window, and what it costs or where it is."""
    model = place.model
    name = one_line(model.name.rsplit("/", 1)[-1], 40)
    held = "loaded" if model.window_source == "loaded" else "window"
    paid = model.input_cost is not None and model.output_cost
    return (
        one_line(model.provider, 20),
        f"{name} +{place.others}" if place.others else name,
        f"{brief(model.window):>5} {held}" if model.window > 0 else "",
        f"${model.input_cost:g} / ${model.output_cost:g} per M" if paid else one_line(model.note, 60),
    )
