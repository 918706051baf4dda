"""The commands that run in the background: what each is, how long it runs, what it said last, and an end to it."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding
from textual.content import Content

from ctxchat.core.jobs import JobRow
from ctxchat.presentation.text import clean, elapsed, one_line, short
from ctxchat.presentation.usage_text import count
from ctxchat.tui.panels.panel import Confirm, Listing
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column

if TYPE_CHECKING:
    from ctxchat.agent.session import Session

HOW = "The agent starts servers and long builds in the background. They end with the session, but for those you let go on."
REFRESH_S = 1.0
MAX_NAMED = 5
"""Commands that are named to whoever leaves."""

TAIL_BYTES = 2_000
"""Of a job's output, as it is shown below the list."""


class JobsScreen(Listing[None]):
    """Looks again every second, for as long as it is open."""

    TITLE = "Background commands"
    COLUMNS = (
        Column("", 4),
        Column("command", least=20),
        Column("state", 24, rank=1),
        Column("time", 8, right=True, rank=2),
        Column("output", 9, right=True, rank=3),
    )
    EMPTY = "No command runs in the background."
    BINDINGS = [Binding("x", "stop", "end it"), Binding("l", "keep", "let it go on")]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._jobs: Sequence[JobRow] = ()
        self._tails: dict[str, str] = {}

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self._refresh)
        self.call_later(self._refresh)

    async def _refresh(self) -> None:
        background = self._session.background
        self._jobs = background.rows if background else ()
        if job := self.rows.current or next(iter(self._jobs), None):
            self._tails[job.id] = await to_thread(tail_of, job.file)
        self.apply_filter()

    def apply_filter(self) -> None:
        at = self.rows.current.id if self.rows.current else ""
        self.set_items(self.matching(self._jobs, lambda job: f"{job.id} {job.command}"), at, lambda job: job.id)
        self.refresh_bindings()  # one may have ended
        running = sum(job.running for job in self._jobs)
        self.head(f"{running} running, {count(len(self._jobs), 'command')}" if self._jobs else "", f"{running} running")

    def cells(self, job: JobRow) -> tuple[Cell, ...]:
        style = "good" if job.running else "dim"
        size = f"{short(job.bytes)}B" if job.bytes >= 1_000 else f"{job.bytes} B"
        return (
            (one_line(job.id, 8), style),
            one_line(job.command, 400),
            (one_line(f"{job.state}, goes on" if job.running and job.goes_on else job.state, 40), style),
            (elapsed(job.seconds), "dim"),
            (size, "dim"),
        )

    def describe_item(self, item: JobRow | None) -> Content:
        """The end of its output."""
        if item is None:
            return Content.styled("" if self._jobs else HOW, MUTED)
        said = self._tails.get(item.id) or "It has said nothing yet."
        return Content(f"{said}\n{clean(item.moved)}".rstrip())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable ending and letting go on for commands that have ended."""
        if action in {"stop", "keep"} and self.is_mounted:
            return bool(self.rows.current and self.rows.current.running)
        return super().check_action(action, parameters)

    async def action_keep(self) -> None:
        """The one under the cursor goes on when the session is closed; once more, and it ends then."""
        job: JobRow | None = self.rows.current
        if job and job.running and (background := self._session.background):
            background.keep(job.id, going_on=not job.goes_on)
            said = "ends with the session" if job.goes_on else "goes on when you leave; /jobs has it when you come back"
            self.notify_here(f"{one_line(job.id, 8)} {said}.")
            await self._refresh()

    @work(group="stop", exclusive=True, exit_on_error=False)
    async def action_stop(self) -> None:
        """End the one under the cursor, and all it began."""
        job: JobRow | None = self.rows.current
        background = self._session.background
        if job and job.running and background and await self.confirm(f"End {job.id}: {one_line(job.command, 80)}?"):
            await self.attempt(background.stop(job.id))
            await self._refresh()


class Leaving(Confirm):
    """Asks whether to leave a session whose background commands end with it."""

    def __init__(self, ending: Sequence[JobRow]) -> None:
        super().__init__(
            f"Leave, and end {count(len(ending), 'command')} in the background?\n"
            + "\n".join(f"{one_line(job.id, 8)}  {one_line(job.command, 48)}" for job in ending[:MAX_NAMED])
            + "\nTo let one go on, press esc, then l in /jobs."
        )


def tail_of(file: str) -> str:
    """The last lines of a job's output, clean; empty where there is none."""
    try:
        with Path(file).open("rb") as opened:
            opened.seek(0, 2)
            opened.seek(max(0, opened.tell() - TAIL_BYTES))
            text = opened.read().decode("utf-8", "replace")
    except (OSError, ValueError):  # ValueError: no name a file could have
        return ""
    return clean("\n".join(text.rstrip("\n").split("\n")[-12:]))
