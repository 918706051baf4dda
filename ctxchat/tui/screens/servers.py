"""The MCP servers: which are up, what their tools cost in tokens, why one failed. Space switches one on or off, for this run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from ctxchat.core.tokens import apportion
from ctxchat.tui.reading.figures_text import count
from ctxchat.tui.reading.text import clean, one_line, short
from ctxchat.tui.screens.listing import Listing
from ctxchat.tui.screens.panel import MUTED, Heading
from ctxchat.tui.servers import coming_up, join
from ctxchat.tui.services import Services
from ctxchat.tui.style import STYLE
from ctxchat.tui.widgets.panel_keys import PanelKeys
from ctxchat.tui.widgets.rows import Cell, Column, Rows

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tools.mcp.server import ServerRow

COLUMNS = (
    Column("", 1),
    Column("server", 18),
    Column("", 8),
    Column("tools", 5, right=True, rank=1),
    Column("tokens", 7, right=True),
    Column("where", least=16, rank=2),
)

SIGNS = {"ready": ("●", "good"), "starting": ("◌", "dim"), "failed": ("✗", "warn"), "off": ("○", "dim")}

HOW = (
    "An MCP server brings tools of its own. Put one into your config.toml as [mcp.NAME], with the command that starts it or the "
    "url where it is; the reference shows all fields."
)


def prices(session: Session) -> dict[str, int]:
    """What each tool in the window costs, in the gauge's tokens."""
    view = session.view
    costs = apportion(session.figures.tokens("tools"), list(view.tool_tokens))
    return {tool.name: tokens for tool, tokens in zip(view.tools, costs, strict=True)}


EMPTY = "No MCP server is configured. [mcp.NAME] in config.toml adds one; what its tools cost of the window then stands here."


class ServersScreen(Listing[None]):
    """`changed` is told when the tools of the session are others."""

    CSS_PATH = STYLE / "settings.tcss"
    BINDINGS = [
        Binding("space", "switch", "on or off", key_display="space"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("escape", "back", "back"),
    ]

    def __init__(self, services: Services, session: Session, changed: Callable[[], None]) -> None:
        super().__init__(name="servers", classes="panel")
        self._services, self._session, self._changed = services, session, changed
        self._servers: Sequence[ServerRow] = ()
        self._prices: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        yield Heading("MCP servers")
        yield Rows(COLUMNS, self._cells, empty=EMPTY)
        yield self.field("part of a name")
        yield Static(id="about", markup=False)
        yield PanelKeys()

    def on_mount(self) -> None:
        self.set_focus(self.home)
        self.run_worker(self._load, group="load", exclusive=True)

    async def _load(self) -> None:
        """Each as soon as it is up or has failed; the tools of one that came up count at once."""
        async with aclosing(coming_up(self._services)) as changes:
            async for rows in changes:
                first, self._servers = not self._servers, rows
                if not first:
                    await self.attempt(join(self._session))
                    self._changed()
                self.narrowed()

    def narrowed(self) -> None:
        self._prices = prices(self._session)
        words, at = self.words.casefold(), self.rows.current.name if self.rows.current else ""
        shown = [row for row in self._servers if words in row.name.casefold()]
        self.rows.show(shown, at=next((i for i, row in enumerate(shown) if row.name == at), 0))
        theirs = sum(self._cost(row) for row in self._servers)
        told = f"{count(len(self._servers), 'server')}, {short(theirs)} of {short(self._session.figures.used)} in use"
        self.query_one(Heading).show("MCP servers", told if self._servers else "")
        self._tell()

    def _cost(self, row: ServerRow) -> int:
        return sum(self._prices.get(tool, 0) for tool in row.tools)

    def _cells(self, row: ServerRow) -> tuple[Cell, ...]:
        sign, style = SIGNS[row.state]
        return (
            (sign, style),
            (one_line(row.name, 40), ""),
            (row.state, style),
            (str(len(row.tools)) if row.tools else "", ""),
            (short(self._cost(row)) if row.tools else "", ""),
            (one_line(row.where, 200), "dim"),
        )

    def _tell(self) -> None:
        """What is to be known of the row under the cursor: its trouble, else its tools with their price, and those left out."""
        row: ServerRow | None = self.rows.current
        about = self.query_one("#about", Static)
        if row is None:
            about.update(Content.styled("" if self._servers else HOW, MUTED))
        elif row.trouble:
            about.update(Content(clean(row.trouble)))
        else:
            tools = sorted(row.tools, key=lambda tool: -self._prices.get(tool, 0))
            words = [f"{one_line(tool, 64)} {short(self._prices.get(tool, 0))}" for tool in tools[:12]]
            more = f", and {len(tools) - 12} more" if len(tools) > 12 else ""
            left_out = [one_line(tool, 120) for tool in row.left_out[:6]]
            missing = f"\nLeft out: {', '.join(left_out)}{', …' if row.left_out[6:] else ''}" if left_out else ""
            about.update(Content.styled(", ".join(words) + more, MUTED) + Content.styled(missing, "$text-warning"))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._tell()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_switch()

    def action_switch(self) -> None:
        """On where it is off or has failed, else off; the gauge follows."""
        if row := self.rows.current:
            self.run_worker(partial(self._switch, row.name), group="switch", exclusive=True)

    async def _switch(self, name: str) -> None:
        if await self.attempt(self._services.switch_server(name)) is None:
            return
        await self.attempt(join(self._session))
        self._servers = await self._services.mcp_servers()
        self.narrowed()
        self._changed()
