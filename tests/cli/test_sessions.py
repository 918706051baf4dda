"""Stored sessions from the command line: in, out, equal, and the view fit for any provider."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from ctxchat.core.quantities import short
from tests.cli.conftest import Cli, Home
from tests.cli.strict import complaints
from tests.storage.samples import nasty

FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
CHAT = [
    {"role": "user", "content": "What is in a.py?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
    {"role": "assistant", "content": "It sets x to 1."},
]


def imported(cli: Cli, home: Home, chat: object = CHAT) -> str:
    return cli("sessions", "import", home.put("chat.json", chat)).out.strip()


def test_a_long_transcript_comes_back_equal_and_its_view_fits_any_provider(cli: Cli, home: Home) -> None:
    chat = nasty(120)
    id = imported(cli, home, chat)
    back = cli("sessions", "export", id, "--view", "record", "--format", "openai").json
    assert [{f: m[f] for f in FIELDS if f in m} for m in back] == [{f: m[f] for f in FIELDS if f in m} for m in chat]
    view = cli("sessions", "export", id, "--view", "model").json
    assert complaints(view) == []
    assert view[0]["role"] == "system"
    assert len(view) > 120


def test_the_view_after_a_compaction_fits_any_provider_too(cli: Cli, home: Home) -> None:
    id = imported(cli, home, nasty(120))
    assert cli("compact", id, "--json").json["outcome"] == "compacted"
    assert complaints(cli("sessions", "export", id, "--view", "model").json) == []
    assert len(cli("sessions", "export", id).json) == len(nasty(120))


def test_json_lines_are_imported_as_json_is(cli: Cli, home: Home) -> None:
    lines = "\n".join(json.dumps(message) for message in CHAT)
    id = cli("sessions", "import", home.put("chat.jsonl", lines), "--title", "Lines", "--json").json["id"]
    assert cli("sessions", "export", id).json == CHAT
    assert cli("sessions", "list", "--json").json[0]["title"] == "Lines"


def test_list_has_all_fields_with_their_types(cli: Cli, home: Home) -> None:
    id = imported(cli, home)
    (row,) = cli("sessions", "list", "--json").json
    assert row["id"] == id
    assert row["title"] == "What is in a.py?"
    assert row["messages"] == 4
    texts = ("id", "title", "created", "updated", "model", "parent")
    assert all(isinstance(row[name], str) for name in texts)
    assert all(isinstance(row[name], int) for name in ("messages", "used", "compactions"))
    assert row["created"].endswith("Z")
    assert row["used"] > 0 and row["estimated"] is True  # nobody has answered it yet
    assert f"~{short(row['used'])}" in cli("sessions", "list").out


@pytest.mark.parametrize("view", ["record", "model"])
def test_every_format_says_what_was_said(cli: Cli, home: Home, view: str) -> None:
    id = imported(cli, home)
    lines = cli("sessions", "export", id, "--view", view, "--format", "jsonl").lines
    assert "It sets x to 1." in [line["content"] for line in lines]
    assert "It sets x to 1." in cli("sessions", "export", id, "--view", view, "--format", "markdown").out
    refused = cli("sessions", "export", id, "--view", view, "--format", "markdown", "--json")
    assert refused.code == 2 and not refused.out and "not the same thing" in refused.err


def test_show_fork_rename_and_delete(cli: Cli, home: Home) -> None:
    id = imported(cli, home)
    assert "It sets x to 1." in cli("sessions", "show", id).out
    assert len(cli("sessions", "show", id, "--json").json["record"]) == 4
    other = cli("sessions", "fork", id, "--message", "m1", "--json").json["id"]
    assert cli("sessions", "export", other).json == CHAT[:1]
    assert cli("sessions", "rename", other, "The other", "--json").json == {"id": other, "title": "The other"}
    rows = {row["id"]: row for row in cli("sessions", "list", "--json").json}
    assert (rows[other]["title"], rows[other]["parent"]) == ("The other", id)
    assert cli("sessions", "delete", id, "--json").json == {"id": id, "deleted": True}
    assert [row["id"] for row in cli("sessions", "list", "--json").json] == [other]
    assert not (home.data / "sessions" / id).exists()


def test_a_unique_beginning_of_an_id_is_enough(cli: Cli, home: Home) -> None:
    id = imported(cli, home)
    assert cli("sessions", "export", id[:8]).json == CHAT
    assert cli("--session", id[:8], "context", "--json").json["session"] == id


def test_output_goes_to_a_private_file_and_replaces_none(cli: Cli, home: Home) -> None:
    id = imported(cli, home)
    file = home.work / "out.json"
    assert cli("sessions", "export", id, "-o", str(file)).code == 0
    assert json.loads(file.read_text()) == CHAT
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = cli("sessions", "export", id, "-o", str(file))
    assert again.code == 1
    assert "out.json" in again.sentence


def test_foreign_text_in_tables_is_harmless(cli: Cli, home: Home) -> None:
    imported(
        cli,
        home,
        [{"role": "user", "content": "see [/tmp/x] [bold]hi[/bold] \x1b]0;x\x07\x1b[2J\u202egnp.exe\nsecond"}],
    )
    out = cli("sessions", "list").out
    assert "see [/tmp/x] [bold]hi[/bold] gnp.exe second" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert not {"\x1b", "\x07", "\u202e"} & set(cli("sessions", "show").out)


def test_nothing_stored_yet(cli: Cli, home: Home) -> None:
    assert cli("sessions", "list", "--json").json == []
    assert cli("sessions", "list").err == "No sessions yet.\n"
    assert "no session" in cli("context").sentence


def test_a_session_nothing_was_said_in_is_not_kept(cli: Cli, home: Home) -> None:
    assert cli("run", "--model", "nope/x", "hi").code == 2
    assert cli("sessions", "list", "--json").json == []


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("{bad", "bad.json:1"),
        ("[1, 2]", "message 1"),
        ('[{"role": "wizard", "content": "x"}]', "wizard"),
        ('[{"role": "user", "content": 7}]', "int"),
        ("", "empty"),
    ],
)
def test_a_bad_file_to_import_is_named_and_nothing_is_stored(cli: Cli, home: Home, content: str, what: str) -> None:
    ran = cli("sessions", "import", home.put("bad.json", content))
    assert ran.code == 2
    assert what in ran.sentence
    assert cli("sessions", "list", "--json").json == []


def test_binary_files_folders_and_missing_files_are_refused(cli: Cli, home: Home, tmp_path: Path) -> None:
    binary = home.work / "picture.png"
    binary.write_bytes(b"\x89PNG\xff\xfe\x00" * 100)
    assert "picture.png" in cli("sessions", "import", str(binary)).sentence
    assert "work" in cli("sessions", "import", str(home.work)).sentence
    missing = cli("sessions", "import", "nowhere.json")
    assert missing.code == 2
    assert "nowhere.json" in missing.sentence


@pytest.mark.parametrize("nothing", ["", " ", "-"])
def test_a_word_that_names_no_session_deletes_and_renames_none(cli: Cli, home: Home, nothing: str) -> None:
    id = imported(cli, home)
    for command in (("delete", "--", nothing), ("rename", "--", nothing, "other")):
        ran = cli("sessions", *command)
        assert ran.code == 2 and "is no session id" in ran.sentence
    (row,) = cli("sessions", "list", "--json").json
    assert row["id"] == id and row["title"] != "other"
