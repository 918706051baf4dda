"""Undoes, redoes and puts back for a person, and asks before an undo that would overfill the window: how full it would be, by how
much too full, and which part would fit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Label, Static

from ctxchat.agent.file_undo import Files
from ctxchat.core.changes import UndoPreview, returning_messages
from ctxchat.core.context_usage import ContextUsage
from ctxchat.core.errors import LedgerError
from ctxchat.core.file_changes import (
    Checkpoint,
    Keep,
    Restoring,
    changes_to_make,
    files_words,
    is_folder,
    made_last,
    redoable,
)
from ctxchat.core.journal import SessionState
from ctxchat.core.ledger import Change, ChangeKind
from ctxchat.core.quantities import made_smaller
from ctxchat.presentation.compactions import REASONS, CompactionEntry, Kept, archived, compaction_entries
from ctxchat.presentation.history import folded_messages
from ctxchat.presentation.text import one_line, short
from ctxchat.presentation.usage_text import count, day_and_clock, percent, tilde
from ctxchat.tui.panels import compaction_text
from ctxchat.tui.panels.compaction_detail import CompactionReport
from ctxchat.tui.panels.file_changes import MineScreen
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.gauge import Gauge
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

Answer = TypeVar("Answer")

FILES = "files"
"""Given in place of a change's id to undo or redo changes of files, whatever came after them."""

BY_HAND: dict[ChangeKind, tuple[str, str]] = {
    "drop": ("the model sees the message again", "the model no longer sees the message"),
    "shrink": ("the message is shown whole again", "the message is shown as a line again"),
    "pin": ("the message is no longer pinned", "the message is pinned again"),
    "restore": ("the model no longer sees what was put back", "the model sees what was put back again"),
    "memo": ("the memo is as it was before", "the memo is changed again"),
    "rewind": ("the model sees again what the rewind took back", "the model no longer sees what the rewind took back"),
}
"""The effect of undoing and of redoing a change that was made by hand, by its kind."""


class UndoChoice(msgspec.Struct, frozen=True):
    """The person's choice: undo the whole change, or only put these groups back."""

    groups: tuple[str, ...] = ()


class UndoDone(msgspec.Struct, frozen=True):
    """The result of a change: the gauge after it, and a sentence for the person."""

    context_usage: ContextUsage
    words: str


class Ask(Protocol):
    """Opens a screen and returns its result."""

    async def __call__(self, screen: Screen[Answer], /) -> Answer | None: ...


async def undo(session: Session, ask: Ask, change_id: str = "") -> UndoDone | None:
    """Undo the last change of the view or of files; or the change with this id, or the last one of files (`FILES`). If that would
    overfill the window, or the person has changed the files since, the person is asked. None if nothing was undone. Raises
    CtxchatError."""
    changes = session.state.ledger.changes
    files_last = not change_id and made_last(session.state.checkpoints) > (changes[-1].at if changes else "")
    if session.files and (change_id == FILES or files_last):
        return await _back(session, session.files, ask, await session.files.preview_undo(), "Undone", "/redo")
    preview = await session.changes.preview_undo(change_id)
    wish = UndoChoice() if preview.fits else await ask(UndoScreen(preview, session.state))
    if wish is None:
        return None
    if preview.change.kind == "rewind" and session.files:
        wanted = await session.files.unrewinding(preview.change.id)
        keep = await agreed(ask, wanted)
        if keep is None:
            return None
        context_usage = await session.files.unrewind(preview.change.id, wanted, keep)
    else:
        context_usage = await session.changes.undo(preview.change.id, wish.groups)
    return UndoDone(context_usage, _result_words(preview, wish, context_usage))


async def redo(session: Session, ask: Ask, change_id: str = "") -> UndoDone | None:
    """Redo the change with this id, or what was undone last. None if nothing was redone. Raises CtxchatError."""
    undone, taken = session.state.undone, redoable(session.state.checkpoints)
    files_last = taken and not change_id and (not undone or taken.at > undone[-1].at)
    if session.files and (change_id == FILES or files_last):
        return await _back(session, session.files, ask, await session.files.redoing(), "Redone", "/undo")
    context_usage = await session.changes.redo(change_id)
    change = session.state.ledger.changes[-1]
    words = BY_HAND[change.kind][1] if change.kind in BY_HAND else _redo_words(change)
    return UndoDone(context_usage, f"Redone: {words}.{_excess_words(context_usage)}")


async def agreed(ask: Ask, wanted: Restoring) -> Keep | None:
    """What to do with files that the person has, or may have, changed since; the person is asked only if there are any. None: do
    nothing at all."""
    return await ask(MineScreen(wanted)) if wanted.doubtful else "mine"


async def _back(session: Session, files: Files, ask: Ask, wanted: Restoring, word: str, again: str) -> UndoDone | None:
    """Restore files as previewed."""
    if not wanted.undoes:
        raise LedgerError(
            "There is no change to files to take back." if word == "Undone" else "There is nothing to redo."
        )
    keep = await agreed(ask, wanted)
    if keep is None:
        return None
    done = await files.restore(wanted, keep)
    turns = f"turn {wanted.first}" if wanted.first == wanted.last else f"turns {wanted.first}–{wanted.last}"
    of = f"what {turns} did" if word == "Undone" else "what was undone"
    words = files_told(done, wanted, keep) or "no file had to change"
    return UndoDone(await session.measure(), f"{word} {of} to files: {words}. {again} files brings that back.")


def files_told(done: Checkpoint, wanted: Restoring, keep: Keep) -> str:
    """Sentences on which files were restored, which were not and why, and where the person's versions are kept; with a few names
    each."""
    looked, carried = {c.path for c in wanted.changes}, {c.path for c in done.changes}
    beside = [
        c for c in done.changes if c.path not in looked and not is_folder(c)
    ]  # a folder came back for what is in it
    words = [files_words([c for c in done.changes if c not in beside])]
    if keep == "mine" and wanted.mine:
        words.append(f"as you left them: {_names([m.name for m in wanted.mine])}")
    if keep == "mine" and wanted.unnamed:
        words.append(f"left as they are: {_names([path.removeprefix(chr(0)) for path in wanted.unnamed])}")
    if under := [c.name for c in changes_to_make(wanted, keep) if c.path not in carried]:
        words.append(f"left out, since something else stands where their folder was: {_names(under)}")
    if beside:
        words.append(f"your versions are beside: {_names([c.name for c in beside])}")
    if wanted.lost:
        words.append(f"not kept, so left as they are: {_names([name.removeprefix(chr(0)) for name in wanted.lost])}")
    return "; ".join(word for word in words if word)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name, 60) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


async def restore(session: Session, group_id: str) -> UndoDone:
    """Put a group of messages back into the view, at the end. Raises CtxchatError."""
    context_usage = await session.changes.restore(group_id)
    return UndoDone(context_usage, f"Put back at the end, as a quotation.{_excess_words(context_usage)}")


def _excess_words(context_usage: ContextUsage) -> str:
    return (
        f" That is {short(context_usage.excess)} too much for the window: free up some of it."
        if context_usage.excess
        else ""
    )


def _free_words(context_usage: ContextUsage) -> str:
    """A remark that the next message costs no more, as the server still holds its beginning; empty if it does not."""
    broken = context_usage.breaks and (context_usage.breaks.lost or context_usage.breaks.thoughts)
    return "" if broken or context_usage.cache.warmth(time()) != "warm" else " The next message costs no more for it."


def _redo_words(change: Change) -> str:
    shortened = change.record.shortened if change.record else 0
    return made_smaller(folded_messages(change, change.record), shortened)


def _result_words(preview: UndoPreview, wish: UndoChoice, context_usage: ContextUsage) -> str:
    back = preview.part_messages if wish.groups else preview.messages
    free = _free_words(context_usage)
    if words := BY_HAND.get(preview.change.kind):
        return f"Undone: {words[0]}.{free}{_excess_words(context_usage)}"
    if not back:
        return "Undone. A later compaction holds these messages as well: undo that too, and the model sees them again."
    words = f"the model sees {count(back, 'message')} as before"
    told = free + _excess_words(context_usage)
    if context_usage.automatic.standing == "snoozed":  # its ticks are gone from the bar
        told += (
            f" Nothing is compacted by itself for {count(context_usage.automatic.turns, 'turn')}; F8 frees up sooner."
        )
    if wish.groups:
        return f"Undone in part: {words}, the rest stays in the archive.{told}"
    return f"Undone: {words}.{told}"


TAKEN = (Column("part", 4), *compaction_text.MESSAGES)
"""Columns of the messages that would come back; the first says whether a message does in the part that fits."""


class UndoScreen(Panel[UndoChoice]):
    """Asks before an undo that would overfill the window. Its result is the person's choice; None to change nothing."""

    BINDINGS = [
        Binding("enter", "part", "put back part", key_display="enter"),
        Binding("a", "all", "all"),
    ]

    def __init__(self, preview: UndoPreview, state: SessionState) -> None:
        super().__init__()
        self._preview, self._state = preview, state
        self._compaction = next((one for one in compaction_entries(state) if one.id == preview.change.id), None)

    def body(self) -> ComposeResult:
        preview = self._preview
        with Vertical(classes="panel-body"):
            with VerticalScroll(id="question", can_focus=False):
                yield Static(self._sentence(), id="why", markup=False)
                bars = [("now", preview.before), ("part", preview.after_part), ("all", preview.after)]
                shown = [(name, context_usage) for name, context_usage in bars if context_usage is not None]
                for name, context_usage in shown:
                    with Horizontal(classes="bar"):
                        yield Label(name, markup=False)
                        yield Gauge(context_usage, among=[each for _, each in shown])
                yield Static(self._ways(), id="ways", markup=False)
            if self._compaction:
                with Horizontal(id="back"):
                    yield Rows(TAKEN, self._cells, id="taken", empty="A later compaction holds its messages.")
                    yield CompactionReport(id="record")

    def on_mount(self) -> None:
        super().on_mount()
        preview, record = self._preview, self._preview.change.record
        why = f"{REASONS[record.reason]}, " if record else ""
        change = Content.assemble(
            f"{tilde(preview.before)}{short(preview.before.used)} → ~{short(preview.after.used)}",
            (f" of {short(preview.after.limit)}", MUTED),
        )
        self.head(change, left=f"Undo   {why}{day_and_clock(preview.change.at)}")
        for place in self.query(CompactionReport):
            place.show_compaction(self._compaction)
        self._look_through()

    @work(exit_on_error=False)
    async def _look_through(self) -> None:
        """Find the messages that would come back, the newest first: a part is made of the newest."""
        if self._compaction and self._preview.messages:
            self.rows.show_items(await asyncio.to_thread(self._back, self._compaction))

    def _back(self, one: CompactionEntry) -> list[Kept]:
        ledger = self._state.ledger
        seqs = returning_messages(ledger, ledger.undo(self._preview.change.id))
        return [each for each in reversed(archived(one, ledger)) if not each.nested and each.message.seq in seqs]

    def _cells(self, kept: Kept) -> tuple[Cell, ...]:
        part = ("✓", "good") if kept.group.id in self._preview.part_groups else ""
        return (part, *compaction_text.message_cells(kept))

    def _sentence(self) -> str:
        preview = self._preview
        after = preview.after
        words = f"{count(preview.messages, 'message')} would come back. "
        if after.excess:
            return f"{words}That is {short(after.excess)} more than the window holds."
        past = f"{percent(after.pressure)} full, {short(after.used - after.trigger_tokens)} past the trigger"
        return f"{words}The window would be {past}: the next message would start a compaction."

    def _ways(self) -> str:
        preview = self._preview
        if preview.after_part is None:
            return (
                "No part of it fits. Free up something first (F8), or put single messages back from the archive (F3)."
            )
        rest = count(preview.messages - preview.part_messages, "message")
        one = preview.part_messages == 1
        newest = "The newest message fits" if one else f"The newest {preview.part_messages:,} messages fit"
        summed = ", with their summary" if any(edit.digest for edit in preview.change.edits) else ""
        return (
            f"{newest}: {percent(preview.after_part.pressure)} full then. The other {rest} stay in the archive{summed}."
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self._preview.part_groups) if action == "part" else True

    def action_part(self) -> None:
        """Put back the newest messages that fit."""
        self.dismiss(UndoChoice(self._preview.part_groups))

    @work(group="verb", exit_on_error=False)
    async def action_all(self) -> None:
        """Undo the whole change, though it overfills the window."""
        if await self.confirm("Undo all of it?"):
            self.dismiss(UndoChoice())
