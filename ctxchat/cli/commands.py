"""The subcommands by name, and running one of them to its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import click
import msgspec
from click.shell_completion import CompletionItem

from ctxchat import __version__
from ctxchat.bootstrap import LAST_HERE
from ctxchat.cli.common import common_options, flags, narrate
from ctxchat.cli.ending import READER_GONE, ended, escape_what_cannot_be_written
from ctxchat.cli.options import CONTINUE
from ctxchat.core.errors import UsageError

COMMANDS = {
    "tour": ("ctxchat.cli.tour", "Two minutes in a made-up project: the gauge, a compaction, an undo."),
    "run": ("ctxchat.cli.run", "Answer one message on standard output."),
    "serve": ("ctxchat.cli.serve", "Open the chat in a browser, on this machine only."),
    "acp": ("ctxchat.cli.acp", "Let an editor drive it, by the Agent Client Protocol."),
    "sessions": ("ctxchat.cli.sessions", "List, show, export, import, fork, rename and delete sessions."),
    "context": ("ctxchat.cli.context", "What the next request of a session would hold."),
    "compact": ("ctxchat.cli.compact", "Free up context in a stored session."),
    "archive": ("ctxchat.cli.archive", "Look into compactions, search, and put things back."),
    "audit": ("ctxchat.cli.audit", "What compactions kept and lost, and what later work needed of it."),
    "models": ("ctxchat.cli.models", "Models that can be reached from here."),
    "config": ("ctxchat.cli.config", "Where settings come from, what they are, and setting them."),
    "permissions": ("ctxchat.cli.permissions", "What is allowed without asking, and what would be asked."),
    "trust": ("ctxchat.cli.trust", "What a folder's own settings, skills and hooks would do, and trusting them."),
    "mcp": ("ctxchat.cli.mcp", "MCP servers: which are up, what their tools cost; add, test and remove them."),
    "themes": ("ctxchat.cli.themes", "Themes, and whether yours are complete."),
    "doctor": ("ctxchat.cli.doctor", "Check that everything works, with remedies."),
    "completion": ("ctxchat.cli.completion", "A script that makes your shell complete commands and options."),
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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ctxchat")
@click.option("-c", "--continue", "go_on", is_flag=True, help=CONTINUE)
@click.option(
    "--worktree",
    metavar="NAME",
    help="Work in a git worktree beside this repository, made on a branch of that name where there is none.",
)
@common_options
def ctxchat(go_on: bool, worktree: str | None) -> None:
    """A chat agent in the terminal whose context window is something you can see, steer and undo.

    Without a command it opens the chat in this folder.
    """
    ctx = click.get_current_context()
    if worktree is not None:
        from ctxchat.cli.worktree import enter_worktree

        narrate(enter_worktree(worktree))
    if go_on:
        ctx.obj = msgspec.structs.replace(flags(), session=flags().session or LAST_HERE)
    if ctx.invoked_subcommand is None:
        from ctxchat.cli.chat import open_chat

        ctx.exit(open_chat(msgspec.structs.asdict(flags())))


def run(arguments: Sequence[str]) -> int:
    """Run what the arguments say; the exit code."""
    escape_what_cannot_be_written()
    return ended(lambda: _exit_code(arguments))


def _exit_code(arguments: Sequence[str]) -> int:
    try:
        result = ctxchat.main(args=list(arguments), prog_name="ctxchat", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return 130
    except click.exceptions.NoArgsIsHelpError as help:
        help.show()
        return 2
    except click.ClickException as problem:
        raise UsageError(problem.format_message(), _help(problem)) from problem
    except SystemExit as end:  # a signal's code; 1 is click's way to end when whoever reads our output has seen enough
        return end.code if isinstance(end.code, int) and end.code != 1 else READER_GONE
    return result if isinstance(result, int) else 0


def _help(problem: click.ClickException) -> str:
    ctx = problem.ctx if isinstance(problem, click.UsageError) else None
    return f"`{ctx.command_path if ctx else 'ctxchat'} --help` shows how."
