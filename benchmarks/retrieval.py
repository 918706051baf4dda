"""How often search finds the turns that answer a question, over LoCoMo's ten long conversations.

    python -m benchmarks.retrieval [FILE] [--json] [--left-out]

FILE is LoCoMo's `locomo10.json`. Without it the file is fetched from its public repository into the system's folder for temporary
files; it is CC BY-NC and no part of this project. Each conversation is a store of its own with a session for each of its sessions
and a message for each turn, the two speakers in turn `user` and `assistant`. The question is put as it stands.

`turn recall@10`: the share of the turns that answer it among the first ten messages, categories 1 to 4. `right session`: the
first message stands in a session that holds such a turn, all categories.

`--left-out` chooses the weights instead of taking the program's: for each conversation those that do best on the other nine, each
weight by itself, and only what they do on the one left out is counted. It takes fourteen times as long.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import msgspec

from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Sealed
from ctxchat.core.messages import Message
from ctxchat.storage import archive, sessions
from ctxchat.storage.database import Database
from ctxchat.storage.ranking import WEIGHTS

ADDRESS = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json"
FIRST = 10


class Question(msgspec.Struct, frozen=True):
    """`turns` and `sessions` hold what answers it; `counted` is False for the category without an answer."""

    text: str
    turns: frozenset[tuple[str, str]]
    counted: bool

    @property
    def sessions(self) -> set[str]:
        return {session for session, _ in self.turns}


class Result(msgspec.Struct, frozen=True):
    """Of one conversation: recall of each counted question, whether the right session came first for each of all, and
    milliseconds."""

    recall: tuple[float, ...]
    session: tuple[bool, ...]
    taken: tuple[float, ...]


def load(file: Path) -> list[dict[str, object]]:
    return json.loads(file.read_text("utf-8"))


def fetched() -> Path:
    """The public file, kept among the temporary ones."""
    place = Path(tempfile.gettempdir()) / "locomo10.json"
    if not place.exists():
        with urlopen(ADDRESS, timeout=60) as answer:
            place.write_bytes(answer.read())
    return place


def fill(database: Database, conversation: dict) -> list[Question]:
    """The sessions of one conversation in the store, and its questions with ids as the store has them."""
    said, where = conversation["conversation"], {}
    names = sorted((n for n in said if re.fullmatch(r"session_\d+", n)), key=lambda n: int(n[8:]))
    for name in names:
        messages = []
        for seq, turn in enumerate(said[name], 1):
            shown = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == said["speaker_a"] else "assistant"
            messages.append(Message(seq, role, f"{turn['speaker']}: {turn['text']}{shown}"))
        session = sessions.create(database, title=name, records=[Sealed(group_messages(messages))])
        where.update({turn["dia_id"]: (session, f"m{seq}") for seq, turn in enumerate(said[name], 1)})
    questions = []
    for asked in conversation["qa"]:
        # Written by hand: "D8:6; D9:17", "D30:05", "D:11:26".
        marks = re.findall(r"D:?(\d+):0*(\d+)", " ".join(asked.get("evidence", ())))
        turns = frozenset(where[f"D{a}:{b}"] for a, b in marks if f"D{a}:{b}" in where)
        if turns:
            questions.append(Question(asked["question"], turns, asked["category"] < 5))
    return questions


def asked(database: Database, questions: Sequence[Question], **how: object) -> Result:
    """What search gives for each."""
    recall, right, taken = [], [], []
    for question in questions:
        start = time.perf_counter()
        hits = archive.search(database, question.text, limit=FIRST, **how)  # type: ignore[arg-type]
        taken.append(1000 * (time.perf_counter() - start))
        found = {(hit.session, hit.message) for hit in hits}
        if question.counted:
            recall.append(len(question.turns & found) / len(question.turns))
        right.append(bool(hits) and hits[0].session in question.sessions)
    return Result(tuple(recall), tuple(right), tuple(taken))


def summed(results: Sequence[Result]) -> dict[str, float]:
    taken = sorted(t for r in results for t in r.taken)
    return {
        "recall_at_10": round(statistics.mean(v for r in results for v in r.recall), 4),
        "right_session_first": round(statistics.mean(v for r in results for v in r.session), 4),
        "median_ms": round(statistics.median(taken), 1),
        "p95_ms": round(taken[int(0.95 * len(taken))], 1),
    }


TRIED: dict[str, Sequence[object]] = {
    "length": (0.15, 0.3, 0.5),
    "beside": ((0.5, 0.3), (0.6, 0.4), (0.7, 0.5)),
    "session": (0.4, 0.6, 0.8),
    "whole": (0.4, 0.6, 0.8),
    "together": (0.15, 0.3, 0.45),
    "named": (0.1, 0.2, 0.3),
}


def left_out(stores: Sequence[tuple[Database, Sequence[Question]]]) -> list[Result]:
    """What weights chosen on the other conversations do on each."""
    plain = [asked(*store) for store in stores]
    tried: dict[tuple[str, object], Sequence[Result]] = {}
    for name, values in TRIED.items():
        for value in values:
            weights = msgspec.structs.replace(WEIGHTS, **{name: value})
            tried[name, value] = plain if weights == WEIGHTS else [asked(*store, weights=weights) for store in stores]
    found: list[Result] = []
    for place, store in enumerate(stores):
        chosen = {
            name: max(values, key=lambda value, name=name: _worth(tried[name, value], place))
            for name, values in TRIED.items()
        }
        found.append(asked(*store, weights=msgspec.structs.replace(WEIGHTS, **chosen)))
        print(f"left out {place + 1:>2}: {chosen}", file=sys.stderr)
    return found


def _worth(results: Sequence[Result], without: int) -> float:
    """Both figures together, of all conversations but one."""
    told = summed([result for place, result in enumerate(results) if place != without])
    return told["recall_at_10"] + told["right_session_first"]


def main() -> None:
    names = [name for name in sys.argv[1:] if not name.startswith("--")]
    talks = load(Path(names[0]) if names else fetched())
    with ExitStack() as stack:
        stores = []
        for conversation in talks:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            database = stack.enter_context(Database(Path(folder)))
            stores.append((database, fill(database, conversation)))
        told = summed(left_out(stores) if "--left-out" in sys.argv else [asked(*store) for store in stores])
    print(json.dumps(told) if "--json" in sys.argv else "\n".join(f"{k:<24}{v:>8}" for k, v in told.items()))


if __name__ == "__main__":
    main()
