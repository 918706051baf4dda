"""Folding: which groups one summary shall stand for, and the summary that code can make of them.

Shared by the strategies that fold.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.budget import Budget
from ctxchat.core.clip import head
from ctxchat.core.ledger import Entry
from ctxchat.core.recap import MAX_ACTIVITY_TOKENS, recap
from ctxchat.core.record import Digest
from ctxchat.core.strategies.base import Step
from ctxchat.core.strategies.planning import Basis, fold_edit, is_summary
from ctxchat.core.summaries import evidence_after, merged_digest, overhead_tokens
from ctxchat.core.working_set import EACH

TARGET_TOLERANCE_SHARE = 0.05
"""Share of the limit by which a compaction may miss its target, to end where a turn does."""

MAX_TOLERANCE_SHARE = 0.2
"""Of the target, what it may miss at most."""

MAX_FILES_SHARE = 0.2
"""Of the target, what the files beside a summary take at most: they can be read again, what the record says cannot."""

MIN_PART_TOKENS = 1_200
"""Tokens that a summary and the evidence each get at least, as far as their caps go, however little the target leaves."""

MIN_SUMMARY_SHARE, MIN_EVIDENCE_SHARE = 1 / 8, 1 / 16
"""Of the target, what they get at least where that is more."""


def tolerance(limit: float, target: float) -> int:
    """Tokens by which a compaction may miss its target."""
    return int(min(limit * TARGET_TOLERANCE_SHARE, target * MAX_TOLERANCE_SHARE))


def choose(basis: Basis, budget: Budget, takes: int | None = None, old: Sequence[Entry] | None = None) -> list[Entry]:
    """What a fold takes of the `old` entries, all before the cut where none are named: the first, as few as it takes to come down
    to the target, whole turns where that is near; all where even that does not suffice. `takes` are the tokens of what stands
    for them, None for the most that a summary may take."""
    old = basis.old() if old is None else list(old)
    needed = basis.view.raw - budget.target
    if needed <= 0:
        return []
    weight = basis.summaries_weight
    for place, entry in enumerate(old, 1):
        weight += basis.weight(entry)
        if weight - (allowance(basis, budget, weight) if takes is None else takes) < needed:
            continue
        return _to_turn_end(basis, budget, old, place)
    return old


def _to_turn_end(basis: Basis, budget: Budget, old: list[Entry], place: int) -> list[Entry]:
    """The first entries, so many, and the rest of the last one's turn where that is not much more, nor much of the target."""
    end = next((i for i in range(place, len(old)) if turn_of(old[i]) != turn_of(old[i - 1])), len(old))
    more = sum(basis.weight(e) for e in old[place:end])
    return old[:end] if more <= tolerance(budget.limit, budget.target) else old[:place]


def turn_of(entry: Entry) -> int:
    """The turn of what an entry shows; 0 where it shows nothing."""
    return entry.group.turn if entry.group else 0


def allowance(basis: Basis, budget: Budget, weight: int) -> int:
    """The most that a summary with its evidence and the files beside it will take, in raw tokens, where `weight` tokens are
    folded."""
    summary, _, evidence = caps(basis, budget, weight)
    return summary + evidence + overhead_tokens(basis.options.counter.count_text) + files_at_most(basis, budget)


def files_room(basis: Basis, budget: Budget) -> int:
    """Tokens that there are for the files beside a summary."""
    most = int(budget.target * MAX_FILES_SHARE)
    return min(basis.options.files_tokens, most) if most > 0 else basis.options.files_tokens


def files_at_most(basis: Basis, budget: Budget) -> int:
    """Tokens that the files beside a summary will take at most."""
    return min(files_room(basis, budget), sum(min(EACH, file.tokens) + 40 for file in basis.options.files))


def caps(basis: Basis, budget: Budget, weight: int) -> tuple[int, int, int]:
    """Tokens for a summary, a recap and the evidence where `weight` tokens are folded.

    Small windows and small folds get less, though never less than the summary in force and its evidence have taken, and what
    comes to it now.
    """
    options = basis.options
    known, written = basis.summaries_weight, basis.written_tokens
    grown = written + max(written // 10, _growth(basis, weight))
    return (
        min(options.summary_max_tokens, budget.limit // 8, max(grown, min(weight // 3, 800 + weight // 10))),
        min(options.recap_tokens, budget.limit // 10, weight // 4),
        min(options.facts_max_tokens, budget.limit // 8, max(weight // 3, known)),
    )


def _growth(basis: Basis, weight: int) -> int:
    """Tokens that what was folded since adds to the summary in force; 0 where there is none."""
    new = max(0, weight - basis.summaries_weight)
    return min(new // 3, 400 + new // 10) if basis.written_tokens else 0


def caps_to_target(basis: Basis, budget: Budget, weight: int) -> tuple[int, int, int]:
    """The caps where `weight` tokens are folded: less where the target leaves less room, of the evidence first. The summary gets
    what the one in force takes and half of what is to come to it, or what is new would take the place of what was kept. A target
    that the least of both would miss says that all is to go: nothing is given up for it."""
    summary, recap, evidence = caps(basis, budget, weight)
    stays = basis.view.raw - weight + overhead_tokens(basis.options.counter.count_text) + files_at_most(basis, budget)
    room, target = budget.target - stays, budget.target
    if target < 2 * MIN_PART_TOKENS:
        return summary, recap, evidence
    kept = basis.written_tokens + _growth(basis, weight) // 2
    least = min(summary, max(MIN_PART_TOKENS, kept, int(target * MIN_SUMMARY_SHARE)))
    least_evidence = min(evidence, max(MIN_PART_TOKENS, int(target * MIN_EVIDENCE_SHARE)))
    summary = max(least, min(summary, room - least_evidence))
    return summary, recap, max(least_evidence, min(evidence, room - summary))


def covers(basis: Basis, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The groups of these entries and of the summary in force, in the order of the record."""
    return basis.ledger.together(e.covers for e in (*entries, *basis.summaries))


def weight_with_summary(basis: Basis, entries: Sequence[Entry]) -> int:
    """What a fold of these entries takes out of the view: the summary in force goes too."""
    return sum(basis.weight(e) for e in (*(e for e in entries if not is_summary(e)), *basis.summaries))


def summary_step(name: str, basis: Basis, entries: Sequence[Entry], budget: Budget) -> Step | None:
    """A fold that somebody has to write the summary for. What code keeps beside it is weighed as it is: the summary may take what
    the target leaves then."""
    if not entries:
        return None
    weight = weight_with_summary(basis, entries)
    most = caps(basis, budget, weight)[0]
    summary, _, evidence = caps_to_target(basis, budget, weight)
    if weight <= summary + evidence + overhead_tokens(basis.options.counter.count_text) + files_at_most(basis, budget):
        return None
    fold = covers(basis, entries)
    files = files_room(basis, budget)
    beside = _kept_by_code(basis, fold, evidence, files)
    summary = max(summary, min(most, budget.target - (basis.view.raw - weight) - beside))
    freed = weight - summary - beside
    return Step(
        name, freed, len(entries), fold=fold, summary_tokens=summary, evidence_tokens=evidence, files_tokens=files
    )


def _kept_by_code(basis: Basis, fold: Sequence[str], evidence_tokens: int, files_tokens: int) -> int:
    """Raw tokens of all that stands in the place of these groups but for the summary itself."""
    evidence = evidence_after(basis.ledger, fold, basis.options.memory)
    digest = Digest(summary="-", evidence=evidence)
    edit = fold_edit(basis.ledger, fold, digest, evidence_tokens, basis.options, files_tokens=files_tokens)
    assert edit.replacement is not None
    return basis.group_tokens(edit.replacement)


def summary_to_target(name: str, basis: Basis, budget: Budget) -> Step | None:
    """A fold of the oldest entries, as few as it takes to come down to the target with what will stand for them."""
    entries = choose(basis, budget)
    step = summary_step(name, basis, entries, budget)
    if step is None:
        return None
    fewer = choose(basis, budget, weight_with_summary(basis, entries) - step.tokens_freed)
    if len(fewer) < len(entries):
        again = summary_step(name, basis, fewer, budget)
        if again and basis.view.raw - again.tokens_freed <= budget.target:
            return again
    return step


def recap_step(name: str, basis: Basis, entries: Sequence[Entry], budget: Budget) -> Step | None:
    """A fold whose summary is a recap made by code, with the evidence, and with what an earlier summary said."""
    if not entries:
        return None
    options, ledger = basis.options, basis.ledger
    count = options.counter.count_text
    weight = weight_with_summary(basis, entries)
    fold = covers(basis, entries)
    _, recap_cap, evidence_cap = caps_to_target(basis, budget, weight)
    # what was summarised once is not worn away pass by compaction
    summary_cap = min(options.summary_max_tokens, budget.limit // 8)
    known = merged_digest(basis.summaries)
    digest = Digest(
        summary=head(known.summary, summary_cap, count),
        recap=recap([options.memory.shown(ledger.group(g)) for g in fold[-MAX_ACTIVITY_TOKENS:]], recap_cap, count),
        evidence=evidence_after(ledger, fold, options.memory),
    )
    edit = fold_edit(ledger, fold, digest, evidence_cap, options, files_tokens=files_room(basis, budget))
    assert edit.replacement is not None
    freed = weight - basis.group_tokens(edit.replacement)
    return Step(name, freed, len(entries), edits=(edit,), evidence_tokens=evidence_cap) if freed > 0 else None


def recap_to_target(name: str, basis: Basis, budget: Budget, old: Sequence[Entry] | None = None) -> Step | None:
    """A recap of the first of the `old` entries (all before the cut where none are named), of as few as it takes to come down to
    the target with the recap itself."""
    best: Step | None = None
    old, takes, taken = basis.old() if old is None else list(old), 0, 0
    while taken < len(old):
        entries = choose(basis, budget, takes, old)
        if len(entries) <= taken:  # what is missing is less than the next weighs
            entries = _to_turn_end(basis, budget, old, taken + 1) if entries else []
        if not entries:
            break
        taken = len(entries)
        step = recap_step(name, basis, entries, budget)
        best = step or best
        short = basis.view.raw - budget.target - (step.tokens_freed if step else 0)
        if short <= 0:
            break
        takes += short
    return best
