"""`ctxchat audit`: what the compactions of a session kept, what they lost, and what of it the work after them needed."""

from __future__ import annotations

import asyncio

import click

from ctxchat.bootstrap.program import Program
from ctxchat.bootstrap.shared import masked_record
from ctxchat.cli import completing
from ctxchat.cli.common import common_options, emit, flags, run_async, tell
from ctxchat.core.audit import CompactionAudit, NeededName, audits
from ctxchat.core.facts import Memory, line_of
from ctxchat.core.quantities import count, short
from ctxchat.core.sanitize import clean
from ctxchat.core.secrets import masked
from ctxchat.presentation.compactions import REASONS
from ctxchat.presentation.text import one_line
from ctxchat.storage import loading

MAX_LINES = 8
"""Lost facts and missing names that are shown of one compaction; `--json` has all."""


@click.command("audit")
@click.argument("session", required=False, default="", shell_complete=completing.sessions)
@common_options
def command(session: str) -> None:
    """What each compaction of a session kept and lost, and what the next twenty calls needed of it.

    Of sessions brought in from other agents as well: `ctxchat sessions import` has them. Asks no model.
    """

    async def audited() -> tuple[str, tuple[CompactionAudit, ...]]:
        async with Program.started(flags()) as program:
            found = await program.find(session or flags().session)
            records, problems = await program.database.run(loading.read_records, program.database, found)
            tell(problems)
            memory = Memory(masked_record(program.masking).group)
            return found, await asyncio.to_thread(audits, records, memory)

    found, all_audits = run_async(audited())
    if flags().json:
        emit([_as_json(found, audit) for audit in all_audits])
        return
    if not all_audits:
        click.echo("No compaction in this session.")
        return
    for audit in all_audits:
        click.echo("\n".join(_lines(audit)))
    needed = [name for audit in all_audits for name in audit.needed]
    facts = [audit.facts for audit in all_audits]
    click.echo(
        f"In all: {sum(f.kept for f in facts):,} of {count(sum(f.found for f in facts), 'fact')} kept, "
        f"{sum(name.in_view for name in needed):,} of {count(len(needed), 'needed name')} in view."
    )


def _lines(audit: CompactionAudit) -> list[str]:
    record, facts = audit.change.record, audit.facts
    why = next((words for reason, words in REASONS.items() if record and reason == record.reason), "")
    how = ", ".join(filter(None, [why, record.strategy if record else ""]))
    size = f"   {short(record.before.used)} → {short(record.after.used)}" if record and record.before.used else ""
    lines = [f"{audit.change.id}   {audit.change.at[:16].replace('T', ' ')}   {how}{size}".rstrip()]
    near = f" ({facts.near:,} of them one read away)" if facts.near else ""
    lines.append(f"  kept    {facts.kept:,} of {count(facts.found, 'fact')}{near}")
    lines += _listed("lost", [line_of(fact) for fact in audit.lost])
    missing = [_named(name) for name in audit.needed if not name.in_view]
    in_view = len(audit.needed) - len(missing)
    lines.append(
        f"  needed  {in_view:,} of {count(len(audit.needed), 'name')} in view, in the next {count(audit.calls, 'call')}"
    )
    return [clean(line) for line in (*lines, *_listed("missed", missing), "")]


def _listed(what: str, found: list[str]) -> list[str]:
    shown = [one_line(masked(text), 160) for text in found[:MAX_LINES]]
    rest = [f"… and {len(found) - MAX_LINES:,} more (--json)"] if len(found) > MAX_LINES else []
    return [f"  {what if place == 0 else '':<7} {line}" for place, line in enumerate([*shown, *rest])]


def _named(name: NeededName) -> str:
    return f"{name.name} ({name.message}{': the file was read again' if name.read_again else ''})"


def _as_json(session: str, audit: CompactionAudit) -> dict[str, object]:
    record, facts = audit.change.record, audit.facts
    return {
        "id": audit.change.id,
        "session": session,
        "at": audit.change.at,
        "reason": record.reason if record else "",
        "strategy": record.strategy if record else "",
        "before": record.before.used if record else 0,
        "after": record.after.used if record else 0,
        "facts": {"found": facts.found, "kept": facts.kept, "near": facts.near},
        "lost": [{"kind": f.kind, "text": masked(line_of(f)), "message": f"m{f.seq}"} for f in audit.lost],
        "calls": audit.calls,
        "needed": [
            {
                "kind": name.kind,
                "name": masked(name.name),
                "message": name.message,
                "in_view": name.in_view,
                "read_again": name.read_again,
            }
            for name in audit.needed
        ],
    }
