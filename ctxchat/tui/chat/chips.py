"""The lines above the editor: attachments of the message (chips), files that it mentions, and queued messages.

A chip that is chosen only posts a message; the composer acts on it.
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
"""Characters of a command that are shown on the chip with its output."""

MAX_REASON_CHARS = 120
"""Characters of the reason why a file is not sent."""

MAX_QUEUED_CHARS = 400
"""Characters of a queued message from which its line is made."""


class Chip(Static, can_focus=True):
    """One attachment or queued message. Delete or a click on × removes it, Enter opens it in the editor, `f` makes a paste a
    file, or text again."""

    BINDINGS = [
        Binding("delete,backspace,x", "choose('drop')", "Remove"),
        Binding("enter,e", "choose('edit')", "Edit"),
        Binding("f", "choose('file')", "As a file"),
    ]

    class Chosen(Message):
        """A chip was chosen: `what` is `drop`, `edit`, or `file` (change whether it is sent as a file)."""

        def __init__(self, chip: Chip, what: str) -> None:
            super().__init__()
            self.chip, self.what = chip, what

    def __init__(self, sign: str, label: str, value: object) -> None:
        words = Content.assemble((f"{sign} ", "$text-accent"), clean(label), ("  ×", "$text-muted"))
        super().__init__(words, markup=False, classes="chip")
        self.label, self.value = label, value

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        """Its keys and what each does; a picture can only be removed, and only a paste go as a file, or as text again."""
        edit = () if isinstance(self.value, Picture) else (("enter", "edit"),)
        as_file = (("f", "as text" if self.value.as_file else "as a file"),) if isinstance(self.value, Paste) else ()
        return (*edit, ("x", "remove"), *as_file)

    def action_choose(self, what: str) -> None:
        self.post_message(self.Chosen(self, what))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.action_choose("edit" if event.x < self.size.width - 3 else "drop")


class Mentioned(Static):
    """The line of a file that the message mentions: what of it is sent, or why nothing is."""

    def __init__(self, label: str, *, goes: bool) -> None:
        sign = (f"{ATTACHED_SIGN} ", "$text-accent") if goes else ("· ", "$text-muted")
        super().__init__(Content.assemble(sign, clean(label)), markup=False, classes="chip mentioned")
        self.label = label


class MentionToAgree(Pressable):
    """The line of a mentioned file that is sent only if a person presses it."""

    key_words = (("enter", "send it along"),)

    class Agreed(Message):
        """The file is to be sent."""

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
    """The attachments of the message: pastes and images as chips, mentioned files as lines below them."""

    class Changed(Message):
        """The attachments have changed."""

    class ToText(Message):
        """A paste is to become text in the editor again."""

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
        """The parts of the message that the attachments become, as far as known before it is sent."""
        return (*(each.part for each in self.along), *(part for each in self.named if (part := named_part(each))))

    def attach(self, *along: Along) -> None:
        """Add attachments; pastes get numbers."""
        self.along += tuple(self._numbered(each) for each in along)
        self._changed()

    def _numbered(self, along: Along) -> Along:
        if not isinstance(along, Paste):
            return along
        self._count += 1
        return msgspec.structs.replace(along, number=self._count)

    def clear(self) -> None:
        """Remove all, as the message was sent."""
        self.along = self.named = ()
        self._changed()

    def mention(self, named: Sequence[MentionedFile]) -> None:
        """Show these as the files that the message mentions."""
        if tuple(named) != self.named:
            self.named = tuple(named)
            self._changed()

    def add_images(self, *found: MentionedFile) -> None:
        """Attach those of the files that are images."""
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
        """Look up the files and resources that a text mentions, off the event loop; files too large for a window of `limit`
        tokens are not read. The name that is still being typed (`typing` returns it) is left out; resources appear as they are
        read."""
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
        """Redraw changed chips and lines; a chip that stays keeps the focus."""
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
        if event.what == "edit" and isinstance(chosen, Picture):
            self.app.notify("A picture goes as it is; x removes it.", markup=False)
            return
        self.along = tuple(each for each in self.along if each is not chosen)
        self._changed()
        self.post_message(self.ToText(chosen.text if event.what == "edit" and isinstance(chosen, Paste) else ""))


class Queued(Widget):
    """The queued messages: `next` goes to the agent between two rounds of the turn, `later` when the turn is over."""

    class Taken(Message):
        """A queued message is not to be sent; `edit`: it goes back into the editor."""

        def __init__(self, draft: Draft, edit: bool) -> None:
            super().__init__()
            self.draft, self.edit = draft, edit

    def __init__(self) -> None:
        super().__init__(id="queued")
        self.drafts: tuple[Draft, ...] = ()

    def show_drafts(self, drafts: Sequence[Draft]) -> None:
        """Show these queued messages, in this order."""
        self.drafts = tuple(drafts)
        self.remove_children()
        self.mount(*[Chip("later" if draft.later else "next ", _summary(draft), draft) for draft in drafts])
        self.display = bool(drafts)

    def on_chip_chosen(self, event: Chip.Chosen) -> None:
        event.stop()
        if isinstance(event.chip.value, Draft) and event.what != "file":
            self.post_message(self.Taken(event.chip.value, event.what == "edit"))


def named_part(named: MentionedFile) -> Part | None:
    """The part of the message that a mentioned file becomes; None if nothing of it is sent."""
    if named.kind == "text":
        return Text(named.text, named.name)
    return Image("", named.width, named.height, named.name) if named.kind == "image" else None


def mentioned_label(named: MentionedFile, weigh: Callable[[Part], int]) -> str:
    """The text of a mentioned file's line: `src/gauge.py 412 lines 3.1k`, or why nothing of it is sent."""
    part = named_part(named)
    return sized(part, weigh) if part else f"{one_line(named.name, MAX_NAME_CHARS)}   {named.why}"


def sized(part: Part, weigh: Callable[[Part], int]) -> str:
    """The name, size and tokens of a part."""
    (line,) = attached((part,), (weigh(part),))
    return f"{one_line(line.name, MAX_NAME_CHARS)}   {attached_size(line)}"


def _summary(draft: Draft) -> str:
    names = [f"{ATTACHED_SIGN} {one_line(each.name, MAX_NAME_CHARS)}" for each in draft.along]
    return "   ".join([one_line(draft.text[:MAX_QUEUED_CHARS]), *names] if draft.text.strip() else names)
