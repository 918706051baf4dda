"""How long it takes to plan a pass over 10,000 messages and about a million tokens, beside the naive way.

    python -m benchmarks.planning

Naive: every message weighed anew for each step, as code does that counts tokens where it needs them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from benchmarks.history import Work
from ctxchat.core.budget import Budget, Window
from ctxchat.core.grouping import group_messages
from ctxchat.core.ledger import Ledger
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.ground import PlanOptions
from ctxchat.core.tokens import Meter
from ctxchat.core.view import Frame, compile

FRAME = Frame(system="You are ctxchat.")


def timed(work: Callable[[], object], times: int = 5) -> float:
    """The best of a few runs, in milliseconds."""
    best = float("inf")
    for _ in range(times):
        gc.collect()
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def main() -> None:
    work = Work()
    work.turns(1000, rounds=4, lines=32)
    ledger = Ledger(groups=group_messages(work.messages))
    options = PlanOptions(meter=Meter())
    start = time.perf_counter()
    view = compile(ledger, FRAME, options.meter)
    first = (time.perf_counter() - start) * 1000
    budget = Budget(Window(view.raw, "configured"), 0, int(view.raw * 0.8), int(view.raw * 0.5))
    print(f"{len(work.messages):,} messages, {len(ledger.groups):,} groups, {view.raw:,} tokens\n")
    print(f"{'what':<46}{'ms':>10}")
    print(f"{'first view (every message weighed once)':<46}{first:>10.1f}")
    print(f"{'view again':<46}{timed(lambda: compile(ledger, FRAME, options.meter)):>10.1f}")
    fresh = lambda: Ledger(groups=ledger.groups, changes=ledger.changes)  # noqa: E731 - nothing remembered
    print(f"{'live() from nothing':<46}{timed(lambda: fresh().live()):>10.1f}")
    start = time.perf_counter()
    builtin_strategies(options)["truncate"].plan(view, ledger, budget)
    print(f"{'plan truncate, its facts not yet looked for':<46}{(time.perf_counter() - start) * 1000:>10.1f}")
    for name, strategy in builtin_strategies(options).items():
        print(f"{'plan ' + name:<46}{timed(lambda s=strategy: s.plan(view, fresh(), budget)):>10.1f}")
    tight = Budget(Window(view.raw, "configured"), 0, int(view.raw * 0.8), int(view.raw * 0.02))
    pipeline = builtin_strategies(options)["pipeline"]
    print(
        f"{'plan pipeline down to 2 %, every step taken':<46}{timed(lambda: pipeline.plan(view, fresh(), tight)):>10.1f}"
    )

    def naive() -> None:
        for _ in range(4):  # the four steps before a summary, each over fresh counts
            compile(ledger, FRAME, Meter())

    print(f"{'naive: every step counts anew':<46}{timed(naive, 1):>10.1f}")


if __name__ == "__main__":
    main()
