"""Sessions written as Claude Code keeps them come back as they were: messages, calls, images, compactions, branches, the view."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from ctxchat.bootstrap.history_import import Imported
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Changed, Named, Record, Sealed, SessionState
from ctxchat.core.ledger import Change, Edit
from ctxchat.core.messages import Image, Message, Reasoning, Text, ToolCall
from ctxchat.storage import exporting, loading, sessions
from ctxchat.storage.claude_code import ClaudeCodeLines
from ctxchat.storage.database import Database
from tests.importing import wild
from tests.importing.conftest import Bring, put, shown, state
from tests.importing.conftest import brought as brought
from tests.importing.conftest import database as database
from tests.storage.samples import compaction, turns

EARLIER = "2026-01-01T03:04:05.000Z"
PICTURE = f"data:image/png;base64,{wild.PNG}"


def there_and_back(database: Database, brought: Bring, session: str, file: Path) -> tuple[ClaudeCodeLines, Imported]:
    loaded = loading.load_state(database, session).state
    whole = exporting.with_images(database, session, loaded.ledger.groups)
    ledger = type(loaded.ledger)(whole, loaded.ledger.changes)
    lines = ClaudeCodeLines(session, SessionState(ledger, loaded.title, loaded.model, imported=loaded.imported), "/w")
    put(file, lines)
    (told,) = brought(file)
    assert (told.outcome, told.damaged, told.no_place) == ("new", (), {})
    return lines, told


def said(state: SessionState) -> list[tuple[object, ...]]:
    """The record as another program has it: images by their bytes' file, arguments by what they say."""
    return [
        (m.role, m.text, [(c.id, c.name, json.loads(c.arguments)) for c in m.calls], m.call_id)
        for m in state.ledger.messages()
        if not m.synthetic
    ]


def test_a_session_of_ours_with_a_compaction_and_what_was_kept(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    call = ToolCall("call:1|x", "read_file", '{"path": "a.py"}')
    more = group_messages(
        [
            Message(13, "user", (Text("what is this?"), Image(PICTURE, 1, 1)), at="2026-01-03T03:04:05.000Z"),
            Message(14, "assistant", "Let me see.", calls=(call,), reasoning=Reasoning("hm")),
            Message(15, "tool", "x = 1", call_id=call.id),
            Message(16, "assistant", "A gauge."),
        ]
    )
    timed = [msgspec.structs.replace(m, at=EARLIER) for said in turns(3) for g in said.groups for m in g.messages]
    before = Sealed(group_messages(timed))
    records: list[Record] = [before, compaction("k1", "g1", "g2", "g4", "g5"), Sealed(more), Named("tides")]
    session = sessions.create(database, records=records)
    lines, told = there_and_back(database, brought, session, tmp_path / "out.jsonl")
    ours, theirs = state(database, session), state(database, told.id)
    fitting = [tuple(str(part).replace("call:1|x", "call_1_x") for part in each) for each in said(ours)]
    assert [tuple(map(str, each)) for each in said(theirs)] == fitting
    assert shown(theirs)[1:] == shown(ours)[1:] and "summary k1" in shown(theirs)[0]
    assert (theirs.title, told.compactions) == ("tides", 1)
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    (boundary,) = [line for line in written if line.get("subtype") == "compact_boundary"]
    (summary,) = [line for line in written if line.get("isCompactSummary")]
    kept = boundary["compactMetadata"]["preservedMessages"]
    assert kept["anchorUuid"] == summary["uuid"], "Claude Code passes over what is kept where it has no anchor"
    assert kept["uuids"] and set(kept["uuids"]) <= {line["uuid"] for line in written if "uuid" in line}
    assert lines.left_out == {"thoughts (they must be signed there)": 1}


def test_what_was_taken_back_is_a_branch(database: Database, brought: Bring, tmp_path: Path) -> None:
    rewind = Changed(Change("rewind-1", "rewind", edits=(Edit("drop", ("g5", "g6", "g8")),)))
    session = sessions.create(database, records=[*turns(2), rewind, Sealed(group_messages([Message(9, "user", "no")]))])
    _, told = there_and_back(database, brought, session, tmp_path / "out.jsonl")
    assert told.branches == 1
    assert shown(state(database, told.id)) == shown(state(database, session))


def test_claude_codes_own_session_comes_back(database: Database, brought: Bring, tmp_path: Path) -> None:
    (first,) = brought(put(tmp_path / "theirs.jsonl", wild.claude()))
    _, told = there_and_back(database, brought, first.id, tmp_path / "out.jsonl")
    ours, theirs = state(database, first.id), state(database, told.id)
    assert said(theirs) == said(ours) and shown(theirs) == shown(ours)
    assert (told.messages, told.compactions, told.branches) == (first.messages, first.compactions, first.branches)
