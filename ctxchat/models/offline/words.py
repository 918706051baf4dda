"""From a question to what is worth looking for: content words, quoted phrases, names; and from any text to terms to compare.

Pure; knows nothing of tools. Han, kana and hangul are taken two characters at a time, for want of spaces.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ctxchat.models.offline.language import SMALL, bag

LONGEST = 4_000
"""Characters of a question that are read; a paste behind it does not change what is asked."""

FILLERS = bag(
    """agree agreed answer ask asked called chose choose decide decided discussed earlier recall said talked told
    called defined describe explain exactly find get give happens hello implemented kind know located look mean
    means mention mentioned need say says see set show tell thing things use used using way work works
    zeig zeige erkläre montre explique muestra explica mostra mostre spiega"""
)
"""Words of asking rather than of what is asked; left out while anything else is left."""

PLACES = bag("file files folder project repo repository codebase code line lines directory here")

_CJK = "\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_\d]+|\d+")
_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|「([^」\n]{1,200})」"
)
_NAME = re.compile(r"(?<![\w./-])(?:[\w-]+(?:[./\\][\w.-]+)+|--?[a-z][\w-]+|\w*[a-z][A-Z]\w*|\w+_\w+)")
_PROPER = re.compile(r"(?<![.!?¿¡:] )(?<!^)\b([^\W\d_a-z]\w+(?: (?:[^\W\d_a-z]\w*|\d+))+)")
_CLITIC = re.compile(r"\b(?:[ldjcnsmt]|qu|dell|nell|sull|all|un)['’]|['’](?:s|re|ve|ll|d|m|t)\b", re.I)
_HIRAGANA = re.compile("[\u3041-\u309f]+")


_IRREGULAR = {
    "kept": "keep", "sent": "send", "ran": "run", "wrote": "write", "written": "write", "built": "build", "made": "make",
    "found": "find", "held": "hold", "began": "begin", "chose": "choose", "chosen": "choose", "broke": "break",
    "broken": "break", "left": "leave", "lost": "lose", "took": "take", "taken": "take", "people": "person",
}  # fmt: skip


class Topic(msgspec.Struct, frozen=True):
    """What a question is about. `terms` are stems in the order they came; `phrases` neighbours that belong together, as
    written; `names` identifiers, paths and quoted words, exactly as written; `proper` the phrases that are names of things
    (`Pier 7`)."""

    terms: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    proper: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """True when there is nothing to look for."""
        return not self.terms and not self.names


def topic(question: str) -> Topic:
    """What to look for. `shown` is the same in the asker's own words."""
    question = question[:LONGEST].strip()
    names = tuple(dict.fromkeys((*_quotes(question), *(n.rstrip(".") for n in _NAME.findall(question)))))
    plain = _CLITIC.sub(" ", question)
    words = _content(plain)
    proper = tuple(dict.fromkeys(_PROPER.findall(plain)))
    phrases = tuple(dict.fromkeys((*proper, *_neighbours(plain, words))))
    found = tuple(dict.fromkeys(t for w in words for t in _forms(w)))
    told = {w for p in (*proper, *names) for w in _RUN.findall(p)}
    shown = tuple(dict.fromkeys((*names, *proper, *(w for w in words if w not in told))))
    return Topic(found, phrases, names, proper, shown)


def terms(text: str) -> Iterator[str]:
    """Every term of a text: stems of its words, the parts of its identifiers, pairs of its ideographs."""
    for run in _RUN.findall(text):
        yield from _forms(run)


def stem(word: str) -> str:
    """The word without the commonest English endings, lower case. `retries`, `retrying`, `Retry` → `retry`."""
    word = word.casefold()
    word = _IRREGULAR.get(word, word)
    if len(word) > 4:
        word = _without_plural(word)
    for ending in ("ation", "ing", "ed", "ly"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and re.search("[aeiouyäöü]", base):
            word = base[:-1] if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def pattern(found: Iterable[str]) -> str:
    """A regular expression for lines that hold any of these terms, whatever their endings. Short ones only at a word's start."""
    parts = [_prefix(t) for t in dict.fromkeys(found)]
    return "|".join(p for p in parts if p)


def together_pattern(groups: Sequence[Sequence[str]]) -> str:
    """A regular expression for lines that hold terms of at least two of these groups, in either order. Of many groups the
    four with the longest words are taken, for those are the rarest."""
    longest = sorted(groups, key=lambda group: -max(map(len, group), default=0))[:4]
    parts = [f"(?:{p})" if len(group) > 1 else p for group in groups if group in longest and (p := pattern(group))]
    return "|".join(f"{a}.*{b}|{b}.*{a}" for a, b in itertools.combinations(parts, 2))


def phrase_pattern(phrases: Iterable[str]) -> str:
    """A regular expression for phrases, however their words are joined: `retry limit`, `retry_limit`, `RetryLimit`."""
    return "|".join(
        "[ _-]?".join(_escaped(_cut(stem(w)) if i == len(ws) - 1 else w) for i, w in enumerate(ws))
        for phrase in dict.fromkeys(phrases)
        if (ws := phrase.split())
    )


def literal(text: str) -> str:
    """A regular expression for exactly this text, in the dialects of Python and ripgrep alike."""
    return _escaped(text)


def _forms(run: str) -> Iterator[str]:
    if re.match(f"[{_CJK}]", run):
        yield from _pairs(run)
        return
    whole = stem(run)
    parts = [stem(p) for p in _HUMP.findall(run)]
    if len(parts) > 1:
        yield from parts
    yield whole


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for i in range(len(run) - 1):
        pair = run[i : i + 2]
        if not _HIRAGANA.fullmatch(pair):
            yield pair


def _content(question: str) -> list[str]:
    """The words worth looking for, in order: small words out, fillers out while something is left."""
    words = [w for run in _RUN.findall(question) for w in _cut_small(run)]
    words = [
        w for w in words if not any(w.casefold() in small for small in SMALL.values()) and (len(w) > 1 or w.isdigit())
    ]
    for useless in (FILLERS, PLACES):
        words = [w for w in words if w.casefold() not in useless] or words
    return words


def _cut_small(run: str) -> list[str]:
    if not re.match(f"[{_CJK}]", run):
        return [run]
    small = "|".join(sorted(SMALL["ja"] | SMALL["zh"] | set("はがをにのでもとへや"), key=len, reverse=True))
    return [piece for piece in re.split(small, run) if piece]


def _neighbours(question: str, words: list[str]) -> Iterator[str]:
    """Pairs of content words that stood side by side."""
    kept = set(words)
    runs = [(m.group(), m.start(), m.end()) for m in _RUN.finditer(question)]
    for (first, _, end), (second, start, _) in itertools.pairwise(runs):
        if (
            not first.isdigit()
            and {first, second} <= kept
            and question[end:start] in {" ", "-"}
            and not re.match(f"[{_CJK}]", first)
        ):
            yield f"{first} {second}"


def _quotes(question: str) -> Iterator[str]:
    for groups in _QUOTED.findall(question):
        yield from (g.strip() for g in groups if g.strip())


def _without_plural(word: str) -> str:
    if word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _prefix(term: str) -> str:
    short = len(term) <= 4 and term.isascii()
    return (r"(\b|_)" if short else "") + _escaped(_cut(term))


def _cut(term: str) -> str:
    """`retry` finds `retries` only without its last letter."""
    return term[:-1] if len(term) > 4 and term.endswith("y") else term


def _escaped(text: str) -> str:
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)
