"""Turns a strategy's plan into the change to the ledger that performs it. Pure: whoever executes it saves texts and writes the
journal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import dropwhile

import msgspec

from ctxchat.core.context_usage import BUDGET
from ctxchat.core.errors import LedgerError
from ctxchat.core.head import Head
from ctxchat.core.ledger import Change, Edit, Entry, Ledger
from ctxchat.core.notes import CONTEXT_NOTE, without_tool_told
from ctxchat.core.record import Digest
from ctxchat.core.strategies.base import Plan, Step
from ctxchat.core.strategies.planning import PlanOptions, fold_edit
from ctxchat.core.summaries import evidence_after


def apply_plan(
    ledger: Ledger,
    plan: Plan,
    change_id: str,
    options: PlanOptions,
    *,
    summary: str = "",
    at: str = "",
    head: Head | None = None,
) -> Change:
    """The change that performs a plan. `summary` is the text for its fold step, where it has one.

    A fold changes the request from its beginning, so the cached prefix is lost anyway. It therefore also sets `head`, the newest
    head, and drops the notes on what had changed since the last one. Where messages are only shortened, the notes on the window's
    fullness that follow the first of them are dropped: they are out of date, and would be sent anew anyway.

    Where two steps touch the same group the later step wins, since it was planned on the result of the earlier. Raises
    LedgerError where the plan does not fit the ledger, or a fold step got no summary.
    """
    edits = _latest([edit for step in plan.steps for edit in _edits(ledger, step, options, change_id, summary)])
    covered = ledger.together(edit.covers for edit in edits)
    if head is None or not any(edit.kind == "digest" for edit in edits):
        behind = dropwhile(lambda entry: not any(name in covered for name in entry.covers), ledger.live())
        notes = _dropped(behind, CONTEXT_NOTE + BUDGET, covered)
        return Change(id=change_id, kind="compaction", at=at, edits=(*edits, *notes))
    change = Change(
        id=change_id, kind="compaction", at=at, edits=(*edits, *_dropped(ledger.live(), CONTEXT_NOTE, covered))
    )
    return msgspec.structs.replace(change, head=without_tool_told(head, ledger.apply(change)))


def _dropped(entries: Iterable[Entry], source: str, covered: Collection[str]) -> list[Edit]:
    """Edits that drop the notes whose source begins with `source`, except pinned ones and those that other edits cover."""
    return [
        Edit("drop", entry.covers)
        for entry in entries
        if entry.group
        and entry.group.source.startswith(source)
        and not entry.pinned
        and not any(name in covered for name in entry.covers)
    ]


def _edits(ledger: Ledger, step: Step, options: PlanOptions, change_id: str, summary: str) -> tuple[Edit, ...]:
    """The edits of one step. A step that needs a summary also gets the edit that folds its groups: made of the text `summary` and
    of the facts in those groups and in the summary they replace. Raises LedgerError where that text is empty."""
    signed = tuple(_signed(edit, change_id) for edit in step.edits)
    if not step.needs_summary:
        return signed
    if not summary.strip():
        raise LedgerError(f"the step {step.name} needs a summary")
    digest = Digest(summary=summary, evidence=evidence_after(ledger, step.fold, options.memory))
    over = max(0, options.counter.count_text(summary) - step.summary_tokens) if step.summary_tokens else 0
    room = max(step.evidence_tokens // 2, step.evidence_tokens - over)  # tokens over the limit are taken from the facts
    return (*signed, fold_edit(ledger, step.fold, digest, room, options, change_id, files_tokens=step.files_tokens))


def _latest(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits without groups that a later edit covers as well."""
    if len(edits) == 1:
        return tuple(edits)
    taken: set[str] = set()
    kept: list[Edit] = []
    for edit in reversed(edits):
        covers = tuple(name for name in edit.covers if name not in taken)
        taken.update(covers)
        if covers:
            kept.append(edit if covers == edit.covers else msgspec.structs.replace(edit, covers=covers))
    return tuple(reversed(kept))


def _signed(edit: Edit, change_id: str) -> Edit:
    """The edit with the change's id as the id and source of its summary."""
    group = edit.replacement
    if group is None or group.kind != "summary" or not change_id:
        return edit
    return msgspec.structs.replace(
        edit, replacement=msgspec.structs.replace(group, id=f"s{change_id}", source=change_id)
    )
