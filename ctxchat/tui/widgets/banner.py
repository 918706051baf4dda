"""Above the conversation: what a person should know before the first message, until one is sent."""

from __future__ import annotations

from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from ctxchat.tui.reading.text import clean
from ctxchat.tui.widgets.blocks import Level, NoticeBlock


class BranchOffer(Static, can_focus=True):
    """A session that can only be read: enter, `b` or a click goes on in a copy."""

    BINDINGS = [("enter,b", "press", "Branch")]

    class Pressed(Message):
        """Go on in a copy."""

    def __init__(self, text: str) -> None:
        words = Content.assemble(f"! {clean(text)}  ", ("go on in a copy", "$text-accent"), (" b", "$text-muted"))
        super().__init__(words, markup=False, classes="notice -warning -offer")

    def action_press(self) -> None:
        self.post_message(self.Pressed())

    def on_click(self, event: Click) -> None:
        event.stop()
        self.action_press()


class Banner(Vertical):
    """Sentences, the newest last."""

    def __init__(self) -> None:
        super().__init__(id="banner")

    def say(self, text: str, level: Level = "warning") -> None:
        """One more."""
        self.mount(NoticeBlock(level, text))

    def offer(self, text: str) -> None:
        """One more, with a way out: a copy of the session."""
        self.mount(BranchOffer(text))

    async def clear(self) -> None:
        """All has been read."""
        await self.remove_children()
