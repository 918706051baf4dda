"""`ctxchat mcp`: the MCP servers of the settings, each started to be seen; adding, trying and removing one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from ctxchat.bootstrap.program import SERVERS_TIMEOUT_S, Program
from ctxchat.cli.common import common_options, emit, flags, narrate, own_settings_file, run_async, table, tell
from ctxchat.config import write
from ctxchat.config.toml_positions import bare_key
from ctxchat.core.errors import ToolError, UsageError
from ctxchat.core.sanitize import clean
from ctxchat.presentation.usage_text import count
from ctxchat.tools.mcp.server import ServerRow
from ctxchat.tui.browser import open_in_browser

NONE = "No MCP server is configured. `ctxchat mcp add NAME COMMAND` (or an address) adds one."
LATE = f"It did not answer within {SERVERS_TIMEOUT_S:.0f} s."


@click.group("mcp", invoke_without_command=True)
@common_options
def command() -> None:
    """The MCP servers that are configured here: which are up, what their tools cost in tokens, why one failed."""
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("list")
@common_options
def list_() -> None:
    """All of them. Each that is not off is started to see, and ended again."""
    rows, weights = _server_rows()
    if flags().json:
        emit([_server_row(row, weights) for row in rows])
        return
    table(
        ("server", "state", "tools", "tokens", "where"),
        [(r.name, r.state, len(r.tools) or "", _sum(r, weights), r.where) for r in rows],
        NONE,
        right=(2, 3),
    )
    for row in rows:
        if said := _details(row, weights):
            click.echo(clean("\n  ".join([f"\n{row.name}", *said])))


@command.command("test")
@click.argument("name")
@common_options
def test(name: str) -> None:
    """Start the server NAME, and no other, and say what it offers; exit code 1 where it does not come up."""
    rows, weights = _server_rows(name)
    [row] = rows
    if flags().json:
        emit(_server_row(row, weights))
    else:
        click.echo(clean("\n  ".join([f"{row.name}: {row.state}", *_details(row, weights)])))
    if row.state != "ready":
        click.get_current_context().exit(1)


@command.command("login")
@click.argument("name")
@click.option(
    "--browser/--no-browser", default=True, help="Open the page where you log in; else only show its address."
)
@common_options
def login(name: str, browser: bool) -> None:
    """Log in to the server NAME at its address. What comes of that is kept for later starts, in the keyring where there is one.

    Where the browser runs on another machine, paste the address it ends at, and press Enter.
    """

    async def log_in() -> ServerRow:
        pages: list[str] = []

        def take_line(callback: Callable[[str], object]) -> None:
            line = sys.stdin.readline()
            if not line:  # the end of the input; it would be told again and again
                asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            elif "state=" in line:
                callback(line)
            elif line.strip():
                click.echo("That is not the address: it holds state= and usually code=.", err=True)

        def open_page(page: str) -> None:
            if why := open_in_browser(page):
                click.echo(f"No browser was opened, as {why}.", err=True)

        def show(page: str, callback: Callable[[str], object]) -> None:
            pages.append(page)
            click.echo(f"Log in to {clean(name)} at this address:\n\n  {clean(page)}\n", err=True)
            if browser:
                asyncio.get_running_loop().run_in_executor(None, open_page, page)
            if sys.stdin.isatty():
                click.echo(
                    "If the browser runs elsewhere, paste here the address it ends at, and press Enter.", err=True
                )
                with suppress(OSError, NotImplementedError):  # not everywhere can it be listened to
                    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), take_line, callback)

        async with Program.started(flags()) as program:
            tell(program.notices)
            row = await program.log_in(name, show)
            if row.state == "ready":
                narrate(
                    f"{name}: {'logged in' if pages else 'it needs no login'}. It offers {count(len(row.tools), 'tool')}."
                )
            return row

    row = run_async(log_in())
    if row.state != "ready":
        raise ToolError(f"{name}: {row.trouble}")


@command.command("logout")
@click.argument("name")
@common_options
def logout(name: str) -> None:
    """Delete what is kept of a login to the server NAME."""

    async def log_out() -> bool:
        async with Program.started(flags()) as program:
            return await program.log_out(name)

    if not run_async(log_out()):
        raise UsageError(f"No login to {name} is kept.")
    narrate(f"{name}: the login is deleted here. The server may go on to take what others hold of it.")


@command.command("add", context_settings={"ignore_unknown_options": True})  # the server's own options
@click.argument("name")
@click.argument("where", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="An environment variable for it.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; a value may be `${VARIABLE}`."
)
@click.option(
    "--client-id", default="", metavar="ID", help="The client id to log in with, where a server gives none out."
)
@click.option("--client-secret-env", default="", metavar="VAR", help="The variable that holds the secret of that id.")
@click.option(
    "--callback-port", default=0, metavar="PORT", help="The address a login returns to, if one was agreed on."
)
@common_options
def add(name: str, where: tuple[str, ...], env: tuple[str, ...], headers: tuple[str, ...], **login: str | int) -> None:
    """Write the server NAME into your settings: the command that starts it with its arguments, or its address.

    What the command takes itself follows `--`: ctxchat mcp add files -- npx server --root .
    """
    first, *rest = where
    address = first.startswith(("http://", "https://"))
    if address and (rest or env):
        raise UsageError("A server at an address takes no arguments and no variables.")
    if not address and (headers or any(login.values())):
        raise UsageError("Headers and logins are for a server at an address.")
    server: dict[str, object] = {"url": first} if address else {"command": first, "args": rest}
    server |= {"env": _pairs(env), "headers": _pairs(headers), **login}
    file = own_settings_file()
    if write.own_value(file, f"mcp.{bare_key(name)}") is not None:
        raise UsageError(f"{file} has a server {name} already.", f"`ctxchat mcp remove {name}` takes it out.")
    write.set_value(file, f"mcp.{bare_key(name)}", {key: value for key, value in server.items() if value})
    narrate(f"{file}: added {name}. `ctxchat mcp test {name}` tries it.")


@command.command("remove")
@click.argument("name")
@common_options
def remove(name: str) -> None:
    """Take the server NAME out of your settings."""
    file = own_settings_file()
    if write.own_value(file, f"mcp.{bare_key(name)}") is None:
        raise UsageError(
            f"{file} has no server {name}.", "`ctxchat mcp list` shows those in force, and those of .mcp.json."
        )
    write.unset_value(file, f"mcp.{bare_key(name)}")
    narrate(f"{file}: removed {name}.")


def _pairs(given: Sequence[str]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given]
    if wrong := next((name for name, equals, _ in pairs if not (name and equals)), None):
        raise UsageError(f"{wrong} is not NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def _server_rows(name: str = "") -> tuple[Sequence[ServerRow], dict[str, int]]:
    """The servers, or the one of that name, started for this, and what their tools weigh."""

    async def ask_servers() -> tuple[Sequence[ServerRow], dict[str, int]]:
        async with Program.started(flags()) as program:
            tell(program.notices)
            rows = await program.mcp_servers(wait=True, only=name)
            if name and not rows:
                raise UsageError(f"There is no MCP server {name}.", "`ctxchat mcp list` shows them.")
            return rows, program.servers.weights()

    return run_async(ask_servers())


def _details(row: ServerRow, weights: dict[str, int]) -> list[str]:
    said = [trouble] if (trouble := _trouble(row)) else []
    said += [f"{tool}  ~{weights.get(tool, 0):,}" for tool in row.tools]
    said += [f"skill {skill}" for skill in row.skills]
    return said + [f"left out: {each}" for each in row.left_out]


def _server_row(row: ServerRow, weights: dict[str, int]) -> dict[str, object]:
    return {
        "name": row.name,
        "state": row.state,
        "where": row.where,
        "tools": [{"name": tool, "tokens": weights.get(tool, 0)} for tool in row.tools],
        "skills": row.skills,
        "left_out": row.left_out,
        "trouble": _trouble(row),
    }


def _sum(row: ServerRow, weights: dict[str, int]) -> str:
    return f"~{sum(weights.get(tool, 0) for tool in row.tools):,}" if row.tools else ""


def _trouble(row: ServerRow) -> str:
    return row.trouble or (LATE if row.state == "starting" else "")
