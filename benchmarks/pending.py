"""Recorded sessions cut anywhere, also in the middle of a round: is what a pass says of open requests true?

    python -m benchmarks.pending [FOLDER] [TIMES]

At each cut all but the newest messages are folded. Which requests are open is told from the messages alone: the person's words
that no answer came after, where what is said between two rounds answers nothing. The newest must stand whole in the view,
and first in what the summary says of them; none that was answered may be among them.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.recordings import OURS, recordings
from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Budget, Window
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Message, own_words
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.summaries import earlier
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import compile

HEAD = Head(system="You are ctxchat.")
KEPT = (0, 4, 12)
"""Newest messages that stay, tried at random."""

STRATEGIES = ("summarize", "truncate", "sliding_window")
_CLAIM = "not answered as of"
_BEHIND = re.compile(r"\n\n(?:The record\.|The person's messages, word|Done last:|Facts kept exactly:)")
_NAMED = re.compile(r"^- (m\d+)\b", re.MULTILINE)


class Cut(msgspec.Struct, frozen=True):
    """What came of one: the id of the newest request where it is open, whether the summary names it, and what is wrong."""

    open: str = ""
    told: bool = False
    wrong: str = ""


def unanswered(messages: Sequence[Message]) -> list[Message]:
    """What the person said that no answer came after, the newest first."""
    said: list[Message] = []
    answered = False
    for message in messages:
        if message.role == "user":
            said = [] if answered else said
            said += [message] if own_words(message) else []
            answered = False
        elif message.role == "assistant":
            answered = not message.calls and (answered or not message.interrupted)
    return [] if answered else said[::-1]


def look(messages: Sequence[Message], strategy: str, options: PlanOptions) -> Cut | None:
    """A pass over these messages, looked at; None where there is nothing to fold."""
    ledger = Ledger().append(*group_messages(messages))
    view = compile(ledger, HEAD, options.counter)
    plan = builtin_strategies(options)[strategy].plan(
        view, ledger, Budget(Window(1_000_000, "configured"), 0, 500_000, 10)
    )
    if plan is None:
        return None
    ledger = ledger.apply(apply_plan(ledger, plan, "p", options, summary="The record."))
    summary = "".join(e.group.first.text for e in earlier(ledger) if e.group)
    named = _BEHIND.split(summary)[0].partition(_CLAIM)[2].partition("\n")[2]
    asked = unanswered(messages)
    if false := set(_NAMED.findall(named)) - {message.id for message in asked}:
        return Cut(told=True, wrong=f"called open: {', '.join(sorted(false))}")
    if not asked:
        return Cut()
    newest = asked[0]
    shown = compile(ledger, HEAD, options.counter).items
    if not any(item.message.seq == newest.seq or own_words(newest) in item.message.text for item in shown):
        return Cut(newest.id, bool(named), "it stands nowhere whole")
    first = named.partition("\n")[0]
    wrong = "" if first.startswith(f"- {newest.id}") else f"first is {first[:80]!r}"
    return Cut(newest.id, bool(named), wrong)


def cuts(messages: Sequence[Message], times: int, chance: random.Random) -> Iterator[tuple[int, str, Cut]]:
    """So many looks at random places: the messages before, the strategy, and what came of it."""
    for _ in range(times if len(messages) > 8 else 0):
        end, strategy = chance.randrange(6, len(messages)), chance.choice(STRATEGIES)
        options = PlanOptions(counter=TokenCounter(), keep_recent=chance.choice(KEPT), keep_turns=1, recent_results=0)
        if cut := look(messages[:end], strategy, options):
            yield end, strategy, cut


def main(folder: Path, times: int) -> None:
    chance = random.Random(1)
    sessions, found = 0, list[Cut]()
    for recording in recordings(folder):
        some = list(cuts(recording.messages, times, chance))
        sessions += bool(some)
        found += [cut for _, _, cut in some]
        for end, strategy, cut in some:
            if cut.wrong:
                print(
                    f"{recording.name} cut before message {end + 1}, {strategy}, open {cut.open or 'none'}: {cut.wrong}"
                )
    print(
        f"{len(found)} cuts of {sessions} sessions, {sum(bool(c.open) for c in found)} with an open request, "
        f"{sum(c.told for c in found)} told in the summary, {sum(bool(c.wrong) for c in found)} wrong"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OURS, int(sys.argv[2]) if len(sys.argv) > 2 else 6)
