"""What survives of a history's facts after 1, 3 and 10 passes: evidence ledger, summary only, truncation only.

    python -m benchmarks.evidence

Facts (paths, numbers, commands, errors, decisions) are planted by the generator and looked for as exact strings in the
view after each pass. The summary here is the offline assistant's. `benchmarks.recorded` does the same with recorded work.
The ledger's cap grows from table to table: with the largest every fact has room, which is what its promise is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from benchmarks.history import Planted, SyntheticWork
from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Budget, Window
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import Head
from ctxchat.core.ledger import Change, Ledger
from ctxchat.core.messages import Group
from ctxchat.core.strategies.base import Plan
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summary_task import summary_task
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import View, compile
from ctxchat.models.offline.summary import OfflineSummariser

FRAME = Head(system="You are ctxchat.")
KINDS = Planted.__struct_fields__
PASSES = 10
TURNS = 12
"""Turns between two passes."""

FOLDED = re.compile(r"([\w./~@+:-]+/)\{([^{}\n]*)\}")

Way = Callable[[Ledger, View, Budget, PlanOptions, str], Change | None]


def summarised(ledger: Ledger, view: View, budget: Budget, options: PlanOptions, name: str) -> Change | None:
    """A summary with the evidence beside it."""
    plan = builtin_strategies(options)["summarize"].plan(view, ledger, budget)
    return apply_plan(ledger, plan, name, options, summary=_summary(ledger, plan, options)) if plan else None


def summary_only(ledger: Ledger, view: View, budget: Budget, options: PlanOptions, name: str) -> Change | None:
    """The same summary, nothing beside it."""
    return summarised(ledger, view, budget, PlanOptions(counter=options.counter, facts_max_tokens=0), name)


def truncated(ledger: Ledger, view: View, budget: Budget, options: PlanOptions, name: str) -> Change | None:
    """A recap by code with the evidence."""
    plan = builtin_strategies(options)["truncate"].plan(view, ledger, budget)
    return apply_plan(ledger, plan, name, options) if plan else None


def window_only(ledger: Ledger, view: View, budget: Budget, options: PlanOptions, name: str) -> Change | None:
    """Old turns gone, nothing in their place."""
    plan = builtin_strategies(options)["sliding_window"].plan(view, ledger, budget)
    return apply_plan(ledger, plan, name, options) if plan else None


WAYS: dict[str, Way] = {
    "summary + evidence": summarised,
    "recap + evidence": truncated,
    "summary only": summary_only,
    "truncation only": window_only,
}


def _summary(ledger: Ledger, plan: Plan, options: PlanOptions) -> str:
    step = plan.steps[-1]
    task = summary_task(ledger, step, options)
    writer = OfflineSummariser(options.counter.count_text)
    return writer.summary(task.groups, "", task.previous, task.max_tokens) or "Nothing."


def run(way: Way, evidence_tokens: int, at: Sequence[int]) -> dict[int, tuple[dict[str, float], int]]:
    """Shares kept by kind after these passes, and the tokens of the summary section then."""
    work, options = (
        SyntheticWork(seed=7),
        PlanOptions(
            counter=TokenCounter(), recent_results=0, facts_max_tokens=evidence_tokens, keep_recent=8, keep_turns=2
        ),
    )
    budget = Budget(Window(128_000, "configured"), 0, 96_000, 30_000)
    ledger = Ledger()
    kept: dict[int, tuple[dict[str, float], int]] = {}
    for number in range(1, PASSES + 1):
        start, turn = len(work.messages), ledger.turn
        work.turns(TURNS)
        fresh = group_messages(work.messages[start:])
        ledger = ledger.append(*(_in_turn(g, turn) for g in fresh))
        change = way(ledger, compile(ledger, FRAME, options.counter), budget, options, f"p{number}")
        ledger = ledger.apply(change) if change else ledger
        if number in at:
            view = compile(ledger, FRAME, options.counter)
            kept[number] = (shares(work.facts(), view), view.weights()["summary"])
    return kept


def shown(view: View) -> str:
    """What a view says; files that are written once with their folder (`src/{a.py, b.py}`) whole besides."""
    text = "\n".join(item.message.text + "".join(c.arguments for c in item.message.calls) for item in view.items)
    return "\n".join([text, *(folder + name for folder, names in FOLDED.findall(text) for name in names.split(", "))])


def shares(planted: Planted, view: View) -> dict[str, float]:
    """Planted facts found in a view, as a share, by kind."""
    text = shown(view)
    found: dict[str, float] = {}
    for kind in KINDS:
        facts: tuple[str, ...] = getattr(planted, kind)
        found[kind] = sum(fact in text for fact in facts) / len(facts) if facts else 1.0
    return found


def _in_turn(group: Group, turn: int) -> Group:
    return Group(group.id, group.kind, group.messages, group.turn + turn, group.source)


def main() -> None:
    for cap in (2_000, 4_000, 16_000):
        print(f"\nledger capped at {cap:,} tokens; share of planted facts in the view")
        print(f"{'way':<22}{'passes':>7}" + "".join(f"{k:>11}" for k in KINDS) + f"{'summary':>10}")
        for name, way in WAYS.items():
            for passes, (found, tokens) in run(way, cap, (1, 3, 10)).items():
                row = "".join(f"{found[k]:>10.1%} " for k in KINDS)
                print(f"{name:<22}{passes:>7}{row}{tokens:>10,}")


if __name__ == "__main__":
    main()
