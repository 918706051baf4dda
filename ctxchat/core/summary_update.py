"""What changes in a record, put into it by headings, so that a summariser need not write again what still holds."""

from __future__ import annotations

import re

from ctxchat.core.tokens import Count

SECTIONS = (
    "Goal",
    "Constraints and rules",
    "Decisions",
    "Progress",
    "Failed attempts",
    "Files",
    "Next steps",
    "Exact identifiers",
)
"""The headings of a record, in their order."""

MIN_SECTIONS = 3
"""Of these headings, how many a text has that was written as a record."""

MAX_FILLED_SHARE = 0.8
"""Of its room, what a record may fill that is added to; a fuller one is written anew, in fewer words."""

MAX_UPDATE_SHARE = 0.4
"""Of the room, what an update may take at most."""

_HEADING = re.compile(r"^#{1,3} +(.+?) *:? *$", re.MULTILINE)
_AS_BEFORE = re.compile(r"^\W*as before(?:\W+without\W*(?P<gone>.*?))?[\])]?\W*$", re.IGNORECASE)
_NONE = re.compile(r"\W*none\W*", re.IGNORECASE)
_MIN_NAMED_CHARS = 4
"""Characters of a line's beginning by which it is found."""


def room_for_update(record: str, max_tokens: int, count: Count) -> int:
    """Tokens that what changes in a record may take; 0 for a text that is no record, or that has to be written anew since little
    room is left."""
    if len({title for title, _ in _sections(record)} & set(SECTIONS)) < MIN_SECTIONS:
        return 0
    tokens = count(record)
    if tokens > max_tokens * MAX_FILLED_SHARE:
        return 0
    return min(int(max_tokens * MAX_UPDATE_SHARE), max_tokens - tokens * 2 // 3)


def updated(record: str, update: str) -> str:
    """The record with what changes in it; empty where `update` has no section, so that nothing tells what it is about."""
    changes = dict(_sections(update))
    changes.pop("", None)
    if not changes:
        return ""
    before = dict(_sections(record))
    opening = before.pop("", "")
    now = {title: _section(before.get(title, ""), changes[title]) if title in changes else before[title]
           for title in _in_order([*before, *changes])}  # fmt: skip
    parts = [f"## {title}\n{body}" for title, body in now.items() if body]
    return "\n\n".join([opening, *parts] if opening else parts)


def _sections(text: str) -> list[tuple[str, str]]:
    """Headings and what stands below; what stands before the first under an empty one."""
    found = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    parts = [(match[1].strip("*"), text[match.end() : end].strip()) for match, end in zip(found, ends, strict=False)]
    opening = text[: found[0].start()].strip() if found else text.strip()
    return [("", opening), *parts] if opening else parts


def _in_order(titles: list[str]) -> list[str]:
    """Each once: those of a record in its order, others where they stand."""
    known = {title: place for place, title in enumerate(SECTIONS)}
    return sorted(dict.fromkeys(titles), key=lambda title: known.get(title, len(known)))


def _section(before: str, change: str) -> str:
    """A section as it is once this was written of it."""
    if _NONE.fullmatch(change):
        return ""
    first, _, rest = change.partition("\n")
    kept = _AS_BEFORE.match(first)
    if kept is None:
        return change
    gone = [_bare(words) for words in (kept["gone"] or "").split(";")]
    lines = [line for line in before.split("\n") if not _is_named(line, gone)]
    return "\n".join([*lines, rest.strip()]).strip()


def _is_named(line: str, beginnings: list[str]) -> bool:
    return any(len(words) >= _MIN_NAMED_CHARS and _bare(line).startswith(words) for words in beginnings)


def _bare(line: str) -> str:
    """A line by its words alone, without what a list or emphasis puts around them."""
    return " ".join(re.sub(r"[^\w\s]", " ", line).split()).lower()
