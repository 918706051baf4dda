"""pi, gemini-cli, Qwen Code, opencode and aider: what is kept of each, and that nothing comes twice."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ctxchat.bootstrap.history_import import unchanged_since_import
from ctxchat.core.facts import facts_of
from ctxchat.core.messages import Image
from ctxchat.importing import formats
from ctxchat.storage import sessions
from ctxchat.storage.database import Database
from tests.importing import wild
from tests.importing.conftest import Bring, put, shown, state


def as_files(root: Path) -> Path:
    session, messages = wild.opencode()
    file = put(root / "session" / "p" / "ses_1.json", [session])
    for message, parts in messages:
        put(root / "message" / "ses_1" / f"{message['id']}.json", [message])
        for part in parts:
            put(root / "part" / message["id"] / f"{part['id']}.json", [part])
    return file


def as_export(root: Path) -> Path:
    session, messages = wild.opencode()
    return put(root / "export.json", [{"info": session, "messages": [{"info": m, "parts": p} for m, p in messages]}])


def as_database(root: Path) -> Path:
    session, messages = wild.opencode()
    file = root / "opencode.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE session (id, parent_id, title, directory, time_created)")
        database.execute("CREATE TABLE message (id, session_id, time_created, data)")
        database.execute("CREATE TABLE part (id, message_id, data)")
        database.execute(
            "INSERT INTO session VALUES ('ses_1', NULL, ?, ?, 1)", (session["title"], session["directory"])
        )
        for message, parts in messages:
            values = (message["id"], message["time"]["created"], json.dumps(message))
            database.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?)", values)
            for part in parts:
                database.execute("INSERT INTO part VALUES (?, ?, ?)", (part["id"], message["id"], json.dumps(part)))
    return file


@pytest.mark.parametrize("made", [as_files, as_export, as_database])
def test_opencode(made: object, database: Database, brought: Bring, tmp_path: Path) -> None:
    file = made(tmp_path)  # type: ignore[operator]
    (told,) = brought(file)
    assert (told.agent, told.outcome, told.messages, told.compactions, told.no_place) == ("opencode", "new", 6, 1, {})
    row = sessions.row(database, told.id)
    assert (row.title, row.folder, row.model) == ("Reading", "/w/tides", "anthropic/claude-sonnet-4-5")
    kept = state(database, told.id)
    assert kept.cost_usd == pytest.approx(1.5)
    assert [p.name for p in kept.ledger.groups[0].first.content if isinstance(p, Image)] == ["shot.png"]
    assert kept.ledger.groups[1].messages[1].text == "x = 1"
    assert shown(kept)[-2:] == ["and y?", "there is none"] and "x is 1" not in shown(kept)
    assert [one.outcome for one in brought(file)] == ["known"]


def test_a_part_of_opencode_that_is_damaged_costs_that_part(database: Database, brought: Bring, tmp_path: Path) -> None:
    file = as_files(tmp_path)
    (tmp_path / "part" / "msg_3" / "prt_msg_3_0.json").write_text('{"type": "te')
    (told,) = brought(file)
    assert told.damaged == ("prt_msg_3_0.json: not JSON",)
    assert told.messages == 5


def test_pi(database: Database, brought: Bring, tmp_path: Path) -> None:
    file = put(tmp_path / "2026_019c-p1.jsonl", wild.pi())
    (told,) = brought(file)
    assert (told.agent, told.messages, told.compactions, told.branches) == ("pi", 11, 1, 1)
    kept = state(database, told.id)
    assert kept.title == "The gauge" and kept.model == "anthropic/claude-opus-4-5"
    assert "a dead end" in [m.text for m in kept.ledger.messages()] and "a dead end" not in shown(kept)
    assert shown(kept)[-3:] == ["and then?", "home", "thanks"]
    assert kept.cost_usd == pytest.approx(1.25)
    assert [one.outcome for one in brought(file)] == ["known"]


def test_the_first_version_of_pi_counts_its_entries(database: Database, brought: Bring, tmp_path: Path) -> None:
    lines = [{k: v for k, v in line.items() if k not in {"parentId", "version"}} for line in wild.pi()]
    lines = [lines[0], *({k: v for k, v in line.items() if k != "id"} for line in lines[1:])]
    lines[11] |= {"firstKeptEntryIndex": 9}
    (told,) = brought(put(tmp_path / "2026_019c-p1.jsonl", lines))
    assert (told.branches, told.compactions) == (0, 1)
    assert shown(state(database, told.id))[-3:] == ["and then?", "home", "thanks"]


def test_gemini(database: Database, brought: Bring, tmp_path: Path) -> None:
    file = put(tmp_path / "session-2026-9e31.json", [json.dumps(wild.gemini(), indent=2)])
    (told,) = brought(file)
    assert (told.agent, told.messages) == ("gemini-cli", 4)
    assert told.no_place == {"messages of the kind info": 1}
    kept = state(database, told.id)
    assert [m.text for m in kept.ledger.messages()] == ["list the files", "", "a.py", "one file"]
    assert kept.model == "gemini/gemini-3-pro" and kept.used == 930
    assert [one.outcome for one in brought(file)] == ["known"]


def test_gemini_in_lines(database: Database, brought: Bring, tmp_path: Path) -> None:
    (told,) = brought(put(tmp_path / "session-2026-9e31.jsonl", wild.gemini_lines()))
    assert (told.messages, told.compactions, told.branches) == (6, 1, 1)
    kept = state(database, told.id)
    assert kept.title == "Files"
    assert "the wrong question" not in shown(kept)
    assert shown(kept)[-1] == "the right question" and "<state_snapshot>" in shown(kept)[0]


def test_a_resumed_session_of_gemini_tells_everything_once(database: Database, brought: Bring, tmp_path: Path) -> None:
    place = tmp_path / "tmp" / "tides"
    (told,) = brought(put(place / "chats" / "session-2026-9e31.jsonl", wild.gemini_resumed()))
    kept = state(database, told.id)
    said = kept.ledger.messages()
    assert [m.role for m in said] == ["user", "user", "assistant", "tool", "user", "assistant"]
    assert [g.kind for g in kept.ledger.groups] == ["note", "user", "round", "note", "reply"]
    assert [p for m in said for p in (m.content if isinstance(m.content, tuple) else ()) if isinstance(p, Image)]
    assert said[2].text == "" and said[2].reasoning and said[2].calls[0].name == "read_file"


def test_what_gemini_keeps_of_a_compressed_history_has_new_ids(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    lines = wild.gemini_resumed()
    summary = lines[2] | {"id": "s", "content": [{"text": "<state_snapshot>read</state_snapshot>"}]}
    kept = [lines[2] | {"id": "k1"}, lines[5] | {"id": "k2", "content": [{"text": "it is one"}]}]
    (told,) = brought(put(tmp_path / "session-2026-9e31.jsonl", [*lines[:6], {"$set": {"messages": [summary, *kept]}}]))
    assert (told.messages, told.compactions) == (6, 1)
    assert shown(state(database, told.id))[1:] == ["read it", "it is one"]


def test_a_start_of_gemini_in_which_nothing_was_said(database: Database, brought: Bring, tmp_path: Path) -> None:
    place = tmp_path / "tmp" / "tides"
    file = put(place / "chats" / "session-2026-9e31.jsonl", wild.gemini_resumed()[:2])
    assert [one.outcome for one in brought(file)] == ["empty"]
    assert unchanged_since_import(database)(file)
    put(file, wild.gemini_resumed())
    (place / ".project_root").write_text("/w/tides")
    (told,) = brought(file)
    assert told.outcome == "new" and sessions.row(database, told.id).folder == "/w/tides"


def test_qwen(database: Database, brought: Bring, tmp_path: Path) -> None:
    file = put(tmp_path / "77aa.jsonl", wild.qwen())
    (told,) = brought(file)
    assert (told.agent, told.messages, told.compactions, told.branches) == ("qwen-code", 10, 1, 1)
    assert told.no_place == {"system lines (ui_telemetry)": 1}
    kept = state(database, told.id)
    assert shown(kept)[1:] == ["and b", "b is two", "the right question", "the right answer"]
    assert "a was read" in shown(kept)[0] and kept.ledger.messages()[1].reasoning
    row = sessions.row(database, told.id)
    assert (row.folder, row.model) == ("/w/tides", "qwen3-coder")
    assert [one.outcome for one in brought(file)] == ["known"]


def test_a_call_of_qwen_without_an_id_has_its_result(database: Database, brought: Bring, tmp_path: Path) -> None:
    told = json.dumps(wild.qwen()).replace('"id": "q1", ', "")
    (made,) = brought(put(tmp_path / "77aa.jsonl", json.loads(told)))
    calls = [group for group in state(database, made.id).ledger.groups if group.first.calls]
    assert [(group.kind, group.messages[1].text) for group in calls] == [("round", "x = 1")]


def test_a_summary_that_folds_nothing_goes_with_the_next(database: Database, brought: Bring, tmp_path: Path) -> None:
    lines = wild.pi()
    first = next(n for n, line in enumerate(lines) if line["type"] == "message")
    id = lines[first]["id"]
    for name in ("s1", "s2"):
        summary = {"type": "compaction", "id": name, "parentId": id, "summary": name, "firstKeptEntryId": id}
        lines.insert(first + 1, summary | {"timestamp": "2026-03-01T12:00:00.000Z"})
    told, before = brought(put(tmp_path / "2026_019c-p1.jsonl", lines)), wild.pi()
    (plain,) = brought(put(tmp_path / "2026_019c-p2.jsonl", [before[0] | {"id": "019c-p2"}, *before[1:]]))
    assert told[0].compactions == plain.compactions + 1


def test_a_chat_of_gemini_that_was_saved_by_hand(database: Database, brought: Bring, tmp_path: Path) -> None:
    call, answer = {"name": "list", "args": {}}, {"name": "list", "response": {"output": "a.py"}}
    contents = [
        {"role": "user", "parts": [{"text": "list the files"}]},
        {"role": "model", "parts": [{"text": "so", "thought": True}, {"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": answer}]},
        {"role": "model", "parts": [{"text": "one"}]},
    ]
    (told,) = brought(put(tmp_path / "checkpoint-mine.json", [contents]))
    assert [m.role for m in state(database, told.id).ledger.messages()] == ["user", "assistant", "tool", "assistant"]


def test_aider(database: Database, brought: Bring, tmp_path: Path) -> None:
    file = tmp_path / ".aider.chat.history.md"
    file.write_text(wild.AIDER)
    first, second = brought(file)
    kept = state(database, first.id)
    assert kept.ledger.groups[1].first.text == "add a test\nfor the gauge"
    assert sessions.row(database, second.id).title == "again"
    assert sessions.row(database, first.id).folder == str(tmp_path)
    assert [one.outcome for one in brought(file)] == ["known", "known"]
    file.write_text(f"{wild.AIDER}\n#### more\n\nYes.\n")
    assert [one.outcome for one in brought(file)] == ["known", "grown"]


def test_the_first_opencode(database: Database, brought: Bring, tmp_path: Path) -> None:
    file = tmp_path / "tides" / ".opencode" / "opencode.db"
    wild.first_opencode(file)
    (told,) = brought(file)
    assert (told.outcome, told.messages, told.compactions, told.no_place) == ("new", 6, 1, {})
    assert told.damaged == ("m8: not JSON",)
    row = sessions.row(database, told.id)
    assert (row.title, row.folder, row.created) == ("Tidy up", str(tmp_path / "tides"), "2025-05-28T11:00:00.000Z")
    kept = state(database, told.id)
    assert shown(kept)[-2:] == ["delete it", "deleted"] and "We listed files." in "".join(shown(kept))
    called = next(m for m in kept.ledger.messages() if m.calls)
    assert called.reasoning and (called.reasoning.text, called.calls[0].name) == ("ls it", "bash")
    assert brought(file)[0].outcome == "known"


def test_messages_without_ids_are_messages(brought: Bring, tmp_path: Path) -> None:
    said = [{"type": "user", "content": "high tide?"}, {"type": "model", "content": "at nine"}]
    chat = {"sessionId": "s", "projectHash": "h", "startTime": "2025-01-01T00:00:00Z", "messages": said}
    (told,) = brought(put(tmp_path / "chats" / "session-1.json", [chat]))
    assert (told.outcome, told.messages, told.no_place) == ("new", 2, {})


def test_codex_items_without_a_kind_and_times_in_seconds(database: Database, brought: Bring, tmp_path: Path) -> None:
    lines = [
        {"timestamp": 1737100000.5, "type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
        {"timestamp": 1737100001.5, "type": "response_item", "payload": {"role": "user", "content": "high tide?"}},
        {"timestamp": 1737100002.5, "type": "response_item", "payload": {"role": "assistant", "content": "at nine"}},
    ]
    (told,) = brought(put(tmp_path / "rollout-1.jsonl", lines))
    assert (told.outcome, told.messages, told.no_place) == ("new", 2, {})
    assert state(database, told.id).ledger.groups[0].first.at == "2025-01-17T07:46:41.500Z"


def failing(agent: str, *, failed: bool) -> list[wild.Line]:
    """A session of this agent in which a file was written to, and the tool called that an error or did not."""
    words = "Could not find the exact text in a.py."
    match agent:
        case "claude-code":
            lines = wild.claude()
            lines[5]["message"]["content"][0] |= {"content": words, "is_error": failed}
            lines[3]["message"]["content"][0] |= {"name": "Edit", "input": {"file_path": "a.py"}}
        case "pi":
            lines = wild.pi()
            lines[3]["message"] |= {"content": [{"type": "text", "text": words}], "isError": failed}
            lines[2]["message"]["content"][1] |= {"name": "edit", "arguments": {"path": "a.py"}}
        case "gemini-cli":
            document = wild.gemini()
            call = document["messages"][1]["toolCalls"][0]
            call |= {"name": "replace", "args": {"file_path": "a.py"}, "status": "error" if failed else "success"}
            call["result"][0]["functionResponse"]["response"] = {"output": words}
            lines = [json.dumps(document)]
        case _:
            session, messages = wild.opencode()
            state = {"status": "error" if failed else "completed", "input": {"filePath": "a.py"}, "output": words}
            messages[1][1][2] |= {"tool": "edit", "state": state}
            whole = [{"info": m, "parts": p} for m, p in messages]
            lines = [{"info": session, "messages": whole}]
    return lines


@pytest.mark.parametrize("agent", ["claude-code", "pi", "gemini-cli", "opencode"])
@pytest.mark.parametrize("failed", [True, False])
def test_what_the_other_agent_kept_as_an_error_did_nothing(
    agent: str, *, failed: bool, database: Database, brought: Bring, tmp_path: Path
) -> None:
    name = "export.json" if agent in {"opencode", "gemini-cli"} else "2026_019c-p1.jsonl"
    (told,) = brought(put(tmp_path / name, failing(agent, failed=failed)))
    assert told.agent == agent
    groups = state(database, told.id).ledger.groups
    assert [f.key for g in groups for f in facts_of(g) if f.kind == "changed"] == ([] if failed else ["a.py"])


def test_results_in_another_order_than_their_calls_are_numbered_as_they_stand(
    database: Database, brought: Bring, tmp_path: Path
) -> None:
    lines = wild.claude()
    lines[5], lines[6] = lines[6], lines[5]
    said = {"type": "queue", **lines[8], "uuid": "meanwhile", "parentUuid": "a3"}
    said |= {"type": "user", "message": {"role": "user", "content": "and be quick"}}
    lines.insert(6, said)
    (told,) = brought(put(tmp_path / "5e55.jsonl", lines))
    places = [m.seq for m in state(database, told.id).ledger.messages()]
    texts = [m.text for m in state(database, told.id).ledger.messages()]
    assert places == list(range(1, len(places) + 1))
    assert texts.index("first file") + 1 == texts.index("second file") < texts.index("and be quick")


CLAUDE, GEMINI = ".claude/settings.json", ".gemini/settings.json"


@pytest.mark.parametrize(
    ("agent", "settings", "kept"),
    [
        ("claude-code", {}, "30 days"),
        ("claude-code", {CLAUDE: "{}"}, "30 days"),
        ("claude-code", {CLAUDE: '{"cleanupPeriodDays": 99999}'}, "99,999 days"),
        ("claude-code", {CLAUDE: '{"cleanupPeriodDays": 1}'}, "1 day"),
        ("claude-code", {CLAUDE: '{"cleanupPeriodDays": "all"}'}, "30 days"),
        ("claude-code", {CLAUDE: '{"cleanupPeriodDays": 5'}, "30 days"),
        ("claude-code", {CLAUDE: "[" * 100_000}, "30 days"),
        ("gemini-cli", {}, "30 days"),
        ("gemini-cli", {GEMINI: '{"general": {"sessionRetention": {"maxAge": "2w"}}}'}, "2 weeks"),
        ("gemini-cli", {GEMINI: '{"general": {"sessionRetention": {"enabled": false}}}'}, ""),
        ("gemini-cli", {GEMINI: '{"general": {"sessionRetention": {"maxAge": "long"}}}'}, ""),
        ("gemini-cli", {GEMINI: '{"general": 3}'}, "30 days"),
        ("codex", {}, ""),
    ],
)
def test_how_long_an_agent_keeps_its_sessions(tmp_path: Path, agent: str, settings: dict[str, str], kept: str) -> None:
    for name, text in settings.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    assert formats.named(agent).kept_for(tmp_path) == kept
