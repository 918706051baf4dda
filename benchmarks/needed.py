"""What the next twenty calls of a recorded session needed, and how much of it a pass left in view.

    python -m benchmarks.needed [FOLDER] [CAP]

Every recording is cut at several places. There a pass is made, and the arguments of the twenty calls that came next are looked
at: paths and symbols in them that were known before, and that nobody said in between. Those were *needed*. Counted are those in
view after the pass with no summary at all: what code keeps by itself, the person's messages and the facts in at most CAP tokens,
and the newest messages. Files read again are those that were read or changed before.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.recordings import OURS, recordings
from ctxchat.core.applying import apply_plan
from ctxchat.core.budget import Budget, Window
from ctxchat.core.call_arguments import fields_of
from ctxchat.core.grouping import group_messages
from ctxchat.core.head import Head
from ctxchat.core.ledger import Ledger
from ctxchat.core.messages import Group, Message, ToolCall
from ctxchat.core.strategies.builtin import builtin_strategies
from ctxchat.core.strategies.planning import PlanOptions
from ctxchat.core.tokens import TokenCounter
from ctxchat.core.tooluse import Use, use_of
from ctxchat.core.view import View, compile

FRAME = Head(system="You are ctxchat.")
CUTS = 8
NEXT = 20
KEEP = 12
"""Newest messages that stay."""

_PATH = re.compile(
    r"(?<![\w./~-])(?:~?/|\.{1,2}/)?(?:[\w@.-]+/)+[\w@.-]+|(?<![\w./-])[\w-]+\.(?:py|ts|tsx|js|md|json|toml|rs|go|c|h|sh|ya?ml)\b"
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|<<.*", re.DOTALL)
"""In a command: patterns, programs and texts, which name no file that is needed."""
_SYMBOL = re.compile(
    r"\b(?:[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]\w*_\w+|[A-Z][A-Z0-9]{3,})\b"
)

Need = tuple[str, str]


def needs(call: ToolCall) -> Iterator[Need]:
    """What one call names: the files it is about or its command names, and symbols in its command, its pattern or its edit."""
    fields = {
        name: value[:4_000] for name, value in (fields_of(call.arguments) or {}).items() if isinstance(value, str)
    }
    for name in ("path", "file_path", "filePath", "command"):
        for match in _PATH.finditer(_QUOTED.sub(" ", fields.get(name, ""))):
            yield "path", match.group().rstrip(".").removeprefix("./")
    for name, value in fields.items():
        for match in _SYMBOL.finditer(_PATH.sub(" ", value) if name != "content" else ""):
            yield "symbol", match.group()


def words_of(messages: Sequence[Message]) -> str:
    return "\n".join(f"{m.text}\n" + "\n".join(c.arguments for c in m.calls) for m in messages)


def holds(text: str, need: Need) -> bool:
    return re.search(rf"(?<![\w]){re.escape(need[1])}(?!\w)", text) is not None


def cuts(groups: Sequence[Group]) -> Iterator[int]:
    for number in range(1, CUTS + 1):
        yield number * len(groups) // (CUTS + 1)


def seen_after(view: View) -> str:
    folded = re.compile(r"([\w./~@+:-]+/)\{([^{}\n]*)\}")
    text = "\n".join(
        item.message.text + "\n" + "\n".join(c.arguments for c in item.message.calls) for item in view.items
    )
    return "\n".join([text, *(folder + name for folder, names in folded.findall(text) for name in names.split(", "))])


def measure(folder: Path, cap: int) -> None:
    options = PlanOptions(counter=TokenCounter(), recent_results=0, keep_recent=KEEP, evidence_tokens=cap)
    budget = Budget(Window(1_000_000, "configured"), 0, 500_000, 10)
    print(f"{'recording':<24}{'cuts':>5}{'paths':>14}{'symbols':>14}{'files again':>14}{'summary':>9}{'tail':>9}")
    for recording in recordings(folder):
        groups = group_messages(recording.messages)
        found, kept = Counter[str](), Counter[str]()
        tokens, tails, made = 0, 0, 0
        for cut in cuts(groups):
            ledger = Ledger().append(*groups[:cut])
            view = compile(ledger, FRAME, options.counter)
            plan = builtin_strategies(options)["summarize"].plan(view, ledger, budget)
            if plan is None:
                continue
            ledger = ledger.apply(apply_plan(ledger, plan, "p", options, summary="-"))
            after = compile(ledger, FRAME, options.counter)
            before, text = words_of([m for g in groups[:cut] for m in g.messages]), seen_after(after)
            made += 1
            tokens += after.weights()["summary"]
            tails += after.raw - after.weights()["summary"]
            said = ""
            calls = 0
            wanted: dict[Need, None] = {}
            again: dict[Need, None] = {}
            for group in groups[cut:]:
                for message in group.messages:
                    if message.role == "user":
                        said += message.text
                    for call in message.calls:
                        calls += 1
                        for need in needs(call):
                            if holds(before, need) and not holds(said, need):
                                wanted[need] = None
                                if use_of(call) == Use("read", need[1]):
                                    again[need] = None
                    if message.role == "tool":
                        said += message.text  # seen in between: no longer needed from before
                if calls >= NEXT:
                    break
            for need in wanted:
                found[need[0]] += 1
                kept[need[0]] += holds(text, need)
            for need in again:
                found["again"] += 1
                kept["again"] += holds(text, need)
        if made:
            row = "".join(
                f"{kept[k]:>5}/{found[k]:<4}{kept[k] / found[k] if found[k] else 1:>4.0%}"
                for k in ("path", "symbol", "again")
            )
            print(f"{recording.name[:23]:<24}{made:>5}{row}{tokens // made:>9,}{tails // made:>9,}", flush=True)


if __name__ == "__main__":
    measure(Path(sys.argv[1]) if len(sys.argv) > 1 else OURS, int(sys.argv[2]) if len(sys.argv) > 2 else 4_000)
