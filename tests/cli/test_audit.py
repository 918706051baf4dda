"""`ctxchat audit`: what compactions kept, lost, and what later work needed of it."""

from __future__ import annotations

import json

from tests.cli.conftest import Cli, Home
from tests.cli.test_context import work_session


def test_each_compaction_says_what_it_kept_and_what_was_missed(cli: Cli, home: Home) -> None:
    session = cli("sessions", "import", home.put("work.json", work_session())).out.strip()
    assert cli("audit", session).out.strip() == "No compaction in this session."
    assert cli("compact", session, "--strategy", "sliding_window", "--target", "0.2").code == 0
    assert cli("run", "--session", session, "read notes.md").code == 0
    (audit,) = cli("audit", session, "--json").json
    assert set(audit) == {
        *("id", "session", "at", "reason", "strategy", "before", "after"),
        *("facts", "lost", "calls", "needed"),
    }
    assert audit["session"] == session and audit["before"] > audit["after"] and audit["strategy"] == "sliding_window"
    assert audit["facts"]["found"] == audit["facts"]["kept"] + len(audit["lost"])
    said = cli("audit", session).out
    assert audit["id"] in said and f"kept    {audit['facts']['kept']:,} of" in said and "In all: " in said


def test_the_session_used_last_is_meant_without_an_id_and_none_is_said(cli: Cli, home: Home) -> None:
    none = cli("audit")
    assert none.code == 2 and "no session yet" in none.sentence
    cli("sessions", "import", home.put("work.json", json.loads(json.dumps(work_session(2)))))
    assert "No compaction" in cli("audit").out
    assert cli("audit", "nobody").code == 2
