"""What a call of `ctxchat.core.compact` costs in another program's loop as its conversation grows, in processor time: a call
without a compaction, a compaction by code, one with a summary (whose writer answers at once), all calls shared out, beside a way
that reads the whole record at each call. `python benchmarks/library.py`.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from ctxchat.core import Summary, compact, originals

SIZES = (100, 1_000, 5_000, 20_000)
WINDOW, COMPACTIONS = 32_000, 12
_NUMBERS = itertools.count(1)

Messages = list[dict[str, Any]]


def turn(number: int) -> Messages:
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path": "src/tide.py"}'},
    }
    return [
        {"role": "user", "content": f"question {number}: look into src/a{number % 50}.py, and never restart at night"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"line of the log {number}\n" * 40},
        {"role": "assistant", "content": f"The service is well, as it was before turn {number}. " * 5},
    ]


def write(request: list[Any]) -> str:
    return f"## Goal\n\nKeep the service well.\n\n## Done\n\n{next(_NUMBERS)} times looked into.\n"


def grown(size: int, *, by_model: bool) -> Messages:
    """A compacted list that stands for so many messages."""
    messages: Messages = [{"role": "system", "content": "You are helpful."}]
    for number in range(size // 4):
        messages += turn(number)
        if number % 50 == 49:
            messages = compact(messages, window=WINDOW, summarise=write if by_model else None)
    return messages


def measured(size: int, *, by_model: bool) -> tuple[Messages, list[float], list[float]]:
    """The list after some compactions more, milliseconds of calls without one, and of those."""
    messages = grown(size, by_model=by_model)
    calls: list[float] = []
    compactions: list[float] = []
    for number in itertools.count(size // 4):
        for message in turn(number):
            messages.append(message)
            had_one = any(isinstance(m, Summary) for m in messages)
            began = time.process_time()
            after = compact(messages, window=WINDOW, summarise=write if by_model else None)
            spent = (time.process_time() - began) * 1000
            if len(after) == len(messages):
                calls.append(spent)
            elif had_one:  # the first has everything to look through
                compactions.append(spent)
            messages = after
        if len(compactions) == COMPACTIONS:
            return messages, calls, compactions
    raise AssertionError


def main() -> None:
    heads = ("messages", "in the list", "no compaction", "by code", "with a summary", "mean", "whole record")
    print("".join(f"{head:>16}" for head in heads), "(ms)")
    for size in SIZES:
        messages, calls, by_code = measured(size, by_model=False)
        with_summary = measured(size, by_model=True)[2]
        record = originals(messages)
        began = time.process_time()
        compact(record, window=10**9)
        naive = (time.process_time() - began) * 1000
        mean = statistics.mean(calls + by_code)
        no, code, summary = map(statistics.median, (calls, by_code, with_summary))
        print(
            f"{size:>16}{len(messages):>16}{no:>16.1f}{code:>16.0f}{summary:>16.0f}{mean:>16.1f}{naive:>16.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
