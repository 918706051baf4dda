"""The notices above the conversation that a person should read before the first message. They stay until one is sent, or their
cause is gone.

If not all of them have room, a last line counts them and names the key to read them all. Knows no session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from ctxchat.core.events import Level
from ctxchat.core.quantities import count
from ctxchat.presentation.text import clean
from ctxchat.tui.widgets.line import Line
from ctxchat.tui.widgets.notice import NoticeText
from ctxchat.tui.widgets.pressable import Pressable


class ShownNotice(msgspec.Struct, frozen=True):
    """A notice that was shown. `about` is its subject, by which it is withdrawn when its cause is gone; empty if that cannot
    happen while the program runs."""

    text: str
    level: Level = "warning"
    about: str = ""


class BranchOffer(Pressable):
    """The notice that the session is read-only, with the key `b` to go on in a copy."""

    BINDINGS = [("b", "press", "Branch")]
    key_words = (("b", "branch"),)

    class Pressed(Message):
        """A person wants to go on in a copy."""

    def __init__(self, text: str) -> None:
        words = Content.assemble(f"! {clean(text)}  ", ("go on in a copy", "$text-accent"), (" b", "$text-muted"))
        super().__init__(words, markup=False, classes="notice -warning -offer")

    def action_press(self) -> None:
        self.post_message(self.Pressed())


class AllNotices(Line):
    """The line `3 notices /notices`; a click on it shows them all."""

    class Pressed(Message):
        """A person wants to read all notices."""

    def __init__(self) -> None:
        super().__init__(id="all-notices")
        self._notices = 0
        self.display = False

    def show_count(self, notices: int) -> None:
        """Show this number of notices; 0 hides the line."""
        self._notices = notices
        self.display = notices > 0
        self.refresh()

    def draw_line(self, width: int) -> Content:
        ways = (f"▾ {count(self._notices, 'notice')}   ", f"▾ {self._notices}  ")
        lead = next((words for words in ways if len(words) + len("/notices") <= width), ways[-1])
        return Content.assemble((lead, "$text-warning"), ("/notices", "$text-accent"))

    def on_click(self, event: Click) -> None:
        event.stop()
        self.post_message(self.Pressed())


class Banner(Vertical):
    """The notices, the newest last. `told` has all of them, also those that are no longer on screen."""

    def __init__(self) -> None:
        super().__init__(id="banner")
        self.told: Sequence[ShownNotice] = ()
        self._blocks: list[tuple[ShownNotice | None, Widget]] = []

    def compose(self) -> ComposeResult:
        yield Vertical(id="notices")
        yield AllNotices()

    def add_notice(self, text: str, level: Level = "warning", about: str = "", *, shown: bool = True) -> bool:
        """Add a notice; unless `shown` is set it is only remembered. False if the same notice is already there."""
        told = ShownNotice(text, level, about)
        if told in self.told and about:
            return False
        self.told = (*self.told, told)
        if shown:
            self._add_block(told, NoticeText(level, text))
        return True

    def says(self, text: str) -> bool:
        """Whether a notice with this text is on screen."""
        return any(told and told.text == text for told, _ in self._blocks)

    def offer(self, text: str) -> None:
        """Add the notice that the session is read-only, with the offer of a copy."""
        self._add_block(None, BranchOffer(text))

    def only(self, about: str, texts: Collection[str]) -> None:
        """Withdraw all notices about this subject but those with these texts."""
        gone = [told for told in self.told if told.about == about and told.text not in texts]
        self.told = tuple(told for told in self.told if told not in gone)
        self._remove(block for told, block in self._blocks if told in gone)

    def clear(self) -> None:
        """Remove all notices from the screen."""
        self._remove(self.blocks)

    @property
    def blocks(self) -> Sequence[Widget]:
        """The widgets of the notices on screen, the newest last."""
        return [block for _, block in self._blocks]

    def _add_block(self, told: ShownNotice | None, block: Widget) -> None:
        self._blocks.append((told, block))
        self.query_one("#notices").mount(block)
        self.call_after_refresh(self._count)

    def _remove(self, blocks: Iterable[Widget]) -> None:
        gone = list(blocks)
        self._blocks = [(told, block) for told, block in self._blocks if block not in gone]
        for block in gone:
            block.remove()
        self.call_after_refresh(self._count)

    def on_resize(self) -> None:
        self.call_after_refresh(self._count)

    def _count(self) -> None:
        """Show the number of notices if some do not fit."""
        notices = self.query_one("#notices")
        self.set_class(bool(self._blocks), "-some")
        hidden = notices.virtual_size.height > notices.size.height
        self.query_one(AllNotices).show_count(len(self._blocks) if hidden else 0)
