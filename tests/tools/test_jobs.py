"""Background commands with real processes: output, input, ends of every kind, and nothing left running."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from ctxchat.agent.turn.permissions import judge
from ctxchat.core.errors import ToolError
from ctxchat.core.jobs import JobRow
from ctxchat.core.permissions import AccessRequest, Grant, parse_rule
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.tools.command_line import leaves_something_running
from ctxchat.tools.job_keeper import MAX_FILE_BYTES
from ctxchat.tools.jobs import MAX_RUNNING, RECORDS, Job, JobList, Jobs, JobTool
from ctxchat.tools.sandbox import Sandbox, find_sandbox
from ctxchat.tools.shell import ENDED_WITH_CALL, Shell
from tests.tools.test_shell import alive, gone, pids

SANDBOXES = [Sandbox(), *([here] if (here := find_sandbox()).kind == "bubblewrap" else [])]


class Desk:
    """The two tools of one session, called as the agent calls them."""

    def __init__(self, context: ToolContext, sandbox: Sandbox) -> None:
        self.jobs, self.context = Jobs(), context
        self.shell, self.job = Shell(sandbox, os.environ, jobs=self.jobs), JobTool(self.jobs)

    async def __call__(self, tool: Shell | JobTool, **arguments: object) -> str:
        last = None
        async for piece in tool.run(arguments, self.context):
            last = piece
        assert isinstance(last, ToolOutput)
        return last.text


def kept(row: JobRow) -> tuple[str, int]:
    """The output in the file of a job, and the file's mode."""
    return Path(row.file).read_text(), Path(row.file).stat().st_mode & 0o777


def running_commands() -> list[bytes]:
    """The command lines of all processes."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(place.read_bytes().replace(b"\0", b" "))
    return found


@pytest.fixture(params=SANDBOXES, ids=lambda s: s.kind or "bare")
async def desk(context: ToolContext, request: pytest.FixtureRequest) -> AsyncGenerator[Desk, None]:
    desk = Desk(context, request.param)
    yield desk
    await desk.jobs.close()


async def test_a_server_goes_on_is_looked_at_fed_and_ended(desk: Desk, context: ToolContext) -> None:
    begun = await desk(
        desk.shell, command="echo up; while read line; do echo got $line; done; echo over", background=True
    )
    assert begun.startswith("[j1: running") and begun.endswith("\nup")
    assert "no new output" in await desk(desk.job, id="j1")
    assert (await desk(desk.job, id="j1", action="send", text="hello")).endswith("\ngot hello")
    assert "j1: running" in await desk(desk.job)
    assert "j1 `echo up" in await JobList(desk.jobs).provide()
    assert "[j1: stopped" in await desk(desk.job, id="j1", action="stop")
    assert await JobList(desk.jobs).provide() == "", "it was seen to end"
    with pytest.raises(ToolError, match="takes no input"):
        await desk(desk.job, id="j1", action="send", text="more")
    (row,) = desk.jobs.rows
    assert kept(row) == ("up\ngot hello\n", 0o600)


async def test_an_end_is_waited_for_and_told(desk: Desk) -> None:
    await desk(desk.shell, command="sleep 1.2; echo done; exit 3", background=True)
    assert "j1 `sleep 1.2; echo done; exit 3`: running" in await JobList(desk.jobs).provide()
    waited = await desk(desk.job, id="j1", action="wait", seconds=60)
    assert waited.startswith("[j1: ended with exit code 3") and waited.endswith("\ndone")
    quick = await desk(desk.shell, command="exit 4", background=True)
    assert quick.startswith("[j2: ended with exit code 4"), "what ends at once is told at once"
    limited = await desk(desk.shell, command="sleep 60", background=True, timeout=1)
    assert "running" in limited
    assert "[j3: stopped" in await desk(desk.job, id="j3", action="wait", seconds=60)


async def test_nothing_is_left_when_the_session_ends(desk: Desk, workspace: Path) -> None:
    await desk(desk.shell, command="sleep 3047 & echo $$ $! > pids; wait", background=True)
    running = await pids(workspace / "pids", 2)
    await desk.jobs.close()
    if desk.shell.sandbox:  # numbers of a namespace of its own
        assert not any(b"sleep 3047" in line for line in running_commands())
    else:
        assert all([await gone(pid) for pid in running])
    with pytest.raises(ToolError):
        await desk(desk.shell, command="true", background=True)


async def test_very_much_output_costs_little_and_a_held_pipe_nothing(desk: Desk, context: ToolContext) -> None:
    await desk(desk.shell, command="head -c 100000000 /dev/zero | tr '\\0' 'a'; echo; echo end", background=True)
    waited = await desk(desk.job, id="j1", action="wait", seconds=300)
    assert "ended with exit code 0" in waited and waited.endswith("\nend") and len(waited) < 2 * context.max_chars
    assert len(kept(desk.jobs.rows[0])[0]) < MAX_FILE_BYTES + 100_000
    held = await desk(desk.shell, command="sleep 300 & echo gone", background=True)
    assert "ended with exit code 0" in held or "ended" in await desk(desk.job, id="j2", action="wait", seconds=20)


def open_files() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


ENDS = (
    "exit {n}",
    "kill -9 $$",
    "sleep 71{n:03} & echo held",  # ends, and leaves somebody who holds the pipe
    "trap '' TERM; while :; do sleep 71{n:03}; done",  # deaf, until it is stopped
    "setsid sleep 71{n:03} & head -c 300000 /dev/zero; sleep 71{n:03}",
    "stty raw -echo < /dev/tty; cat > /dev/null; sleep 71{n:03}",
)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("many", [32, pytest.param(200, marks=pytest.mark.long)])
async def test_many_come_and_go_and_leave_nothing(desk: Desk, context: ToolContext, many: int) -> None:
    """Ended by themselves, killed, stopped, deaf, with a held pipe; no process, pipe, task or setting of a terminal is left."""
    open_before, tasks_before = open_files(), len(asyncio.all_tasks())
    for first in range(0, many, MAX_RUNNING):
        begun: list[Job] = []
        for n in range(first, min(many, first + MAX_RUNNING)):
            command = ENDS[n % len(ENDS)].format(n=n)
            begun.append(await desk.shell.begin(command, ["/bin/bash", "-c", command], context))
        by_themselves = [job for n, job in enumerate(begun, first) if n % len(ENDS) < 3]
        await asyncio.gather(*(job.wait(60) for job in by_themselves))
        await asyncio.gather(*(desk.jobs.stop(job.id) for job in begun))
    assert len(desk.jobs.rows) == many and not any(row.running for row in desk.jobs.rows)
    killed = "ended with exit code 137" if desk.shell.sandbox else "ended by signal 9"
    assert {"stopped", "ended with exit code 6", killed} <= {row.state for row in desk.jobs.rows}
    await desk.jobs.close()
    assert not [line for line in running_commands() if b"sleep 71" in line]
    assert open_files() <= open_before and len(asyncio.all_tasks()) <= tasks_before


async def test_so_many_at_once_and_no_more(context: ToolContext) -> None:
    desk = Desk(context, Sandbox())
    for _ in range(MAX_RUNNING):
        await desk.shell.begin("sleep 300", ["sleep", "300"], context)
    with pytest.raises(ToolError, match=f"{MAX_RUNNING} background commands run already"):
        await desk(desk.shell, command="true", background=True)
    await desk.jobs.close()
    assert not any(row.running for row in desk.jobs.rows)


@pytest.mark.skipif(find_sandbox().kind != "bubblewrap", reason="needs a network of its own")
@pytest.mark.parametrize("network", [False, True])
async def test_a_server_that_nobody_reaches_is_told_as_such(context: ToolContext, network: bool) -> None:
    desk = Desk(msgspec.structs.replace(context, allowance=Grant(network=network)), find_sandbox())
    serve = f"{sys.executable} -u -m http.server 0 --bind 127.0.0.1"
    text = await desk(desk.shell, command=serve, background=True)
    while "http://127.0.0.1:" not in text:
        text = await desk(desk.job, id="j1", action="wait", seconds=1)
    port = text.partition("http://127.0.0.1:")[2].partition("/")[0]
    shut_off = f"[it listens on port {port}, in a network of its own: neither you nor the user reach it."
    assert (shut_off in text) is not network
    asked = await desk(
        desk.shell, command=f"{sys.executable} -c 'import socket; socket.create_connection((\"localhost\", {port}))'"
    )
    assert ("each command has a network of its own" in asked) is not network and ("[exit code" in asked) is not network
    await desk.jobs.close()


def test_input_is_asked_about_as_a_command_is(context: ToolContext) -> None:
    jobs = Jobs()
    tool = JobTool(jobs)
    with pytest.raises(ToolError, match="no job j9"):
        tool.access_request({"id": "j9"}, context)
    assert tool.access_request({}, context) == AccessRequest("none", summary="list background commands")
    with pytest.raises(ToolError, match="wrong arguments"):
        tool.access_request({"id": "j1", "action": "burn"}, context)


async def test_sending_a_line_asks_and_looking_does_not(desk: Desk, context: ToolContext) -> None:
    await desk(desk.shell, command="cat", background=True)
    send = desk.job.access_request({"id": "j1", "action": "send", "text": "rm -rf ."}, context)
    assert send.access == "run" and send.target == "rm -rf ." and not send.shut_in
    assert desk.job.access_request({"id": "j1", "action": "stop"}, context).access == "none"


@pytest.mark.parametrize(
    ("command", "leaves"),
    [
        ("make", False),
        ("make &", True),
        ("a && b", False),
        ("a & b", True),
        ("echo '&'", False),
        ("x 2>&1", False),
        ("a & wait", False),
    ],
)
def test_what_goes_on_beside_is_seen(command: str, leaves: bool) -> None:
    assert leaves_something_running(command) is leaves


async def test_a_call_says_that_what_it_left_has_ended(context: ToolContext) -> None:
    desk = Desk(context, Sandbox())
    assert (await desk(desk.shell, command="sleep 300 & echo up")).endswith(ENDED_WITH_CALL)


async def test_one_that_was_let_go_is_there_again_and_ends_when_it_is_told(desk: Desk, workspace: Path) -> None:
    await desk(
        desk.shell,
        command="echo up; while [ ! -e more ]; do sleep 0.05; done; echo more; cat; sleep 3049",
        background=True,
    )
    await desk(desk.shell, command="sleep 3048", background=True)
    desk.jobs.keep("j1", going_on=True)
    await desk.jobs.close()
    assert [row.running for row in desk.jobs.rows] == [False, True]
    assert not any(b"sleep 3048" in line for line in running_commands())
    folder = desk.context.session_folder
    later = Jobs(folder)
    job = JobTool(later)
    assert "j1: running" in await desk(job) and "j1 `echo up" in await JobList(later).provide()
    (workspace / "more").touch()
    seen = await desk(job, id="j1", action="wait", seconds=0)
    while "more" not in seen:
        seen += await desk(job, id="j1", action="wait", seconds=0)
    with pytest.raises(ToolError, match="takes no input"):
        await desk(job, id="j1", action="send", text="x")
    again = await desk(Shell(Sandbox(), os.environ, jobs=later), command="exit 3", background=True)
    assert again.startswith("[j2: ended with exit code 3")
    await later.close()
    last = Jobs(folder)
    assert "[j1: stopped" in await desk(JobTool(last), id="j1", action="stop")
    assert not any(b"sleep 3049" in line for line in running_commands())
    assert kept(last.rows[0]) == ("up\nmore\n", 0o600)
    await last.close()
    assert not list((Path(folder) / RECORDS).iterdir()), "nothing is left of one that has ended"


async def test_one_that_was_let_go_ends_by_itself_and_says_how(desk: Desk, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    await desk(
        desk.shell,
        command="while [ ! -e more ]; do sleep 0.05; done; mkdir .vscode; touch .vscode/tasks.json; exit 4",
        background=True,
    )
    desk.jobs.keep("j1", going_on=True)
    await desk.jobs.close()
    (workspace / "more").touch()
    later = Jobs(desk.context.session_folder)
    told = await desk(JobTool(later), id="j1", action="wait", seconds=60)
    assert told.startswith("[j1: ended with exit code 4")
    assert (".vscode" in told and not (workspace / ".vscode").exists()) is bool(desk.shell.sandbox)
    await later.close()


async def test_one_that_was_let_go_does_not_outlive_its_session(desk: Desk) -> None:
    await desk(desk.shell, command="sleep 3050", background=True)
    desk.jobs.keep("j1", going_on=True)
    await desk.jobs.close()
    assert any(b"sleep 3050" in line for line in running_commands())
    shutil.rmtree(desk.context.session_folder)
    while any(b"sleep 3050" in line for line in running_commands()):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="who outlives a killed parent differs elsewhere")
async def test_a_kill_of_the_program_leaves_none(context: ToolContext, workspace: Path) -> None:
    program = f"""
import asyncio, os
from ctxchat.core.ports import ToolContext
from ctxchat.tools.jobs import Jobs
from ctxchat.tools.sandbox import Sandbox
from ctxchat.tools.shell import Shell
async def main():
    shell = Shell(Sandbox(), os.environ, jobs=Jobs())
    context = ToolContext("c", {str(workspace)!r}, {context.session_folder!r})
    async for _ in shell.run({{"command": "echo $$ > pids; sleep 300", "background": True}}, context):
        pass
    os.kill(os.getpid(), {int(signal.SIGKILL)})
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == -signal.SIGKILL
    (pid,) = await pids(workspace / "pids", 1)
    assert await gone(pid) and not alive(pid)


@pytest.mark.skipif(not find_sandbox().kind, reason="there is no sandbox here")
async def test_what_it_put_where_it_runs_later_is_named_and_what_a_person_made_meanwhile_stays(
    context: ToolContext, workspace: Path
) -> None:
    (workspace / ".git" / "objects").mkdir(parents=True)
    (workspace / ".github").mkdir()
    desk = Desk(context, find_sandbox())
    await desk(desk.shell, command="mkdir .vscode && touch .vscode/tasks.json && sleep 600", background=True)
    while not (workspace / ".vscode" / "tasks.json").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    for mine in (".git/rebase-merge", ".github/ci.yml"):  # the command could write neither
        (workspace / mine).mkdir()
    await desk.jobs.close()
    assert not (workspace / ".vscode").exists()
    assert (workspace / ".git/rebase-merge").exists() and (workspace / ".github/ci.yml").exists()
    (row,) = desk.jobs.rows
    assert ".vscode" in row.moved and "rebase" not in row.moved and "ci.yml" not in row.moved
    assert row.moved in await desk(desk.job, id="j1")


async def test_a_rule_that_forbids_a_command_holds_for_a_line_sent_to_one(context: ToolContext) -> None:
    desk = Desk(msgspec.structs.replace(context, allowance=Grant(outside=True)), Sandbox())
    await desk(desk.shell, command="bash", background=True)
    asked = desk.job.access_request({"id": "j1", "action": "send", "text": "rm -rf src"}, context)
    rule = parse_rule("deny shell: rm **")
    assert rule and judge("job", asked, "all", []).verdict == "allow"
    assert judge("job", asked, "all", [rule]).verdict == "ask"
    assert "no sandbox" in asked.summary
    await desk.jobs.close()
