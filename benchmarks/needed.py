"""What the next twenty calls of a recorded session needed, and how much of it a pass left in view.

    python -m benchmarks.needed [FOLDER] [CAP]

Every recording is cut at several places. There a pass is made, and the arguments of the twenty calls that came next are looked
at: paths and symbols in them that were known before, and that nobody said in between. Those were *needed*. Counted are those in
view after the pass with no summary at all: what code keeps by itself, the person's messages and the facts in at most CAP tokens,
and the newest messages. Files read again are those that were read or changed before.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.recordings import OURS, recordings
from ctxchat.core.applying import apply_plan
from ctxchat.core.audit import is_in, needed_names, view_text
from ctxchat.core.budget import Budget, Window
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile

FRAME = Head(system="You are ctxchat.")
CUTS = 8
KEEP = 12
"""Newest messages that stay."""


def cuts(groups: Sequence[Group]) -> Iterator[int]:
    for number in range(1, CUTS + 1):
        yield number * len(groups) // (CUTS + 1)


def measure(folder: Path, cap: int) -> None:
    options = PlanOptions(counter=TokenCounter(), recent_results=0, keep_recent=KEEP, facts_max_tokens=cap)
    budget = Budget(Window(1_000_000, "configured"), 0, 500_000, 10)
    print(f"{'recording':<24}{'cuts':>5}{'paths':>14}{'symbols':>14}{'files again':>14}{'summary':>9}{'tail':>9}")
    for recording in recordings(folder):
        groups = group_messages(recording.messages)
        found, kept = Counter[str](), Counter[str]()
        tokens, tails, made = 0, 0, 0
        for cut in cuts(groups):
            ledger = Ledger().append(*groups[:cut])
            view = compile(ledger, FRAME, options.counter)
            plan = builtin_strategies(options)["summarize"].plan(view, ledger, budget)
            if plan is None:
                continue
            ledger = ledger.apply(apply_plan(ledger, plan, "p", options, summary="-"))
            after = compile(ledger, FRAME, options.counter)
            text = view_text(after)
            made += 1
            tokens += after.weights()["summary"]
            tails += after.raw - after.weights()["summary"]
            for name in needed_names(groups[:cut], groups[cut:])[0]:
                for kind in (name.kind, *(["again"] if name.read_again else [])):
                    found[kind] += 1
                    kept[kind] += is_in(text, name)
        if made:
            row = "".join(
                f"{kept[k]:>5}/{found[k]:<4}{kept[k] / found[k] if found[k] else 1:>4.0%}"
                for k in ("path", "symbol", "again")
            )
            print(f"{recording.name[:23]:<24}{made:>5}{row}{tokens // made:>9,}{tails // made:>9,}", flush=True)


if __name__ == "__main__":
    measure(Path(sys.argv[1]) if len(sys.argv) > 1 else OURS, int(sys.argv[2]) if len(sys.argv) > 2 else 4_000)
