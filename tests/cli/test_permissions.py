"""`ctxchat permissions`: what is in force here, taken out one by one, and what would be said to a call."""

from __future__ import annotations

from ctxchat.config.rules import add_rules
from ctxchat.core.permissions import Rule
from ctxchat.tools.sandbox import find_sandbox

from .conftest import Cli, Home


def test_rules_are_listed_with_where_they_hold_and_taken_out(cli: Cli, home: Home) -> None:
    assert cli("permissions", "list", "--json").json == []
    here = str(home.work.resolve())
    add_rules(home.settings, [Rule("shell", "make", here), Rule("shell", "make", "/elsewhere")])
    (home.settings / "config.toml").write_text('permissions.rules = ["deny shell: rm **"]')
    stored, own = home.settings / "permissions.toml", home.settings / "config.toml"
    assert [(r["rule"], r["folder"], r["source"], r["here"], r["at"]) for r in cli("permissions", "--json").json] == [
        ("shell: make", here, "always", True, f"{stored}:3"),
        ("shell: make", "/elsewhere", "always", False, f"{stored}:6"),
        ("deny shell: rm **", None, "settings", True, f"{own}:1"),
    ]
    assert f"{stored}:6" in cli("permissions", "list").out
    assert cli("permissions", "remove", "shell: make", "--json").json == {"removed": "shell: make", "folder": here}
    assert cli("permissions", "remove", "shell: make").code == 2
    assert cli("permissions", "remove", "shell: make", "--folder", "/elsewhere").code == 0
    assert len(cli("permissions", "--json").json) == 1


def test_rules_of_an_earlier_version_are_told_of_until_they_are_taken_out(cli: Cli, home: Home) -> None:
    (home.settings / "permissions.toml").write_text('rules = ["shell: make"]')
    assert "held in every folder" in cli("permissions").err
    assert cli("permissions", "check", "shell", "make", "--json").json["verdict"] == "ask"
    assert cli("permissions", "remove", "--old").code == 0
    assert "held in every folder" not in cli("permissions").err


def test_what_would_be_said_to_a_call(cli: Cli, home: Home) -> None:
    (home.settings / "config.toml").write_text(
        'permissions.rules = ["shell: make", "deny shell: rm **", "write_file: src/*"]'
    )
    said = cli("permissions", "check", "shell", "make && uv run pytest -q", "--json").json
    assert said["verdict"] == "ask" and [part["rule"] for part in said["parts"]] == ["shell: make", ""]
    assert said["offered"] == ["shell: uv run pytest -q", "shell: uv run pytest **"]
    assert cli("permissions", "check", "shell", "sudo", "rm", "-rf", "x", "--json").json["rule"] == "deny shell: rm **"
    assert cli("permissions", "check", "write_file", "src/a.py", "--json").json["rule"] == "write_file: src/*"
    assert cli("permissions", "check", "write_file", ".git/config", "--json").json["offered"] == []
    assert cli("permissions", "check", "shell", "make", "--permissions", "plan", "--json").json["verdict"] == "deny"
    for mode in ("read-only", "plan"):  # what denies the whole lets no part through
        said = cli("permissions", "check", "shell", "ls && make", "--permissions", mode, "--json").json
        assert said["verdict"] == "deny" and [part["rule"] for part in said["parts"]] == ["", ""]
    (home.settings / "config.toml").write_text('permissions.rules = ["shell: timeout **", "shell: make"]')
    inside = "timeout 5 cp hook .git/hooks/pre-commit && make"  # what is guarded is named by the command in the command
    said = cli("permissions", "check", "shell", inside, "--json").json
    assert said["verdict"] == "ask" and [part["rule"] for part in said["parts"]] == ["", "shell: make"]
    said = cli("permissions", "check", "shell", "ls && make", "--permissions", "all", "--json").json
    assert said["verdict"] == "allow" and [part["rule"] for part in said["parts"]] == ["mode all", "mode all"]
    if find_sandbox().kind:
        assert "allow: free" in cli("permissions", "check", "shell", "ls -la", "--permissions", "plan").out
        assert "allow: free" in cli("permissions", "check", "shell", "ls -la").out
    for line in ('permissions.ask = "everything"', "permissions.sandbox = false"):
        (home.settings / "config.toml").write_text(line)
        said = cli("permissions", "check", "shell", "ls -la", "--json").json
        assert (said["verdict"], said["offered"]) == ("ask", ["shell: ls -la"])


def test_what_is_no_rule_or_no_tool_is_named(cli: Cli) -> None:
    for arguments in (
        ("remove",),
        ("remove", "nonsense"),
        ("remove", "shell: x"),
        ("check", "nope", "x"),
        ("check", "shell"),
    ):
        ran = cli("permissions", *arguments)
        assert ran.code == 2 and ran.sentence
