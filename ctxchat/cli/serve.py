"""`ctxchat serve`: the chat in a browser, on this machine only."""

from __future__ import annotations

import shlex
import sys
from functools import partial

import click
import msgspec

from ctxchat.bootstrap import LAST_HERE
from ctxchat.bootstrap.flags import Flags
from ctxchat.cli.common import common_options, emit, extra_missing, flags, narrate
from ctxchat.core.errors import CtxchatError
from ctxchat.own_processes import module_command


@click.command("serve")
@click.option("--port", type=click.IntRange(1, 65535), default=8010, show_default=True, metavar="N", help="The port.")
@click.option(
    "--text-size", type=click.IntRange(6, 60), default=16, show_default=True, metavar="N", help="Of letters, in pixels."
)
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the session used last in this folder.")
@common_options
def command(port: int, text_size: int, go_on: bool) -> None:
    """Open the chat in a browser: on 127.0.0.1 only, for whoever has the address with its token.

    What the page can do, its chat can do: read, run and write in this folder after asking. Stop it with ctrl+c.
    """
    given = flags()
    if go_on and not given.session:
        given = msgspec.structs.replace(given, session=LAST_HERE)
    try:
        from ctxchat.cli.serving import ChatServer
    except ImportError as problem:
        raise extra_missing("The chat in a browser", "textual-serve", "serve") from problem
    try:
        ChatServer(
            partial(_of_tab, given), port, lambda address: _announce_address(address, given.json), text_size
        ).serve()
    except OSError as problem:
        remedy = "Choose another with --port."
        raise CtxchatError(f"Port {port} cannot be used: {problem.strerror or problem}.", remedy) from problem


def _of_tab(given: Flags, session: str) -> str:
    """The command line of a tab's chat: with the session it had before it was loaded again, where it had one."""
    return chat_command(msgspec.structs.replace(given, session=session) if session else given)


def chat_command(given: Flags) -> str:
    """The command line of a chat with these options."""
    options = {
        "--model": given.model,
        "--api-base": given.api_base,
        "--api-key-env": given.api_key_env,
        "--window": given.window,
        "--config": given.config,
        "--session": given.session,
        "--log": given.log,
    }
    words = [word for name, value in options.items() if value for word in (name, str(value))]
    return ("" if sys.platform == "win32" else "exec ") + shlex.join(module_command("ctxchat", *words))


def _announce_address(address: str, as_json: bool) -> None:
    if as_json:
        emit({"url": address})
        sys.stdout.flush()
    else:
        click.echo(address)
        narrate("Open this address in a browser on this machine. ctrl+c stops it.")
