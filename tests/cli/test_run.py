"""`ctxchat run` as scripts use it, over a real model server on loopback: a real program with real pipes and signals where these
are what counts, else in this process."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Home
from tests.cli.strict import complaints
from tests.cli.test_context import CONTEXT_FIELDS, adds_up, has
from tests.doubles.replies import call, calls, refuses, says
from tests.e2e.serving import model_options, serving

Kinds = dict[str, type | tuple[type, ...]]

EVENTS: dict[str, Kinds] = {
    "turn_started": {},
    "text_delta": {"text": str},
    "reasoning_delta": {"text": str},
    "tool_started": {"call_id": str, "name": str, "arguments": (dict, str)},
    "tool_progress": {"call_id": str, "text": str},
    "tool_finished": {
        "call_id": str, "name": str, "status": str, "output": str, "tokens": int, "seconds": (int, float),
    },
    "approval_requested": {"call_id": str, "name": str, "summary": str},
    "approval_resolved": {"call_id": str, "verdict": str, "rule": str},
    "usage": {"prompt": int, "completion": int, "cached": int, "reasoning": int, "cost_usd": (int, float)},
    "cache": {"state": str, "next_usd": dict, "next_seconds": dict},
    "context": CONTEXT_FIELDS,
    "retry": {"attempt": int, "after_seconds": (int, float), "cause": str},
    "notice": {"level": str, "text": str},
    "error": {"kind": str, "text": str, "hint": str},
    "turn_finished": {"status": str, "text": str, "rounds": int, "seconds": (int, float)},
}  # fmt: skip


@pytest.fixture
def harbour(home: Home) -> Home:
    """A person in a small repository."""
    home.put("README.md", "# Harbour logger\n\nThe gauge at Pier 7 reports every 90 s to the logger Cormorant.\n")
    home.put("src/gauge.py", 'LOGGER = "cormorant"\nINTERVAL = 90  # seconds\n')
    return home


def checked(lines: list[dict[str, Any]]) -> list[str]:
    """The types of the events, each with its head and fields, every gauge adding up."""
    assert [line["seq"] for line in lines] == list(range(lines[0]["seq"], lines[0]["seq"] + len(lines)))
    for line in lines:
        assert list(line)[:4] == ["type", "session", "seq", "at"]
        assert line["at"].endswith("Z")
        has(line, EVENTS[line["type"]])
        if line["type"] == "context":
            adds_up(line)
    return [line["type"] for line in lines]


def test_the_offline_assistant_answers_from_the_files(harbour: Home) -> None:
    ran = harbour.start("run", "Which logger does the tide gauge at Pier 7 report to?", "--json")
    assert (ran.code, ran.err) == (0, "")
    types = checked(ran.lines)
    assert (types[0], types[-1]) == ("turn_started", "turn_finished")
    assert {"tool_started", "tool_finished", "usage", "context", "text_delta"} <= set(types)
    last = ran.lines[-1]
    assert last["status"] == "done"
    assert "README.md:3" in last["text"]
    assert "Cormorant" in last["text"]


def test_the_answer_goes_to_standard_output_and_what_happened_beside_it_to_standard_error(
    harbour: Home, cli: Cli
) -> None:
    ran = cli("run", "Where is INTERVAL set?")
    assert ran.code == 0
    assert "src/gauge.py:2" in ran.out
    assert "grep" in ran.err
    assert "grep" not in ran.out


def test_through_litellm_with_parallel_calls_reasoning_and_usage(harbour: Home, cli: Cli) -> None:
    script = [
        calls(
            call("read_file", "call_a", path="README.md"),
            call("read_file", "call_b", path="src/gauge.py"),
            reasoning="Both at once.",
        ),
        says("To Cormorant, every 90 s (README.md:3, src/gauge.py:2).", cached=64),
    ]
    with serving(script) as double:
        ran = cli("run", "Which logger?", "--json", *model_options(double))
    assert ran.code == 0, ran.err
    types = checked(ran.lines)
    assert types.count("tool_finished") == 2
    assert "".join(line["text"] for line in ran.lines if line["type"] == "reasoning_delta") == "Both at once."
    assert ran.lines[-1]["text"].startswith("To Cormorant")
    assert ran.lines[-1]["rounds"] == 2
    gauges = [line for line in ran.lines if line["type"] == "context"]
    assert gauges[0]["estimated"] is True
    assert gauges[-1]["estimated"] is False
    usage = [line for line in ran.lines if line["type"] == "usage"][-1]
    assert gauges[-1]["used"] == usage["prompt"] + usage["completion"]
    assert usage["cached"] == 64
    results = [m for m in double.requests[1].body["messages"] if m["role"] == "tool"]
    assert ["Harbour" in results[0]["content"], "INTERVAL" in results[1]["content"]] == [True, True]
    assert complaints(double.requests[1].body["messages"], user_after_tool=True) == []


@pytest.mark.parametrize(
    ("prompt", "piped", "text"),
    [
        (["Sum this up:"], "a piped text\n", "Sum this up:\n\na piped text"),
        (["-"], "only piped", "only piped"),
        ([], "no prompt at all", "no prompt at all"),
    ],
)
def test_a_pipe_is_read_with_the_prompt_or_instead_of_it(
    harbour: Home, cli: Cli, monkeypatch: pytest.MonkeyPatch, prompt: list[str], piped: str, text: str
) -> None:
    with Path(harbour.put("piped.txt", piped)).open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        ran = cli("run", *prompt, "--json")
    assert ran.code == 0
    assert ran.lines[0]["text"] == text


def test_what_a_model_writes_moves_nothing_in_a_terminal_behind_a_pipe(harbour: Home, cli: Cli) -> None:
    written = "red \x1b[31mhot\x1b]0;mine\x07 \u202eback\ttab\r\nend"
    with serving([says(written), says(written)]) as double:
        ran = cli("run", "Go", *model_options(double))
        raw = cli("run", "Go", "--raw", *model_options(double))
    assert ran.code == raw.code == 0
    assert "\ttab\nend" in ran.out and not set(ran.out) & set("\x1b\x07\u202e\r")
    assert "\x1b[31m" in raw.out


def test_only_typed_words_name_files_and_those_outside_go_nowhere(
    harbour: Home, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (harbour.work.parent / "key").write_text("stolen words")
    piped = harbour.put("piped.txt", f"see @README.md and @{harbour.work.parent}/key")
    with Path(piped).open(encoding="utf-8") as file, serving([says("ok")]) as double:
        monkeypatch.setattr(sys, "stdin", file)
        ran = cli("run", "Look: @src/gauge.py @../key", *model_options(double))
    assert ran.code == 0 and "outside this folder" in ran.err
    sent = str(double.requests[0].body["messages"])
    assert "INTERVAL = 90" in sent and "reports every 90 s" not in sent and "stolen words" not in sent


def test_an_empty_pipe_and_no_prompt_is_wrong_usage(harbour: Home) -> None:
    assert harbour.start("run", input="").code == 2


def test_going_on_with_the_newest_session_of_this_folder(harbour: Home, cli: Cli, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = cli("run", "Where is INTERVAL set?", "--json").lines
    refused = cli("run", "Hello?", "--continue", "--cwd", str(elsewhere))
    assert (refused.code, str(elsewhere) in refused.err) == (2, True)
    other = cli("run", "Hello?", "--json", "--cwd", str(elsewhere)).lines
    assert other[0]["session"] != first[0]["session"]
    second = cli("run", "And LOGGER?", "--continue", "--json").lines
    assert second[0]["session"] == first[0]["session"]
    assert (first[0]["turn"], second[0]["turn"]) == (1, 2)


def test_nobody_there_to_ask_is_a_no_and_the_model_is_told(harbour: Home, cli: Cli) -> None:
    script = [calls(call("write_file", path="new.txt", content="x")), says("Then not.")]
    with serving(script) as double:
        ran = cli("run", "Write new.txt", "--json", *model_options(double))
        result = next(m for m in double.requests[1].body["messages"] if m["role"] == "tool")
    assert ran.code == 0
    assert next(line for line in ran.lines if line["type"] == "tool_finished")["status"] == "denied"
    assert not (harbour.work / "new.txt").exists()
    assert result["content"]


def test_with_permission_it_is_done(harbour: Home, cli: Cli) -> None:
    script = [calls(call("write_file", path="new.txt", content="x")), says("Done.")]
    with serving(script) as double:
        ran = cli("run", "Write new.txt", "--permissions", "auto-edit", *model_options(double))
    assert ran.code == 0
    assert (harbour.work / "new.txt").read_text() == "x"


def test_too_many_rounds_and_errors_of_the_server_fail(harbour: Home, cli: Cli) -> None:
    with serving([calls(call("list_files", path="."))]) as double:
        ran = cli("run", "Go on for ever", "--max-rounds", "2", "--json", *model_options(double))
    assert ran.code == 1
    assert ran.lines[-1]["status"] == "max_rounds"
    with serving([refuses(401, "Incorrect API key provided", code="invalid_api_key")]) as double:
        ran = cli("run", "Hi", "--json", *model_options(double))
    assert ran.code == 1
    error = next(line for line in ran.lines if line["type"] == "error")
    assert (error["kind"], bool(error["hint"])) == ("auth", True)
    assert checked(ran.lines)[-1] == "turn_finished"


def popen(home: Home, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ctxchat", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home.work, env=home.environ,
    )  # fmt: skip


def test_ctrl_c_ends_with_130_keeps_what_was_said_and_leaves_a_valid_session(harbour: Home, cli: Cli) -> None:
    script = [says("a long answer that " * 200, delay=0.05), says("Went on.")]
    with serving(script) as double:
        running = popen(harbour, "run", "Tell me", "--json", *model_options(double))
        assert running.stdout is not None
        seen = [json.loads(running.stdout.readline())]
        while seen[-1]["type"] != "text_delta":
            seen.append(json.loads(running.stdout.readline()))
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
        assert running.returncode == 130
        assert "Traceback" not in err
        *before, end = [*seen, *map(json.loads, out.splitlines())]
        said = "".join(line["text"] for line in before if line["type"] == "text_delta")
        assert (end["status"], end["text"], end["rounds"]) == ("cancelled", said, 0)
        assert end["seconds"] > 0 and end["at"] > before[0]["at"]
        (listed,) = cli("sessions", "list", "--json").json
        gauge = cli("context", "--json", *model_options(double)).json
        assert listed["used"] == pytest.approx(gauge["used"], rel=0.02) and listed["estimated"] and gauge["estimated"]
        for _ in range(3000):  # a minute is for what never comes
            if double.requests[0].dropped:
                break
            time.sleep(0.02)
        assert double.requests[0].dropped

        id = seen[0]["session"]
        said = cli("sessions", "export", id).json
        assert [m["role"] for m in said][:2] == ["user", "assistant"]
        assert said[1]["content"].startswith(seen[-1]["text"])
        assert cli("run", "Go on", "--session", id, *model_options(double)).out == "Went on.\n"
        assert complaints(double.requests[1].body["messages"], user_after_tool=True) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "Where is INTERVAL set?"),
        ("run", "Where is INTERVAL set?", "--json"),
        ("sessions", "list"),
        ("sessions", "list", "--json"),
        ("archive", "search", "INTERVAL"),
        ("config", "show"),
        ("--version",),
    ],
)
def test_a_reader_who_has_seen_enough_ends_it_as_any_other_program(
    harbour: Home, cli: Cli, arguments: tuple[str, ...]
) -> None:
    cli("run", "Where is INTERVAL set?")
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "ctxchat", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        cwd=harbour.work,
        env=harbour.environ,
        check=False,
    )
    os.close(writing)
    assert ended.returncode == 141
    assert not re.search("Traceback|Broken|ctxchat:", ended.stderr), ended.stderr


def test_what_was_done_before_the_reader_went_is_kept(harbour: Home, cli: Cli) -> None:
    running = popen(harbour, "run", "Where is INTERVAL set?", "--json")
    assert running.stdout is not None and running.stderr is not None
    while json.loads(running.stdout.readline())["type"] != "text_delta":
        pass
    running.stdout.close()
    assert "Traceback" not in running.stderr.read()
    assert running.wait(timeout=60) == 141
    assert len(cli("sessions", "list", "--json").json) == 1


def test_settings_that_are_not_in_force_are_said_beside_the_answer(harbour: Home, cli: Cli) -> None:
    harbour.settings.joinpath("config.toml").write_text("[context]\nkeep_recnt = 3\n")
    project = harbour.work / ".ctxchat" / "config.toml"
    project.parent.mkdir()
    project.write_text('[permissions]\nmode = "all"\n')
    for command in (
        ("run", "Where is INTERVAL set?", "--json"),
        ("context", "--json"),
        ("compact", "--dry-run", "--json"),
    ):
        ran = cli(*command)
        assert ran.code == 0
        assert "config.toml:2: context.keep_recnt: is unknown, did you mean keep_recent?" in ran.err
        assert "not in force until you trust this folder" in ran.err
        assert "keep_recnt" not in ran.out


def test_what_is_not_utf_8_on_the_way_in_costs_its_bytes_and_nothing_else(harbour: Home) -> None:
    environ = {**harbour.environ, "PYTHONIOENCODING": "utf-8:strict"}  # as most terminals are set

    def ran(*arguments: str | bytes, typed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "ctxchat", *arguments]
        return subprocess.run(command, input=typed, capture_output=True, cwd=harbour.work, env=environ, check=False)

    answered = ran("run", "-", "--json", typed=b"Where is INTERVAL\xff set?")
    assert answered.returncode == 0, answered.stderr
    assert json.loads(answered.stdout.splitlines()[0])["text"] == "Where is INTERVAL\ufffd set?"
    assert ran("run", b"Where is caf\xe9?", "--json").returncode == 0
    assert ran("archive", "search", b"caf\xe9", "--json").returncode == 0


def test_letters_that_an_output_cannot_hold_are_escaped(harbour: Home) -> None:
    environ = {**harbour.environ, "PYTHONIOENCODING": "latin-1"}

    def ran(*arguments: str) -> bytes:
        command = [sys.executable, "-m", "ctxchat", *arguments]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, cwd=harbour.work, env=environ, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    harbour.put("notes.txt", "The price is 5 € → 日本 😀 é\n")
    assert b"\\u65e5\\u672c \\ud83d\\ude00" in ran("run", "What is the price?")
    told = [json.loads(line) for line in ran("run", "What is the price?", "--json").decode("latin-1").splitlines()]
    assert "日本 😀 é" in told[-1]["text"]
    assert json.loads(ran("sessions", "list", "--json"))


def test_a_pipe_that_is_silent_for_a_while_is_waited_for(harbour: Home) -> None:
    command = [sys.executable, "-m", "ctxchat", "run", "Why?", "--json"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=harbour.work, env=harbour.environ, **pipes) as process:
        assert process.stderr and b"Waiting for what comes through the pipe" in process.stderr.readline()
        out, _ = process.communicate(b"1 failed")
    assert json.loads(out.splitlines()[0])["text"] == "Why?\n\n1 failed"


def test_a_socket_that_stays_silent_is_not_waited_for(harbour: Home) -> None:
    """What a program leaves behind that starts others with a standard input nobody ever writes to."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "ctxchat", "run", "Where is INTERVAL set?"]
    with ours, theirs:
        ended = subprocess.run(
            command, cwd=harbour.work, env=harbour.environ, stdin=theirs, capture_output=True, check=False
        )
    assert ended.returncode == 0 and b"going on without it" in ended.stderr


def test_links_in_a_circle_cost_themselves(harbour: Home) -> None:
    for name in ("AGENTS.md", "CLAUDE.md", ".ctxchat", ".gitignore", "notes.txt"):
        (harbour.work / name).symlink_to(name)
    ended = harbour.start("run", "What is in @notes.txt and where is INTERVAL?")
    assert ended.code == 0 and "AGENTS.md is a link that leads nowhere" in ended.err


def test_a_home_that_nobody_has_is_no_fault(harbour: Home) -> None:
    for arguments in (["--cwd", "~nobody-here/x"], ["--config", "~nobody-here/x.toml"]):
        ended = harbour.start("run", "Hello", *arguments)
        assert ended.code == 2 and "nobody-here" in ended.err and "should not have happened" not in ended.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", [["run", "Hello"], ["run", "Where is INTERVAL set?"], ["sessions", "list", "--json"], ["--version"]]
)
def test_an_output_that_takes_nothing_is_said(harbour: Home, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "ctxchat", *arguments]
        environ = {**harbour.environ, "LC_ALL": "C.UTF-8"}
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=harbour.work,
            env=environ,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.decode().endswith("ctxchat: Standard output: No space left on device.\n")


@pytest.mark.parametrize("arguments", [["run", "Hello"], ["sessions", "list", "--json"]])
def test_an_output_that_is_closed_is_said_and_no_file_takes_its_place(harbour: Home, arguments: list[str]) -> None:
    command = shlex.join([sys.executable, "-m", "ctxchat", *arguments])

    def ended(closed: str) -> subprocess.CompletedProcess[str]:
        line = ["sh", "-c", f"{command} {closed}"]
        return subprocess.run(line, capture_output=True, text=True, cwd=harbour.work, env=harbour.environ, check=False)

    assert (done := ended(">&-")).returncode == 1
    assert done.stderr.endswith("ctxchat: Standard output: Bad file descriptor.\n") and "Traceback" not in done.stderr
    assert ended("2>&-").returncode == ended("<&-").returncode == 0
    assert ended("<&- >&- 2>&-").returncode == 1


def test_json_and_markdown_at_once_are_refused(harbour: Home, cli: Cli) -> None:
    ran = cli("sessions", "export", "0", "--format", "markdown", "--json")
    assert ran.code == 2 and "Leave one of them out" in ran.err


def test_a_run_that_nobody_answered_leaves_no_session(home: Home) -> None:
    failed = home.start("run", "hello", "--model", "openai/none", "--api-base", "http://127.0.0.1:1/v1", "--json")
    assert failed.code == 1
    assert json.loads(home.start("sessions", "list", "--json").out) == []
    assert home.start("run", "hello").code == 0
    assert len(json.loads(home.start("sessions", "list", "--json").out)) == 1


def test_a_run_that_an_exception_ends_before_an_answer_leaves_no_session(home: Home) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "ctxchat", "run", "hello", "--json"]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, cwd=home.work, env=home.environ
    )
    os.close(writing)
    assert ended.returncode == 141
    assert json.loads(home.start("sessions", "list", "--json").out) == []
