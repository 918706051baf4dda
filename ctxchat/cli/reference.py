"""The command line on paper, from click's own tree: the tables of `docs/commands.md`, and the manual page `man/ctxchat.1`.
`python -m ctxchat.cli.reference` writes both anew."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from ctxchat.cli.commands import ctxchat
from ctxchat.config.atomic import write_text
from ctxchat.config.reference import page

EXIT_CODES = (
    ("0", "done"),
    ("1", "failed"),
    ("2", "wrong usage or configuration"),
    ("130", "interrupted; with a signal that asked for the end, 128 and its number"),
    ("141", "the reader of the output closed it (`| head -1`)"),
)
FILES = (
    ("config.toml", "Your settings, in the settings folder (`ctxchat config path` says where)."),
    (".ctxchat/config.toml", "A project's settings, in force once you trust its folder."),
    ("ctxchat.db", "Every session, in the data folder."),
)
ENVIRONMENT = (
    ("CTXCHAT_CONFIG_DIR", "The settings folder, instead of the platform's."),
    ("CTXCHAT_DATA_DIR", "The data folder, instead of the platform's."),
    ("CTXCHAT_CONTEXT__KEEP_RECENT", "Any setting: its name in capitals, with two underscores for a dot."),
    ("NO_COLOR", "When set, no colour is used."),
)

Row = tuple[str, str]


class CommandPage(msgspec.Struct, frozen=True):
    """A command as it is told: how it is called, what it does, and its own arguments and options."""

    usage: str
    help: str
    options: tuple[Row, ...]


def commands(command: click.Command = ctxchat, parent: click.Context | None = None) -> Iterator[CommandPage]:
    """A command and all below it, depth first."""
    ctx = click.Context(command, parent, info_name="ctxchat" if parent is None else command.name)
    told = [p.get_help_record(ctx) for p in command.params if parent is None or not _common(p)]
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    yield CommandPage(usage, inspect.cleandoc(command.help or "").replace("\b\n", ""), tuple(r for r in told if r))
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            if below := command.get_command(ctx, name):
                yield from commands(below, ctx)


def _common(parameter: click.Parameter) -> bool:
    return (parameter.name or "").startswith("given_")


def markdown() -> str:
    """Every command with its options; those that all take stand with the first."""
    parts: list[str] = []
    for command in commands():
        words = command.usage.split(" [")[0]
        rows = "".join(f"| `{name}` | {_cell(told)} |\n" for name, told in command.options)
        table = f"\n| option | |\n| --- | --- |\n{rows}" if rows else ""
        parts.append(f"### {words}\n\n```text\n{command.usage}\n```\n\n{command.help}\n{table}")
    return "\n" + "\n".join(parts) + "\n"


def exit_codes() -> str:
    return "| code | |\n| --- | --- |\n" + "".join(f"| {code} | {told} |\n" for code, told in EXIT_CODES)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def manual() -> str:
    """The manual page, in roff."""
    (top, *below) = commands()
    lines = [
        '.TH CTXCHAT 1 "" "" "User Commands"',
        ".SH NAME",
        f"ctxchat \\- {_roff(top.help.splitlines()[0].rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_roff(top.usage)}",
        ".SH DESCRIPTION",
        *_paragraphs(top.help),
        ".SH OPTIONS",
        "Every command takes these, before or after its name, but for the first two.",
        *_listed(top.options),
        ".SH COMMANDS",
    ]
    for command in below:
        lines += [f".SS {_roff(command.usage)}", *_paragraphs(command.help), *_listed(command.options)]
    for title, rows in (("EXIT STATUS", EXIT_CODES), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)):
        lines += [f".SH {title}", *_listed(rows)]
    return "\n".join(lines) + "\n"


def _listed(rows: Sequence[Row]) -> Iterator[str]:
    for name, told in rows:
        yield f".TP\n.B {_roff(name)}\n{_roff(told)}"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield ".PP"
        yield from map(_roff, paragraph.splitlines())


def _roff(text: str) -> str:
    """Text as roff takes it: nothing in it is a request, and hyphens stay hyphens."""
    plain = re.sub(r"`([^`]*)`", r"\1", text).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def write_reference(root: Path) -> None:
    """Both, in a checkout. Raises OSError and ValueError."""
    (root / "man").mkdir(exist_ok=True)
    write_text(root / "man" / "ctxchat.1", manual(), mode=0o644)
    file = root / "docs" / "commands.md"
    text = page(file.read_text(encoding="utf-8"), "commands", markdown())
    write_text(file, page(text, "exit codes", exit_codes()), mode=0o644)


if __name__ == "__main__":
    write_reference(Path(sys.argv[1] if len(sys.argv) > 1 else ""))
