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

STATES = frozenset({"Goal", "Progress", "Next steps"})
"""Those of which only the newest holds: what is written takes their place. What is written of the others is added."""

MIN_SECTIONS = 3
"""Of these headings, how many a text has that was written as a record."""

MAX_FILLED_SHARE = 0.8
"""Of its room, what a record may fill that is added to; a fuller one is written anew, in fewer words."""

REWRITTEN_SHARE = 0.65
"""Of its room, what a record takes that is written anew for being full: if it filled it again, so it would be each time."""

MAX_UPDATE_SHARE = 0.5
"""Of the room, what an update may take at most."""

_HEADING = re.compile(r"^##? +(.+?) *:? *$", re.MULTILINE)
_AS_BEFORE = re.compile(r"^\W*as before\W*$", re.IGNORECASE)
_WITHOUT = re.compile(r"^\W*(?:\[\s*(?:as before\W+)?without\b|without:)\W*(?P<gone>.*?)\]?\W*$", re.IGNORECASE)
_WITHOUT_BELOW = re.compile(r"^\W*\[without: *(?P<gone>[^\]]+)\]\W*$", re.IGNORECASE | re.MULTILINE)
"""As a line among others, where nobody was to write it: it still names what goes, and is no line of a record."""
_NONE = re.compile(r"\W*none\W*", re.IGNORECASE)
_MIN_NAMED_CHARS = 4
"""Characters of a line's beginning by which it is found."""


def room_for_update(record: str, max_tokens: int, count: Count) -> int:
    """Tokens that what changes in a record may take; 0 for a text that is no record, or that has to be written anew since little
    room is left."""
    tokens = count(record)
    if not _is_record(record) or tokens > max_tokens * MAX_FILLED_SHARE:
        return 0
    return min(int(max_tokens * MAX_UPDATE_SHARE), max_tokens - tokens * 2 // 3)


def room_for_rewrite(record: str, max_tokens: int, count: Count) -> int:
    """Tokens that a record may take which is written anew with what has come since, so that the next time only what changes has
    to be written."""
    full = _is_record(record) and count(record) > max_tokens * MAX_FILLED_SHARE
    return int(max_tokens * REWRITTEN_SHARE) if full else max_tokens


def _is_record(text: str) -> bool:
    return len(_sections(text).keys() & set(SECTIONS)) >= MIN_SECTIONS


def updated(record: str, update: str) -> str:
    """The record with what changes in it; empty where `update` has no section, so that nothing tells what it is about."""
    changes = _sections(update)
    changes.pop("", None)
    if not changes:
        return ""
    before = _sections(record)
    opening = before.pop("", "")
    now = {title: _section(title, before.get(title, ""), changes[title]) if title in changes else before[title]
           for title in _in_order([*before, *changes])}  # fmt: skip
    parts = [f"## {title}\n{body}" for title, body in now.items() if body]
    return "\n\n".join([opening, *parts] if opening else parts)


def _sections(text: str) -> dict[str, str]:
    """What stands below each heading, that of one which comes twice together; what stands before the first under an empty one."""
    found = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    opening = text[: found[0].start()].strip() if found else text.strip()
    sections = {"": opening} if opening else {}
    for match, end in zip(found, ends, strict=False):
        title, body = _known(match[1].strip("* ")), text[match.end() : end].strip()
        sections[title] = f"{sections[title]}\n{body}" if title in sections else body
    return sections


def _known(title: str) -> str:
    """The heading of a record that is meant, where it was written shorter or longer."""
    low = title.lower()
    return next((one for one in SECTIONS if low.startswith(one.lower()) or one.lower().startswith(low)), title)


def _in_order(titles: list[str]) -> list[str]:
    """Each once: those of a record in its order, others where they stand."""
    known = {title: place for place, title in enumerate(SECTIONS)}
    return sorted(dict.fromkeys(titles), key=lambda title: known.get(title, len(known)))


def _section(title: str, before: str, change: str) -> str:
    """A section as it is once this was written of it."""
    if _NONE.fullmatch(change):
        return ""
    gone: list[str] = []
    rest, marked = change, False
    while mark := _WITHOUT.match(first := rest.partition("\n")[0]) or _AS_BEFORE.match(first):
        gone += [_bare(words) for words in (mark.groupdict().get("gone") or "").split(";")]
        rest, marked = rest.partition("\n")[2].lstrip("\n"), True
    for mark in _WITHOUT_BELOW.finditer(rest):
        gone += [_bare(words) for words in mark["gone"].split(";")]
        marked = True
    rest = _WITHOUT_BELOW.sub("", rest)
    if title in STATES and not marked:
        return change
    items = {_subject(item): item for item in _items(before) if not _is_named(item, gone)}
    items |= {_subject(item): item for item in _items(rest)}
    return "\n".join(items.values())


def _items(section: str) -> list[str]:
    """The lines of a section, each with the lines below it that are set in."""
    items: list[str] = []
    for line in filter(str.strip, section.split("\n")):
        if items and line[0].isspace():
            items[-1] += f"\n{line}"
        else:
            items.append(line)
    return items


def _subject(item: str) -> str:
    """What an item is about, by which a newer one takes its place: its words before the colon, else all of them."""
    head, _, value = item.partition("\n")[0].partition(": ")
    return _bare(head if value else item)


def _is_named(item: str, beginnings: list[str]) -> bool:
    return any(len(words) >= _MIN_NAMED_CHARS and _bare(item).startswith(words) for words in beginnings)


def _bare(line: str) -> str:
    """A line by its words alone, without what a list or emphasis puts around them."""
    return " ".join(re.sub(r"^\s*\d+[.)]\s|[^\w\s]", " ", line).split()).lower()
