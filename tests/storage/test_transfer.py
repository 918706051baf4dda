from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxchat.core.compilers import all_sections
from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.file_changes import Checkpoint, FileChange, FileState
from ctxchat.core.head import Head
from ctxchat.core.journal import Changed, Sealed, SessionState
from ctxchat.core.secrets import masked
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile, problems
from ctxchat.storage import chat_import, exporting, loading, markdown, sessions
from ctxchat.storage.database import Database
from tests.doubles.planted import planted
from tests.storage.samples import compaction, nasty, reply, turns


def imported(database: Database, tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "chat.json"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return chat_import.import_file(database, file)


def record(database: Database, session: str) -> list[dict[str, Any]]:
    return json.loads(exporting.export_record(loading.load_state(database, session).state, "openai"))


def test_the_nastiest_transcript_comes_back_equal(database: Database, tmp_path: Path) -> None:
    wires = nasty()
    assert len(wires) > 900
    session = imported(database, tmp_path, json.dumps(wires))
    assert record(database, session) == wires
    row = sessions.row(database, session)
    assert row.messages == len(wires)
    state = loading.load_state(database, session).state
    view = compile(state.ledger, Head(system="sys"), TokenCounter(), all_sections)
    assert problems(view) == []
    fork = sessions.fork(database, session)
    assert record(database, fork) == wires


scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
parts = st.dictionaries(st.sampled_from(["type", "text", "image_url", "x"]), scalars | st.just("text"), max_size=3)
calls = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b", "", None]),
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {}, optional={"name": scalars, "arguments": st.text(max_size=9) | st.just({"a": 1})}
        ),
    },
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "Assistant"])},
    optional={
        "content": st.none() | st.text(max_size=20) | st.lists(parts | scalars, max_size=3),
        "tool_calls": st.none() | st.lists(calls, max_size=3),
        "tool_call_id": st.sampled_from(["a", "b", "c", "", None]),
        "name": st.none() | st.text(max_size=5),
    },
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(messages, min_size=1, max_size=12))
def test_any_transcript_comes_back_equal(database: Database, tmp_path: Path, wires: list[dict[str, Any]]) -> None:
    assert record(database, imported(database, tmp_path, json.dumps(wires))) == wires


HELLO = {"role": "user", "content": "hello"}
THERE = {"role": "assistant", "content": "there"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([HELLO, THERE]),
        json.dumps([HELLO, THERE], indent=2),
        json.dumps({"messages": [HELLO, THERE], "model": "gpt"}),
        f"{json.dumps(HELLO)}\n{json.dumps(THERE)}\n",
        f"\n{json.dumps(HELLO)}\r\n\r\n{json.dumps(THERE)}\r\n",
        "\ufeff" + json.dumps([HELLO, THERE]),
        f"{json.dumps([HELLO])}\n{json.dumps([THERE])}",
        f"{json.dumps({'messages': [HELLO]})}\n{json.dumps(THERE)}",
    ],
)
def test_the_shapes_a_file_may_have(database: Database, tmp_path: Path, text: str) -> None:
    assert record(database, imported(database, tmp_path, text)) == [HELLO, THERE]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        (" \n\n ", "empty"),
        ("[]", "no messages"),
        ('{"messages": []}', "no messages"),
        ("not json", "chat.json:1: not JSON"),
        ('[{"role": "user"},\n{"role": "user",\n]', "chat.json:3: not JSON"),
        ('{"role": "user", "content": "a"}\n{"role": ', "chat.json:2: not JSON"),
        ('{"role": "user", "content": "a"}\n7', "chat.json:2: no chat messages"),
        ('{"a": 1}', "no chat messages"),
        ('"hello"', "no chat messages"),
        ('[{"role": "user", "content": "a"}, 7]', "message 2: int"),
        ('[{"role": "wizard", "content": "a"}]', "message 1: role 'wizard'"),
        ('[{"content": "a"}]', "message 1: role None"),
        ('[{"role": "user", "content": {"a": 1}}]', "message 1: content is dict"),
        ('[{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": 5}]', "message 2: tool_calls"),
        (b'[{"role": "user",\n "content": "\xff\xfe"}]', "chat.json:2: not UTF-8"),
        ("[" * 100_000, "nested too deeply"),
        ('[{"role": "user", "content": [NaN]}]', "NaN"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_leaves_nothing(
    database: Database, tmp_path: Path, text: str | bytes, word: str
) -> None:
    with pytest.raises(UsageError) as problem:
        imported(database, tmp_path, text)
    assert word in problem.value.text
    assert problem.value.hint
    assert sessions.rows(database) == []
    assert database.query("SELECT count(*) FROM journal") == [(0,)]


def test_a_device_is_not_read_for_ever(database: Database) -> None:
    with pytest.raises(UsageError, match="device"):
        chat_import.import_file(database, Path("/dev/zero"))


def test_a_file_that_is_not_there(database: Database, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        chat_import.import_file(database, tmp_path / "no.json")
    with pytest.raises(StorageError):
        chat_import.import_file(database, tmp_path)


def test_an_import_that_the_disk_has_no_room_for_leaves_nothing(database: Database, tmp_path: Path) -> None:
    database.query(f"PRAGMA max_page_count = {database.query('PRAGMA page_count')[0][0] + 4}")
    with pytest.raises(StorageError, match="full"):
        imported(database, tmp_path, json.dumps(nasty()))
    assert sessions.rows(database) == []


def test_a_title_is_given_or_taken_from_the_first_question(database: Database, tmp_path: Path) -> None:
    session = imported(database, tmp_path, json.dumps([HELLO, THERE]))
    assert sessions.row(database, session).title == "hello"
    session = chat_import.import_file(database, tmp_path / "chat.json", " My\n chat ")
    assert sessions.row(database, session).title == loading.load_state(database, session).state.title == "My chat"


# ── exports ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_json_lines_come_back_as_an_import(database: Database, tmp_path: Path) -> None:
    session = sessions.create(database, records=[*turns(3), compaction("c1", "g1", "g2")])
    lines = exporting.export_record(loading.load_state(database, session).state, "jsonl")
    again = imported(database, tmp_path, lines)
    assert record(database, again) == record(database, session)
    assert [json.loads(line)["turn"] for line in lines.splitlines()] == [1] * 4 + [2] * 4 + [3] * 4


def test_markdown_reads_well_and_does_nothing(database: Database) -> None:
    records = [*turns(2), Sealed((reply(9, "```\ncode\n```\n\x1b[2J \u202eend\u2066"),)), compaction("c1", "g1")]
    state = loading.load_state(database, sessions.create(database, records=records)).state
    text = exporting.export_record(state, "markdown")
    assert "## User (m1)\n\nquestion 1 about harbour 7\n\n## Assistant (m2)" in text
    assert '```json\n{"path": "a.py"}\n```' in text
    assert not {"\x1b", "\u202e", "\u2066"} & set(text)
    assert "| p" not in markdown.flight_recorder(state)


def test_a_carriage_return_breaks_no_row(database: Database) -> None:
    broken = compaction("c1", "g1")
    assert broken.change.record is not None
    record = msgspec.structs.replace(broken.change.record, detail="went\rwrong")
    records = [*turns(2), Changed(msgspec.structs.replace(broken.change, record=record))]
    state = loading.load_state(database, sessions.create(database, records=records)).state
    assert "| went wrong |" in markdown.flight_recorder(state)


SECRETS = [
    each.secret
    for each in planted()
    if each.kind
    in {"OpenAI, project", "Anthropic", "GitHub, classic", "GitHub, fine-grained", "JWT", "Hugging Face", "GitLab"}
]
AROUND = [
    ("Authorization: Bearer ", "abcdef1234567890.xyz"),
    ("authorization: basic ", "dXNlcjpwYXNz"),
    ("postgres://admin:", "hunter22hunter"),
    ("PASSWORD=", "hunter2hunter2"),
    ('{"api_key": "', "q9w8e7r6t5"),
    ("export OPENAI_API_KEY=", "q9w8e7r6t5"),
    ("aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("https://hooks.slack.com/services/", "T000/B000/aXbXcXdXeXfX"),
    ('{\\"password\\": \\"', "hunter2hunter2"),
]


@pytest.mark.parametrize(("before", "secret"), [*(("see ", secret) for secret in SECRETS), *AROUND])
def test_secrets_leave_no_trace(before: str, secret: str) -> None:
    after = "@host/db" if "postgres" in before else '", "more"' if before.endswith('"') else ' and "more"'
    clean = masked(f"{before}{secret}{after}")
    assert secret not in clean and "[masked" in clean
    assert clean.startswith(before.strip()[:8]) and clean.endswith(after)
    assert masked(clean) == clean


def test_private_keys_go_whole_even_unfinished() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nDEF\n"
    assert masked(f"a\n{key}-----END RSA PRIVATE KEY-----\nb") == "a\n[masked private key]\nb"
    assert masked(key) == "[masked private key]"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the task-force met",
        "max_tokens = 4096",
        "https://example.org/a:b@c",
        "desk-1234567890123456",
        "a password is needed",
        "http://host:8080/x",
    ],
)
def test_harmless_words_stay(text: str) -> None:
    assert masked(text) == text


@given(st.dictionaries(st.text(max_size=12), st.text() | st.sampled_from(SECRETS), max_size=4))
def test_redacted_json_is_still_json(value: dict[str, str]) -> None:
    assert isinstance(json.loads(masked(json.dumps(value))), dict)


def test_exports_for_people_hide_secrets_and_the_exact_one_does_not(database: Database, tmp_path: Path) -> None:
    secret = SECRETS[0]
    call = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": json.dumps({"key": secret})}}
    wires = [
        {"role": "user", "content": f"use {secret}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": secret}]},
    ]
    state = loading.load_state(database, imported(database, tmp_path, json.dumps(wires))).state
    items = compile(state.ledger, Head(), TokenCounter()).items
    for format in ("jsonl", "markdown"):
        assert secret not in exporting.export_record(state, format)
        assert secret not in exporting.export_view(state, items, format)
    view = exporting.export_view(state, items, "openai")
    assert secret not in view
    assert json.loads(json.loads(view)[1]["tool_calls"][0]["function"]["arguments"])
    assert json.loads(exporting.export_record(state, "openai")) == wires


def test_one_file_for_each_compaction(database: Database, tmp_path: Path) -> None:
    ids = [g.id for r in turns(2) for g in r.groups]
    session = sessions.create(database, records=[*turns(3), compaction("c1", *ids[:3]), compaction("c2", *ids)])
    folder = tmp_path / "out" / "archive"
    first, second = exporting.archive_export(database, folder, session)
    head, *lines = [json.loads(line) for line in second.read_text().splitlines()]
    assert (head["type"], head["session"], head["record"]["id"]) == ("compaction", session, "c2")
    assert [line["id"] for line in lines] == [f"m{n}" for n in range(1, 9)]
    assert [line["role"] for line in lines] == ["user", "assistant", "tool", "assistant"] * 2
    if os.name == "posix":
        assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert exporting.archive_export(database, folder, session) == [first, second], "what says the same is left alone"
    first.write_text("mine")
    beside, _ = exporting.archive_export(database, folder, session)
    assert first.read_text() == "mine", "nothing is overwritten"
    assert beside != first and json.loads(beside.read_text().splitlines()[0])["record"]["id"] == "c1"
    assert sorted(folder.iterdir()) == sorted([first, second, beside])


def test_markdown_says_what_turns_did_to_files() -> None:
    made = Checkpoint("f1", 1, (FileChange("a\x1b[2Jb", None, FileState("file", 0o644, "d", 3), 2),))
    back = Checkpoint("f2", 1, (FileChange("c", FileState("file"), None),), undoes=("f1",))
    text = markdown.record(SessionState(checkpoints=(made, back)))
    assert "- turn 1: 1 file created +2 −0 (taken back later)\n    - created a" in text
    assert "1 file deleted (a person took changes back)" in text
    assert "\x1b" not in text
