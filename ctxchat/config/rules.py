"""Standing permissions a person gave with "always", kept in a file of the program's own beside the settings."""

from __future__ import annotations

from pathlib import Path

from ctxchat.config.lists import add_to_list, read_list
from ctxchat.config.problems import Problem, shown
from ctxchat.core.permissions import Rule, parse_rule


def read_rules(config: Path) -> tuple[tuple[Rule, ...], tuple[Problem, ...]]:
    """The stored rules and what is wrong with their file; a rule that is none is named and left out."""
    texts, problem = read_list(rules_file(config), "rules")
    parsed = [(text, parse_rule(text)) for text in texts]
    wrong = [
        Problem(f"{shown(t)} is no rule", "rules", "must be `tool: pattern`", file=str(rules_file(config)))
        for t, r in parsed
        if not r
    ]
    return tuple(r for _, r in parsed if r), (*((problem,) if problem else ()), *wrong)


def add_rule(config: Path, rule: Rule) -> None:
    """Keep a rule for good. A broken file is put aside first, never overwritten. Raises OSError."""
    add_to_list(rules_file(config), "rules", rule.text)


def rules_file(config: Path) -> Path:
    """Where they are kept."""
    return config / "permissions.toml"
