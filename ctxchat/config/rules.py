"""Stores the permissions a person gave with "always", in a file of the program's own, each for one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from ctxchat.config.atomic import alone, write_text
from ctxchat.config.problems import Problem, display_value
from ctxchat.config.toml_file import read_toml
from ctxchat.config.toml_positions import layout
from ctxchat.core.permissions import Rule, parse_rule


def read_rules(config: Path) -> tuple[tuple[Rule, ...], tuple[Problem, ...]]:
    """The stored rules and the problems of their file; an invalid rule is reported and left out."""
    path = rules_file(config)
    file = read_toml(path)
    if file.tree is None:
        return (), (file.problem,) if file.problem else ()
    folders = file.tree.get("folders", {})
    if not isinstance(folders, dict) or not all(_texts(rules) for rules in folders.values()):
        return (), (Problem("is damaged", "folders", "must be a list of texts for each folder", file=str(path)),)
    rules: list[Rule] = []
    problems: list[Problem] = []
    for folder, texts in folders.items():
        for text in texts:
            if rule := parse_rule(text):
                rules.append(msgspec.structs.replace(rule, folder=folder))
            else:
                problems.append(
                    Problem(f"{display_value(text)} is no rule", "folders", "must be `tool: pattern`", file=str(path))
                )
    if "rules" in file.tree:
        old = "holds rules of an earlier version, which held in every folder; they no longer count, and you are asked again"
        problems.append(Problem(old, "rules", "take them out with `ctxchat permissions remove --old`", file=str(path)))
    return tuple(rules), tuple(problems)


def stored_at(config: Path) -> dict[Rule, str]:
    """The position of each stored rule, as `file:line`."""
    path = rules_file(config)
    file = read_toml(path)
    folders = (file.tree or {}).get("folders", {})
    positions = layout(file.text)
    return {
        msgspec.structs.replace(rule, folder=folder): f"{path}:{positions.line_of(('folders', folder, number))}"
        for folder, texts in (folders.items() if isinstance(folders, dict) else ())
        for number, text in enumerate(texts if _texts(texts) else ())
        if (rule := parse_rule(text))
    }


def add_rules(config: Path, rules: Sequence[Rule]) -> None:
    """Store rules, each for its folder. A broken file is renamed first, never overwritten. Raises OSError."""
    _change(config, lambda stored: (*stored, *rules))


def remove_rule(config: Path, rule: Rule) -> bool:
    """Remove a rule; False where it is not stored. Raises OSError."""
    if rule not in read_rules(config)[0]:
        return False
    _change(config, lambda stored: (each for each in stored if each != rule))
    return True


def replace_rule(config: Path, rule: Rule, by: Rule) -> bool:
    """Replace a rule by another; False where it is not stored. Raises OSError."""
    if rule not in read_rules(config)[0]:
        return False
    _change(config, lambda stored: (by if each == rule else each for each in stored))
    return True


def remove_old(config: Path) -> bool:
    """Remove the rules of an earlier version; False where there are none. Raises OSError."""
    if "rules" not in (read_toml(rules_file(config)).tree or {}):
        return False
    _change(config, lambda stored: stored, old=False)
    return True


def _change(config: Path, change: Callable[[tuple[Rule, ...]], Iterable[Rule]], *, old: bool = True) -> None:
    """Rewrite the file with changed rules. `old` keeps the rules of an earlier version in it."""
    import tomli_w

    path = rules_file(config)
    with alone(path):
        rules, problems = read_rules(config)
        tree = read_toml(path).tree or {}
        kept = {"rules": tree["rules"]} if old and "rules" in tree else {}
        if any(problem.key != "rules" for problem in problems):
            path.replace(path.with_name(path.name + ".broken"))
        folders: dict[str, list[str]] = {}
        for rule in dict.fromkeys(change(rules)):
            folders.setdefault(rule.folder, []).append(rule.text)
        write_text(path, tomli_w.dumps(kept | {"folders": folders}))


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def rules_file(config: Path) -> Path:
    """The path of the file."""
    return config / "permissions.toml"
