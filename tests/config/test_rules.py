"""Standing permissions: kept, added once, removed, and never lost to a broken file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.config.rules import add_rule, parse_rule, read_rules, rules_file
from ctxchat.core.permissions import Rule

from .conftest import Home


def test_rules_come_back_in_order_once_and_private(home: Home) -> None:
    assert read_rules(home.config) == ((), ())
    git, write = Rule("shell", "git *"), Rule("write", 'src/a "b".py')
    for rule in (git, write, git):
        add_rule(home.config, rule)
    assert read_rules(home.config) == ((git, write), ())
    assert rules_file(home.config).stat().st_mode & 0o777 == 0o600


def test_a_broken_file_is_reported_and_kept_when_written_over(home: Home) -> None:
    file = rules_file(home.config)
    for broken in ("rules = [", "rules = 3", 'rules = ["shell: ls", 4]', "\x00"):
        file.write_text(broken)
        rules, problems = read_rules(home.config)
        assert rules == () and len(problems) == 1 and str(file) in problems[0].text
        add_rule(home.config, Rule("shell", "ls"))
        assert file.with_name("permissions.toml.broken").read_text() == broken
        assert read_rules(home.config) == ((Rule("shell", "ls"),), ())


def test_rules_given_in_several_windows_at_once_are_all_kept(home: Home) -> None:
    rules = [Rule("shell", f"make {n}") for n in range(24)]
    with ThreadPoolExecutor(8) as windows:
        list(windows.map(lambda rule: add_rule(home.config, rule), rules))
    assert set(read_rules(home.config)[0]) == set(rules)


def test_a_rule_that_is_none_is_named_and_the_rest_counts(home: Home) -> None:
    rules_file(home.config).write_text('rules = ["shell: ls", "nonsense", ": x", "shell:"]')
    rules, problems = read_rules(home.config)
    assert rules == (Rule("shell", "ls"),)
    assert ["'nonsense'" in problems[0].text, "': x'" in problems[1].text, "'shell:'" in problems[2].text] == [True] * 3


@given(
    tool=st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
    pattern=st.text(
        st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"], include_characters=" "), min_size=1, max_size=20
    ),
    denies=st.booleans(),
    network=st.booleans(),
)
def test_a_rule_as_text_reads_back(tool: str, pattern: str, denies: bool, network: bool) -> None:
    rule = Rule(tool, pattern.strip() or "x", denies=denies, network=network)
    assert parse_rule(rule.text) == rule
