"""Codex's files, in each of the forms it has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from tests.importing import wild
from tests.importing.conftest import Bring, put, shown, state


def test_a_rollout_is_kept_with_its_compaction_and_what_was_rolled_back(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    (told,) = brought(put(tmp_path / "rollout-1.jsonl", wild.codex()))
    assert (told.outcome, told.messages, told.compactions, told.branches) == ("new", 10, 1, 1)
    kept = state(database, told.id)
    (change,) = kept.ledger.compactions
    assert change.record and change.record.summary == "We listed files."
    assert shown(kept)[-3:] == ["list the files", "keep it", "kept"]
    assert "deleted" in [m.text for m in kept.ledger.messages()]
    assert [g.kind for g in kept.ledger.groups[:4]] == ["note", "note", "user", "round"]
    assert kept.used == 520
    assert sessions.row(database, told.id).model == "openai/gpt-5-codex"


def test_what_the_summariser_said_is_the_summary_alone(database: Database, brought: Bring, tmp_path: Path) -> None:
    lines = wild.codex()
    place = next(n for n, line in enumerate(lines) if line["type"] == "compacted")
    count = next(line for line in lines if line["payload"].get("type") == "token_count")
    reply = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "We listed files."}]}
    between = [{**lines[place], "type": "response_item", "payload": reply}, count]
    told, plain = (
        brought(put(tmp_path / name / "rollout-1.jsonl", made))[0]
        for name, made in (("with", [*lines[:place], *between, *lines[place:]]), ("without", wild.codex("0199-beef")))
    )
    texts = [[m.text for m in state(database, one.id).ledger.messages()] for one in (told, plain)]
    assert texts[0] == texts[1] and "one file" in texts[0]


def test_what_a_compaction_keeps_is_known_by_its_id(database: Database, brought: Bring, tmp_path: Path) -> None:
    def asked(id: str, words: str) -> wild.Line:
        content = [{"type": "input_text", "text": words}]
        return {"type": "message", "role": "user", "id": id, "content": content}

    replies = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": w}]} for w in "ab"]
    items = [asked("m1", "go on"), replies[0], asked("m2", "go on"), replies[1], asked("m3", "and now"), replies[0]]
    kept = {"message": "so far", "replacement_history": [asked("m1", "go on"), asked("m3", "and")]}
    envelopes = [{"type": "response_item", "payload": item} for item in items]
    head = {"type": "session_meta", "payload": {"id": "0199-c0de"}}
    lines = [head, *envelopes, {"type": "compacted", "payload": kept}]
    (told,) = brought(put(tmp_path / "rollout-1.jsonl", lines))
    ledger = state(database, told.id).ledger
    (change,) = ledger.compactions
    assert [m.id for g in ledger.groups if g.id not in change.edits[0].covers for m in g.messages] == ["m1", "m5"]


def test_a_compaction_only_the_server_can_read_says_what_was_asked(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    lines = [line for line in wild.codex() if line["type"] != "compacted"]
    hidden = {"type": "compacted", "payload": {"message": "", "replacement_history": [{"type": "compaction"}]}}
    (told,) = brought(put(tmp_path / "rollout-1.jsonl", [*lines, hidden, *wild.codex()[-3:-1]]))
    kept = state(database, told.id)
    assert told.compactions == 1
    assert "list the files" in shown(kept)[0] and kept.ledger.compactions


def test_older_forms_are_read_too(database: Database, brought: Bring, tmp_path: Path) -> None:
    bare = wild.codex_bare()
    (told,) = brought(put(tmp_path / "rollout-2.jsonl", bare))
    whole = {"session": bare[0], "items": [item for item in bare[1:] if "type" in item]}
    (first,) = brought(put(tmp_path / "rollout-3.json", [json.dumps(whole | {"session": bare[0] | {"id": "0196"}})]))
    for one in (told, first):
        assert [m.role for m in state(database, one.id).ledger.messages()] == ["user", "assistant", "tool", "assistant"]


def test_a_spawned_thread_lies_below_its_own(database: Database, brought: Bring, tmp_path: Path) -> None:
    (above,) = brought(put(tmp_path / "rollout-1.jsonl", wild.codex()))
    (below,) = brought(put(tmp_path / "rollout-2.jsonl", wild.codex("0199-be10", parent="0199-c0de")))
    row = sessions.row(database, below.id)
    assert (row.parent, row.delegated) == (above.id, True)


def _event(words: str, **more: object) -> wild.Line:
    return {"type": "event_msg", "payload": {"type": "user_message", "message": words, **more}}


def _item(role: str, *content: wild.Line | str) -> wild.Line:
    parts = [{"type": "input_text", "text": part} if isinstance(part, str) else part for part in content]
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": parts}}


PICTURE = f"data:image/png;base64,{wild.PNG}"


@pytest.mark.parametrize(
    ("lines", "heard"),
    [
        ([_event("which way?")], ["which way?"]),
        ([_event("which way?"), _item("user", "which way?")], ["which way?"]),
        ([_item("user", "which way?"), _event("which way?\n")], ["which way?"]),
        ([_event("one"), _event("two"), _item("user", "two")], ["one", "two"]),
        ([_event("one"), _item("user", "two"), _event("two")], ["one", "two"]),
        ([_item("user", "one"), _item("user", "two"), _event("one"), _event("two")], ["one", "two"]),
        ([_item("user", "yes"), _event("yes"), _event("yes")], ["yes", "yes"]),
        ([_event("yes"), _item("assistant", "so?"), _event("yes")], ["yes", "yes"]),
        ([_item("user", "yes"), _item("assistant", "so?"), _event("yes")], ["yes", "yes"]),
        ([_event("go"), _item("user", "<environment_context>x"), _item("user", "go")], ["go"]),
        (
            [_item("user", "<image>", {"type": "input_image", "image_url": PICTURE}, "</image>", "see"), _event("see")],
            ["<image>[image 1×1]</image>see"],
        ),
        ([_event("see", images=[PICTURE])], ["see[image 1×1]"]),
        ([_event("", images=None), _event("go")], ["go"]),
    ],
)
def test_what_a_person_said_is_read_once_wherever_it_stands(
    lines: list[wild.Line], heard: list[str], database: Database, brought: Bring, tmp_path: Path
) -> None:
    start = {"type": "session_meta", "payload": {"id": "0199-e"}}
    (told,) = brought(put(tmp_path / "rollout-1.jsonl", [start, *lines]))
    kept = state(database, told.id)
    messages = [g.first for g in kept.ledger.groups if g.kind == "user"]
    assert [m.text.replace("\n", "") for m in messages] == heard
    assert not told.no_place


def test_a_turn_that_is_known_from_an_event_is_taken_back(database: Database, brought: Bring, tmp_path: Path) -> None:
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    lines = [_event("first"), _item("assistant", "1"), _event("second"), back, _event("third"), _item("assistant", "3")]
    (told,) = brought(put(tmp_path / "rollout-1.jsonl", lines))
    kept = state(database, told.id)
    assert shown(kept)[-4:] == ["first", "1", "third", "3"]
    assert "second" in [m.text for m in kept.ledger.messages()]
