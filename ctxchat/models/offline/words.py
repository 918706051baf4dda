"""From a question to what is worth looking for, and from any text to terms that can be compared.

Pure; knows nothing of tools. Han, kana and hangul are taken two characters at a time, for want of spaces.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ctxchat.core.expressions import expression

MAX_QUESTION_CHARS = 4_000
"""Characters of a question that are read; a paste behind it does not change what is asked."""


def _bag(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMON_WORDS = _bag(
    """a about above after again all also am an and any are as at be because been before being between both but by can could did
    do does doing done down each few for from further had has have having he her here hers him his how i if in into is it its
    itself just let me more most much many my no nor not now of off often on once only or other our out over own please same she
    should so some such than that the their them then there these they this those through to too under until up us very want
    was we were what when where which while who whom whose why will with would you your
    aber alle als also auch auf aus bei bin bis bitte da damit das dass dein dem den der des die dies diese dieser doch dort du
    durch ein eine einem einen einer es für gibt hat habe haben hier ich ihr im ist ja jede kann kein keine mein mich mir mit
    nach nicht noch nur ob oder oft ohne sein sich sie sind um und uns unser unter viel viele vom von vor wann war warum
    welche welchem welchen welcher welches wenn wer werden wessen wie wir wird wo woher wohin wurde zu zum zur
    à au aux avec ce ces cela cette comment combien dans de du elle elles en est et être été fait il ils je l la le les leur lui
    ma mais mes moi mon ne nos notre nous où ou par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi
    sa sans se ses si son sont sur ta te tes ton tu un une vos votre vous y d c j n s
    al algo como cómo con cual cuál cuáles cuándo cuánto cuántos del dónde donde el él ella ellos entre esa ese eso esta está
    este esto están fue ha hay las lo los muy o para pero porque qué quién según ser sí sin sobre su sus también tiene unos ya
    ao aos às até com da das dela dele dos e é ela ele eles em era essa esse eu foi há isso isto já lhe mas mesmo meu minha muito
    na nas não nem nós onde os pela pelo por quais qual quem são sem também tem uma você
    che chi ci cosa cui dalla dei della delle dello di dove gli i nel nella nello per perché più quale quali quando quanto
    questa questo sono tra
    の は が を に で と も へ や か です ます です か どこ どれ 何 なに いつ 誰 どう なぜ する した して いる ある この その
    的 了 是 吗 在 有 我 你 他 们 什么 怎么 哪个 哪里 哪 这 那 个 和 与 请 多少 为什么 如何 时候 的话"""
)
"""The small words of several languages: no use in a search."""

FILLERS = _bag(
    """agree agreed answer ask asked called chose choose contain contains decide decided discussed earlier hold holds last
    lasts long may might must recall said talked told defined describe explain exactly find get give happens happened hello
    implemented kind know located look mean means mention mentioned need say says see set show supported summarize tell thing
    things use used using way work works zeig zeige erkläre montre explique muestra explica mostra mostre spiega"""
)
"""Words of asking rather than of what is asked; left out while anything else is left."""

PLACES = _bag("file files folder project repo repository codebase code line lines directory here")

_CJK = "\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN = expression(rf"[{_CJK}]+|[^\W{_CJK}]+")
_HUMP = expression(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_\d]+|\d+")
_QUOTED = expression(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|「([^」\n]{1,200})」"
)
_IDENTIFIER = expression(
    r"(?<![\w./-])(?:[\w-]+(?:[./\\][\w.-]+)+|--?[a-z][\w-]+|\w*[a-z][A-Z]\w*|\w+_\w+"
    r"|(?<=\bthe )\w+(?= (?:class|function|method|struct|decorator)\b)"
    r"|(?<=\b[Ww]here is )(?!(?:it|this|that)\b)\w+(?= (?:defined|declared|implemented)\b))"
)
_PROPER = expression(r"(?<![.!?¿¡:] )(?<!^)\b([^\W\d_a-z]\w+(?: (?:[^\W\d_a-z]\w*|\d+))+)")
_CLITIC = expression(r"\b(?:[ldjcnsmt]|qu|dell|nell|sull|all|un)['’]|['’](?:s|re|ve|ll|d|m|t)\b", re.I)
_HIRAGANA = expression("[\u3041-\u309f]+")
_PARTICLES = "|".join(
    sorted({w for w in COMMON_WORDS if re.match(f"[{_CJK}]", w)} | set("はがをにのでもとへや"), key=len, reverse=True)
)
_IRREGULAR = {
    "kept": "keep", "sent": "send", "ran": "run", "wrote": "write", "written": "write", "built": "build", "made": "make",
    "found": "find", "held": "hold", "began": "begin", "chose": "choose", "chosen": "choose", "broke": "break",
    "broken": "break", "left": "leave", "lost": "lose", "took": "take", "taken": "take", "people": "person",
}  # fmt: skip


class Topic(msgspec.Struct, frozen=True):
    """What a question is about. `terms` are stems in their order; `phrases` neighbours as written; `names` identifiers, paths and
    quoted words; `proper` names of things (`Pier 7`); `shown` all of it in the asker's own words."""

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
    """What to look for."""
    question = question[:MAX_QUESTION_CHARS].strip()
    quoted = (g.strip() for groups in _QUOTED.findall(question) for g in groups if g.strip())
    names = tuple(dict.fromkeys((*quoted, *(n.rstrip(".") for n in _IDENTIFIER.findall(question)))))
    plain = _CLITIC.sub(" ", question)
    words = _content_words(plain)
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
        if word.endswith(("ies", "ied")):
            word = word[:-3] + "y"
        elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ("ation", "ing", "ed", "ly"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and re.search("[aeiouyäöü]", base):
            word = base[:-1] if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def pattern(found: Iterable[str]) -> str:
    """A regular expression for lines that hold any of these terms, whatever their endings. Short ones only at a word's start."""
    return "|".join(
        (r"(\b|_)" if len(term) <= 4 and term.isascii() else "") + literal(_cut(term))
        for term in dict.fromkeys(found)
        if term
    )


def together_pattern(groups: Sequence[Sequence[str]]) -> str:
    """A regular expression for lines that hold terms of at least two of these groups, in either order. Of many groups the
    four with the longest words are taken, for those are the rarest."""
    longest = sorted(groups, key=lambda group: -max(map(len, group), default=0))[:4]
    parts = [f"(?:{p})" if len(group) > 1 else p for group in groups if group in longest and (p := pattern(group))]
    return "|".join(f"{a}.*{b}|{b}.*{a}" for a, b in itertools.combinations(parts, 2))


def phrase_pattern(phrases: Iterable[str]) -> str:
    """A regular expression for phrases, however their words are joined: `retry limit`, `retry_limit`, `RetryLimit`."""
    return "|".join(
        "[ _-]?".join(literal(_cut(stem(w)) if i == len(ws) - 1 else w) for i, w in enumerate(ws))
        for phrase in dict.fromkeys(phrases)
        if (ws := phrase.split())
    )


def literal(text: str) -> str:
    """A regular expression for exactly this text, in the dialects of Python and ripgrep alike."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _forms(run: str) -> Iterator[str]:
    if re.match(f"[{_CJK}]", run):
        pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        yield from (pair for pair in pairs if len(run) == 1 or not _HIRAGANA.fullmatch(pair))
        return
    parts = [stem(p) for p in _HUMP.findall(run)]
    if parts != [stem(run)]:
        yield from parts
    yield stem(run)


def _content_words(question: str) -> list[str]:
    """The words worth looking for, in order: small words out, fillers out while something is left."""
    runs = [
        w
        for run in _RUN.findall(question)
        for w in (re.split(_PARTICLES, run) if re.match(f"[{_CJK}]", run) else [run])
    ]
    words = [w for w in runs if w and w.casefold() not in COMMON_WORDS and (len(w) > 1 or w.isdigit())]
    for useless in (FILLERS, PLACES):
        words = [w for w in words if w.casefold() not in useless] or words
    return words


def _neighbours(question: str, words: list[str]) -> Iterator[str]:
    """Pairs of content words that stood side by side."""
    kept = set(words)
    runs = [(m.group(), m.start(), m.end()) for m in _RUN.finditer(question)]
    for (first, _, end), (second, start, _) in itertools.pairwise(runs):
        beside = not first.isdigit() and {first, second} <= kept and question[end:start] in {" ", "-"}
        if beside and not re.match(f"[{_CJK}]", first):
            yield f"{first} {second}"


def _cut(term: str) -> str:
    """`retry` finds `retries` only without its last letter."""
    return term[:-1] if len(term) > 4 and term.endswith("y") else term
