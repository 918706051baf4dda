"""`ctxchat doctor`: does everything work here, and what to do about what does not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import click
import msgspec

from ctxchat.bootstrap.extensions import broken_plugins
from ctxchat.bootstrap.flags import settings_from
from ctxchat.bootstrap.model_choice import Overrides, answers_after
from ctxchat.bootstrap.program import SERVERS_TIMEOUT_S, Program
from ctxchat.bootstrap.workspace import workspace_of
from ctxchat.cli.common import common_options, emit, flags, run_async
from ctxchat.config import paths
from ctxchat.config.themes import load_themes
from ctxchat.core.errors import CtxchatError, UsageError
from ctxchat.core.quantities import count
from ctxchat.core.sanitize import clean
from ctxchat.models.offline import OFFLINE_NAME
from ctxchat.own_processes import find_program
from ctxchat.storage import backups, inspection, repair
from ctxchat.storage.database import INDEX_MENDED
from ctxchat.storage.inspection import Progress
from ctxchat.tools.mcp.server import ServerRow

MAX_FAULTS = 20
"""Faults of the store that are told one by one."""


class Check(msgspec.Struct, frozen=True):
    """The result of one check. `remedy` is what to do if it is not ok, or a hint if it is."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@click.command("doctor")
@click.option("--repair", "mending", is_flag=True, help="Repair the store; the damaged file is kept under backups/.")
@click.option("--backups", "listing", is_flag=True, help="List the copies of the store.")
@click.option("--restore-backup", "wanted", metavar="NAME", help="Put a copy in place; the present file is kept.")
@common_options
def command(mending: bool, listing: bool, wanted: str | None) -> None:
    """Check settings, themes, store, tokenizer, sandbox and models; exit code 1 when something does not work.

    Each model in use is asked for one word, which costs some twenty tokens. Every session is read, and each
    file it names; a search is tried.
    """
    if mending + listing + (wanted is not None) > 1:
        raise UsageError("--repair, --backups and --restore-backup do not go together.", "Give one of them.")
    if listing:
        _list_backups()
        return
    first = [_repaired()] if mending else [] if wanted is None else [_restored(wanted)]
    checks = [*first, *run_async(_checks())]
    ok = all(check.ok for check in checks)
    if flags().json:
        emit({"ok": ok, "checks": checks})
    else:
        for check in checks:
            click.echo(clean(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}"))
            if check.remedy:
                click.echo(clean(f"      {check.remedy}"))
    click.get_current_context().exit(0 if ok else 1)


def _list_backups() -> None:
    rows = backups.list_backups(paths.data_dir())
    if flags().json:
        emit(rows)
        return
    for row in rows:
        click.echo(clean(f"{row.name}  {row.kind:9}  {row.at}  {row.bytes / 1e6:.1f} MB"))
    if not rows:
        click.echo("There are no backups yet.")


def _restored(name: str) -> Check:
    kept, missing = backups.restore(paths.data_dir(), name)
    gone = f"; {count(len(missing), 'session')} only in that: {', '.join(missing[:5])}" if missing else ""
    return Check("restored", True, f"{name} is in place; what was there is kept as {kept}{gone}")


def _repaired() -> Check:
    done = repair.repair(paths.data_dir(), _progress("repairing"))
    if not done.before.faults:
        return Check("repair", True, "nothing had to be repaired")
    still = [fault for fault in done.after.faults if not fault.known]
    kept = f"; the damaged file is kept as {done.kept}" if done.kept else ""
    mended = len(done.before.faults) - len(still)
    return Check("repair", not still, f"{mended} of {count(len(done.before.faults), 'fault')} repaired{kept}")


def _progress(what: str) -> Progress:
    """A line on a terminal that is written over."""

    def told(done: int, of: int) -> None:
        if sys.stderr.isatty() and of > 20:
            sys.stderr.write(f"\r{what}: {done:,} of {of:,} sessions{'' if done < of else chr(10)}")
            sys.stderr.flush()

    return told


async def _checks() -> list[Check]:
    checks = [*_settings(), *_plugins(), _themes(), _tokenizer()]
    try:
        async with Program.started(flags()) as program:
            checks += await _store(program)
            checks.append(await _sandbox(program))
            checks += await _models(program)
            checks += await _servers(program)
    except CtxchatError as problem:
        checks.append(Check("store", False, problem.text, problem.hint))
    checks.append(
        Check("terminal", True, "a terminal" if sys.stdout.isatty() else "no terminal here: use `ctxchat run`")
    )
    return checks


async def _servers(program: Program) -> list[Check]:
    """Each MCP server of the settings, started for this."""
    rows = await program.mcp_servers(wait=True)
    weights = program.servers.weights()
    return [
        Check(
            f"mcp {row.name}",
            row.state in {"ready", "off"},
            _server_state(row, sum(weights.get(tool, 0) for tool in row.tools)),
            "" if row.state in {"ready", "off"} else f"See [mcp.{row.name}] in the settings: {row.where}",
        )
        for row in rows
    ]


def _server_state(row: ServerRow, tokens: int) -> str:
    match row.state:
        case "ready":
            left_out = f", left out: {', '.join(row.left_out)}" if row.left_out else ""
            return f"{count(len(row.tools), 'tool')}, ~{tokens:,} tokens{left_out}"
        case "starting":
            return f"it did not answer within {SERVERS_TIMEOUT_S:.0f} s"
        case _:
            return row.trouble or row.state


def _settings() -> Iterator[Check]:
    loaded = settings_from(flags(), workspace_of(""))
    if not loaded.problems:
        yield Check("settings", True, f"{paths.user_file(paths.config_dir())}")
    for problem in loaded.problems:
        yield Check("settings", False, problem.text, "Correct the file; `ctxchat config check` lists all problems.")


def _plugins() -> Iterator[Check]:
    for trouble in broken_plugins(workspace_of("")):
        yield Check("plug-in", False, trouble, "Mend or uninstall its package; everything else works without it.")


def _themes() -> Check:
    found = load_themes(paths.config_dir())
    if found.problems:
        return Check("themes", False, "; ".join(p.text for p in found.problems), "Correct or remove the file.")
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


async def _store(program: Program) -> list[Check]:
    database = program.database
    found = await database.run(inspection.inspect, database, _progress("reading"))
    looked = (
        f"{count(found.sessions, 'session')}, {found.entries:,} entries, {found.messages:,} messages, "
        f"{count(found.files, 'file')}, {found.bytes / 1e6:.1f} MB"
    )
    checks: list[Check] = []
    if database.only_read:
        checks.append(
            Check("store", False, f"{database.only_read} It can be read: {looked}.", "Nothing can be kept until then.")
        )
    if low_disk_warning := database.low_disk_warning():
        checks.append(
            Check(
                "store", False, low_disk_warning, "Free some space, or let go of a session: `ctxchat sessions delete`."
            )
        )
    known = [fault.what for fault in found.faults if fault.known]
    open_ = [fault for fault in found.faults if not fault.known]
    search = "full-text search" if database.fts else "search without an index"
    if open_:
        copies = backups.list_backups(database.folder)
        copy = f" `ctxchat doctor --restore-backup {copies[0].name}` puts the newest copy back." if copies else ""
        for number, fault in enumerate(open_ if flags().json else open_[:MAX_FAULTS]):
            mended = fault.what == INDEX_MENDED
            remedy = (
                ""
                if mended
                else f"`ctxchat doctor --repair` {'mends it' if fault.mendable else 'keeps what is left'}.{copy}"
            )
            checks.append(Check("store", mended, fault.what, remedy if not number or mended else ""))
        if (more := len(open_) - MAX_FAULTS) > 0 and not flags().json:
            checks.append(Check("store", False, f"and {count(more, 'fault')} more", "`--json` lists all."))
        checks.append(Check("store", False, f"looked at {looked}"))
    elif not database.only_read:
        checks.append(Check("store", True, f"{database.path}, {looked}, {search}", " ".join(known)))
    return checks


async def _sandbox(program: Program) -> Check:
    sandbox = await asyncio.to_thread(lambda: program.sandbox)
    if sandbox.kind:
        network = "with the network (permissions.network)" if sandbox.network else "no network"
        return Check("sandbox", True, f"{sandbox.kind}: shell commands write in the folder only, {network}")
    if not program.settings.permissions.sandbox:
        return Check("sandbox", True, "off by permissions.sandbox: shell commands run as you")
    remedy = "Install bubblewrap to shut them in (Debian, Ubuntu, Fedora, Arch: the package bubblewrap)."
    if sys.platform == "linux" and find_program("bwrap"):
        remedy = "bubblewrap is there, but the system forbids user namespaces (a container, AppArmor)."
    return Check("sandbox", True, "none: shell commands run as you", remedy if sys.platform == "linux" else "")


async def _models(program: Program) -> list[Check]:
    """The model to chat with, who answers when it fails, and who writes summaries: each is asked for a word."""
    settings = program.settings
    chosen, writer = settings.model or OFFLINE_NAME, settings.context.summary_model
    written = Overrides(writer.api_base, writer.api_key_env, writer.window)
    roles = (
        ("model", chosen, None),
        ("fallback model", settings.of_model(chosen).fallback, None),
        ("summary model", writer.name, written),
    )
    return list(await asyncio.gather(*(_model(program, role, name, by) for role, name, by in roles if name)))


async def _model(program: Program, role: str, name: str, overrides: Overrides | None) -> Check:
    try:
        model = program.model(name, overrides)
        seconds = await answers_after(model)
        window = await model.window()
    except CtxchatError as problem:
        return Check(role, False, f"{name}: {problem.text}", problem.hint)
    assumed = "Set `window` for this model, or --window." if window.source == "assumed" else ""
    detail = f"{model.name} answered after {seconds:.1f} s, window {window.tokens:,} ({window.source})"
    return Check(role, True, detail, assumed)
