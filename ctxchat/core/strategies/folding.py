"""Folding: which groups one summary shall stand for, and the summary that code can make of them.

Shared by the strategies that fold.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.budget import Budget
from ctxchat.core.clip import head
from ctxchat.core.facts import collect
from ctxchat.core.ledger import Entry
from ctxchat.core.recap import recap
from ctxchat.core.record import Digest
from ctxchat.core.strategies.base import Step
from ctxchat.core.strategies.planning import Basis, is_summary
from ctxchat.core.summaries import earlier, fold_edit, merged_digest, overhead_tokens


def choose(basis: Basis, budget: Budget) -> list[Entry]:
    """What a fold takes: everything old up to a turn boundary, or up to the cut itself where that would free too little."""
    boundary = basis.turn_start()
    raw = basis.view.raw
    if boundary < basis.cut and raw > budget.target:
        weight = sum(basis.weight(e) for e in basis.old(boundary))
        if raw - weight + allowance(basis, budget, weight) > budget.target:
            boundary = basis.cut
    return basis.old(boundary)


def allowance(basis: Basis, budget: Budget, weight: int) -> int:
    """The most that a summary with its evidence will take, in raw tokens, where `weight` tokens are folded."""
    summary, _, evidence = caps(basis, budget, weight)
    return summary + evidence + overhead_tokens(basis.options.meter.text)


def caps(basis: Basis, budget: Budget, weight: int) -> tuple[int, int, int]:
    """Tokens for a summary, a recap and the evidence where `weight` tokens are folded.

    Small windows and small folds get less, though never less evidence than the summary in force has room for.
    """
    options = basis.options
    known = sum(basis.weight(e) for e in earlier(basis.ledger))
    return (
        min(options.summary_tokens, budget.limit // 8, weight // 3),
        min(options.recap_tokens, budget.limit // 10, weight // 4),
        min(options.evidence_tokens, budget.limit // 8, max(weight // 3, known)),
    )


def covers(basis: Basis, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The groups of these entries and of the summary in force, in the order of the record."""
    names = {name for e in (*entries, *earlier(basis.ledger)) for name in e.covers}
    return tuple(g.id for g in basis.ledger.groups if g.id in names)


def weight_with_summary(basis: Basis, entries: Sequence[Entry]) -> int:
    """What a fold of these entries takes out of the view: the summary in force goes too."""
    return sum(basis.weight(e) for e in (*(e for e in entries if not is_summary(e)), *earlier(basis.ledger)))


def summary_step(name: str, basis: Basis, entries: Sequence[Entry], budget: Budget) -> Step | None:
    """A fold that somebody has to write the summary for."""
    if not entries:
        return None
    weight = weight_with_summary(basis, entries)
    summary, _, evidence = caps(basis, budget, weight)
    freed = weight - allowance(basis, budget, weight)
    if freed <= 0:
        return None
    fold = covers(basis, entries)
    return Step(name, freed, len(entries), fold=fold, summary_tokens=summary, evidence_tokens=evidence)


def recap_step(name: str, basis: Basis, entries: Sequence[Entry], budget: Budget) -> Step | None:
    """A fold whose summary is a recap made by code, with the evidence, and with what an earlier summary said."""
    if not entries:
        return None
    options, ledger = basis.options, basis.ledger
    count = options.meter.text
    weight = weight_with_summary(basis, entries)
    fold = covers(basis, entries)
    _, recap_cap, evidence_cap = caps(basis, budget, weight)
    summary_cap = min(
        options.summary_tokens, budget.limit // 8
    )  # what was summarised once is not worn away pass by pass
    known = merged_digest(earlier(ledger))
    fresh = [ledger.group(covered) for e in entries for covered in e.covers]
    digest = Digest(
        summary=head(known.summary, summary_cap, count),
        recap=recap([ledger.group(g) for g in fold], recap_cap, count),
        evidence=collect(fresh, known.evidence, options.memory.facts_of),
    )
    edit = fold_edit(ledger, fold, digest, evidence_cap, count)
    assert edit.replacement is not None
    freed = weight - basis.weigh(edit.replacement)
    return Step(name, freed, len(entries), edits=(edit,), evidence_tokens=evidence_cap) if freed > 0 else None
