"""A text in the person's own editor, and the tour: the terminal is theirs meanwhile, and nothing else is drawn or runs."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from textual.app import SuspendNotSupported

from ctxchat.core.errors import CtxchatError
from ctxchat.own_processes import find_program, module_command

CHOOSE = "Set $EDITOR, or interface.editor in the settings."


def edited(text: str, command: str, suspend: Callable[[], AbstractContextManager[None]]) -> str | None:
    """The text after `command` (else $VISUAL, $EDITOR, vi) had it; None where the editor ended with an error or took the
    file away, which is how one says no. Raises CtxchatError where there is no terminal to give away, or no such editor."""
    words = _program(command)
    with tempfile.TemporaryDirectory(prefix="ctxchat-") as folder:
        file = Path(folder) / "message.md"
        file.write_text(text, "utf-8", "replace")
        code = _run([*words, str(file)], suspend)
        return file.read_text("utf-8", "replace") if code == 0 and file.is_file() else None


def file_at(workspace: Path, name: str) -> Path | None:
    """The file of this name, which may be one from the workspace on; None where there is none."""
    file = workspace / Path(name).expanduser()
    return file if file.is_file() else None


def visit(file: Path, line: int, command: str, suspend: Callable[[], AbstractContextManager[None]]) -> None:
    """Have the same editor show a file at a line. Raises CtxchatError as `edited` does."""
    words = _program(command)
    match Path(words[0]).stem:
        case "code" | "code-insiders" | "codium" | "cursor":
            place = ["--goto", f"{file}:{line}"]
        case "hx" | "helix" | "subl" | "zed" | "zeditor":
            place = [f"{file}:{line}"]
        case _:
            place = [f"+{line}", str(file)]
    _run([*words, *place], suspend)


def take_tour(suspend: Callable[[], AbstractContextManager[None]]) -> None:
    """Have the tour in this terminal, as a program of its own. Raises CtxchatError where there is none to give away."""
    _run(module_command("ctxchat", "tour"), suspend, "The tour", "Run `ctxchat tour` in a terminal.")


def _program(command: str) -> list[str]:
    """The editor's command line, with its program's whole path. Raises CtxchatError where there is none."""
    command = command or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(command) or ["vi"]
    except ValueError as problem:
        raise CtxchatError(f"{command}: {problem}", CHOOSE) from None
    if not Path(words[0]).is_absolute():
        program = find_program(words[0])
        if not program:
            raise CtxchatError(f"{words[0]}: there is no such program outside of this folder.", CHOOSE)
        words[0] = program
    return words


def _run(
    words: list[str],
    suspend: Callable[[], AbstractContextManager[None]],
    what: str = "An editor",
    remedy: str = CHOOSE,
) -> int:
    """The program's exit code. Raises CtxchatError where it did not start."""
    try:
        with suspend():
            code = _ended(words)
    except SuspendNotSupported:
        raise CtxchatError(f"{what} cannot be opened from here.", "It needs a terminal of its own.") from None
    if isinstance(code, OSError):
        raise CtxchatError(f"{words[0]}: {code.strerror}", remedy)
    return code


def _ended(words: list[str]) -> int | OSError:
    """The editor's exit code, or why it did not start: nothing is raised, since Textual would not take the terminal again."""
    with _keys_for_the_editor():
        try:
            return subprocess.run(words, check=False).returncode
        except OSError as problem:
            return problem


@contextmanager
def _keys_for_the_editor() -> Iterator[None]:
    """Handle signals while the editor runs: in its terminal keys are signals, of which Ctrl+C and Ctrl+\\ are meant for the
    editor, and Ctrl+Z stops the editor and ctxchat alike. A handler that does nothing is not inherited by the editor, as ignoring
    a signal would be."""
    meant: dict[str, Any] = {"SIGINT": _nothing, "SIGQUIT": _nothing, "SIGTSTP": signal.SIG_DFL}
    known = [(getattr(signal, name), handler) for name, handler in meant.items() if hasattr(signal, name)]
    before = [(number, signal.signal(number, handler)) for number, handler in known]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _nothing(*_: object) -> None:
    pass
