"""`ctxchat mcp`: the MCP servers of the settings, each started for this, with its state and its tools."""

from __future__ import annotations

import click

from ctxchat.bootstrap.program import SERVERS_TIMEOUT_S, Program
from ctxchat.cli.common import common_options, emit, flags, run_async, table, tell
from ctxchat.core.sanitize import clean
from ctxchat.tools.mcp.server import ServerRow

NONE = "No MCP server is configured. [mcp.NAME] in config.toml adds one."
LATE = f"It did not answer within {SERVERS_TIMEOUT_S:.0f} s."


@click.command("mcp")
@common_options
def command() -> None:
    """The MCP servers that are configured here: which are up, what their tools cost in tokens, why one failed.

    Each that is not off is started to see, and ended again.
    """

    async def ask_servers() -> tuple[list[ServerRow], dict[str, int]]:
        async with Program.started(flags()) as program:
            tell(program.notices)
            return list(await program.mcp_servers(wait=True)), program.servers.weights()

    rows, weights = run_async(ask_servers())
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
        said = [trouble] if (trouble := _trouble(row)) else []
        said += [f"{tool}  ~{weights.get(tool, 0):,}" for tool in row.tools]
        said += [f"left out: {each}" for each in row.left_out]
        if said:
            click.echo(clean("\n  ".join([f"\n{row.name}", *said])))


def _server_row(row: ServerRow, weights: dict[str, int]) -> dict[str, object]:
    return {
        "name": row.name,
        "state": row.state,
        "where": row.where,
        "tools": [{"name": tool, "tokens": weights.get(tool, 0)} for tool in row.tools],
        "left_out": row.left_out,
        "trouble": _trouble(row),
    }


def _sum(row: ServerRow, weights: dict[str, int]) -> str:
    return f"~{sum(weights.get(tool, 0) for tool in row.tools):,}" if row.tools else ""


def _trouble(row: ServerRow) -> str:
    return row.trouble or (LATE if row.state == "starting" else "")
