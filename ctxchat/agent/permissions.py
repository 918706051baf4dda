"""Whether a call may run: pure judgement over a demand, the mode and the rules. Asks nobody; `gate` does that."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from ctxchat.core.permissions import Demand, Mode, Rule

_SHELL_SYNTAX = re.compile(r"[;&|<>`\n\r(){}\\$]")
"""What could put a second command, a file or a substitution behind the first: a rule with a wildcard never reaches across it."""


class Judgement(msgspec.Struct, frozen=True):
    """`allow`, `ask` or `deny`, and what decided: a rule, the mode, or the kind of access. `reason` is for the model."""

    verdict: Literal["allow", "ask", "deny"]
    rule: str
    reason: str = ""


def judge(tool: str, demand: Demand, mode: Mode, rules: Sequence[Rule]) -> Judgement:
    """Reading inside the workspace is free; the rest is up to the mode, then to the rules, then to the person."""
    if demand.access == "none" or (demand.access == "read" and demand.inside):
        return Judgement("allow", "free")
    if mode == "read-only":
        reason = f"The session is read-only: {tool} was not run. Tell the user what you would have done."
        return Judgement("deny", "mode read-only", reason)
    if mode == "all":
        return Judgement("allow", "mode all")
    if mode == "auto-edit" and demand.access == "write" and demand.inside and not _guarded(demand.target):
        return Judgement("allow", "mode auto-edit")
    if demand.asks:  # a rule for the command is none for what it wants besides
        return Judgement("ask", "")
    for rule in rules:
        if matches(rule, tool, demand):
            return Judgement("allow", rule.text)
    return Judgement("ask", "")


_BY_STRICTNESS: tuple[Mode, ...] = ("read-only", "ask", "auto-edit", "all")


def stricter(one: Mode, other: Mode) -> Mode:
    """The mode that lets less through."""
    return one if _BY_STRICTNESS.index(one) <= _BY_STRICTNESS.index(other) else other


def _guarded(path: str) -> bool:
    """True for what decides about permissions or runs by itself: a project's own settings, git's configuration and hooks."""
    return not {".ctxchat", ".git"}.isdisjoint(path.replace("\\", "/").split("/"))


def matches(rule: Rule, tool: str, demand: Demand) -> bool:
    """True when the rule covers this call. Targets are compared as resolved; case counts.

    A rule for this very target, written as it is or with its wildcards quoted, always does.
    """
    if rule.tool != tool:
        return False
    if rule.pattern in {demand.target, glob.escape(demand.target)}:
        return True
    if demand.access == "run" and _SHELL_SYNTAX.search(demand.target):
        return False
    if rule.pattern in {*demand.patterns, f"{demand.target} *"}:
        return True
    return fnmatchcase(demand.target, rule.pattern)
