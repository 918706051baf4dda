"""`ctxchat run`: one message in, its answer out, for scripts and pipes."""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import get_args

import click
import msgspec

from ctxchat.bootstrap import LAST_HERE
from ctxchat.cli.common import common_options, flags, narrate, run_async, tell, typed_in, written
from ctxchat.core.errors import UsageError
from ctxchat.core.permissions import Mode

MAX_INPUT_CHARS = 50_000_000
"""Characters taken from standard input."""

INPUT_TIMEOUT_S = 2.0
"""Seconds after which whoever waits for a silent pipe is told so, and other input is no longer waited for."""


@click.command("run")
@click.argument("prompt", required=False, default="")
@click.option(
    "--permissions",
    type=click.Choice(get_args(Mode)),
    help="What may run without asking; here `ask` denies what would ask.",
)
@click.option("--max-rounds", type=click.IntRange(min=1), metavar="N", help="Most model calls in this turn.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the session used last in this folder.")
@click.option("--cwd", type=click.Path(file_okay=False), metavar="DIR", help="Work in this folder.")
@click.option(
    "--raw", is_flag=True, help="The answer as the model wrote it, control sequences for a terminal included."
)
@common_options
def command(
    prompt: str, permissions: str | None, max_rounds: int | None, go_on: bool, cwd: str | None, raw: bool
) -> None:
    """Answer PROMPT on standard output. `-` or a pipe adds what comes on standard input; only PROMPT attaches files
    by `@path`."""
    text = _read_prompt(prompt)
    chosen = msgspec.structs.replace(flags(), permissions=permissions or "", max_rounds=max_rounds or 0, cwd=cwd or "")
    from ctxchat.bootstrap.program import Program
    from ctxchat.headless import along, run

    async def answer() -> int:
        async with Program.started(chosen) as program:
            session_id = chosen.session or (LAST_HERE if go_on else "")
            session = await program.open(session_id, interactive=False)
            tell((*program.notices, *session.notices))
            try:
                files = await along(session, "" if prompt == "-" else prompt, program.workspace, narrate)
                code = await run(session, text, files, as_json=chosen.json, out=sys.stdout, err=sys.stderr, raw=raw)
            finally:
                for notice in await session.close():
                    narrate(notice.text)
                if not session_id and not any(g.kind in ANSWERED for g in session.state.ledger.groups):
                    await program.delete(session.id)  # nobody answered: whoever asked asks again
            return code

    click.get_current_context().exit(run_async(answer()))


ANSWERED = frozenset({"reply", "round"})
"""The kinds of groups that only a model makes."""


def _read_prompt(prompt: str) -> str:
    """The prompt with what came through a pipe. Raises UsageError when there is nothing to say."""
    words = "" if prompt == "-" else prompt
    piped = _piped(patient=not words)
    text = "\n\n".join(part for part in (words, piped.strip("\n")) if part.strip())
    if not text:
        raise UsageError("There is nothing to answer.", 'Give a message: ctxchat run "…", or pipe one in.')
    return written(text)


def _piped(patient: bool) -> str:
    """The text on standard input. A pipe is waited for, as another program writes to it; if a prompt was given, other input that
    stays open and silent (such as a socket of the program that started us) is not."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not patient and not select.select([sys.stdin], [], [], INPUT_TIMEOUT_S)[0]:
        if not stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
            narrate(
                f"Nothing came on standard input within {INPUT_TIMEOUT_S:.0f} s: going on without it (`-` waits for it)."
            )
            return ""
        narrate("Waiting for what comes through the pipe (`< /dev/null` goes on without it).")
    return typed_in(MAX_INPUT_CHARS)
