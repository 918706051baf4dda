"""`ctxchat permissions`: the rules in force, taking one out, and what would be said to a call here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click
import msgspec

from ctxchat.agent.turn.permissions import allowed_by, judge, offers
from ctxchat.bootstrap.flags import settings_from
from ctxchat.bootstrap.session_settings import rules_in_force
from ctxchat.bootstrap.workspace import sandbox_of, workspace_of
from ctxchat.cli.common import common_options, emit, flags, narrate, table, tell
from ctxchat.config import paths
from ctxchat.config.rules import read_rules, remove_old, remove_rule, stored_at
from ctxchat.config.schema import Settings
from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.permissions import AccessRequest, Mode, parse_rule
from ctxchat.core.ports import ToolContext
from ctxchat.core.sanitize import clean
from ctxchat.tools.command_line import parts_of
from ctxchat.tools.paths import locate, patterns

_READ = ("read_file", "list_files", "glob", "grep")
_WRITE = ("write_file", "edit_file")
TOOLS = ("shell", *_WRITE, *_READ, "web_fetch")
"""What can be asked about; a tool of a server (`files__read`) as well."""


@click.group("permissions", invoke_without_command=True)
@common_options
def command() -> None:
    """What is allowed without asking, and what is forbidden."""
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("list")
@common_options
def list_() -> None:
    """Every rule: those given with "always", each for its folder, and those of the settings in force here."""
    workspace = workspace_of("")
    loaded = settings_from(flags(), workspace)
    stored, problems = read_rules(paths.config_dir())
    lines = stored_at(paths.config_dir())
    rules = [(rule.text, rule.folder, "always", lines.get(rule, "")) for rule in stored]
    written = zip(loaded.settings.permissions.rules, loaded.rules, strict=True)
    rules += [
        (rule.text, str(workspace) if origin.layer == "project" else "", "settings", origin.text)
        for text, origin in written
        if (rule := parse_rule(text))
    ]
    tell([*loaded.notices, *(problem.text for problem in problems)])
    if flags().json:
        here = {"", str(workspace)}
        emit([{"rule": t, "folder": f or None, "source": s, "at": at, "here": f in here} for t, f, s, at in rules])
    else:
        shown = [(text, folder or "everywhere", source, at) for text, folder, source, at in rules]
        table(("rule", "holds in", "from", "written in"), shown, "There are no rules.")


@command.command("remove")
@click.argument("rule", required=False, default="")
@click.option("--folder", default="", metavar="DIR", help="The folder it holds in; this one where left out.")
@click.option("--old", is_flag=True, help="Take out the rules of an earlier version, which held everywhere.")
@common_options
def remove(rule: str, folder: str, old: bool) -> None:
    """Take out a RULE that was given with "always", written as `list` shows it."""
    if bool(rule) == old:
        raise UsageError("Give a rule, or --old.", "`ctxchat permissions list` shows the rules.")
    parsed = parse_rule(rule)
    if rule and parsed is None:
        raise UsageError(f"{rule}: is no rule.", "One looks like `shell: uv run pytest **`.")
    # A folder that is gone is named as it is stored.
    where = str(workspace_of("")) if not folder else folder.rstrip("/") or "/"
    try:
        there = (
            remove_rule(paths.config_dir(), msgspec.structs.replace(parsed, folder=where))
            if parsed
            else remove_old(paths.config_dir())
        )
    except OSError as problem:
        raise StorageError(
            f"The rules in {paths.config_dir()} could not be written: {problem.strerror or problem}.",
            "Nothing was changed.",
        ) from problem
    if not there:
        what = f"{rule}: there is no such rule for {where}." if rule else "There are no rules of an earlier version."
        raise UsageError(what, "`ctxchat permissions list` shows them; those of the settings are taken out there.")
    if flags().json:
        emit({"removed": parsed.text if parsed else None, "folder": where if parsed else None})
    else:
        narrate(f"Removed: {parsed.text} ({where})" if parsed else "The old rules are removed.")


@command.command("check", context_settings={"ignore_unknown_options": True})  # a command has options of its own
@click.argument("tool")
@click.argument("about", nargs=-1, type=click.UNPROCESSED)
@click.option("--permissions", "mode", type=click.Choice(get_args(Mode)), help="In this mode.")
@common_options
def check(tool: str, about: tuple[str, ...], mode: Mode | None) -> None:
    """What would be asked, allowed or denied here: `check shell 'make test'`, `check write_file src/a.py`."""
    workspace = workspace_of("")
    loaded = settings_from(msgspec.structs.replace(flags(), permissions=mode or flags().permissions), workspace)
    access_request = _access_request(tool, about, workspace, loaded.settings)
    decided_by = loaded.settings.permissions.mode, rules_in_force(loaded.settings)[0], str(workspace)
    said = judge(tool, access_request, *decided_by)
    parts = allowed_by(tool, access_request, *decided_by)
    offered = offers(tool, access_request, *decided_by) if said.verdict == "ask" else ()
    tell(loaded.notices)
    if flags().json:
        emit(
            {
                "tool": tool,
                "about": " ".join(about),
                "mode": loaded.settings.permissions.mode,
                "verdict": said.verdict,
                "rule": said.rule,
                "reason": said.reason,
                "network": said.allowance.network,
                "folders": said.allowance.folders,
                "parts": [{"part": text, "rule": by} for text, by in parts],
                "offered": offered,
            }
        )
        return
    click.echo(clean(f"{said.verdict}: {said.rule}" if said.rule else said.verdict))
    if said.reason:
        click.echo(clean(said.reason))
    if parts:
        without = "denied" if said.verdict == "deny" else "asks"
        table(("part", "allowed by"), [(text, by or without) for text, by in parts])
    for offer in offered:
        click.echo(clean(f"this rule would allow it:  {'  +  '.join(offer.splitlines())}"))


def _access_request(tool: str, arguments: Sequence[str], workspace: Path, settings: Settings) -> AccessRequest:
    about = " ".join(arguments).strip()
    if not about and "__" not in tool:
        raise UsageError(
            "Say what the tool would be used on.", "For example: `ctxchat permissions check shell 'make test'`."
        )
    if tool == "shell":
        shut_in = settings.permissions.ask == "changes" and bool(sandbox_of(settings, workspace).kind)
        return AccessRequest("run", about, parts=parts_of(about, str(workspace)), shut_in=shut_in)
    if tool in _READ or tool in _WRITE:
        place = locate(about, ToolContext("", str(workspace)), spilled=False)
        access = "write" if tool in _WRITE else "read"
        place_of = place.guarded if tool in _WRITE else ""
        return AccessRequest(access, str(place.path), place.inside, patterns=patterns(place), guarded=place_of)
    if tool == "web_fetch":
        from ctxchat.tools.web import FetchArguments, WebFetch

        return WebFetch().access_needed(FetchArguments(about), ToolContext("", str(workspace)))
    if "__" in tool:
        return AccessRequest("network", tool, inside=False, patterns=(tool,))
    raise UsageError(f"{tool}: there is no such tool to judge.", f"There are {', '.join(TOOLS)}, and those of servers.")
