"""Helpers that all commands share: the common options (before or after the command's name), and output for people and as JSON."""

from __future__ import annotations

import asyncio
import codecs
import io
import signal
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from ctxchat.bootstrap.flags import Flags
from ctxchat.cli import completing
from ctxchat.cli.options import SWITCHES, TEXTS
from ctxchat.config import paths
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.sanitize import clean, harmless_json
from ctxchat.core.search import incomplete

if TYPE_CHECKING:
    from ctxchat.storage.database import Database

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])

_GIVEN = "given_"
"""Prefix of the common options' parameter names, so that they never clash with a command's own."""


def _option(name: str, **about: Any) -> Callable[[Any], Any]:
    return click.option(f"--{name}", _GIVEN + name.replace("-", "_"), **about)


_TYPES = {"window": click.IntRange(min=0), "config": click.Path()}
_COMPLETED = {"session": completing.sessions, "model": completing.models}

_OPTIONS = (
    *(
        _option(name, type=_TYPES.get(name), metavar=value, help=told, shell_complete=_COMPLETED.get(name))
        for name, (value, told) in TEXTS.items()
    ),
    *(_option(name, is_flag=True, help=told) for name, told in SWITCHES.items()),
)


def common_options(command: _F) -> _F:
    """Adds the common options; what is given after a command's name wins over what stood before it.

    The command finds them with `flags()` and is called without them.
    """

    def keep(**given: Any) -> Any:
        ctx = click.get_current_context()
        common = {k.removeprefix(_GIVEN): given.pop(k) for k in list(given) if k.startswith(_GIVEN)}
        before = ctx.find_object(Flags) or Flags()
        ctx.obj = msgspec.structs.replace(before, **{k: v for k, v in common.items() if v})
        return command(**given)

    keep.__name__, keep.__doc__ = command.__name__, command.__doc__
    wrapped: Any = keep
    wrapped.__click_params__ = getattr(command, "__click_params__", [])
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def flags() -> Flags:
    """The common options of the command that is running."""
    return click.get_current_context().find_object(Flags) or Flags()


def own_settings_file() -> Path:
    """The path of the person's settings file, or the one given by `--config`."""
    return Path(flags().config) if flags().config else paths.user_file(paths.config_dir())


def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a command's coroutine to its end. SIGTERM and SIGHUP cancel it as ctrl+c does, so that it cleans up; the exit code is
    then 128 plus the signal's number."""
    return asyncio.run(_heeding_signals(work))


async def _heeding_signals(work: Coroutine[Any, Any, _T]) -> _T:
    asked: list[int] = []
    task = asyncio.ensure_future(work)

    def end(number: int) -> None:
        asked.append(number)
        task.cancel()

    for name in ("SIGTERM", "SIGHUP"):
        with suppress(
            AttributeError, NotImplementedError, RuntimeError, ValueError
        ):  # not supported on this system, or in this thread
            number = getattr(signal, name)
            if signal.getsignal(number) is signal.SIG_DFL:  # under nohup a hangup is ignored, and stays so
                asyncio.get_running_loop().add_signal_handler(number, end, number)
    try:
        return await task
    except asyncio.CancelledError:
        if asked:
            raise SystemExit(128 + asked[0]) from None
        raise


def extra_missing(what: str, package: str, extra: str) -> CtxchatError:
    """The error for a command whose extra is not installed, with the remedy."""
    remedy = (
        f"Install it beside ctxchat: uv pip install --python {sys.executable} {package} (in a checkout: "
        f"uv run --extra {extra} ctxchat {extra})."
    )
    return CtxchatError(f"{what} needs one more package.", remedy)


def written(text: str) -> str:
    """A text from the command line or a pipe as valid Unicode: bytes that were not UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def typed_in(most: int = -1) -> str:
    """The text on standard input, at most `most` characters (-1 for all); invalid bytes as in `written`."""
    given: object = sys.stdin
    if not isinstance(given, io.TextIOWrapper):
        return written(sys.stdin.read(most))
    # Not by changing how `sys.stdin` decodes: once something was read from it that is refused.
    text = codecs.getreader("utf-8")(sys.stdin.buffer, "replace").read(chars=most)
    return text.replace("\r\n", "\n")


def emit(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(harmless_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n")


def narrate(text: str) -> None:
    """A line for people, on standard error; foreign text in it is made harmless."""
    click.echo(clean(text), err=True)


def status(text: str) -> None:
    """Show a line on standard error that the next call replaces, and an empty text removes; only on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()


async def index_completed(database: Database, seconds: float) -> None:
    """Index texts that still wait for it, for at most `seconds`, showing progress; says how much is missing after that."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and await database.run(database.index_pending):
        status(f"making the search index: {int(100 * database.indexed)} %")
    status("")
    if partly := incomplete(database.indexed):
        narrate(f"! {partly} The rest is taken in while ctxchat is open, and by each search.")


def tell(notices: Iterable[str]) -> None:
    """Print notices for the person on standard error, such as settings that are not in force."""
    for text in notices:
        narrate(f"! {text}")


def end_with_problems(texts: Sequence[str]) -> None:
    """Print the problems a check found, a line each or as one JSON document, and end the command: exit code 2 if there are
    any."""
    if flags().json:
        emit({"ok": not texts, "problems": texts})
    else:
        for text in texts:
            click.echo(text)
        if not texts:
            narrate("All is well.")
    click.get_current_context().exit(2 if texts else 0)


def readable(path: str) -> Path:
    """The path of an existing file. Raises UsageError where it does not exist or is a folder."""
    file = Path(path)
    if not file.exists():
        raise UsageError(f"{path}: there is no such file.", "A path counts from the folder you are in.")
    if file.is_dir():
        raise UsageError(f"{path}: this is a folder.", "Name a file in it.")
    return file


def table(
    head: Sequence[str], rows: Sequence[Sequence[object]], empty: str = "", *, right: Collection[int] = ()
) -> None:
    """Print rows in columns, those whose numbers are in `right` aligned to the right; without rows, print `empty` on standard
    error. Foreign text is made harmless."""
    if not rows:
        click.echo(empty, err=True)
        return
    cells = [[clean(" ".join(str(cell).split())) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        placed = (
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        click.echo("  ".join(placed).rstrip())
