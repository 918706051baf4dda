"""Finds numbers in a text together with what they are about: values with a name (`timeout = 30 s`), and amounts with the words
before them ("coverage is 92 %"). A number is kept as a fact beside summaries, and a newer one of the same subject replaces it
(`subject_of`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxchat.core.expressions import expression
from ctxchat.core.facts.shared import At, plain, some
from ctxchat.core.facts.symbols import ESCAPE, SYMBOL
from ctxchat.core.record import Fact

_SUBJECT = expression(
    r"(?!(?:the|this|that|these|those|its?|it's|are|was|were|has|had|have|and|but|for|from|with|into|now|only|just|all|about|also|to|"
    r"why|you|your|do|dude|instead|it's|our|one|not|than|then|too|down|reduced|saved|removed|added|changed|set|use|using|small|like|over|under|more|less|"
    r"first|last|next|each|every|another|other|both|around|lines?|files?|because|will|would|can|could|should|still|there|here|when|what|which|who|how|so|if|as|at|by|in|is|of|on|or|an"
    r"|went|goes|rose|rises|fell|falls|grew|grows|dropped|drops|reached|reaches|got|gets|became|stands|already|currently|roughly|most|least|up)\b)"
    r"(?:[/~.]*[^\W\d_][\w/@.'’-]+[^\W\d_][\w()]*|p\d\d)",
    re.IGNORECASE,
)
"""A word that tells what a number is about."""
_ABOVE = expression(
    r"^[ \t#*-]*[`*]*([A-Za-z][\w./-]{1,40})[`*]*:[`*]*[ \t]*\n(?:[ \t]+[^\n]*\n|[-*][^\n]*\n)*\Z", re.MULTILINE
)
"""A line of one name, with the lines that stand under it."""
_COUNTED = (
    r"tests?|passed|failed|skipped|files?|lines?|match(?:es)?|results?|hits?|errors?|warnings?|commits?|items?|messages?"
    r"|steps?"
)
"""What an agent counts of its own work: the figure of a moment."""
_UNIT = (
    r"%|‰|°C|°F|€|(?:ms|µs|us|ns|s|secs?|seconds?|mins?|minutes?|h|hours?|days?|weeks?|months?|years?"
    r"|[kKMGT]i?B(?:/s)?|[kMG]bit/s|[kMG]bps|bytes?|B|px|[kMG]?Hz|tokens?|rows?|records?"
    r"|characters?|chars?|words?|bits?|requests?|req/s|rps|qps|users?|cores?|threads?|workers?|retries"
    r"|attempts?|connections?|replicas?|pages?|points?|USD|EUR|GBP|dollars?|euros?|kg|mg|km|cm|mm|kWh|W|V|x|fps|cents?"
    rf"|vCPUs?|CPUs?|GPUs?|epochs?|samples?|partitions?|shards?|{_COUNTED})(?![\w/])"
)
_AMOUNT = r"[+-]?\d(?:[\d_,.]*\d)?"
_NUMBER = expression(
    rf"(?<![\w.,])(?:[<>≤≥~≈]=?\s?)?(?:\d+(?:\.\d+)?\s?[-–]\s?)?"
    rf"(?:(?:[$€£]\s?(?!\d(?!\d|[.,]\d|[kKM])){_AMOUNT}[kKM]?\b)|{_AMOUNT}\s?(?:{_UNIT}))"
)
"""An amount with its unit; `$1` is a word of a script."""
_LISTED = expression(r"^[ \t]*(?:[-*•+|]|\d+[.)])[ \t][^\n]*$", re.MULTILINE)
"""A line of a list or a table."""
_BEFORE = expression(rf"(?:\bfrom )?(?<![\w.,])[$€£]?{_AMOUNT}\s?(?:{_UNIT})?\s?(?:\bto\b|→|->)\s?(?=[$€£~]?\d)")
"""The old value in "from 67 % to 92 %"."""
_REPORT = expression(rf"\d\s?(?:{_COUNTED})\Z")
_MEASURED = expression(r"\d[\d.,]*[A-Za-z%]{1,2}")
_VALUE = rf"(?:#[0-9A-Fa-f]{{6}}(?:[0-9A-Fa-f]{{2}})?|{_AMOUNT}(?:\s?(?:{_UNIT}))?)"
_NAMED = expression(
    rf"(?<![\w.])([A-Za-z_][\w.-]{{1,40}})`?[ \t]*[:=][ \t]*`?(?:{_VALUE}`?[ \t]*(?:→|->)[ \t]*`?)?({_VALUE})(?![\w:/.-]\d|\w)"
)
"""`timeout = 30`, `gray`: `#808080`, and the new value of "gray: 242 → #6c6c6c"."""
_IN_CODE = expression(rf"([A-Za-z_][\w.-]{{1,40}})[\"'`]?[ \t]*[:=][ \t]*[\"'`]?({_VALUE})(?![\w:/.-]\d|\w)")
_SET = expression(
    r"\b(?:set|change|raise|lower|increase|decrease|reduce|bump|update)d? (?:the |our )?`?([A-Za-z_][\w.-]{1,40})`? "
    rf"(?:from \S+(?: \S+)? )?to `?({_VALUE})(?![\w:/.-]\d|\w)",
    re.IGNORECASE,
)
"""`set timeout to 30 s`."""
_COUNT = expression(r"[A-Za-z][a-z]*`?[ \t]*:[ \t]*`?\d")
"""`Threads: 1`: a word, and so few that it is a count of something."""
_TELLS = expression(
    r"is|are|takes?|took|uses?|needs?|costs?|holds?|has|at|to|of|reache[sd]|went|by|within|every|most|least",
    re.IGNORECASE,
)
"""The word before an amount that says whose it is."""
_BREAK = expression(r"[\n,;|]|[.!?:] ")
_LAST_WORD = expression(r"\S{0,120}\Z")
_WORDS = expression(r"[\w/@.'’-]*\w")
_OF_ANY = expression(
    r"a|(?i:the|an|this|that|these|those|its?|it's|is|are|was|were|be|been|has|had|have|and|but|so|then|now|only|just|all|about|also"
    r"|still|already|currently|roughly|around|to|at|of|in|on|by|for|from|with|as|into|we|i|my|our|your|you|will|would|can|could|should"
    r"|went|goes|rose|rises|fell|falls|grew|grows|dropped|drops|reached|reaches|got|gets|became|stands|up|down|reduced|changed|set)"
)
"""Words that can stand with any number."""
_LAST_AMOUNT = expression(r"[-+$€£<>≤≥~≈]*\d[\d.,_–-]*(?=\D*\Z)")


def numbers(text: str, at: At, endings: frozenset[str]) -> Iterator[Fact]:
    """The numbers in a text as facts; `at` has the message's number, its speaker and its turn.

    Numbers in an agent's text count only outside of lists and tables, where a figure may stand beside the label of another, and
    only where the sentence tells what they are about. A name that ends like that of a file (one of `endings`) is followed by a
    line number and not by a value.
    """
    text = ESCAPE.sub(" ", text if at[1] == "user" else _LISTED.sub("", text))
    named: set[int] = set()
    for match in sorted([*some(_NAMED, text, 30), *some(_SET, text, 30)], key=re.Match[str].start):
        named.update(range(*match.span()))
        if (
            match[1].rsplit(".", 1)[-1] not in endings
            and _SUBJECT.fullmatch(match[1])
            and not _COUNT.fullmatch(match[0])
            and (at[1] == "user" or (_says_enough(match) and not _REPORT.search(match[2])))
        ):
            whose = _whose(text, match) if match.re.pattern == _NAMED.pattern else ""
            yield Fact("number", whose + match[1], plain(match[2]), *at)
    text = _BEFORE.sub(lambda old: " " * len(old[0]), text)
    ended = 0
    for match in some(_NUMBER, text, 30):
        words = [] if match.start() in named else _words_before(text, match, ended)
        ended = match.end()
        if not any(map(_SUBJECT.fullmatch, words)):
            continue
        if at[1] == "user" or (_TELLS.fullmatch(words[-1]) and not _REPORT.search(match[0])):
            yield Fact("number", " ".join([*words, plain(match.group())]), "", *at)


def _says_enough(match: re.Match[str]) -> bool:
    """True where a named value tells enough to be kept: its name is one from code, or it has a unit ("total: 12" does not)."""
    return bool(SYMBOL.fullmatch(match[1])) or not match[2].replace(",", "").isdigit()


def values_in(code: str) -> set[tuple[str, str]]:
    """The pairs of name and value that a piece of code or of a settings file assigns."""
    return {(match[1].rpartition(".")[2], plain(match[2])) for match in some(_IN_CODE, code, 200)}


def subject_of(number: str) -> str:
    """The subject of a number, as a key: the same for "Coverage is 67 %", "coverage has reached 92 %" and "coverage: 95%". Short
    words and versions are kept, since they tell things apart: "v1", "Worker A", "Python 3.12"."""
    words = _WORDS.findall(_LAST_AMOUNT.sub(" ", number))
    if words[:1] == ["A"]:
        words[0] = "a"
    amount = _LAST_AMOUNT.search(number)
    unit = number[amount.end() :].strip() if amount else ""
    return " ".join([*(word for word in words if not _OF_ANY.fullmatch(word)), "#", unit]).lower()


def _whose(text: str, match: re.Match[str]) -> str:
    """The owner of a value, to be put before its name: the words before it, or the heading line above it (`staging:`). Empty for
    a name from code, which says enough by itself."""
    if SYMBOL.fullmatch(match[1]):
        return ""
    start = text.rfind("\n", 0, match.start()) + 1
    near = _BREAK.split(text[start : match.start()])[-1].replace("`", " ").split()[-2:]
    words = [w for w in near if _SUBJECT.fullmatch(w)]
    if words or not (above := _ABOVE.search(text, max(0, start - 600), start)):
        return "".join(f"{word} " for word in words)
    return f"{above[1]} "


def _words_before(text: str, match: re.Match[str], ended: int) -> list[str]:
    """The words of the sentence before an amount, after the end of the previous amount (`ended`)."""
    begin = max(ended, match.start() - 80)
    whole = _LAST_WORD.search(text, max(ended, begin - 120), begin)  # the first word whole, such as a long path
    line = _BREAK.split(text[whole.start() if whole else begin : match.start()])[-1]
    words = _WORDS.findall(line)[-6:]
    last = max((place for place, word in enumerate(words, 1) if _MEASURED.fullmatch(word)), default=0)
    return words[last:]
