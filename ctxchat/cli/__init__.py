"""The command line: `ctxchat` opens the chat, its subcommands do one thing each and end.

Only words in and words out; what is done is composed in `ctxchat.bootstrap`. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from ctxchat import __version__
from ctxchat.cli.common import common_options, flags
from ctxchat.core.errors import CtxchatError, UsageError

COMMANDS = {
    "run": ("ctxchat.cli.run", "Answer one message on standard output."),
    "sessions": ("ctxchat.cli.sessions", "List, show, export, import, fork, rename and delete sessions."),
    "context": ("ctxchat.cli.context", "What the next request of a session would hold."),
    "compact": ("ctxchat.cli.compact", "Free up context in a stored session."),
    "archive": ("ctxchat.cli.archive", "Look into compactions, search, and put things back."),
    "models": ("ctxchat.cli.models", "Models that can be reached from here."),
    "config": ("ctxchat.cli.config", "Where settings come from, what they are, and setting them."),
    "themes": ("ctxchat.cli.themes", "Themes, and whether yours are whole."),
    "doctor": ("ctxchat.cli.doctor", "Check that everything works, with remedies."),
}
"""Each command's module, which holds it as `command`, and its line in the help (so that help loads none of them)."""


class Commands(click.Group):
    """The subcommands, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return import_module(COMMANDS[cmd_name][0]).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ctxchat")
@common_options
def ctxchat() -> None:
    """A chat agent in the terminal whose context window is something you can see, steer and undo.

    Without a command it opens the chat in this folder.
    """
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        from ctxchat.cli.chat import open_chat

        ctx.exit(open_chat(flags()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code (SPEC 9): 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted."""
    try:
        result = ctxchat.main(args=list(arguments) if arguments is not None else None, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return 130
    except click.ClickException as problem:
        problem.show()
        return 2
    except CtxchatError as problem:
        print(f"ctxchat: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, UsageError) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has seen enough; the interpreter must not complain at its end
        return 0


def entry() -> None:
    """The console script."""
    sys.exit(main())
