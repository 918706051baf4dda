"""What a tool wants to do, and what a person said about it: demands, verdicts and rules. Pure; nothing is resolved here."""

from __future__ import annotations

from typing import Literal

import msgspec

Access = Literal["none", "read", "write", "run", "network"]
"""`none`: touches nothing outside the conversation (a to-do list, recall, a question)."""

Verdict = Literal["once", "session", "always", "deny"]

Mode = Literal["ask", "read-only", "auto-edit", "all"]


class Demand(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one call would do, for a judgement and for the person who is asked.

    `target` is the resolved path, the command line or the URL. `inside` is True when a path lies in the workspace.
    `summary` is one line, `preview` a diff or the whole command. `pattern` is the rule that `session` and `always` would store.
    """

    access: Access
    target: str = ""
    inside: bool = True
    summary: str = ""
    preview: str = ""
    pattern: str = ""


class Rule(msgspec.Struct, frozen=True):
    """A standing permission: calls of `tool` whose target matches `pattern` (shell-style wildcards) are allowed."""

    tool: str
    pattern: str

    @property
    def text(self) -> str:
        """As shown and stored: `shell: git *`."""
        return f"{self.tool}: {self.pattern}"


def parse_rule(text: str) -> Rule | None:
    """A rule as written in settings (`shell: git *`), None when it is none."""
    tool, colon, pattern = text.partition(":")
    return Rule(tool.strip(), pattern.strip()) if colon and tool.strip() and pattern.strip() else None
