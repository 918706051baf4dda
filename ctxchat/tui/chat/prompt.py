"""The editor in which a message is written: multi-line, with history and completion; Enter sends, and large pastes become
attachments.

Knows text and keys only; `composer` sends, queues and measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from textual.events import Key, Paste
from textual.message import Message
from textual.strip import Strip

from ctxchat.core.prompt_files import PromptFile
from ctxchat.presentation.text import harmless
from ctxchat.tools.mentions import MentionedFile, pasted_data, pasted_images, pasted_path, read_mention
from ctxchat.tui.chat.completion import (
    Completion,
    CompletionList,
    Wanted,
    command_choices,
    completable,
    mention_choices,
)
from ctxchat.tui.commands import Keys
from ctxchat.tui.terminal.first_frame import invitation
from ctxchat.tui.unsent.input_history import InputHistory
from ctxchat.tui.unsent.vi_keys import ViKeys
from ctxchat.tui.widgets.field import TextEditor, with_newlines

if TYPE_CHECKING:
    from textual.document._document import Document

    from ctxchat.tools.mcp.protocol import OfferedResource

MIN_ATTACHED_CHARS = 8_192
"""Characters from which a paste becomes an attachment instead of text in the editor."""


class Prompt(TextEditor):
    """The editor. Enter calls `send` (with whether the message is to wait until the turn is over), ctrl+j begins a line; a paste
    too large to edit is given to `fold`, any other to `pasted`. These are calls and no messages, so that they are done before the
    next key of a burst arrives."""

    class ImagesPasted(Message):
        """An image was pasted, or nothing but paths of images, as when files are dropped on the terminal."""

        def __init__(self, text: str, paths: Sequence[str], image: MentionedFile | None) -> None:
            super().__init__()
            self.text, self._paths, self._image = text, paths, image

        def load(self, workspace: Path) -> list[MentionedFile]:
            """The pasted images. Reads files."""
            return [self._image] if self._image else [read_mention(path, workspace) for path in self._paths]

    class PathPasted(Message):
        """A single path was pasted."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    class Scrolled(Message):
        """The transcript is to scroll by so many pages."""

        def __init__(self, pages: int) -> None:
            super().__init__()
            self.pages = pages

    class Moded(Message):
        """Vi's normal mode began, or ended."""

        def __init__(self, normal: bool) -> None:
            super().__init__()
            self.normal = normal

    class FetchBack(Message):
        """Up was pressed in an empty editor: wants the last queued message back or, without one, the history."""

    def __init__(
        self,
        keys: Keys,
        history: InputHistory,
        completion: CompletionList,
        *,
        send: Callable[[bool], None],
        fold: Callable[[str], None],
        pasted: Callable[[str], None] = lambda text: None,
    ) -> None:
        super().__init__(
            id="prompt",
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
        )
        self.cursor_blink = False  # calmer, and an idle screen costs nothing
        self.use_keys(keys)
        self._send, self._fold, self._pasted = send, fold, pasted
        self._completion = completion
        self._wanted: Wanted | None = None
        self._recalled = ""
        self.input_history = history
        self.files: Sequence[str] = ()
        self.resources: Mapping[str, Sequence[OfferedResource]] = {}
        """The resources of each MCP server, which can be mentioned after `@`."""
        self.vi: ViKeys | None = None
        """The vi key handling; None without vi keys."""
        self.prompts: Callable[[], Sequence[PromptFile]] = tuple
        """The skills and command files that can be called by `/name`."""

    def use_keys(self, keys: Keys) -> None:
        """Use this key table from now on."""
        self._send_keys = set(keys.get("send", ("enter",)))
        self._later_keys = set(keys.get("send_later", ("ctrl+s",)))
        self._line_keys = set(keys.get("newline", ("ctrl+j", "shift+enter"))) | {"shift+\r"}
        self._scroll_keys = {
            **dict.fromkeys(keys.get("scroll_up", ("pageup",)), -1),
            **dict.fromkeys(keys.get("scroll_down", ("pagedown",)), 1),
        }

    def on_resize(self) -> None:
        """Show the longest placeholder that fits on one line."""
        self.placeholder = invitation(self.content_size.width)

    def render_line(self, y: int) -> Strip:
        """Like Textual's, which fails to wrap the placeholder in no columns at all."""
        return super().render_line(y) if self.content_size.width else Strip.blank(self.size.width)

    # ── keys ──

    async def _on_key(self, event: Key) -> None:
        writing = self.vi is None or not self.vi.normal
        if (writing and self._completing(event.key)) or self._edit_by_vi(event) or self._handle_key(event.key):
            event.prevent_default()
            event.stop()

    def _edit_by_vi(self, event: Key) -> bool:
        """Handle a key as vi does; False if vi does not handle it."""
        vi = self.vi
        if vi is None or not (vi.normal or event.key == "escape") or event.key in self._send_keys | self._later_keys:
            return False
        was, document = vi.normal, cast("Document", self.document)
        done = vi.press(
            event.key, event.character or "", self.text, document.get_index_from_location(self.cursor_location)
        )
        if done is None:
            return False
        if done.change:
            start, end, put = done.change
            self.replace(put, document.get_location_from_index(start), document.get_location_from_index(end))
        if done.cursor is not None:
            self.move_cursor(document.get_location_from_index(done.cursor))
        match done.verb:
            case "undo":
                self.undo()
            case "redo":
                self.redo()
            case "up" | "down":
                self._handle_key(done.verb)
            case _:
                pass
        if vi.normal != was:
            self._completion.offer(())
            self.post_message(self.Moded(vi.normal))
        return True

    def write_anew(self) -> None:
        """Leave vi's normal mode, if it is on."""
        if self.vi and self.vi.normal:
            self.vi.normal = False
            self.post_message(self.Moded(False))

    def edit_by(self, editing: Literal["usual", "vi"]) -> None:
        """Use vi's keys or the usual ones from now on."""
        self.write_anew()
        if (editing == "vi") != (self.vi is not None):
            self.vi = ViKeys() if editing == "vi" else None

    def type_key(self, event: Key) -> bool:
        """Handle a key typed before the editor had the focus: text, Enter, a new line, backspace. False for any other."""
        if event.key in self._send_keys | self._line_keys:
            return self._handle_key(event.key)
        if event.key == "backspace":
            self.action_delete_left()
        elif event.is_printable and event.character:
            self.insert(event.character)
        else:
            return False
        return True

    def scroll(self, key: str) -> bool:
        """Scroll the transcript if this key does that; whether it does."""
        if key in self._scroll_keys:
            self.post_message(self.Scrolled(self._scroll_keys[key]))
        return key in self._scroll_keys

    @property
    def key_words(self) -> Sequence[tuple[str, str]]:
        """The keys of the completion list and what each does; empty while it is closed."""
        if not self._completion.is_open:
            return ()
        close = ("esc", "close the list")
        return (close,) if self._complete_already() else (("enter", "take it"), close)

    def _completing(self, key: str) -> bool:
        if self._completion.is_open and self._word() != self._wanted:
            self.offer_completions()  # keys came faster than news of the text
        if not self._completion.is_open:
            return False
        if key in {"up", "down"}:
            self._completion.move(-1 if key == "up" else 1)
        elif key == "tab" or (key in self._send_keys and not self._complete_already()):
            self.insert_completion(self._completion.current)
        elif key == "escape":
            self._completion.offer(())
        else:
            return False
        return True

    def _complete_already(self) -> bool:
        """Whether the word is already complete, so that Enter sends the message."""
        choice, wanted = self._completion.current, self._wanted
        row, column = self.cursor_location
        typed = self.document.get_line(row)[column - wanted.length : column] if wanted else ""
        return choice is None or typed == choice.insert.strip()

    def _handle_key(self, key: str) -> bool:
        if key in self._send_keys:
            self._completion.offer(())
            self._send(False)
        elif key in self._later_keys:
            self._send(True)
        elif self.scroll(key):
            pass
        elif key in self._line_keys:
            self.insert("\n")
        elif key == "up" and self._at_top and (not self.text or self.text == self._recalled):
            if self.text:
                self.recall_older()
            else:
                self.post_message(self.FetchBack())
        elif key == "up" and self._at_top:
            self.recall_older()
        elif key == "down" and self._at_bottom:
            return self._recall(self.input_history.forward())
        else:
            return False
        return True

    @property
    def _at_top(self) -> bool:
        return self.cursor_location[0] == 0 and self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    @property
    def _at_bottom(self) -> bool:
        return self.cursor_location[0] == self.document.line_count - 1

    # ── history ──

    def recall_older(self) -> None:
        """Show the previous message of the history; the draft is kept as its newest entry."""
        self._recall(self.input_history.back(self.text))

    def _recall(self, text: str | None) -> bool:
        if text is None:
            return False
        self.set_text(text)
        self._recalled = text
        return True

    def set_text(self, text: str) -> None:
        """Replace the text; the cursor at its end. Can be undone with ctrl+z."""
        self.replace(harmless(with_newlines(text)), (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    # ── completion ──

    def offer_completions(self) -> None:
        """Offer completions of the word at the cursor."""
        found = self._wanted = self._word()
        if found is None or not self.has_focus or (self.vi and self.vi.normal):
            self._completion.offer(())
        elif found.kind == "command":
            self._completion.offer(command_choices(found.typed, self.prompts()))
        else:
            choices = mention_choices(found.typed, self.files, self.resources)
            whole = bool(choices) and choices[0].insert.strip() == f"@{found.typed}"
            self._completion.offer(() if whole else choices)

    def _word(self) -> Wanted | None:
        """The word at the cursor that can be completed; None if there is none."""
        row, column = self.cursor_location
        found = completable(self.document.get_line(row)[:column])
        if found and found.kind == "command" and (row or self.text == self._recalled):
            return None
        return found

    @property
    def mention_at(self) -> tuple[int, int] | None:
        """Line and column of the `@` of the mention at the cursor; None if there is none."""
        if self._wanted is None or self._wanted.kind != "file":
            return None
        row, column = self.cursor_location
        return row, column - self._wanted.length

    @property
    def typed_file(self) -> str:
        """The name of a file that is being typed; empty for none."""
        return self._wanted.typed if self._wanted and self._wanted.kind == "file" else ""

    def insert_completion(self, choice: Completion | None) -> None:
        """Replace the word at the cursor by a choice."""
        if choice and self._wanted:
            row, column = self.cursor_location
            self.replace(choice.insert, (row, max(0, column - self._wanted.length)), (row, column))
        self._completion.offer(())

    # ── paste ──

    async def _on_paste(self, event: Paste) -> None:
        text = harmless(with_newlines(event.text))
        event.prevent_default()
        event.stop()
        image = pasted_data(text)
        paths = [] if image else pasted_images(text)
        if image or paths:
            self.post_message(self.ImagesPasted(text, paths, image))
        elif len(text) >= MIN_ATTACHED_CHARS:
            self._fold(text)
        elif text:
            self._pasted(text)
            self.replace(text, *self.selection, maintain_selection_offset=False)
            if path := pasted_path(text):
                self.post_message(self.PathPasted(path))
