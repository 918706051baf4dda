"""The evidence ledger: what is found, what stands when two facts meet, what fits, and what a view still holds."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.evidence import run, summarised, truncated
from ctxchat.core.facts import (
    KINDS,
    Memory,
    collect,
    facts_of,
    fitting,
    merged,
    render,
    survival,
)
from ctxchat.core.facts.order import ranked
from ctxchat.core.facts.page import allotted, unfolded
from ctxchat.core.facts.symbols import names_read
from ctxchat.core.grouping import group_messages, single
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message, Text, ToolCall
from ctxchat.core.pending import open_requests
from ctxchat.core.record import Evidence, Fact, FactKind
from ctxchat.core.tokens import TokenCounter, rough_count
from ctxchat.core.view import compile
from ctxchat.core.working_set import touched
from tests.core.histories import histories


def by_kind(evidence: Evidence, kind: str) -> dict[str, str]:
    return {f.key: f.value for f in evidence.facts if f.kind == kind}


def said(text: str, role: str = "user", turn: int = 1) -> Group:
    message = Message(turn, "user" if role == "user" else "assistant", text)
    return single("user" if role == "user" else "reply", message, turn)


def ran(name: str, arguments: str, result: str, seq: int = 1) -> Group:
    call = Message(seq, "assistant", calls=(ToolCall("a", name, arguments),))
    return Group(f"g{seq}", "round", (call, Message(seq + 1, "tool", result, call_id="a")), 1)


def test_commands_carry_their_outcome_and_the_newest_wins() -> None:
    first = ran("shell", '{"command": "pytest -q"}', "3 failed, 41 passed in 2.1s\n[exit code: 1]")
    second = ran("shell", '{"command": "pytest -q"}', "44 passed in 2.0s\n[exit code: 0]", seq=3)
    evidence = collect([first, second])
    assert by_kind(evidence, "command") == {"pytest -q": "exit 0, 44 passed"}
    assert collect([second, first]) == evidence, (
        "what was pinned for a while and is folded late brings nothing old back"
    )


def test_a_run_of_some_tests_stands_beside_the_last_of_all() -> None:
    """What ran in part says nothing of the rest: neither its result nor what failed there is replaced."""

    def ran_tests(command: str, result: str, seq: int) -> Group:
        return ran("shell", json.dumps({"command": command}), result, seq)

    whole = ran_tests(
        "pytest -q", "2 failed, 41 passed\nFAILED tests/b.py::test_closes - KeyError: 'a'\n[exit code 1]", 1
    )
    other = ran_tests("pytest -q tests/a.py", "3 passed\n[exit code 0]", 3)
    evidence = collect([whole, other])
    assert by_kind(evidence, "command") == {
        "pytest -q": "exit 1, 2 failed, 41 passed",
        "pytest -q tests/a.py": "exit 0, 3 passed",
    }
    assert "test_closes" in "".join(by_kind(evidence, "error"))
    mended = collect([whole, other, ran_tests("pytest -q -k test_closes", "1 passed\n[exit code 0]", 5)])
    assert not by_kind(mended, "error")
    again = ran_tests("pytest -q", "43 passed\n[exit code 0]", 7)
    assert by_kind(collect([whole, other, again]), "command") == {
        "pytest -q": "exit 0, 43 passed",
        "pytest -q tests/a.py": "exit 0, 3 passed",
    }


def test_what_names_begin_with_is_no_name() -> None:
    assert by_kind(collect([said("We rename `old_deps_*` to `head_deps_state`.", "assistant")]), "symbol") == {
        "head_deps_state": ""
    }


def test_where_was_searched_and_looked_is_known() -> None:
    evidence = collect([
        ran("Grep", '{"pattern": "rates", "path": "/w/src/rates.py"}', "3: rates = 1"),
        ran("bash", '{"command": "ls /w/tests/unit/ 2>/dev/null | grep \'/x/y\'"}', "a.py", 3),
        ran("TaskOutput", '{"task_id": "b1"}', '[Tool: Read] {"file_path":"/w/docs/moor.md"}', 5),
    ])  # fmt: skip
    assert set(by_kind(evidence, "path")) == {"/w/src/rates.py", "/w/tests/unit/", "/w/docs/moor.md"}


def test_names_that_only_stood_in_a_file_read_leave_room_to_what_was_done() -> None:
    body = "".join(f"def moor_the_boat_{n}():\n    pass\n" for n in range(90))
    read = ran("read_file", '{"path": "boats.py"}', body)
    edits = [
        ran("edit", json.dumps({"path": f"/w/a{n}/part.py", "old": "a", "new": f"fast_{n} = 1"}), "ok", 3 + 2 * n)
        for n in range(12)
    ]
    text = render(collect([read, *edits]), 400, rough_count)
    assert all(f"/w/a{n}/part.py" in text and f"fast_{n}" in text for n in range(12))
    assert "moor_the_boat_" in text


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
        ("- `dimGray`: `#585858` (dimmed)", "number", "dimGray", "#585858"),
        ("it costs about $1,200 a month", "number", "it costs about $1,200", ""),
        ("look at src/app/db.py now", "path", "src/app/db.py", ""),
        ("in ~/notes/plan.md.", "path", "~/notes/plan.md", ""),
        ("see https://example.org/a?b=1.", "url", "https://example.org/a?b=1", ""),
        ("commit 3fa91bc broke it", "identifier", "3fa91bc", ""),
        ("ticket PROJ-123 and", "identifier", "PROJ-123", ""),
        ("set MAX_RETRIES please", "symbol", "MAX_RETRIES", ""),
        ("use `make_pool` there", "symbol", "make_pool", ""),
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


def test_what_something_is_decided_by_is_no_decision() -> None:
    said_so = Message(2, "assistant", "What is close is decided by the callers, and how it is shown by the helper.")
    assert by_kind(collect(group_messages([Message(1, "user", "Where?"), said_so])), "decision") == {}


def test_versions_dates_and_prose_are_no_paths() -> None:
    found = by_kind(collect([said("and/or, 1/2, 12/05/2024, e.g. this, w/o it, 3.11")]), "path")
    assert found == {}


@given(histories, st.integers(0, 400))
def test_what_is_rendered_fits_and_nothing_is_said_twice(history: list[Message], cap: int) -> None:
    evidence = collect(group_messages(history))
    assert len({(f.kind, f.key, f.value) for f in evidence.facts}) == len(evidence.facts)
    assert rough_count(render(evidence, cap, rough_count)) <= cap
    assert set(fitting(evidence, cap, rough_count).facts) <= set(evidence.facts)


LATE = [
    Message(1, "user", ""),
    Message(2, "assistant", "", calls=(ToolCall("a", "read_file", '{"path": "src/app/db.py"}'),)),
    Message(3, "user", ""),
    Message(4, "assistant", "", calls=(ToolCall("a", "read_file", '{"path": "src/app/db.py"}'),)),
    Message(5, "tool", "", call_id="a"),
    Message(6, "tool", "", call_id="a"),
]
"""The answer to the first turn's call comes behind that of the second's."""


@example(LATE)
@given(histories)
def test_collecting_in_steps_is_collecting_at_once(history: list[Message]) -> None:
    groups = group_messages(history)
    memory = Memory()
    steps = Evidence()
    for group in groups:
        steps = collect([group], steps, memory)
    assert set(steps.facts) == set(collect(groups, None, memory).facts)
    assert collect(groups, steps).facts == collect(groups).facts or set(collect(groups, steps).facts) == set(
        steps.facts
    )


def test_survival_names_what_is_lost() -> None:
    evidence = Evidence(
        (Fact("changed", "src/a.py"), Fact("command", "pytest -q", "exit 1"), Fact("number", "port", "80"))
    )
    messages = [Message(1, "user", "I changed src/a.py; port was 8080"), Message(2, "assistant", "ran pytest  -q")]
    count, lost = survival(evidence, compile(Ledger(groups=group_messages(messages)), Head(), TokenCounter()))
    assert (count.found, count.kept) == (3, 2)
    assert [f.key for f in lost] == ["port"]


def test_three_passes_keep_at_least_95_percent() -> None:
    for way in (summarised, truncated):
        shares, _ = run(way, 4_000, (3,))[3]
        kept = {kind: share for kind, share in shares.items() if kind != "errors"}  # solved ones are none
        assert all(share >= 0.95 for share in kept.values()), shares


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("- `gray: 242` → `#6c6c6c` (medium)", "#6c6c6c"),
        ("gray: 30 s -> 60 s", "60 s"),
        ("`gray`: `#444444` → `#585858`", "#585858"),
    ],
)
def test_of_a_changed_value_only_the_new_one_stands(change: str, value: str) -> None:
    numbers = by_kind(collect([said("gray: 12"), said(change, turn=2)]), "number")
    assert numbers == {"gray": value}


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
    "text",
    [
        "a\n" * 100_000,
        "```\n" * 60_000,
        "> a\n" * 60_000,
        "a" * 200_000,
        "a.a" * 60_000,
        "1,1" * 60_000,
        "/a" * 60_000,
        "+a" * 60_000,
        "A_" * 60_000,
        ". " * 90_000,
    ],
)
def test_awkward_text_gives_few_facts(text: str) -> None:
    """And gives them at once: a pattern gone quadratic would hang here."""
    assert len(facts_of(said(text))) < 200
    assert len(facts_of(ran("shell", '{"command": "x"}', text + " error"))) < 200


@pytest.mark.parametrize(
    ("tool", "about", "text"),
    [
        ("shell", {"command": "a \\\n" * 20_000}, "ok"),
        ("shell", {"command": f"make{' ' * 60_000}all"}, "ok"),
        ("shell", {"command": f"make{' | grep a' * 600};"}, "ok"),
        ("read_file", {"path": "a.md"}, "\n" * 60_000),
    ],
    ids=["lines that go on", "blanks", "pipes", "empty lines"],
)
def test_awkward_calls_give_few_facts(tool: str, about: dict[str, str], text: str) -> None:
    """As above."""
    assert len(facts_of(ran(tool, json.dumps(about), text))) < 5


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


def test_the_cut_in_a_long_message_makes_no_half_facts() -> None:
    words = " ".join(f"/srv/data/part_{n:04d}/table.csv" for n in range(600))
    paths = by_kind(collect([said(words, "assistant")]), "path")
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
    assert (
        text
        == "Commands run, the last form of each (×: how often): `python src/app/db.py --check` ok\nPaths mentioned: db.py"
    )


def test_what_a_tool_only_listed_was_said_by_nobody() -> None:
    listing = ran("bash", '{"command": "ls src"}', "\n".join(f"src/part_{n}/table.csv" for n in range(60)), seq=3)
    hits = ran("grep", '{"pattern": "rates"}', "src/other.csv:3: it takes 44 ms, see https://example.org", 7)
    evidence = collect([said("Mind src/billing/rates.csv please."), listing, hits])
    assert [(f.kind, f.key) for f in evidence.facts if f.by != "tool"] == [("path", "src/billing/rates.csv")]
    assert [f.key for f in evidence.facts if f.by == "tool"] == ["src/other.csv"]


def test_what_came_to_nothing_was_not_done() -> None:
    failed = ran(
        "edit_file", '{"path": "a.py", "old": "old_name", "new": "new_name"}', "[error] The text is not there."
    )
    denied = ran("shell", '{"command": "make deploy"}', "The user did not allow this.", 3)
    call = Message(5, "assistant", calls=(ToolCall("a", "shell", '{"command": "make test"}'),))
    stopped = Group("g5", "round", (call, Message(6, "tool", "[cancelled]", call_id="a", synthetic=True)), 1)
    assert collect([failed, denied, stopped]).facts == ()


def test_symbols_of_what_was_worked_on_are_told_with_their_file() -> None:
    edit = ran(
        "edit_file", '{"path": "src/theme.ts", "old": "applyTheme(x)", "new": "applyTheme(x, COLOR_MODE)"}', "ok"
    )
    look = ran("grep", '{"pattern": "fgAnsi|loadTheme"}', "src/a.ts:1: otherName", 3)
    read = ran("read_file", '{"path": "src/bar.py"}', "def keep_recent(n):\n    someLocal = n", 5)
    evidence = collect([edit, look, read, said("Does `UserMessage` use fgAnsi, or WHAT?", turn=7)])
    assert by_kind(evidence, "symbol") == {
        "applyTheme": "src/theme.ts",
        "COLOR_MODE": "src/theme.ts",
        "loadTheme": "",
        "keep_recent": "src/bar.py",
        "UserMessage": "",
        "fgAnsi": "",
    }
    assert "theme.ts: applyTheme, COLOR_MODE" in render(evidence, 1000, rough_count)


def test_a_question_and_what_somebody_does_not_know_are_no_rules() -> None:
    for text in ("I don't understand the border.", "Should we always commit?", "They do not load here."):
        assert by_kind(collect([said(text)]), "rule") == {}, text
    assert by_kind(collect([said("ok, don't modify the theme")]), "rule") == {"ok, don't modify the theme": ""}


def test_an_old_fact_of_weight_outlasts_a_flood_of_new_ones() -> None:
    """Every compaction brings more than the cap holds."""
    evidence = collect(
        [said("Keep in mind: the settings live in deploy/rollout.yaml. Never restart the queue by hand.")]
    )
    for turn in range(2, 22):
        noise = "\n".join(f"src/area_{turn}/part_{n}/file.py has {n + 7} lines" for n in range(80))
        groups = [ran("grep", '{"pattern": "x"}', noise, turn * 10), said(f"Look at src/mod_{turn}.py", turn=turn)]
        evidence = collect(groups, evidence)
        text = render(evidence, 400, rough_count)
        assert "deploy/rollout.yaml" in text and "Never restart the queue by hand." in text
        assert f"mod_{turn}.py" in text, "and what is new is there too"


def test_what_came_up_in_several_turns_goes_before_what_came_up_once() -> None:
    groups = [said(f"See lib/{n}/once.py please", turn=n) for n in range(1, 60)]
    groups[30:30] = [said("The file lib/often/here.py again", turn=n) for n in (10, 20, 30)]
    assert "lib/often/here.py" in render(collect(groups), 60, rough_count)
    (often,) = (f for f in collect(groups).facts if f.key == "lib/often/here.py")
    assert often.turns == 3


def test_an_error_that_was_mended_is_none() -> None:
    groups = [ran("shell", '{"command": "make a"}', "Error: old trouble in a\n[exit code: 2]")]
    groups += [
        ran("shell", '{"command": "make b"}', f"Error: trouble {n}\n[exit code: 2]", 3 + n) for n in range(0, 40, 2)
    ]
    standing = collect(groups)
    assert list(by_kind(standing, "error")) == ["Error: old trouble in a", "Error: trouble 38"], "each as it last ran"
    mended = collect([*groups, ran("shell", '{"command": "make a"}', "fine\n[exit code: 0]", 99)])
    assert list(by_kind(mended, "error")) == ["Error: trouble 38"]


def test_old_values_of_one_quantity_give_way_to_the_newest() -> None:
    groups = [said(f"The export now takes {n}00 ms.", "assistant", n) for n in range(1, 30)]
    groups.insert(9, said("The import saturates at 512 requests.", "assistant", 9))
    text = render(collect(groups), 60, rough_count)
    assert "2900 ms" in text and "512 requests" in text


def test_a_file_that_came_along_is_not_what_the_user_said() -> None:
    content = (Text("Look at this."), Text("You must never push. See src/deep/inner.py", name="guide.md"))
    evidence = collect([single("user", Message(1, "user", content), 1)])
    assert by_kind(evidence, "rule") == {}
    assert {f.key: f.by for f in evidence.facts} == {"guide.md": "user"}


def test_what_is_only_quoted_or_shown_as_code_is_not_said() -> None:
    text = """The best match is `docs/a.md:3`:

> We decided to use Postgres in src/old.py, it takes 44 ms.

```python
# You must never call it. We chose `make_pool`, see src/pool.py
```
We decided to keep SQLite."""
    evidence = collect([said(text, "assistant")])
    assert list(by_kind(evidence, "decision")) == ["We decided to keep SQLite."]
    by = {f.key: f.by for f in evidence.facts if f.kind in {"path", "number"}}
    assert by == {"docs/a.md": "assistant"}
    assert by_kind(collect([said(text, "user")]), "rule") == {}


def test_a_number_without_a_word_gives_way_to_one_that_says_what_it_is() -> None:
    groups = [
        said("| 14.3 % | 3.7 % |\n| 29.1 % | 5 ms |", "assistant", 9),
        said("Uploads take 81 ms.", "assistant", 2),
    ]
    assert ranked(collect(groups).facts)["number"][0].key == "Uploads take 81 ms"


def test_a_pasted_log_is_shown_not_said() -> None:
    log = "\n".join(f"worker {n} took {n + 40} ms in src/run.py" for n in range(20))
    rule = "Never restart worker 3."
    evidence = collect([said(f"It takes 900 ms, see:\n\n{log}\n{rule}\n\nThe limit is 700 ms.")])
    assert [f.key for f in evidence.facts if f.kind == "number" and f.by == "user"] == [
        "It takes 900 ms",
        "The limit is 700 ms",
    ]
    assert by_kind(evidence, "rule") == {rule: ""}
    assert by_kind(evidence, "path") == {}


def test_facts_of_older_sessions_can_be_read() -> None:
    assert msgspec.json.decode(b'["path", "src/a.py", "listed", 3]', type=Fact) == Fact("path", "src/a.py", "listed", 3)


def test_what_a_program_put_in_was_said_by_nobody() -> None:
    note = single(
        "note", Message(3, "user", "assistant: You must never do this in src/a.py. We decided on 3 workers."), 1
    )
    assert collect([note]).facts == ()


def test_words_in_code_marks_are_names_only_where_they_look_like_one() -> None:
    words = "`may` `10` `take` `make_pool` `RetryLimit` `ctx.run()` `--keep` `ms`"
    assert set(by_kind(collect([said(words, "assistant")]), "symbol")) == {"make_pool", "RetryLimit", "run", "--keep"}
    assert list(by_kind(collect([said("use `render()`, not `10`")]), "symbol")) == ["render"]


def test_what_was_saved_and_is_read_again_makes_no_new_facts() -> None:
    group = ran("read_file", '{"path": "tool-results/m8.txt"}', "    1\tclass Harbour:\n    2\t    depth = 12\n")
    assert list(facts_of(group)) == [] and touched([group]) == ()


@pytest.mark.parametrize(
    ("tool", "fact"), [("write_file", ("changed", "tool-results/a.py")), ("shell", ("command", "tool-results/a.py"))]
)
def test_what_is_done_in_a_folder_of_that_name_is_a_fact(tool: str, fact: tuple[str, str]) -> None:
    arguments = '{"path": "tool-results/a.py", "content": "x = 1", "command": "tool-results/a.py"}'
    group = ran(tool, arguments, "Done.")
    assert fact in [(f.kind, f.key) for f in facts_of(group)]
    assert touched([group]) == (("tool-results/a.py",) if tool == "write_file" else ())


def test_what_an_agent_counts_of_its_own_work_is_no_value() -> None:
    words = "Both pass: 36 tests OK. Total: 12 files"
    mine, theirs = (Message(1, role, words) for role in ("assistant", "user"))
    assert [f for f in facts_of(Group("g1", "reply", (mine,), 1)) if f.kind == "number"] == []
    assert [f.value for f in facts_of(Group("g1", "user", (theirs,), 1)) if f.kind == "number"] == [
        "36 tests",
        "12 files",
    ]


def test_what_recall_repeats_makes_no_new_facts() -> None:
    call = Message(1, "assistant", calls=(ToolCall("a", "recall", '{"query": "rates"}'),))
    result = Message(
        2, "tool", "m4 (turn 2): … the rate is 44 requests, Error: in src/a.py …", call_id="a", name="recall"
    )
    assert [(f.kind, f.key) for f in facts_of(Group("g1", "round", (call, result), 1))] == []


names = st.text("ab.{},; ", min_size=1, max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["", "/", "src/", "src/a b/", "x/{y}/", "./"]), names), max_size=12))
def test_files_written_with_their_folder_can_be_read_whole(paths: list[tuple[str, str]]) -> None:
    keys = [folder + name for folder, name in paths if (folder + name).strip() == folder + name]
    evidence = merged([Evidence(tuple(Fact("changed", key, seq=n) for n, key in enumerate(keys)))])
    text = render(evidence, 10_000, rough_count)
    whole = f"{text} {' '.join(unfolded(text))}"
    assert all(key in whole for key in keys)


def test_files_of_one_folder_share_it() -> None:
    keys = ("src/deep/a.py", "docs/x.md", "src/deep/b.py", "Makefile")
    text = render(Evidence(tuple(Fact("changed", key) for key in keys)), 1000, rough_count)
    assert text == "Files changed: src/deep/{a.py, b.py}; docs/x.md; Makefile"


def test_what_the_summary_says_is_not_said_again() -> None:
    facts = (
        Fact("decision", "We decided to use SQLite."),
        Fact("path", "src/a.py"),
        Fact("changed", "src/b.py"),
        Fact("number", "it takes 12 ms"),
        Fact("number", "takes 1 ms"),
    )
    facts = (Fact("rule", "Never push."), *facts)
    beside = "Goal: Never push. We decided to use SQLite. In src/a.py and src/b.py it\ntakes 12 ms, not takes 1 msec."
    told = "Files changed: src/b.py\nNumbers: takes 1 ms"
    assert render(Evidence(facts), 1000, rough_count, beside) == told


def test_half_a_word_is_not_the_word() -> None:
    facts = (Fact("identifier", "#1"), Fact("identifier", "make"), Fact("path", "src/a.py"), Fact("url", "http://h/x"))
    evidence = Evidence(facts)
    messages = [Message(1, "user", "see #12 and make_pool, src/a.pyc, (http://h/x)")]
    count, lost = survival(evidence, compile(Ledger(groups=group_messages(messages)), Head(), TokenCounter()))
    assert [f.key for f in lost] == ["#1", "make", "src/a.py"] and count.kept == 1


def test_a_long_command_in_the_view_counts_as_kept() -> None:
    command = "make " + "gauge " * 60
    group = ran("shell", msgspec.json.encode({"command": command}).decode(), "[exit code: 0]")
    evidence = collect([group])
    count, _ = survival(evidence, compile(Ledger(groups=(group,)), Head(), TokenCounter()))
    assert (count.found, count.kept) == (1, 1)


def test_more_than_is_carried_on_is_counted() -> None:
    paths = [said(f"see a/{n}/f.py b/{n}/f.py c/{n}/f.py", turn=n + 1) for n in range(150)]
    evidence = collect(paths)
    assert (len(evidence.facts), evidence.dropped) == (300, 150)
    assert len(collect(paths, per_kind=None).facts) == 450
    assert "More facts are left out here: recall" in render(evidence, 20_000, rough_count)


@given(st.dictionaries(st.sampled_from(KINDS), st.integers(0, 500), min_size=1), st.integers(0, 1000))
def test_room_is_shared_out_and_none_is_lost(needs: dict[FactKind, int], room: int) -> None:
    given_ = allotted(needs, room)
    assert sum(given_.values()) <= room
    assert all(given_[kind] <= needs[kind] for kind in needs)
    assert sum(given_.values()) >= min(room, sum(needs.values())) - len(needs)


def test_what_the_agent_looked_up_again_outlasts_what_it_did_not() -> None:
    groups = [said(f"Service {n} saturates at {n}000 requests.", "assistant", n) for n in range(1, 60)]
    heading = "m30 (you, turn 30, put away by c1):\nService 30 saturates at 30000 requests."
    call = Message(200, "assistant", calls=(ToolCall("a", "recall", '{"query": "service"}'),))
    looked = Group("g200", "round", (call, Message(201, "tool", heading, call_id="a", name="recall")), 60)
    assert "Service 30 saturates" not in render(collect(groups), 130, rough_count)
    before = collect(groups)
    after = collect([looked], before)
    assert "Service 30 saturates" in render(after, 130, rough_count)
    assert collect([looked], after) == after, "once a turn"


def test_what_stands_word_for_word_beside_them_is_no_fact_again() -> None:
    said = f"An option with nargs=2 must be asked {'in every case that there is, ' * 12}always."
    evidence = collect(group_messages([Message(1, "user", said)]))
    assert {fact.kind for fact in evidence.facts} == {"rule", "number"}
    assert "nargs: 2" in render(evidence, 900, rough_count) and "…" in render(evidence, 900, rough_count)
    assert render(evidence, 900, rough_count, f"- m1: {said}") == ""


def test_paths_named_with_their_folder_are_found_beside_a_megabyte_without_a_space() -> None:
    text = f"{'x' * 1_000_000} {'a/' * 500_000} src/{{gauge.py, pier.py}}"
    assert list(unfolded(text)) == ["src/gauge.py", "src/pier.py"]


TRACE = """It dies with this, please mend it:
Traceback (most recent call last):
  File "src/tide.py", line 42, in read_tide
    value = always_fails(raw_sample, retries=7)
ValueError: must never be 99 metres in load_gauge
    at Object.readTide (src/tide.ts:12:7)
[ERROR] 2026-01-01 timeout=30 s
Never touch the firmware."""


def test_a_pasted_trace_gives_paths_and_nobodys_rules_numbers_or_names() -> None:
    facts = facts_of(single("user", Message(1, "user", TRACE), 1))
    assert [f.key for f in facts if f.kind == "rule"] == ["Never touch the firmware."]
    assert "src/tide.py" in {f.key for f in facts if f.kind == "path"}
    assert not {f.key for f in facts if f.kind in {"symbol", "number"}}


def test_a_file_that_was_moved_or_removed_is_listed_no_more_until_it_is_there_again() -> None:
    edit = ("edit_file", '{"path": "src/a.py", "old_text": "1", "new_text": "2"}', "done")
    move = ("shell", '{"command": "cd . && git mv -f src/a.py src/b.py"}', "[exit code 0]")
    failed = ("shell", '{"command": "rm src/a.py"}', "[exit code 1]")
    for done, listed in (([edit], True), ([edit, move], False), ([edit, failed], True), ([edit, move, edit], True)):
        messages = [
            m
            for n, (name, arguments, result) in enumerate(done)
            for m in (
                Message(2 * n + 1, "assistant", "", calls=(ToolCall(f"c{n}", name, arguments),)),
                Message(2 * n + 2, "tool", result, call_id=f"c{n}", name=name),
            )
        ]
        kept = collect(group_messages(messages)).facts
        assert ("src/a.py" in {f.key for f in kept if f.kind == "changed"}) == listed


def done(*calls: tuple[str, dict[str, object]]) -> list[Group]:
    """A group for each call, all of which went well, in their order."""
    return [
        ran(name, msgspec.json.encode(arguments).decode(), "done", 10 * n + 1)
        for n, (name, arguments) in enumerate(calls)
    ]


def edited(path: str, old: str, new: str, **more: object) -> tuple[str, dict[str, object]]:
    return "edit_file", {"path": path, "old_text": old, "new_text": new, **more}


@pytest.mark.parametrize(
    ("command", "listed"),
    [
        ("mv src/a.py src/b.py", ["src/b.py", "src/deep/c.py"]),
        ("cd src && mv -f ./a.py b.py", ["src/b.py", "src/deep/c.py"]),
        ("mv src/a.py src/deep/c.py old/", ["old/a.py", "old/c.py"]),
        ("git mv src lib", ["lib/a.py", "lib/deep/c.py"]),
        ("mv src/a.py lib", ["lib/a.py", "src/deep/c.py"]),
        ("mv src/a.py .", ["a.py", "src/deep/c.py"]),
        ("cd src && mv deep/c.py .", ["src/a.py", "src/c.py"]),
        ("rm -rf src/deep/ && make", ["src/a.py"]),
        ("rm 'src/a.py' src/deep/c.py", []),
        ("echo rm src/a.py; grep -v mv src/a.py", ["src/a.py", "src/deep/c.py"]),
        ("rm *.py", ["src/a.py", "src/deep/c.py"]),
    ],
)
def test_files_that_a_command_moves_or_removes_stand_where_they_are_now(command: str, listed: list[str]) -> None:
    groups = done(edited("src/a.py", "1", "2"), edited("src/deep/c.py", "1", "2"), ("shell", {"command": command}))
    assert sorted(by_kind(collect(groups), "changed")) == listed
    early = collect(groups[:2], staying=groups[2:])
    assert sorted(by_kind(early, "changed")) == listed, "what stays in view tells it"
    conversation = [*groups, said("I took care of src/a.py and src/deep/c.py.", "assistant", 90)]
    assert sorted(by_kind(collect(conversation[3:], collect(conversation[:3])), "changed")) == listed


def test_a_name_that_was_taken_out_of_the_code_is_none_until_it_is_there_again() -> None:
    first = edited("src/a.py", "pass", "def make_pool(n):\n    return keep_alive(n)")
    out = edited("src/a.py", "def make_pool(n):\n    return keep_alive(n)", "def new_pool(n): return keep_alive(n)")
    again = edited("src/b.py", "pass", "def make_pool(n): ...")
    conversation = said("make_pool is called new_pool now.", "assistant", 95)
    assert set(by_kind(collect(done(first)), "symbol")) == {"make_pool", "keep_alive"}
    standing = collect(done(first, out))
    assert set(by_kind(standing, "symbol")) == {"new_pool", "keep_alive"}
    assert "make_pool" not in by_kind(collect([conversation], standing), "symbol"), "talk brings nothing back"
    assert "make_pool" in by_kind(collect([*done(first, out, again), conversation]), "symbol")
    moved = done(first, again, out)
    assert by_kind(collect(moved), "symbol")["make_pool"] == "src/b.py", "it was moved, not removed"


@pytest.mark.parametrize(
    "call",
    [
        edited("src/a.py", "make_pool", "new_pool", replace_all=True),
        ("shell", {"command": "sed -i '' 's/\\bmake_pool\\b/new_pool/g' src/a.py"}),
        ("shell", {"command": "grep -rl make_pool . | xargs sed -i 's/make_pool/new_pool/g'"}),
    ],
)
def test_a_name_that_was_replaced_everywhere_is_none(call: tuple[str, dict[str, object]]) -> None:
    assert "make_pool" not in by_kind(collect(done(edited("src/a.py", "x", "make_pool(1)"), call)), "symbol")


def test_what_a_patch_adds_moves_and_deletes_is_told_as_it_is_now() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/a.py\n*** Move to: src/b.py\n@@\n-x\n+make_pool(1)\n"
        "*** Delete File: src/c.py\n*** Add File: src/d.py\n+y\n*** End Patch"
    )
    before = (edited("src/a.py", "1", "2"), edited("src/c.py", "1", "2"))
    for name, arguments in (("apply_patch", {"input": patch}), ("shell", {"command": ["apply_patch", patch]})):
        evidence = collect(done(*before, (name, arguments)))
        assert sorted(by_kind(evidence, "changed")) == ["src/b.py", "src/d.py"]


@pytest.mark.parametrize(
    ("words", "stands"),
    [
        ("Never mind the changelog.", False),
        ("ach, vergiss das Changelog", False),
        ("forget about the changelog rule", False),
        ("forget the tests and the changelog", True),
        (
            "The changelog is too long, and I would like you to see whether we no longer need half of what it says.",
            True,
        ),
        ("What is a changelog?", True),
    ],
)
def test_a_request_that_was_taken_back_is_no_rule(words: str, *, stands: bool) -> None:
    rule = said("Always write a line in the changelog.")
    evidence = collect([rule, said(words, turn=2)])
    assert (list(by_kind(evidence, "rule")) != []) == stands
    never = said("Never touch the changelog.")
    assert by_kind(collect([never, said(words, turn=2)]), "rule"), "what is forbidden stays so"


def test_files_of_one_name_are_told_apart_where_their_symbols_stand() -> None:
    names = {
        "src/a/util.py": "make_pool",
        "src/b/util.py": "drop_pool",
        "util.py": "top_pool",
        "src/gauge.py": "draw_bar",
    }
    text = render(collect(done(*(edited(path, "x", f"{name}()") for path, name in names.items()))), 1_000, rough_count)
    told = text.partition("Symbols worked with, by file: ")[2].partition("\n")[0]
    assert set(told.split("; ")) == {
        "a/util.py: make_pool",
        "b/util.py: drop_pool",
        "util.py: top_pool",
        "gauge.py: draw_bar",
    }


def test_commits_are_deeds_of_their_own_slips_of_a_call_no_errors_and_what_was_not_found_no_name() -> None:
    commits = runs(("git commit -m 'a pool'", "done"), ("git -C . commit -m 'a gauge'", "done"), ("make", "fine"))
    assert list(by_kind(collect(commits), "command")) == [
        "git commit -m 'a pool'",
        "git -C . commit -m 'a gauge'",
        "make",
    ]
    slip = runs(("npx tsc --nope", "error TS5023: Unknown compiler option '--nope'.\nerror: unknown option '--nope'"))
    assert "error: unknown option '--nope'" not in by_kind(collect(slip), "error")
    for result, found in (
        ("No matches found.", []),
        ("0 matches", []),
        ("", []),
        ("src/a.py:3: make_pool(1)", ["make_pool"]),
    ):
        assert list(by_kind(collect([ran("grep", '{"pattern": "make_pool"}', result)]), "symbol")) == found


def runs(*commands: tuple[str, str]) -> list[Group]:
    """A group for each command and its output, in their order."""
    return [
        ran("bash", msgspec.json.encode({"command": command}).decode(), output, 10 * n + 1)
        for n, (command, output) in enumerate(commands)
    ]


def test_of_the_forms_of_one_command_the_last_that_worked_stands_with_their_number() -> None:
    evidence = collect(
        runs(
            ("cd /w/app && npm run check 2>&1 | head -50", "all fine"),
            ("cd /w/app && npm run check 2>&1 | tail -3", "all fine"),
            ("cd /w/app && npm run check", "[exit code: 0]"),
            ('cd /w/app && git add -A && git commit -m "one; two"', "done"),
            ("cd /w/web && npm run check", "[exit code: 0]"),
        )
    )
    assert render(evidence, 1000, rough_count).partition(": ")[2] == (
        'how often): in /w/app: `npm run check` ×3 ok, `git add -A && git commit -m "one; two"`; '
        "in /w/web: `npm run check` ok"
    )


def test_a_failure_stands_beside_the_form_that_works_until_it_works_again() -> None:
    steps = [
        ("make check", "[exit code: 0]"),
        ("make check -j4", "bad\n[exit code: 2]"),
        ("make check", "[exit code: 0]"),
    ]
    assert by_kind(collect(runs(*steps[:2])), "command") == {"make check": "exit 0", "make check -j4": "exit 2"}
    assert by_kind(collect(runs(*steps)), "command") == {"make check": "exit 0"}


@pytest.mark.parametrize(
    ("output", "outcome"), [("fine\n[exit code: 0]", ""), ("a.ts(3,1): error TS1: no\n[exit code: 0]", "with errors")]
)
def test_what_ends_well_behind_a_pipe_is_not_the_program(output: str, outcome: str) -> None:
    (command,) = (f for f in collect(runs(("npm run check 2>&1 | tail -5", output))).facts if f.kind == "command")
    assert (command.key, command.value) == ("npm run check", outcome)


def test_an_error_is_solved_by_a_clean_run_however_it_was_piped_and_by_an_edit_before_one() -> None:
    wrong = ("cd app && npx tsc --noEmit 2>&1 | head", "src/a.ts(3,1): error TS2339: no such thing")
    edit = ran("edit_file", '{"path": "/w/app/src/a.ts", "old_text": "1", "new_text": "2"}', "done", 100)
    commit = ran("bash", '{"command": "git commit -m x"}', "done", 110)
    assert len(by_kind(collect(runs(wrong)), "error")) == 1
    assert not by_kind(collect(runs(wrong, ("cd app && npx tsc --noEmit | grep -c error", "0"))), "error")
    assert by_kind(collect([*runs(wrong), edit]), "error"), "nothing ran since"
    assert not by_kind(collect([*runs(wrong), edit, commit]), "error")


def test_two_values_of_one_name_stand_each_with_what_it_belongs_to() -> None:
    told = "staging:\n  timeout: 30 s\nproduction:\n  timeout: 60 s\n\nThe archive port: 8080, the gauge port: 9090."
    numbers = by_kind(collect([said(told)]), "number")
    assert numbers == {
        "staging timeout": "30 s",
        "production timeout": "60 s",
        "archive port": "8080",
        "gauge port": "9090",
    }
    later = by_kind(collect([said(told), said("Now timeout: 45 s", turn=2)]), "number")
    assert {name: value for name, value in later.items() if "timeout" in name} == {"timeout": "45 s"}


def test_a_value_in_a_list_of_arguments_belongs_to_its_name_alone() -> None:
    told = "I want class Quay(depth, berths=0.8, keep=None), in quays.py"
    assert by_kind(collect([said(told)]), "number") == {"berths": "0.8"}


@pytest.mark.parametrize(
    "text",
    [
        "see Model/thinking/theme and Theme.fg/bg in Node.js, or @scope/package@1.2.3",
        "why do you go 100 lines? This is 100%",
        "colours #343541 and #1",
        '> check\n{"type":"error","message":"Each call must have a result, see src/x.py, within 30 s"}',
    ],
)
def test_noise_is_no_fact(text: str) -> None:
    assert [f for f in facts_of(said(text)) if f.kind not in {"path", "url"} or not text.startswith(">")] == []


def test_a_path_with_spaces_is_taken_whole() -> None:
    path = "/var/shots/Screen 2025-11-21 at 01.27.21.png"
    assert list(by_kind(collect([said(f"'{path}' shows it")]), "path")) == [path]


def test_definitions_that_were_read_are_symbols_and_their_locals_are_not() -> None:
    text = "export class TokenGauge {\n\tprivate async drawBar(x) {\n\t\tconst from = 3;\n\t\tconst barWidth = 4;\n"
    read = ran("read_file", '{"path": "src/gauge.ts"}', text)
    assert set(by_kind(collect([read]), "symbol")) == {"TokenGauge", "drawBar", "barWidth"}


def test_a_rule_with_dots_of_its_own_is_kept_where_all_of_it_stands() -> None:
    rule = "Always write … and never three dots."
    for shown, kept in ((rule, 1), ("Always write tests first.", 0)):
        count, _ = survival(collect([said(rule)]), compile(Ledger(groups=(said(shown),)), Head(), TokenCounter()))
        assert (count.found, count.kept) == (1, kept)


@pytest.mark.parametrize("mark", ["", "{}\t", "  {}→", "{}: "])
def test_names_of_a_file_that_was_read_are_symbols_however_its_lines_are_numbered(mark: str) -> None:
    lines = [
        "from x import make_pool, drop_pool",
        "class GaugeBar:",
        *["    x = 1"] * 2000,
        "    y = make_pool(1)",
        "def tail(): 1",
    ]
    text = "\n".join(mark.format(n) + line for n, line in enumerate(lines, 1))
    read = ran("Read", '{"file_path": "src/gauge.py"}', text)
    assert set(by_kind(collect([read]), "symbol")) == {"GaugeBar", "make_pool", "tail"}


def test_a_long_name_is_taken_whole_and_what_everybody_names_is_none() -> None:
    name = "test_execute_palette_command_fix_conflicts_remote_uses_a_toast_of_its_own"
    read = ran("read_file", '{"path": "a.py"}', f"def {name}():\n    ...\nTypeScript, TypeScript and GitHub, GitHub\n")
    assert set(by_kind(collect([read]), "symbol")) == {name}


def test_a_choice_that_was_overturned_stands_no_more() -> None:
    first = said("We decided to use SQLite for the archive. Always sort with Ruff.")
    later = said("We decided: Postgres instead of SQLite.", turn=2)
    evidence = collect([first, later])
    assert list(by_kind(evidence, "decision")) == ["We decided: Postgres instead of SQLite."]
    assert list(by_kind(evidence, "rule")) == ["Always sort with Ruff."]
    forbidden = said("Never use Postgres instead of SQLite.", turn=2)
    assert by_kind(collect([first, forbidden]), "decision") != {}, "that overturns nothing"


def test_what_stays_in_view_tells_otherwise_is_left_out() -> None:
    old = [said("The timeout: 30 s, the port: 8080."), *runs(("make check", "gauge.c:3: error: no\n[exit code: 2]"))]
    new = [said("Please set the timeout from 30 s to 45 s.", turn=2)]
    new += [ran("shell", '{"command": "make check"}', "[exit code: 0]", 50)]
    evidence = collect(old, staying=new)
    assert by_kind(evidence, "number") == {"port": "8080"}
    assert not by_kind(evidence, "error") and not by_kind(evidence, "command")
    assert collect([*old, *new]).facts == collect(new, collect(old)).facts, "what is carried on is whole without it"


@pytest.mark.parametrize(
    ("text", "kind", "keys"),
    [
        ("All 62 tests pass.", "number", []),
        ("Let me read all 4 files of the gauge", "number", []),
        ("215/215 passed", "number", []),
        ("The pool holds 12 workers", "number", ["The pool holds 12 workers"]),
        ("The failure is in docs/review-decision.md, not mine.", "decision", []),
        ("Also update the decision table in the guide:", "decision", []),
        ("The decision was to keep the pool.", "decision", ["The decision was to keep the pool."]),
        ("Looked for `settled`, `eight`; read `needle.py`.", "decision", []),
        ("We chose `pool` over `queue`.", "decision", ["We chose `pool` over `queue`."]),
        ("It skips whitespace/comments/operators here", "path", []),
        ("It lies in `src/core/pool` now", "path", ["src/core/pool"]),
        ("See CLAUDE.md/AGENTS.md there", "path", []),
    ],
)
def test_of_what_an_agent_says_no_bare_counts_lists_and_names_of_files_are_facts(
    text: str, kind: str, keys: list[str]
) -> None:
    assert list(by_kind(collect([said(text, "assistant")]), kind)) == keys


def test_a_newer_amount_of_the_same_thing_takes_the_older_ones_place() -> None:
    told = [said("Coverage of the pool is 66.7%", turn=1), said("Coverage of the pool is now 100%", turn=2)]
    told.append(said("Coverage of the gauge is 80%", turn=3))
    assert list(by_kind(collect(told), "number")) == [
        "Coverage of the pool is now 100%",
        "Coverage of the gauge is 80%",
    ]


@pytest.mark.parametrize(
    "told",
    [
        ("Worker A uses 5 GB", "Worker B uses 6 GB"),
        ("v1 latency is 30 ms", "v2 latency is 20 ms"),
        ("The US price is $20", "The EU price is $25"),
        ("Under Python 3.11 it takes 5 s", "Under Python 3.12 it takes 4 s"),
        ("Wait at least 2 s", "Wait at most 9 s"),
    ],
)
def test_amounts_of_two_things_stand_beside_each_other_however_short_their_names(told: tuple[str, str]) -> None:
    groups = [said(text, "assistant", n) for n, text in enumerate(told, 1)]
    assert list(by_kind(collect(groups), "number")) == list(told)


def test_an_item_of_a_request_is_no_rule_unless_it_says_that_it_lasts() -> None:
    words = "Now: (a) the prompt must show it. (b) Look, do not guess. (c) The names must never change. Tests must be small."
    assert [*by_kind(collect([said(words)]), "rule")] == ["(c) The names must never change.", "Tests must be small."]


@pytest.mark.parametrize(("back", "errors"), [("cp /tmp/new.py a.py; ", 0), ("", 1)])
def test_what_failed_while_a_file_was_put_aside_is_no_open_error(back: str, errors: int) -> None:
    command = f"cp a.py /tmp/new.py; cp /tmp/old.py a.py; pytest -q -k one; {back}pytest -q"
    output = "t.py:61: AssertionError\nFAILED t.py::test_one\n1 failed, 44 passed\n45 passed in 0.8s"
    found = collect([ran("shell", json.dumps({"command": command}), output)])
    assert bool(by_kind(found, "error")) == bool(errors)
    assert ("with errors" in by_kind(found, "command").values()) == bool(errors)


def test_how_often_a_command_ran_is_told_of_its_own_form_only() -> None:
    evidence = collect(runs(("npm run a", ""), ("npm run a -- -v", ""), ("make check", "ok"), ("make check", "ok")))
    text = render(evidence, 1000, rough_count)
    assert "`npm run a -- -v`" in text and "`make check` ×2" in text and text.count("×") == 2, (
        "the other is in the title"
    )


GUIDE = """# Guide
Use make_pool, and make_pool only.
```python
# WRONG: far away
odd_path = odd_path
```
```python
planned_name = planned_name
```"""

HARMLESS = """- **`force`:** no change, an error is told
{"success": true, "note": "no error"}
Found 1 error (1 fixed, 0 remaining).
[exit code: 1]"""


def test_lines_that_tell_of_no_trouble_are_no_errors_and_examples_of_a_guide_no_names() -> None:
    assert by_kind(collect(runs(("make", HARMLESS))), "error") == {}
    found = by_kind(collect([ran("read_file", '{"path": "guide.md"}', GUIDE)]), "symbol")
    assert {"make_pool", "planned_name"} <= set(found) and "odd_path" not in found


@pytest.mark.parametrize(
    "line",
    [
        "zsh: command not found: staticcheck",
        "cmd/main.go:12:5: undefined: gauge",
        "cmd/set.go:390:20: Error return value of `reader.Close` is not checked (errcheck)",
        "src/a.ts(3,5): error TS2322: Type 'x' is not assignable to type 'y'.",
        "a_test.go:263: expected no error, got: session not found",
        "--- FAIL: TestGauge (0.02s)",
        "E AssertionError: 3 != 4",
        "2026/01/20 16:02:36 ERROR error before init",
        "mise ERROR error parsing config file: ~/mise.toml",
        "CONFLICT (content): Merge conflict in src/gauge.py",
        '{"message": "Failed to update the metadata: block not found"}',
        "Internal Server Error: the gauge is broken",
        "error[E0425]: cannot find value `gauge`",
    ],
)
def test_a_line_that_tells_of_an_error_is_one(line: str) -> None:
    assert list(by_kind(collect([ran("shell", '{"command": "make"}', f"{line}\n[exit code: 1]")]), "error")) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "[main f0bea619] Fix empty repo 'reference not found' error (#242)",
        "func load() (*Gauge, error) {",
        "ReadCommitted(ctx, id string) (*Result, error)",
        "+ t.Errorf('expected a helpful error message')",
        "=== RUN   TestGaugeError",
        "--- PASS: TestGaugeError (0.00s)",
        '"body": "Inconsistent error messages where the transcript is missing"',
        '{"url": "https://example.org/1", "diff": "+ return nil, error: none"}',
        "Branch: fix/error-in-gauge",
        "[lint] ERROR task failed",
        "- `load()` still raises an error",
        "setup.go:12:3: warning: unused",
    ],
)
def test_a_line_that_only_has_the_word_is_no_error(line: str) -> None:
    assert list(by_kind(collect([ran("shell", '{"command": "make"}', f"{line}\n[exit code: 1]")]), "error")) == []


def test_what_an_agent_counts_of_its_work_is_no_fact_and_a_script_has_no_prices() -> None:
    words = "All 62 gauge tests pass. Resolved threads: 1. The branch has all the code changes (41 files). The hook gets $1."
    assert by_kind(collect([said(words, "assistant")]), "number") == {}
    kept = by_kind(collect([said("Keep uploads under 40 files. retries = 3, it costs $5.50")]), "number")
    assert kept == {"Keep uploads under 40 files": "", "retries": "3", "it costs $5.50": ""}


def test_of_a_share_only_the_newest_figure_stands_however_it_is_said() -> None:
    told = [
        "Branch coverage is 67 %.",
        "Branch coverage went from 67 % to 92 %.",
        "branch coverage now stands at 95 %",
        "Branch coverage: 97%",
    ]
    for many, kept in (
        (2, "Branch coverage went 92 %"),
        (3, "branch coverage now stands at 95 %"),
        (4, "Branch coverage"),
    ):
        groups = [said(text, "assistant", n) for n, text in enumerate(told[:many], 1)]
        assert list(by_kind(collect(groups), "number")) == [kept]


@pytest.mark.parametrize(
    "text",
    [
        "The session was never committed to main.",
        "wrapper hooks can never be removed through the menu",
        "API Error: 400 messages.1 must be a tool result",
        "invalid_request_error: max_tokens must be below 4096",
        "fix a.go:1:9: var-naming: avoid names of the library",
        "400 Bad Request: prompts must not be empty",
    ],
)
def test_what_describes_and_what_a_server_said_is_no_rule(text: str) -> None:
    assert by_kind(collect([said(text)]), "rule") == {}


def test_what_is_asked_and_what_others_chose_is_no_decision() -> None:
    for text in (
        "Want to go with the wrapper?",
        "It is safe: they chose not to keep it.",
        "I'll use the fast command:",
    ):
        assert by_kind(collect([said(text, "assistant")]), "decision") == {}, text


def test_a_question_without_its_sign_settles_nothing() -> None:
    asked = [
        "Which decision was made about the port",
        "I wonder whether we decided on polling",
        "do you remember the decision to use port 9000",
        "Remind me what we decided on the timeouts.",
    ]
    for text in asked:
        assert by_kind(collect([said(text)]), "decision") == {}, text
    for text in (
        "We decided on sqlite.",
        "Do the migration as we agreed yesterday.",
        "Where it is slow we decided to poll.",
    ):
        assert list(by_kind(collect([said(text)]), "decision")) == [text]


def test_a_pasted_screen_is_nobodys_words() -> None:
    screen = "● Skill(plan)\n  ⎿ Done, 46 tool uses, 69.8k tokens\nWe decided to wait 44 ms."
    assert by_kind(collect([said(f"Look:\n\n{screen}")]), "number") == {}


def test_a_list_of_words_is_no_path_and_neither_is_what_was_masked_or_cut() -> None:
    words = "mind whitespace/comments/operators, --soft/mixed and /home/a/.REDACTED.jsonl, see `src/core/facts` and @lib/deep/er"
    assert list(by_kind(collect([said(words)]), "path")) == ["src/core/facts", "lib/deep/er"]
    for path in ("/home/[masked secret #1a2b3c4d]/a.py", "/home/someone/proje…"):
        arguments = msgspec.json.encode({"path": path, "content": "x"}).decode()
        assert collect([ran("write_file", arguments, "ok"), ran("read_file", arguments, "x", 3)]).facts == ()


def test_names_of_the_language_and_parts_of_paths_are_no_symbols() -> None:
    code = """import "git/remote_ops/types"
    if err := os.MkdirAll(stateDir, 0o755); filepath.IsAbs(stateDir) { sb.WriteString(os.DevNull) }
    os.MkdirAll(stateDir); filepath.IsAbs(x); see get_closing_text.py and get_closing_text.py, git/remote_ops/types"""
    read = ran("read_file", '{"path": "a.go"}', code)
    assert list(by_kind(collect([read]), "symbol")) == ["stateDir"]


def test_names_of_a_test_framework_and_builtins_are_no_symbols_but_a_program_may_define_its_own() -> None:
    text = """class TestRoom(unittest.TestCase):
    def setUp(self):
        self.assertEqual(room_left(1), 0)
    def test_full(self):
        self.assertEqual(room_left(2), 0)
        with self.assertRaises(OverflowError):
            raise OverflowError(self.__getitem__, self.__getitem__)
def compile(ledger): ...
"""
    assert set(names_read(text)) == {"TestRoom", "test_full", "room_left", "compile"}


def test_the_examples_of_a_guide_are_no_symbols_those_of_a_plan_are() -> None:
    text = "Use `keep_recent`, keep_recent.\n\n```python\ndef example_pool(): ...\n```\n"
    for path, names in (
        ("docs/style.md", ["keep_recent"]),
        ("/a/skills/py/CLAUDE.md", ["keep_recent"]),
        ("plan.md", ["example_pool", "keep_recent"]),
    ):
        read = ran("read_file", msgspec.json.encode({"path": path}).decode(), text)
        assert sorted(by_kind(collect([read]), "symbol")) == names, path


def test_what_a_sub_agent_answers_names_files_and_symbols() -> None:
    answer = "The pool is made by `make_pool` in src/deep/pool.py.\nagentId: a1b2\n<usage>duration_ms: 12</usage>"
    evidence = collect([ran("delegate", '{"task": "Where is the pool made?"}', answer)])
    assert {(f.kind, f.key, f.by) for f in evidence.facts} == {
        ("symbol", "make_pool", "tool"),
        ("path", "src/deep/pool.py", "tool"),
    }


def test_a_pasted_refusal_of_a_server_is_no_rule_however_it_is_wrapped() -> None:
    pasted = (
        'this results in\n\n Error: 400 {"type":"error","error":{"message":"`use`\n ids were found. Each\n'
        ' `use` block must have a corresponding `result` block in the next\n message."},"id":"req_1"}\n\n'
        "never inject the message there."
    )
    assert list(by_kind(collect([said(pasted)]), "rule")) == ["never inject the message there."]
    between = 'Send {"a": 1} then.\n\nIt must be short.\n\nThe reply is {"b": 2}'
    assert list(by_kind(collect([said(between)]), "rule")) == ["It must be short."]


def test_what_a_run_mended_by_itself_is_no_error() -> None:
    fixed, left = "Found 1 error (1 fixed, 0 remaining).", "Found 2 errors (1 fixed, 1 remaining)."
    told = collect([ran("shell", '{"command": "ruff check --fix"}', f"{fixed}\n[exit code: 0]")])
    assert by_kind(told, "command") == {"ruff check --fix": "exit 0"} and not by_kind(told, "error")
    told = collect([ran("Bash", '{"command": "ruff check --fix"}', left)])
    assert by_kind(told, "command") == {"ruff check --fix": "2 errors"}


def test_to_speak_of_a_name_that_a_file_no_longer_has_does_not_bring_it_back() -> None:
    edit = ran("edit_file", '{"path": "src/cli-new.ts"}', "edited")
    move = ran("shell", '{"command": "mv src/cli-new.ts src/cli.ts"}', "[exit code: 0]", 3)
    told = single(
        "reply", Message(5, "assistant", "`cli-new.ts` is `cli.ts` now, its imports begin at `../../../`."), 1
    )
    facts = collect([edit, move, told])
    assert list(by_kind(facts, "changed")) == ["src/cli.ts"]
    assert "cli-new.ts" not in "".join(f.key for f in facts.facts if f.kind in {"path", "changed"})
    assert not any(f.key.startswith("..") for f in facts.facts)


def test_a_path_that_a_sub_agent_begins_at_the_project_is_none() -> None:
    answer = "See /docs/pool.md, /code/app/src/pool.py and /etc/pool.conf; the API is at /actions/runs/."
    asked = ran("delegate", '{"task": "Where is the pool made?"}', answer)
    assert list(by_kind(collect([asked]), "path")) == ["/etc/pool.conf"]
    edit = ran("edit_file", '{"path": "/code/app/src/db.py"}', "edited", 3)
    assert list(by_kind(collect([asked, edit]), "path")) == ["/code/app/src/pool.py", "/etc/pool.conf"]
    said_so = [asked, said("It is in /docs/pool.md.")]
    assert "/docs/pool.md" in by_kind(collect(said_so), "path"), "somebody else says it, too"


@pytest.mark.parametrize(("later", "open_still"), [(20, True), (200, False)])
def test_an_error_of_long_ago_in_a_long_turn_is_no_open_one(later: int, open_still: bool) -> None:
    failed = ran("shell", '{"command": "setup pool"}', "TypeError: no argument 'slug'\n[exit code: 1]")
    well = ran("shell", '{"command": "make check"}', "fine\n[exit code: 0]", later)
    found = collect([failed, well])
    assert bool(by_kind(found, "error")) is open_still
    assert ("setup pool" in by_kind(found, "command")) is open_still
    read = ran("read_file", '{"path": "src/db.py"}', "import x", later)
    assert by_kind(collect([failed, read]), "error"), "nothing ran since"


def test_a_test_of_whether_a_file_is_there_only_looks_around() -> None:
    looked = runs(
        ("test -f a.md && echo yes || echo no", "yes"), ("[ -d out ] && echo yes", ""), ("make check", "fine")
    )
    assert list(by_kind(collect(looked), "command")) == ["make check"]


def test_commands_that_begin_alike_and_were_cut_are_not_counted_as_one_form() -> None:
    begun = "make " + "gauge " * 60
    several = [
        ran("shell", msgspec.json.encode({"command": begun + end}).decode(), "[exit code: 0]", seq)
        for seq, end in ((1, "a()"), (3, "b()"))
    ]
    assert [f.times for f in collect(several).facts if f.kind == "command"] == [1]


def test_of_a_text_that_a_command_reads_the_first_line_is_told() -> None:
    commit = "git add -A && git commit -m \"$(cat <<'EOF'\nDraw the gauge\n\nIt was blank.\nEOF\n)\" && git push"
    script = "python3 - <<'E'\nimport gauge\ngauge.draw()\nE\nmake check"
    found = by_kind(collect(runs((commit, "done"), (script, "done"))), "command")
    assert list(found) == [
        "git add -A && git commit -m \"$(cat <<'EOF' Draw the gauge … )\" && git push",
        "make check",
    ]


def test_an_escaped_line_end_is_no_part_of_a_word_nor_an_empty_line_one_of_a_command() -> None:
    edit = '{"path": "a.py", "old": "x", "new": "lines = \\"agent_1\\\\nuser_between\\\\ntail_end\\""}'
    assert set(by_kind(collect([ran("edit_file", edit, "done")]), "symbol")) == {"agent_1", "user_between", "tail_end"}
    assert list(by_kind(collect(runs(("\\\ncd /tmp/pier\nmake gauge", "done"))), "command")) == [
        "cd /tmp/pier && make gauge"
    ]


def test_signs_written_by_number_and_methods_of_the_language_are_no_names() -> None:
    read = ran("read_file", '{"path": "a.py"}', "def __call__(self): ...\ndata = b'\\x89PNG'\nmore = b'\\x89PNG'(1)")
    assert by_kind(collect([read]), "symbol") == {}


def test_an_amount_has_the_words_behind_the_one_before_it_and_none_without_a_subject() -> None:
    words = "keep the names <10 chars and 5-8 words, all < 12 chars. p95 went from 412 ms to 380 ms"
    assert list(by_kind(collect([said(words)]), "number")) == ["keep the names <10 chars", "p95 went 380 ms"]


def test_of_a_long_command_its_last_part_is_told_by_which_the_newest_form_stands() -> None:
    ready = "sed -i 's/" + "gauge " * 50 + "//' a.py"
    several = runs((f"{ready}; pytest -q tests/a.py", "done"), (f"{ready} && pytest -q tests/b.py", "done"))
    [command] = by_kind(collect(several), "command")
    assert (
        command.startswith("sed -i 's/gauge") and command.endswith("… ; pytest -q tests/b.py") and len(command) <= 240
    )


def refused(command: str, words: str, seq: int, text: str = "") -> Group:
    call = Message(seq, "assistant", text, calls=(ToolCall("a", "shell", json.dumps({"command": command})),))
    result = Message(seq + 1, "tool", f"The user did not allow this. They said: {words}", call_id="a", failed=True)
    return Group(f"g{seq}", "round", (call, result), 1)


@pytest.mark.parametrize(
    ("command", "output", "facts"),
    [
        ("python -c 'x()'; git status", "clean", {}),
        ("npm run a; git status", "clean", {"npm run a": ""}),
        ("npm run a\npytest -q", "5 passed", {"npm run a": "", "pytest -q": "exit 0"}),
        ("python - <<'E'\nx()\nE\npytest -q", "5 passed", {"pytest -q": "exit 0, 5 passed"}),
        ("make a && make b", "fine", {"make a && make b": "exit 0"}),
        ("pytest -q; git status", "3 failed\nE AssertionError: 3 != 4", {"pytest -q": "with errors"}),
        ("pytest -q", "..E AssertionError: 3 != 4\n[stopped after 120 s: time-out]", {"pytest -q": "stopped before its end"}),
        ("pytest -q || echo no", "5 passed\nno", {"pytest -q || echo no": "5 passed"}),
        ("rm -r build; mkdir build", "", {}),
        ("pytest -q | tail; git add -A && git commit -m x && git log", "..\nfatal: no lock\n[exit code 128]",
         {"pytest -q": "", "git add -A && git commit -m x && git log": "exit 128"}),
        ("server & curl localhost", "up", {"server": ""}),
        ("set -o pipefail; npm test | tail -1", "ok", {"set -o pipefail; npm test": "exit 0"}),
    ],
)  # fmt: skip
def test_an_exit_code_tells_of_the_last_part_of_a_command_line_alone(
    command: str, output: str, facts: dict[str, str]
) -> None:
    found = collect([ran_by_us(command, output)])
    assert by_kind(found, "command") == facts
    if "stopped" in output:
        assert by_kind(found, "error") == {}, "what was printed until then proves nothing"


def ran_by_us(command: str, output: str, seq: int = 1) -> Group:
    call = Message(seq, "assistant", calls=(ToolCall("a", "shell", json.dumps({"command": command})),))
    return Group(f"g{seq}", "round", (call, Message(seq + 1, "tool", output, call_id="a", name="shell")), 1)


def test_what_the_person_refused_or_turned_down_is_no_fact_and_their_words_are_a_rule() -> None:
    proposal = "I'll go with a pool. Set poolSize to 12."
    group = refused("make pool", "Never use pools here.", 1, proposal)
    evidence = collect([group])
    assert [(f.kind, f.key) for f in evidence.facts] == [("rule", "Never use pools here.")]
    answer = said(proposal, "assistant", 1)
    assert by_kind(collect([answer]), "number") == {"poolSize": "12"}
    assert by_kind(collect([answer]), "decision")
    for words in ("No, leave it.", "nein, lass das", "いいえ"):
        group = collect([answer, single("user", Message(5, "user", words), 2)])
        assert by_kind(group, "number") == by_kind(group, "decision") == {}, words
        assert "poolSize" not in by_kind(group, "symbol"), words
    kept = collect([answer, single("user", Message(5, "user", "Now the docs."), 2)])
    assert by_kind(kept, "number") == {"poolSize": "12"}


def test_values_and_names_are_those_that_stand_in_the_file_now() -> None:
    told = single("reply", Message(1, "assistant", "Done: `dimGray`: `#585858`."), 1)
    edit = done(("x", {}), edited("theme.json", '"dimGray": "#585858",', '"dimGray": "#666666",'))[1]
    assert by_kind(collect([told]), "number") == {"dimGray": "#585858"}
    assert by_kind(collect([told, edit]), "number") == {}
    first = edited("src/a.py", "pass", "class OldGauge: ...")
    write = ("write_file", {"path": "src/a.py", "content": "class NewGauge: ..."})
    assert set(by_kind(collect(done(first)), "symbol")) == {"OldGauge"}
    assert set(by_kind(collect(done(first, write)), "symbol")) == {"NewGauge"}


@pytest.mark.parametrize(
    ("commands", "changed"),
    [
        (["git checkout -- src/a.py"], ["src/b.py"]),
        (["git restore src/a.py src/b.py"], []),
        (["git --no-pager -C src -c a.b=c restore a.py"], ["src/b.py"]),
        (["git restore --staged src/a.py"], ["src/a.py", "src/b.py"]),
        (["git checkout ."], []),
        (["git checkout -b new.branch"], ["src/a.py", "src/b.py"]),
        (["git reset --hard"], []),
        (["git commit -am 'both'", "git reset --hard"], ["src/a.py", "src/b.py"]),
    ],
)
def test_changes_that_were_thrown_away_are_none(commands: list[str], changed: list[str]) -> None:
    calls = [edited("src/a.py", "1", "2"), edited("src/b.py", "1", "2")]
    calls += [("shell", {"command": command}) for command in commands]
    assert list(by_kind(collect(done(*calls)), "changed")) == changed


def test_one_program_is_one_however_it_is_found_and_a_test_that_passes_since_is_no_open_error() -> None:
    wrong = ran_by_us(
        "uv run --frozen pytest tests/test_a.py", "FAILED tests/test_a.py::test_x - assert 1\n[exit code 1]"
    )
    well = ran_by_us("python -m pytest -q", "9 passed", 10)
    assert by_kind(collect([wrong]), "error")
    assert not by_kind(collect([wrong, well]), "error")
    assert not by_kind(collect([wrong], staying=[well]), "error"), "what stays in view tells it"
    assert by_kind(collect([wrong, well]), "command") == {"python -m pytest -q": "exit 0, 9 passed"}
    other = ran_by_us("make check-a FILES=tests/test_a.py", "fine", 10)
    assert not by_kind(collect([wrong, other]), "error"), "another program ran that very file well"


def test_an_agent_says_a_number_outright_or_it_is_none() -> None:
    listed = "The counts: 4717 loose objects, 12 MB packed, 3 s each. Total: 12"
    assert by_kind(collect([single("reply", Message(1, "assistant", listed), 1)]), "number") == {}
    outright = single("reply", Message(1, "assistant", "The import saturates at 512 requests."), 1)
    assert list(by_kind(collect([outright]), "number")) == ["The import saturates at 512 requests"]
    call = Message(1, "assistant", "The import takes 12 ms.", calls=(ToolCall("a", "shell", '{"command": "ls"}'),))
    before = Group("g1", "round", (call, Message(2, "tool", "x", call_id="a")), 1)
    assert collect([before]).facts == (), "what it thinks before a call is no answer"


def test_a_commit_that_went_through_in_the_end_is_the_one_that_stands() -> None:
    first = ran_by_us("make; git add -A && git commit -m x && git log", "fatal: Read-only file system\n[exit code 128]")
    again = ran_by_us("git add -A && git commit -m x && git log --oneline", "2218384 x", 10)
    evidence = collect([first, again])
    assert by_kind(evidence, "error") == {}
    assert by_kind(evidence, "command") == {"make": "", "git add -A && git commit -m x && git log --oneline": "exit 0"}


def test_a_run_that_failed_long_ago_and_one_of_a_file_that_is_gone_are_no_facts() -> None:
    failed = ran_by_us("npx tsgo --noEmit", "src/a.ts(3,1): error TS1: no\n[exit code 1]")
    assert by_kind(collect([failed, said("And now?", turn=3)]), "command") == {"npx tsgo --noEmit": "exit 1"}
    assert by_kind(collect([failed, said("See src/b.py", turn=4)]), "command") == {}
    ran_once = ran_by_us("npx tsx src/cli-new.ts --help", "usage")
    moved = ran_by_us("mv src/cli-new.ts src/cli.ts", "", 10)
    assert by_kind(collect([ran_once]), "command") == {"npx tsx src/cli-new.ts --help": "exit 0"}
    assert by_kind(collect([ran_once, moved]), "command") == {}


def test_an_agent_that_speaks_between_two_rounds_has_not_answered() -> None:
    call = Message(3, "assistant", calls=(ToolCall("a", "shell", '{"command": "make"}'),))
    messages = [
        Message(1, "user", "Draw it."),
        Message(2, "assistant", "I begin."),
        call,
        Message(4, "tool", "ok", call_id="a"),
    ]
    assert [g.id for g in open_requests(group_messages(messages))] == ["g1"]
    assert open_requests(group_messages([*messages, Message(5, "assistant", "Drawn.")])) == []
