"""What the gauge foretold against what then happened: the figure for an unsent message, and the turns left.

    python -m benchmarks.forecast [FOLDER]

Whole sessions of the real agent: recorded ones (`benchmarks/recordings`, or those below FOLDER) said again turn by turn, each
call answered with its recorded result, and work made by a seeded generator, from short talk to long tool results. A server counts
with its own tokenizer and template: ours, another family's, or one that is unlike any we have. Ctxchat sees only the usage in its
replies, as in life. Before each message the gauge says what the request will hold; after each turn it says how many are left
before compaction. Where the window runs full the agent's own passes make room, and the talk goes on.

Errors of the figure are shares of what the server then counted; `growth` is the error of the new message alone, in tokens. Errors
of the forecast are in turns; the naive forecast divides what is free by the mean growth since the last pass.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.history import SyntheticWork
from benchmarks.recordings import OURS as RECORDINGS
from benchmarks.recordings import recordings
from benchmarks.replay import SERVERS, Drafted, Foretold, Replay, Run, Turns, Warned, by_turn

SESSIONS, TURNS = 6, 60
WINDOW, SMALL = 48_000, 16_000
"""Tokens: for generated work, and for recordings, which are shorter."""


class Kind(msgspec.Struct, frozen=True):
    """How generated work goes: rounds of tool calls a turn, and lines of a result (median of a lognormal, and its spread)."""

    name: str
    rounds: tuple[int, int]
    lines: float
    spread: float


KINDS = (
    Kind("talk, few tools", (0, 3), 40, 0.6),
    Kind("steady work", (2, 5), 30, 0.5),
    Kind("bursts of long results", (0, 8), 30, 1.2),
)


# ── what is said ──


def generated(kind: Kind, seed: int) -> Turns:
    """Work made up."""
    chance, work = random.Random(seed), SyntheticWork(seed)
    for _ in range(TURNS):
        lines = max(1, round(chance.lognormvariate(0, kind.spread) * kind.lines))
        work.turns(1, rounds=chance.randint(*kind.rounds), lines=min(lines, 600))
    return by_turn(work.messages)


# ── tables ──


def errors(found: Sequence[Drafted]) -> str:
    """A row: how many, median and 95th percentile of the error, how often it lay within the band, and of the message alone."""
    if not found:
        return f"{0:>7}"
    off = sorted(abs(d.shown - d.real) / d.real for d in found)
    signed = statistics.median((d.shown - d.real) / d.real for d in found)
    inside = sum(abs(d.shown - d.real) <= d.band * d.shown for d in found) / len(found)
    grown = statistics.median(abs(d.grown_shown - d.grown_real) for d in found)
    return f"{len(found):>7}{off[len(off) // 2]:>9.1%}{off[int(len(off) * 0.95)]:>9.1%}{signed:>+9.1%}{inside:>9.0%}{grown:>9.0f}"


def times(drafted: Sequence[Drafted]) -> Iterator[tuple[str, list[Drafted]]]:
    """The messages by when they were sent."""
    yield "first message", [d for d in drafted if d.turn == 1]
    yield "second to fifth", [d for d in drafted if 1 < d.turn <= 5 and not d.after_pass]
    yield "later", [d for d in drafted if d.turn > 5 and not d.after_pass]
    yield "right after a pass", [d for d in drafted if d.after_pass]


def turns_row(found: Sequence[Foretold]) -> str:
    """A row: how many, median and 95th percentile of the error in turns, and how often it was at most one turn off."""
    if not found:
        return f"{0:>7}"
    ours = sorted(abs(f.turns - f.real) for f in found)
    naive = statistics.median(abs(f.naive - f.real) for f in found)
    near = sum(error <= 1 for error in ours) / len(ours)
    bias = statistics.mean(f.turns - f.real for f in found)
    return f"{len(found):>7}{ours[len(ours) // 2]:>9}{ours[int(len(ours) * 0.95)]:>9}{bias:>+9.1f}{near:>9.0%}{naive:>9.0f}"


def told(found: Sequence[Warned]) -> str:
    """How often a compaction before the request was foretold, and how often one that was foretold came."""
    came, said = [w for w in found if w.came], [w for w in found if w.said]
    hit = sum(w.said for w in came)
    right = sum(w.came for w in said)
    return f"{len(found):>7} messages   {hit} of {len(came)} compactions foretold   {right} of {len(said)} warnings came true"


def show(title: str, runs: dict[tuple[str, str], list[Run]]) -> None:
    """The tables of these sessions, by what was done and by who counted."""
    print(f"{title}\n\nThe figure for an unsent message, against what the server counted\n")
    head = f"{'asked':>7}{'median':>9}{'p95':>9}{'bias':>9}{'in band':>9}{'growth':>9}"
    for server in SERVERS:
        mine = [run for (_, name), found in runs.items() if name == server.name for run in found]
        print(f"{'server counts with ' + server.name:<38}{head}")
        for when, some in times([d for run in mine for d in run.drafted]):
            print(f"  {when:<36}{errors(some)}")
        print(f"  {'compaction would start':<36}{told([w for run in mine for w in run.warned])}")
    print("\nTurns left before compaction, against the turns there were\n")
    print(f"{'':<38}{'asked':>7}{'median':>9}{'p95':>9}{'bias':>9}{'within 1':>9}{'naive':>9}")
    for kind in dict.fromkeys(name for name, _ in runs):
        foretold = [f for (name, _), found in runs.items() if name == kind for run in found for f in run.foretold]
        print(f"{kind:<38}{turns_row(foretold)}")
        for what, some in (
            ("  five turns or fewer were left", [f for f in foretold if f.real <= 5]),
            ("  more", [f for f in foretold if f.real > 5]),
        ):
            print(f"{what:<38}{turns_row(some)}")
    print(flush=True)


async def main(folder: Path) -> None:
    recorded = {each.name: by_turn(each.messages) for each in recordings(folder)}
    show(
        f"{len(recorded)} recorded sessions, a window of {SMALL:,} tokens",
        {(n, s.name): [await Replay(turns, s, SMALL).run()] for n, turns in recorded.items() for s in SERVERS},
    )
    made = {kind.name: [generated(kind, 100 * k + n) for n in range(SESSIONS)] for k, kind in enumerate(KINDS)}
    show(
        f"{len(KINDS) * SESSIONS} generated sessions of {TURNS} turns, a window of {WINDOW:,} tokens",
        {(n, s.name): [await Replay(t, s, WINDOW).run() for t in each] for n, each in made.items() for s in SERVERS},
    )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDINGS))
