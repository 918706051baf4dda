"""Lines over the editor: what goes along with the message, what it mentions, and messages that wait.

Knows values only; what becomes of a chip that is chosen is the composer's.
"""

from __future__ import annotations

from asyncio import FIRST_COMPLETED, to_thread, wait
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from textual.binding import Binding
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ctxchat.core.messages import Image, Part, Text, attached
from ctxchat.core.quantities import count, line_count
from ctxchat.presentation.text import clean, one_line
from ctxchat.tools.mentions import MentionedFile, MentionRules, file_name, look_all
from ctxchat.tui.transcript.blocks import ATTACHED_SIGN, attached_size
from ctxchat.tui.unsent.draft import Along, Draft, Paste, Picture, longest_text
from ctxchat.tui.unsent.resources import MentionedResources, is_resource
from ctxchat.tui.widgets.pressable import Pressable

MAX_NAME_CHARS = 60
"""Characters of a name that are shown."""

MAX_COMMAND_CHARS = 30
"""Characters of a command whose output goes along."""

MAX_REASON_CHARS = 120
"""Characters of the reason why a file does not go along."""

MAX_QUEUED_CHARS = 400
"""Characters of a waiting message that are looked at for its line."""


class Chip(Static, can_focus=True):
    """Something that goes with the message, or waits; delete or a click on × takes it away, Enter opens it in the editor, `f`
    makes a paste a file, or text again."""

    BINDINGS = [
        Binding("delete,backspace,x", "choose('drop')", "Remove"),
        Binding("enter,e", "choose('edit')", "Edit"),
        Binding("f", "choose('file')", "As a file"),
    ]
    key_words = (("enter", "edit"), ("x", "remove"), ("f", "as a file"))

    class Chosen(Message):
        """`drop` it, `edit` it, or change whether it goes as a `file`."""

        def __init__(self, chip: Chip, what: str) -> None:
            super().__init__()
            self.chip, self.what = chip, what

    def __init__(self, sign: str, label: str, value: object) -> None:
        words = Content.assemble((f"{sign} ", "$text-accent"), clean(label), ("  ×", "$text-muted"))
        super().__init__(words, markup=False, classes="chip")
        self.label, self.value = label, value

    def action_choose(self, what: str) -> None:
        self.post_message(self.Chosen(self, what))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.action_choose("edit" if event.x < self.size.width - 3 else "drop")


class Mentioned(Static):
    """A file the message mentions: what goes along of it, or why nothing does."""

    def __init__(self, label: str, *, goes: bool) -> None:
        sign = (f"{ATTACHED_SIGN} ", "$text-accent") if goes else ("· ", "$text-muted")
        super().__init__(Content.assemble(sign, clean(label)), markup=False, classes="chip mentioned")
        self.label = label


class MentionToAgree(Pressable):
    """A file the message mentions that goes along only when this is pressed."""

    key_words = (("enter", "send it along"),)

    class Agreed(Message):
        """It goes along."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, named: MentionedFile) -> None:
        self.named, self.label = (
            named,
            f"{one_line(named.name, MAX_NAME_CHARS)}   {one_line(named.why, MAX_REASON_CHARS)}, so it is not sent",
        )
        words = Content.assemble(
            ("· ", "$text-warning"), self.label, ("   enter", "$text-accent"), (" sends it along", "$text-muted")
        )
        super().__init__(words, markup=False, classes="chip mentioned")

    def action_press(self) -> None:
        self.post_message(self.Agreed(self.named.name))


class AttachedBox(Widget):
    """What goes along: pastes and images as chips, mentioned files as lines below them."""

    class Changed(Message):
        """It is something else now."""

    class ToText(Message):
        """A paste is to become text in the editor."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(id="attached")
        self.weigh: Callable[[Part], int] = lambda part: 0
        self.along: tuple[Along, ...] = ()
        self.named: tuple[MentionedFile, ...] = ()
        self._count = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        """As far as can be said before they are sent."""
        return (*(each.part for each in self.along), *(part for each in self.named if (part := named_part(each))))

    def attach(self, *along: Along) -> None:
        """More of them; pastes get numbers of their own."""
        self.along += tuple(self._numbered(each) for each in along)
        self._changed()

    def _numbered(self, along: Along) -> Along:
        if not isinstance(along, Paste):
            return along
        self._count += 1
        return msgspec.structs.replace(along, number=self._count)

    def clear(self) -> None:
        """They are on their way."""
        self.along = self.named = ()
        self._changed()

    def mention(self, named: Sequence[MentionedFile]) -> None:
        """The files the message mentions now."""
        if tuple(named) != self.named:
            self.named = tuple(named)
            self._changed()

    def add_images(self, *found: MentionedFile) -> None:
        """Those of the files that are images."""
        self.attach(*(Picture(file_name(i.name), i.data, i.width, i.height) for i in found if i.kind == "image"))

    async def find_mentions(
        self,
        text: str,
        folder: Path,
        limit: int,
        rules: MentionRules,
        *,
        typing: Callable[[], str],
        resources: MentionedResources | None,
    ) -> None:
        """At the files and resources that a text mentions, off the event loop, as long as a window of so many tokens can hold
        one. What is still being typed is no news; resources are shown as they are read."""
        longest = longest_text(limit)
        found = await to_thread(look_all, text, folder, longest, rules)
        files = [each for each in found if each.kind != "nothing" or each.asks or each.name != typing()]
        if resources is None:
            self.mention(files)
            return
        files = [each for each in files if each.kind != "nothing" or not is_resource(each.name)]
        under_way = True
        while under_way:
            looked, under_way = resources.look(text, longest, rules, typing())
            self.mention([*files, *looked])
            if under_way:
                await wait(under_way, return_when=FIRST_COMPLETED)

    def _changed(self) -> None:
        self.redraw()
        self.post_message(self.Changed())

    def redraw(self) -> None:
        """Draw what changed; a chip that stays keeps the focus."""
        labels = [self._label(each) for each in self.along]
        lines = [
            MentionToAgree(each)
            if each.asks
            else Mentioned(mentioned_label(each, self.weigh), goes=each.kind != "nothing")
            for each in self.named
        ]
        shown = [*self.query(Chip), *self.query(".mentioned").results(Static)]
        if [each.label for each in shown if isinstance(each, Chip | Mentioned | MentionToAgree)] != [
            *labels,
            *(line.label for line in lines),
        ]:
            held = next((place for place, chip in enumerate(self.query(Chip)) if chip.has_focus), -1)
            self.remove_children()
            chips = [Chip(ATTACHED_SIGN, label, each) for label, each in zip(labels, self.along, strict=True)]
            self.mount(*chips, *lines)
            if 0 <= held < len(chips):
                chips[held].focus()
        self.display = bool(labels or lines)

    def _label(self, along: Along) -> str:
        if not isinstance(along, Paste):
            return sized(along.part, self.weigh)
        lines = count(line_count(along.text), "line")
        size = len(along.text.encode("utf-8", "replace")) / 1024
        ways = "as a file   f text" if along.as_file else "f as a file"
        name = f"$ {one_line(along.command, MAX_COMMAND_CHARS)}" if along.command else f"paste {along.number}"
        return f"{name}   {lines}   {size:.1f} KB   {ways}"

    def on_chip_chosen(self, event: Chip.Chosen) -> None:
        event.stop()
        chosen = event.chip.value
        if event.what == "file":
            if isinstance(chosen, Paste):
                other = msgspec.structs.replace(chosen, as_file=not chosen.as_file)
                self.along = tuple(other if each is chosen else each for each in self.along)
                self._changed()
            return
        self.along = tuple(each for each in self.along if each is not chosen)
        self._changed()
        self.post_message(self.ToText(chosen.text if event.what == "edit" and isinstance(chosen, Paste) else ""))


class Queued(Widget):
    """Messages that wait: `next` goes to the agent between two steps of its work, `later` when the turn is over."""

    class Taken(Message):
        """One is not to go out; `edit`: it comes back into the editor."""

        def __init__(self, draft: Draft, edit: bool) -> None:
            super().__init__()
            self.draft, self.edit = draft, edit

    def __init__(self) -> None:
        super().__init__(id="queued")
        self.drafts: tuple[Draft, ...] = ()

    def show_drafts(self, drafts: Sequence[Draft]) -> None:
        """These wait, in this order."""
        self.drafts = tuple(drafts)
        self.remove_children()
        self.mount(*[Chip("later" if draft.later else "next ", _summary(draft), draft) for draft in drafts])
        self.display = bool(drafts)

    def on_chip_chosen(self, event: Chip.Chosen) -> None:
        event.stop()
        if isinstance(event.chip.value, Draft) and event.what != "file":
            self.post_message(self.Taken(event.chip.value, event.what == "edit"))


def named_part(named: MentionedFile) -> Part | None:
    """The part of the message that a mentioned file becomes; None where nothing of it goes along."""
    if named.kind == "text":
        return Text(named.text, named.name)
    return Image("", named.width, named.height, named.name) if named.kind == "image" else None


def mentioned_label(named: MentionedFile, weigh: Callable[[Part], int]) -> str:
    """`src/gauge.py   412 lines   3.1k`, or why nothing of it goes along."""
    part = named_part(named)
    return sized(part, weigh) if part else f"{one_line(named.name, MAX_NAME_CHARS)}   {named.why}"


def sized(part: Part, weigh: Callable[[Part], int]) -> str:
    """A part by name, size and tokens."""
    (line,) = attached((part,), (weigh(part),))
    return f"{one_line(line.name, MAX_NAME_CHARS)}   {attached_size(line)}"


def _summary(draft: Draft) -> str:
    names = [f"{ATTACHED_SIGN} {one_line(each.name, MAX_NAME_CHARS)}" for each in draft.along]
    return "   ".join([one_line(draft.text[:MAX_QUEUED_CHARS]), *names] if draft.text.strip() else names)
