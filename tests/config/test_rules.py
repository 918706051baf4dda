"""Standing permissions: kept, added once, removed, and never lost to a broken file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from ctxchat.config.rules import add_rules, read_rules, remove_old, remove_rule, rules_file
from ctxchat.core.permissions import Rule, parse_rule

from .conftest import Home


def test_rules_come_back_with_their_folder_once_and_private(home: Home) -> None:
    assert read_rules(home.config) == ((), ())
    git, write = Rule("shell", "git **", "/a"), Rule("write_file", 'src/a "b".py', "/a")
    there = Rule("shell", "git **", "/b", denies=True)
    add_rules(home.config, [git, write])
    add_rules(home.config, [there, git])
    assert read_rules(home.config) == ((git, write, there), ())
    assert rules_file(home.config).stat().st_mode & 0o777 == 0o600


def test_one_is_taken_out_and_the_others_stay(home: Home) -> None:
    git, make = Rule("shell", "git **", "/a"), Rule("shell", "make", "/a")
    add_rules(home.config, [git, make])
    assert remove_rule(home.config, git)
    assert read_rules(home.config) == ((make,), ())
    assert not remove_rule(home.config, git) and not remove_rule(home.config, Rule("shell", "make", "/b"))


def test_rules_that_held_everywhere_no_longer_count_and_it_says_so(home: Home) -> None:
    rules_file(home.config).write_text('rules = ["shell: make *"]')
    rules, problems = read_rules(home.config)
    assert rules == () and "held in every folder" in problems[0].text
    new = Rule("shell", "make", "/a")
    add_rules(home.config, [new])
    rules, problems = read_rules(home.config)
    assert rules == (new,) and len(problems) == 1, "they stay in the file until somebody takes them out"
    assert "make *" in rules_file(home.config).read_text()
    assert remove_old(home.config) and not remove_old(home.config)
    assert read_rules(home.config) == ((new,), ())


def test_a_broken_file_is_reported_and_kept_when_written_over(home: Home) -> None:
    file, new = rules_file(home.config), Rule("shell", "ls", "/a")
    for broken in (
        "folders = [",
        "folders = 3",
        'folders."/a" = ["shell: ls", 4]',
        "\x00",
        'folders."/a" = "shell: ls"',
    ):
        file.write_text(broken)
        rules, problems = read_rules(home.config)
        assert rules == () and len(problems) == 1 and str(file) in problems[0].text
        add_rules(home.config, [new])
        assert file.with_name("permissions.toml.broken").read_text() == broken
        assert read_rules(home.config) == ((new,), ())


def test_rules_given_in_several_windows_at_once_are_all_kept(home: Home) -> None:
    rules = [Rule("shell", f"make {n}", "/a") for n in range(24)]
    with ThreadPoolExecutor(8) as windows:
        list(windows.map(lambda rule: add_rules(home.config, [rule]), rules))
    assert set(read_rules(home.config)[0]) == set(rules)


def test_a_rule_that_is_none_is_named_and_the_rest_counts(home: Home) -> None:
    rules_file(home.config).write_text('folders."/a" = ["shell: ls", "nonsense", ": x", "shell:"]')
    rules, problems = read_rules(home.config)
    assert rules == (Rule("shell", "ls", "/a"),)
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
