"""Finds what a question is about (its `Topic`), splits texts into terms that can be compared, and writes terms as regular
expressions to search for.

A term is the stem of a word, a part of an identifier, or a pair of characters in Chinese, Japanese or Korean, which are written
without spaces between words. Pure; knows no tool.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ctxchat.core.expressions import expression

MAX_QUESTION_CHARS = 4_000
"""Characters of a question that are read: what follows is taken for a pasted text, which does not change what is asked."""


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMON_WORDS = _word_set(
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
"""Words of several languages that are too common to search for."""

FILLERS = _word_set(
    """agree agreed answer ask asked called chose choose contain contains decide decided discussed earlier hold holds last
    lasts long may might must recall said talked told defined describe explain exactly find get give happens happened hello
    implemented kind know located look mean means mention mentioned need say says see set show supported summarize tell thing
    things use used using way work works zeig zeige erkläre montre explique muestra explica mostra mostre spiega"""
)
"""Words that belong to the asking and not to what is asked; left out as long as other words remain."""

PLACES = _word_set("file files folder project repo repository codebase code line lines directory here")
"""Words for where to look; left out as long as other words remain."""

_CJK = "\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN = expression(rf"[{_CJK}]+|[^\W{_CJK}]+")
"""Matches a run: a word, an identifier, or characters of a script without spaces up to the next of another script."""

_HUMP = expression(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_\d]+|\d+")
"""Matches a part of an identifier in camel case or snake case."""

_QUOTED = expression(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|「([^」\n]{1,200})」"
)
_IDENTIFIER = expression(
    r"(?<![\w./-])(?:[\w-]+(?:[./\\][\w.-]+)+|--?[a-z][\w-]+|\w*[a-z][A-Z]\w*|\w+_\w+"
    r"|(?<=\bthe )\w+(?= (?:class|function|method|struct|decorator)\b)"
    r"|(?<=\b[Ww]here is )(?!(?:it|this|that)\b)\w+(?= (?:defined|declared|implemented)\b))"
)
"""Matches a path, an option (`--all`), an identifier, and a plain word that the sentence says is one (`the foo class`)."""

_PROPER = expression(r"(?<![.!?¿¡:] )(?<!^)\b([^\W\d_a-z]\w+(?: (?:[^\W\d_a-z]\w*|\d+))+)")
"""Matches several words in a row with capitals, in the middle of a sentence: a proper name."""

_CLITIC = expression(r"\b(?:[ldjcnsmt]|qu|dell|nell|sull|all|un)['’]|['’](?:s|re|ve|ll|d|m|t)\b", re.I)
"""Matches what an apostrophe joins to a word: `l'`, `'s`."""

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
    """What a question is about.

    `terms` are the terms of its content words, in order. `phrases` are pairs of content words that stood side by side, and proper
    names. `names` are identifiers, paths and quoted texts; `proper` are proper names (`Pier 7`). `shown` is what is looked for in
    the asker's own words, to be told to them.
    """

    terms: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    proper: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """True where there is nothing to look for."""
        return not self.terms and not self.names


def topic(question: str) -> Topic:
    """What a question is about."""
    question = question[:MAX_QUESTION_CHARS].strip()
    quoted = (g.strip() for groups in _QUOTED.findall(question) for g in groups if g.strip())
    names = tuple(dict.fromkeys((*quoted, *(n.rstrip(".") for n in _IDENTIFIER.findall(question)))))
    plain = _CLITIC.sub(" ", question)
    words = _content_words(plain)
    proper = tuple(dict.fromkeys(_PROPER.findall(plain)))
    phrases = tuple(dict.fromkeys((*proper, *_neighbours(plain, words))))
    term_list = tuple(dict.fromkeys(t for w in words for t in _terms_of_run(w)))
    in_names = {w for p in (*proper, *names) for w in _RUN.findall(p)}
    shown = tuple(dict.fromkeys((*names, *proper, *(w for w in words if w not in in_names))))
    return Topic(term_list, phrases, names, proper, shown)


def terms(text: str) -> Iterator[str]:
    """All terms of a text: the stems of its words, the parts of its identifiers, pairs of characters of scripts without
    spaces."""
    for run in _RUN.findall(text):
        yield from _terms_of_run(run)


def stem(word: str) -> str:
    """The word in lower case without the most common English endings: `retries`, `retrying`, `Retry` → `retry`."""
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
    """A regular expression for lines that hold any of these terms with any ending. Short terms match only at the start of a
    word."""
    return "|".join(
        (r"(\b|_)" if len(term) <= 4 and term.isascii() else "") + literal(_without_y(term))
        for term in dict.fromkeys(found)
        if term
    )


def together_pattern(groups: Sequence[Sequence[str]]) -> str:
    """A regular expression for lines that hold a term of one group and a term of another, in either order. A group is a term with
    its synonyms. Of more than four groups only those with the longest words are used, which are likely the rarest."""
    longest = sorted(groups, key=lambda group: -max(map(len, group), default=0))[:4]
    parts = [f"(?:{p})" if len(group) > 1 else p for group in groups if group in longest and (p := pattern(group))]
    return "|".join(f"{a}.*{b}|{b}.*{a}" for a, b in itertools.combinations(parts, 2))


def phrase_pattern(phrases: Iterable[str]) -> str:
    """A regular expression for phrases, however their words are joined: `retry limit`, `retry_limit`, `RetryLimit`."""
    return "|".join(
        "[ _-]?".join(literal(_without_y(stem(w)) if i == len(ws) - 1 else w) for i, w in enumerate(ws))
        for phrase in dict.fromkeys(phrases)
        if (ws := phrase.split())
    )


def literal(text: str) -> str:
    """A regular expression for exactly this text, valid for Python and for ripgrep."""
    return re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", text)


def _terms_of_run(run: str) -> Iterator[str]:
    """The terms of a run: of a word its stem, of an identifier also those of its parts. Pairs of hiragana are left out, since
    most are grammar."""
    if re.match(f"[{_CJK}]", run):
        pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        yield from (pair for pair in pairs if len(run) == 1 or not _HIRAGANA.fullmatch(pair))
        return
    parts = [stem(p) for p in _HUMP.findall(run)]
    if parts != [stem(run)]:
        yield from parts
    yield stem(run)


def _content_words(question: str) -> list[str]:
    """The words worth looking for, in order: without common words, and without fillers and places as long as others remain."""
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
    """Pairs of content words (`words`) that stand side by side in the question."""
    kept = set(words)
    runs = [(m.group(), m.start(), m.end()) for m in _RUN.finditer(question)]
    for (first, _, end), (second, start, _) in itertools.pairwise(runs):
        beside = not first.isdigit() and {first, second} <= kept and question[end:start] in {" ", "-"}
        if beside and not re.match(f"[{_CJK}]", first):
            yield f"{first} {second}"


def _without_y(term: str) -> str:
    """A term without a final `y`, so that a search for `retry` finds `retries`, too."""
    return term[:-1] if len(term) > 4 and term.endswith("y") else term
