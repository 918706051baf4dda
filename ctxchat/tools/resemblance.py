"""Finds the part of a text that is most like one that was sought in vain, and tells the difference. Knows no files."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable

_MAX_SEARCHED_LINES = 20_000
"""Lines among which a resemblance is looked for."""

_MAX_SHOWN_LINES = 20
"""Lines that are shown."""

_MAX_DIFFERENCES = 3
"""Differences that are told."""

_ALIKE = {
    **dict.fromkeys("‘’‚‛′ʼ＇", "'"),
    **dict.fromkeys("“”„‟″＂", '"'),
    **dict.fromkeys("‐‑‒–—―−－", "-"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f", ""),
    "…": "...",
}

_CLUSTER = re.compile(r".[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\u1160-\u11ff]*", re.S)
"""A letter with what is composed with it."""


def folded(text: str) -> str:
    """The text with what looks alike made the same: composed and decomposed letters, kinds of blanks, quotes and dashes; without
    signs that do not show."""
    plain = unicodedata.normalize("NFC", text)
    if plain.isascii():
        return plain
    return "".join(_ALIKE.get(sign, " " if unicodedata.category(sign) == "Zs" else sign) for sign in plain)


def same_name(name: str) -> str:
    """A file's name with composed and decomposed letters, and all kinds of blanks, made the same: what a model writes instead."""
    plain = unicodedata.normalize("NFC", name)
    return plain if plain.isascii() else "".join(" " if unicodedata.category(sign) == "Zs" else sign for sign in plain)


def resemblance(text: str, old: str) -> str:
    """The lines of a text most like `old`, and in what they differ, as a hint."""
    lines = re.split(r"\r\n|\n|\r", text)[:_MAX_SEARCHED_LINES]
    wanted = re.split(r"\r\n|\n|\r", old.strip("\r\n"))
    for what, alike in (("signs that look alike differ", folded), ("the white space differs", _bare)):
        if (at := _find_lines(lines, wanted, alike)) is not None:
            told = _in_what(lines, wanted, at)
            return f"Only {what} from these lines{told}:\n{_numbered(lines, at, len(wanted))}"
    bare = [_bare(line) for line in lines]
    first = next((line for line in map(str.strip, wanted) if line), "")
    near = difflib.get_close_matches(folded(first)[:300], {line[:300] for line in bare if line}, 1, 0.6)
    if not near:
        return "Nothing there resembles it; read the file again."
    at = next(at for at, line in enumerate(bare) if line[:300] == near[0])
    return "The nearest lines are:\n" + _numbered(lines, at, len(wanted))


def difference_in_words(there: str, sought: str) -> str:
    """The difference between a line and the one sought, in words: `U+00A0 (no-break space) where old has a blank`; empty for
    none."""
    told: list[str] = []
    matcher = difflib.SequenceMatcher(None, there[:1000], sought[:1000], autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag != "equal":
            told.append(f"{_name_signs(there[start:end])} where old has {_name_signs(sought[first:last])}")
    told = list(dict.fromkeys(told))
    return ", ".join(told[:_MAX_DIFFERENCES]) + (" …" if len(told) > _MAX_DIFFERENCES else "")


def _bare(text: str) -> str:
    return folded(text).strip()


def _find_lines(lines: list[str], wanted: list[str], alike: Callable[[str], str]) -> int | None:
    there, sought = [alike(line) for line in lines], [alike(line) for line in wanted]
    if len(sought) == 1 and sought[0].strip():
        return next((at for at, line in enumerate(there) if sought[0] in line), None)
    for at in range(len(there) - len(sought) + 1):
        if there[at] == sought[0] and there[at : at + len(sought)] == sought:
            return at
    return None


def _in_what(lines: list[str], wanted: list[str], at: int) -> str:
    for number, sought in enumerate(wanted, at):
        there = lines[number]
        if len(wanted) == 1:
            there = _part_like(there, sought)
        if there != sought and (told := difference_in_words(there, sought)):
            return f" (line {number + 1} has {told})"
    return ""


def _part_like(line: str, sought: str) -> str:
    """The part of a line that looks like what was sought; all of it where that is the whole."""
    wanted = folded(sought).strip()
    clusters = _CLUSTER.findall(line)
    seen = [folded(cluster) for cluster in clusters]
    at = "".join(seen).find(wanted)
    if at < 0 or folded(line).strip() == wanted:
        return line
    part, passed = "", 0
    for cluster, shown in zip(clusters, seen, strict=True):
        if at <= passed < at + len(wanted):
            part += cluster
        passed += len(shown)
    return part


def _name_signs(signs: str) -> str:
    if not signs:
        return "nothing"
    if len(signs) > 8:
        return f"{len(signs)} other characters"
    if len(set(signs)) == 1 and signs[0] in " \t":
        many, word = len(signs), {" ": "blank", "\t": "tab"}[signs[0]]
        return f"a {word}" if many == 1 else f"{many} {word}s"
    if signs.isascii() and signs.isprintable():
        return repr(signs)
    return " ".join(f"U+{ord(sign):04X} ({unicodedata.name(sign, 'a control').lower()})" for sign in signs)


def _numbered(lines: list[str], start: int, many: int) -> str:
    end = min(start + min(many, _MAX_SHOWN_LINES), len(lines))
    return "\n".join(f"{at + 1}\t{lines[at].rstrip(chr(13))[:500]}" for at in range(start, end))
