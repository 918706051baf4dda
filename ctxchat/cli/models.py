"""`ctxchat models`: what can be chatted with from here."""

from __future__ import annotations

import click

from ctxchat.bootstrap.program import Program
from ctxchat.cli.common import common_options, emit, flags, run_async, table
from ctxchat.models.discovery import FoundModel
from ctxchat.presentation.usage_text import SOURCES, brief, per_million


@click.command("models")
@common_options
def command() -> None:
    """Local servers, providers whose key is set, models of your settings, and the offline assistant."""

    async def find_models() -> list[FoundModel]:
        async with Program.started(flags()) as program:
            return list(await program.models())

    rows = run_async(find_models())
    if flags().json:
        names = ("name", "provider", "reachable", "window", "window_source", "input_cost", "output_cost", "note")
        emit([{name: getattr(row, name) for name in names} for row in rows])
        return
    table(
        ("model", "window", "from", "$ in / out", "note"),
        [
            (
                r.name,
                brief(r.window) if r.window > 0 else "?",
                SOURCES[r.window_source],
                per_million(r.input_cost, r.output_cost),
                r.note,
            )
            for r in rows
        ],
        right=(1, 3),
    )
