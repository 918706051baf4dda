"""`ctxchat completion`: click's own completion scripts, by the shell's name."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ctxchat.cli import COMPLETING
from ctxchat.cli.common import common_options, emit, flags


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
def command(shell: str) -> None:
    """Print a script that makes SHELL complete ctxchat's commands and options.

    For bash: ctxchat completion bash > ~/.local/share/bash-completion/completions/ctxchat
    """
    script = get_completion_class(shell)
    assert script is not None
    root = click.get_current_context().find_root().command
    source = script(root, {}, "ctxchat", COMPLETING).source()
    if flags().json:
        emit({"shell": shell, "script": source})
    else:
        click.echo(source)
