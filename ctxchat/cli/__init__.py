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
    """Run the command line; the exit code: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted, 141 nobody
    reads on."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    flags = None if COMPLETING in os.environ else of_chat(given)
    if flags is None:
        from ctxchat.cli.commands import run

        return run(given)
    from ctxchat.cli.chat import open_chat

    return open_chat(flags)


def _fill_closed_streams() -> None:
    """Give streams that were closed before the start (`>&-`) a file that takes and gives nothing: else the first file that is
    opened gets their number, and what is printed would go there."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY), fd)
            setattr(sys, name, os.fdopen(fd, "w" if fd else "r", encoding="utf-8", closefd=False))


def entry() -> None:
    """The console script."""
    sys.path[:] = import_path()  # what lies in the current folder is data, a `click.py` too
    _fill_closed_streams()
    sys.exit(main())
