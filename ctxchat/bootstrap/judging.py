"""What would be asked, allowed or denied in a folder, without a session: the judgement of one call on the settings and rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ctxchat.agent.permissions import Judgement, deciding, judge, offers
from ctxchat.bootstrap.arranging import rules_in_force
from ctxchat.config.schema import Settings
from ctxchat.core.errors import UsageError
from ctxchat.core.guarded import guarded
from ctxchat.core.permissions import Demand
from ctxchat.core.ports import ToolContext
from ctxchat.tools.commands import parts_of
from ctxchat.tools.paths import locate, patterns

_READ = ("read_file", "list_files", "glob", "grep")
_WRITE = ("write_file", "edit_file")
TOOLS = ("shell", *_WRITE, *_READ, "web_fetch")
"""What can be asked about; a tool of a server (`files__read`) as well."""


class Judged(msgspec.Struct, frozen=True):
    """A judgement, what decided about each part of a command (its text, and the rule; empty where it has to be asked), and the
    rules that would be offered."""

    judgement: Judgement
    parts: tuple[tuple[str, str], ...]
    offered: tuple[str, ...]


def judged(settings: Settings, workspace: Path, tool: str, arguments: Sequence[str]) -> Judged:
    """Looks at the files that are named. Raises UsageError for a tool there is none of, ToolError for what it cannot use."""
    demand = _demand(tool, arguments, workspace)
    rules, _ = rules_in_force(settings)
    mode, folder = settings.permissions.mode, str(workspace)
    judgement = judge(tool, demand, mode, rules, folder)
    asked = judgement.verdict == "ask"
    return Judged(
        judgement,
        deciding(tool, demand, mode, rules, folder),
        offers(tool, demand, mode, rules, folder) if asked else (),
    )


def _demand(tool: str, arguments: Sequence[str], workspace: Path) -> Demand:
    about = " ".join(arguments).strip()
    if not about and "__" not in tool:
        raise UsageError("What it is about is missing.", "For example: `ctxchat permissions check shell 'make test'`.")
    if tool == "shell":
        return Demand("run", about, parts=parts_of(about, str(workspace)))
    if tool in _READ or tool in _WRITE:
        place = locate(about, ToolContext("", str(workspace)), spilled=False)
        access = "write" if tool in _WRITE else "read"
        place_of = guarded(place.shown) if tool in _WRITE else ""
        return Demand(access, str(place.path), place.inside, patterns=patterns(place), guarded=place_of)
    if tool == "web_fetch":
        from ctxchat.tools.web import FetchArguments, WebFetch

        return WebFetch().wants(FetchArguments(about), ToolContext("", str(workspace)))
    if "__" in tool:
        return Demand("network", tool, inside=False, patterns=(tool,))
    raise UsageError(f"{tool}: there is no such tool to judge.", f"There are {', '.join(TOOLS)}, and those of servers.")
