"""What goes wrong is one sentence on standard error with the right exit code, never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxchat.cli.ending import FAULTS_FILE, ended
from tests.cli.conftest import Cli, Home


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("context", "nosuch"), "nosuch"),
        (("context", "../../x"), "../../x"),
        (("sessions", "export", "../../x"), "../../x"),
        (("sessions", "delete", "../../etc"), "../../etc"),
        (("sessions", "fork", "/etc/passwd"), "/etc/passwd"),
        (("sessions", "rename", "..", "x"), ".."),
        (("--session", "../x", "archive", "list"), "../x"),
        (("--session", "nosuch", "run", "hi"), "nosuch"),
        (("archive", "show", "nosuch"), "nosuch"),
        (("archive", "restore", "../x"), "../x"),
        (("context", "--window", "-1"), "-1"),
        (("--window", "many", "context"), "many"),
        (("run", "hi", "--model", "nope/x"), "nope"),
        (("run", "hi", "--model", "nope"), "nope"),
        (("run", "hi", "--max-rounds", "0"), "max-rounds"),
        (("run", "hi", "--permissions", "root"), "root"),
        (("run", "hi", "--cwd", "/no/folder"), "/no/folder"),
        (("run", "hi", "--continue"), "no session"),
        (("run",), "nothing to answer"),
        (("--config", "/no/file.toml", "context"), "/no/file.toml"),
        (("--config", "/", "config", "show"), "/"),
        (("config", "check", "/no/file.toml"), "/no/file.toml"),
        (("config", "check", "/"), "folder"),
        (("config", "show", "no.such"), "no.such"),
        (("config", "set", "context.keep_recnt", "3"), "keep_recent"),
        (("config", "set", "context.keep_recent", "-3"), "keep_recent"),
        (("nope",), "nope"),
        (("sessions", "shw"), "show"),
        (("sessions", "import"), "--found"),
        (("compact", ""), "empty"),
        (("compact", "--target", "7"), "target"),
        (("compact", "--target", "nan"), "range"),
        (("archive", "export", __file__), "test_errors.py"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(cli: Cli, arguments: tuple[str, ...], what: str) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert what in ran.sentence


def test_the_same_holds_with_json(cli: Cli) -> None:
    ran = cli("context", "nosuch", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "nosuch" in ran.sentence


@pytest.mark.parametrize("command", [("sessions", "list"), ("run", "hi"), ("context",), ("archive", "list")])
def test_a_data_folder_that_is_a_file(home: Home, cli: Cli, command: tuple[str, ...]) -> None:
    home.data.write_text("not a folder")
    ran = cli(*command)
    assert ran.code == 1
    assert str(home.data) in ran.sentence
    assert "CTXCHAT_DATA_DIR" in ran.sentence
    assert home.data.read_text() == "not a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_folder_that_cannot_be_written(home: Home, cli: Cli) -> None:
    home.data.mkdir(mode=0o500)
    ran = cli("run", "hi")
    assert ran.code == 1
    assert "CTXCHAT_DATA_DIR" in ran.sentence


def test_a_database_that_is_none_is_left_as_it_is(home: Home, cli: Cli) -> None:
    home.data.mkdir()
    database = home.data / "ctxchat.db"
    database.write_text("this is no database " * 500)
    before = database.read_bytes()
    ran = cli("sessions", "list")
    assert ran.code == 1
    assert str(database) in ran.sentence
    assert database.read_bytes() == before


def test_a_missing_key_is_named_before_anything_is_sent(cli: Cli) -> None:
    ran = cli("run", "hi", "--model", "openai/gpt-4o")
    assert ran.code == 1
    assert "OPENAI_API_KEY" in ran.err
    assert "Traceback" not in ran.err
    own = cli("run", "hi", "--model", "openai/gpt-4o", "--api-key-env", "MY_KEY")
    assert "MY_KEY" in own.err


def test_what_nobody_expected_is_a_sentence_and_a_log_without_secrets(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        raise RuntimeError("a fault\nwith api_key=abcdefgh12345678 in it \x1b[2J")

    assert ended(work) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "RuntimeError: a fault with" in said
    assert "\x1b" not in said
    log = home.data / FAULTS_FILE
    assert str(log) in said
    assert "Traceback" in log.read_text()
    assert "abcdefgh12345678" not in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_a_log_that_cannot_be_written_is_said_too(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.data.write_text("in the way")
    assert ended(lambda: 1 // 0) == 1
    assert "could not be written down" in capsys.readouterr().err


def test_interrupted_is_130(home: Home) -> None:
    def work() -> int:
        raise KeyboardInterrupt

    assert ended(work) == 130


def test_a_folder_that_is_gone(home: Home, cli: Cli, tmp_path: Path) -> None:
    gone = home.work / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    ran = cli("config", "show")
    assert ran.code == 2
    assert "no longer there" in ran.sentence
