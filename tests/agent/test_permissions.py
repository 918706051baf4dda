"""Rules, modes and what they cover: no further than they say, and only where they hold."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.turn.permissions import judge, offers, stricter
from ctxchat.core.patterns import Word, covers_words, escaped, written
from ctxchat.core.permissions import SHELL_FOLDER, AccessRequest, Grant, Mode, Part, Rule, parse_rule, parse_rules

WS = "/ws"


def words(*texts: str) -> tuple[Word, ...]:
    """A word that begins with ? is not known yet."""
    return tuple(Word(text.removeprefix("?"), not text.startswith("?")) for text in texts)


@pytest.mark.parametrize(
    ("pattern", "command", "said"),
    [
        ("uv run pytest **", "uv run pytest", "yes"),
        ("uv run pytest **", "uv run pytest -q x", "yes"),
        ("uv run pytest **", "uv run pytestx", "no"),
        ("git ** --force", "git push x --force", "yes"),
        ("git ** --force", "git --force", "yes"),
        ("** x", "x", "yes"),
        ("cat src/*", "cat src/a/b", "no"),
        ("cat src/**", "cat src/a/b", "yes"),
        ("cat src/**", "cat src/../../x", "no"),
        ("cat src/**", "cat src/a src/b", "no"),
        ("ls *", "ls ..", "no"),
        ("ls *", "ls a b", "no"),
        ("rm '*.py'", "rm *.py", "yes"),
        ("rm '*.py'", "rm ?*.py", "maybe"),
        (r"rm \*.py", "rm ?*.py", "yes"),
        (r"rm \*.py", "rm x.py", "no"),
        (r"rm \*.py", "rm *.py", "no"),
        ("rm **", "rm ?$X", "yes"),
        ("rm *", "rm ?$X", "maybe"),
        ("git push **", "?$X", "maybe"),
        ("git push **", "ls ?$X", "no"),
        ("'my tool' **", "my", "no"),
        ("Make", "make", "no"),
    ],
)
def test_what_a_pattern_covers_of_a_command(pattern: str, command: str, said: str):
    assert covers_words(pattern, words(*command.split())) == said


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" '\"*\\"), max_size=8),
        min_size=1,
        max_size=5,
    )
)
def test_a_command_is_covered_by_itself_as_it_is_written(texts: list[str]):
    command = tuple(Word(text) for text in texts)
    assert covers_words(written(command), command) == "yes"
    assert covers_words(written(command), (*command, Word("x"))) == "no"


@given(st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_a_path_is_covered_by_itself_and_no_other(path: str, other: str):
    rule = Rule("w", escaped(f"/x{path}"))
    assert judge("w", AccessRequest("write", f"/x{path}", inside=False), "ask", [rule], WS).verdict == "allow"
    if other != path:
        assert judge("w", AccessRequest("write", f"/x{other}", inside=False), "ask", [rule], WS).verdict == "ask"


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("src/*", "/ws/src/a.py", True),
        ("src/*", "/ws/src/a/b.py", False),
        ("src/**", "/ws/src/a/b.py", True),
        ("**/x.py", "/ws/x.py", True),
        ("**", "/ws/a/b", True),
        ("**", "/etc/passwd", False),
        ("src/*", "/wsx/src/a.py", False),
        ("*", "/ws/a/b", False),
        ("/etc/*", "/etc/hosts", True),
        (r"a\*b", "/ws/a*b", True),
        (r"a\*b", "/ws/axb", False),
        ("./src/*", "/ws/src/a.py", True),
    ],
)
def test_a_path_counts_from_the_workspace(pattern: str, path: str, covered: bool):
    judged = judge("w", AccessRequest("write", path, path.startswith("/ws/")), "ask", [Rule("w", pattern)], WS)
    assert (judged.verdict == "allow") == covered


@given(
    st.sampled_from(["shell", "write_file", "web_fetch"]),
    st.sampled_from(["ask", "plan", "auto-edit"]),
    st.text(max_size=9),
)
def test_a_rule_for_one_folder_allows_nothing_in_another(tool: str, mode: Mode, pattern: str):
    for wide in (pattern, "**"):
        rule = Rule(tool, wide, folder="/a")
        for access_request in (
            AccessRequest("run", "make", parts=(Part(words("make")),)),
            AccessRequest("write", "/etc/x", inside=False),
        ):
            assert judge(tool, access_request, mode, [rule], "/b") == judge(tool, access_request, mode, [], "/b")


def test_what_may_be_written_may_be_edited_and_not_the_other_way_round():
    access_request = AccessRequest("write", "/project/src/a.py", False, "it", patterns=("src/a.py",))
    for held, tool, said in [
        ("write_file: src/a.py", "edit_file", "allow"),
        ("edit_file: src/a.py", "write_file", "ask"),
        ("write_file: src/a.py", "remember", "ask"),
        ("deny write_file: src/**", "edit_file", "deny"),
    ]:
        rule = parse_rule(held)
        assert rule and judge(tool, access_request, "ask", [rule], "/project").verdict == said


def test_deny_rules_win_in_every_mode_however_deep():
    rm = Part(words("rm", "x"))
    for part in (
        rm,
        Part(words("timeout", "5", "rm", "x"), inner=(rm,), through=True),
        Part(words("sudo", "rm"), inner=(rm,)),
    ):
        access_request = AccessRequest("run", "…", parts=(Part(words("make")), part))
        for mode in ("ask", "plan", "read-only", "auto-edit", "all"):
            judged = judge(
                "shell", access_request, mode, [Rule("shell", "**"), Rule("shell", "rm **", denies=True)], WS
            )
            assert (judged.verdict, judged.rule) == ("deny", "deny shell: rm **")


def test_what_may_be_forbidden_is_asked_in_every_mode():
    access_request = AccessRequest("run", "$X", parts=(Part(words("?$X")),))
    for mode in ("ask", "auto-edit", "all"):
        deny = Rule("shell", "rm **", denies=True)
        judged = judge("shell", access_request, mode, [Rule("shell", "**"), deny], WS)
        assert judged.verdict == "ask" and deny.text in judged.reason
    assert judge("shell", access_request, "all", [], WS).verdict == "allow"


def test_a_file_is_forbidden_in_any_capitals():
    deny = Rule("read_file", "Secrets/**", denies=True)
    assert judge("read_file", AccessRequest("read", "/ws/secrets/a"), "all", [deny], WS).verdict == "deny"
    assert judge("read_file", AccessRequest("read", "/ws/other"), "all", [deny], WS).verdict == "allow"


def test_guarded_places_are_asked_under_every_rule_and_mode_but_all():
    access_request = AccessRequest("write", "/ws/.git/hooks/x", guarded=".git", patterns=("x",))
    for mode in ("ask", "auto-edit"):
        judged = judge("w", access_request, mode, [Rule("w", "**"), Rule("w", ".git/hooks/x")], WS)
        assert judged.verdict == "ask" and ".git" in judged.reason
    assert judge("w", access_request, "all", [], WS).verdict == "allow"
    assert offers("w", access_request, "ask", [], WS) == ()


def test_modes():
    inside, outside = AccessRequest("write", "/ws/a"), AccessRequest("write", "/etc/x", inside=False)
    assert judge("w", inside, "auto-edit", []).verdict == "allow"
    assert judge("w", outside, "auto-edit", []).verdict == "ask"
    assert judge("w", inside, "read-only", [Rule("w", "**")], WS).verdict == "deny"
    assert judge("w", outside, "all", []).verdict == "allow"
    assert judge("r", AccessRequest("read", "/ws/a"), "read-only", []).verdict == "allow"
    assert judge("r", AccessRequest("read", "/etc/x", inside=False), "ask", []).verdict == "ask"


def test_plan_only_reads():
    reading = AccessRequest("run", "ls", parts=(Part(words("ls"), reads=True, inside=True),), shut_in=True)
    reading_outside = AccessRequest("run", "ls /", parts=(Part(words("ls", "/"), reads=True),), shut_in=True)
    writing = AccessRequest("run", "make", parts=(Part(words("make")),))
    rules = [Rule("shell", "make"), Rule("w", "**")]
    assert judge("shell", reading, "plan", rules, WS).read_only
    unshut = msgspec.structs.replace(reading, shut_in=False)
    assert judge("shell", unshut, "plan", rules, WS).verdict == "ask"
    assert judge("shell", reading_outside, "plan", rules, WS).verdict == "ask"
    for tool, access_request in (
        ("shell", writing),
        ("w", AccessRequest("write", "/ws/a")),
        ("f", AccessRequest("network", "http://x", inside=False)),
    ):
        judged = judge(tool, access_request, "plan", rules, WS)
        assert judged.verdict == "deny" and "plan" in judged.reason
    assert stricter("plan", "ask") == "plan" and stricter("plan", "read-only") == "read-only"


def test_rules_are_offered_for_the_parts_that_none_covers_yet():
    one, two = Part(words("make"), patterns=("make",)), Part(words("ls", "-l"), patterns=("ls -l", "ls **"))
    write = Part(writes="/ws/src/x", inside=True, patterns=("src/x", "src/*", "src/**"))
    access_request = AccessRequest("run", "…", parts=(one, two, write))
    held = [Rule("shell", "make", WS)]
    assert offers("shell", access_request, "ask", held, WS) == (
        "shell: ls -l\nwrite_file: src/x",
        "shell: ls **\nwrite_file: src/*",
        "shell: ls **\nwrite_file: src/**",
    )
    assert offers("shell", access_request, "auto-edit", held, WS) == ("shell: ls -l", "shell: ls **")
    assert offers("shell", AccessRequest("run", "…", parts=(one, Part(words("?$X")))), "ask", [], WS) == ()


def test_network_comes_with_a_rule_only_where_every_part_has_it():
    def said(*rules: str, plain: bool = True) -> Grant:
        access_request = AccessRequest(
            "run",
            "…",
            parts=(
                Part(words("uv", "sync")),
                Part(words("make")),
                Part(words("ls"), reads=True, inside=True, plain=plain),
            ),
            shut_in=True,
        )
        return judge(
            "shell", access_request, "ask", [rule for text in rules if (rule := parse_rule(text))], WS
        ).allowance

    assert said("shell+network: uv sync", "shell+network: make") == Grant(network=True)
    assert said("shell+network: uv sync", "shell: make") == Grant()
    assert said("shell+network: uv sync", "shell+network: make", plain=False) == Grant()
    assert said(f"{SHELL_FOLDER}: /cache", "shell: uv sync") == Grant(folders=("/cache",)), (
        "for the person's answer too"
    )


def test_a_rule_for_a_command_is_none_for_what_it_asks_for_besides():
    part = Part(words("uv", "sync"), patterns=("uv sync", "uv sync **"))
    wants = AccessRequest("run", "uv sync", parts=(part,), asks=Grant(network=True, folders=("/cache",)))
    half = [Rule("shell", "uv sync"), Rule(SHELL_FOLDER, "/cache")]
    assert judge("shell", wants, "ask", half, WS).verdict == "ask"
    assert offers("shell", wants, "ask", half, WS) == ("shell+network: uv sync", "shell+network: uv sync **")
    offered = offers("shell", wants, "ask", [], WS)
    assert offered[0] == "shell+network: uv sync\nshell-folder: /cache"
    given = parse_rules(offered[0])
    assert given and judge("shell", wants, "ask", given, WS).allowance == wants.asks
    assert judge("shell", wants, "all", []).verdict == "allow"
    assert judge("shell", wants, "read-only", []).verdict == "deny"


def test_a_command_that_nobody_took_apart_is_covered_by_itself_only():
    access_request = AccessRequest("run", "make; rm x")
    assert judge("theirs", access_request, "ask", [Rule("theirs", "make*")], WS).verdict == "ask"
    assert judge("theirs", access_request, "ask", [Rule("theirs", "make; rm x")], WS).verdict == "allow"


def test_an_address_is_not_left_by_a_wildcard():
    rule = Rule("web_fetch", "https://*.example.org/**")
    for url, verdict in (
        ("https://a.example.org/x/y", "allow"),
        ("https://evil.org/.example.org/x", "ask"),
        ("https://evil.org?.example.org/x", "ask"),
        ("https://evil.org#.example.org/x", "ask"),
        ("https://me@evil.org:80/.example.org/x", "ask"),
    ):
        assert judge("web_fetch", AccessRequest("network", url, inside=False), "ask", [rule], WS).verdict == verdict, (
            url
        )
