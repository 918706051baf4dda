"""The composer: the editor for a message, its attachments, the queued messages, and a line with the message's effect on the
gauge.

A draft is never lost: not by a resize, another session, an approval or a command that is refused.
"""

from __future__ import annotations

import re
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from textual.app import ComposeResult
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TextArea

from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.messages import Image, Part
from ctxchat.core.permissions import AccessRequest, Mode
from ctxchat.presentation.text import clean
from ctxchat.presentation.usage_text import draft_words, starts_with_draft
from ctxchat.tools.mentions import MAX_TEXT_CHARS, Verdict, free_inside, mentions
from ctxchat.tui.chat.chips import AttachedBox, MentionToAgree, Queued
from ctxchat.tui.chat.completion import CompletionList
from ctxchat.tui.chat.prompt import Prompt
from ctxchat.tui.commands import Keys, shown_key
from ctxchat.tui.unsent.draft import SAVE_PAUSE_S, Along, Draft, Paste, mention_rules
from ctxchat.tui.unsent.input_history import InputHistory
from ctxchat.tui.unsent.outside_editor import edited
from ctxchat.tui.unsent.resources import MentionedResources
from ctxchat.tui.widgets.line import Line, Words
from ctxchat.tui.widgets.lines import target

if TYPE_CHECKING:
    from ctxchat.agent.attachments import Attachments


MIN_DRAFT_SHARE = 0.02
"""Share of the limit from which a draft gets a line of its own."""

OFFER = "tab, then f: send the paste as a file"
UNSEEN = "This model is shown no images: their names go instead."


class DraftLine(Words):
    """The line below the editor that says what sending the draft would cost; empty for a small message."""

    def __init__(self) -> None:
        super().__init__(id="draft-line")

    def show_cost(self, context_usage: ContextUsage, along: Sequence[Along], cold: str, *, unseen: bool) -> bool:
        """Show the draft's cost; False where the line stays empty. `unseen`: images are attached that the model cannot see;
        `cold`: a text on the cost of sending once the server's cache has expired."""
        has_whole_paste = any(isinstance(each, Paste) and not each.as_file for each in along)
        offer = OFFER if has_whole_paste and context_usage.used > context_usage.limit else ""
        text = "\n".join(filter(None, (UNSEEN if unseen else "", draft_line(context_usage), cold, offer)))
        self.set_words(text)
        return bool(text)


def draft_line(context_usage: ContextUsage) -> str:
    """The draft's effect on the gauge, such as `this message +18k → 92 %, compaction would start`; empty for a small message."""
    draft = context_usage.tokens("draft")
    worth = context_usage.excess or draft >= context_usage.limit * MIN_DRAFT_SHARE or starts_with_draft(context_usage)
    return draft_words(context_usage) if worth else ""


MODE_WORDS: Mapping[Mode, str] = {
    "ask": "ask",
    "read-only": "read-only: nothing is changed",
    "plan": "plan: looks and proposes, nothing is changed",
    "auto-edit": "auto-edit: files here are changed unasked",
    "all": "ALL: nothing asks",
}
"""The text for each permission mode in the composer's border."""

DEBOUNCE_S = 0.1
"""Seconds from a change of the draft to its `Changed` message."""


class Composer(Widget):
    """The widget with the editor, the attachments and the queue. It calls `submit` and `take_back`, which the app sets, and posts
    `Changed`; the figures, the queue and the session's attachments are given to it."""

    class KeysChanged(Message):
        """The keys that work in the editor have changed."""

    class Changed(Message):
        """The draft has changed, up to `DEBOUNCE_S` ago."""

    class Rested(Message):
        """The draft has not changed for `SAVE_PAUSE_S`."""

    def __init__(self, keys: Keys, history: InputHistory) -> None:
        super().__init__(id="composer")
        self._completion, self._frame = CompletionList(), Widget(id="frame")
        self.attached, self.queued, self._line = AttachedBox(), Queued(), DraftLine()
        self.prompt = Prompt(keys, history, self._completion, send=self._send, fold=self._fold, pasted=self._note_paste)
        self.submit: Callable[[Draft], None] = lambda draft: (
            None
        )  # set by the app, which calls `sent` when it accepts the draft
        self.take_back: Callable[[Draft], bool] = lambda draft: (
            False
        )  # set by the app; False for a message that is no longer queued
        self.workspace = Path()
        self.resources: MentionedResources | None = None  # set by the app
        self._attachments: Attachments | None = None
        self._judge: Callable[[AccessRequest], Verdict] = free_inside
        self._mention_at: tuple[int, int] | None = (
            None  # position of the `@` of the file being typed, at the last check
        )
        self._pasted: tuple[str, ...] = ()  # mentions that came in by a paste
        self._agreed: tuple[str, ...] = ()  # mentions whose file the person agreed to send
        self._context_usage: ContextUsage | None = None
        self._timer: Timer | None = None
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self._completion
        yield self.queued
        with self._frame:
            yield self.attached
            yield self.prompt
        yield self._line

    def belongs_to(self, attachments: Attachments, judge: Callable[[AccessRequest], Verdict]) -> None:
        """Attach to this session from now on and count tokens for its model; `judge` says which files may be read."""
        self._attachments, self._judge = attachments, judge
        self.attached.weigh = attachments.count_tokens
        self.attached.redraw()

    # ── the mode ──

    def show_mode(self, mode: Mode, keys: Keys) -> None:
        """Show the permission mode in the border, with the key that changes it."""
        key = next(iter(keys.get("mode", ())), "")
        words = MODE_WORDS[mode].partition(":")[0] if self.size.width < 50 else MODE_WORDS[mode]
        title = target(Content(f"{words}   {shown_key(key)}" if key else words), "mode")
        self._frame.border_title = title  # type: ignore[assignment]  # Textual accepts a Content, though its types say a string
        self._frame.set_class(mode == "all", "-all")
        self._frame.set_class(mode == "plan", "-plan")

    def on_click(self, event: Click) -> None:
        if press := event.style.meta.get("press"):
            event.stop()
            self.post_message(Line.TargetPressed(*press))

    # ── the draft ──

    @property
    def draft(self) -> str:
        """The text of the message, without blank lines around it; the first line keeps its indent."""
        return re.sub(r"\A(?:[^\S\n]*\n)+", "", self.prompt.text).rstrip()

    @property
    def whole_draft(self) -> Draft:
        """The message as it would be sent: text, attachments and mentions."""
        mentioned = mentions(self.draft) if self._pasted or self._agreed else ()
        pasted, agreed = (tuple(name for name in mentioned if name in names) for names in (self._pasted, self._agreed))
        return Draft(self.draft, self.attached.along, pasted=pasted, agreed=agreed)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The attachments as message parts, for the gauge."""
        return self.attached.parts

    def set_draft(self, text: str) -> None:
        """Replace the text in the editor; attachments stay."""
        self.prompt.set_text(text)
        self.prompt.focus()

    def put_back(self, draft: Draft) -> None:
        """Put a message that was not sent back into the editor, before the text being written."""
        texts = [text for text in (draft.text, self.prompt.text) if text.strip()]
        self.prompt.set_text("\n\n".join(texts))
        self._pasted += draft.pasted
        self._agreed += draft.agreed
        if draft.along:
            self.attached.attach(*draft.along)

    def sent(self, *, keep_attached: bool = False) -> None:
        """Add the accepted draft to the input history and clear the composer."""
        self.prompt.input_history.add_entry(self.prompt.text)
        self.prompt.clear()
        self.prompt.write_anew()
        self._pasted = self._agreed = ()
        if not keep_attached:
            self.attached.clear()
        self._changed()

    def _send(self, later: bool) -> None:
        if not self.whole_draft.empty:
            self.submit(msgspec.structs.replace(self.whole_draft, later=later))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.prompt.offer_completions()
        self._changed()

    def on_completion_list_shown(self, event: CompletionList.Shown) -> None:
        event.stop()
        self.post_message(self.KeysChanged())

    def on_completion_list_taken(self, event: CompletionList.Taken) -> None:
        event.stop()
        self.prompt.insert_completion(event.choice)

    def on_attached_box_changed(self, event: AttachedBox.Changed) -> None:
        event.stop()
        self._changed()

    def _changed(self) -> None:
        """Schedule `_tell` for a change of the draft; changes within `DEBOUNCE_S` are told together."""
        if self._timer is None:
            self._timer = self.set_timer(DEBOUNCE_S, self._tell)

    def _tell(self) -> None:
        """Look up what the changed draft mentions, post `Changed`, and `Rested` after a pause."""
        self._timer = None
        if "@" in self.prompt.text or self.attached.named:
            max_chars = self._context_usage.limit if self._context_usage else MAX_TEXT_CHARS
            rules = mention_rules(self.whole_draft, self._judge)
            find = partial(self.attached.find_mentions, self.prompt.text, self.workspace, max_chars, rules)
            find = partial(find, typing=lambda: self.prompt.typed_file, resources=self.resources)
            self.run_worker(partial(self._find_mentions, find), group="mentions", exclusive=True, exit_on_error=False)
        at = self.prompt.mention_at
        if at and at != self._mention_at:  # list files again, to include those created since, also by the agent
            self.run_worker(self.list_files, group="files", exclusive=True, exit_on_error=False)
        self._mention_at = at
        self.post_message(self.Changed())
        if self._rest:
            self._rest.stop()
        self._rest = self.set_timer(SAVE_PAUSE_S, lambda: self.post_message(self.Rested()))

    async def _find_mentions(self, find: Callable[[], Awaitable[None]]) -> None:
        """Refresh the resources that the MCP servers list, then look up what the message mentions with `find`."""
        if self.resources and await self.resources.refresh():
            self.prompt.resources = self.resources.listed
            if self.prompt.mention_at:
                self.prompt.offer_completions()
        await find()

    async def list_files(self) -> tuple[str, ...]:
        """List the files of the workspace that can be mentioned in a message."""
        from ctxchat.tui.unsent.workspace_files import files_of

        files = await to_thread(files_of, self.workspace)
        if files != self.prompt.files:
            self.prompt.files = files
            if self.prompt.mention_at:
                self.prompt.offer_completions()
        return files

    def show_cost(self, context_usage: ContextUsage, cold: str = "") -> None:
        """Show the draft's effect on these figures, where it matters; `cold` says what sending costs once the server's cache has
        expired."""
        self._context_usage = context_usage
        self.attached.redraw()
        sees_no_images = self._attachments is not None and not self._attachments.seen
        unseen = sees_no_images and any(isinstance(part, Image) for part in self.parts)
        self.set_class(self._line.show_cost(context_usage, self.attached.along, cold, unseen=unseen), "-weighs")

    def on_prompt_moded(self, event: Prompt.Moded) -> None:
        """Show vi's normal mode in the border."""
        event.stop()
        self._frame.border_subtitle = "normal: i writes" if event.normal else ""

    # ── attachments ──

    def _note_paste(self, text: str) -> None:
        self._pasted += tuple(mentions(text))

    def on_mention_to_agree_agreed(self, event: MentionToAgree.Agreed) -> None:
        event.stop()
        self._agreed += (event.name,)
        self.prompt.focus()
        self._changed()

    def _fold(self, paste: str) -> None:
        self.attached.attach(Paste(0, paste))

    def on_prompt_images_pasted(self, event: Prompt.ImagesPasted) -> None:
        event.stop()
        self.run_worker(partial(self._attach_images, event), group="images", exit_on_error=False)

    async def _attach_images(self, event: Prompt.ImagesPasted) -> None:
        """Attach the pasted images; where one of them is no image, insert the paste as text and say why."""
        images = await to_thread(event.load, self.workspace)
        if all(each.kind == "image" for each in images):
            self.attached.add_images(*images)
            return
        self.prompt.replace(event.text, *self.prompt.selection, maintain_selection_offset=False)
        for each in images:
            if each.kind == "nothing" and each.why.startswith("not sent"):
                self.app.notify(f"{each.name}: {each.why}.", severity="warning", markup=False)

    def on_attached_box_to_text(self, event: AttachedBox.ToText) -> None:
        event.stop()
        self._note_paste(event.text)
        self.prompt.insert(event.text)
        self.prompt.focus()

    def focus_attached(self) -> bool:
        """Move the focus from the editor to the first attachment; False where there is none, or the editor does not have the
        focus."""
        chips = self.attached.query("Chip, MentionToAgree")
        if not (self.prompt.has_focus and chips):
            return False
        chips.first().focus()
        return True

    # ── the queue ──

    def on_prompt_fetch_back(self, event: Prompt.FetchBack) -> None:
        event.stop()
        if self.queued.drafts:
            self._unqueue(self.queued.drafts[-1], edit=True)
        else:
            self.prompt.recall_older()

    def on_queued_taken(self, event: Queued.Taken) -> None:
        event.stop()
        self._unqueue(event.draft, event.edit)
        self.prompt.focus()

    def _unqueue(self, draft: Draft, edit: bool) -> None:
        if self.take_back(draft) and edit:
            self.put_back(draft)

    def edit_outside(self, command: str) -> None:
        """Edit the draft in the person's own editor, started with `command`. Raises CtxchatError where that fails."""
        text = edited(self.prompt.text, command, self.app.suspend)
        if text is not None:
            self.set_draft(clean(text).rstrip("\n"))
        self.app.refresh(layout=True)
