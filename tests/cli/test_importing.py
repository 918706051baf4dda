"""`ctxchat sessions import` over a home folder in which other agents have worked."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.importing import wild
from tests.importing.conftest import put


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "person"
    put(home / ".claude/projects/-w-tides/5e55.jsonl", wild.claude())
    put(home / ".claude/projects/-w-tides/5e55/subagents/agent-a1b2.jsonl", wild.claude_agent())
    put(home / ".codex/sessions/2026/03/01/rollout-2026-03-01-0199-c0de.jsonl", wild.codex())
    monkeypatch.setenv("HOME", str(home))
    return home


def test_what_is_there_is_said_and_all_of_it_comes_once(cli: Cli, agents: Path) -> None:
    claude, codex = cli("sessions", "import", "--found", "--json").json
    assert (claude["agent"], claude["sessions"], claude["new"]) == ("claude-code", 2, 2)
    assert (codex["agent"], codex["sessions"], codex["folder"].endswith("/01")) == ("codex", 1, True)
    first = cli("sessions", "import", "--all")
    assert len(first.out.split()) == 3 and "3 sessions imported: 23 messages, 2 compactions." in first.err
    assert cli("sessions", "import", "--all", "--json").json["sessions"] == []
    assert [row["new"] for row in cli("sessions", "import", "--found", "--json").json] == [0, 0]
    assert len(cli("sessions", "list", "--json").json) == 3
    assert len(cli("archive", "list", "--json").json) == 2


def test_one_file_brings_its_sub_agents_along(cli: Cli, agents: Path) -> None:
    told = cli("sessions", "import", str(agents / ".claude/projects/-w-tides/5e55.jsonl"), "--json").json
    assert [one["outcome"] for one in told["sessions"]] == ["new", "new"] and told["id"] == told["sessions"][0]["id"]
    again = cli("sessions", "import", str(agents / ".claude"), "--json").json
    assert [one["outcome"] for one in again["sessions"]] == ["known", "known"]


def test_the_gauge_of_an_imported_session_can_be_looked_at(cli: Cli, agents: Path) -> None:
    ids = cli("sessions", "import", "--all", "--from", "codex").out.split()
    context_usage = cli("context", ids[0], "--json").json
    assert context_usage["compactions"] == 1 and context_usage["used"] > 0


def test_what_cannot_be_imported_says_why(cli: Cli, agents: Path) -> None:
    assert "does not exist" in cli("sessions", "import", "nowhere.jsonl", "--from", "pi").sentence
    assert "no agent" in cli("sessions", "import", "x", "--from", "cursor").sentence
    assert "Nothing to import" in cli("sessions", "import").sentence
    (agents / "empty").mkdir()
    assert "holds no sessions" in cli("sessions", "import", str(agents / "empty")).sentence


def test_a_database_that_is_cut_is_called_one(cli: Cli, agents: Path) -> None:
    with closing(sqlite3.connect(agents / "opencode.db")) as database:
        database.executescript("create table session(id); create table message(id); create table part(id);")
        database.executemany("insert into message values (?)", [("x" * 300,) for _ in range(200)])
        database.commit()
    whole = (agents / "opencode.db").read_bytes()
    (agents / "opencode.db").write_bytes(whole[: len(whole) // 2])
    told = cli("sessions", "import", str(agents / "opencode.db"))
    assert told.code == 1 and "a database that cannot be read" in told.err and "copy it again" in told.err


def test_following_is_switched_on_and_off_in_the_persons_settings(cli: Cli, agents: Path) -> None:
    (agents / ".claude/settings.json").write_text('{"cleanupPeriodDays": 7}')
    on = cli("sessions", "import", "--follow")
    assert len(on.out.split()) == 3 and "3 sessions imported" in on.err
    assert "every 5 minutes" in on.err and "--no-follow` ends it" in on.err
    assert "Claude Code deletes its sessions after 7 days." in on.err
    assert cli("config", "show", "sessions.follow", "--json").json["sessions.follow"]["value"] is True
    again = cli("sessions", "import", "--follow", "--json")
    assert again.json == {"id": "", "sessions": []}
    off = cli("sessions", "import", "--no-follow")
    assert "Those that are here stay." in off.err and len(cli("sessions", "list", "--json").json) == 3
    assert cli("config", "show", "sessions.follow", "--json").json["sessions.follow"]["value"] is False
    assert cli("sessions", "import", "--no-follow", "--json").json == {"follow": False}


def test_following_that_the_environment_forbids_is_not_said_to_be_on(
    cli: Cli, agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCHAT_SESSIONS__FOLLOW", "false")
    told = cli("sessions", "import", "--follow").err
    assert "CTXCHAT_SESSIONS__FOLLOW says otherwise" in told and "every 5 minutes" not in told


def test_one_agent_or_file_cannot_be_followed(cli: Cli, agents: Path) -> None:
    for more in (["--from", "codex"], ["a.jsonl"], ["--found"]):
        assert "for all agents" in cli("sessions", "import", "--follow", *more).sentence
    assert cli("config", "show", "sessions.follow", "--json").json["sessions.follow"]["value"] is False
