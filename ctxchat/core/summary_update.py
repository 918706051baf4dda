"""Merges an update into a record (the summary that a model wrote), section by section, so that the model need not write again
what still holds. Text only; calls no model."""

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
"""The sections that an update replaces, since only the newest state holds. To the other sections it adds."""

MIN_SECTIONS = 3
"""A text with fewer of these headings than this is not taken for a record."""

MAX_FILLED_SHARE = 0.8
"""A record that fills more than this share of its room is not updated but written anew, in fewer words."""

REWRITTEN_SHARE = 0.65
"""The share of its room that such a rewritten record may take: if it filled the room, it would be rewritten every time."""

MAX_UPDATE_SHARE = 0.5
"""The largest share of a record's room that an update may take."""

_HEADING = re.compile(r"^##? +(.+?) *:? *$", re.MULTILINE)
_AS_BEFORE = re.compile(r"^\W*as before\W*$", re.IGNORECASE)
_WITHOUT = re.compile(r"^\W*(?:\[\s*(?:as before\W+)?without\b|without:)\W*(?P<gone>.*?)\]?\W*$", re.IGNORECASE)
_WITHOUT_BELOW = re.compile(r"^\W*\[without: *(?P<gone>[^\]]+)\]\W*$", re.IGNORECASE | re.MULTILINE)
"""The same mark on a line further down, where no model was told to write it: it is obeyed all the same, and not kept as text."""
_NONE = re.compile(r"\W*none\W*", re.IGNORECASE)
_MIN_NAMED_CHARS = 4
"""The fewest characters of a line's beginning that identify the line."""


def room_for_update(record: str, max_tokens: int, count: Count) -> int:
    """The token limit for an update of this record; 0 for a text that is no record, or so long that it has to be written anew."""
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
    """The record with an update merged into it; empty where `update` has no headings, so that it cannot be merged."""
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
    """The text below each heading, by heading. Texts under the same heading are joined; the text before the first heading has
    the key ""."""
    headings = list(_HEADING.finditer(text))
    ends = [*(match.start() for match in headings[1:]), len(text)]
    opening = text[: headings[0].start()].strip() if headings else text.strip()
    sections = {"": opening} if opening else {}
    for match, end in zip(headings, ends, strict=False):
        title, body = _standard_title(match[1].strip("* ")), text[match.end() : end].strip()
        sections[title] = f"{sections[title]}\n{body}" if title in sections else body
    return sections


def _standard_title(title: str) -> str:
    """The heading from `SECTIONS` that a title shortens or extends; else the title itself."""
    low = title.lower()
    return next((one for one in SECTIONS if low.startswith(one.lower()) or one.lower().startswith(low)), title)


def _in_order(titles: list[str]) -> list[str]:
    """The titles without repetitions: those in `SECTIONS` in that order, then the others in the order given."""
    known = {title: place for place, title in enumerate(SECTIONS)}
    return sorted(dict.fromkeys(titles), key=lambda title: known.get(title, len(known)))


def _section(title: str, before: str, change: str) -> str:
    """The text of a section after an update: `before` is its old text, `change` the update's text for it."""
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
    """The lines of a section, each joined with the indented lines below it."""
    items: list[str] = []
    for line in filter(str.strip, section.split("\n")):
        if items and line[0].isspace():
            items[-1] += f"\n{line}"
        else:
            items.append(line)
    return items


def _subject(item: str) -> str:
    """The words by which a newer item is known to replace this one: those before the colon, else the whole line."""
    head, _, value = item.partition("\n")[0].partition(": ")
    return _bare(head if value else item)


def _is_named(item: str, beginnings: list[str]) -> bool:
    return any(len(words) >= _MIN_NAMED_CHARS and _bare(item).startswith(words) for words in beginnings)


def _bare(line: str) -> str:
    """The words of a line in lower case, without list marks and punctuation."""
    return " ".join(re.sub(r"^\s*\d+[.)]\s|[^\w\s]", " ", line).split()).lower()
