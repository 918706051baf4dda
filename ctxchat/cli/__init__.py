"""The command line: `ctxchat` opens the chat, its subcommands do one thing each and end.

Only words in and words out; what is done is composed in `ctxchat.bootstrap`. Nothing heavy is imported before it is needed:
the chat's first frame is painted before anything else, click included.
"""

from __future__ import annotations

import os
import sys

from ctxchat.cli.options import of_chat
from ctxchat.own_processes import import_path

TYPE_CHECKING = False  # without the import
if TYPE_CHECKING:
    from collections.abc import Sequence

COMPLETING = "_CTXCHAT_COMPLETE"
"""Set by a shell that asks what could stand next; the arguments so far are in its own variables."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    flags = None if COMPLETING in os.environ else of_chat(given)
    if flags is None:
        from ctxchat.cli.commands import run

        return run(given)
    from ctxchat.cli.chat import open_chat

    return open_chat(flags)


def entry() -> None:
    """The console script."""
    sys.path[:] = import_path()  # what lies in the current folder is data, a `click.py` too
    sys.exit(main())
