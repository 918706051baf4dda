"""What survives of the facts of recorded conversations after 1, 3 and 10 passes, side by side with summary only and truncation.

    python -m benchmarks.recorded [FOLDER]

The recordings follow one another as one long session, cut into ten stretches with a pass after each. Facts are looked for by
patterns of this file alone, which share nothing with those of the ledger, in everything that has left the view as it was; a fact
is kept where its exact text is in the view. The summary is the offline assistant's. Paths that only stood in a tool's output are
`listed`. Two tables: the usual cap, and one in which every fact has room.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from benchmarks.evidence import FRAME, WAYS, Way, shown
from benchmarks.recordings import OURS, Recording, recordings
from ctxchat.core.budget import Budget, Window
from ctxchat.core.facts import plain
from ctxchat.core.grouping import group_messages
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.view import View, compile

KINDS = ("paths", "listed", "numbers", "commands", "errors", "decisions")
STRETCHES = 10
WINDOW = 64_000
USUAL = PlanOptions().facts_max_tokens
AMPLE = 32_000

_ADDRESS = re.compile(r"\w+://\S+")
_PATH = re.compile(r"(?<![\w./@:-])(?:[\w.~-]+/|/)(?:[\w.@-]+/)*[\w@-][\w.@-]*\.[A-Za-z]{1,5}(?![\w/])")
_NUMBER = re.compile(
    r"(?<![\w.,$])(?:\$\d+(?:,\d{3})*(?:\.\d+)?|\d+(?:,\d{3})*(?:\.\d+)?"
    r"(?:%| ?(?:ms|seconds?|minutes?|hours?|days?|KB|MB|GB|bytes|bits)"
    r"| (?:passed|failed|tests?|lines?|files?|matches|rows|items|warnings?|errors?|attempts?))\b(?!:))"
)
_SHOWN = re.compile(r"^```.*?^```|^>[^\n]*", re.MULTILINE | re.DOTALL)
"""What somebody quotes or shows, and does not say."""
_LOOKS = re.compile(r"(?:ls|cat|head|tail|grep|rg|find|wc|git (?:log|status|diff|show))\b")
"""A command that only looks around."""
_ERROR = re.compile(r"^(?:E +)?(?:[A-Za-z_]+\.)*[A-Z]\w*(?:Error|Exception)\b: .+$", re.MULTILINE)
_DECISION = re.compile(
    r"[^.!?\n]*\b(?:decided|settled on|will go with|going with|let's use|I'll use|we'll use|chose)\b[^.!?\n]*"
)
LONG = 200
"""Of a command or an error longer than this its beginning is looked for."""

Found = tuple[str, str]
"""A kind and the exact text."""


def facts(message: Message) -> Iterator[Found]:
    """What one message says or does that should be known exactly later."""
    for call in message.calls:
        command = _argument(call.arguments, "command")
        if command and not _LOOKS.match(command):
            yield "commands", _exact(command)
        yield from (("paths", path) for path in _PATH.findall(_ADDRESS.sub(" ", command)))
        path = _argument(call.arguments, "path") or _argument(call.arguments, "file_path")
        if path:
            yield "paths", path
    if message.role == "tool":
        text = _ADDRESS.sub(" ", message.text)
        yield from (("listed", match.group()) for match in _PATH.finditer(text))
        yield from (("errors", _exact(match.group())) for match in _ERROR.finditer(text))
        return
    text = _ADDRESS.sub(" ", _SHOWN.sub(" ", message.text))
    yield from (("paths", match.group()) for match in _PATH.finditer(text))
    yield from (("numbers", plain(match.group())) for match in _NUMBER.finditer(text))
    yield from (("decisions", _exact(match.group())) for match in _DECISION.finditer(text))


def _argument(arguments: str, name: str) -> str:
    try:
        fields = json.loads(arguments)
    except ValueError:
        return ""
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, str) else ""


def _exact(text: str) -> str:
    return plain(text)[:LONG]


def stretches(groups: tuple[Group, ...]) -> Iterator[tuple[Group, ...]]:
    """The groups in ten parts of about as many."""
    for number in range(STRETCHES):
        yield groups[number * len(groups) // STRETCHES : (number + 1) * len(groups) // STRETCHES]


def joined(found: Iterable[Recording]) -> tuple[Group, ...]:
    """The recordings as one session: somebody who goes from task to task."""
    messages: list[Message] = []
    for recording in found:
        for message in recording.messages:
            messages.append(msgspec.structs.replace(message, seq=len(messages) + 1, original=""))
    return group_messages(messages)


def run(
    groups: tuple[Group, ...], way: Way, evidence_tokens: int, at: Iterable[int]
) -> dict[int, tuple[Counter[str], Counter[str], int]]:
    """After these passes: facts that left the view by kind, how many of them it holds, and the tokens of the summary."""
    options = PlanOptions(
        counter=TokenCounter(), recent_results=0, facts_max_tokens=evidence_tokens, keep_recent=2, keep_turns=1
    )
    budget = Budget(Window(WINDOW * (1 if evidence_tokens <= USUAL else 8), "configured"), 0, WINDOW // 2, 0)
    ledger, told = Ledger(), {}
    for number, part in enumerate(stretches(groups), 1):
        ledger = ledger.append(*part)
        change = way(ledger, compile(ledger, FRAME, options.counter), budget, options, f"p{number}")
        ledger = ledger.apply(change) if change else ledger
        if number in at:
            told[number] = kept(ledger, compile(ledger, FRAME, options.counter))
    return told


def kept(ledger: Ledger, view: View) -> tuple[Counter[str], Counter[str], int]:
    gone = {name for change in ledger.changes for edit in change.edits for name in edit.covers}
    all_of_it = {fact for group in ledger.groups if group.id in gone for m in group.messages for fact in facts(m)}
    all_of_it -= {("listed", fact) for kind, fact in all_of_it if kind == "paths"}
    text = plain(" ".join([shown(view), *(word for i in view.items for word in _spoken(i.message))]))
    found = {(kind, fact) for kind, fact in all_of_it if _holds(text, fact)}
    return Counter(kind for kind, _ in all_of_it), Counter(kind for kind, _ in found), view.weights()["summary"]


def _spoken(message: Message) -> Iterator[str]:
    for call in message.calls:
        yield _argument(call.arguments, "command")


def _holds(text: str, fact: str) -> bool:
    """Not as a part of a longer word or number."""
    return re.search(rf"(?<![\w$]){re.escape(fact)}", text) is not None


def main(folder: Path) -> None:
    found = recordings(folder)
    session = joined(found)
    weighed = [TokenCounter().message(m) for group in session for m in group.messages]
    print(f"{len(found)} recordings, {len(weighed):,} messages, {sum(weighed):,} tokens")
    whole: Counter[str] = Counter()
    for cap in (USUAL, AMPLE):
        print(f"\nledger capped at {cap:,} tokens; share of the facts that left the view and are in it word for word")
        print(f"{'way':<22}{'passes':>7}" + "".join(f"{k:>11}" for k in KINDS) + f"{'summary':>10}")
        for name, way in WAYS.items():
            for passes, (whole, held, tokens) in run(session, way, cap, (1, 3, 10)).items():
                row = "".join(f"{held[k] / whole[k]:>10.1%} " if whole[k] else f"{'–':>10} " for k in KINDS)
                print(f"{name:<22}{passes:>7}{row}{tokens:>10,}", flush=True)
        print(f"{'facts in all':<29}" + "".join(f"{whole[k]:>10,} " for k in KINDS))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OURS)
