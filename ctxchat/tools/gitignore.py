"""The rules of one `.gitignore` file, as git reads them (gitignore(5)). Whoever wrote the file, a path is looked at in time that
grows with the lengths of pattern and path, and no faster.

One entry is asked about at a time, from the top down: whoever walks leaves out what is below a folder that is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

MAX_RULES = 2_000
"""Of one file; those behind them do not count."""

MAX_RULE_CHARS = 1_000

Segment = re.Pattern[str] | None
"""What one name of a path has to be; None for any number of names (`**`)."""

_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\s",
    "xdigit": "0-9a-fA-F",
    "punct": r"!-/:-@\[-`{-~",
}


class IgnoreRule(msgspec.Struct, frozen=True):
    """One rule of an ignore file. `takes_in` includes again what an earlier rule excludes; `segments` of a single name match at
    any depth."""

    segments: tuple[Segment, ...]
    takes_in: bool
    folders_only: bool
    anywhere: bool

    def matches(self, names: Sequence[str], is_folder: bool) -> bool:
        """Whether it speaks of this entry, by the names on the way to it."""
        if self.folders_only and not is_folder:
            return False
        if self.anywhere:
            only = self.segments[0]
            return only is None or only.fullmatch(names[-1]) is not None
        return _matches(self.segments, names)


class GitIgnore(msgspec.Struct, frozen=True):
    """Rules in the order of their lines."""

    rules: tuple[IgnoreRule, ...]

    def ignores(self, path: str, is_folder: bool) -> bool | None:
        """The verdict of the last rule that matches a path (relative to the file's folder, with `/`); None if none does."""
        names = path.split("/")
        return next((not rule.takes_in for rule in reversed(self.rules) if rule.matches(names, is_folder)), None)


def parse_gitignore(lines: Iterable[str]) -> GitIgnore:
    """The rules in these lines; one that is broken costs itself only."""
    rules: list[IgnoreRule] = []
    for line in lines:
        if len(rules) >= MAX_RULES:
            break
        if len(line) <= MAX_RULE_CHARS and (rule := _rule(line)):
            rules.append(rule)
    return GitIgnore(tuple(rules))


def _rule(line: str) -> IgnoreRule | None:
    line = line.rstrip("\r\n")
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    takes_in = line.startswith("!")
    pattern = line[takes_in:]
    folders_only = pattern.endswith("/")
    pattern = pattern[:-1] if folders_only else pattern
    anywhere = "/" not in pattern
    parts = pattern.removeprefix("/").split("/")
    if not all(parts):
        return None  # nothing, or `//`, which no path has
    try:
        segments = [None if part == "**" else _segment(part) for part in parts]
    except ValueError:
        return None
    if segments[-1] is None and not anywhere:
        segments.append(re.compile(r"[^/]+"))  # all that is inside, not the folder itself
    return IgnoreRule(tuple(segments), takes_in, folders_only, anywhere)


def _matches(segments: Sequence[Segment], names: Sequence[str]) -> bool:
    """Whether names are what segments say. Behind a `**` the first place where what follows fits is the right one, so there is
    only one to go back to."""
    at = place = 0
    wide, tried = -1, 0
    while place < len(names):
        segment = segments[at] if at < len(segments) else ...
        if segment is None:
            wide, tried, at = at, place, at + 1
        elif segment is not ... and segment.fullmatch(names[place]):
            at, place = at + 1, place + 1
        elif wide >= 0:
            tried += 1
            at, place = wide + 1, tried
        else:
            return False
    return all(segment is None for segment in segments[at:])


_PIECES = re.compile(r"(?P<stars>\*+)|(?P<one>\?)|\\(?P<escaped>.)|(?P<open>\[)|(?P<plain>[^*?\\\[]+)", re.DOTALL)


def _segment(part: str) -> re.Pattern[str]:
    """A segment of a pattern as a regular expression without exponential backtracking: what stands between two stars matches
    where it fits first (an atomic group), and only what follows the last star is matched from the end."""
    runs: list[str] = [""]
    at = 0
    while at < len(part):
        found = _PIECES.match(part, at)
        if not found:
            raise ValueError(part)  # a backslash at the end
        at = found.end()
        if found["stars"]:
            runs += [""] if runs[-1] or len(runs) == 1 else []
        elif found["open"]:
            text, at = _bracket(part, at)
            runs[-1] += text
        else:
            runs[-1] += "." if found["one"] else re.escape(found["escaped"] or found["plain"])
    first, *more = runs
    if not more:
        return re.compile(first, re.DOTALL)
    between = "".join(f"(?>.*?{run})" for run in more[:-1])
    return re.compile(f"{first}{between}.*{more[-1]}", re.DOTALL)


def _bracket(part: str, at: int) -> tuple[str, int]:
    """The set behind a `[`, and where it ends. Raises ValueError for one that does not end."""
    negated = part[at : at + 1] in {"!", "^"}
    at += negated
    said = ""
    first = True
    while at < len(part):
        if part[at] == "]" and not first:
            if not said:
                raise ValueError(part)
            return f"[{'^' * negated}{said}]", at + 1
        first = False
        if part.startswith("[:", at) and (end := part.find(":]", at)) > 0:
            said += _CLASSES.get(part[at + 2 : end], "")
            at = end + 2
            continue
        low, at = _one_of(part, at)
        if part[at : at + 1] == "-" and part[at + 1 : at + 2] not in {"", "]"}:
            high, at = _one_of(part, at + 1)
            said += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
        else:
            said += re.escape(low)
    raise ValueError(part)


def _one_of(part: str, at: int) -> tuple[str, int]:
    at += part[at] == "\\"
    if at >= len(part):
        raise ValueError(part)
    return part[at], at + 1
