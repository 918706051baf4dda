"""`ctxchat trust`: what a folder's own settings, skills, commands, hooks and servers would do, and trusting them as they are."""

from __future__ import annotations

from pathlib import Path

import click

from ctxchat.bootstrap.flags import settings_from
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.cli.common import common_options, emit, flags, narrate, table
from ctxchat.config import paths
from ctxchat.config.effective import Loaded
from ctxchat.config.trust import distrust, trust, trusted_folders
from ctxchat.core.errors import StorageError, UsageError
from ctxchat.core.sanitize import clean


@click.command("trust")
@click.argument("folder", required=False, default="")
@click.option("--yes", is_flag=True, help="Trust it, as it is now.")
@click.option("--list", "all_", is_flag=True, help="All folders that were trusted.")
@click.option("--remove", is_flag=True, help="Trust it no longer.")
@common_options
def command(folder: str, yes: bool, all_: bool, remove: bool) -> None:
    """Show what FOLDER (this one where left out) holds that needs trust: settings, skills, commands, hooks, agents, servers.

    Nothing of it counts before it is trusted, and nothing any more once it has changed.
    """
    if yes + all_ + remove > 1:
        raise UsageError("--yes, --list and --remove do not go together.")
    if all_:
        _list()
    elif remove:
        _remove(folder)
    else:
        _print_parts(workspace_of(folder), yes)


def _print_parts(workspace: Path, yes: bool) -> None:
    loaded = settings_from(flags(), workspace)
    done = yes and bool(loaded.project.lines) and not loaded.trusted
    if done:
        try:
            trust(paths.config_dir(), workspace, loaded.project)
        except OSError as problem:
            raise _unwritten(problem) from problem
    state = _state(loaded, done)
    if flags().json:
        left_out = [problem.text for problem in loaded.left_out]
        emit(
            {
                "folder": str(workspace),
                "state": state,
                "holds": loaded.project.lines,
                "left_out": left_out,
                "without_effect": loaded.without_effect,
            }
        )
        return
    for line in loaded.project.lines:
        click.echo(clean(line))
    for problem in loaded.left_out:
        narrate(f"left out: {problem.text}")
    for sentence in loaded.without_effect:
        narrate(f"without effect here: {sentence}")
    narrate(f"{workspace}: {_WORDS[state]}")


_WORDS = {
    "nothing": "holds nothing that needs trust.",
    "trusted": "trusted, as it is.",
    "changed": "changed since it was trusted; nothing of it counts. `ctxchat trust --yes` trusts it as it is now.",
    "not trusted": "not trusted; nothing of it counts. `ctxchat trust --yes` trusts it as it is now.",
}


def _state(loaded: Loaded, done: bool) -> str:
    if not loaded.project.lines:
        return "nothing"
    if done or loaded.trusted:
        return "trusted"
    return "changed" if loaded.trust else "not trusted"


def _list() -> None:
    folders = trusted_folders(paths.config_dir())
    if flags().json:
        emit([{"folder": each.folder, "holds": each.lines} for each in folders])
    else:
        table(
            ("folder", "things it holds"),
            [(f.folder, len(f.lines)) for f in folders],
            "No folder is trusted.",
            right=(1,),
        )


def _remove(folder: str) -> None:
    where = paths.expanded(folder).absolute() if folder else workspace_of("")
    try:
        there = distrust(paths.config_dir(), where)
    except OSError as problem:
        raise _unwritten(problem) from problem
    if not there:
        raise UsageError(f"{where} is not trusted.", "`ctxchat trust --list` shows the folders that are.")
    if flags().json:
        emit({"folder": str(where), "state": "not trusted"})
    else:
        narrate(f"{where}: no longer trusted.")


def _unwritten(problem: OSError) -> StorageError:
    return StorageError(
        f"It could not be stored that this folder is trusted, in {paths.config_dir()}: {problem.strerror or problem}.",
        "Nothing was changed.",
    )
