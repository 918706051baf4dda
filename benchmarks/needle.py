"""Needles in a long history: what of 208 facts can still be had after 1, 5 and 20 passes.

    python -m benchmarks.needle

Standing rules, paths, numbers, commands, decisions and single lines inside long tool results are said once, early, in a history
of agent work made by a seeded generator, which says ten times as many of the same weight about other things. Then passes fold
it, again and again. For each fact the record is asked in two ways: with a few words, as a person types them into search, and
with a whole question, as a model puts it to `recall`. The answer is never among the words asked. Found means that the very
message it was said in is among the first three. Beside it: what a model would still see in its view, with ctxchat's own summary
and evidence, and where old turns are simply cut off; apart, what people and the agent said or did, what only stood in a result,
and what came up again: a quarter of the facts were asked for before and looked up by the agent, so that its own searches stand
in the way.
"""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import msgspec

from benchmarks.evidence import FRAME, Way, shown, summarised, window_only
from benchmarks.history import SyntheticWork
from ctxchat.bootstrap.recall import Recollection
from ctxchat.core.budget import Budget, Window
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Changed, Sealed
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database

PLANTED_TURNS, TURNS = 100, 12
"""Turns among which the facts are planted, and turns between two passes after that."""

FIRST = 3
RULES = 8
COLOURS = ("amber", "cobalt", "crimson", "indigo", "ivory", "jade", "russet", "teal")
BIRDS = ("cormorant", "curlew", "dunlin", "fulmar", "gannet")
SUBJECTS = [f"{colour} {bird}" for colour, bird in product(COLOURS, BIRDS)]


class Needle(msgspec.Struct, frozen=True):
    """A fact: its `kind`, the exact `answer`, what is typed to find it, what is asked, and the `message` it was said in;
    whether it came up `again`."""

    kind: str
    answer: str
    words: str
    question: str
    message: str
    again: bool = False


class Haystack(SyntheticWork):
    """Agent work with facts in it, each said once."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.needles: list[Needle] = []
        self._chance = random.Random(seed + 1)

    def plant(self, turns: int) -> None:
        """So many turns with eight rules and forty facts of each of five kinds strewn among them, and a quarter of them asked for
        again."""
        makers = (self._path, self._number, self._command, self._decision, self._line)
        wanted = [(make, subject) for make in makers for subject in SUBJECTS]
        wanted += [(self._rule, subject) for subject in SUBJECTS[:: len(SUBJECTS) // RULES]]
        self._chance.shuffle(wanted)
        for number in range(turns):
            self.turns(1)
            for make, subject in wanted[number * len(wanted) // turns : (number + 1) * len(wanted) // turns]:
                make(subject)
        for place in range(0, len(self.needles), 4):
            needle = self.needles[place] = msgspec.structs.replace(self.needles[place], again=True)
            self._asked_again(needle)

    def _rule(self, subject: str) -> None:
        answer = f"never restart the {subject} before {self._chance.randrange(10, 24)}:{self._chance.randrange(10, 60)}"
        self._say("user", f"By the way, {answer}. People are at work then.")
        self._keep("rule", answer, f"restart {subject} people", f"When may the {subject} be restarted, given people?")
        self._say("assistant", "Noted.")

    def _path(self, subject: str) -> None:
        colour, bird = subject.split()
        answer = f"deploy/{bird}/{self._chance.choice(('units', 'charts', 'env'))}-{self._hex()}.yaml"
        self._say("user", f"By the way, the rollout settings of the {colour} {bird} live in {answer}, not in the wiki.")
        self._keep(
            "path", answer, f"rollout settings {subject}", f"Where do the rollout settings of the {subject} live?"
        )
        self._say("assistant", "Noted.")

    def _number(self, subject: str) -> None:
        answer = f"{self._chance.randrange(1_000, 60_000):,} requests"
        self._say("user", f"How much can {subject} take?")
        self._say("assistant", f"I measured it: the {subject} saturates at {answer} a minute, then queues.")
        self._keep(
            "number", answer, f"{subject} saturates", f"At how many requests per minute does {subject} saturate?"
        )

    def _command(self, subject: str) -> None:
        answer = f"make drain HOST={subject.replace(' ', '-')} GRACE={self._chance.randrange(100, 900)}s"
        self._call(
            "shell", {"command": answer, "why": f"empty the {subject} before maintenance"}, "drained\n[exit code: 0]"
        )
        self._keep("command", answer, f"empty {subject} maintenance", f"Which command emptied the {subject}?", back=2)

    def _decision(self, subject: str) -> None:
        answer = f"snapshot every {self._chance.randrange(11, 990)} minutes"
        self._say("user", f"So what do we do about backups of the {subject}?")
        self._say(
            "assistant",
            f"Then it is settled: for {subject} we {answer} and keep a week of them, since disks are cheap.",
        )
        self._keep(
            "decision", answer, f"{subject} settled disks", f"What was settled on for {subject}, given cheap disks?"
        )

    def _line(self, subject: str) -> None:
        answer = f"0x{self._hex()}{self._hex()}"
        lines = self._code(180).split("\n")
        place = self._chance.randrange(60, 160)
        lines.insert(place, f"{place:04d} WARN {subject.replace(' ', '-')} firmware checksum {answer} does not match")
        self._call("read_file", {"path": f"var/log/boot-{self._hex()}.log"}, "\n".join(lines))
        self._keep(
            "line in a result", answer, f"{subject} checksum", f"What firmware checksum did the {subject} report?"
        )

    def _asked_again(self, needle: Needle) -> None:
        self._say("user", needle.question)
        who = {"command": "call of shell", "line in a result": "result of read_file"}.get(needle.kind, "you")
        text = f"{needle.message} ({who}, turn 1, in view):\n… {needle.answer} … {needle.words}"
        self._call("recall", {"query": needle.words}, text)
        self._call("grep", {"pattern": needle.words}, "no matches")
        self._say("assistant", "It is as said above.")

    def _keep(self, kind: str, answer: str, words: str, question: str, back: int = 1) -> None:
        self.needles.append(Needle(kind, answer, words, question, self.messages[-back].id))

    def _hex(self) -> str:
        return f"{self._chance.randrange(16**4):04x}"


class Told(msgspec.Struct, frozen=True):
    """After so many passes: the messages of facts that are among the first three by search and by recall, and those
    whose fact is in the view; the tokens of the summary with its facts."""

    passes: int
    summary: int
    searched: frozenset[str]
    recalled: frozenset[str]
    seen: frozenset[str]


async def run(folder: Path, way: Way, at: Sequence[int], seed: int = 5) -> tuple[list[Needle], list[Told]]:
    """A session in a real store, compacted by `way`; what can be had of it after these passes."""
    work, options = Haystack(seed), PlanOptions(counter=TokenCounter(), recent_results=0, keep_recent=8, keep_turns=2)
    budget = Budget(Window(128_000, "configured"), 0, 96_000, 20_000)
    told: list[Told] = []
    with Database(folder) as database:
        session = sessions.create(database)
        ledger, done = Ledger(), 0
        for number in range(1, max(at) + 1):
            start = len(work.messages)
            work.plant(PLANTED_TURNS) if number == 1 else work.turns(TURNS)
            fresh = [_in_turn(g, ledger.turn) for g in group_messages(work.messages[start:])]
            ledger = ledger.append(*fresh)
            change = way(ledger, compile(ledger, FRAME, options.counter), budget, options, f"p{number}")
            sessions.append(database, session, Sealed(tuple(fresh)), *([Changed(change)] if change else []))
            ledger, done = (ledger.apply(change), done + 1) if change else (ledger, done)
            if number in at:
                assert done == number, "a pass did not happen"
                told.append(await _told(number, database, session, ledger, options.counter, work.needles))
    return work.needles, told


async def _told(
    number: int, database: Database, session: str, ledger: Ledger, counter: TokenCounter, needles: Sequence[Needle]
) -> Told:
    recollection = Recollection(database, session)
    searched, recalled = set[str](), set[str]()
    for needle in needles:
        hits = archive.search(database, needle.words, limit=FIRST)
        if needle.message in [hit.message for hit in hits]:
            searched.add(needle.message)
        text = await recollection.search(needle.question)
        named = re.findall(r"^(m\d+) \(", text, re.M)[:FIRST]
        if needle.message in named and needle.answer in text:
            recalled.add(needle.message)
    view = compile(ledger, FRAME, counter)
    said = shown(view)
    seen = {needle.message for needle in needles if needle.answer in said}
    return Told(number, view.weights()["summary"], frozenset(searched), frozenset(recalled), frozenset(seen))


def _in_turn(group: Group, turn: int) -> Group:
    return msgspec.structs.replace(group, turn=group.turn + turn)


KINDS = ("rule", "path", "number", "command", "decision", "line in a result")


def main() -> None:
    for name, way in (("summary + evidence", summarised), ("truncation only", window_only)):
        with tempfile.TemporaryDirectory() as folder:
            needles, told = asyncio.run(run(Path(folder), way, (1, 5, 20)))
        print(f"\n{name}: {len(needles)} facts; share found")
        print(f"{'passes':>6}  {'how':<22}" + "".join(f"{kind:>18}" for kind in KINDS) + f"{'all':>9}")
        for after in told:
            for how, found in (
                ("search, first 3", after.searched),
                ("recall, first 3", after.recalled),
                ("in view", after.seen),
            ):
                row = "".join(f"{_share(found, [n for n in needles if n.kind == kind]):>18.1%}" for kind in KINDS)
                print(f"{after.passes:>6}  {how:<22}{row}{_share(found, needles):>9.1%}")
        print("in view, by weight:")
        for after in told:
            print(f"{after.passes:>6}  {_weighed(needles, after)}")
        missing = [n for n in needles if n.message not in told[-1].searched & told[-1].recalled]
        for needle in missing[:10]:
            print(f"        not found: {needle.question} ({needle.message})")


def _weighed(needles: Sequence[Needle], after: Told) -> str:
    said = [n for n in needles if n.kind != "line in a result"]
    parts = {
        "said or done": said,
        "of these come up again": [n for n in said if n.again],
        "only in a result": [n for n in needles if n.kind == "line in a result"],
    }
    shares = ", ".join(f"{name} {_share(after.seen, some):.1%}" for name, some in parts.items())
    return f"{shares}; summary {after.summary:,} tokens"


def _share(found: frozenset[str], needles: Sequence[Needle]) -> float:
    return sum(n.message in found for n in needles) / len(needles)


if __name__ == "__main__":
    main()
