"""Questions: what to search for, what to read of what was found, when to look further, and the answer made of quotations.

At most three rounds with tools, then an answer. What files say is quoted, never obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxchat.models.offline import phrases
from ctxchat.models.offline.answer import answer, pool_of, ranked, told_of
from ctxchat.models.offline.language import Language
from ctxchat.models.offline.passages import Passage, by_file
from ctxchat.models.offline.question import Question, understand
from ctxchat.models.offline.reply import Decision, wanted
from ctxchat.models.offline.transcript import Tools, Transcript
from ctxchat.models.offline.words import literal, pattern, phrase_pattern, terms, together_pattern

MOST_ROUNDS = 3
MOST_FILES = 3
MOST_HITS = 60
AROUND = (6, 12)
"""Lines read above and below the best one."""

ENOUGH = 0.34
"""The share of a question that what was found must hold before reading starts."""


def research(seen: Transcript, tools: Tools, language: Language, *, about_talk: bool = False) -> Decision:
    """The next step: searches, then reading, then the answer. `about_talk`: the question is about this conversation."""
    asked = understand(seen)
    if asked.topic.empty and not asked.lesser:
        return Decision(f"{phrases.say(language, 'limits')}\n\n{phrases.GREETING.removeprefix('Hello. ')}")
    if seen.rounds < MOST_ROUNDS and (step := _next_step(asked, seen, tools, about_talk)):
        return step
    return Decision(answer(asked, seen, language, about_talk))


def _next_step(asked: Question, seen: Transcript, tools: Tools, about_talk: bool) -> Decision | None:
    """Calls to make, or None when it is time to answer."""
    if seen.named("read_file") or (about_talk and told_of(asked, seen, about_talk)):
        return None
    if about_talk and not seen.done and (recall := tools.call("recall", query=_words(asked))):
        return Decision(wanted=wanted(recall), thought=f"Said earlier? {_words(asked)}.")
    searched = {d.round for d in seen.named("grep", "glob", "list_files")}
    if not searched:
        return _search(asked, tools)
    ranking, best = ranked(asked, pool_of(seen))
    covered = max((ranking.coverage(p) for p in best), default=0.0)
    if covered < ENOUGH and len(searched) == 1 and seen.rounds < MOST_ROUNDS and (step := _widen(asked, seen, tools)):
        return step
    return _read(best, seen, tools, asked)


def _search(asked: Question, tools: Tools) -> Decision | None:
    """The first searches, side by side: names and phrases as they stand, and lines where two of the words meet."""
    about = asked.topic
    exact = "|".join(p for p in ("|".join(map(literal, about.names)), phrase_pattern(about.phrases[:6])) if p)
    named = {t for name in about.names for t in terms(name)}
    meeting = "" if named >= {*about.terms} else together_pattern(asked.groups)
    patterns = [p for p in dict.fromkeys((exact, meeting)) if p] or [pattern([*about.terms, *asked.lesser])]
    searches = [_grep(tools, p) for p in patterns]
    files = [n for n in about.names if re.search(r"\.\w{1,8}$", n)]
    searches += [tools.call("glob", pattern=f"**/{n.rsplit('/', 1)[-1]}") for n in files[:2]]
    if "grep" not in tools:
        searches += [tools.call("list_files", depth=1), tools.call("glob", pattern="**/README*")]
    calls = wanted(*searches)
    return Decision(wanted=calls, thought=f"Looking for {_words(asked)}.") if calls else None


def _grep(tools: Tools, wanted_pattern: str) -> tuple[str, dict[str, object]] | None:
    return tools.call("grep", pattern=wanted_pattern, ignore_case=True, max_hits=MOST_HITS) if wanted_pattern else None


def _words(asked: Question) -> str:
    return " ".join(asked.topic.shown or tuple(asked.lesser))


def _widen(asked: Question, seen: Transcript, tools: Tools) -> Decision | None:
    """A second round with a wider net: any of the words, their roots where that was tried, and file names."""
    about = asked.topic
    known = [*about.terms, *asked.lesser]
    roots = [t[: max(4, len(t) - 2)] if t.isascii() else t[:1] for t in known if len(t) > 4 or not t.isascii()]
    tried = {d.get("pattern") for d in seen.named("grep")}
    wider = next((p for p in (pattern(known[:16]), pattern([*roots, *about.terms])) if p and p not in tried), "")
    names = [t for t in sorted(about.terms, key=len, reverse=True) if re.fullmatch(r"\w+", t)]
    calls = wanted(_grep(tools, wider), *(tools.call("glob", pattern=f"**/*{t}*") for t in names[:2]))
    thought = "Little found; looking for any of these words, and for file names."
    return Decision(wanted=calls, thought=thought) if calls else None


def _read(best: Sequence[Passage], seen: Transcript, tools: Tools, asked: Question) -> Decision | None:
    """Read around the best places, several files at once; where no line matched, the files whose names did."""
    calls: list[tuple[str, dict[str, object]] | None] = []
    for path, passages in list(by_file(best).items())[:MOST_FILES]:
        numbers = [p.line.number for p in passages if p.score >= 0.5 * best[0].score] or [passages[0].line.number]
        first = passages[0].line.number
        near = [n for n in numbers if abs(n - first) < 30]
        start, end = max(1, min(near) - AROUND[0]), max(near) + AROUND[1]
        calls.append(tools.call("read_file", path=path, start_line=start, end_line=end))
    if not best:
        calls += [tools.call("read_file", path=path, start_line=1, end_line=80) for path in _named_files(seen, asked)]
    made = wanted(*calls)
    names = ", ".join(str(w.arguments.get("path", "a file")) for w in made)
    return Decision(wanted=made, thought=f"Reading {names}.") if made else None


def _named_files(seen: Transcript, asked: Question) -> list[str]:
    """Files whose names hold the question's words, those that hold most first; a README where nothing else is known."""
    known = set(asked.topic.terms) | set(asked.lesser)
    rows = [r for d in seen.named("glob", "list_files") if not d.failed for r in d.text.split("\n")]
    paths = dict.fromkeys(
        p for r in rows for p in re.findall(r"[\w./\\-]*\w\.\w{1,8}\b|\bMakefile\b|\bREADME\b", r[:400])
    )
    names = [n.casefold() for n in asked.topic.names]
    rated = [(len(known & set(terms(p))) + 2 * any(n in p.casefold() for n in names), p) for p in paths]
    good = [p for rate, p in sorted(rated, key=lambda r: (-r[0], len(r[1]), r[1])) if rate]
    if not good and not seen.named("grep"):
        good = [p for p in paths if "readme" in p.casefold()][:1]
    return [p.removeprefix("./") for p in good[:2]]
