"""What requests cost where a provider keeps their beginning, beside an ideal client and one that rewrites its end.

    python -m benchmarks.append_only [FOLDER]

Recorded sessions (`benchmarks/recordings`, or those below FOLDER) and generated ones, said again to the real agent turn by
turn, while what stands around changes as it does when somebody works (`Moving`). Each request is priced by what it shares
with the one before: tokens of the common beginning as read, the rest as written. The *ideal* client sends the same
conversation without any note of ours and never rewrites anything; the *moving end* is a client that puts what stands around
behind the newest message and takes it away again, under the rule that only whole beginnings which were written are found.
Requests after a compaction are left out on all sides: there everybody writes anew.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.forecast import KINDS, WINDOW, generated
from benchmarks.recordings import OURS as RECORDINGS
from benchmarks.recordings import recordings
from benchmarks.replay import MEMORY, SERVERS, Replay, Turns, by_turn
from ctxchat.core.head import ContextBlock, Surroundings
from ctxchat.core.view import Item, View
from tests.agent.desk import Around

FAMILIES = {
    "Claude Fable 5.2": (0.025, 1.25),
    "Claude 5.5": (0.05, 1.25),
    "GPT-6.2": (0.05, 1.25),
    "DeepSeek": (0.03, 1.0),
    "others": (0.1, 1.0),
}
"""What a token costs that is read from the cache, and one that is written to it, in tokens of plain input."""


class Moving(Around):
    """What stands around a person at work: one more changed file every second message, a commit every twelfth, a new day
    every twentieth, a new rule in the memory file every tenth."""

    async def gather(self) -> Surroundings:
        await super().gather()
        rules = "\n".join(f"- rule {n}: look before you change" for n in range(self.asked // 10))
        text = MEMORY[0].text.replace(". ", ".\n")
        memory = (ContextBlock("AGENTS.md", f"{text}\n{rules}".strip()),)
        changed = "\n".join(f" M src/part_{n}.py" for n in range(self.asked % 12 // 2 + 1))
        workspace = ContextBlock("workspace", f"Git branch: main\nChanged files:\n{changed}")
        return Surroundings(memory, (workspace, ContextBlock("identity", f"Date: day {self.asked // 20}")))


class Read(NamedTuple):
    """A request: tokens it shares with the one before, and all others."""

    shared: int
    new: int

    def cost(self, hit: float, write: float) -> float:
        """In tokens of plain input."""
        return self.shared * hit + self.new * write


def tokens(view: View) -> int:
    """Of a whole request."""
    return sum(view.tool_tokens) + sum(item.tokens for item in view.items)


def notes(items: Sequence[Item]) -> int:
    """Tokens of what we noted ourselves."""
    return sum(item.tokens for item in items if item.kind == "note" and item.group)


def priced(views: Sequence[View]) -> tuple[list[Read], list[Read], list[Read]]:
    """Ours, the ideal client's and the moving end's requests, those after a compaction left out."""
    ours, ideal, moving = list[Read](), list[Read](), list[Read]()
    for before, now in pairwise(views):
        if now.changes != before.changes:
            continue
        same = next(
            (n for n, (a, b) in enumerate(zip(before.items, now.items, strict=False)) if a != b), len(before.items)
        )
        shared = sum(now.tool_tokens) + sum(item.tokens for item in now.items[:same])
        ours.append(Read(shared, tokens(now) - shared))
        kept, whole = tokens(before) - notes(before.items), tokens(now) - notes(now.items)
        ideal.append(Read(kept, whole - kept))
        moving.append(Read(0, whole))
    return ours, ideal, moving


async def said(turns: Turns) -> list[View]:
    """Every request of a session."""
    replay = Replay(turns, SERVERS[0], WINDOW, Moving())
    await replay.run()
    return replay.model.views


async def main(folder: Path) -> None:
    work = {f"recorded: {each.name}"[:34]: [by_turn(each.messages)] for each in recordings(folder)}
    work |= {kind.name: [generated(kind, 100 * k + n) for n in range(3)] for k, kind in enumerate(KINDS)}
    print(f"{'':<36}{'requests':>9}{'read':>7}" + "".join(f"{name:>18}" for name in FAMILIES))
    print(f"{'':<52}" + "".join(f"{'of ideal, moving':>18}" for _ in FAMILIES))
    for name, sessions in work.items():
        found = [priced(await said(turns)) for turns in sessions]
        ours, ideal, moving = ([each for session in found for each in session[way]] for way in range(3))
        if not ours:
            continue
        share = sum(each.shared for each in ours) / sum(each.shared + each.new for each in ours)
        row = f"{name:<36}{len(ours):>9}{share:>7.1%}"
        for rates in FAMILIES.values():
            best = sum(each.cost(*rates) for each in ideal)
            mine, other = (sum(each.cost(*rates) for each in way) / best for way in (ours, moving))
            row += f"{mine:>12.3f}{other:>6.1f}"
        print(row, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDINGS))
