"""`ctxchat themes`: those there are, and whether yours are whole."""

from __future__ import annotations

import click

from ctxchat.cli.common import common_options, emit, end_with_problems, flags, table
from ctxchat.config import paths
from ctxchat.config.themes import load_themes, unreadable


@click.group("themes", invoke_without_command=True)
@common_options
def command() -> None:
    """Themes, and whether yours are complete."""
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("list")
@common_options
def list_() -> None:
    """Every theme, ours and those in your `themes` folder."""
    found = load_themes(paths.config_dir())
    rows = [(t.name, "dark" if t.dark else "light", t.file) for t in found.themes.values()]
    if flags().json:
        emit([{"name": name, "kind": kind, "file": file} for name, kind, file in rows])
    else:
        table(("theme", "", "file"), rows)


@command.command("check")
@common_options
def check() -> None:
    """All problems of all themes at once; exit code 2 when there are any."""
    found = load_themes(paths.config_dir())
    texts = [p.text for p in found.problems]
    texts += [f"{t.file}: {pair}" for t in found.themes.values() for pair in unreadable(t)]
    end_with_problems(texts)
