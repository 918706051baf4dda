"""shell with real processes: output, ends of every kind, and nothing left running."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.core.errors import ToolError
from ctxchat.core.permissions import Grant
from ctxchat.core.ports import ToolContext, ToolOutput, ToolText
from ctxchat.tools.processes import child, environment
from ctxchat.tools.sandbox import Sandbox, find_sandbox, known_needs, seatbelt_profile, stopped_by_sandbox
from ctxchat.tools.shell import ENDED_WITH_CALL, MAX_COMMAND_CHARS, Shell
from ctxchat.tools.text import HeadTail, clip, clip_line

bare = Shell(Sandbox(), os.environ)
here = find_sandbox()
shut_in = Shell(here, os.environ)
needs_sandbox = pytest.mark.skipif(here.kind != "bubblewrap", reason="bubblewrap does not work here")


def alive(pid: int) -> bool:
    """A process that is there and not just unburied."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def gone(pid: int) -> bool:
    for _ in range(3000):
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def pids(file: Path, count: int) -> list[int]:
    """Wait until a command has written that many process ids."""
    for _ in range(3000):
        if file.exists() and len(found := file.read_text().split()) == count:  # noqa: ASYNC240
            return [int(pid) for pid in found]
        await asyncio.sleep(0.02)
    raise AssertionError("the command did not start")


async def test_output_and_exit_code(call: Callable, workspace: Path) -> None:
    found = await call(bare, command="pwd; echo error >&2")
    assert found == ToolOutput(f"{workspace}\nerror", exit_code=0)
    found = await call(bare, command="echo x; exit 3")
    assert (found.text, found.status, found.exit_code) == ("x\n[exit code 3]", "error", 3)
    assert (await call(bare, command="true")).text == "[no output]"
    assert "[ended by signal 9]" in (await call(bare, command="kill -9 $$")).text


async def test_output_comes_while_it_works(context: ToolContext) -> None:
    async with aclosing(bare.run({"command": "echo first; read -t 30 x <> <(:); echo second"}, context)) as pieces:
        piece = await anext(pieces)
        assert piece == ToolText("first\n")


async def test_nothing_waits_for_an_editor_a_pager_or_a_password(
    call: Callable, workspace: Path, tmp_path: Path
) -> None:
    waits = tmp_path / "waits"
    waits.write_text("#!/bin/sh\nsleep 60\n")
    waits.chmod(0o755)
    theirs = dict.fromkeys(
        ("EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "PAGER", "MANPAGER", "GIT_PAGER"), str(waits)
    )
    theirs |= {"SSH_ASKPASS": str(waits), "GIT_ASKPASS": str(waits), "GIT_TERMINAL_PROMPT": "1", "HOME": str(tmp_path)}
    shell = Shell(Sandbox(), {**os.environ, **theirs})
    await call(
        shell, command="git init -q . && git config user.email a@b.c && git config user.name n && touch a && git add a"
    )
    assert "empty commit message" in (await call(shell, command="git commit", timeout=20)).text
    assert (
        await call(shell, command="git commit -qm first && git commit --amend && git log", timeout=20)
    ).status == "ok"
    assert (
        await call(shell, command="$VISUAL a; $PAGER a; printf '%s' \"$SSH_ASKPASS$GIT_ASKPASS\"", timeout=20)
    ).text == "[no output]"


async def test_what_a_person_set_for_their_terminal_changes_no_output(
    call: Callable, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "else/sub").mkdir(parents=True)
    (workspace / "sub").mkdir()
    theirs = {
        "FORCE_COLOR": "1",
        "CLICOLOR_FORCE": "1",
        "CDPATH": str(tmp_path / "else"),
        "COLUMNS": "20",
        "SHELLOPTS": "xtrace",
    }
    shell = Shell(Sandbox(), {**os.environ, **theirs})
    found = await call(shell, command="cd sub && pwd; env | grep -E 'FORCE|COLUMNS' || echo none")
    assert found.text == f"{workspace}/sub\nnone"
    found = await call(
        shell, command="printf 'a\\rb\\n\\033[31mred\\033[0m\\n'; for i in $(seq 2000); do printf '\\r%s' $i; done"
    )
    assert found.text == "b\nred\n2000\n[drawn over 2,000 times: lines are shown as they were last]"


@needs_sandbox
async def test_inside_temporary_files_have_a_place(call: Callable, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    shell = Shell(here, {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "TEMP": "/nowhere"})
    assert (await call(shell, command="mktemp -u; echo $TEMP")).text.startswith("/tmp/tmp.")


async def test_there_is_no_input(call: Callable) -> None:
    assert (await call(bare, command="cat; echo end")).text == "end"


async def test_a_time_out_ends_the_whole_group(call: Callable, workspace: Path) -> None:
    found = await call(bare, command="sleep 60 & echo $! > pids; echo begun; sleep 60", timeout=3)
    assert (found.status, found.exit_code) == ("timeout", None)
    assert found.text == "begun\n[stopped after 3 s: time-out]"
    assert await gone((await pids(workspace / "pids", 1))[0])


async def test_cancelling_ends_the_whole_group_even_a_deaf_one(context: ToolContext, workspace: Path) -> None:
    command = "trap '' TERM; (trap '' TERM; echo $BASHPID >> pids; while :; do sleep 1; done) & echo $$ >> pids; wait"

    async def consume() -> None:
        async with aclosing(bare.run({"command": command}, context)) as pieces:
            async for _ in pieces:
                pass

    task = asyncio.create_task(consume())
    started = await pids(workspace / "pids", 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [await gone(pid) for pid in started] == [True, True]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc")
async def test_cancelling_before_we_heard_of_the_start_ends_the_children_too(workspace: Path) -> None:
    file = workspace / "pids"

    async def use() -> None:
        async with child(["bash", "-c", "sleep 3000 & echo $! $$ > pids; wait"], cwd=workspace):
            await asyncio.sleep(3000)

    def children() -> set[str]:
        return {pid for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()}

    before = children()  # what tests before this one left running
    task = asyncio.create_task(use())
    while children() <= before:  # noqa: ASYNC110
        await asyncio.sleep(0)
    for _ in range(6000):  # it runs, and the loop is not let hear of it
        if file.exists() and len(file.read_text().split()) == 2:
            break
        time.sleep(0.01)  # noqa: ASYNC251
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [await gone(int(pid)) for pid in file.read_text().split()] == [True, True]


async def test_cancelling_twice_still_kills(context: ToolContext, workspace: Path) -> None:
    async def consume() -> None:
        async for _ in bare.run({"command": "trap '' TERM; echo $$ > pids; while :; do sleep 1; done"}, context):
            pass

    task = asyncio.create_task(consume())
    (pid,) = await pids(workspace / "pids", 1)
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)


async def test_closing_the_iterator_ends_it(context: ToolContext, workspace: Path) -> None:
    pieces = bare.run({"command": "echo $$ > pids; echo go; sleep 60"}, context)
    assert await anext(pieces) == ToolText("go\n")
    await pieces.aclose()
    assert await gone(int((workspace / "pids").read_text()))


async def test_an_orphan_that_holds_the_pipe_does_not_hang_it(call: Callable, workspace: Path) -> None:
    start = time.monotonic()
    found = await call(bare, command="(sleep 60 & echo $! > pids); echo done", timeout=50)
    assert (found.text, found.status) == (f"done\n{ENDED_WITH_CALL}", "ok")
    assert time.monotonic() - start < 40
    assert await gone(int((workspace / "pids").read_text()))


async def test_an_endless_writer_costs_no_memory(context: ToolContext) -> None:
    small = ToolContext("c", context.workspace, max_chars=3000)
    shown = 0
    async for piece in bare.run({"command": "yes", "timeout": 4}, small):
        if isinstance(piece, ToolOutput):
            assert piece.status == "timeout"
            assert len(piece.text) < 3100
            assert re.search(r"\n\[… [\d.]+ [MG]B left out …\]\n", piece.text)
        else:
            assert len(piece.text) < 8100
            shown += 1
    assert 1 <= shown <= 41


async def test_keys_are_not_passed_on(call: Callable) -> None:
    given_ = {
        **os.environ,
        "OPENAI_API_KEY": "k",
        "GH_TOKEN": "k",
        "MY_SECRETS": "k",
        "db_password": "k",
        "TOKENIZERS": "v",
    }
    found = (await call(Shell(Sandbox(), given_, keep=["GH_TOKEN"]), command="env")).text
    assert "OPENAI_API_KEY" not in found
    assert "MY_SECRETS" not in found
    assert "db_password" not in found
    assert "GH_TOKEN=k" in found
    assert "TOKENIZERS=v" in found


HOLD_KEYS = [
    "AWS_SECRET_ACCESS_KEY", "X_API_KEY", "APIKEY", "MYAPIKEY", "OPENAIKEY", "OPENAI_API_KEY", "SSH_AUTH_SOCK",
    "NPM_TOKEN", "GH_TOKEN", "GITHUB_PAT", "PGPASSWORD", "MYSQL_PWD", "SSHPASS", "REDISCLI_AUTH",
    "DOCKER_AUTH_CONFIG", "NPM_CONFIG__AUTH", "ANSIBLE_VAULT_PASS", "ANSIBLE_VAULT_PASSWORD", "SENTRY_DSN",
    "AZURE_STORAGE_CONNECTION_STRING", "JWT", "JWT_PRIVATE", "MY_JWT", "BORG_PASSPHRASE", "HF_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS", "SLACK_WEBHOOK_URL", "db_password",
]  # fmt: skip
HOLD_NONE = [
    "PATH", "PWD", "OLDPWD", "KEYBOARD", "KEYBOARD_LAYOUT", "MONKEY", "XAUTHORITY", "LANG", "HOME", "TOKENIZERS",
    "AUTHOR", "GIT_AUTHOR_NAME", "COMPASS", "PYTHONPATH", "VIRTUAL_ENV", "DISPLAY", "PATTERN",
    "DATABASE_URL",
]  # fmt: skip


def test_names_that_hold_keys() -> None:
    passed = environment(dict.fromkeys([*HOLD_KEYS, *HOLD_NONE], "v"))
    assert sorted(name for name, value in passed.items() if value == "v") == sorted(HOLD_NONE)


def test_addresses_that_hold_passwords() -> None:
    given_ = {
        "DATABASE_URL": "postgres://me:hunter2@db/x",
        "CACHE": "redis://:hunter2@cache",
        "BROKER": "a,amqp://me:hunter2@x",
        "REMOTE": "ssh://git@host:22/x",
        "SITE": "http://localhost:8080/a@b",
        "PROXY": "http://proxy:3128",
    }
    assert environment(given_).keys() & given_.keys() == {"REMOTE", "SITE", "PROXY"}
    assert environment(given_, keep=["CACHE"])["CACHE"] == given_["CACHE"]


@pytest.mark.parametrize("command", ["", "  ", "a\0b"])
def test_empty_commands(command: str, context: ToolContext) -> None:
    with pytest.raises(ToolError):
        bare.access_request({"command": command}, context)


async def test_unwritable_characters(call: Callable) -> None:
    with pytest.raises(ToolError):
        await call(bare, command="echo \ud800")


def test_the_demand_shows_the_whole_command(context: ToolContext) -> None:
    access_request = Shell(Sandbox(), os.environ).access_request({"command": "echo a\necho b"}, context)
    assert (access_request.access, access_request.preview, access_request.summary) == (
        "run",
        "echo a\necho b",
        "run echo a … (no sandbox)",
    )
    assert [[word.text for word in part.words] for part in access_request.parts] == [["echo", "a"], ["echo", "b"]]


def test_what_a_call_asks_for_beyond_the_sandbox_is_in_the_question(context: ToolContext, tmp_path: Path) -> None:
    secret = tmp_path / "home" / ".ssh"
    (tmp_path / "cache").mkdir()
    secret.mkdir(parents=True)
    shell = Shell(Sandbox("bubblewrap", "/usr/bin/bwrap", hidden=(str(secret),)), os.environ)
    asked = {
        "command": "uv sync",
        "network": True,
        "folders": [f"{tmp_path}/cache"],
        "why": "to install\nwhat it needs",
    }
    access_request = shell.access_request(asked, context)
    assert access_request.asks == Grant(network=True, folders=(f"{tmp_path}/cache",))
    assert (
        access_request.summary
        == f"run uv sync (asks for the network and writing in {tmp_path}/cache: to install what it needs)"
    )
    assert not access_request.allowance.network and access_request.allowance.outside, (
        "a yes gives what is asked for: there is no tick for it"
    )
    assert f"{tmp_path}/cache" not in access_request.allowance.folders
    elsewhere = f"date > {tmp_path}/cache/x; date > {tmp_path}/gone/x; date > {secret}/x; date > /tmp/x; date > y"
    offered = shell.access_request({"command": elsewhere}, ToolContext("c2", str(tmp_path / "work"))).allowance
    assert offered == Grant(True, (f"{tmp_path}/cache",), True), "where it writes a file, a person can open the folder"
    for folder in (secret, secret.parent, tmp_path / "gone", "/"):
        with pytest.raises(ToolError, match="cannot be opened to a command"):
            shell.access_request({"command": "x", "folders": [str(folder)]}, context)
    assert not shell.access_request({"command": "x"}, context).asks
    unshut = Shell(Sandbox(), os.environ).access_request(
        asked, context
    )  # not `bare`: it would hold others' calls to this one
    assert not unshut.asks and not unshut.allowance
    open_ = Shell(Sandbox("bubblewrap", "/usr/bin/bwrap", network=True), os.environ)
    assert not open_.access_request({"command": "x", "network": True}, context).asks


def test_what_commands_are_known_to_need(tmp_path: Path) -> None:
    assert known_needs("git add . && git commit -m x", "/w") == ("/w/.git",)
    assert known_needs("git status; git -C x log", "/w") == known_needs("ls", "/w") == ()
    assert known_needs("git --no-pager -P push", "/w") == ("/w/.git",)
    assert known_needs("git -c user.name='A B' --git-dir .git commit -m x", "/w") == ("/w/.git",)
    assert known_needs("git -C .. commit -m x", "/w") == ()
    for folder in ("src/sub", "own/.git", "own/src"):
        (tmp_path / folder).mkdir(parents=True)
    needs = known_needs("git -C src/sub commit -m x && git -C own -C 'src' add .", str(tmp_path))
    assert needs == (f"{tmp_path}/.git", f"{tmp_path}/own/.git")


@pytest.mark.parametrize("line", ["git -", "git ", "git -S;", "git -a ", "git -;", "git -C ", "git -C 'a", "git -c x "])
def test_what_a_command_as_long_as_any_needs_is_found_at_once(line: str) -> None:
    """Some of these took ten seconds and more."""
    command = line * (MAX_COMMAND_CHARS // len(line))
    assert known_needs(command, "/w") == ()
    keys = stopped_by_sandbox(command, "agent", Sandbox("bubblewrap"), "/w", Grant(), failed=True)
    assert bool(keys) == (line == "git -S;"), "none of them signs but the one that asks for it"


@needs_sandbox
async def test_inside_only_the_workspace_can_be_written(call: Callable, workspace: Path, tmp_path: Path) -> None:
    found = await call(shut_in, command=f"echo in > in.txt; echo out > {tmp_path}/out.txt; echo x > ~/ctxchat-test")
    assert (workspace / "in.txt").read_text() == "in\n"
    assert not (tmp_path / "out.txt").exists()
    assert "Read-only file system" in found.text
    assert shut_in.sandbox == "bubblewrap"


@needs_sandbox
async def test_inside_there_is_no_network_and_a_private_tmp(call: Callable) -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        command = f"(echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached || echo refused; ls /tmp | wc -l"
        assert (await call(shut_in, command=command)).text.startswith("refused")
        open_net = Shell(Sandbox("bubblewrap", "/usr/bin/bwrap", network=True), os.environ)
        assert (await call(open_net, command=command)).text.startswith("reached")


@needs_sandbox
async def test_what_one_command_leaves_in_tmp_the_next_one_finds(call: Callable, context: ToolContext) -> None:
    name = f"left-{time.time_ns()}"
    await call(shut_in, command=f"echo here > /tmp/{name}")
    assert (await call(shut_in, command=f"cat /tmp/{name}")).text == "here"
    assert (Path(context.session_folder) / "tmp" / name).read_text() == "here\n"
    assert (await call(bare, command=f"ls /tmp/{name}")).exit_code


@needs_sandbox
async def test_inside_secrets_are_hidden(call: Callable, tmp_path: Path) -> None:
    folder, file = tmp_path / ".ssh", tmp_path / ".netrc"
    folder.mkdir()
    (folder / "id_ed25519").write_text("private")
    file.write_text("password")
    sandbox = find_sandbox(hidden=[folder, file, folder / "id_ed25519", tmp_path / "not-there"])
    found = await call(Shell(sandbox, os.environ), command=f"ls {folder}; cat {file} {folder}/id_ed25519")
    assert "private" not in found.text
    assert "password" not in found.text


@needs_sandbox
async def test_inside_nothing_outlives_the_call(context: ToolContext, workspace: Path) -> None:
    mark = f"{time.time_ns()}"
    pieces = shut_in.run({"command": f"setsid sleep 6{mark[-6:]} & echo go; sleep 60"}, context)
    assert await anext(pieces) == ToolText("go\n")
    await pieces.aclose()
    for _ in range(3000):
        if f"6{mark[-6:]}" not in _commands():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("still there")


def _commands() -> str:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_text())
    return "\n".join(found)


def test_the_seatbelt_profile_quotes_paths() -> None:
    profile = seatbelt_profile(Sandbox("seatbelt", "/usr/bin/sandbox-exec", hidden=("/secret",)), '/place/a"b\\c')
    assert '(allow file-write* (subpath "/place/a\\"b\\\\c"))' in profile
    assert profile.endswith("(deny network*)")


def test_the_seatbelt_profile_guards_what_can_run_later_in_whichever_case() -> None:
    profile = seatbelt_profile(Sandbox("seatbelt", "/usr/bin/sandbox-exec"), "/wo.rk")
    denied = [re.compile(found) for found in re.findall(r'\(deny file-write\* \(regex #"([^"]*)"\)\)', profile)]
    for path in (
        ".git",
        ".git/config",
        "a/.GIT/hooks/x",
        "a/b/.vsCode/tasks.json",
        "Jenkinsfile.x",
        "x/.gitlab-ci.yml",
        "b/HEAD",
    ):
        assert any(each.match(f"/wo.rk/{path}") for each in denied), path
    for path in ("git", "a.git", "x.gitignore", "head/x", "gitlab-ci.yml", "a/vscode/x"):
        assert not any(each.match(f"/wo.rk/{path}") for each in denied), path
    assert not any(each.match("/woxrk/.git") for each in denied)


@given(st.lists(st.text("aä€😀", max_size=12), max_size=12), st.integers(3, 40))
def test_head_and_tail_cut_between_characters(pieces: list[str], cap: int) -> None:
    kept = HeadTail(cap)
    for piece in pieces:
        kept.add(piece.encode())
    whole = "".join(pieces)
    text = kept.text()
    assert "\ufffd" not in text
    if len(whole.encode()) <= cap:
        assert text == whole
    if text != whole:
        head, tail = re.split(r"\n\[… \d+ bytes left out …\]\n", text)
        assert whole.startswith(head)
        assert whole.endswith(tail)
        left_out = int(re.search(r"(\d+) bytes left out", text)[1])
        assert len((head + tail).encode()) + left_out == len(whole.encode())
        assert len((head + tail).encode()) <= cap


@given(st.text(max_size=60), st.integers(3, 40), st.integers(0, 60))
def test_clips_count_what_they_leave_out(text: str, limit: int, at: int) -> None:
    assert clip(text, limit) == text or f"[… {len(text) - limit:,} characters left out …]" in clip(text, limit)
    line = clip_line(text, limit, at)
    left_out = [int(a or b) for a, b in re.findall(r"\[(\d+) characters …\]|\[… (\d+) characters\]", line)]
    assert line == text or all(n > 20 for n in left_out), "a mark is not longer than what it stands for"
    assert len(re.sub(r"\[\d+ characters …\]|\[… \d+ characters\]", "", line)) + sum(left_out) == len(text)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
async def test_a_daemon_ends_with_the_call_that_began_it(call: Callable, workspace: Path) -> None:
    daemon = "(setsid bash -c 'echo $$ > pid; exec sleep 3000' &)"
    assert (await call(bare, command=f"{daemon}; until test -s pid; do sleep 0.02; done; echo begun")).text.startswith(
        "begun"
    )
    assert await gone(*await pids(workspace / "pid", 1))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps what is lost")
@pytest.mark.parametrize("how", ["ended", "stopped"])
async def test_a_daemon_that_forgets_where_it_comes_from_ends_with_the_call_too(
    how: str, context: ToolContext, workspace: Path
) -> None:
    daemon = (
        "(setsid env -i /bin/bash -c 'echo $$ > pid; exec /bin/sleep 3000' &); until test -s pid; do sleep 0.02; done"
    )
    pieces = bare.run({"command": f"{daemon}; echo begun{'; sleep 60' * (how == 'stopped')}"}, context)
    async with aclosing(pieces):
        assert await anext(pieces) == ToolText("begun\n")
        if how == "ended":
            assert [piece async for piece in pieces] == [ToolOutput(f"begun\n{ENDED_WITH_CALL}", exit_code=0)]
    assert await gone(*await pids(workspace / "pid", 1))


def test_a_variable_that_holds_a_key_is_not_passed_on_whatever_it_is_called() -> None:
    keys = {
        "HOMEPAGE": "ghp_a8Kd93jfLq02MzXc7VbN1pQwErTyUi45abcd",
        "NOTE": "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    }
    plain = {
        "PATH": "/usr/local/bin:/usr/bin",
        "PROJECT": "a-name-with-many-letters-2026",
        "DIGEST": "d41d8cd98f00b204e9800998ecf8427e",
    }
    assert environment({**keys, **plain}).keys() & {*keys, *plain} == set(plain)
    assert environment(keys, keep=["NOTE"])["NOTE"] == keys["NOTE"]


def test_a_command_no_system_takes_is_refused_at_once(context: ToolContext) -> None:
    with pytest.raises(ToolError, match="200,005 characters long"):
        bare.access_request({"command": "echo " + "x" * 200_000}, context)


async def test_zeros_are_not_passed_on_where_servers_would_end_a_text(call: Callable) -> None:
    assert (await call(bare, command="printf 'a\\0b'")).text == "a\ufffdb"


def test_long_lines_of_output_are_no_messages_and_take_no_time() -> None:
    """Each of these took minutes."""
    sandbox = Sandbox("bubblewrap", "bwrap")
    for line in (
        "a" * 400_000,
        "\0" * 400_000,
        f"{'a' * 490}\n" * 800,
        "no such file " * 30_000,
        ("a: " * 160 + "\n") * 800,
    ):
        assert stopped_by_sandbox("x", line, sandbox, "/w", Grant(), failed=True) == []
    said = f"{'x' * 600}\ncat: {Path.home()}/notes: No such file or directory\n"
    assert "toolchains only" in stopped_by_sandbox("x", said, sandbox, "/w", Grant(), failed=True)[0]


def test_a_private_folder_is_named_where_a_file_of_others_is_looked_for(tmp_path: Path) -> None:
    theirs = Path("/tmp") / f"ctxchat-{tmp_path.name}"
    theirs.touch()
    try:
        said = f"cat: {theirs}: No such file or directory"
        (note,) = stopped_by_sandbox("x", said, Sandbox("bubblewrap"), "/w", Grant(), failed=True)
        assert note.startswith("[/tmp is the commands' own") and "run outside" in note
    finally:
        theirs.unlink()
    assert stopped_by_sandbox("x", said, Sandbox("bubblewrap"), "/w", Grant(), failed=True) == []


def test_a_command_that_counts_as_reading_is_told_that_it_could_write_nothing() -> None:
    said = "touch: cannot touch '/w/x': Read-only file system"
    (note,) = stopped_by_sandbox("x", said, Sandbox("bubblewrap"), "/w", Grant(), failed=True, read_only=True)
    assert "only reads" in note and "workspace can be written" not in note
