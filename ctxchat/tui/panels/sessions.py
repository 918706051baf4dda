"""Lists the stored sessions: find one, go on with it, begin a new one, rename, fork, delete."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import TYPE_CHECKING

import msgspec
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from ctxchat.presentation.text import one_line, prose_line, short
from ctxchat.presentation.usage_text import age, count, percent
from ctxchat.tui.panels.panel import AskText, Confirm, Listing
from ctxchat.tui.services import Services
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.storage.sessions import SessionRow

NEW = ""
"""What stands for a session that is still to be begun."""

WHO = {"user": "you    ", "assistant": "answer "}


MIN_WRAPPED_HEIGHT, MIN_WRAPPED_WIDTH = 30, 60
"""Rows and cells from which what was said last may take more than a line each."""

CURSOR_PAUSE_S = 0.08
"""Seconds the cursor rests before the session under it is looked into."""


def _share_of_limit(used: int, limit: int, estimated: bool) -> str:
    """The share of the limit it would take, or by how much it is over; empty where there is nothing in it."""
    if limit <= 0 or not used:
        return ""
    words = percent(used / limit) if used <= limit else f"{short(used - limit)} over"
    return f"~{words}" if estimated else words


class Branch(msgspec.Struct, frozen=True):
    """A session in the list, and how many forks deep it is."""

    row: SessionRow
    depth: int = 0


def as_tree(rows: Sequence[SessionRow]) -> list[Branch]:
    """Sessions as they come, each fork below the one it came from. One whose parent is gone, or which is its own
    ancestor, stands alone."""
    ids = {row.id for row in rows}
    children: dict[str, list[SessionRow]] = {}
    for row in rows:
        children.setdefault(row.parent if row.parent in ids else "", []).append(row)
    placed: set[str] = set()

    def below(parent: str) -> Iterator[Branch]:
        waiting = [Branch(row) for row in reversed(children.get(parent, ()))]
        while waiting:
            branch = waiting.pop()
            if branch.row.id in placed:
                continue
            placed.add(branch.row.id)
            yield branch
            waiting += [Branch(row, branch.depth + 1) for row in reversed(children.get(branch.row.id, ()))]

    tree = list(below(""))
    return tree + [Branch(row) for row in rows if row.id not in placed]


def sub_agents(tree: Sequence[Branch]) -> dict[str, int]:
    """The number of sub-agents' sessions below each session that has some."""
    ids = {branch.row.id for branch in tree}
    return dict(Counter(b.row.parent for b in tree if b.row.delegated and b.row.parent in ids))


def folded(tree: Sequence[Branch], unfolded: Container[str]) -> list[Branch]:
    """Without sub-agents, and what came of them, but for those of the sessions named."""
    shown: list[Branch] = []
    hidden = -1  # how deep the sub-agent lies whose branch is being left out
    ids = {branch.row.id for branch in tree}
    for branch in tree:
        if 0 <= hidden < branch.depth:
            continue
        parent = branch.row.parent
        hidden = branch.depth if branch.row.delegated and parent in ids and parent not in unfolded else -1
        if hidden < 0:
            shown.append(branch)
    return shown


class SessionsScreen(Listing[str]):
    """Lists the sessions. Its result is the id of the session to go on with, `NEW` for a new one, or None."""

    TITLE = "Sessions"
    COLUMNS = (
        Column("", 1),
        Column("title", least=22),
        Column("last used", 11, right=True, rank=2),
        Column("messages", 8, right=True, rank=4),
        Column("used", 7, right=True, rank=3),
        Column("would fill", 12, right=True, rank=1),
        Column("compacted", 9, right=True, rank=6),
        Column("model", 22, rank=5),
    )
    EMPTY = "No session is stored yet. n begins one."
    FILTER_PLACEHOLDER = "words of a title or a model"
    ABOUT = False
    BINDINGS = [
        Binding("enter", "choose", "go on with it", key_display="enter"),
        Binding("n", "new", "new"),
        Binding("space", "fold", "its sub-agents", key_display="space"),
        Binding("r", "rename", "rename"),
        Binding("b,f", "fork", "branch", key_display="b"),
        Binding("d", "delete", "delete"),
    ]

    def __init__(self, services: Services, session: Session | None = None, now: datetime | None = None) -> None:
        super().__init__()
        self._services, self._session = services, session
        self._now = now or datetime.now(UTC)
        self._tree: list[Branch] = []
        self._below: dict[str, int] = {}
        self._unfolded: set[str] = set()

    @property
    def idle(self) -> frozenset[str]:
        row = self.chosen if self.rows.filled else None
        return super().idle if row and row.id in self._below else super().idle | {"fold"}

    def body(self) -> ComposeResult:
        rows, field = super().body()
        yield from (rows, Static(id="glance", markup=False), field)

    def on_mount(self) -> None:
        self._load(self._session.id if self._session else "", opening=True)

    # ── what it shows ──

    @property
    def chosen(self) -> SessionRow | None:
        """The session under the cursor."""
        branch = self.rows.current
        return branch.row if branch else None

    @work(group="load", exit_on_error=False)
    async def _load(self, at: str = "", *, opening: bool = False) -> None:
        rows = await self.attempt(self._services.sessions())
        if opening and any(row.id == at and not row.messages for row in rows or ()):
            # Who comes from a session in which nothing was said yet wants the last in which something was.
            at = next((row.id for row in rows or () if row.messages and not row.delegated), at)
        self._tree = as_tree(rows or ())
        self._below = sub_agents(self._tree)
        self._unfolded |= {row.parent for row in rows or () if row.id == at}
        self.apply_filter(at)

    def apply_filter(self, at: str = "") -> None:
        # Words are looked for in all of them.
        tree = self._tree if self.words else folded(self._tree, self._unfolded)
        shown = self.matching(tree, lambda b: f"{b.row.title} {b.row.id} {b.row.model}")
        self.rows.show_items(
            shown, at=next((i for i, b in enumerate(shown) if b.row.id == at), None), empty=self.nothing
        )
        context_usage = self._session.context_usage if self._session else None
        of = f"for {one_line(context_usage.model, 40)}, {short(context_usage.limit)}" if context_usage else ""
        many = count(len(shown), "session")
        self.head(f"{many}   {of}".rstrip(), many)

    def cells(self, branch: Branch) -> tuple[Cell, ...]:
        row = branch.row
        here = self._session is not None and row.id == self._session.id
        title = one_line(row.title) or "without a title"
        if (below := self._below.get(row.id, 0)) and row.id not in self._unfolded and not self.words:
            title += f"   +{count(below, 'sub-agent')}"
        limit = self._session.context_usage.limit if self._session else 0
        over = 0 < limit < row.used
        return (
            ("●" if here else "", "good"),
            "  " * min(branch.depth - 1, 8) + ("└ " if branch.depth else "") + title,
            (age(row.updated, self._now), "dim"),
            (f"{row.messages:,}", ""),
            (("~" if row.estimated else "") + short(row.used) if row.used else "", ""),
            (_share_of_limit(row.used, limit, row.estimated), "warn" if over else "dim"),
            (str(row.compactions) if row.compactions else "", "dim"),
            (one_line(row.model, 60).rsplit("/", 1)[-1], "dim"),
        )

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.refresh_bindings()
        self.run_worker(self._glance, group="glance", exclusive=True, exit_on_error=False)

    async def _glance(self) -> None:
        """Show the last messages of the session under the cursor, once the cursor rests."""
        row = self.chosen
        await asyncio.sleep(CURSOR_PAUSE_S)
        said = await self.attempt(self._services.glance(row.id)) if row else ()
        lines = [f"{WHO.get(one.role, '')}{prose_line(one.text, 300)}" for one in said or ()]
        if self.size.height >= MIN_WRAPPED_HEIGHT and (width := self.size.width - 2) > MIN_WRAPPED_WIDTH:
            indent = " " * len(WHO["user"])
            lines = [part for line in lines for part in wrap(line, width, subsequent_indent=indent)]
        self.query_one("#glance", Static).update(Content("\n".join(lines)))

    # ── what is done ──

    def action_choose(self) -> None:
        if row := self.chosen:
            self.dismiss(row.id)

    def action_fold(self) -> None:
        if row := self.chosen:
            self._unfolded ^= {row.id}
            self.apply_filter(row.id)

    def action_new(self) -> None:
        self.dismiss(NEW)

    @work(group="verb", exit_on_error=False)
    async def action_rename(self) -> None:
        row = self.chosen
        title = await self.app.push_screen_wait(AskText("New title", row.title)) if row else None
        if row is None or not title:
            return
        if self._session and row.id == self._session.id:
            await self.attempt(self._session.rename(title))
        elif other := await self.attempt(self._services.open(row.id)):
            await self.attempt(other.rename(title))
            await other.close()
        self._load(row.id)

    @work(group="verb", exit_on_error=False)
    async def action_fork(self) -> None:
        if row := self.chosen:
            self._load(await self.attempt(self._services.fork(row.id)) or row.id)

    @work(group="verb", exit_on_error=False)
    async def action_delete(self) -> None:
        row = self.chosen
        if row is None:
            return
        if self._session and row.id == self._session.id:
            self.notify("This session is open here. Open another one first.", severity="warning", markup=False)
            return
        title = one_line(row.title, 60) or row.id
        what = f"its {count(row.messages, 'message')}, its files and its sub-agents' sessions"
        question = f"Delete “{title}” with {what}, for good?"
        if await self.app.push_screen_wait(Confirm(question)):
            await self.attempt(self._services.delete(row.id))
            self._load()
