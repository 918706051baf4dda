"""Facts drawn at random from what the ledger of recorded sessions lists, each with where it comes from, to be read and judged.

    python -m benchmarks.drawn [FOLDER] [HOW_MANY] [SEED]

Every recording is cut at the places of `benchmarks.needed`, and the facts that a pass would list there in 4,000 tokens are one
pot: a fact is drawn once, with the cut at which it stood. Symbols, which are half of them, are drawn no more often than they
are listed. A fact is right where it was said or done by somebody, still holds at the cut, and is no cut, listing or noise.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

from benchmarks.needed import cuts
from benchmarks.recordings import OURS, recordings
from ctxchat.core.facts import Memory, collect, fitting, line_of, plain
from ctxchat.core.grouping import group_messages
from ctxchat.core.messages import Message
from ctxchat.core.record import Evidence, Fact
from ctxchat.core.tokens import TokenCounter

CAP = 4_000
AROUND = 110
"""Characters on each side of a fact that are shown of its message."""


def where(fact: Fact, messages: dict[int, Message]) -> str:
    """The words around a fact in the message it was last seen in, the call in front of them where it is a result."""
    message = messages[fact.seq]
    called = [c for m in messages.values() for c in m.calls if message.role == "tool" and c.id == message.call_id]
    text = plain("\n".join([*(f"{c.name} {c.arguments} ⇒" for c in called[-1:]), message.text]))
    at = max(0, text.find(plain(fact.key.rstrip("…"))[:40]))
    return text[max(0, at - AROUND) : at + len(fact.key) + AROUND]


def main(folder: Path, many: int, seed: int) -> None:
    chance, count = random.Random(seed), TokenCounter().count_text
    pot: dict[tuple[str, str], list[tuple[int, Fact, dict[int, Message]]]] = {}
    for recording in recordings(folder):
        groups, memory, evidence, start = group_messages(recording.messages), Memory(), Evidence(), 0
        messages = {m.seq: m for m in recording.messages}
        for cut in cuts(groups):
            evidence = collect(groups[start:cut], evidence, memory)
            start = cut
            last = groups[cut - 1].messages[-1].seq
            for fact in fitting(evidence, CAP, count).facts:
                pot.setdefault((recording.name, f"{fact.kind} {line_of(fact)}"), []).append((last, fact, messages))
    drawn = chance.sample(sorted(pot), min(many, len(pot)))
    kinds = Counter(kind.split()[0] for _, kind in pot)
    print(f"{len(pot):,} facts listed: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    for number, name in enumerate(sorted(drawn, key=lambda pair: pair[1]), 1):
        last, fact, messages = chance.choice(pot[name])
        print(f"\n{number}. {fact.kind}: {line_of(fact)}   [{name[0]} at m{last}; {fact.by or 'nobody'} in m{fact.seq}"
              f"{f'; of {fact.value}' if fact.kind in {'error', 'symbol'} and fact.value else ''}]")  # fmt: skip
        print(f"   {where(fact, messages)}")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]) if len(sys.argv) > 1 else OURS,
        int(sys.argv[2]) if len(sys.argv) > 2 else 300,
        int(sys.argv[3]) if len(sys.argv) > 3 else 1,
    )
