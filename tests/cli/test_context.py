"""The gauge and compactions from the command line: fields, sums, and what a dry run must not do."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ctxchat.core.quantities import short
from tests.cli.conftest import Cli, Home

SECTIONS = [
    *("system", "tools", "memory", "injected", "summary", "pinned", "user", "assistant", "tool_results"),
    *("draft", "reserved", "free"),
]
COMPACT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "outcome": str, "id": str, "reason": str, "strategy": str, "steps": list, "before": dict, "after": dict,
    "folded_messages": int, "folded_groups": int, "facts": dict, "seconds": float, "cost_usd": (int, float), "detail": str,
    "missed": str,
}  # fmt: skip
CONTEXT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "session": str, "model": str, "window": int, "window_source": str, "reserved_output": int, "limit": int, "used": int,
    "estimated": bool, "pressure": (int, float), "trigger_tokens": int, "target_tokens": int,
    "forecast_turns": (int, float, type(None)), "compactions": int, "cost_usd": (int, float), "sections": list,
    "working_limit": int, "working_limit_source": str,
}  # fmt: skip


def work_session(turns: int = 40) -> list[dict[str, Any]]:
    """A chat that reads files and runs commands, some 20,000 tokens of it."""
    chat: list[dict[str, Any]] = []
    for turn in range(turns):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/part_{turn}.py"})}
        chat += [
            {"role": "user", "content": f"Look at part {turn}; the marker is Cormorant-{turn}."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"value_{turn} = {turn}\n" * 60},
            {"role": "assistant", "content": f"Part {turn} sets value_{turn} in src/part_{turn}.py."},
        ]
    return chat


@pytest.fixture
def session(cli: Cli, home: Home) -> str:
    return cli("sessions", "import", home.put("work.json", work_session())).out.strip()


def has(value: dict[str, Any], fields: dict[str, type | tuple[type, ...]]) -> None:
    for name, kind in fields.items():
        assert isinstance(value[name], kind), name


def adds_up(context: dict[str, Any]) -> None:
    sections = {part["name"]: part["tokens"] for part in context["sections"]}
    assert list(sections) == SECTIONS
    assert sum(tokens for name, tokens in sections.items() if name not in {"reserved", "free"}) == context["used"]
    if context["used"] + sections["reserved"] <= context["window"]:
        assert sum(sections.values()) == context["window"]


def test_context_has_all_fields_and_adds_up(cli: Cli, session: str) -> None:
    context = cli("context", session, "--json").json
    has(context, CONTEXT_FIELDS)
    adds_up(context)
    assert context["session"] == session
    assert context["used"] > 10_000
    assert context["estimated"] is True
    assert context["pressure"] == pytest.approx(context["used"] / context["limit"], abs=1e-3)
    assert all(isinstance(part["estimated"], bool) for part in context["sections"])


@pytest.mark.parametrize("window", ["1", "500", "8000", "200000", "2000000"])
def test_it_adds_up_in_any_window(cli: Cli, session: str, window: str) -> None:
    context = cli("context", session, "--json", "--window", window).json
    adds_up(context)
    assert (context["window"], context["window_source"]) == (int(window), "configured")
    assert context["limit"] >= 1


def test_for_people_it_is_a_table(cli: Cli, session: str) -> None:
    said = cli("context", session).out
    context_usage = cli("context", session, "--json").json
    assert f"~{short(context_usage['used'])}/{short(context_usage['limit'])} tokens" in said, "as on screen"
    assert "tool results" in said and not re.search(r"\d%", said)


def test_a_dry_run_changes_nothing(cli: Cli, home: Home, session: str) -> None:
    before = cli("context", session, "--json").json
    rows = stored(home)
    planned = cli("compact", session, "--dry-run", "--json").json
    has(planned, COMPACT_FIELDS)
    assert planned["outcome"] == "compacted"
    assert planned["after"]["used"] < planned["before"]["used"]
    assert stored(home) == rows
    assert cli("context", session, "--json").json == before


@pytest.mark.parametrize("strategy", ["", "summarize", "truncate", "shrink_tool_results", "sliding_window"])
def test_a_dry_run_says_what_will_come_of_it(cli: Cli, session: str, strategy: str) -> None:
    chosen = ["--strategy", strategy] if strategy else []
    planned = cli("compact", session, *chosen, "--dry-run", "--json").json
    done = cli("compact", session, *chosen, "--json").json
    assert planned["before"] == {k: v for k, v in done["before"].items() if k != "sections"}
    assert planned["after"] == {k: v for k, v in done["after"].items() if k != "sections"}
    assert sum(s["tokens_freed"] for s in planned["steps"]) == pytest.approx(
        planned["before"]["used"] - planned["after"]["used"], abs=len(planned["steps"])
    )
    assert (planned["folded_messages"], planned["folded_groups"]) == (done["folded_messages"], done["folded_groups"])
    assert planned["facts"] == done["facts"] and planned["missed"] == done["missed"]


def stored(home: Home) -> list[Any]:
    """The whole record."""
    connection = sqlite3.connect(home.data / "ctxchat.db")
    try:
        return connection.execute("SELECT session, seq, body FROM journal ORDER BY id").fetchall()
    finally:
        connection.close()


def test_compacting_frees_and_tells(cli: Cli, session: str) -> None:
    result = cli("compact", session, "--json", "--target", "0.2").json
    has(result, COMPACT_FIELDS)
    assert (result["outcome"], result["reason"]) == ("compacted", "offline")
    assert result["folded_messages"] > 0
    freed = result["before"]["used"] - result["after"]["used"]
    assert freed == sum(step["tokens_freed"] for step in result["steps"]) > 0
    assert all(isinstance(step["tokens_freed"], int) and step["name"] and step["groups"] for step in result["steps"])
    assert result["facts"]["kept"] <= result["facts"]["found"]
    after = cli("context", session, "--json").json
    adds_up(after)
    assert after["used"] == result["after"]["used"]
    assert after["compactions"] == 1


def test_a_missed_target_is_told_to_programs_too(cli: Cli, session: str) -> None:
    result = cli("compact", session, "--json", "--target", "0.001").json
    assert "above the target of" in result["missed"]


def test_nothing_to_free_is_said_calmly(cli: Cli, home: Home) -> None:
    cli("sessions", "import", home.put("small.json", [{"role": "user", "content": "hi"}]))
    result = cli("compact", "--json").json
    assert result["outcome"] == "noop"
    assert result["detail"]
    assert cli("archive", "list", "--json").json == []


@pytest.mark.parametrize(
    "strategy", ["truncate", "sliding_window", "drop_tool_calls", "shrink_tool_results", "pipeline"]
)
def test_a_strategy_can_be_chosen(cli: Cli, session: str, strategy: str) -> None:
    result = cli("compact", session, "--strategy", strategy, "--keep-recent", "6", "--target", "0.2", "--json").json
    assert result["outcome"] == "compacted"
    assert strategy in result["strategy"]


def test_an_unknown_strategy_names_those_there_are(cli: Cli, session: str) -> None:
    ran = cli("compact", session, "--strategy", "magic")
    assert ran.code == 2
    assert "magic" in ran.sentence
    assert "truncate" in ran.sentence


def test_the_archive_shows_finds_restores_and_exports(cli: Cli, home: Home, session: str) -> None:
    used = cli("context", session, "--json").json["used"]
    done = cli("compact", session, "--json", "--target", "0.2").json
    (row,) = cli("archive", "list", session, "--json").json
    assert row["id"] == done["id"]
    assert set(row) >= {"id", "session", "reason", "strategy", "at", "before", "after", "messages"}
    assert (row["before"], row["after"]) == (done["before"]["used"], done["after"]["used"])

    shown = cli("archive", "show", row["id"], "--json").json
    assert set(shown) >= {"record", "summary", "ledger", "messages"}
    assert {"role": "user", "content": "Look at part 3; the marker is Cormorant-3."} in shown["messages"]
    assert "Cormorant-3" in cli("archive", "show", row["id"]).out

    hits = cli("archive", "search", "Cormorant-3", "--json").json
    first = hits[0]
    assert set(first) >= {"session", "message", "role", "snippet", "tokens", "compaction"}
    assert (first["session"], first["compaction"]) == (session, row["id"])

    one = cli("archive", "restore", row["id"], "--message", first["message"], "--json").json
    adds_up(one)
    assert one["used"] > done["after"]["used"]

    folder = home.root / "archives"
    (file,) = cli("archive", "export", str(folder), "--json").json
    lines = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").split("\n") if line]
    assert lines[0]["type"] == "compaction"
    assert len(lines) == 1 + row["messages"]

    back = cli("archive", "restore", row["id"], "--json").json
    assert back["used"] >= used
    assert back["compactions"] == 0
    record = cli("sessions", "export", session).json
    assert record[: len(work_session())] == work_session()


def test_search_finds_nothing_and_takes_any_words(cli: Cli, session: str) -> None:
    assert cli("archive", "search", "nowhere-to-be-found", "--json").json == []
    for query in ('"', "a AND (", "*", "NEAR/3", "é\x00", "-"):
        assert cli("archive", "search", query, "--json").code == 0
    assert "nothing to search for" in cli("archive", "search", " ").err


def test_search_is_narrowed_by_role_tool_session_and_pass(cli: Cli, home: Home, session: str) -> None:
    def found(query: str, *options: str) -> list[dict[str, Any]]:
        return cli("archive", "search", query, "--limit", "1000", "--json", *options).json

    other = cli(
        "sessions", "import", home.put("other.json", [{"role": "user", "content": "Cormorant-3 flies"}])
    ).out.strip()
    done = cli("compact", session, "--json", "--target", "0.2").json
    everywhere = found("Cormorant")
    assert {hit["session"] for hit in everywhere} == {session, other}
    assert {hit["session"] for hit in found("Cormorant", "--session", other)} == {other}
    assert {hit["role"] for hit in found("value_7", "--role", "tool")} == {"tool"}
    assert {hit["role"] for hit in found("value_7", "--role", "assistant")} == {"assistant"}
    by_tool = found("part_7", "--tool", "read_file")
    assert by_tool and {hit["tool"] for hit in by_tool} == {"read_file"}
    assert found("part_7", "--tool", "shell") == []
    before = found("Cormorant", "--before", done["id"])
    assert {hit["session"] for hit in before} == {session} and before == found("Cormorant", "--before", done["id"][:-1])
    assert found("Cormorant", "--before", "last") == before
    assert {hit["session"] for hit in found("Cormorant", "--after", "last")} == {other}, "never compacted: all is since"
    assert all(hit["tokens"] > 0 for hit in everywhere)
    assert f"{everywhere[0]['tokens']} tokens" in cli("archive", "search", "Cormorant").out


@pytest.mark.parametrize("option", ["--before", "--after"])
def test_a_pass_that_is_not_there_is_said(cli: Cli, session: str, option: str) -> None:
    ran = cli("archive", "search", "Cormorant", option, "never")
    assert ran.code == 2 and "No compaction begins with never." in ran.sentence


def test_budgets_of_sections_are_in_the_figures_and_a_breach_is_told(cli: Cli, home: Home, session: str) -> None:
    (home.settings / "config.toml").write_text(
        "[context.sections.tools]\nbudget = 10\n[context.sections.user]\nbudget = 900000\n", encoding="utf-8"
    )
    context = cli("context", session, "--json").json
    adds_up(context)
    parts = {part["name"]: part for part in context["sections"]}
    assert parts["tools"]["budget"] == 10 and parts["tools"]["over"] == parts["tools"]["tokens"] - 10 > 0
    assert parts["user"]["budget"] == 900_000 and parts["user"]["over"] == 0 == parts["system"]["budget"]
    (line,) = [line for line in cli("context", session).out.splitlines() if line.endswith(" over")]
    assert line.startswith("tools")


def test_a_message_that_is_about_to_be_sent_is_in_the_figures(cli: Cli, session: str) -> None:
    before = cli("context", session, "--json").json
    after = cli("context", session, "--json", "--draft", "what of the gauge " * 200).json
    adds_up(after)
    (draft,) = [part["tokens"] for part in after["sections"] if part["name"] == "draft"]
    assert draft > 500 and after["used"] == pytest.approx(before["used"] + draft, abs=20)


def test_that_no_compaction_can_help_is_said(cli: Cli, session: str) -> None:
    ran = cli("context", session, "--window", "2000")
    assert "No compaction can help: system, tools and memory hold" in ran.err
    assert cli("context", session).err == ""
