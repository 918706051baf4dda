"""How long it takes to plan a pass over 10,000 messages and about a million tokens, beside the naive way.

    python -m benchmarks.planning

Naive: every message weighed anew for each step, as code does that counts tokens where it needs them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial

from benchmarks.history import SyntheticWork
from ctxchat.core.budget import Budget, Window
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile
from ctxchat.models.tokenizers import counter

FRAME = Head(system="You are ctxchat.")


def timed(work: Callable[[], object], times: int = 5) -> float:
    """The best of a few runs, in milliseconds."""
    best = float("inf")
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def show(what: str, milliseconds: float) -> None:
    print(f"{what:<54}{milliseconds:>10.1f}")


def main() -> None:
    work = SyntheticWork()
    work.turns(1000, rounds=4, lines=40)
    ledger = Ledger(groups=group_messages(work.messages))
    count = counter("gpt-4o")
    options = PlanOptions(counter=TokenCounter(count))
    first = timed(lambda: compile(ledger, FRAME, options.counter), 1)
    view = compile(ledger, FRAME, options.counter)
    half, least = (
        Budget(Window(view.raw, "configured"), 0, int(view.raw * 0.8), int(view.raw * t)) for t in (0.5, 0.02)
    )
    found = builtin_strategies(options)
    fresh = partial(Ledger, ledger.groups, ledger.changes)  # a ledger that remembers nothing

    print(f"{len(work.messages):,} messages, {len(ledger.groups):,} groups, {view.raw:,} tokens; milliseconds\n")
    show("first view: every message weighed, every one once", first)
    show("view again", timed(lambda: compile(fresh(), FRAME, options.counter)))
    show("live() from nothing", timed(lambda: fresh().live()))
    show(
        "facts looked for: once, off the event loop",
        timed(lambda: [options.memory.find_facts(g) for g in ledger.groups], 1),
    )
    for name, strategy in found.items():
        show(f"plan {name}", timed(lambda s=strategy: s.plan(view, fresh(), half)))
    show("plan pipeline down to 2 %, every step taken", timed(lambda: found["pipeline"].plan(view, fresh(), least)))

    def naive() -> int:
        return sum(count(message.text) for _ in range(4) for message in work.messages)

    show("naive: each of four steps counts the history anew", timed(naive, 1))


if __name__ == "__main__":
    main()
