"""Vi's commands over a text: which keys make one, and what it does to text and cursor. Pure; knows no widget.

Motions, operators with counts and objects, one register; no visual mode, no search, no repeat.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Span = Literal["exclusive", "inclusive", "lines"]
Verb = Literal["", "undo", "redo", "up", "down"]

_VI_WORD = re.compile(r"\w+|[^\w\s]+|(?<=\n)(?=\n)")
"""Words, runs of signs, and empty lines: where `w` and `b` stop."""

_PAIRS = {
    **{sign: pair for pair in ("()", "[]", "{}", "<>") for sign in pair},
    "b": "()",
    "B": "{}",
    **{q: q * 2 for q in "\"'`"},
}
_KEYS = re.compile(
    r"""(?P<count>[1-9]\d*)?
    (?: (?P<operator>[dcy]) (?P<more>[1-9]\d*)?
        (?: (?P<line>(?P=operator)) | (?P<motion>[hljk0^$wbeG]|gg|[fFtT].) | (?P<object>[ia][w()\[\]{}<>bB"'`]) )
      | (?P<move>[hl0^$wbeGjk]|gg|[fFtT].)
      | (?P<command>[iaIAoOxXDCsSYpPuJ~]|r.) )""",
    re.X | re.S,
)
_BEGUN = re.compile(r"([1-9]\d*)?(?:[dcy]([1-9]\d*)?[gfFtTia]?|[grfFtT])?")

_SHORT = {"x": "dl", "X": "dh", "D": "d$", "C": "c$", "s": "cl", "S": "cc", "Y": "yy"}
"""Commands that are others, written shorter."""


class KeyResult(msgspec.Struct, frozen=True):
    """The effect of a key: the text between two positions replaced, the cursor moved, or a `verb` that the editor carries out."""

    cursor: int | None = None
    change: tuple[int, int, str] | None = None
    verb: Verb = ""


NOTHING_DONE = KeyResult()


class ViKeys:
    """The keys so far, the register, and whether keys are commands (`normal`) or text."""

    def __init__(self) -> None:
        self.normal = False
        self._keys = ""
        self._register = ""  # whole lines end in a line end

    def press(self, key: str, character: str, text: str, at: int) -> KeyResult | None:
        """Handle a key with the cursor before the character `at`; None if vi does not use it."""
        if not self.normal:
            if key != "escape":
                return None
            self.normal = True
            return KeyResult(max(_line_start(text, at), at - 1))
        if key == "escape":
            had, self._keys = self._keys, ""
            return NOTHING_DONE if had else None
        if key == "ctrl+r":
            return KeyResult(verb="redo")
        character = {"backspace": "h", "space": "l"}.get(key, character)
        if len(character) != 1 or not character.isprintable():
            return None
        self._keys += character
        if whole := _KEYS.fullmatch(self._keys):
            self._keys = ""
            return self._apply_keys(whole, text, at)
        if not _BEGUN.fullmatch(self._keys):
            self._keys = ""
        return NOTHING_DONE

    def _apply_keys(self, keys: re.Match[str], text: str, at: int) -> KeyResult:
        times = int(keys["count"] or 1) * int(keys["more"] or 1)
        counted = bool(keys["count"] or keys["more"])
        if command := keys["command"]:
            if command in _SHORT:
                short = _KEYS.fullmatch(f"{keys['count'] or ''}{_SHORT[command]}")
                assert short is not None
                return self._apply_keys(short, text, at)
            return self._command(command, times, text, at)
        if move := keys["move"]:
            if move in "jk" and not counted:
                return self._up_or_down(move, text, at)
            found = _motion(move, times if counted else None, text, at)
            return NOTHING_DONE if found is None else KeyResult(_on_line(text, found[0]))
        operator = keys["operator"]
        if keys["line"]:
            last = at
            if times > 1 and _line_end(text, at) == len(text):
                return NOTHING_DONE
            for _ in range(times - 1):
                last = min(len(text), _line_end(text, last) + 1)
            return self._operate(operator, at, last, "lines", text)
        what, counting = keys["object"], times if counted else None
        taken = _object(what, text, at) if what else _reach(operator, keys["motion"], counting, text, at)
        if taken is None:
            writes = (
                operator == "c"
                and (what or keys["motion"]) in {"iw", "aw", "w", "e", "l", "$"}
                and _line_start(text, at) == _line_end(text, at)
            )
            self.normal = not writes  # an empty line is changed by writing into it
            return NOTHING_DONE
        return self._operate(operator, *taken, text)

    @staticmethod
    def _up_or_down(move: str, text: str, at: int) -> KeyResult:
        found = _motion(move, None, text, at)
        return KeyResult(verb="up" if move == "k" else "down") if found is None else KeyResult(_on_line(text, found[0]))

    def _operate(self, operator: str, at: int, to: int, span: Span, text: str) -> KeyResult:
        start, end = min(at, to), max(at, to)
        if span == "lines":
            start, end = _line_start(text, start), _line_end(text, end)
            self._register = text[start:end] + "\n"
            if operator == "d":
                whole = (start, end + 1) if end < len(text) else (max(0, start - 1), end)
                left = text[: whole[0]] + text[whole[1] :]
                place = min(start, len(left))
                return KeyResult(_first_sign(left, _line_start(left, place)), (*whole, ""))
        else:
            end = min(len(text), end + (span == "inclusive"))
            if start == end and operator != "c":
                return NOTHING_DONE
            self._register = text[start:end]
        if operator == "y":
            return KeyResult(min(at, to))
        self.normal = operator != "c"
        left = text[:start] + text[end:]
        return KeyResult(start if operator == "c" else _on_line(left, start), (start, end, ""))

    def _command(self, command: str, times: int, text: str, at: int) -> KeyResult:
        start, end = _line_start(text, at), _line_end(text, at)
        match command[0]:
            case "i" | "a" | "I" | "A":
                self.normal = False
                indent = len(text[start:end]) - len(text[start:end].lstrip())
                return KeyResult({"i": at, "a": min(end, at + 1), "I": start + indent, "A": end}[command])
            case "o":
                self.normal = False
                return KeyResult(end + 1, (end, end, "\n"))
            case "O":
                self.normal = False
                return KeyResult(start, (start, start, "\n"))
            case "u":
                return KeyResult(verb="undo")
            case "p" | "P":
                return self._put(command == "p", times, text, at)
            case "J":
                return _join_lines(max(2, times), text, at)
            case "~":
                to = min(end, at + times)
                return KeyResult(_on_line(text, to), (at, to, text[at:to].swapcase()))
            case _:  # r and the letter that is put in the place of others
                if at + times > end:
                    return NOTHING_DONE
                return KeyResult(at + times - 1, (at, at + times, command[1] * times))

    def _put(self, after: bool, times: int, text: str, at: int) -> KeyResult:
        put = self._register * times
        if not put:
            return NOTHING_DONE
        if put.endswith("\n") and after:
            end = _line_end(text, at)
            return KeyResult(_first_sign(put, 0) + end + 1, (end, end, "\n" + put[:-1]))
        if put.endswith("\n"):
            start = _line_start(text, at)
            return KeyResult(start + _first_sign(put, 0), (start, start, put))
        place = min(_line_end(text, at), at + after)
        return KeyResult(place if "\n" in put else place + len(put) - 1, (place, place, put))


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _first_sign(text: str, start: int) -> int:
    """The first place of a line that is no blank, the end of a line without one."""
    end = _line_end(text, start)
    line = text[start:end]
    return start + len(line) - len(line.lstrip()) if line.strip() else max(start, end - 1)


def _on_line(text: str, at: int) -> int:
    """The nearest position allowed in normal mode: on a character, not behind the last one of a line."""
    at = max(0, min(at, len(text)))
    return max(_line_start(text, at), min(at, _line_end(text, at) - 1))


def _motion(name: str, times: int | None, text: str, at: int, *, operated: bool = False) -> tuple[int, Span] | None:
    """The position that a motion leads to, and the range that an operator would take; None if it leads nowhere."""
    start, end, n = _line_start(text, at), _line_end(text, at), times or 1
    match name[0]:
        case "h":
            return (max(start, at - n), "exclusive") if at > start else None
        case "l":
            last = end if operated else max(start, end - 1)
            return (min(last, at + n), "exclusive") if at < last else None
        case "0":
            return start, "exclusive"
        case "^":
            return _first_sign(text, start), "exclusive"
        case "$":
            return max(start, end - 1), "inclusive" if end > start else "exclusive"
        case "w":
            starts = [word.start() for word in _VI_WORD.finditer(text) if word.start() > at]
            return (starts[n - 1] if n <= len(starts) else len(text), "exclusive") if at < len(text) else None
        case "b":
            starts = [word.start() for word in _VI_WORD.finditer(text, 0) if word.start() < at]
            return (starts[-n] if n <= len(starts) else 0, "exclusive") if at else None
        case "e":
            ends = [word.end() - 1 for word in _VI_WORD.finditer(text) if word.end() - 1 > at and word[0]]
            return (
                (ends[n - 1] if n <= len(ends) else len(text) - 1, "inclusive") if ends or at < len(text) - 1 else None
            )
        case "g" | "G":
            first = times if times else 1 if name == "gg" else text.count("\n") + 1
            place = 0
            for _ in range(first - 1):
                place = min(len(text), _line_end(text, place) + 1)
            return _first_sign(text, _line_start(text, place)), "lines"
        case "j" | "k":
            return _lines_away(n if name == "j" else -n, text, at)
        case _:
            return _found(name, n, text, at)


def _reach(operator: str, motion: str, times: int | None, text: str, at: int) -> tuple[int, int, Span] | None:
    """The range that an operator takes with a motion: it ends before the cursor's new position if that is in another line."""
    words = [word for word in _VI_WORD.finditer(text) if word.end() > at and word[0]]
    if operator == "c" and motion == "w" and text[at : at + 1].strip():
        return at, words[min(times or 1, len(words)) - 1].end() - 1, "inclusive"
    found = _motion(motion, times, text, at, operated=True)
    if found is None and motion == "e" and at < len(text):
        found = len(text) - 1, "inclusive"
    if found is None:
        return None
    to, span = found
    start, end = min(at, to), max(at, to)
    last = (
        max((word.start() for word in _VI_WORD.finditer(text) if word.start() < end), default=0)
        if motion == "w"
        else end
    )
    if "\n" in text[max(start, last) : end]:  # the last word of a line takes no line end along
        end = _line_end(text, max(start, last))
        span = "lines" if end == start else span
    elif span == "exclusive" and "\n" in text[start:end] and _line_start(text, end) == end:
        end -= 1
        span = "exclusive" if text[_line_start(text, start) : start].strip() else "lines"
    if operator == "d" and span != "lines" and "\n" in text[start:end]:
        around = text[_line_start(text, start) : start] + text[end + (span == "inclusive") : _line_end(text, end)]
        span = span if around.strip() else "lines"
    return start, end, span


def _lines_away(by: int, text: str, at: int) -> tuple[int, Span] | None:
    lines = text.split("\n")
    row, column = text.count("\n", 0, at), at - _line_start(text, at)
    to = max(0, min(row + by, len(lines) - 1))
    if to == row:
        return None
    return sum(len(line) + 1 for line in lines[:to]) + min(column, max(0, len(lines[to]) - 1)), "lines"


def _found(name: str, n: int, text: str, at: int) -> tuple[int, Span] | None:
    """`fx`, `tx`, `Fx`, `Tx`: the n-th such letter of the line, or the place before it."""
    start, end = _line_start(text, at), _line_end(text, at)
    place, wanted = at, name[1]
    for _ in range(n):
        place = text.find(wanted, place + 1, end) if name[0] in "ft" else text.rfind(wanted, start, place)
        if place < 0:
            return None
    place += {"t": -1, "T": 1}.get(name[0], 0)
    return place, "inclusive" if name[0] in "ft" else "exclusive"


def _object(what: str, text: str, at: int) -> tuple[int, int, Span] | None:
    """`iw`, `a"`, `i(` …: from where to where."""
    start, end = _line_start(text, at), _line_end(text, at)
    if what[1] == "w":
        run = next((m for m in re.finditer(r"\w+|[^\w\s]+|\s+", text[start:end]) if m.end() > at - start), None)
        if run is None:
            return None
        first, last = start + run.start(), start + run.end()
        if what[0] == "a" and run[0].isspace():  # with the word behind them
            word = re.compile(r"\w+|[^\w\s]+").match(text, last)
            return (first, word.end(), "exclusive") if word else None
        return (*(_with_blanks(text, first, last) if what[0] == "a" else (first, last)), "exclusive")
    opening, closing = _PAIRS[what[1]]
    quoted = opening == closing
    between = _quoted(opening, text, start, end, at) if quoted else _bracketed(opening, closing, text, at)
    if between is None:
        return None
    if what[0] == "i":
        return between[0] + 1, between[1] - 1, "exclusive"
    return (*(_with_blanks(text, *between) if quoted else between), "exclusive")


def _with_blanks(text: str, first: int, last: int) -> tuple[int, int]:
    """And the blanks behind it, else those before it that are no indent."""
    start, end = _line_start(text, first), _line_end(text, last)
    behind = len(text[last:end]) - len(text[last:end].lstrip())
    before = text[start:first]
    return (first, last + behind) if behind else (start + len(before.rstrip()) if before.strip() else first, last)


def _quoted(quote: str, text: str, start: int, end: int, at: int) -> tuple[int, int] | None:
    opens = text[at : at + 1] == quote and text.count(quote, start, at) % 2 == 0
    first = at if opens else text.rfind(quote, start, at)
    first = text.find(quote, at, end) if first < 0 else first
    last = text.find(quote, first + 1, end) if first >= 0 else -1
    return None if last < 0 else (first, last + 1)


def _bracketed(opening: str, closing: str, text: str, at: int) -> tuple[int, int] | None:
    """The innermost pair around a place, its signs included."""
    depth, first = 0, -1
    for place in range(at, -1, -1):
        depth += (text[place : place + 1] == closing and place != at) - (text[place : place + 1] == opening)
        if depth < 0:
            first = place
            break
    first = text.find(opening, at, _line_end(text, at)) if first < 0 else first
    if first < 0:
        return None
    depth = 0
    for place in range(first, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if not depth:
            return first, place + 1
    return None


def _join_lines(lines: int, text: str, at: int) -> KeyResult:
    """The line of the cursor and those below it as one, with a blank between them."""
    start, end = _line_start(text, at), _line_end(text, at)
    if end == len(text):
        return NOTHING_DONE
    whole, cursor = text[start:end], end
    for _ in range(lines - 1):
        if end == len(text):
            break
        below = _line_end(text, end + 1)
        more = text[end + 1 : below].lstrip()
        glue = "" if not more or more[0] == ")" or not whole or whole[-1].isspace() else " "
        cursor, whole, end = start + len(whole), whole + glue + more, below
    return KeyResult(min(cursor, start + max(0, len(whole) - 1)), (start, end, whole))
