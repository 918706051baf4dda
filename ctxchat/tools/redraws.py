"""Reduces a command's output to what a terminal would show at the end: of a progress bar one line remains, of colours nothing.
Knows no process."""

from __future__ import annotations

import codecs
import re

_MAX_LINES = 200
"""Lines above the last one that the command can still redraw: more than a terminal is high."""

_MAX_LINE_CHARS = 20_000
"""Characters of the last line that can still be redrawn; those before them are given out."""

_MAX_HELD_CHARS = 200_000
"""Characters of all lines together that can still be redrawn."""

_MAX_COLUMNS = 2_000
"""Columns that the cursor can be moved to."""

_TOKEN = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])"  # a control sequence: what it is given, what it does
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*([0-~])"  # titles, links, the rest
    r"|([\n\r\b])|[^\x1b\n\r\b]+|\x1b"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4000}\x1b?|[ -/]*)?\Z")


class Redraws:
    """Takes the bytes of a command's output piece by piece, and returns lines that can no longer change. `redrawn` counts how
    often text was overwritten, which is not returned."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unfinished = ""
        self._lines = [""]
        self._row = self._column = 0
        self._saved = (0, 0)
        self._moved = False
        self.redrawn = 0

    def add(self, data: bytes) -> bytes:
        """Take more output; return the lines that can no longer change."""
        text = self._unfinished + self._decoder.decode(data)
        self._unfinished = ""
        if found := _UNFINISHED.search(text, max(0, len(text) - 4100)):
            self._unfinished, text = text[found.start() :], text[: found.start()]
        at_end = self._row == len(self._lines) - 1 and self._column == len(self._lines[-1])
        if at_end and not self._moved and not re.search(r"[\x1b\r\b]", text):
            first, *more = text.split("\n")
            self._lines[-1] += first
            self._lines += more
            self._row, self._column = len(self._lines) - 1, len(self._lines[-1])
        else:
            for token in _TOKEN.finditer(text):
                self._draw(token)
        return self._settled()

    def remaining(self) -> bytes:
        """The lines not returned yet, at the end of the output."""
        return ("\n".join(self._lines) + self._decoder.decode(b"", True)).encode()

    def _settled(self) -> bytes:
        over, held = 0, sum(map(len, self._lines))
        while over < self._row and (len(self._lines) - over > _MAX_LINES or held > _MAX_HELD_CHARS):
            held -= len(self._lines[over])
            over += 1
        out = "".join(f"{line}\n" for line in self._lines[:over])
        del self._lines[:over]
        self._row -= over
        if len(self._lines) == 1 and (long := len(self._lines[0]) - _MAX_LINE_CHARS) > _MAX_LINE_CHARS:
            out += self._lines[0][:long]
            self._lines[0] = self._lines[0][long:]
            self._column = max(0, self._column - long)
        return out.encode()

    def _draw(self, token: re.Match[str]) -> None:
        given, what, other, plain = token.groups()
        if plain == "\n":
            self._go(self._row + 1, 0)
            self._moved = self._row < len(self._lines) - 1
        elif plain:
            self._go(self._row, 0 if plain == "\r" else self._column - 1)
        elif what:
            self._obey(what, given)
        elif other:
            if other == "7":
                self._save()
            elif other in "8MDE":
                steps = {"M": -1, "D": 1, "E": 1}
                self._go(*(self._saved if other == "8" else (self._row + steps[other], self._column)))
        elif not token[0].startswith("\x1b"):
            self._write_text(token[0])

    def _write_text(self, text: str) -> None:
        line = self._lines[self._row]
        if self._moved and self._column < len(line):
            self._drawn_over()
        self._lines[self._row] = line[: self._column].ljust(self._column) + text + line[self._column + len(text) :]
        self._column += len(text)
        self._moved = False

    def _obey(self, what: str, given: str) -> None:
        numbers = [int(number) if number.isdecimal() else 0 for number in given[:40].split(";")]
        first = min(numbers[0], 10_000)
        by = first or 1
        match what:
            case "A" | "F":
                self._go(self._row - by, 0 if what == "F" else self._column)
            case "B" | "E":
                self._go(min(self._row + by, len(self._lines) - 1 + _MAX_LINES), 0 if what == "E" else self._column)
            case "C" | "D":
                self._go(self._row, self._column + (by if what == "C" else -by))
            case "G":
                self._go(self._row, by - 1)
            case "H" | "f":
                self._go(min(by - 1, len(self._lines) - 1 + _MAX_LINES), (numbers[1:] or [1])[0] - 1)
            case "K":
                self._erase(first)
            case "J" if first == 0:
                self._erase(0)
                del self._lines[self._row + 1 :]
            case "J" if first == 1:
                self._erase(1)
                self._lines[: self._row] = [""] * self._row
            case "J":
                if any(self._lines):
                    self._drawn_over()
                self._lines = [""] * (self._row + 1)  # the cursor stays
            case "s" | "u":
                self._go(*self._saved) if what == "u" else self._save()
            case _:
                pass  # colours and modes

    def _erase(self, how: int) -> None:
        """Erase a part of the line: behind the cursor (0), before it (1), or all of it (2)."""
        line = self._lines[self._row]
        if (how and line.strip()) or (self._moved and self._column < len(line)):
            self._drawn_over()
        kept = {
            0: line[: self._column],
            1: " " * self._column + line[self._column + 1 :].rjust(len(line) - self._column),
        }
        self._lines[self._row] = kept.get(how, "")

    def _go(self, row: int, column: int) -> None:
        self._row = max(0, row)
        self._lines += [""] * (self._row + 1 - len(self._lines))
        self._column = max(0, min(column, max(_MAX_COLUMNS, len(self._lines[self._row]))))
        self._moved = True

    def _save(self) -> None:
        self._saved = (self._row, self._column)

    def _drawn_over(self) -> None:
        """Count an overwriting, once for each time that the cursor was moved back."""
        self.redrawn += 1
        self._moved = False
