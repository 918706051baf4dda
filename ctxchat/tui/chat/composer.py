"""Where a message is written: the editor, what goes along with it, what waits in the queue, and what it would do to the gauge.

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
    """Empty for a message that hardly matters."""

    def __init__(self) -> None:
        super().__init__(id="draft-line")

    def show_cost(self, context_usage: ContextUsage, along: Sequence[Along], cold: str, *, unseen: bool) -> bool:
        """What there is to say; True where that is anything. `unseen`: images go along that the model is not shown; `cold`: what
        sending costs where the server holds nothing any more."""
        whole = any(isinstance(each, Paste) and not each.as_file for each in along)
        offer = OFFER if whole and context_usage.used > context_usage.limit else ""
        words = "\n".join(filter(None, (UNSEEN if unseen else "", draft_line(context_usage), cold, offer)))
        self.set_words(words)
        return bool(words)


def draft_line(context_usage: ContextUsage) -> str:
    """`this message +18k → 92 %, compaction would start`; empty where it hardly matters."""
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
"""What a permission mode comes to, in the composer's border."""

DEBOUNCE_S = 0.1
"""Seconds from a change to its news."""


class Composer(Widget):
    """Writes, attaches, queues. Calls `submit` and `take_back`; says `Changed`; is told figures, the queue and whose attachments
    these are."""

    class KeysChanged(Message):
        """Keys do something else now, where one writes."""

    class Changed(Message):
        """The draft is another one, some 100 ms ago."""

    class Rested(Message):
        """Nobody has changed the draft for a moment."""

    def __init__(self, keys: Keys, history: InputHistory) -> None:
        super().__init__(id="composer")
        self._completion, self._frame = CompletionList(), Widget(id="frame")
        self.attached, self.queued, self._line = AttachedBox(), Queued(), DraftLine()
        self.prompt = Prompt(keys, history, self._completion, send=self._send, fold=self._fold, pasted=self._note_paste)
        self.submit: Callable[[Draft], None] = lambda draft: None  # the app's; it calls `sent` when it took the draft
        self.take_back: Callable[[Draft], bool] = lambda draft: False  # likewise; False for what no longer waits
        self.workspace = Path()
        self.resources: MentionedResources | None = None  # the app's
        self._attachments: Attachments | None = None
        self._judge: Callable[[AccessRequest], Verdict] = free_inside
        self._mention_at: tuple[int, int] | None = None  # where a file was being named when this was last looked at
        self._pasted: tuple[str, ...] = ()  # mentions that nobody typed
        self._agreed: tuple[str, ...] = ()  # mentions that go along though they would not by themselves
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
        """What goes along goes to this session, and is weighed by its model; `judge` says which files may be read."""
        self._attachments, self._judge = attachments, judge
        self.attached.weigh = attachments.count_tokens
        self.attached.redraw()

    # ── the mode ──

    def show_mode(self, mode: Mode, keys: Keys) -> None:
        """What calls may do without asking, in the border, and the key that changes it."""
        key = next(iter(keys.get("mode", ())), "")
        words = MODE_WORDS[mode].partition(":")[0] if self.size.width < 50 else MODE_WORDS[mode]
        title = target(Content(f"{words}   {shown_key(key)}" if key else words), "mode")
        self._frame.border_title = title  # type: ignore[assignment]  # as Textual takes it, and says it does not
        self._frame.set_class(mode == "all", "-all")
        self._frame.set_class(mode == "plan", "-plan")

    def on_click(self, event: Click) -> None:
        if press := event.style.meta.get("press"):
            event.stop()
            self.post_message(Line.TargetPressed(*press))

    # ── the draft ──

    @property
    def draft(self) -> str:
        """The words of the message, without blank lines around them; the first line keeps its indent."""
        return re.sub(r"\A(?:[^\S\n]*\n)+", "", self.prompt.text).rstrip()

    @property
    def whole_draft(self) -> Draft:
        """The message as it would be sent."""
        named = mentions(self.draft) if self._pasted or self._agreed else ()
        pasted, agreed = (tuple(each for each in named if each in of) for of in (self._pasted, self._agreed))
        return Draft(self.draft, self.attached.along, pasted=pasted, agreed=agreed)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What would go along, for the gauge."""
        return self.attached.parts

    def set_draft(self, text: str) -> None:
        """Another text in the editor; attachments stay."""
        self.prompt.set_text(text)
        self.prompt.focus()

    def put_back(self, draft: Draft) -> None:
        """A message that is not to go out after all: before what is being written."""
        words = [text for text in (draft.text, self.prompt.text) if text.strip()]
        self.prompt.set_text("\n\n".join(words))
        self._pasted += draft.pasted
        self._agreed += draft.agreed
        if draft.along:
            self.attached.attach(*draft.along)

    def sent(self, *, keep_attached: bool = False) -> None:
        """The draft is on its way: remember it, and start anew."""
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
        if self._timer is None:
            self._timer = self.set_timer(DEBOUNCE_S, self._tell)

    def _tell(self) -> None:
        self._timer = None
        if "@" in self.prompt.text or self.attached.named:
            most = self._context_usage.limit if self._context_usage else MAX_TEXT_CHARS
            rules = mention_rules(self.whole_draft, self._judge)
            look = partial(self.attached.find_mentions, self.prompt.text, self.workspace, most, rules)
            looking = partial(look, typing=lambda: self.prompt.typed_file, resources=self.resources)
            self.run_worker(partial(self._look, looking), group="mentions", exclusive=True, exit_on_error=False)
        at = self.prompt.mention_at
        if at and at != self._mention_at:  # files made since are to be found, the agent's own too
            self.run_worker(self.list_files, group="files", exclusive=True, exit_on_error=False)
        self._mention_at = at
        self.post_message(self.Changed())
        if self._rest:
            self._rest.stop()
        self._rest = self.set_timer(SAVE_PAUSE_S, lambda: self.post_message(self.Rested()))

    async def _look(self, looking: Callable[[], Awaitable[None]]) -> None:
        """At what the message mentions, and at what the servers list by now."""
        if self.resources and await self.resources.refresh():
            self.prompt.resources = self.resources.listed
            if self.prompt.mention_at:
                self.prompt.offer_completions()
        await looking()

    async def list_files(self) -> tuple[str, ...]:
        """Read anew which files of the folder can be named in a message."""
        from ctxchat.tui.unsent.workspace_files import files_of

        files = await to_thread(files_of, self.workspace)
        if files != self.prompt.files:
            self.prompt.files = files
            if self.prompt.mention_at:
                self.prompt.offer_completions()
        return files

    def show_cost(self, context_usage: ContextUsage, cold: str = "") -> None:
        """Say what this message would do to the gauge, where it matters, and what it costs a server that has gone `cold`."""
        self._context_usage = context_usage
        self.attached.redraw()
        blind = self._attachments is not None and not self._attachments.seen
        unseen = blind and any(isinstance(part, Image) for part in self.parts)
        self.set_class(self._line.show_cost(context_usage, self.attached.along, cold, unseen=unseen), "-weighs")

    def on_prompt_moded(self, event: Prompt.Moded) -> None:
        """Vi's normal mode is told in the border."""
        event.stop()
        self._frame.border_subtitle = "normal: i writes" if event.normal else ""

    # ── what goes along ──

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
        """All of them, or the paste as the text it is, and why."""
        found = await to_thread(event.load, self.workspace)
        if all(each.kind == "image" for each in found):
            self.attached.add_images(*found)
            return
        self.prompt.replace(event.text, *self.prompt.selection, maintain_selection_offset=False)
        for each in found:
            if each.kind == "nothing" and each.why.startswith("not sent"):
                self.app.notify(f"{each.name}: {each.why}.", severity="warning", markup=False)

    def on_attached_box_to_text(self, event: AttachedBox.ToText) -> None:
        event.stop()
        self._note_paste(event.text)
        self.prompt.insert(event.text)
        self.prompt.focus()

    def focus_attached(self) -> bool:
        """From the editor to what goes along; False where there is nothing, or the focus is elsewhere."""
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
        """The draft in the person's own editor. Raises CtxchatError where that cannot be."""
        text = edited(self.prompt.text, command, self.app.suspend)
        if text is not None:
            self.set_draft(clean(text).rstrip("\n"))
        self.app.refresh(layout=True)
