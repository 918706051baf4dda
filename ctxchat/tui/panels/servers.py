"""The MCP servers: which are up, what their tools cost in tokens, why one failed. Space switches one on or off, for this run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding
from textual.content import Content

from ctxchat.core.tokens import apportion
from ctxchat.presentation.text import clean, one_line, short
from ctxchat.presentation.usage_text import count
from ctxchat.tui.panels.panel import Listing
from ctxchat.tui.services import Services
from ctxchat.tui.starting import coming_up
from ctxchat.tui.style import MUTED
from ctxchat.tui.widgets.rows import Cell, Column

if TYPE_CHECKING:
    from ctxchat.agent.session import Session
    from ctxchat.tools.mcp.server import ServerRow

SIGNS = {"ready": ("●", "good"), "starting": ("◌", "dim"), "failed": ("✗", "warn"), "off": ("○", "dim")}

HOW = (
    "An MCP server brings tools of its own. Add one to config.toml as [mcp.NAME], with the command that starts it or its url. "
    "What its tools cost of the window is shown here."
)


def prices(session: Session) -> dict[str, int]:
    """The tokens of each tool in the window, as the gauge counts them."""
    view = session.view
    costs = apportion(session.context_usage.tokens("tools"), list(view.tool_tokens))
    return {tool.name: tokens for tool, tokens in zip(view.tools, costs, strict=True)}


class ServersScreen(Listing[None]):
    """The list of MCP servers; `changed` is called when the session's tools have changed."""

    TITLE = "MCP servers"
    COLUMNS = (
        Column("", 1),
        Column("server", 18),
        Column("", 8),
        Column("tools", 5, right=True, rank=1),
        Column("tokens", 7, right=True),
        Column("where", least=16, rank=2),
    )
    EMPTY = "No MCP server is configured."
    BINDINGS = [
        Binding("space", "choose", "on or off", key_display="space"),
        Binding("c", "copy_page", "copy it"),
        Binding("l", "log_in", "log in"),
    ]

    def __init__(self, services: Services, session: Session, changed: Callable[[], None]) -> None:
        super().__init__()
        self._services, self._session, self._changed = services, session, changed
        self._servers: Sequence[ServerRow] = ()
        self._prices: dict[str, int] = {}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A login may begin where the server wants one, and its page be copied while it is under way."""
        row: ServerRow | None = self.rows.current if self.is_mounted else None
        match action:
            case "log_in":
                return bool(row and row.login_wanted)
            case "copy_page":
                return bool(row and row.login_page)
            case _:
                return super().check_action(action, parameters)

    def on_mount(self) -> None:
        self._watch()

    def _watch(self) -> None:
        self.run_worker(self._load, group="load", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        """Each as soon as it is up or has failed; the tools of one that came up count at once."""
        await self._session.seen_view()
        async with aclosing(coming_up(self._services)) as changes:
            async for rows in changes:
                first, self._servers = not self._servers, rows
                if not first:
                    await self.attempt(self._session.setup.adapt())
                    self._changed()
                self.apply_filter()

    def apply_filter(self) -> None:
        self._prices = prices(self._session)
        at = self.rows.current.name if self.rows.current else ""
        self.set_items(self.matching(self._servers, lambda row: row.name), at, lambda row: row.name)
        theirs = sum(self._cost(row) for row in self._servers)
        many, used = count(len(self._servers), "server"), short(self._session.context_usage.used)
        told = (f"{many}, whose tools take {short(theirs)} of {used} tokens in use", many)
        self.head(*(told if self._servers else ()))

    def _cost(self, row: ServerRow) -> int:
        return sum(self._prices.get(tool, 0) for tool in row.tools)

    def cells(self, row: ServerRow) -> tuple[Cell, ...]:
        sign, style = SIGNS[row.state]
        return (
            (sign, style),
            (one_line(row.name, 40), ""),
            (row.state, style),
            (str(len(row.tools)) if row.tools else "", ""),
            (short(self._cost(row)) if row.tools else "", ""),
            (one_line(row.where, 200), "dim"),
        )

    def describe_item(self, item: ServerRow | None) -> Content:
        """The failure of a server, or its tools with their tokens, and those left out."""
        if item is None:
            return Content.styled("" if self._servers else HOW, MUTED)
        if item.login_page:
            return Content(f"Log in here, your browser was told to open it: {one_line(item.login_page, 2000)}")
        if item.trouble:
            return Content(clean(item.trouble))
        skills = f"\nSkills: {', '.join(one_line(skill, 100) for skill in item.skills)}" if item.skills else ""
        tools = sorted(item.tools, key=lambda tool: -self._prices.get(tool, 0))
        words = [f"{one_line(tool, 64)} {short(self._prices.get(tool, 0))}" for tool in tools[:12]]
        more = f", and {len(tools) - 12} more" if len(tools) > 12 else ""
        left_out = [one_line(tool, 120) for tool in item.left_out[:6]]
        missing = f"\nLeft out: {', '.join(left_out)}{', …' if item.left_out[6:] else ''}" if left_out else ""
        if tools and not any(tool in self._prices for tool in tools):
            more += ". The model knows their names, and finds and calls them on demand."
        return Content.styled(", ".join(words) + more + skills, MUTED) + Content.styled(missing, "$text-warning")

    @work(group="switch", exclusive=True, exit_on_error=False)
    async def action_log_in(self) -> None:
        """Log in to a web server; its page opens in the browser, as the person has asked for it. Leaving the panel does not end
        the login."""
        row: ServerRow | None = self.rows.current
        app = self.app

        def show(page: str, _: Callable[[str], object]) -> None:
            app.open_url(page)
            if self.is_attached:
                self._watch()

        if row is not None:
            await self._started(self._services.log_in_server(row.name, show))

    def action_copy_page(self) -> None:
        """The address where the person logs in, for another browser."""
        row: ServerRow | None = self.rows.current
        if row is not None and row.login_page:
            self.app.copy_to_clipboard(row.login_page)
            self.notify_here("The address is on the clipboard.")

    @work(group="switch", exclusive=True, exit_on_error=False)
    async def action_choose(self) -> None:
        """Start the server if it is off or has failed, else end it; the gauge is measured anew."""
        row: ServerRow | None = self.rows.current
        if row is not None:
            await self._started(self._services.switch_server(row.name))

    async def _started(self, starting: Awaitable[ServerRow]) -> None:
        if await self.attempt(starting) is None:
            return
        await self.attempt(self._session.setup.adapt())
        self._servers = await self._services.mcp_servers()
        self.apply_filter()
        self._changed()
