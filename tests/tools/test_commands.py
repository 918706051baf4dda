"""Which rule a command offers: never one that lets in more than it says."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxchat.tools.commands import rule_for


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git status", "git status *"),
        ("git status --short", "git status *"),
        ("git push origin main", "git push *"),
        ("npm run build -- --fast", "npm run build *"),
        ("uv run pytest -q", "uv run pytest *"),
        ("cargo test", "cargo test *"),
        ("make test", "make test *"),
        ("ls -la src", "ls *"),
        ("ls *.py", "ls *"),
        ("pytest -q tests", "pytest *"),
        ("./gradlew build", "./gradlew *"),
    ],
)
def test_simple_commands_offer_a_prefix(command: str, rule: str) -> None:
    assert rule_for(command) == rule


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf x",
        "git status && ls",
        "git status | sh",
        "git log > out",
        "git log `id`",
        "git log $(id)",
        "git log\nid",
        "git log & id",
        "git -c core.pager=id log",
        "python x.py",
        "python3.12 -c 1",
        "bash run.sh",
        "sudo ls",
        "env A=1 ls",
        "A=1 ls",
        "find . -delete",
        "xargs rm",
        "rm x",
        "docker run alpine",
        "npm exec thing",
        "uv run python x.py",
        "uv run --with x y",
        "npm run",
        "git",
        "'my program' x",
        "$SHELL x",
        "unbalanced 'quote",
        "(ls)",
    ],
)
def test_what_could_do_anything_offers_only_itself(command: str) -> None:
    assert rule_for(command) == command


def test_wildcards_of_an_exact_rule_are_quoted() -> None:
    assert rule_for("rm *.pyc") == "rm [*].pyc"
    assert fnmatchcase("rm *.pyc", rule_for("rm *.pyc"))
    assert not fnmatchcase("rm -rf /.pyc", rule_for("rm *.pyc"))


_token = st.sampled_from(
    [
        "git",
        "status",
        "ls",
        "npm",
        "run",
        "rm",
        "-rf",
        "/",
        ";",
        "&&",
        "|",
        "`",
        "$(",
        ")",
        ">",
        "<",
        "\n",
        "&",
        "x y",
        "*",
        "'",
        "\\",
    ]
)


@given(st.lists(_token, min_size=1, max_size=6), st.sampled_from(["", " "]))
def test_no_rule_reaches_across_shell_syntax(tokens: list[str], between: str) -> None:
    command = between.join(tokens)
    rule = rule_for(command)
    if rule.endswith(" *") and fnmatchcase(command, rule):
        assert not set(command) & set(";&|`<>\n\\()")
    else:
        assert rule == command or fnmatchcase(command, rule) or rule == f"{command} *"
