"""Search over 100,000 messages: how long an answer takes while a person types, and what taking in a message costs.

    python -m benchmarks.search [messages]

A store with many sessions of generated agent work. Each query is asked as it grows, key by key, from its third character; the
time is that of one answer with twenty hits, highlights and all, on the processor, so that what else the machine does is left
out. Then messages arrive one by one, and each must be found at once.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.history import SyntheticWork
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Group, Message
from ctxchat.core.search import NEWEST, Scope
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database

MESSAGES = 100_000
SESSION_TURNS = 400
QUERIES = (
    "decided to keep retry",
    "pytest -q tests/export",
    "src/billing/models_412.py",
    "KeyError: parser",
    "median takes ms",
    "cache slow validates",
    "exit code",
    "look",
    "what did we decide about limits in queue",
    "hippopotamus",
)
ARRIVING = 200


def fill(database: Database, messages: int) -> int:
    """Sessions of about 4,000 messages each; how many messages there are."""
    held = 0
    while held < messages:
        work = SyntheticWork(seed=held)
        work.turns(SESSION_TURNS, rounds=4, lines=12)
        groups = group_messages(work.messages)
        sessions.create(database, title=f"work {held}", records=[Sealed(groups)])
        held += len(work.messages)
    return held


def typed(query: str) -> Iterator[str]:
    """The query as it grows under the fingers."""
    yield from (query[:end] for end in range(3, len(query) + 1) if not query[:end].endswith(" "))


def timed(database: Database, scope: Scope, queries: Sequence[str]) -> list[float]:
    """Milliseconds of each answer."""
    taken: list[float] = []
    for query in queries:
        start = time.process_time()
        archive.search(database, query, scope=scope)
        taken.append(1000 * (time.process_time() - start))
    return taken


def report(what: str, taken: list[float]) -> None:
    taken = sorted(taken)
    p95 = taken[int(len(taken) * 0.95)]
    print(f"{what:<44}{len(taken):>6}{statistics.median(taken):>9.1f}{p95:>9.1f}{taken[-1]:>9.1f}")


def arriving(database: Database, session: str) -> tuple[list[float], int]:
    """Milliseconds to write each of some new messages, and how many of them were found right after."""
    chance = random.Random(3)
    taken, found = [], 0
    first = int(archive.search(database, "slow", session)[0].message[1:]) + 1_000_000
    for seq in range(first, first + ARRIVING):
        word = f"arrival{chance.randrange(16**8):08x}"
        group = Group(
            f"g{seq}", "reply", (Message(seq, "assistant", f"The {word} is in the {chance.random()} queue."),), 1
        )
        start = time.process_time()
        sessions.append(database, session, Sealed((group,)))
        taken.append(1000 * (time.process_time() - start))
        found += [hit.message for hit in archive.search(database, word)] == [f"m{seq}"]
    return taken, found


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder)) as database:
        start = time.process_time()
        held = fill(database, wanted)
        seconds = time.process_time() - start
        session = sessions.latest(database)
        size = database.path.stat().st_size / 1e6
        print(
            f"{held:,} messages in {len(sessions.rows(database))} sessions, {size:.0f} MB, taken in {seconds:.0f} s\n"
        )
        print(f"{'milliseconds of processor time':<44}{'asked':>6}{'median':>9}{'p95':>9}{'worst':>9}")
        scopes = {
            "all sessions": Scope(),
            "this session": Scope(session=session),
            "only tool results": Scope(role="tool"),
            "before the last compaction": Scope(before=NEWEST),
            "as the agent recalls, this session": Scope(session=session, recall=True),
        }
        for what, scope in scopes.items():
            keys = [text for query in QUERIES for text in (typed(query) if not scope.recall else [query])]
            report(f"while typing, {what}" if not scope.recall else what, timed(database, scope, keys))
        for query in QUERIES:
            report(f"  {query}", timed(database, Scope(), [*typed(query)]))
        taken, found = arriving(database, session)
        report("a message taken in", taken)
        print(f"\n{found} of {ARRIVING} new messages were found by the very next search")


if __name__ == "__main__":
    main()
