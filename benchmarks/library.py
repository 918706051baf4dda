"""What a call of `ctxchat.core.compact` costs in another program's loop as its conversation grows, in processor time: a call with
nothing to do, a pass, and both shared out over all calls, beside a way that reads the whole record at each call.
`python benchmarks/library.py`.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from ctxchat.core import compact, originals

SIZES = (100, 1_000, 5_000, 20_000)
WINDOW, TURNS = 32_000, 60

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


def grown(size: int) -> Messages:
    """A compacted list that stands for so many messages."""
    messages: Messages = [{"role": "system", "content": "You are helpful."}]
    for number in range(size // 4):
        messages += turn(number)
        if number % 50 == 49:
            messages = compact(messages, window=WINDOW)
    return messages


def main() -> None:
    print(
        f"{'messages':>9} {'in the list':>12} {'no pass, ms':>12} {'a pass, ms':>11} {'mean, ms':>9} {'whole record, ms':>17}"
    )
    for size in SIZES:
        messages = grown(size)
        calls: list[float] = []
        passes: list[float] = []
        for number in range(size // 4, size // 4 + TURNS):
            for message in turn(number):
                messages.append(message)
                began = time.process_time()
                after = compact(messages, window=WINDOW)
                (passes if len(after) < len(messages) else calls).append((time.process_time() - began) * 1000)
                messages = after
        record = originals(messages)
        began = time.process_time()
        compact(record, window=10**9)
        naive = (time.process_time() - began) * 1000
        mean = statistics.mean(calls + passes)
        median, one = statistics.median(calls), statistics.median(passes or [0])
        print(f"{size:>9} {len(messages):>12} {median:>12.1f} {one:>11.0f} {mean:>9.1f} {naive:>17.0f}")


if __name__ == "__main__":
    main()
