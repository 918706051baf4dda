"""Commands that the person types: one shell that goes on, in processes that each end."""

from __future__ import annotations

import asyncio
import os
import shlex
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxchat.core.errors import CtxchatError
from ctxchat.core.ports import ToolOutput
from ctxchat.tools.person_shell import ENDED_WITH_IT, STOPPED_BY_SANDBOX, PersonShell
from ctxchat.tools.sandbox import Sandbox, find_sandbox
from tests.tools.test_shell import alive, gone, needs_sandbox, pids

KEY = "AKIA" + "Q3EGRZ7NPLX2MWVT"


async def ran(shell: PersonShell, line: str, *, outside: bool = False) -> ToolOutput:
    async with aclosing(shell.run(line, outside=outside)) as pieces:
        found = [piece async for piece in pieces]
    assert isinstance(found[-1], ToolOutput)
    return found[-1]


def shell_in(workspace: Path, sandbox: Sandbox | None = None) -> PersonShell:
    session = workspace.parent / "session"
    return PersonShell(
        sandbox or Sandbox(), os.environ, str(workspace), str(session), lambda t: t.replace(KEY, "‹key›")
    )


async def test_folder_variables_and_functions_are_there_for_the_next_command(workspace: Path) -> None:
    shell = shell_in(workspace)
    (workspace / "sub").mkdir()
    assert (await ran(shell, "X='a\tb'; cd sub; greet() { echo hi $1; }")).exit_code == 0
    assert (await ran(shell, 'pwd; echo "$X"; greet you; cd -')).text == f"{workspace}/sub\na\tb\nhi you\n{workspace}"
    assert (await ran(shell, "unset HOME X; exit 4")).exit_code == 4
    assert (await ran(shell, "echo [$HOME$X]; pwd")).text == f"[]\n{workspace}"
    assert "syntax error" in (await ran(shell, "echo )")).text
    await ran(shell, "mkdir gone; cd gone; rmdir ../gone")
    assert "No such file" in (await ran(shell, "pwd")).text


@settings(max_examples=15, deadline=None)
@given(value=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40))
def test_a_variable_of_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    workspace = tmp_path_factory.mktemp("w").resolve()

    async def there_and_back() -> None:
        shell = shell_in(workspace)
        await ran(shell, f"V={shlex.quote(value)}")
        await ran(shell, 'printf %s "$V" > out')

    asyncio.run(there_and_back())
    assert (workspace / "out").read_bytes() == value.encode()


async def test_one_that_is_stopped_ends_with_all_it_began_and_changes_nothing(workspace: Path) -> None:
    shell = shell_in(workspace)
    await ran(shell, "X=1")

    async def endless() -> None:
        await ran(shell, "X=2; sleep 300 & echo $! > pids; cd /; sleep 300")

    task = asyncio.create_task(endless())
    (pid,) = await pids(workspace / "pids", 1)
    assert alive(pid)
    with pytest.raises(CtxchatError, match="is running"):
        await ran(shell, "echo")
    task.cancel()
    await asyncio.wait({task})
    assert await gone(pid)
    assert (await ran(shell, "echo $X; pwd")).text == f"1\n{workspace}"
    assert ENDED_WITH_IT in (await ran(shell, "sleep 300 &")).text


async def test_what_it_says_is_masked_and_much_of_it_cut_in_the_middle(workspace: Path) -> None:
    shell = shell_in(workspace)
    said = [piece.text async for piece in shell.run(f"echo {KEY[:4]}'{KEY[4:]}'; seq 100000")]
    assert KEY not in "".join(said) and said[-1].startswith("‹key›\n1\n2\n") and said[-1].endswith("\n100000")
    assert len(said[-1]) < 50_000 and "left out" in said[-1]


@needs_sandbox
async def test_the_shell_in_the_sandbox_and_the_one_outside_know_nothing_of_each_other(
    workspace: Path,
) -> None:
    shell = shell_in(workspace, find_sandbox())
    outside = workspace.parent / "elsewhere"
    outside.mkdir()
    found = await ran(shell, f"PATH={workspace}:$PATH; EVIL=1; touch /usr/ctxchat-was-here {outside}/x")
    assert found.exit_code == 1 and STOPPED_BY_SANDBOX in found.text and not list(outside.iterdir())
    found = await ran(shell, f"touch {outside}/x; echo $EVIL $PATH", outside=True)
    assert found.exit_code == 0 and str(workspace) not in found.text and list(outside.iterdir())
    assert (await ran(shell, "echo $EVIL")).text == "1"
