"""Where a message is written: the editor, what is attached to it, what waits in the queue, and what it would do to the gauge.

A draft is never lost: not by a resize, another session, an approval or a command that is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static, TextArea

from ctxchat.core.figures import Figures
from ctxchat.tui.commands import Keys
from ctxchat.tui.input_history import InputHistory
from ctxchat.tui.outside_editor import edited
from ctxchat.tui.text import clean, one_line, short
from ctxchat.tui.widgets.completion import CompletionList
from ctxchat.tui.widgets.prompt import Prompt

DEBOUNCE = 0.1
WORTH_SAYING = 0.02
"""Share of the limit from which a draft gets a line of its own."""


class Attached(msgspec.Struct, frozen=True):
    """A huge paste, kept out of the editor and sent whole with the message."""

    number: int
    text: str

    @property
    def label(self) -> str:
        """`paste 1   412 lines   18.3 KB`."""
        size = len(self.text.encode("utf-8", "replace"))
        count = self.text.count("\n") + 1
        return f"paste {self.number}   {count:,} line{'' if count == 1 else 's'}   {size / 1024:.1f} KB"

    @property
    def block(self) -> str:
        """As it stands in the message."""
        fence = "```"
        while fence in self.text:
            fence += "`"
        return f"{fence}paste-{self.number}.txt\n{self.text.rstrip()}\n{fence}"


class Chip(Static, can_focus=True):
    """Something that goes with the message, or waits; delete or a click on × takes it away, Enter opens it in the editor."""

    BINDINGS = [Binding("delete,backspace,x", "drop", "Remove"), Binding("enter,e", "edit", "Edit")]

    class Chosen(Message):
        """Remove it, or take it into the editor."""

        def __init__(self, chip: Chip, edit: bool) -> None:
            super().__init__()
            self.chip, self.edit = chip, edit

    def __init__(self, sign: str, label: str, value: object) -> None:
        words = Content.assemble((f"{sign} ", "$text-accent"), one_line(label, 200), ("  ×", "$text-muted"))
        super().__init__(words, markup=False, classes="chip")
        self.value = value

    def action_drop(self) -> None:
        self.post_message(self.Chosen(self, edit=False))

    def action_edit(self) -> None:
        self.post_message(self.Chosen(self, edit=True))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.post_message(self.Chosen(self, edit=event.x < self.size.width - 3))


class Composer(Widget):
    """Writes, attaches, queues. Says `Submitted`, `Changed` and `Unqueued`; is told figures and the queue."""

    class Submitted(Message):
        """Send this (attachments are in it). The screen calls `sent` when it took it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Changed(Message):
        """The draft is another one, some 100 ms ago."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Unqueued(Message):
        """A queued message was taken back (by its place)."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, keys: Keys, history: InputHistory) -> None:
        super().__init__(id="composer")
        self._completion = CompletionList()
        self.prompt = Prompt(keys, history, self._completion)
        self._attached: list[Attached] = []
        self._count = 0
        self._queued: tuple[str, ...] = ()
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self._completion
        yield Widget(id="queued")
        with Widget(id="frame"):
            yield Widget(id="attached")
            yield self.prompt
        yield Static(id="draft-line", markup=False)

    # ── the draft ──

    @property
    def draft(self) -> str:
        """The message as it would be sent, attachments in it."""
        return "\n\n".join([t for t in (self.prompt.text.strip(), *(a.block for a in self._attached)) if t])

    def set_draft(self, text: str) -> None:
        """Another text in the editor; attachments stay."""
        self.prompt.put(text)
        self.prompt.focus()

    def sent(self) -> None:
        """The draft is on its way: remember it, and start anew."""
        self.prompt.input_history.add(self.prompt.text)
        self.prompt.clear()
        self._attached = []
        self._show_attached()
        self._changed()

    def on_prompt_sent(self, event: Prompt.Sent) -> None:
        event.stop()
        if self.draft.strip():
            self.post_message(self.Submitted(self.draft))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.prompt.look()
        self._changed()

    def on_completion_list_taken(self, event: CompletionList.Taken) -> None:
        event.stop()
        self.prompt.take(event.choice)

    def _changed(self) -> None:
        if self._timer is None:
            self._timer = self.set_timer(DEBOUNCE, self._tell)

    def _tell(self) -> None:
        self._timer = None
        self.post_message(self.Changed(self.draft))

    def weigh(self, figures: Figures) -> None:
        """Say what this message would do to the gauge, where it matters."""
        self.query_one("#draft-line", Static).update(Content(draft_line(figures)))
        self.set_class(bool(draft_line(figures)), "-weighs")

    # ── attachments ──

    def on_prompt_huge_paste(self, event: Prompt.HugePaste) -> None:
        event.stop()
        self._count += 1
        self._attached.append(Attached(self._count, event.text))
        self._show_attached()
        self._changed()

    def _show_attached(self) -> None:
        box = self.query_one("#attached")
        box.remove_children()
        box.mount(*[Chip("attached", a.label, a) for a in self._attached])
        self.set_class(bool(self._attached), "-attached")

    def on_chip_chosen(self, event: Chip.Chosen) -> None:
        event.stop()
        value = event.chip.value
        if isinstance(value, Attached):
            self._attached = [a for a in self._attached if a is not value]
            if event.edit:
                self.prompt.insert(value.text)
            self._show_attached()
            self._changed()
        elif isinstance(value, int):
            self._unqueue(value, event.edit)
        self.prompt.focus()

    # ── the queue ──

    def show_queue(self, queued: Sequence[str]) -> None:
        """Messages that go out when the turn is over, in this order."""
        self._queued = tuple(queued)
        box = self.query_one("#queued")
        box.remove_children()
        box.mount(*[Chip("queued", clean(text[:400]), place) for place, text in enumerate(self._queued)])
        self.set_class(bool(self._queued), "-queued")

    def on_prompt_fetch_back(self, event: Prompt.FetchBack) -> None:
        event.stop()
        if self._queued:
            self._unqueue(len(self._queued) - 1, edit=True)
        else:
            self.prompt.recall_older()

    def _unqueue(self, place: int, edit: bool) -> None:
        if place >= len(self._queued):
            return
        if edit:
            draft = self.prompt.text
            self.prompt.put(self._queued[place] + (f"\n\n{draft}" if draft.strip() else ""))
        self.post_message(self.Unqueued(place))

    def edit_outside(self, command: str) -> None:
        """The draft in the person's own editor. Raises CtxchatError where that cannot be."""
        text = edited(self.prompt.text, command, self.app.suspend)
        if text is not None:
            self.set_draft(clean(text).rstrip("\n"))
        self.app.refresh(layout=True)


def draft_line(figures: Figures) -> str:
    """`this message +18k → 92 %, compaction would start`; empty where it hardly matters."""
    draft = figures.tokens("draft")
    after = figures.used
    crosses = after - draft < figures.trigger_tokens <= after
    over = after > figures.limit
    if not draft or not (crosses or over or draft >= figures.limit * WORTH_SAYING):
        return ""
    words = f"this message +{short(draft)} → {round(figures.pressure * 100)} %"
    if over:
        return f"{words}, over the limit by {short(after - figures.limit)}"
    return f"{words}, compaction would start" if crosses else words
