"""What the gauge foretold against what then happened: the figure for an unsent message, and the turns left.

    python -m benchmarks.forecast

Sessions of agent work made by a seeded generator, from short talk to long tool results, twenty of each kind and server. A
server counts with its own tokenizer and template: ours, another family's, or one that is unlike any we have. Ctxchat sees only
the usage in its replies, as in life. Before each message the gauge says what the request will hold; after each turn it says how
many are left before compaction. Where the window runs full a pass folds the old turns, and the talk goes on.

Errors of the figure are shares of what the server then counted; `growth` is the error of the new message alone, in tokens. Errors
of the forecast are in turns; the naive forecast divides what is free by the mean growth since the beginning.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import msgspec

from benchmarks.evidence import window_only
from benchmarks.history import Work
from ctxchat.core.budget import Budget, Window, make_budget
from ctxchat.core.figures import Figures, measure, used_tokens
from ctxchat.core.grouping import group_messages
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.strategies.ground import PlanOptions
from ctxchat.core.tokens import Anchor, Calibration, Meter
from ctxchat.core.view import Frame, Insert, View, compile
from ctxchat.models.tokenizers import counter

SESSIONS, TURNS = 20, 60
WINDOW = 48_000
OURS = cache(counter("gpt-4o"))
FRAME = Frame(
    system="You are ctxchat, an assistant that works with a person in a terminal. Look before you answer. " * 20,
    memory=(
        Insert("AGENTS.md", "Small edits. Tests beside the code. Say what you saw with paths and line numbers. " * 60),
    ),
)

Count = Callable[[str], int]


class Server(msgspec.Struct, frozen=True):
    """Who really counts: a tokenizer, a factor for one we do not have, and tokens a message and a request cost beyond."""

    name: str
    count: Count
    factor: float = 1.0
    message: int = 3
    request: int = 3

    def prompt(self, view: View) -> int:
        """Tokens of a request."""
        return self.request + sum(self.of(item.message) for item in view.items)

    def of(self, message: Message) -> int:
        """Tokens of one message."""
        texts = [message.text, *(f"{c.name}{c.arguments}" for c in message.calls)]
        return self.message + round(self.factor * sum(self.count(text) for text in texts if text))


SERVERS = (
    Server("our tokenizer", OURS),
    Server("another family's", cache(counter("gpt-4")), message=4, request=7),
    Server("unlike any", OURS, factor=1.19, message=9, request=340),  # what some providers add for tools
)


class Kind(msgspec.Struct, frozen=True):
    """How a session goes: rounds of tool calls a turn, and lines of a result (median of a lognormal, and its spread)."""

    name: str
    rounds: tuple[int, int]
    lines: float
    spread: float


KINDS = (
    Kind("talk, few tools", (0, 3), 40, 0.6),
    Kind("steady work", (2, 5), 30, 0.5),
    Kind("bursts of long results", (0, 8), 30, 1.2),
)


class Drafted(msgspec.Struct, frozen=True):
    """Before a message was sent: what the gauge said the request would hold, what it held, and the same for the message."""

    turn: int
    shown: int
    real: int
    grown_shown: int
    grown_real: int
    after_pass: bool
    band: float


class Foretold(msgspec.Struct, frozen=True):
    """After a turn: turns left as the gauge said, as the naive way says, and as it then was."""

    turns: int
    naive: int
    real: int


def session(kind: Kind, server: Server, seed: int) -> tuple[list[Drafted], list[Foretold]]:
    """One session from its first message to its last."""
    chance, work, meter = random.Random(seed), Work(seed), Meter(OURS)
    budget = make_budget(Window(WINDOW, "catalogue"), 4096, 0.8, 0.5)
    ledger, fills, since = Ledger(), list[int](), list[int]()
    calibration, anchor, passed = Calibration(), None, False
    drafted: list[Drafted] = []
    said: list[tuple[int | None, int, int]] = []  # forecast, naive forecast, turns since the last pass
    foretold: list[Foretold] = []
    for turn in range(1, TURNS + 1):
        before = compile(ledger, FRAME, meter)
        groups = _turn(work, kind, chance, ledger.turn)
        draft = meter.weigh(groups[0].first)
        figures = _measured(before, budget, calibration, anchor, fills, draft)
        ledger = ledger.append(groups[0])
        sent = server.prompt(compile(ledger, FRAME, meter))
        alone = _measured(before, budget, calibration, anchor, fills)
        grown = figures.used - alone.used
        drafted.append(Drafted(turn, figures.used, sent, grown, server.of(groups[0].first), passed, figures.band))
        ledger = ledger.append(*groups[1:-1])
        view = compile(ledger, FRAME, meter)
        reply = groups[-1].first
        prompt, completion = server.prompt(view), server.of(reply)
        calibration = calibration.learn(real=prompt, raw=view.raw)
        anchor = Anchor(prompt + completion, view.raw + meter.message(reply), view.passes)
        ledger = ledger.append(groups[-1])
        used, _ = used_tokens(anchor.raw, view.passes, calibration, anchor)
        fills.append(used)
        since.append(used)
        shown = _measured(compile(ledger, FRAME, meter), budget, calibration, anchor, fills)
        said.append((shown.forecast_turns, _naive(since, budget.trigger), turn))
        passed = used >= budget.trigger
        if passed:
            foretold += [Foretold(f, n, turn - at - 1) for f, n, at in said[:-1] if f is not None]
            view = compile(ledger, FRAME, meter)
            options = PlanOptions(meter=meter, keep_recent=8, keep_turns=2)
            goal = Budget(budget.window, 0, budget.trigger, int(budget.target / calibration.ratio))
            change = window_only(ledger, view, goal, options, f"p{turn}")
            ledger, anchor, said, since = (ledger.apply(change) if change else ledger), None, [], []
    return drafted, foretold


def _turn(work: Work, kind: Kind, chance: random.Random, turn: int) -> list[Group]:
    start = len(work.messages)
    lines = max(1, round(chance.lognormvariate(0, kind.spread) * kind.lines))
    work.turns(1, rounds=chance.randint(*kind.rounds), lines=min(lines, 600))
    return [msgspec.structs.replace(g, turn=g.turn + turn) for g in group_messages(work.messages[start:])]


def _measured(
    view: View, budget: Budget, calibration: Calibration, anchor: Anchor | None, fills: Sequence[int], draft: int = 0
) -> Figures:
    return measure(view, budget, model="m", calibration=calibration, anchor=anchor, draft=draft, fills=fills)


def _naive(used: Sequence[int], trigger: int) -> int:
    growth = (used[-1] - used[0]) / (len(used) - 1) if len(used) > 1 else used[-1]
    return max(0, int((trigger - used[-1]) / growth)) if growth > 0 else 99


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


def main() -> None:
    runs = {
        (kind.name, server.name): [session(kind, server, 100 * k + seed) for seed in range(SESSIONS)]
        for k, kind in enumerate(KINDS)
        for server in SERVERS
    }
    print("The figure for an unsent message, against what the server counted\n")
    head = f"{'asked':>7}{'median':>9}{'p95':>9}{'bias':>9}{'in band':>9}{'growth':>9}"
    for server in SERVERS:
        drafted = [d for (_, name), found in runs.items() if name == server.name for each, _ in found for d in each]
        print(f"{'server counts with ' + server.name:<38}{head}")
        for when, some in times(drafted):
            print(f"  {when:<36}{errors(some)}")
    print("\nTurns left before compaction, against the turns there were\n")
    print(f"{'':<38}{'asked':>7}{'median':>9}{'p95':>9}{'bias':>9}{'within 1':>9}{'naive':>9}")
    for kind in KINDS:
        foretold = [f for (name, _), found in runs.items() if name == kind.name for _, each in found for f in each]
        print(f"{kind.name:<38}{turns_row(foretold)}")
        for what, some in (
            ("  five turns or fewer were left", [f for f in foretold if f.real <= 5]),
            ("  more", [f for f in foretold if f.real > 5]),
        ):
            print(f"{what:<38}{turns_row(some)}")


if __name__ == "__main__":
    main()
