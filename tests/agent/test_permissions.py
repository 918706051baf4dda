"""Rules and what they cover: what was allowed once for good is not asked again, and reaches no further than it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.agent.permissions import judge, matches
from ctxchat.core.permissions import Allowance, Demand, Rule
from ctxchat.tools.commands import rule_for

COMPOUND = "ls *.py && rm [a-z]*.tmp"
SYNTAX = [";", "&&", "|", ">", "<", "`", "\n", "$(", "${", "$X", "(", "{", "\\\n"]


def demand(command: str) -> Demand:
    return Demand("run", command, patterns=(rule_for(command),))


def test_a_rule_given_for_a_command_covers_that_command_again():
    for command in (COMPOUND, "git status", "git status -s", "rm -rf [x]", "echo $HOME", "cat 'a b' > *.txt"):
        given_rule = Rule("shell", demand(command).patterns[0])
        assert matches(given_rule, "shell", demand(command)), command
        assert judge("shell", demand(command), "ask", [given_rule]).verdict == "allow"
        assert matches(Rule("shell", command), "shell", demand(command)), "as a person would write it"


@given(st.text(min_size=1, max_size=40))
def test_any_command_that_was_allowed_is_not_asked_again(command: str):
    assert matches(Rule("shell", demand(command).patterns[0]), "shell", demand(command))


@pytest.mark.parametrize("syntax", SYNTAX)
def test_a_rule_with_a_wildcard_never_reaches_across_shell_syntax(syntax: str):
    for rule in ("git *", "git status *", "*"):
        assert not matches(Rule("shell", rule), "shell", demand(f"git status {syntax} rm -rf /"))
    assert not matches(Rule("shell", demand(COMPOUND).patterns[0]), "shell", demand(f"{COMPOUND} {syntax} x"))


def test_a_wide_rule_covers_the_bare_command_and_no_other_program():
    rule = Rule("shell", "git status *")
    assert matches(rule, "shell", demand("git status"))
    assert matches(rule, "shell", demand("git status --short"))
    assert not matches(rule, "shell", demand("git statusx"))
    assert not matches(rule, "shell", demand("git push"))
    assert not matches(rule, "other", demand("git status"))


def test_paths_with_wildcards_in_their_names_are_told_apart():
    rule = Rule("write_file", "/ws/[a].py")
    assert matches(rule, "write_file", Demand("write", "/ws/[a].py"))
    assert matches(Rule("write_file", "/ws/src/*"), "write_file", Demand("write", "/ws/src/deep/x.py"))
    assert not matches(Rule("write_file", "/ws/src/*"), "write_file", Demand("write", "/ws/other.py"))


def test_a_rule_for_a_command_is_none_for_the_network_it_asks_for():
    wants = Demand("run", "uv sync", patterns=("uv sync",), asks=Allowance(network=True))
    assert judge("shell", wants, "ask", [Rule("shell", "uv sync")]).verdict == "ask"
    assert judge("shell", wants, "all", []).verdict == "allow"
    assert judge("shell", wants, "read-only", []).verdict == "deny"


def test_modes():
    inside, outside = Demand("write", "/ws/a"), Demand("write", "/etc/x", inside=False)
    assert judge("w", inside, "auto-edit", []).verdict == "allow"
    assert judge("w", outside, "auto-edit", []).verdict == "ask"
    assert judge("w", inside, "read-only", [Rule("w", "*")]).verdict == "deny"
    assert judge("w", outside, "all", []).verdict == "allow"
    assert judge("r", Demand("read", "/ws/a"), "read-only", []).verdict == "allow"
    assert judge("r", Demand("read", "/etc/x", inside=False), "ask", []).verdict == "ask"
