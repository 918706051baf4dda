"""Commands that the person types themselves, `!make test`: run at once, one at a time, in a shell that keeps its folder and its
variables from one to the next.

Each is a process of its own, as short-lived as any command of the agent's; what the shell keeps is read when one has ended, and
given to the next. So nothing waits between two of them, and one that is stopped changes nothing.
"""

from __future__ import annotations

import math
import os
import shlex
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import BinaryIO

import msgspec

from ctxchat.core.errors import CtxchatError, ToolError
from ctxchat.core.permissions import Grant
from ctxchat.core.ports import ToolContext, ToolOutput, ToolText
from ctxchat.core.secrets import MaskedLines
from ctxchat.own_processes import find_program
from ctxchat.tools.command_line import leaves_something_running
from ctxchat.tools.processes import MARK
from ctxchat.tools.sandbox import Sandbox, known_needs
from ctxchat.tools.shell import MAX_COMMAND_CHARS, Shell, run_ready

MAX_OUTPUT_CHARS = 40_000
"""Characters of a command's output that are kept, its beginning and its end."""

MAX_STATE_BYTES = 1_000_000
"""Of folder and variables together; a shell with more keeps what it had before."""

ENDED_WITH_IT = "[what this command put into the background has ended with it]"
STOPPED_BY_SANDBOX = "[the sandbox seems to have been in the way; !! runs a command outside of it]"

_OF_EACH = frozenset({"_", "PWD", "OLDPWD", "SHLVL", MARK, "TMPDIR", "TMP", "TEMP"})
"""Variables that each command has by itself."""


class _Kept(msgspec.Struct, frozen=True):
    """The state of the shell between two commands: its folder, the previous one, variables that were set and those that were
    unset."""

    folder: str
    before: str = ""
    variables: Mapping[str, str] = {}
    unset: tuple[str, ...] = ()


class PersonShell:
    """Two shells, one in the sandbox and one outside of it, which know nothing of each other: what a project's scripts put into
    the first is not there in the second. Fulfils `core.ports.PersonCommands`."""

    def __init__(
        self,
        sandbox: Sandbox,
        environ: Mapping[str, str],
        workspace: str,
        session_folder: str = "",
        mask: Callable[[str], str] = str,
    ) -> None:
        self._shell = Shell(sandbox, environ)
        self._sandbox = sandbox
        self._workspace, self._session_folder = workspace, session_folder
        self._mask = mask
        self._kept = {outside: _Kept(workspace) for outside in (False, True)}
        self._busy = False

    async def run(self, line: str, *, outside: bool = False) -> AsyncGenerator[ToolText | ToolOutput, None]:
        """A command line, from its first output to its end, without the secrets in it. In the sandbox it may do what the agent's
        may, and write where such commands are known to. Raises CtxchatError while another one runs."""
        outside = outside or not self._shell.sandbox
        if self._busy:
            raise CtxchatError("A command of yours is running.", "Esc ends it.")
        if "\0" in line or len(line) > MAX_COMMAND_CHARS:
            raise ToolError("That is no command line.")
        self._busy = True
        try:
            with tempfile.TemporaryFile() as state:
                async with aclosing(self._run_line(line, outside, state)) as pieces:
                    async for piece in pieces:
                        yield piece
        finally:
            self._busy = False

    async def _run_line(self, line: str, outside: bool, state: BinaryIO) -> AsyncGenerator[ToolText | ToolOutput, None]:
        kept, bash = self._kept[outside], find_program("bash", self._workspace)
        needs = () if outside else (f for f in known_needs(line, self._workspace) if self._sandbox.can_write(f))
        context = ToolContext(
            "own",
            self._workspace,
            self._session_folder,
            MAX_OUTPUT_CHARS,
            allowance=Grant(folders=tuple(needs), outside=outside),
        )
        # Without bash nothing is kept but where the next command begins, which is the workspace.
        argv = [bash, "-c", _script(line, kept, state.fileno())] if bash else ["/bin/sh", "-c", line]
        command = self._shell.ready(argv, context, kept.variables)
        shown = MaskedLines(self._mask)
        pieces = run_ready(command, context, math.inf, foreign=outside, pass_fds=(state.fileno(),))
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, ToolOutput):
                    self._keep(outside, state)
                    yield self._noted(piece, line, context)
                elif text := shown.feed(piece.text):
                    yield ToolText(text)

    def _noted(self, output: ToolOutput, line: str, context: ToolContext) -> ToolOutput:
        lines = [self._mask(output.text)]
        if output.status == "ok" and leaves_something_running(line):
            lines.append(ENDED_WITH_IT)
        if self._shell.in_the_way(output, line, context):
            lines.append(STOPPED_BY_SANDBOX)
        return msgspec.structs.replace(output, text="\n".join(lines))

    def _keep(self, outside: bool, state: BinaryIO) -> None:
        """The shell's state at its end; unchanged if it did not end by itself."""
        state.seek(0)
        said: bytes = state.read(MAX_STATE_BYTES + 1)
        if not said.endswith(b"\0") or len(said) > MAX_STATE_BYTES:
            return
        folder, before, *pairs = os.fsdecode(said[:-1]).split("\0")
        split = (pair.partition("=") for pair in pairs)
        variables = {name: value for name, _, value in split}
        usual = self._shell.environment
        self._kept[outside] = _Kept(
            folder,
            before,
            {n: v for n, v in variables.items() if n not in _OF_EACH and usual.get(n) != v},
            tuple(n for n in usual if n not in variables and n not in _OF_EACH and n.isidentifier()),
        )


def _script(line: str, kept: _Kept, descriptor: int) -> str:
    """The command in a shell that begins as the last one ended, and at its own end says to `descriptor` how that is."""
    steps = [f"cd -- {shlex.quote(kept.folder)}"]
    steps += [f"OLDPWD={shlex.quote(kept.before)}"] if kept.before else []
    steps += [f"unset {' '.join(kept.unset)}"] if kept.unset else []
    save = f'{{ printf "%s\\0" "$PWD" "$OLDPWD"; command env -0; }} >&{descriptor} 2>/dev/null'
    # All variables are passed on to what is started, since it is there that they are seen at the end.
    return "; ".join([*steps, f"trap {shlex.quote(save)} EXIT", "set -a", f"eval {shlex.quote(line)}"])
