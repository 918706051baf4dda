"""What a tool wants to do, and what a person said about it: demands, verdicts and rules. Pure; nothing is resolved here."""

from __future__ import annotations

from typing import Literal

import msgspec

Access = Literal["none", "read", "write", "run", "network"]
"""`none`: touches nothing outside the conversation (a to-do list, recall, a question)."""

Verdict = Literal["once", "session", "always", "deny"]

Mode = Literal["ask", "read-only", "auto-edit", "all"]


class Allowance(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a command may do beyond its sandbox: reach the `network`, write in `folders` (absolute) too, or run `outside` of it.

    In a question it says what can be allowed, in an answer what was.
    """

    network: bool = False
    folders: tuple[str, ...] = ()
    outside: bool = False


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person said to a question: `reason` why not; `rule`, as written (`shell: uv run pytest **`), what `session` and
    `always` let through from now on, empty for the first that was offered."""

    verdict: Verdict
    reason: str = ""
    rule: str = ""
    allowance: Allowance = Allowance()


class Demand(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one call would do, for a judgement and for the person who is asked.

    `target` is the resolved path, the command line or the URL. `inside` is True when a path lies in the workspace.
    `summary` is one line, `preview` a diff or the whole command. `patterns` are the rules that can be offered for `session` and
    `always`, from this very call to the widest; `allowance` is what could be allowed besides.
    """

    access: Access
    target: str = ""
    inside: bool = True
    summary: str = ""
    preview: str = ""
    patterns: tuple[str, ...] = ()
    allowance: Allowance = Allowance()


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
