"""The screens about files: what turns changed in them, the message to rewind to, and what to do with files that the person
changed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ctxchat.core import file_changes
from ctxchat.core.file_changes import Checkpoint, FileChange, Keep, Restoring, files_words, pairs
from ctxchat.core.messages import Group, readable_words
from ctxchat.presentation.text import clean, clock, one_line
from ctxchat.tui.panels.panel import Dialog, Panel
from ctxchat.tui.transcript.source_lines import diff_words
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

MAX_NAMED_FILES = 8
"""Files listed by name; of those beyond it the number is shown."""


class RewindChoice(msgspec.Struct, frozen=True):
    """The message to go back to before, and what goes back. Both False: everything up to it is to be compacted instead."""

    group: Group
    conversation: bool = True
    files: bool = True


class RewindScreen(Panel[RewindChoice]):
    """Chooses a message to rewind to. Its result is what to rewind, or None."""

    TITLE = "Rewind"
    BINDINGS = [
        Binding("enter", "choose", "talk and files", key_display="enter"),
        Binding("t", "choose(True, False)", "talk only"),
        Binding("f", "choose(False, True)", "files only"),
        Binding("c", "choose(False, False)", "compact to here"),
    ]
    COLUMNS = (
        Column("turn", 4, right=True, rank=1),
        Column("when", 5, rank=3),
        Column("back to before this message", least=16, share=2),
        Column("files since then", least=22, rank=2),
    )

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._checkpoints = file_changes.checkpoints_in_force(session.state.checkpoints)

    def body(self) -> ComposeResult:
        yield Rows(self.COLUMNS, self._cells, empty="Nothing was said in this session yet.")

    def on_mount(self) -> None:
        said = [g for g in self._session.state.ledger.groups_in_force if g.kind == "user"]
        self.rows.show_items(said, at=len(said) - 1)
        self.head("The message comes back to be edited. The record keeps everything.", "")

    def _cells(self, group: Group) -> tuple[Cell, ...]:
        seq = group.first.seq
        done = [c for c in self._checkpoints if c.seq > seq]
        return (
            (str(group.turn), "dim"),
            (clock(group.first.at), "dim"),
            one_line(readable_words(group.first), 200),
            (files_words(one.change for one in file_changes.net(done).values()), "dim"),
        )

    def action_choose(self, talk: bool = True, with_files: bool = True) -> None:
        """Go back to before the chosen message, with what the key says."""
        group = self.rows.current
        if group is not None:
            self.dismiss(RewindChoice(group, talk, with_files))


class MineScreen(Dialog[Keep]):
    """Asks what to do with files that would be taken back and that the person changed, or may have; None for not now."""

    BINDINGS = [
        Binding("k", "say('mine')", "keep them"),
        Binding("c", "say('copy')", "restore, keep copies of yours"),
        Binding("r", "say('none')", "restore"),
    ]

    def __init__(self, wanted: Restoring) -> None:
        super().__init__()
        self._wanted = wanted

    def body(self) -> ComposeResult:
        mine = [clean(m.name) + ("" if m.now else "  (you deleted it)") for m in self._wanted.mine]
        unnamed = [clean(path.removeprefix("\0")) for path in self._wanted.unnamed]
        if mine:
            yield self._list("You changed this file since:", "You changed these {:,} files since:", mine)
        if unnamed:
            one = "This file was written while a command ran that does not name it, by the command or by you:"
            several = "These {:,} files were written while commands ran that do not name them, by a command or by you:"
            yield self._list(one, several, unnamed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable what would overwrite files that the person has surely changed, without a copy."""
        return not (parameters == ("none",) and self._wanted.mine) and super().check_action(action, parameters)

    def _list(self, one: str, several: str, names: Sequence[str]) -> Static:
        more = [f"and {len(names) - MAX_NAMED_FILES:,} more"] if len(names) > MAX_NAMED_FILES else []
        head = one if len(names) == 1 else several.format(len(names))
        return Static(
            Content("\n".join([head, *(f"  {name}" for name in [*names[:MAX_NAMED_FILES], *more])])), markup=False
        )


class DiffScreen(Panel[None]):
    """The files that turns changed, and what changed in the one under the cursor."""

    TITLE = "Diff"
    BINDINGS = [
        Binding("t", "scope", "last turn / session"),
        Binding("enter", "choose", "read", key_display="enter"),
    ]
    COLUMNS = (
        Column("", 8, rank=3),
        Column("file", least=16, path=True),
        Column("+", 6, right=True, rank=1),
        Column("−", 6, right=True, rank=2),
    )

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._all = False

    def body(self) -> ComposeResult:
        with Horizontal(classes="panel-body"):
            yield Rows(
                self.COLUMNS,
                self._cells,
                id="files",
                empty="No file was changed in this session. What turns change is listed here, with its difference.",
            )
            with VerticalScroll(id="diff"):
                yield Static(markup=False)

    def on_mount(self) -> None:
        self._show_diff()

    def _show_diff(self) -> None:
        checkpoints = self._session.state.checkpoints
        done: Sequence[Checkpoint] = file_changes.checkpoints_in_force(checkpoints)
        if done and not self._all:
            done = file_changes.last_turn(checkpoints)
        changes = [one.change for one in file_changes.net(done).values()]
        scope = "the session" if self._all else f"turn {done[-1].turn}" if done else ""
        self.head(files_words(changes), left=f"Diff   {scope}")
        self.rows.show_items(pairs(changes), at=0)

    def _cells(self, row: tuple[FileChange, str]) -> tuple[Cell, ...]:
        change, source = row
        name = one_line(change.name, 300)
        return (
            ("renamed" if source else change.word, "dim"),
            f"{one_line(source, 200)} → {name}" if source else name,
            (f"+{change.added}" if change.added and not source else "", "good"),
            (f"−{change.removed}" if change.removed and not source else "", "warn"),
        )

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.run_worker(self._load_diff, group="diff", exclusive=True, exit_on_error=False)

    async def _load_diff(self) -> None:
        row, of = self.rows.current, self._session.files
        text = await of.diff(row[0]) if row and of and not row[1] else ""
        self.query_one("#diff Static", Static).update(diff_words(text) if text else Content(""))
        self.query_one("#diff").scroll_home(animate=False)

    def action_scope(self) -> None:
        """The last turn that changed files, or all of the session."""
        self._all = not self._all
        self._show_diff()

    def action_choose(self) -> None:
        """Into the text, to scroll it, and back."""
        self.set_focus(self.query_one("#diff") if self.focused is self.home else self.home)
