"""The evidence ledger: what is found, what stands when two facts meet, what fits, and what a view still holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.evidence import run, summarised, truncated
from ctxchat.core.evidence import Memory, collect, facts_of, fitting, render, survival
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.record import Evidence, Fact
from ctxchat.core.tokens import Meter, rough_count
from ctxchat.core.view import Frame, compile
from tests.core.histories import histories


def by_kind(evidence: Evidence, kind: str) -> dict[str, str]:
    return {f.key: f.value for f in evidence.facts if f.kind == kind}


def said(text: str, role: str = "user") -> Group:
    message = Message(1, "user" if role == "user" else "assistant", text)
    return single("user" if role == "user" else "reply", message, 1)


def ran(name: str, arguments: str, result: str, seq: int = 1) -> Group:
    call = Message(seq, "assistant", calls=(ToolCall("a", name, arguments),))
    return Group(f"g{seq}", "round", (call, Message(seq + 1, "tool", result, call_id="a")), 1)


def test_commands_carry_their_outcome_and_the_newest_wins() -> None:
    first = ran("shell", '{"command": "pytest -q"}', "3 failed, 41 passed in 2.1s\n[exit code: 1]")
    second = ran("shell", '{"command": "pytest -q"}', "44 passed in 2.0s\n[exit code: 0]", seq=3)
    evidence = collect([first, second])
    assert by_kind(evidence, "command") == {"pytest -q": "exit 0, 44 passed"}
    assert by_kind(collect([second, first]), "command") == {"pytest -q": "exit 1, 3 failed, 41 passed"}


def test_a_changed_file_is_not_listed_as_read_and_a_failed_read_not_at_all() -> None:
    read = ran("read_file", '{"path": "src/db.py"}', "import x")
    change = ran("edit_file", '{"path": "src/db.py"}', "edited", seq=3)
    missing = ran("read_file", '{"path": "src/gone.py"}', "error: no such file", seq=5)
    evidence = collect([read, change, missing])
    assert list(by_kind(evidence, "changed")) == ["src/db.py"]
    assert by_kind(evidence, "read") == {}


@pytest.mark.parametrize(
    ("text", "kind", "key", "value"),
    [
        ("p95 latency is 412 ms today", "number", "p95 latency is 412 ms", ""),
        ("max_connections = 200", "number", "max_connections", "200"),
        ("it costs about $1,200 a month", "number", "it costs about $1,200", ""),
        ("look at src/app/db.py now", "path", "src/app/db.py", ""),
        ("in ~/notes/plan.md.", "path", "~/notes/plan.md", ""),
        ("see https://example.org/a?b=1.", "url", "https://example.org/a?b=1", ""),
        ("commit 3fa91bc broke it", "identifier", "3fa91bc", ""),
        ("ticket PROJ-123 and", "identifier", "PROJ-123", ""),
        ("set MAX_RETRIES please", "identifier", "MAX_RETRIES", ""),
        ("use `make_pool` there", "identifier", "make_pool", ""),
        ("Never push to main. Thanks", "rule", "Never push to main.", ""),
        ("Nunca apague os testes.", "rule", "Nunca apague os testes.", ""),
        ("テストを消さないでください。", "rule", "テストを消さないでください。", ""),
        ("We decided to use SQLite.", "decision", "We decided to use SQLite.", ""),
    ],
)
def test_facts_are_found_in_what_people_say(text: str, kind: str, key: str, value: str) -> None:
    assert by_kind(collect([said(text)]), kind).get(key) == value


def test_only_the_user_makes_rules() -> None:
    assert by_kind(collect([said("You must never do this.", "assistant")]), "rule") == {}


def test_errors_are_found_in_results_and_in_nothing_else() -> None:
    failed = ran("shell", '{"command": "make"}', "ok\nsrc/a.c:3: error: missing ;\n0 warnings\n[exit code: 2]")
    assert list(by_kind(collect([failed]), "error")) == ["src/a.c:3: error: missing ;"]
    assert by_kind(collect([said("I get an error: none")]), "error") == {}


def test_versions_dates_and_prose_are_no_paths() -> None:
    found = by_kind(collect([said("and/or, 1/2, 12/05/2024, e.g. this, w/o it, 3.11")]), "path")
    assert found == {}


@settings(max_examples=100, deadline=None)
@given(histories, st.integers(0, 400))
def test_what_is_rendered_fits_and_nothing_is_said_twice(history: list[Message], cap: int) -> None:
    evidence = collect(group_messages(history))
    assert len({(f.kind, f.key) for f in evidence.facts}) == len(evidence.facts)
    assert rough_count(render(evidence, cap, rough_count)) <= cap
    assert set(fitting(evidence, cap, rough_count).facts) <= set(evidence.facts)


@settings(max_examples=100, deadline=None)
@given(histories)
def test_collecting_in_steps_is_collecting_at_once(history: list[Message]) -> None:
    groups = group_messages(history)
    memory = Memory()
    steps = Evidence()
    for group in groups:
        steps = collect([group], steps, memory.facts_of)
    assert set(steps.facts) == set(collect(groups, None, memory.facts_of).facts)
    assert collect(groups, steps).facts == collect(groups).facts or set(collect(groups, steps).facts) == set(
        steps.facts
    )


def test_survival_names_what_is_lost() -> None:
    evidence = Evidence(
        (Fact("changed", "src/a.py"), Fact("command", "pytest -q", "exit 1"), Fact("number", "port", "80"))
    )
    messages = [Message(1, "user", "I changed src/a.py; port was 8080"), Message(2, "assistant", "ran pytest  -q")]
    count, lost = survival(evidence, compile(Ledger(groups=group_messages(messages)), Frame(), Meter()))
    assert (count.found, count.kept) == (3, 2)
    assert [f.key for f in lost] == ["port"]


def test_three_passes_keep_at_least_95_percent() -> None:
    for way in (summarised, truncated):
        shares, _ = run(way, 4_000, (3,))[3]
        assert all(share >= 0.95 for share in shares.values()), shares


def test_twenty_passes_stay_capped_and_the_newest_stands() -> None:
    evidence = Evidence()
    sizes: list[int] = []
    for number in range(1, 21):
        groups = [
            said(f"timeout = {number}. Never touch file{n}_{number}.py. Port {n}: see /srv/a{n}/b{number}")
            for n in range(60)
        ]
        evidence = collect(groups, evidence)
        sizes.append(len(evidence.facts))
    assert by_kind(evidence, "number")["timeout"] == "20"
    assert len(set(sizes[8:])) == 1, "it does not grow for ever"
    text = render(evidence, 1000, rough_count)
    assert text.count("Rules from the user:") == 1
    assert "timeout: 20" in text


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a.a" * 60_000, "1,1" * 60_000, "/a" * 60_000, "+a" * 60_000, "A_" * 60_000, ". " * 90_000]
)
def test_awkward_text_gives_few_facts(text: str) -> None:
    """And gives them at once: a pattern gone quadratic would hang here."""
    assert len(facts_of(said(text))) < 200
    assert len(facts_of(ran("shell", '{"command": "x"}', text + " error"))) < 200


@pytest.mark.parametrize(
    "line",
    [
        "88: raise self.refused('empty') from problem",
        "    raise ValueError(message)",
        "36 | except KeyError:",
        "# Error codes",
    ],
)
def test_source_code_in_a_listing_is_no_error(line: str) -> None:
    shown = ran("bash", '{"command": "open shapes.py"}', f"[File: shapes.py]\n{line}\nValueError: bad")
    assert list(by_kind(collect([shown]), "error")) == ["ValueError: bad"]


def test_the_cut_in_a_long_result_makes_no_half_facts() -> None:
    words = " ".join(f"/srv/data/part_{n:04d}/table.csv" for n in range(600))
    paths = by_kind(collect([ran("bash", '{"command": "ls"}', words)]), "path")
    assert paths and all(len(path) == len("/srv/data/part_0000/table.csv") for path in paths)


def test_speeds_are_no_paths_and_a_number_keeps_the_whole_word_before_it() -> None:
    long = "/srv/" + "deep/" * 20 + "table.csv"
    evidence = collect([said(f"It ran at 51234.5it/s and {long} has 76 lines.")])
    assert list(by_kind(evidence, "path")) == [long]
    assert any(key.endswith("table.csv has 76 lines") and "deep/deep" in key for key in by_kind(evidence, "number"))


def test_what_a_command_says_takes_no_room_again() -> None:
    facts = (
        Fact("path", "src/app"),
        Fact("path", "db.py"),
        Fact("path", "src/app/db.py"),
        Fact("command", "python src/app/db.py --check", "exit 0"),
    )
    text = render(Evidence(facts), 1000, rough_count)
    assert text == "Commands run: `python src/app/db.py --check` → exit 0\nPaths mentioned: db.py"


def test_what_a_tool_only_listed_gives_way_to_what_somebody_said() -> None:
    listing = ran("bash", '{"command": "ls src"}', "\n".join(f"src/part_{n}/table.csv" for n in range(60)), seq=3)
    evidence = collect(
        [said("Mind src/billing/rates.csv please."), listing, ran("grep", "{}", "src/billing/rates.csv", 7)]
    )
    assert len(by_kind(evidence, "path")) == 61
    assert by_kind(evidence, "path")["src/billing/rates.csv"] == "", (
        "naming it again in a listing takes nothing from it"
    )
    text = render(evidence, 120, rough_count)
    assert "src/billing/rates.csv" in text and "part_59" in text and "part_0/" not in text
