"""The archive screen: lists the session's compactions, three lines each, shows the details of one, and undoes, redoes, puts back,
branches and exports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical

from ctxchat.presentation.compactions import (
    REASONS,
    CompactionEntry,
    Kept,
    compaction_entries,
    put_away,
    tally,
)
from ctxchat.presentation.fill import fill_points
from ctxchat.presentation.text import clock, one_line
from ctxchat.storage.archive import Archived
from ctxchat.storage.exporting import FOLDER, write_compaction
from ctxchat.tui.panels import compaction_text
from ctxchat.tui.panels.compaction_detail import TABS, CompactionDetail
from ctxchat.tui.panels.panel import Panel
from ctxchat.tui.panels.reader import ReaderScreen
from ctxchat.tui.panels.undoing import UndoDone, redo, restore, undo
from ctxchat.tui.services import Services
from ctxchat.tui.widgets.chart import FillLine
from ctxchat.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session


EMPTY = "Nothing was compacted in this session yet. F8 shows what could be; what goes stays here, whole, and can be put back."


class ArchiveScreen(Panel[str]):
    """The archive screen. Its result is the id of a branch that was made, else None. While details are open (class `-open`), they
    cover the list."""

    BINDINGS = [
        Binding("enter", "details", "details", key_display="enter"),
        Binding("enter", "choose", "open", key_display="enter"),
        Binding("u", "change('undo')", "undo"),
        Binding("u", "change('redo')", "redo"),
        Binding("r", "pick", "put one back"),
        Binding("r", "restore", "put back"),
        Binding("b", "branch", "branch here"),
        Binding("x", "export", "export"),
        Binding("i", "details", show=False),
        Binding("slash", "find", "find", key_display="/"),
        Binding("right", "tab('', 1)", "tabs", show=False),
        Binding("left", "tab('', -1)", "tabs", show=False),
        *(Binding(str(i + 1), f"tab('{name}')", show=False) for i, name in enumerate(TABS)),
    ]

    def __init__(self, session: Session, services: Services, change_id: str = "") -> None:
        super().__init__()
        self._session, self._services, self._wanted = session, services, change_id
        self._passes: tuple[CompactionEntry, ...] = ()

    def body(self) -> ComposeResult:
        with Horizontal(classes="panel-body"):
            with Vertical(id="timeline"):
                yield Rows(
                    compaction_text.STORY,
                    compaction_text.story_cells,
                    below=compaction_text.STORY_BELOW,
                    titles=False,
                    id="passes",
                    empty=EMPTY,
                )
                yield FillLine()
            yield CompactionDetail(self._session)

    def on_mount(self) -> None:
        self.refresh_passes(self._wanted)

    # ── what it shows ──

    @property
    def detail(self) -> CompactionDetail:
        """The widget with the details of the chosen compaction."""
        return self.query_one(CompactionDetail)

    @property
    def opened(self) -> bool:
        """Whether the details are open."""
        return self.has_class("-open")

    @property
    def current_message(self) -> Kept | None:
        """The message under the cursor in the details; None if the messages are not on screen."""
        return self.detail.current_message if self.opened else None

    @property
    def chosen(self) -> CompactionEntry | None:
        """The compaction under the cursor; None if there is none."""
        return self.rows.current

    def refresh_passes(self, at: str = "") -> None:
        """Read the session's compactions again; the cursor goes to the compaction with the id `at`, if it is there."""
        state = self._session.state
        self._passes = compaction_entries(state)
        self.rows.show_items(self._passes, at=next((i for i, p in enumerate(self._passes) if p.id == at), None))
        points, context_usage = fill_points(state), self._session.context_usage
        line = self.query_one(FillLine)
        line.display = len(points) > 1
        line.show_points(points, context_usage.limit, context_usage.trigger_tokens)
        self._show_chosen()

    def _show_chosen(self) -> None:
        """Show the heading of the chosen compaction, and its details while they are open."""
        one = self.chosen if self.opened else None
        if one:
            self.detail.show_compaction(one, self._passes)
            left = f"Archive   {clock(one.record.at)} {REASONS[one.record.reason]}, {one.state_word}"
            self.head(*compaction_text.figures_words(one), left=left)
        else:
            whole, *shorter = tally(self._passes)
            kept = [f"{whole}   all that went is kept here, whole"] if self._passes else []
            title = one_line(self._session.state.title, 80)
            self.head(*kept, whole, *shorter, left=f"Archive   {title}")

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows.id == "passes":
            self._show_chosen()
        self.refresh_bindings()

    def on_tabbed_content_tab_activated(self) -> None:
        self.refresh_bindings()

    # ── what is done ──

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action not in ("choose", "details", "branch", "export", "change", "pick", "restore", "tab"):
            return True
        one = self.chosen if self.is_mounted else None
        if one is None or (action in ("change", "pick", "restore") and self._session.read_only):
            return False  # a session that is open elsewhere can be read and branched from
        if action == "change":
            return one.in_force if parameters == ("undo",) else one.undone
        kept = self.current_message
        match action:
            case "details":
                return not self.opened
            case "choose":
                return kept is not None
            case "restore":
                return kept is not None and kept.nested is None
            case "pick":
                return kept is None and one.in_force
            case _:
                return action == "tab" or one.change is not None

    def action_back(self) -> None:
        if self.opened:
            self.remove_class("-open")
            self.set_focus(self.home)
            self._show_chosen()
            self.refresh_bindings()
        else:
            self.dismiss(None)

    def action_details(self) -> None:
        """Open the details of the chosen compaction: its summary, or the messages if it has none."""
        if (one := self.chosen) and not self.opened:
            self.add_class("-open")
            self._show_chosen()
            self.detail.turn_to("messages" if one.change and not one.summary else "summary")
            self.detail.enter()
            self.refresh_bindings()

    def action_choose(self) -> None:
        """Open what is under the cursor: the whole of a message, a nested compaction, or (in the list) the details."""
        kept = self.current_message
        if kept is None:
            self.action_details()
        elif kept.nested:
            self.refresh_passes(kept.nested.id)
        else:
            reader = ReaderScreen(kept.message, note=kept.group.kind == "note")
            self.app.push_screen(reader, lambda wish: self.action_restore() if wish else None)

    def action_tab(self, name: str = "", by: int = 1) -> None:
        """Show a tab of the details by its name, or the next one; in the list, open the details first."""
        if name or self.opened:
            self.action_details()
            self.detail.turn_to(name, by)
        elif by > 0:
            self.action_details()

    def action_pick(self) -> None:
        """Show the messages, of which one can be put back."""
        self.action_tab("messages")

    async def action_find(self) -> None:
        """Search all sessions, this one first."""
        await self.app.run_action("app.command('search')")

    def action_change(self, how: str) -> None:
        """Undo the chosen compaction, or redo it."""
        if (one := self.chosen) and how == "undo":
            self._make_change(partial(undo, self._session, self.app.push_screen_wait, one.id), "Undo this compaction?")
        elif one:
            self._make_change(partial(redo, self._session, self.app.push_screen_wait, one.id), "Redo this compaction?")

    def action_restore(self) -> None:
        if kept := self.current_message:
            self._make_change(partial(restore, self._session, kept.group.id), "Put this message back, at the end?")

    @work(group="verb", exit_on_error=False)
    async def _make_change(self, change: Callable[[], Awaitable[UndoDone | None]], question: str) -> None:
        """Make a change, show its result as a notice, and read the compactions again."""
        at = self.chosen
        done = await self.attempt(change()) if await self.confirm(question) else None
        if done is not None:
            self.notify(done.words, severity="warning" if done.context_usage.excess else "information", markup=False)
            self.refresh_passes(at.id if at else "")
            self.refresh_bindings()

    @work(group="verb", exit_on_error=False)
    async def action_branch(self) -> None:
        """Branch the session after the message under the cursor, else right after the compaction, which stays in force."""
        if (one := self.chosen) and await self.confirm("Branch here, and go on in the copy?"):
            place = kept.message.id if (kept := self.current_message) else one.id
            made = await self.attempt(self._services.fork(self._session.id, place))
            if made is not None:
                self.dismiss(made)

    @work(group="verb", exit_on_error=False)
    async def action_export(self) -> None:
        """Write the compaction to a new file; earlier exports stay."""
        one = self.chosen
        if one is None or one.change is None:
            return
        groups = await self._session.attachments.carried(put_away(one, self._session.state.ledger))
        archived = Archived(self._session.id, one.change, groups, undone=one.undone)
        written = await self.attempt(asyncio.to_thread(write_compaction, self._services.workspace / FOLDER, archived))
        if written is not None:
            self.notify_here(f"Written to {written}")
