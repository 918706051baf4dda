"""`ctxchat acp`: sessions driven by an editor, over standard input and output."""

from __future__ import annotations

import gc
import sys

import click

from ctxchat.cli.common import common_options, extra_missing, flags, narrate, run_async
from ctxchat.cli.ending import written_down


@click.command("acp")
@common_options
def command() -> None:
    """Speak the Agent Client Protocol on standard input and output, for editors such as Zed.

    An editor starts it (docs/editors.md says how) and ends it by closing its input. Everything but the protocol goes to
    standard error.
    """
    given = flags()
    gc.disable()  # the protocol's hundreds of classes stay: the collector would search them a fifth of the time they take
    try:
        from ctxchat.acp.server import serve
    except ModuleNotFoundError as problem:
        if problem.name != "acp":
            raise
        raise extra_missing("Being driven by an editor", "agent-client-protocol", "acp") from problem
    finally:
        gc.freeze()
        gc.enable()
    from ctxchat.acp.wire import take_standard_streams

    if sys.stdin and sys.stdin.isatty():
        narrate(
            "This waits for an editor that speaks the Agent Client Protocol; `ctxchat` opens the chat. ctrl+c ends it."
        )
    source, sink = take_standard_streams()
    run_async(serve(given, source, sink, written_down))
