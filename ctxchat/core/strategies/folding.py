"""Plans folds: chooses which groups a summary replaces, how many tokens its parts may take, and makes the recap where code writes
it. Shared by the strategies that fold; calls no model.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxchat.core.budget import Budget
from ctxchat.core.clip import head
from ctxchat.core.ledger import Entry
from ctxchat.core.recap import MAX_ACTIVITY_LINES, recap
from ctxchat.core.record import Digest
from ctxchat.core.strategies.base import Step
from ctxchat.core.strategies.planning import Basis, fold_edit, is_summary
from ctxchat.core.summaries import evidence_after, merged_digest, overhead_tokens
from ctxchat.core.working_set import EACH

TARGET_TOLERANCE_SHARE = 0.05
"""The share of the limit by which a fold may go beyond its target so that it ends at the end of a turn."""

MAX_TOLERANCE_SHARE = 0.2
"""The same as a share of the target; the smaller of the two counts."""

MAX_FILES_SHARE = 0.2
"""The largest share of the target for the files beside a summary: they can be read again, unlike what the record says."""

MIN_PART_TOKENS = 1_200
"""The least tokens that a summary and the evidence each get, within their caps, however little room the target leaves."""

MIN_SUMMARY_SHARE, MIN_EVIDENCE_SHARE = 1 / 8, 1 / 16
"""The least shares of the target that they get, where that is more."""


def tolerance(limit: float, target: float) -> int:
    """Tokens by which a fold may go beyond its target so that it ends at the end of a turn."""
    return int(min(limit * TARGET_TOLERANCE_SHARE, target * MAX_TOLERANCE_SHARE))


def choose(basis: Basis, budget: Budget, takes: int | None = None, old: Sequence[Entry] | None = None) -> list[Entry]:
    """The entries to fold: the first of `old` (by default all before the cut), as few as bring the view down to the target, up to
    the end of a turn where that is near; all of them where even those do not suffice. `takes` is the size in tokens of what will
    replace them, None for the most that a summary may take."""
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
    """The first `place` entries, and the rest of the last one's turn where that is within the tolerance."""
    end = next((i for i in range(place, len(old)) if turn_of(old[i]) != turn_of(old[i - 1])), len(old))
    more = sum(basis.weight(e) for e in old[place:end])
    return old[:end] if more <= tolerance(budget.limit, budget.target) else old[:place]


def turn_of(entry: Entry) -> int:
    """The turn of what an entry shows; 0 where it shows nothing."""
    return entry.group.turn if entry.group else 0


def allowance(basis: Basis, budget: Budget, weight: int) -> int:
    """The most raw tokens that a summary, its evidence and the files beside it will take, where `weight` tokens are folded."""
    summary, _, evidence = caps(basis, budget, weight)
    return summary + evidence + overhead_tokens(basis.options.counter.count_text) + files_at_most(basis, budget)


def files_room(basis: Basis, budget: Budget) -> int:
    """The token limit for the files beside a summary."""
    most = int(budget.target * MAX_FILES_SHARE)
    return min(basis.options.files_tokens, most) if most > 0 else basis.options.files_tokens


def files_at_most(basis: Basis, budget: Budget) -> int:
    """The most tokens that the files beside a summary will take: there may be fewer files than room."""
    return min(files_room(basis, budget), sum(min(EACH, file.tokens) + 40 for file in basis.options.files))


def caps(basis: Basis, budget: Budget, weight: int) -> tuple[int, int, int]:
    """The token limits of a summary, a recap and the evidence, where `weight` tokens are folded.

    Small windows and small folds get less, but never less than the summary in force and its evidence take already plus what is
    added now.
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
    """Tokens by which newly folded messages make the summary in force longer; 0 where there is no summary."""
    new = max(0, weight - basis.summaries_weight)
    return min(new // 3, 400 + new // 10) if basis.written_tokens else 0


def caps_to_target(basis: Basis, budget: Budget, weight: int) -> tuple[int, int, int]:
    """The limits of `caps`, reduced where the target leaves less room, those of the evidence first. The summary gets at least
    what the one in force takes plus half of its growth, so that new text does not push out what was kept. A target below the
    least sizes of both means that everything is to be folded: the limits are not reduced for it."""
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
    """Raw tokens that a fold of these entries removes from the view, including the summary in force, which it replaces."""
    return sum(basis.weight(e) for e in (*(e for e in entries if not is_summary(e)), *basis.summaries))


def summary_step(name: str, basis: Basis, entries: Sequence[Entry], budget: Budget) -> Step | None:
    """A fold whose summary a model or a person has to write; None where it would free nothing. What code keeps beside the summary
    is built and counted first; the summary may take what the target leaves then."""
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
    """Raw tokens of everything that replaces these groups except the summary's own text."""
    evidence = evidence_after(basis.ledger, fold, basis.options.memory)
    digest = Digest(summary="-", evidence=evidence)
    edit = fold_edit(basis.ledger, fold, digest, evidence_tokens, basis.options, files_tokens=files_tokens)
    assert edit.replacement is not None
    return basis.group_tokens(edit.replacement)


def summary_to_target(name: str, basis: Basis, budget: Budget) -> Step | None:
    """A fold of the oldest entries, as few as bring the view down to the target once their summary is counted in."""
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
    """A fold whose summary is made by code: a recap, the evidence, and the text of an earlier summary. None where it frees
    nothing."""
    if not entries:
        return None
    options, ledger = basis.options, basis.ledger
    count = options.counter.count_text
    weight = weight_with_summary(basis, entries)
    fold = covers(basis, entries)
    _, recap_cap, evidence_cap = caps_to_target(basis, budget, weight)
    # the earlier summary keeps its room, so that it does not shrink with every compaction
    summary_cap = min(options.summary_max_tokens, budget.limit // 8)
    known = merged_digest(basis.summaries)
    digest = Digest(
        summary=head(known.summary, summary_cap, count),
        recap=recap([options.memory.shown(ledger.group(g)) for g in fold[-MAX_ACTIVITY_LINES:]], recap_cap, count),
        evidence=evidence_after(ledger, fold, options.memory),
    )
    edit = fold_edit(ledger, fold, digest, evidence_cap, options, files_tokens=files_room(basis, budget))
    assert edit.replacement is not None
    freed = weight - basis.group_tokens(edit.replacement)
    return Step(name, freed, len(entries), edits=(edit,), evidence_tokens=evidence_cap) if freed > 0 else None


def recap_to_target(name: str, basis: Basis, budget: Budget, old: Sequence[Entry] | None = None) -> Step | None:
    """A recap of the first of the `old` entries (by default all before the cut), of as few as bring the view down to the target
    with the recap counted in."""
    best: Step | None = None
    old, takes, taken = basis.old() if old is None else list(old), 0, 0
    while taken < len(old):
        entries = choose(basis, budget, takes, old)
        if len(entries) <= taken:  # the tokens still missing are fewer than those of the next entry
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
