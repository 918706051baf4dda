"""What is in force and what was undone, told the same everywhere; putting back, as far as it fits; files that are never lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxchat.core.quantities import short
from tests.cli.conftest import Cli, Home
from tests.cli.test_context import work_session


@pytest.fixture
def session(cli: Cli, home: Home) -> str:
    return cli("sessions", "import", home.put("work.json", work_session())).out.strip()


def test_an_undone_compaction_is_marked_and_counts_nowhere(cli: Cli, session: str) -> None:
    id = cli("compact", session, "--json", "--target", "0.2").json["id"]
    assert not cli("archive", "list", "--json").json[0]["undone"] and "undone" not in cli("archive", "list").out
    assert cli("sessions", "list", "--json").json[0]["compactions"] == 1
    cli("archive", "restore", id)
    (row,) = cli("archive", "list", "--json").json
    listed = cli("archive", "list").out
    assert row["undone"] and row["id"] == id and "command, undone" in listed
    assert session in listed.splitlines()[1].split()[1:], "a branch has compactions of the same ids"
    assert cli("sessions", "list", "--json").json[0]["compactions"] == 0
    assert cli("context", session, "--json").json["compactions"] == 0
    shown = cli("archive", "show", id, "--json").json
    assert shown["undone"] and shown["record"]["id"] == id and len(shown["messages"]) == row["messages"]
    assert "(undone)" in cli("archive", "show", id).out
    again = cli("archive", "restore", id)
    assert again.code == 2 and "was undone already" in again.sentence


def test_a_message_that_a_compaction_did_not_put_away_is_refused(cli: Cli, session: str) -> None:
    id = cli("compact", session, "--json", "--target", "0.2").json["id"]
    used = cli("context", session, "--json").json["used"]
    last = cli("sessions", "show", session, "--json").json["messages"]
    outside = f"m{last if isinstance(last, int) else len(last)}"
    ran = cli("archive", "restore", id, "--message", outside)
    assert ran.code == 2 and f"did not archive '{outside}'" in ran.sentence and "archive show" in ran.sentence
    assert cli("archive", "restore", id, "--message", "m1; DROP").code == 2
    assert cli("context", session, "--json").json["used"] == used
    assert cli("archive", "restore", id, "--message", "m1", "--json").json["used"] > used
    assert cli("archive", "restore", id, "--message", "m1", "--part").code == 2


def test_what_no_longer_fits_is_told_and_the_part_that_fits_can_be_had(cli: Cli, session: str) -> None:
    id = cli("compact", session, "--json", "--strategy", "truncate", "--keep-recent", "6", "--target", "0.1").json["id"]
    small = ("--window", "14000")
    used = cli("context", session, "--json", *small).json["used"]
    part = cli("archive", "restore", id, "--part", "--json", *small)
    assert used < part.json["used"] < part.json["trigger_tokens"] and part.json["compactions"] == 1
    assert "can come back, and did" in part.err
    (row,) = cli("archive", "list", "--json").json
    assert row["put_back"] > 0 and f"command, {row['put_back']} put back" in cli("archive", "list").out
    assert row["before"] - row["after"] < row["before"] - used, "what is left of it"
    whole = cli("archive", "restore", id, "--json", *small)
    assert whole.json["used"] > whole.json["limit"] and whole.json["compactions"] == 0
    assert f"{short(whole.json['used'] - whole.json['limit'])} tokens too much for the window" in whole.err
    assert cli("sessions", "export", session).json[: len(work_session())] == work_session()


def test_an_export_says_where_it_went_and_overwrites_nothing(cli: Cli, home: Home, session: str) -> None:
    assert "nothing was written" in cli("archive", "export").err
    id = cli("compact", session, "--json", "--target", "0.2").json["id"]
    ran = cli("archive", "export")
    file = home.work / "ctxchat-archive" / f"{id}.jsonl"
    assert ran.out.splitlines() == [str(file)] and f"1 file in {file.parent}" in ran.err
    assert cli("archive", "export", "--json").json == [str(file)], "nothing new, nothing written"
    file.write_text("mine", encoding="utf-8")
    (other,) = cli("archive", "export", "--json").json
    assert file.read_text(encoding="utf-8") == "mine" and Path(other).parent == file.parent
    assert json.loads(Path(other).read_text(encoding="utf-8").splitlines()[0])["record"]["id"] == id
