"""What widgets have to say to the app (a message to send, a click, an answer), and what each of it starts. A part of the app."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ctxchat.config.keys import Action
from ctxchat.tui import commands, starting
from ctxchat.tui.actions import Handler, importing, models
from ctxchat.tui.actions.compaction import reinsert
from ctxchat.tui.in_order import InOrder
from ctxchat.tui.reading.text import one_line
from ctxchat.tui.screens.chat import ChatScreen
from ctxchat.tui.transcript.compaction_mark import CompactionMark
from ctxchat.tui.transcript.transcript import Transcript
from ctxchat.tui.unsent.draft import Draft
from ctxchat.tui.widgets.banner import AllNotices, BranchOffer
from ctxchat.tui.widgets.composer import Composer
from ctxchat.tui.widgets.first_choice import FirstChoice
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.importing import ImportOffer
from ctxchat.tui.widgets.prompt import Prompt
from ctxchat.tui.widgets.suggestion import SuggestionPanel
from ctxchat.tui.widgets.unreached import UnreachedPanel
from ctxchat.tui.work import Work

if TYPE_CHECKING:
    from textual.widgets import Markdown


class Handlers(InOrder):
    """Handlers of messages that bubble up to the app."""

    chat: ChatScreen
    work: Work

    def begin(self, action: Handler, argument: str) -> object:
        """Start one that is no command by itself."""
        raise NotImplementedError

    def run_command(self, command: Action, argument: str = "") -> None:
        """Start a command."""
        raise NotImplementedError

    # ── the composer ──

    def submit(self, draft: Draft) -> None:
        """Enter in the composer: a command, or a message for now or for later. At once, or keys typed behind it would join it."""
        said = commands.parse(draft.text)
        if isinstance(said, commands.Unknown):
            near = f" Did you mean /{said.nearest}?" if said.nearest else " /help lists them."
            self.chat.notice("warning", f"There is no command /{one_line(said.name, 40)}.{near}")
        elif said is not None:
            self.chat.composer.sent(keep_attached=True)
            self.run_command(said.command, said.argument)
        elif (session := self.work.session) and session.read_only:
            self._not_sent(session.read_only, "/branch goes on in a copy.")
        elif self.work.trouble:
            self._not_sent(self.work.trouble, starting.AGAIN)
        elif not draft.along and self.chat.questions.reply(draft.text):
            self.chat.composer.sent()
        else:
            self.chat.composer.sent()
            self.work.say(draft)

    def _not_sent(self, why: str, way_out: str) -> None:
        self.chat.notice("warning", f"{why} Nothing was sent; your message is still here. {way_out}")

    def on_composer_rested(self, event: Composer.Rested) -> None:
        """What is unsent is kept, beside the screen."""
        event.stop()
        self.run_worker(self.work.keep_draft, group="draft", exit_on_error=False)

    # ── clicks and answers ──

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

    def on_prompt_path_pasted(self, event: Prompt.PathPasted) -> None:
        """What is found there is offered, never taken."""
        event.stop()
        self.begin(importing.offer_path, event.path)

    def on_import_offer_answered(self, event: ImportOffer.Answered) -> None:
        event.stop()
        self.chat.composer.prompt.focus()
        if event.agreed:
            if event.path and event.path in self.chat.composer.draft:  # it was meant for this
                self.chat.composer.set_draft(self.chat.composer.draft.replace(event.path, "", 1).strip(" '\""))
            self.begin(importing.import_from, event.path)

    def on_unreached_panel_answered(self, event: UnreachedPanel.Answered) -> None:
        event.stop()
        self.chat.composer.prompt.focus()
        if event.way:
            self.begin(partial(models.go_on, event.way, event.waiting), "")

    def on_suggestion_panel_replied(self, event: SuggestionPanel.Replied) -> None:
        event.stop()
        self.work.agree(event.reply, event.instructions)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        event.stop()
        self._follow(event.href)

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        event.stop()
        self._follow(event.href)

    def _follow(self, href: str) -> None:
        """Only web addresses are opened."""
        if href.startswith(("http://", "https://")):
            self.open_url(href)
        else:
            self.notify(f"Not opened: {one_line(href, 80)}", markup=False)
