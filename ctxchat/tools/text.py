"""Texts: sizes in words, and cuts that say how much they left out. Knows no files."""

from __future__ import annotations

from collections import deque

from ctxchat.core.clip import NUMBERED_LINES


def line_break(text: str) -> str:
    """The line end of a text: a carriage return if it has nothing else (as on old Macs), else a newline."""
    return "\r" if "\r" in text and "\n" not in text else "\n"


def size(count: int) -> str:
    """Bytes for people: `512 bytes`, `1.4 MB`."""
    if count < 1000:
        return f"{count} bytes"
    for power, unit in enumerate(("kB", "MB", "GB"), start=1):
        if count < 1000 ** (power + 1) or unit == "GB":
            return f"{count / 1000**power:.1f} {unit}"
    raise AssertionError


def clip(text: str, limit: int) -> str:
    """Head and tail of a text of more than `limit` characters, with a line between them that counts what is missing."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[len(text) - tail :]}"


_CUT_MARK_CHARS = 20
"""Characters that the mark of a cut takes, about: where no more would be missing, they are shown."""


def clip_line(line: str, limit: int, at: int = 0) -> str:
    """A line of at most about `limit` characters around position `at`, with marks that count the characters missing."""
    if len(line) <= limit:
        return line
    start = max(0, min(at - limit // 4, len(line) - limit))
    start, end = start if start > _CUT_MARK_CHARS else 0, start + limit
    end = end if len(line) - end > _CUT_MARK_CHARS else len(line)
    before = f"[{start:,} characters …]" if start else ""
    after = f"[… {len(line) - end:,} characters]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def numbered(number: int, first: int, line: str) -> str:
    """A line of a file as models see it, behind its number where it is the `first` one shown or has a round one; an empty one
    without a number is left empty."""
    own = number == first or number % NUMBERED_LINES == 0
    return f"{number if own else ''}\t{line}" if own or line else ""


def without_zeros(text: str) -> str:
    """The text with a sign in place of each zero, at which some servers end a text and others refuse it."""
    return text.replace("\0", "\ufffd")


class HeadTail:
    """Bytes that come in without end, of which the first two thirds of `cap` and the last third are kept."""

    def __init__(self, cap: int) -> None:
        self._head = bytearray()
        self._head_cap, self._tail_cap = cap - cap // 3, cap // 3
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take in a piece."""
        self.total += len(data)
        room = self._head_cap - len(self._head)
        self._head += data[:room] if room > 0 else b""
        rest = data[room:] if room > 0 else data
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_cap:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """The kept text, with a line in the middle that says how much is missing."""
        tail = b"".join(self._tail)
        if len(self._head) + len(tail) == self.total and len(tail) <= self._tail_cap:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        tail = tail[-self._tail_cap :] if self._tail_cap else b""
        head = bytes(self._head[: boundary(self._head, len(self._head))])
        tail = tail[next_start(tail) :]
        left_out = self.total - len(head) - len(tail)
        return (
            head.decode("utf-8", "replace") + f"\n[… {size(left_out)} left out …]\n" + tail.decode("utf-8", "replace")
        )


def boundary(data: bytes | bytearray, end: int) -> int:
    """The last place at or before `end` where no UTF-8 character is cut in two."""
    for back in range(1, min(4, end) + 1):
        byte = data[end - back]
        if byte & 0xC0 == 0x80:
            continue
        width = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return end if width <= back else end - back
    return end


def next_start(data: bytes) -> int:
    """The first place where a UTF-8 character begins (at most three bytes in)."""
    return next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), min(3, len(data)))
