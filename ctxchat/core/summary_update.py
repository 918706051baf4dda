"""Merges an update into a record (the summary that a model wrote), line by line, so that the model need not write again what
still holds. Text only; calls no model."""

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
"""The sections that an update replaces, but for the lines it names, since only the newest state holds."""

MIN_SECTIONS = 3
"""A text with fewer of these headings than this is not taken for a record."""

MAX_FILLED_SHARE = 0.8
"""A record that fills more than this share of its room is, where it has to be written anew, written in fewer words."""

REWRITTEN_SHARE = 0.65
"""The share of its room that such a rewritten record may take."""

MIN_UPDATE_SHARE, MAX_UPDATE_SHARE = 0.25, 0.5
"""The least share of a record's room that an update may take, though other lines have to go for it, and the largest."""

MAX_OVERFILLED = 1.5
"""How many times longer than its room a record may be to be updated, and not written anew."""

MAX_GONE_SHARE = 0.6
"""The largest share of the lines outside `STATES` that an update may take out."""

INDEXED_WORDS = 8
"""Words of a line by which a model finds it in a record that it has before it without numbers."""

_HEADING = re.compile(r"^##? +(.+?) *:? *$", re.MULTILINE)
_AS_BEFORE = re.compile(r"\W*(?:as before|unchanged|no changes?)\W*", re.IGNORECASE)
_NONE = re.compile(r"\W*none\W*", re.IGNORECASE)
_GONE = re.compile(r"\W*gone\b[:\s]*(?P<some>[\d\s,;–—-]+)\W*|\W*(?P<these>[\d\s,;–—-]+)\]\W*gone\W*", re.IGNORECASE)
_NAMED = re.compile(r"\s*(?:(?:[-*]|\d+[.)]) +)?\[(?P<number>\d+)\](?P<more> *\+(?= ))?[: ]*(?P<text>.*)", re.DOTALL)
_KEPT = re.compile(
    r"\s*(?:[-*] +)?(?:\[(?:keep|kept)?:?\s*\d+(?:\s*[–—-]\s*\d+)?(?:[\s,;]+\d+(?:\s*[–—-]\s*\d+)?)*\s*\][\s,;.]*)+",
    re.IGNORECASE,
)
"""A line of nothing but numbers in brackets: `[keep: 3, 7-9]`, `[3], [7-9]`, `[4]`."""
_LIST_MARK = re.compile(r"\s*(?:[-*]|\d+[.)]) +")
_RANGE = re.compile(r"(\d+)(?:\s*[–—-]\s*(\d+))?")


def room_for_update(record: str, max_tokens: int, count: Count) -> int:
    """The token limit for an update of this record; 0 for a text that is no record, or that is longer than its room by half."""
    tokens = count(record)
    if not _is_record(record) or tokens > max_tokens * MAX_OVERFILLED:
        return 0
    return int(min(max_tokens * MAX_UPDATE_SHARE, max(max_tokens - tokens, max_tokens * MIN_UPDATE_SHARE)))


def tokens_over(record: str, update: int, max_tokens: int, count: Count) -> int:
    """Tokens that have to go from a record so that it keeps to its room with an update of `update` tokens."""
    return max(0, count(record) + update - max_tokens)


def room_for_rewrite(record: str, max_tokens: int, count: Count) -> int:
    """Tokens that a record may take which is written anew with what has come since, so that the next time only what changes has
    to be written."""
    full = _is_record(record) and count(record) > max_tokens * MAX_FILLED_SHARE
    return int(max_tokens * REWRITTEN_SHARE) if full else max_tokens


def numbered(record: str) -> str:
    """The record with its number before each line, by which an update names it."""
    sections, number = _sections(record), 0
    parts = [sections.pop("")] if "" in sections else []
    for title, body in sections.items():
        lines = [f"[{number + place}] {item}" for place, item in enumerate(_items(body), 1)]
        number += len(lines)
        parts.append("\n".join([f"## {title}", *lines]))
    return "\n\n".join(parts)


def indexed(record: str) -> str:
    """The first words of each line of a record with its number, for a model that has the record before it without numbers."""
    items = [item for title, body in _sections(record).items() if title for item in _items(body)]
    return "\n".join(f"[{n}] {' '.join(item.split()[:INDEXED_WORDS])}" for n, item in enumerate(items, 1))


def _is_record(text: str) -> bool:
    return len(_sections(text).keys() & set(SECTIONS)) >= MIN_SECTIONS


def updated(record: str, update: str) -> str:
    """The record with an update merged into it; empty where nothing in `update` can be applied, or it takes out so much that it
    must be a mistake: then the whole record is to be asked for. A whole record in place of an update is taken as that."""
    if _AS_BEFORE.fullmatch(update):
        return record
    changes, before = _sections(update), _sections(record)
    opening = before.pop("", "")
    if _is_whole(before, update, changes):
        now = {title: changes[title] for title in _in_order([*changes]) if title}
    else:
        merge = _Merge(before)
        for title, body in changes.items():
            merge.take(title, body)
        now = merge.sections()
    parts = [f"## {title}\n{body}" for title, body in now.items() if body]
    return "\n\n".join([opening, *parts] if opening and parts else parts)


def _is_whole(before: dict[str, str], update: str, changes: dict[str, str]) -> bool:
    """Whether a model wrote the whole record anew: each section that lasts, most of its lines, and no mark of an update."""
    lasting = [(title, _subject(item)) for title in before.keys() - STATES for item in _items(before[title])]
    again = {(title, _subject(item)) for title, body in changes.items() for item in _items(body)}
    marks = (_GONE, _KEPT, _AS_BEFORE, _NAMED, _NONE)
    return (
        len(lasting) >= MIN_SECTIONS
        and before.keys() - STATES <= changes.keys()
        and sum(one in again for one in lasting) * 2 > len(lasting)
        and not any(mark.fullmatch(line) for line in update.split("\n") for mark in marks)
    )


class _Merge:
    """A record while an update is merged into it. `before` are its sections; its lines are known by their numbers."""

    def __init__(self, before: dict[str, str]) -> None:
        self._before = before
        lines = [(title, item) for title, body in before.items() for item in _items(body)]
        self._lines = dict(enumerate((item for _, item in lines), 1))
        self._titles = dict(enumerate((title for title, _ in lines), 1))
        self._gone: set[int] = set()
        self._named: set[int] = set()  # under whichever heading
        self._replaced: set[int] = set()  # of sections written anew: gone, but for those that are named
        self._added: dict[str, list[str]] = {}
        self._orders: dict[str, list[int | str]] = {}  # sections written anew: their lines, old ones by number
        self._says_something = False

    def take(self, title: str, body: str) -> None:
        """Take in what the update says under a heading; before the first one (`title` is empty) only marks count."""
        here, added = {n for n, its in self._titles.items() if its == title}, list[str]()
        named, as_before, order = set[int](), not title, list[int | str]()
        for item in _items(body):
            if title and _NONE.fullmatch(item):
                self._gone |= here
            elif title and _AS_BEFORE.fullmatch(item):
                as_before = True
            elif (mark := _GONE.fullmatch(item)) and (gone := self._known(mark["some"] or mark["these"])):
                self._gone |= gone
            elif title and _KEPT.fullmatch(item) and (kept := self._known(item)):
                named |= kept
                order += sorted(kept)
            elif (mark := _NAMED.fullmatch(item)) and (number := int(mark["number"])) in self._lines:
                self._lines[number] = _edited(self._lines[number], mark["text"].strip(), add=bool(mark["more"]))
                named.add(number)
                order.append(number)
            elif title:
                added.append(item)
                order.append(item)
        if title in STATES and added and not as_before:
            self._replaced |= here
            self._orders[title] = [*self._orders.get(title, ()), *order]
        self._named |= named
        self._place(title, here - named - self._gone - self._replaced, added)
        self._says_something |= bool((title and (added or as_before)) or named or self._gone)

    def _known(self, numbers: str) -> set[int]:
        """The lines that are named so: `3, 7–9`."""
        pairs = ((int(match[1]), int(match[2] or match[1])) for match in _RANGE.finditer(numbers))
        return {number for first, last in pairs for number in self._lines if first <= number <= last}

    def _place(self, title: str, free: set[int], added: list[str]) -> None:
        """Add lines to a section. One with the subject of exactly one of its `free` lines takes that line's place."""
        new = dict[str, str]()
        for item in added:
            same = [number for number in free if _subject(self._lines[number]) == _subject(item)]
            if len(same) == 1:
                self._lines[same[0]] = item
            else:
                new[_subject(item)] = item
        self._added[title] = [*self._added.get(title, ()), *new.values()]

    def sections(self) -> dict[str, str]:
        """The sections now, those without a change word for word; none where the update says nothing, or takes out so many lines
        that it must be a mistake."""
        self._gone |= self._replaced - self._named
        lasting = {number for number, title in self._titles.items() if title not in STATES}
        if not self._says_something or len(self._gone & lasting) > len(lasting) * MAX_GONE_SHARE:
            return {}
        return {title: self._section(title) for title in _in_order([*self._before, *filter(None, self._added)])}

    def _section(self, title: str) -> str:
        before, new = self._before.get(title, ""), self._added.get(title, [])
        kept = {n: item for n, item in self._lines.items() if self._titles[n] == title and n not in self._gone}
        if order := self._orders.get(title):
            places = [kept.pop(place, "") if isinstance(place, int) else place for place in order]
            return "\n".join([*kept.values(), *dict.fromkeys(filter(None, places))])
        return before if not new and [*kept.values()] == _items(before) else "\n".join([*kept.values(), *new])


def _edited(line: str, text: str, *, add: bool) -> str:
    """The line with `text` in its place, or behind it; as it is where there is no text."""
    if add or not text:
        return f"{line} {text}".rstrip()
    mark = _LIST_MARK.match(line)
    return text if mark is None or _LIST_MARK.match(text) else f"{mark[0]}{text}"


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


def _bare(line: str) -> str:
    """The words of a line in lower case, without list marks and punctuation."""
    return " ".join(re.sub(r"^\s*\d+[.)]\s|[^\w\s]", " ", line).split()).lower()
