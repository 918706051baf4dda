"""Forty questions about generated sessions in which the answer is drowned: how often the first answer of `recall` holds it.

    python -m benchmarks.retold

Long edits and whole files say the same words many times; three drafts of a text differ by a line; a person corrects in five
words; a name was changed, and is asked for in another spelling or in parts; a word is asked for in another form. Found means that
the message needed is among those whose passage one `recall` gives, with what answers in it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.history import SyntheticWork
from ctxchat.bootstrap.recall import Recollection
from ctxchat.core.grouping import group_messages
from ctxchat.core.journal import Changed, Sealed
from ctxchat.core.ledger import Change, Edit
from ctxchat.core.messages import Group, Message
from ctxchat.core.record import CompactionRecord, SideUsage
from ctxchat.storage import sessions
from ctxchat.storage.database import Database

THINGS = (
    "sidebar",
    "ledger table",
    "login page",
    "export dialog",
    "tide chart",
    "status line",
    "price list",
    "search field",
)
COLOURS = ("rgb values", "hex codes", "named colours", "theme variables")


class Asked(msgspec.Struct, frozen=True):
    """A question, the message that answers it, and what must be read there."""

    kind: str
    question: str
    message: str
    answer: str


class Retold(SyntheticWork):
    """Agent work about a few things, each with its own drafts, edits, corrections and renamed functions."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: list[Asked] = []
        self._dice = random.Random(seed)

    def about(self, number: int, thing: str) -> None:
        """One thing, from the first draft to the last correction."""
        name, new = f"draw{thing.title().replace(' ', '')}", f"paint{thing.title().replace(' ', '')}Row"
        path = f"src/{thing.replace(' ', '_')}.ts"
        self._say("user", f"Please redo the {thing}: the colours are wrong and {name} is too slow.")
        body = "\n".join(f"  {name}(row{n}, colour[{n}], width - {n}) // colours of the {thing}" for n in range(160))
        self._call("read_file", {"path": path}, body)
        for draft in range(3):
            text = "\n".join(
                f"The {thing} shows row {n} in colour {n % 7}, drawn by {name} at width {n}." for n in range(60)
            )
            self._call(
                "write_file",
                {"path": f"docs/{thing.replace(' ', '-')}.md", "content": f"{text}\nDraft {draft}."},
                "written",
            )
        self._call(
            "edit_file", {"path": path, "old": body[:3000], "new": body[:3000].replace("width", "cells")}, "edited"
        )
        colour = COLOURS[number % len(COLOURS)]
        self._say("user", f"no, use {colour} for the {thing}")
        self._keep("correction", f"Which colour notation did the user want for the {thing}?", colour)
        self._say("assistant", f"Changed all of it in the {thing}.")
        self.turns(3)
        self._say("assistant", f"I renamed {name} to {new}, since it only paints one row of the {thing}.")
        self._keep("renamed", f"What is {name.replace('draw', 'draw_').lower()} called now?", new)
        limit = self._dice.randrange(20, 900)
        self._say("user", f"keep the {thing} under {limit} ms")
        self._keep(
            "limit", f"How fast must the {thing} be, in the user's words? keeping it below what limit?", f"{limit} ms"
        )
        self.turns(2)
        seconds = self._dice.randrange(10, 90)
        self._call(
            "shell",
            {"command": f"make measure-{thing.replace(' ', '-')}"},
            f"measured the {thing}: {seconds}.4 frames dropped",
        )
        self._keep("result", f"How many frames were dropped when {thing} was measuring?", f"{seconds}.4")
        self._say("assistant", f"We decided against caching the {thing}: its rows change with every key.")
        self._keep("decision", f"Why did we decide not to cache the {thing}?", "change with every key")

    def _keep(self, kind: str, question: str, answer: str) -> None:
        self.asked.append(Asked(kind, question, self.messages[-1].id, answer))


def filled(database: Database, seed: int = 7) -> tuple[str, list[Asked]]:
    """A session with all of it, put away but for its end; and the questions."""
    work = Retold(seed)
    for number, thing in enumerate(THINGS):
        work.turns(2)
        work.about(number, thing)
    work.turns(2)
    groups = group_messages([*work.messages, Message(10**6, "user", "Go on.")])
    folded = tuple(g.id for g in groups[:-2])
    record = CompactionRecord(
        "k1", "manual", "summarize", "compacted", at="2026-01-02T03:04:05.000Z", before=SideUsage(0, 0)
    )
    summary = Group("s-k1", "summary", (Message(0, "user", "what was done"),), source="k1")
    change = Change("k1", "compaction", edits=(Edit("digest", folded, summary),), record=record)
    return sessions.create(database, records=[Sealed(tuple(groups)), Changed(change)]), work.asked


async def answered(database: Database, session: str, asked: list[Asked]) -> list[bool]:
    """For each whether the first answer of `recall` holds it."""
    recall = Recollection(database, session)
    found: list[bool] = []
    for one in asked:
        text = await recall.search(one.question)
        passage = next(
            (p for p in _passages(text) if one.message in p.split("\n", 1)[0] or f"\n{one.message} (" in p), ""
        )
        found.append(one.answer in passage)
    return found


def _passages(text: str) -> Iterator[str]:
    yield from re.split(r"\n\n(?=m\d+ \()", text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder)) as database:
        session, asked = filled(database)
        found = asyncio.run(answered(database, session, asked))
    kinds = Counter(one.kind for one in asked)
    held = Counter(one.kind for one, right in zip(asked, found, strict=True) if right)
    print(json.dumps({kind: f"{held[kind]} of {many}" for kind, many in kinds.items()}))
    print(f"{sum(found)} of {len(found)} in the first answer")
    for one, right in zip(asked, found, strict=True):
        if not right:
            print(f"  not found: {one.question} ({one.message})")


if __name__ == "__main__":
    main()
