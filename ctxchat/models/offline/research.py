"""How the built-in assistant answers questions: it searches the folder for their words, reads around the best hits, and answers
with quotations. `research` computes the next step of that from what the view shows was done so far.

At most three rounds of tool calls, then an answer. What files say is quoted, never obeyed. Lines are ranked in `passages`. A
question that has a usual form (`which version …`) brings wishes, see `_KINDS`: a wish is a pattern of lines that are ranked
higher by its weight, in files whose paths match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ctxchat.core.expressions import expression
from ctxchat.core.found_paths import whole_paths
from ctxchat.models.offline import phrases
from ctxchat.models.offline.commands import trouble
from ctxchat.models.offline.passages import (
    DEFINES,
    FileLine,
    Passage,
    Ranking,
    Wish,
    beginning,
    clip,
    fence,
    file_lines,
    head,
    hits,
    outline,
    quote,
    ref,
    said,
    sought,
    word_list,
)
from ctxchat.models.offline.transcript import Call, ReadView, Reply, Source
from ctxchat.models.offline.words import (
    FILLERS,
    PLACES,
    Topic,
    literal,
    pattern,
    phrase_pattern,
    stem,
    terms,
    together_pattern,
    topic,
)

MAX_ROUNDS = 3
MAX_FILES = 4
MAX_QUOTES = 3
MAX_HITS = 200
LINES_AROUND_BEST = 12
"""Lines read above and below the best hit."""

MIN_QUESTION_SHARE = 0.34
"""The share of a question (of its terms, by weight) that the best passage must hold before it is read; else a wider search comes
first."""

FORM_MATCH_WEIGHT = 3.0
"""The least weight of a wish whose lines answer the question by their form alone, whatever other words the question has."""

EARLIER_QUESTION_WEIGHT = 0.35
"""Weight of all terms of the previous question together, against those of the present question that refers to it."""

SYNONYM_WEIGHT = 0.5
"""Weight of a synonym of a term of the question."""

_SYNONYMS = {
    stem(word): tuple(map(stem, others.split()))
    for word, _, others in (
        row.strip().partition(": ")
        for row in """
            test: pytest unittest jest tox
            install: pip setup
            config: setting option
            setting: config option
            configure: config setting
            license: licence
            start: launch serve
            delete: remove
            limit: max maximum
            maximum: max limit
            most: max
            timeout: seconds
            password: secret credential
            author: maintainer
            version: release
            error: exception fail
            fail: error failure
            large: size
        """.strip().split("\n")
    )
}
"""The stem of a word with those of its synonyms, which are searched for, too."""

_MANIFESTS = r"(?:^|/)(?:pyproject\.toml|package\.json|Cargo\.toml|go\.mod|setup\.(?:py|cfg))$"
"""Paths of files that describe a project: its name, version and dependencies."""

_LICENCES = r"\b(?:MIT|Apache|BSD|[AL]?GPL|GNU|MPL|Mozilla|ISC|Unlicense|EUPL|CC0)\b"
_RELEASE = r"^(?:#+\s*)?(?:\w+\s+)?\[?v?\d+\.\d+(?:\.\d+)*\]?\s*(?:$|[(\-–—])"
"""A version alone on a line, or at the beginning of an entry in a list of changes: where a version is stated nowhere else, the
newest entry tells it."""

_VERSION = r"(?s)\A(?!.*\b(?:python|node|rust|ruby|java|php)\b).*\bversion\b"
"""Matches a question about the project's version, not about that of a language which it needs."""

_HOW_RUN = r"\bhow\b.*\btest(?:s|ed)?\b.*\brun\b|\bhow\b.*\brun\b.*\btests?\b"
_ASSIGNED = r"^\s*[\w.\"'-]+\s*(?::\s*[\w\[\]., |]+)?\s*[:=](?!=)\s*\S"


class _Kind(msgspec.Struct, frozen=True):
    """A kind of question. `asked` is a pattern that such questions match, `wish` the lines that answer them, `search` a pattern
    to search the files for. `TERMS` in `wish` and `search` stands for the terms of the question."""

    asked: str
    wish: Wish
    search: str = ""

    def with_topic(self, topic: Topic) -> _Kind:
        """The kind with the topic's terms in place of `TERMS`."""
        any_term = pattern(topic.terms)
        wish = msgspec.structs.replace(self.wish, line=self.wish.line.replace("TERMS", any_term or "(?!)"))
        search = self.search if any_term or "TERMS" not in self.search else ""
        return _Kind(self.asked, wish, search.replace("TERMS", any_term))

    def met(self, line: FileLine) -> bool:
        """True where the form of a line alone shows that it answers such a question."""
        wish = self.wish
        matches = re.search(wish.files, line.path, re.I) and re.search(wish.line, line.text[:300], re.I)
        return wish.weight >= FORM_MATCH_WEIGHT and bool(matches)


_KINDS = (
    _Kind(
        r"\bwhere\b.*\b(?:set|defined?|declared?|implemented|configured|come|stored|live)\b"
        r"|\b(?:wo|où|dónde|onde|dove)\b|在哪|どこ",
        Wish(DEFINES, 1.6),
    ),
    _Kind(
        r"^\W*what(?:'s| is| are| does)(?: an?| the)? [\w`-]+(?: mean)?\W*$",
        Wish(r"^\W*(?:TERMS)\w*\W*(?:\b(?:is|are|means)\b|[|:—–]\s+\w)", FORM_MATCH_WEIGHT, r"\.(?:md|rst|txt|adoc)$"),
        r"^\W*(TERMS)\w*\W+(is|are|means)\b|^\W*\*\*(TERMS)",
    ),
    _Kind(r"\bwhat(?: is|'s) the\b|\bwhich\b", Wish(rf"{_ASSIGNED}|\bdefaults? to\b", 1.25)),
    _Kind(
        r"\bhow (?:many|much|often|long|big|large|old|fast)\b|\bwhen\b|\b(?:number|size|limit|port|timeout|interval)\b"
        r"|\bwie (?:viele?|oft|lange)\b|\bwann\b|\bcombien\b|\bcuánt|\bquant[oai]|多少|几|いくつ|何",
        Wish(r"^\s*(?:[\w.]+|[\"'][\w-]+[\"'])\s*[:=]\s*\d|\bdefaults? to\b.*\d", 1.6),
        r"(TERMS)\w*[\"']?\s*[:=]\s*\d",
    ),
    _Kind(
        r"\binstall",
        Wish(
            r"\b(?:pip|pipx|uv|npm|yarn|cargo|go|apt|brew)\s+(?:install|add|get|i)\b(?! -r)",
            4.0,
            r"(?:^|/)(?:README|INSTALL|docs?/)",
        ),
        r"(pip|pipx|uv|npm|yarn|cargo|brew) (install|add)\b",
    ),
    _Kind(r"\binstall", Wish(r"\binstall\b", 1.5, r"^(?:README|INSTALL)")),
    _Kind(
        _HOW_RUN,
        Wish(
            r"\b(?:pytest|tox|nox|make (?:test|check)|npm test|cargo test|go test)\b",
            3.0,
            r"(?:^|/)(?:README|CONTRIBUTING|Makefile|tox\.ini|noxfile|pyproject\.toml|package\.json)",
        ),
        r"pytest|make (test|check)|npm test",
    ),
    _Kind(
        r"\bhow (?:do|can|should|to|does one)\b.*\b(?:run|build|start|use|deploy|launch|execute|set up|lint)\b",
        Wish(r"^\s*(?:\$ |> |```|- run:)|\b(?:npm|yarn|pnpm|make|cargo|go (?:run|build)|uv|docker|\./\w)", 1.5),
    ),
    _Kind(
        _VERSION,
        Wish(
            r"^\s*(?:__version__|\"?version\"?)\s*[:=]\s*[\"']?\d|^\d+\.\d[\w.]*$",
            8.0,
            rf"__version__|__init__|(?:^|/)VERSION$|{_MANIFESTS}",
        ),
        r"^\s*(__version__|\"?version\"?)\s*[:=]\s*[\"']?\d",
    ),
    _Kind(_VERSION, Wish(_RELEASE, 3.0, r"(?:^|/)(?:CHANGE|HISTORY|NEWS|RELEASE)\w*"), _RELEASE),
    _Kind(
        r"\bpython versions?\b|\bversions? of python\b",
        Wish(r"requires-python|python_requires|^python *=", 4.0, _MANIFESTS),
        "requires-python|python_requires|^python *=",
    ),
    _Kind(
        r"\blicen[cs]e\b",
        Wish(_LICENCES, 4.0, rf"(?:^|/)(?:LICEN[CS]E|COPYING)[^/]*$|{_MANIFESTS}"),
        rf"^\s*\"?licen[cs]e|License ::|{_LICENCES}.*licen[cs]e",
    ),
    _Kind(
        r"\bdependenc|\bdepends? on\b",
        Wish(r"dependencies\"?\s*[:=]|^\[.*dependencies\]|install_requires", 4.0, _MANIFESTS),
        r"dependencies|install_requires",
    ),
)
"""All kinds of questions that are known; a question may be of several."""

_OVERVIEW = expression(
    r"""^\W*(?:what\ (?:does|is|do)\ (?:this|the)\s+(?:whole\s+)?(?:{0})(?:\s+(?:do|does|about|for|all\ about))?
    | what(?:'s|\ is)\ (?:this(?:\ (?:all\ )?about)?|(?:in\ )?here) | overview
    | (?:describe|summari[sz]e|explain|give\ (?:me\ )?an\ overview\ of)\ (?:this|the)\ (?:whole\ )?(?:{0}))\W*$""".format(
        "project|repo(?:sitory)?|code\\ ?base|code|program|folder|app(?:lication)?|package|library|tool"
    ),
    re.I | re.X,
)
"""Matches a question about the project as a whole."""

_RECALL = expression(
    r"""^recall\s+(?P<a>.+)$
    | ^(?:what|when|which|where|how|who|did|do)\b.{0,200}?\b(?:we|i|you)\s+
      (?:say|said|decided?|agreed?|mention(?:ed)?|talk(?:ed)?|discuss(?:ed)?|told|tell|chose|choose|asked?)\b.*$
    | \bearlier\b.*\b(?:we|i|you)\b""",
    re.I | re.X | re.S,
)
"""Matches a question about what was said earlier in the conversation."""

_LEANS = expression(
    r"^\W*(?:and|und|et|y|e|but|also|what about|how about)\b|\b(?:it|its|they|them|their|those|there|he|she|him|her)\b",
    re.I,
)
"""Matches a question that refers to the one before (`and …`, `it`, `what about …`)."""

_MORE = expression(
    r"^\W*(?:(?:tell|show|give)(?: me)? )?(?:more|else|other|further|next|mehr|weiter|encore|plus|más|mais|altro)\b(?![./-]\w)",
    re.I,
)
"""Matches a request for more of the same answer."""

_REF = expression(r"`([^`\n]+):(\d{1,9})`")
"""Matches a place that an answer has quoted: path and line."""

_MENTION = expression(r"(?<!\S)@(?:\"([^\"\n]+)\"|(\S*[\w/]))")
_OUR_ANSWERS = (">", "```", *phrases.BEGINNINGS)
"""Beginnings of the parts of the assistant's own answers."""


class Question(msgspec.Struct, frozen=True):
    """A question, understood: its topic, further terms with weights of their own (`lesser`: synonyms, and terms of the previous
    question), its kinds, and the places that an answer has `quoted` already. `past`: it is about what was said in this
    conversation."""

    topic: Topic
    lesser: Mapping[str, float]
    kinds: tuple[_Kind, ...]
    quoted: frozenset[tuple[str, int]]
    past: bool

    @property
    def words(self) -> tuple[str, ...]:
        """What is looked for, in the asker's own words; where there are none, the lesser terms."""
        return self.topic.shown or tuple(self.lesser)

    def ranked(self, pool: Sequence[FileLine]) -> tuple[Ranking, list[Passage]]:
        """The ranking of some lines for this question, and the best passages in them that were not quoted already."""
        wishes = [kind.wish for kind in self.kinds]
        if defined := _definitions(self.topic):
            program = r"\.(?!md|rst|txt)\w+$"
            wishes += [
                Wish(defined, 3.0, program),
                Wish(rf"^(?:\w+ )*(?-i:{defined})", 1.3, program),  # not indented, and spelled in the same case
            ]
        ranking = Ranking(self.topic, pool, weights=self.lesser, wishes=wishes)
        return ranking, [p for p in ranking.best(12) if (p.line.path, p.line.number) not in self.quoted][:8]


Told = tuple[float, Source, str]
"""A passage of the conversation itself that answers a question: how well (0 to 1), its source, its text."""


def research(seen: ReadView) -> Reply:
    """The next step in answering the question: first searches, then reading, then the answer."""
    named = _named_files(seen)
    if named or _OVERVIEW.match(seen.question[:600]):
        step = _about_files(seen, named) if named else _overview(seen)
        if step:
            return step
    asked = _understood(seen)
    if asked.topic.empty and not asked.lesser and not asked.kinds:
        return Reply(f"{phrases.LIMITS}\n\n{phrases.GREETING.removeprefix('Hello. ')}")
    step = _next_step(asked, seen) if seen.rounds < MAX_ROUNDS else None
    return step or Reply(_answer(asked, seen))


# ── what is asked ──


def _understood(seen: ReadView) -> Question:
    """What is asked. Where the question refers to the one before, the terms of that one are added, with less weight; where it
    asks for more and says not of what else, they take its place."""
    text = seen.question[:600]
    recall = _RECALL.search(text)
    opening = _MORE.match(text)
    now = topic(recall["a"] if recall and recall["a"] else seen.question[opening.end() if opening else 0 :])
    lesser = {s: SYNONYM_WEIGHT for t in now.terms for s in _SYNONYMS.get(t, ())}
    before = next((t for t in map(topic, seen.earlier[:4]) if not t.empty), Topic())
    more = now.empty or (bool(opening) and {*now.terms} <= {*before.terms, *_OF_ANSWERS})
    if more or _LEANS.search(text[:300]):
        weight = 1.0 if more else EARLIER_QUESTION_WEIGHT * len(now.terms) / max(1, len(before.terms))
        lesser |= {t: weight for t in before.terms if t not in now.terms}
        now = before if more else now
    kinds = tuple(kind.with_topic(now) for kind in _KINDS if re.search(kind.asked, text, re.I))
    quoted = frozenset((p, int(n)) for p, n in _REF.findall(seen.last_reply)) if more else frozenset()
    return Question(now, lesser, kinds, quoted, bool(recall))


# ── files that are named, and the project as a whole ──


def _named_files(seen: ReadView) -> dict[str, str | None]:
    """The files that the question mentions with `@` (with a slash or a suffix; others may be names of people) or that are
    attached to it, each with its text; None where it was not read yet, empty where reading failed."""
    mentions = _MENTION.findall(seen.question[:4_000])
    mentioned = dict.fromkeys((quoted or plain).rstrip(".") for quoted, plain in mentions)
    read = {d.get("path"): "" if d.failed else d.text for d in seen.named("read_file")}
    like_files = [m for m in mentioned if re.search(r"\.\w{1,8}$|/", m)]
    return {name: seen.attached.get(name, read.get(name)) for name in dict.fromkeys([*seen.attached, *like_files])}


def _about_files(seen: ReadView, named: Mapping[str, str | None]) -> Reply | None:
    """The next step for a question about named files: reads them, then quotes what answers it, or how they begin where it asks
    about them as a whole. None where nothing was read and nothing refused."""
    unread = [name for name, text in named.items() if text is None]
    if unread and not seen.done and (step := seen.calls("", *(("read_file", {"path": name}) for name in unread[:3]))):
        return step
    texts = {name: text for name, text in named.items() if text}
    asked = topic(_MENTION.sub(" ", seen.question))
    about = [t for t in asked.terms if t not in _GENERAL]
    if about:
        lines = [line for name, text in texts.items() for line in file_lines(text, name)]
        ranking = Ranking(asked, lines)
        good = [p for p in ranking.best(MAX_QUOTES) if ranking.coverage(p) >= 0.5]
        if good:
            return Reply("\n\n".join(_from_files(good, True)))
    parts = (
        [part for name, text in list(texts.items())[:3] for part in _outline_file(name, text)]
        if texts
        else _refusals(seen)
    )
    return Reply("\n\n".join(parts)) if parts else None


_GENERAL = frozenset(terms("about summary overview content purpose say explain describe folder project do"))
"""Terms that ask about a file as a whole and not about something in it."""

_OF_ANSWERS = _GENERAL.union(
    *map(terms, (*FILLERS, *PLACES)),
    terms("detail example result place hit match passage quotation info information one"),
)
"""Terms that say nothing of what more is asked for: `more details`."""


def _outline_file(name: str, text: str) -> Iterator[str]:
    """A file as a whole, as parts of an answer: its beginning and its outline."""
    number, opening = beginning(name, text)
    contents = outline(name, text)
    if opening:
        yield phrases.BEGINS.format(ref=ref(f"{name}:{number}"))
        yield opening
    if contents or not opening:
        first = next((line for line in file_lines(text, name) if line.text.strip()), None)
        lead = phrases.HAS if contents else phrases.BEGINS
        yield phrases.HOLDS if opening else lead.format(ref=ref(f"{name}:{first.number if first else 1}"))
        yield contents or fence(head(text.split("\n"), 12), name)


def _overview(seen: ReadView) -> Reply | None:
    """The next step for a question about the project: lists the folder, reads a README and a manifest, then quotes their
    beginnings; without these, the list of files."""
    may_call = seen.rounds < MAX_ROUNDS
    if not seen.done and may_call:
        looks = ("list_files", {"depth": 1}), ("glob", {"pattern": "**/README*"})
        return seen.calls("A README or a manifest says what a project is for.", *looks)
    listing = "\n".join(d.text for d in seen.named("list_files") if not d.failed)
    if may_call and not seen.named("read_file"):
        found = (r for d in seen.named("glob") if not d.failed for r in whole_paths(d.text.split("\n"), hits=False))
        text = "\n".join([listing, *found])
        readmes = sorted(
            {p.removeprefix("./") for p in re.findall(r"(?m)^\s*([\w./-]*README[\w.]*)", text)},
            key=lambda p: (p.count("/"), p),
        )
        manifests = [m for m in _MANIFEST_NAMES if re.search(rf"(?m)(?<![\w/]){re.escape(m)}", text)]
        if step := seen.calls(
            "", *(("read_file", {"path": p, "start_line": 1, "end_line": 60}) for p in (*readmes[:1], *manifests[:1]))
        ):
            return step
    parts: list[str] = []
    for done in seen.named("read_file"):
        number, opening = (0, "") if done.failed else beginning(done.get("path"), done.text)
        if opening:
            lead = phrases.ALSO if parts else phrases.FOUND
            parts += [lead.format(ref=ref(f"{done.get('path')}:{number}")), opening]
    if not parts:
        parts = [phrases.NOTHING, fence(head(listing.split("\n"), 40)) if listing else "", *_refusals(seen)]
    return Reply("\n\n".join(p for p in parts if p))


_MANIFEST_NAMES = ("pyproject.toml", "package.json", "Cargo.toml", "go.mod")


# ── searching and reading ──


def _next_step(asked: Question, seen: ReadView) -> Reply | None:
    """The next calls, or None where it is time to answer: for a question about the past `recall` first; then searches; a wider
    search where they found little; then reading."""
    if seen.named("read_file") or (asked.past and _known_passages(asked, seen)):
        return None
    words = " ".join(asked.words)
    if asked.past and not seen.done and (step := seen.calls(f"Said earlier? {words}.", ("recall", {"query": words}))):
        return step
    search_rounds = {d.round for d in seen.named("grep", "glob", "list_files")}
    if not search_rounds:
        return seen.calls(f"Looking for {words}." if words else "", *_searches(asked, seen))
    ranking, best = asked.ranked(_pool(seen))
    covered = max((ranking.coverage(p) for p in best), default=0.0)
    if (
        covered < MIN_QUESTION_SHARE
        and len(search_rounds) == 1
        and not any(k.search for k in asked.kinds)
        and (step := _widen(asked, seen))
    ):
        return step
    return _read_passages(best, seen, asked)


def _searches(asked: Question, seen: ReadView) -> Iterator[Call]:
    """The first searches, made at once: for definitions of the names, for lines that answer this kind of question, for names and
    phrases as they are, and for lines that hold two of the terms. Without `grep` the folder is listed."""
    about = asked.topic
    exact = "|".join(p for p in ("|".join(map(literal, about.names)), phrase_pattern(about.phrases[:6])) if p)
    named = {t for name in about.names for t in terms(name)}
    synonyms = {s for t in about.terms for s in _SYNONYMS.get(t, ())}
    earlier = tuple(t for t in asked.lesser if t not in synonyms)
    groups = [(t, *_SYNONYMS.get(t, ())) for t in about.terms[:6]] + ([earlier] if earlier else [])
    meeting = "" if named >= {*about.terms} else together_pattern(groups)  # the names alone would be all of it
    kinds = [kind.search for kind in asked.kinds if kind.search]
    patterns = [p for p in dict.fromkeys((exact, meeting)) if p] or [pattern([*about.terms, *asked.lesser])]
    yield from _greps(_definitions(about), *kinds, *patterns)
    files = [n for n in about.names if re.search(r"\.\w{1,8}$", n)]
    for name in files[:2]:
        yield ("glob", {"pattern": f"**/{name.rsplit('/', 1)[-1]}"})
    if "grep" not in seen.offered:
        yield ("list_files", {"depth": 1})
        yield ("glob", {"pattern": "**/README*"})


def _definitions(about: Topic) -> str:
    """A regular expression for the lines that define one of the topic's names; empty where it has none."""
    names = "|".join(literal(name) for name in about.names if name.isidentifier())
    return rf"\b(def|class|function|fn|func|struct|interface|type|const|let|var) +({names})\b" if names else ""


def _greps(*patterns: str) -> Iterator[Call]:
    """A call of `grep` for each pattern that is not empty, each once."""
    wanted = dict.fromkeys(filter(None, patterns))
    return (("grep", {"pattern": pattern, "ignore_case": True, "max_hits": MAX_HITS}) for pattern in wanted)


def _widen(asked: Question, seen: ReadView) -> Reply | None:
    """A wider search as the second round: for any of the terms, or for their first letters where that was searched for already,
    and for names of files."""
    known = [*asked.topic.terms, *asked.lesser]
    roots = [t[: max(4, len(t) - 2)] if t.isascii() else t[:1] for t in known if len(t) > 4 or not t.isascii()]
    tried = {d.get("pattern") for d in seen.named("grep")}
    wider = next((p for p in (pattern(known[:16]), pattern([*roots, *asked.topic.terms])) if p and p not in tried), "")
    names = [t for t in sorted(asked.topic.terms, key=len, reverse=True) if re.fullmatch(r"\w+", t)][:2]
    globs = (("glob", {"pattern": f"**/*{t}*"}) for t in names)
    return seen.calls("Little found; looking for any of these words, and for file names.", *_greps(wider), *globs)


def _read_passages(best: Sequence[Passage], seen: ReadView, asked: Question) -> Reply | None:
    """Calls that read around the best passages, several files at once; where no line matched, files whose names match."""
    spans: dict[str, tuple[int, int]] = {}
    for path in list(dict.fromkeys(p.line.path for p in best))[:MAX_FILES]:
        numbers = [p.line.number for p in best if p.line.path == path]
        near = [number for number in numbers if abs(number - numbers[0]) < 30]
        spans[path] = (max(1, min(near) - LINES_AROUND_BEST), max(near) + LINES_AROUND_BEST)
    if not best:
        spans = dict.fromkeys(_files_by_name(seen, asked), (1, 80))
    reads = (("read_file", {"path": p, "start_line": first, "end_line": last}) for p, (first, last) in spans.items())
    return seen.calls(f"Reading {', '.join(spans)}.", *reads)


def _files_by_name(seen: ReadView, asked: Question) -> list[str]:
    """At most two files whose names hold terms of the question, the best first; a README where no name does and `grep` was not
    available."""
    known = set(asked.topic.terms) | set(asked.lesser)
    rows = [r for d in seen.named("list_files") if not d.failed for r in d.text.split("\n")]
    rows += [r for d in seen.named("glob") if not d.failed for r in whole_paths(d.text.split("\n"), hits=False)]
    paths = dict.fromkeys(
        p for r in rows for p in re.findall(r"[\w./\\-]*\w\.\w{1,8}\b|\bMakefile\b|\bREADME\b", r[:400])
    )
    names = [n.casefold() for n in asked.topic.names]
    rated = [(len(known & set(terms(p))) + 2 * any(n in p.casefold() for n in names), p) for p in paths]
    good = [p for rate, p in sorted(rated, key=lambda r: (-r[0], len(r[1]), r[1])) if rate]
    if not good and not seen.named("grep"):
        good = [p for p in paths if "readme" in p.casefold()][:1]
    return [p.removeprefix("./") for p in good[:2]]


# ── the answer ──


def _pool(seen: ReadView) -> list[FileLine]:
    """All lines of files that this turn has seen. Lines that were read come last, so that they replace the same lines in a
    search's result, where they may be cut."""
    lines = [hit for d in seen.named("grep") if not d.failed for hit in hits(d.text)]
    for done in seen.named("read_file"):
        if not done.failed:
            start = done.get("start_line")
            lines += file_lines(done.text, done.get("path"), int(start) if start.isdigit() and len(start) < 9 else 1)
    return lines


def _answer(asked: Question, seen: ReadView) -> str:
    """The answer: quotations from the conversation, where these fit better than files or the question is about the past; those
    from files, unless a question about the past was answered so; then which words were not found and what was searched."""
    pool = _pool(seen)
    ranking, best = asked.ranked(pool)
    told = _known_passages(asked, seen)
    good = [p for p in best[:MAX_QUOTES] if p.score >= 0.5 * best[0].score]  # not much worse than the best
    missing = _missing(asked, pool, told)
    covered = ranking.coverage(good[0]) if good else 0.0
    parts: list[str] = []
    if told and (asked.past or told[0][0] > covered):
        for _, source, text in told:
            parts += [phrases.TOLD.format(label=clip(source.label, 80)), said(text)]
    if good and not (asked.past and told):
        fits = covered >= 0.5 or any(kind.met(good[0].line) for kind in asked.kinds)
        whole = fits and not set(missing) & {*asked.topic.proper, *asked.topic.names}
        parts += _from_files(good, whole)
    if not parts:  # no line holds the terms; perhaps a file was read because its name does
        read = [d for d in seen.named("read_file") if not d.failed]
        about_file = [part for d in read[:1] for part in _outline_file(d.get("path"), d.text)]
        parts += about_file or [phrases.NOTHING if seen.offered else phrases.NOTHING_SAID, *_refusals(seen)]
    if missing and (good or told):
        parts.append(phrases.MISSING.format(words=sought(missing)))
    if seen.done and asked.words:
        paths = list(dict.fromkeys(d.get("path") for d in seen.named("read_file") if not d.failed))
        parts.append(
            phrases.SEARCHED.format(
                words=sought(asked.words), read=phrases.READ.format(paths=word_list(paths)) if paths else ""
            )
        )
    if not good and not told:
        parts.append(phrases.LIMITS)
    return "\n\n".join(parts)


def _from_files(good: Sequence[Passage], whole: bool) -> list[str]:
    """Passages as parts of an answer. `whole`: the best of them answers all of the question, so it is called the best match."""
    lead = phrases.FOUND if whole else phrases.PARTLY
    parts = [lead.format(ref=ref(good[0].ref)), quote(good[0])]
    for passage in good[1:]:
        parts += [phrases.ALSO.format(ref=ref(passage.ref)), quote(passage)]
    return parts


def _missing(asked: Question, pool: Sequence[FileLine], told: Sequence[Told]) -> list[str]:
    """The words of the question, as the user wrote them, that are in nothing that was found."""
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


def _refusals(seen: ReadView) -> list[str]:
    """Reports of at most two calls that were denied or failed; a search without hits is no failure."""
    texts = dict.fromkeys((d.denied, d.text.strip()) for d in seen.done if d.failed and not _just_nothing(d.text))
    return [trouble(denied, text, 6) for denied, text in list(texts)[:2]]


def _just_nothing(text: str) -> bool:
    """True for a result that only says that nothing was found."""
    return bool(re.match(r"\W*(?:no|nothing|0)\b", text, re.I)) or not text.strip()


def _known_passages(asked: Question, seen: ReadView) -> list[Told]:
    """The at most two passages of the conversation that answer the question best, best first: from the summary, memory, restored
    and earlier messages, and from what `recall` found."""
    known = dict(asked.lesser) | dict.fromkeys(asked.topic.terms, 1.0)
    recalled = [d.text for d in seen.named("recall") if not d.failed and not _just_nothing(d.text)]
    sources = [Source("the archive", text, "recall") for text in recalled]
    sources += [s for s in seen.sources if asked.past or s.kind != "reply"]
    scored: list[Told] = []
    for source in sources:
        for piece in _PIECE.split(source.text[:60_000]):
            # A question asked before is no answer, nor are the quotations and fixed sentences of an earlier answer.
            if (source.kind == "user" and piece.rstrip().endswith(("?", "？"))) or (
                source.kind == "reply" and piece.lstrip().startswith(_OUR_ANSWERS)
            ):
                continue
            held = known.keys() & set(terms(piece[:4_000]))
            score = sum(known[t] for t in held) / (sum(known.values()) or 1)
            if score >= (0.3 if asked.past else 0.5):
                scored.append((score, source, piece.strip()))
    scored.sort(key=lambda s: -s[0])
    return scored[:2]


_PIECE = expression(r"\n\s*\n|\n(?=[-#*>] )|(?<=[.!?。！？])\s+(?=[A-ZÀ-Þ\u3041-\u9fff])")
"""Matches what separates the pieces that are quoted: a blank line, an item of a list, the end of a sentence."""
