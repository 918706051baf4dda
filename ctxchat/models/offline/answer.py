"""The answer to a question: the best passages quoted with their places, what was searched, and what was not found."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxchat.models.offline import phrases
from ctxchat.models.offline.beginning import beginning
from ctxchat.models.offline.language import Language
from ctxchat.models.offline.passages import Line, Passage, Ranking, file_lines, hits
from ctxchat.models.offline.question import Question
from ctxchat.models.offline.quoting import clip, fence, head, listed, quote, ref, said, sought
from ctxchat.models.offline.transcript import Source, Transcript
from ctxchat.models.offline.words import terms

MOST_QUOTES = 3

_OURS = (">", "```", *phrases.BEGINNINGS)
"""How the parts of our own answers begin."""

Told = tuple[float, Source, str]
"""Something the conversation itself says: how well it fits (0 to 1), where it stands, its words."""


def pool_of(seen: Transcript) -> list[Line]:
    """Every line of the folder this turn has seen; what was read stands before what a search clipped."""
    lines = [hit for d in seen.named("grep") if not d.failed for hit in hits(d.text)]
    for done in seen.named("read_file"):
        if not done.failed:
            lines += file_lines(done.text, done.get("path"), _number(done.get("start_line")))
    return lines


def _number(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 9 else 1


def ranked(asked: Question, pool: Sequence[Line]) -> tuple[Ranking, list[Passage]]:
    ranking = Ranking(asked.topic, pool, weights=asked.lesser, wish=asked.wish)
    best = [p for p in ranking.best(12) if (p.line.path, p.line.number) not in asked.quoted]
    return ranking, best[:8]


def answer(asked: Question, seen: Transcript, language: Language, about_talk: bool) -> str:
    pool = pool_of(seen)
    ranking, best = ranked(asked, pool)
    told = told_of(asked, seen, about_talk)
    good = [p for p in best[:MOST_QUOTES] if p.score >= 0.6 * best[0].score]
    missing = _missing(asked, pool, told)
    parts: list[str] = []
    covered = ranking.coverage(good[0]) if good else 0.0
    if told and (about_talk or told[0][0] > covered):
        parts += _from_talk(told, language)
    if good and not (about_talk and told):
        whole = covered >= 0.5 and not set(missing) & {*asked.topic.proper, *asked.topic.names}
        parts += _from_files(good, whole, language)
    if not parts:  # no line holds the words, but a file's name did
        begun = [beginning(done, language, "found") for done in seen.named("read_file") if not done.failed]
        parts += list(filter(None, begun[:1])) or [phrases.say(language, "nothing"), *refusals(seen, language)]
    if missing and (good or told):
        parts.append(phrases.say(language, "missing", words=sought(missing)))
    parts.append(_searched(asked, seen, language))
    if not good and not told:
        parts.append(phrases.say(language, "limits"))
    return "\n\n".join(p for p in parts if p)


def _from_files(good: Sequence[Passage], whole: bool, language: Language) -> list[str]:
    parts = [phrases.say(language, "found" if whole else "partly", ref=ref(good[0].ref)), quote(good[0])]
    for passage in good[1:]:
        parts += [phrases.say(language, "also", ref=ref(passage.ref)), quote(passage)]
    return parts


def _missing(asked: Question, pool: Sequence[Line], told: Sequence[Told]) -> list[str]:
    """Words of the question that nothing found holds, as the user wrote them."""
    texts = [*(f"{line.path} {line.text}" for line in pool), *(text for _, _, text in told)]
    runs = [f" {' '.join(terms(text))} " for text in texts]
    held = {t for run in runs for t in run.split()}
    named = {*asked.topic.names, *asked.topic.proper}

    def absent(word: str) -> bool:
        own = list(terms(word))
        if word in named:
            return not any(f" {' '.join(own)} " in run for run in runs) and not any(word in text for text in texts)
        return bool(own) and not held.intersection(own)

    return [w for w in asked.topic.shown if absent(w)]


def _searched(asked: Question, seen: Transcript, language: Language) -> str:
    if not seen.done:
        return ""
    words = asked.topic.shown or tuple(asked.lesser)
    paths = list(dict.fromkeys(d.get("path") for d in seen.named("read_file") if not d.failed))
    read = phrases.say(language, "read", paths=listed(paths)) if paths else ""
    return phrases.say(language, "searched", words=sought(words), read=read)


def refusals(seen: Transcript, language: Language) -> list[str]:
    """What stood in the way, once each: a search that was denied or broke."""
    texts = dict.fromkeys((d.denied, d.text.strip()) for d in seen.done if d.failed and not _just_nothing(d.text))
    return [
        f"{phrases.say(language, 'denied' if denied else 'failed')}\n\n{fence(head(text.split(chr(10)), 6))}"
        for denied, text in list(texts)[:2]
    ]


def _just_nothing(text: str) -> bool:
    return bool(re.match(r"\W*(?:no|nothing|0)\b", text, re.I)) or not text.strip()


def told_of(asked: Question, seen: Transcript, about_talk: bool) -> list[Told]:
    """What the summary, memory, restored messages and earlier words say about it, best first, at most two."""
    known = dict(asked.lesser) | dict.fromkeys(asked.topic.terms, 1.0)
    sources = [
        Source("the archive", d.text, "recall")
        for d in seen.named("recall")
        if not d.failed and not _just_nothing(d.text)
    ]
    sources += [s for s in seen.sources if about_talk or s.kind != "reply"]
    scored: list[Told] = []
    for source in sources:
        for piece in re.split(
            r"\n\s*\n|\n(?=[-#*>] )|(?<=[.!?。！？])\s+(?=[A-ZÀ-Þ\u3041-\u9fff])", source.text[:60_000]
        ):
            if _no_news(source, piece):
                continue
            held = {t for t in set(terms(piece[:4_000])) if t in known}
            score = sum(known[t] for t in held) / (sum(known.values()) or 1)
            if score >= (0.3 if about_talk else 0.5):
                scored.append((score, source, piece.strip()))
    scored.sort(key=lambda s: -s[0])
    return scored[:2]


def _no_news(source: Source, piece: str) -> bool:
    """A question asked before is no answer, nor is what an earlier answer of ours quoted or said around it."""
    if source.kind == "user":
        return piece.rstrip().endswith(("?", "？"))
    return source.kind == "reply" and piece.lstrip().startswith(_OURS)


def _from_talk(told: Sequence[Told], language: Language) -> list[str]:
    parts: list[str] = []
    for _, source, text in told:
        parts += [phrases.say(language, "told", label=clip(source.label, 80)), said(text)]
    return parts
