"""`ctxchat config`: where settings come from, what they are, whether a file is right, and setting one."""

from __future__ import annotations

import tomllib

import click

from ctxchat.bootstrap.extensions import broken_plugins
from ctxchat.bootstrap.flags import settings_from
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.cli import completing
from ctxchat.cli.common import (
    common_options,
    emit,
    end_with_problems,
    flags,
    narrate,
    own_settings_file,
    readable,
    table,
    tell,
)
from ctxchat.config import effective, explain, paths, write
from ctxchat.config.reference import json_schema
from ctxchat.core.errors import UsageError


@click.group("config")
@common_options
def command() -> None:
    """Where settings come from, what they are, and setting them."""


@command.command("path")
@common_options
def path() -> None:
    """The settings files, in the order in which the later wins."""
    found = {
        "user": own_settings_file(),
        "project": paths.project_file(workspace_of("")),
        "reference": paths.shipped() / "config.toml",
    }
    if flags().json:
        emit({name: str(file) for name, file in found.items()} | {"data": str(paths.data_dir())})
        return
    table(("", "file", ""), [(n, f, "" if f.exists() else "(not there)") for n, f in found.items()])


@command.command("show")
@click.argument("key", required=False, default="", shell_complete=completing.setting_keys)
@common_options
def show_options(key: str) -> None:
    """Every option in force with its default and where it was set, or only KEY (and what is under it)."""
    loaded = settings_from(flags(), workspace_of(""))
    rows = [r for r in explain.rows(loaded) if not key or r.key == key or r.key.startswith(f"{key}.")]
    if not rows:
        raise UsageError(f"{key}: is no setting.", "`ctxchat config show` lists them all.")
    tell(loaded.notices)
    if flags().json:
        emit({r.key: {"value": r.value, "default": r.default, "origin": r.origin.text} for r in rows})
        return
    table(("option", "value", "default", "from"), [(r.key, r.value, r.default, r.origin.text) for r in rows])


@command.command("check")
@click.argument("file", required=False, default="")
@common_options
def check(file: str) -> None:
    """All problems of FILE (or of everything in force) and of installed plug-ins at once; exit code 2 when there are any."""
    loaded = (
        effective.load_settings(None, config=readable(file), environ={})
        if file
        else settings_from(flags(), workspace_of(""))
    )
    texts = [problem.text for problem in loaded.problems]
    end_with_problems([*texts, *broken_plugins(workspace_of(""))])


@command.command("set", context_settings={"ignore_unknown_options": True})  # a value may begin with a minus
@click.argument("key", shell_complete=completing.setting_keys)
@click.argument("value")
@common_options
def set_(key: str, value: str) -> None:
    """Write one option into your settings file; comments and order stay. VALUE as in TOML, or plain words."""
    file = own_settings_file()
    try:
        parsed: object = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        parsed = value
    if key == "theme" and (trouble := effective.unknown_theme(str(parsed), paths.config_dir())):
        raise UsageError(trouble.text)
    write.set_value(file, key, parsed)
    tell(
        p.text for p in effective.load_settings(None, config=file, environ={}).problems if p.key == key
    )  # a key that cannot work
    if flags().json:
        emit({"file": str(file), "key": key, "value": parsed})
    else:
        narrate(f"{file}: {key} = {value}")


@command.command("schema")
@common_options
def schema() -> None:
    """JSON Schema of the settings file, for editors."""
    emit(json_schema())
