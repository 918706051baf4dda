"""Numbers in sentences for people. Knows nothing of what is counted."""

from __future__ import annotations


def count(n: int, one: str, many: str = "") -> str:
    """`1 message`, `1,204 messages`. `many` where an `s` does not do."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
