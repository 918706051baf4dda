"""What is written down of the command line is what it is, and shells can ask it what comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxchat.cli import COMPLETING, main
from ctxchat.cli.reference import commands, write_reference
from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from tests.cli.conftest import Home
from tests.storage.samples import compaction, turns

ROOT = Path(__file__).parents[2]
PAGES = ("docs/commands.md", "man/ctxchat.1")


def test_the_page_and_the_manual_are_as_the_commands_are(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "commands.md").write_text((ROOT / "docs" / "commands.md").read_text())
    write_reference(tmp_path)
    for page in PAGES:
        assert (tmp_path / page).read_text() == (ROOT / page).read_text(), "run python -m ctxchat.cli.reference"


def test_every_command_says_what_it_is_for() -> None:
    assert all(command.help for command in commands())


def test_no_line_of_the_manual_is_taken_for_a_request() -> None:
    known = (".TH", ".SH", ".SS", ".PP", ".TP", ".B ")
    lines = (ROOT / "man" / "ctxchat.1").read_text().splitlines()
    assert all(line.startswith(known) for line in lines if line.startswith((".", "'")))


@pytest.mark.parametrize(("typed", "offered"), [("ctxchat ses", "sessions"), ("ctxchat sessions ex", "export")])
def test_a_shell_is_told_what_comes_next(
    typed: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {COMPLETING: "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert capsys.readouterr().out == f"plain,{offered}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert COMPLETING in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ctxchat sessions show 0", "{session}"),
        ("ctxchat --session 0", "{session}"),
        ("ctxchat archive show c", "{compaction}"),
        ("ctxchat run --model offline/a", "offline/assistant"),
        ("ctxchat compact --strategy slid", "sliding_window"),
        ("ctxchat config set context.keep_r", "context.keep_recent"),
    ],
)
def test_a_shell_is_told_ids_models_strategies_and_keys(
    typed: str, offered: str, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database(home.data) as database:
        session = sessions.create(database, records=[*turns(8), compaction("c1", "g1", "g2")])
    words = {COMPLETING: "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert f"plain,{offered.format(session=session, compaction='c1')}" in capsys.readouterr().out.splitlines()
