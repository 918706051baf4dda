"""What is clicked or answered somewhere on the screen, and the command each starts. A part of the app, kept by subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from ctxchat.tui import commands
from ctxchat.tui.actions import Action, models
from ctxchat.tui.actions.compaction import reinsert
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.screens.chat import ChatScreen
from ctxchat.tui.widgets.banner import AllNotices, BranchOffer
from ctxchat.tui.widgets.blocks import CompactionMark
from ctxchat.tui.widgets.first_choice import FirstChoice
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.suggestion import SuggestionPanel
from ctxchat.tui.work import Work

if TYPE_CHECKING:
    from textual.widgets import Markdown


class Clicks(App[int]):
    """Handlers of messages that bubble up to the app."""

    chat: ChatScreen
    work: Work

    def begin(self, action: Action, argument: str) -> None:
        """Start one that is no command by itself."""
        raise NotImplementedError

    def run_command(self, command: commands.Command, argument: str = "") -> None:
        """Start a command."""
        raise NotImplementedError

    def on_breakdown_free_up_pressed(self) -> None:
        self.run_command(commands.BY_NAME["free"])

    def on_gauge_segment_clicked(self, event: Gauge.SegmentClicked) -> None:
        """The messages of that part."""
        if self.screen is self.chat:
            self.run_command(commands.BY_NAME["xray"], event.name)

    def on_compaction_mark_chosen(self, event: CompactionMark.Chosen) -> None:
        """View, undo, branch from a compaction, or put back what it lost."""
        event.stop()
        change = event.change.id
        if event.what == "re-insert":
            self.begin(reinsert, change)
        else:
            name = {"view": "archive", "undo": "undo", "branch": "branch"}[event.what]
            self.run_command(commands.BY_NAME[name], change)

    def on_branch_offer_pressed(self, event: BranchOffer.Pressed) -> None:
        event.stop()
        self.run_command(commands.BY_NAME["branch"])

    def on_all_notices_pressed(self, event: AllNotices.Pressed) -> None:
        event.stop()
        self.run_command(commands.BY_NAME["notices"])

    def on_first_choice_chosen(self, event: FirstChoice.Chosen) -> None:
        event.stop()
        self.chat.composer.prompt.focus()
        self.begin(models.first_choice, event.name)

    def on_suggestion_panel_replied(self, event: SuggestionPanel.Replied) -> None:
        event.stop()
        self.work.agree(event.reply, event.instructions)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Only web addresses are opened."""
        event.stop()
        if event.href.startswith(("http://", "https://")):
            self.open_url(event.href)
        else:
            self.notify(f"Not opened: {one_line(event.href, 80)}", markup=False)
