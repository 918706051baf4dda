"""Claude Code's files: what is kept of them, and what a second look brings."""

from __future__ import annotations

import json
from pathlib import Path

from ctxchat.core.audit import audits
from ctxchat.core.facts import Memory
from ctxchat.core.messages import Image
from ctxchat.storage import loading, sessions
from ctxchat.storage.database import Database
from tests.importing import wild
from tests.importing.conftest import Bring, put, shown, state


def test_a_session_is_kept_with_all_that_belongs_to_it(database: Database, brought: Bring, tmp_path: Path) -> None:
    (told,) = brought(put(tmp_path / "5e55.jsonl", wild.claude()))
    assert (told.outcome, told.messages, told.compactions, told.branches, told.damaged) == ("new", 11, 1, 1, ())
    assert told.no_place == {"file-history-snapshot lines": 1}
    row = sessions.row(database, told.id)
    assert (row.title, row.folder, row.model) == ("Tides", "/w/tides", "anthropic/claude-sonnet-4-5")
    assert row.created < row.updated < "2026-03-02"
    kept = state(database, told.id)
    round = next(g for g in kept.ledger.groups if g.kind == "round")
    assert [m.text for m in round.messages[1:]] == ["first file", "second file"]
    assert round.first.reasoning and round.first.reasoning.text == "look first"
    (image,) = [p for p in kept.ledger.groups[0].first.content if isinstance(p, Image)]
    assert image.stored and (image.width, image.height) == (1, 1)
    assert (database.folder / "sessions" / told.id / image.url).is_file()
    assert [fill > 1_000 for fill in kept.fills] == [True, True, True, False]


def test_a_compaction_stands_for_its_originals_and_gives_them_back(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    (told,) = brought(put(tmp_path / "5e55.jsonl", wild.claude()))
    ledger = state(database, told.id).ledger
    (change,) = ledger.compactions
    assert change.record and change.record.summary.endswith("files.") and change.record.reason == "manual"
    assert change.record.before.used == 9_000
    assert [words for words in shown(state(database, told.id)) if "two files" in words] == []
    undone = ledger.undo(change.id)
    assert "two files" in [m.text for e in undone.live() if e.group for m in e.group.messages]


def test_what_was_taken_back_is_in_the_record_and_not_in_view(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    (told,) = brought(put(tmp_path / "5e55.jsonl", wild.claude()))
    kept = state(database, told.id)
    assert "an answer nobody wanted" in [m.text for m in kept.ledger.messages()]
    assert "an answer nobody wanted" not in shown(kept)
    assert shown(kept)[-3:] == ["the question meant", "and now?", "now we go on"]


def test_the_last_count_carries_the_gauge_without_the_other_agents_instructions(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    (told,) = brought(put(tmp_path / "5e55.jsonl", wild.claude()[:8]))
    anchor = state(database, told.id).anchor
    assert anchor is not None and anchor.model == "anthropic/claude-sonnet-4-5"
    # 1,000 tokens were counted with the first message alone: nearly all of them are instructions and tools
    assert anchor.mix.raw > 0 and anchor.tokens < 1_140 - 100


def test_a_sub_agent_lies_below_the_session_it_worked_for(database: Database, brought: Bring, tmp_path: Path) -> None:
    (above,) = brought(put(tmp_path / "5e55.jsonl", wild.claude()))
    (below,) = brought(put(tmp_path / "5e55" / "subagents" / "agent-a1b2.jsonl", wild.claude_agent()))
    row = sessions.row(database, below.id)
    assert (row.parent, row.delegated, row.messages) == (above.id, True, 2)


def test_side_chains_in_the_file_itself_are_sessions_too(database: Database, brought: Bring, tmp_path: Path) -> None:
    lines = wild.claude()
    aside = [line | {"agentId": None} for line in wild.claude_agent()]
    above, below = brought(put(tmp_path / "5e55.jsonl", [*lines[:7], *aside, *lines[7:]]))
    assert above.messages == 11
    assert sessions.row(database, below.id).parent == above.id


def test_what_has_grown_is_renewed_and_what_has_not_is_left(database: Database, brought: Bring, tmp_path: Path) -> None:
    file = put(tmp_path / "5e55.jsonl", wild.claude()[:8])
    (first,) = brought(file)
    assert [one.outcome for one in brought(file)] == ["known"]
    (grown,) = brought(put(file, wild.claude()))
    assert (grown.outcome, grown.id) == ("grown", first.id)
    assert len(sessions.rows(database)) == 1
    assert len(state(database, first.id).ledger.messages()) == 11
    assert [one.outcome for one in brought(put(file, wild.claude()[:8]))] == ["known"]  # less than before takes nothing


def test_a_session_that_was_gone_on_with_here_stays_as_it_is(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    file = put(tmp_path / "5e55.jsonl", wild.claude()[:8])
    (first,) = brought(file)
    sessions.rename(database, first.id, "Mine")
    (grown,) = brought(put(file, wild.claude()))
    assert grown.id != first.id
    assert sessions.row(database, first.id).title == "Mine"
    assert sessions.row(database, grown.id).parent == first.id
    assert [one.outcome for one in brought(file)] == ["known"]


def test_two_that_were_resumed_from_one_are_two(database: Database, brought: Bring, tmp_path: Path) -> None:
    for digit, many in (("1", 12), ("2", 16)):
        name = f"{digit * 8}-1111-4111-8111-111111111111.jsonl"
        assert [one.outcome for one in brought(put(tmp_path / name, wild.claude()[:many]))] == ["new"]
    assert len(sessions.rows(database)) == 2


def test_a_command_that_asks_the_model_is_the_persons_request(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    lines = wild.claude()[:8]
    asked = (
        "<command-message>tide</command-message>\n<command-name>/tide</command-name>\n<command-args>7</command-args>"
    )
    lines[1]["message"]["content"] = asked
    lines.append(
        lines[1] | {"uuid": "u9", "parentUuid": "a4", "message": {"role": "user", "content": "<command-name>/exit"}}
    )
    (told,) = brought(put(tmp_path / "5e55.jsonl", lines))
    groups = state(database, told.id).ledger.groups
    assert [g.kind for g in groups if g.first.role == "user"] == ["user", "note"]
    assert groups[0].first.text == asked


def test_its_compactions_can_be_audited(database: Database, brought: Bring, tmp_path: Path) -> None:
    (told,) = brought(put(tmp_path / "a.jsonl", wild.claude()))
    (audit,) = audits(loading.read_records(database, told.id)[0], Memory())
    assert audit.change.kind == "compaction" and audit.facts.found >= audit.facts.kept


def chain(*words: str) -> list[wild.Line]:
    """Questions and answers by turns, each behind the one before."""
    return [
        {
            "type": (role := "assistant" if n % 2 else "user"),
            "uuid": f"m{n}",
            "parentUuid": f"m{n - 1}" if n else None,
            "sessionId": "5e55",
            "message": {"role": role, "content": text},
        }
        for n, text in enumerate(words)
    ]


def test_a_damaged_line_takes_nothing_out_of_view_that_was_said_before_it(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    """What hangs on a line that cannot be read goes on behind the newest one, and is no rewind to the beginning."""
    lines = chain("one", "two", "three", "four", "five", "six")
    (told,) = brought(put(tmp_path / "5e55.jsonl", [*lines[:3], '{"damaged', *lines[4:]]))
    assert shown(state(database, told.id)) == ["one", "two", "three", "five", "six"]


def test_a_boundary_that_hangs_on_nothing_is_followed_by_no_rewind(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    lines = wild.claude()
    boundary = next(line for line in lines if line.get("subtype") == "compact_boundary")
    (told,) = brought(put(tmp_path / "5e55.jsonl", lines))
    before = shown(state(database, told.id))
    boundary["logicalParentUuid"] = None
    (told,) = brought(put(tmp_path / "other" / "5e56.jsonl", json.loads(json.dumps(lines).replace("5e55", "5e56"))))
    assert shown(state(database, told.id)) == before
