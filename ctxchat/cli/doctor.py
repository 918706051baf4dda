"""`ctxchat doctor`: does everything work here, and what to do about what does not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import click
import msgspec

from ctxchat.bootstrap.flags import settings_from
from ctxchat.bootstrap.program import Program
from ctxchat.bootstrap.start import workspace_of
from ctxchat.cli.common import common_options, emit, flags, run_async
from ctxchat.config import paths
from ctxchat.config.themes import load_themes
from ctxchat.core.errors import CtxchatError
from ctxchat.core.plain import clean


class Check(msgspec.Struct, frozen=True):
    """One thing looked at. `remedy` is what to do where it is not ok, or a hint where it is."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@click.command("doctor")
@common_options
def command() -> None:
    """Check settings, themes, store, tokenizer, model and sandbox; exit code 1 when something does not work."""
    checks = run_async(_checks())
    ok = all(check.ok for check in checks)
    if flags().json:
        emit({"ok": ok, "checks": checks})
    else:
        for check in checks:
            click.echo(clean(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}"))
            if check.remedy:
                click.echo(clean(f"      {check.remedy}"))
    click.get_current_context().exit(0 if ok else 1)


async def _checks() -> list[Check]:
    checks = [*_settings(), _themes(), _tokenizer()]
    try:
        async with Program.started(flags()) as program:
            checks.append(await _store(program))
            checks.append(await _sandbox(program))
            checks.append(await _model(program))
    except CtxchatError as problem:
        checks.append(Check("store", False, problem.text, problem.hint))
    checks.append(
        Check("terminal", True, "a terminal" if sys.stdout.isatty() else "no terminal here: use `ctxchat run`")
    )
    return checks


def _settings() -> Iterator[Check]:
    loaded = settings_from(flags(), workspace_of(""))
    if not loaded.problems:
        yield Check("settings", True, f"{paths.user_file(paths.config_dir())}")
    for problem in loaded.problems:
        yield Check("settings", False, problem.text, "Mend the file; `ctxchat config check` lists all problems.")


def _themes() -> Check:
    found = load_themes(paths.config_dir())
    if found.problems:
        return Check("themes", False, "; ".join(p.text for p in found.problems), "Mend or remove the file.")
    return Check("themes", True, f"{len(found.themes)} themes")


def _tokenizer() -> Check:
    from ctxchat.models.tokenizers import counter

    text = "The quick brown fox jumps over the lazy dog."
    tokens = counter("openai/gpt-4o")(text)
    if tokens == 10:
        return Check("tokenizer", True, "tiktoken, offline")
    return Check(
        "tokenizer", False, f"counts {tokens} where 10 are right", "Install ctxchat again; figures are estimates."
    )


async def _store(program: Program) -> Check:
    problems = await program.database.run(program.database.check)
    if problems:
        return Check("store", False, "; ".join(problems), f"Backups lie in {program.database.folder / 'backups'}.")
    rows = await program.sessions()
    search = "full-text search" if program.database.fts else "search without an index (this SQLite has no FTS5)"
    return Check("store", True, f"{program.database.path}, {len(rows)} sessions, {search}")


async def _sandbox(program: Program) -> Check:
    kind = (await asyncio.to_thread(lambda: program.sandbox)).kind
    if kind:
        return Check("sandbox", True, kind)
    return Check("sandbox", True, "none: shell commands run as you", "On Linux install bubblewrap to shut them in.")


async def _model(program: Program) -> Check:
    try:
        model = program.model()
        window = await model.window()
    except CtxchatError as problem:
        return Check("model", False, problem.text, problem.hint)
    assumed = "Set `window` for this model, or --window." if window.source == "assumed" else ""
    return Check("model", True, f"{model.name}, window {window.tokens:,} ({window.source})", assumed)
