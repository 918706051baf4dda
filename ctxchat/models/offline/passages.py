"""Reads the results of searches and reads as lines of files, ranks the lines by how well they answer a question, and quotes them
in Markdown.

A line scores by its terms: how rare they are among the lines found, how many of them stand close together, and what kind of line
and file it is. Prose is quoted in block quotes, code in fences; whatever they hold, it cannot end them. Pure.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ctxchat.core.expressions import expression
from ctxchat.core.found_paths import whole_paths
from ctxchat.models.offline.words import Topic, terms

CLOSE, REACH = 2, 12
"""How many lines above and below belong to the same place, and how many still have to do with it."""

MAX_LINES = 20_000
MAX_LINE_CHARS = 2_000
MAX_BARE_DEFINITIONS = 3
"""Up to so many definitions that are not indented, an outline also shows those inside of them, since alone they say little."""

GAP = "…"
"""Marks lines that are left out of a quotation."""

MAX_OPENED_LINES = 10
"""Lines that are quoted at most of a block (a list, a section of settings) that the best line opens."""

MAX_QUOTED_CHARS = 420
"""Characters of one quoted line."""

DEFINES = (
    r"^\s*(?:export |public |static |async |pub |default )*(?:def|class|function|fn|func|const|let|var|type|struct|interface)\b"
    r"|^\s*[\w.\"'-]+\s*(?::\s*[\w\[\]., |]+)?\s*[:=](?!=)|#define"
)

_HIT = expression(r"^(?P<path>(?:[A-Za-z]:[\\/])?[^:\n]{1,400}):(?P<number>\d{1,8}):(?P<text>.*)$")
_NUMBERED = expression(r"^\s*(\d{1,8})(?:\t|[│|→:] ?| {2})(.*)$|^\s*(\d{1,8})$")
_SPARSELY_NUMBERED = expression(r"^(\d{1,8})?\t(.*)$")
_HIT_BELOW = expression(r"^(?P<number>\d{1,8})[ \t:](?P<text>.*)$")
_AROUND = expression(r"^(?:\d{1,8}-|--$)")
_DEFINES = expression(DEFINES)
_NAMES = expression(r"\s*(?:export |public |async |pub )*(?:def|class|function|fn|func|struct) +\w|#{1,4} ")
_SECTION = expression(r"\s*\[\[?[\w.\"' -]+\]\]?\s*(?:#.*)?")
_IMPORT = expression(r"\s*(?:from\s+\S+\s+import\b|import\b|#include\b|use\s+\w+::|(?:const|var)\s.*\brequire\()")
_GENERATED = expression(
    r"(?:^|/)(?:[\w.-]*lock(?:\.json|\.yaml)?|license[\w.]*|.*\.min\.\w+|.*\.svg|node_modules/.*|PKG-INFO|[\w.-]+\.(?:egg|dist)-info/.*)$",
    re.I,
)
_NEWS = expression(r"(?:^|/)(?:changes|changelog|history|news|releases?)[\w.]*$", re.I)
_ASIDE = expression(r"(?:^|/)(?:tests?|spec|examples?)(?:/|_|\.)|_test\.\w+$|\.pyi$", re.I)
_PROSE = expression(r"\.(?:md|MD|markdown|rst|txt|adoc)$|(?:^|/)[A-Z]{4,}$")
_SPOKEN = expression(r"(?!\s*(?:#{1,6} |!\[|\[!|<|[=\-*~^]{3,}\s*$|```|\.\. |:\w+:|\|))\s*\S")
_COMMENTED = expression(r"\s*(?:#(?!!)|//|--|/\*|\*|;|\"\"\"|''')\s*\w")
_LINKS = expression(r"!?\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?|<[^>]*>|https?://\S+|`[^`]*`_")
_WORD = expression(r"[^\W\d_]{2,}")
_OWNED = expression(r"\bcopyright\b|SPDX-License|\blicensed under\b|\ball rights reserved\b", re.I)
_UNDERLINE = expression(r"[=\-~^*#]{3,}\s*")
_ROW = expression(r"\s*\|.*\|\s*")
_RULE = expression(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*")
_CONTROL = expression(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\x1b\[[0-9;?]*[A-Za-z]")
_MARKS = expression(r"[\\`*<\[]|(?<!\w)_|_(?!\w)|~~")
_COMMENT = expression(r"\s*(?:#|//|--|/\*|\*|@|;)\s*\w")
_LANGUAGES = {
    "py": "python", "pyi": "python",
    "js": "javascript", "ts": "typescript", "tsx": "tsx", "rs": "rust", "go": "go", "c": "c", "h": "c",
    "cpp": "cpp", "java": "java", "rb": "ruby", "sh": "bash", "toml": "toml", "yaml": "yaml", "yml": "yaml", "json": "json",
    "html": "html", "css": "css", "sql": "sql", "xml": "xml", "ini": "ini", "cfg": "ini", "md": "markdown", "php": "php",
    "kt": "kotlin", "swift": "swift", "cs": "csharp",
}  # fmt: skip


class FileLine(msgspec.Struct, frozen=True):
    """One line of a file. `number` from 1."""

    path: str
    number: int
    text: str


class Wish(msgspec.Struct, frozen=True):
    """A form of line that answers a question: lines that match the pattern `line`, in files whose path matches `files` (empty:
    any), have their score multiplied by `weight`."""

    line: str
    weight: float
    files: str = ""


class Passage(msgspec.Struct, frozen=True):
    """A place worth quoting: its best line, the known lines around that (`around`, itself included), its score, and which terms
    of the question it holds."""

    line: FileLine
    around: tuple[FileLine, ...]
    score: float
    matched: frozenset[str]

    @property
    def ref(self) -> str:
        """`path:line`."""
        return f"{self.line.path}:{self.line.number}"


def hits(output: str) -> list[FileLine]:
    """The lines that a search found, from its output: rows of the form `path:line:text`, or `line text` below a row with the
    path, with a tab or (in records of older versions) a colon for the blank."""
    found: list[FileLine] = []
    above = ""
    for row in whole_paths([row[:MAX_LINE_CHARS] for row in output.split("\n")[:MAX_LINES]], hits=True):
        match = (_HIT_BELOW.match(row) if above else None) or _HIT.match(row)
        if not match:
            above = above if _AROUND.match(row) else row
            continue
        path = match.groupdict().get("path") or above
        found.append(FileLine(path.strip().removeprefix("./"), int(match["number"]), match["text"].rstrip("\r")))
    return found


def file_lines(output: str, path: str, start: int = 1) -> list[FileLine]:
    """The lines of a file from a tool's output, with the tool's line numbers where it gives any, else counted from `start`."""
    rows = [row[:MAX_LINE_CHARS].rstrip("\r") for row in output.split("\n")[:MAX_LINES]]
    path = path.removeprefix("./")
    if sparse := _parse_sparse_numbers(rows):
        return [FileLine(path, number, text) for number, text in sparse]
    numbered = [FileLine(path, int(m[1] or m[3]), m[2] or "") for row in rows if (m := _NUMBERED.match(row))]
    # numbers that do not rise are part of the text, as the hours in a log
    rising = all(a.number < b.number for a, b in itertools.pairwise(numbered))
    if rising and len(numbered) * 2 > len([r for r in rows if r.strip()]):
        return numbered
    return [FileLine(path, start + i, row) for i, row in enumerate(rows)]


def _parse_sparse_numbers(rows: Sequence[str]) -> Sequence[tuple[int, str]]:
    """Numbers and texts of lines in the form of our own `read_file`, which numbers only some of them; empty where the rows do not
    have that form throughout. A row in brackets ends them: it is a remark of the tool."""
    lines: list[tuple[int, str]] = []
    for row in rows:
        match = _SPARSELY_NUMBERED.match(row)
        if not match and row.startswith("["):
            break
        if not row and lines:
            lines.append((lines[-1][0] + 1, ""))
            continue
        if not match or (match[1] and lines and int(match[1]) != lines[-1][0] + 1) or not (match[1] or lines):
            return ()
        lines.append((int(match[1]) if match[1] else lines[-1][0] + 1, match[2]))
    return lines


# ── which lines answer best ──


class Ranking:
    """Scores the lines of a pool for a topic. `weights` are further terms with a weight below 1 (synonyms, terms of an earlier
    question); `wishes` are forms of lines that answer the question."""

    def __init__(
        self,
        topic: Topic,
        pool: Iterable[FileLine],
        *,
        weights: Mapping[str, float] | None = None,
        wishes: Sequence[Wish] = (),
    ) -> None:
        self._wishes = [(expression(w.line, re.I), expression(w.files or ".", re.I), w.weight) for w in wishes]
        self._own = frozenset(topic.terms)
        self._wanted = dict(weights or {}) | dict.fromkeys(topic.terms, 1.0)
        self._phrases = [tuple(terms(p)) for p in topic.phrases]
        self._names = [n.casefold() for n in topic.names]
        self._lines = {(line.path, line.number): line for line in pool}
        self._terms = {
            k: frozenset(terms(v.text[:MAX_LINE_CHARS])) & self._wanted.keys() for k, v in self._lines.items()
        }
        self._paths = {path: frozenset(terms(path)) & self._wanted.keys() for path, _ in self._lines}
        counts = Counter(t for found in self._terms.values() for t in found)
        self._rarity = {t: math.log(2 + len(self._lines) / (1 + counts[t])) for t in self._wanted}

    def best(self, most: int) -> list[Passage]:
        """At most `most` passages, best first; no two of them close to each other, and no line of the same text twice from a
        file."""
        scored = [
            (self._score(key), key)
            for key in self._lines
            if self._terms[key] or self._count_named(key) or self._wished(key) > 1
        ]
        scored.sort(key=lambda s: (-s[0], s[1]))
        chosen: list[Passage] = []
        for score, (path, number) in scored:
            if len(chosen) == most:
                break
            text = self._lines[path, number].text.strip()
            known = any(
                p.line.path == path and (abs(p.line.number - number) <= 2 * CLOSE or p.line.text.strip() == text)
                for p in chosen
            )
            if score > 0 and not known:
                chosen.append(self._passage((path, number), score))
        return chosen

    def coverage(self, passage: Passage) -> float:
        """The share of the topic's terms that a passage holds, by their weight, 0 to 1."""
        own = self._own or self._wanted.keys()
        whole = sum(self._weight(t) for t in own)
        return sum(self._weight(t) for t in passage.matched & own) / whole if whole else 1.0

    def _weight(self, term: str) -> float:
        """The weight of a term, rarer ones weighing more."""
        return self._wanted[term] * self._rarity[term]

    def _score(self, key: tuple[str, int]) -> float:
        """The score of a line: its own terms count in full, those of lines nearby and of the path in part; phrases, names, wishes
        and the kind of line and file are added."""
        line, here = self._lines[key], self._terms[key]
        close = self._words_near(key, CLOSE) - here
        near = self._words_near(key, REACH) - here - close
        beside = self._paths[line.path] - here - close - near
        shares = ((here, 1.0), (close, 0.5), (near, 0.35), (beside, 0.3))
        score = sum(share * self._weight(t) for found, share in shares for t in found) + 2.0 * self._count_named(key)
        run = " ".join(terms(line.text[:MAX_LINE_CHARS])) if self._phrases else ""
        score += sum(0.5 * sum(self._rarity.get(t, 0.5) for t in p) for p in self._phrases if p and " ".join(p) in run)
        wished = self._wished(key)
        if self._own and not self._own & (here | close) and not self._count_named(key) and wished <= 1:
            score *= 0.4  # it has only synonyms, or terms of an earlier question
        return (score + (wished > 1)) * wished * self._fitness(line)

    def _words_near(self, key: tuple[str, int], reach: int) -> frozenset[str]:
        """The wanted terms in a line and in the `reach` lines above and below it."""
        path, number = key
        nothing: frozenset[str] = frozenset()
        keys = ((path, n) for n in range(number - reach, number + reach + 1))
        return nothing.union(*(self._terms.get(k, nothing) for k in keys))

    def _count_named(self, key: tuple[str, int]) -> int:
        """How many of the topic's names stand in a line or in its path."""
        text = self._lines[key].text.casefold()
        return sum(n in text or n in key[0].casefold() for n in self._names)

    def _wished(self, key: tuple[str, int]) -> float:
        """The product of the weights of all wishes that a line meets; 1 where it meets none."""
        text = self._lines[key].text[:300]
        return math.prod(weight for line, files, weight in self._wishes if files.search(key[0]) and line.search(text))

    def _fitness(self, line: FileLine) -> float:
        """A factor for the kind of line and file: below 1 for imports, generated files, lists of changes, tests and long
        lines."""
        factor = 0.3 if _IMPORT.match(line.text) else 1.0
        factor *= 1.15 if _NAMES.match(line.text) else 1.0
        factor *= 0.4 if _GENERATED.search(line.path) else 1.0
        factor *= 0.5 if _NEWS.search(line.path) and "change" not in self._own else 1.0
        factor *= 0.6 if _ASIDE.search(line.path) and "test" not in self._own else 1.0
        factor *= 1.1 if _PROSE.search(line.path) and not self._wishes else 1.0
        return factor * (0.5 if len(line.text) > 400 else 1.0)

    def _passage(self, key: tuple[str, int], score: float) -> Passage:
        """The passage around a line."""
        path, number = key
        around = [self._lines[k] for n in range(number - REACH, number + REACH + 1) if (k := (path, n)) in self._lines]
        return Passage(self._lines[key], tuple(around), score, self._words_near(key, REACH) | self._paths[path])


# ── how they are quoted ──


def quote(passage: Passage) -> str:
    """A passage as Markdown: its best line with those lines around it that are needed to understand it."""
    prose = bool(_PROSE.search(passage.line.path))
    texts = [_clipped(line.text, passage) for line in (_paragraph(passage) if prose else _code_lines(passage))]
    if prose:
        return "\n".join(f"> {text}" for text in texts)
    margin = min((len(t) - len(t.lstrip()) for t in texts if t.strip() and t != GAP), default=0)
    return fence("\n".join(t if t == GAP else t[margin:] for t in texts), passage.line.path)


def beginning(path: str, text: str) -> tuple[int, str]:
    """What a file says of itself at its beginning: the number of the line, and the text, quoted. (0, "") where it says nothing.

    That is the description in a manifest, the first paragraph of prose that is about the matter, or a program's docstring or
    first comment.
    """
    lines = file_lines(text, path)
    if path.endswith(".py") and (opening := _docstring(lines)):
        return opening
    if path.endswith((".toml", ".json", ".mod")):
        description = next(
            (line for line in lines if re.match(r"\s*\"?description\"?\s*[:=]|\s*module ", line.text)), None
        )
        return (description.number, fence(description.text.strip(), path)) if description else (0, "")
    prose = bool(_PROSE.search(path))
    telling = _SPOKEN if prose else _COMMENTED
    titles = {a.number for a, b in itertools.pairwise(lines) if _UNDERLINE.fullmatch(b.text)}
    told = [line for line in lines if telling.match(line.text) and line.number not in titles]
    paragraphs = [
        [line for _, line in run] for _, run in itertools.groupby(enumerate(told), lambda at: at[1].number - at[0])
    ]
    code = min((line.number for line in lines if not prose and _NAMES.match(line.text)), default=len(lines) + 1)
    otherwise = paragraphs[0] if paragraphs and prose else []
    chosen = next((p for p in paragraphs if p[0].number < code and _tells(p)), otherwise)[:8]
    if not chosen:
        return 0, ""
    quoted = "\n".join(line.text for line in chosen)
    return chosen[0].number, said(quoted, 900) if prose else fence(quoted, path)


def _docstring(lines: Sequence[FileLine]) -> tuple[int, str]:
    """The line and the first paragraphs of a Python module's docstring, quoted; (0, "") where it has none or cannot be parsed."""
    try:
        module = ast.parse("\n".join(line.text for line in lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0, ""
    docstring = ast.get_docstring(module)
    return (lines[0].number + module.body[0].lineno - 1, said(docstring, 600)) if docstring else (0, "")


def _tells(lines: Sequence[FileLine]) -> bool:
    """True for a paragraph about the matter; false for a row of links and badges and for copyright and licence."""
    words = _LINKS.sub(" ", " ".join(line.text for line in lines))
    return len(_WORD.findall(words)) > 3 and not _OWNED.search(words)


def outline(path: str, text: str, most: int = 12) -> str:
    """At most `most` headings of a text, definitions of a program, or sections of settings, quoted; empty where there are none.

    Definitions inside of others are shown where there are few that are not indented.
    """
    lines = file_lines(text, path)
    if _PROSE.search(path):
        titles = [a.text for a, b in itertools.pairwise(lines) if a.text.strip() and _UNDERLINE.fullmatch(b.text)]
        fences = itertools.accumulate(x.text.lstrip().startswith("```") for x in lines)
        heads = titles or [
            x.text for x, n in zip(lines, fences, strict=True) if n % 2 == 0 and re.match("#{1,4} ", x.text)
        ]
    elif path.endswith((".toml", ".ini", ".cfg")):
        heads = [x.text for x in lines if _SECTION.fullmatch(x.text)]
    else:
        heads = [x.text for x in lines if _NAMES.match(x.text) and not x.text.startswith("#")]
        outer = [text for text in heads if not text[0].isspace()]
        heads = outer if len(outer) > MAX_BARE_DEFINITIONS else [text for text in heads if not text.startswith("     ")]
        return fence(head(heads, most), path) if heads else ""
    return fence(head(heads, most), path) if len(heads) > 1 else ""


def said(text: str, most: int = 600) -> str:
    """A text as a block quote, cut to `most` characters."""
    return "\n".join(f"> {line}" for line in clean(clip(text.strip(), most)).split("\n"))


def fence(text: str, path: str = "") -> str:
    """A fenced block with as many backticks as it takes for its content not to close it. The path tells the language."""
    text = clean(text)
    ticks = max([3, *(len(run) + 1 for run in re.findall("`{3,}", text))])
    language = _LANGUAGES.get(path.rsplit(".", 1)[-1].lower(), "") if "." in path else ""
    return f"{'`' * ticks}{language}\n{text}\n{'`' * ticks}"


def ref(text: str) -> str:
    """A path, a word or a command as inline code."""
    text = clean(text).replace("\n", " ")
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def clean(text: str) -> str:
    """The text without control characters and direction marks, with question marks for lone surrogates."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def clip(text: str, most: int) -> str:
    """The text, cut to about `most` characters, with a mark where it was cut."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def head(lines: Sequence[str], most: int, tail: int = 0) -> str:
    """The first `most` lines and the last `tail` as a text, with a line between them that tells how many are left out."""
    if len(lines) <= most + tail + 1:
        return "\n".join(clip(line, 1_000) for line in lines)
    gap = f"… {len(lines) - most - tail} more lines …"
    kept = [*lines[:most], gap, *(lines[-tail:] if tail else [])]
    return "\n".join(clip(line, 1_000) for line in kept)


def word_list(words: Sequence[str], most: int = 8) -> str:
    """A list of paths in a sentence, each as inline code, at most `most` of them."""
    return ", ".join(ref(clip(w, 60)) for w in words[:most]) + _more(words, most)


def sought(words: Sequence[str], most: int = 8) -> str:
    """A list of searched words in a sentence, at most `most` of them. They are quoted and not set as code, since a reader takes
    code for something that exists."""
    shown = (_MARKS.sub(r"\\\g<0>", clean(clip(word, 60))).replace("\n", " ") for word in words[:most])
    return ", ".join(f"“{word}”" for word in shown) + _more(words, most)


def _more(words: Sequence[str], most: int) -> str:
    """The end of a list that was cut to `most` words; empty where none is left out."""
    return f" and {len(words) - most} more" if len(words) > most else ""


def _paragraph(passage: Passage) -> list[FileLine]:
    """The lines of prose to quote: the best line and its neighbours up to an empty line, a heading or another item of a list, at
    most three on each side. Of a table, its head and the one row; of a heading, what follows it."""
    known = {line.number: line for line in passage.around}
    at = passage.line.number
    if _ROW.match(passage.line.text):
        rule = next((n for n in range(at, at - REACH, -1) if n in known and _RULE.fullmatch(known[n].text)), at)
        return [known[n] for n in (rule - 1, rule, at) if n in known] if rule < at else [passage.line]
    if passage.line.text.startswith("#"):  # a heading alone says little: what follows belongs to it
        below = [known[n] for n in range(at + 1, at + 9) if n in known and known[n].text.strip()]
        ends = next((i for i, line in enumerate(below) if line.text.startswith("#")), len(below))
        return [passage.line, *(line for line in below[:ends] if "```" not in line.text)][:6]

    def goes_on(n: int) -> bool:
        text = known[n].text.strip() if n in known else ""
        return bool(text) and not text.startswith(("#", "```"))

    first = last = at
    while at - first < 3 and goes_on(first - 1) and not known[first].text.lstrip().startswith(("-", "*")):
        first -= 1
    while last - at < 3 and goes_on(last + 1) and not known[last + 1].text.lstrip().startswith(("-", "*")):
        last += 1
    return [known[n] for n in range(first, last + 1) if "```" not in known[n].text or n == at]


def _code_lines(passage: Passage) -> list[FileLine]:
    """The lines of code to quote: the best line, lines near it with terms that it lacks, a comment right above, and what it
    opens: a list or a section of settings up to its end, else two lines of a block."""
    known = {line.number: line for line in passage.around}
    at = passage.line.number
    lacking = passage.matched - set(terms(passage.line.text))
    kept = {at}
    for n in sorted(known, key=lambda n: abs(n - at)):
        if held := lacking & set(terms(known[n].text)):
            kept.add(n)
            lacking -= held
    low, high = (min(n for n in kept if abs(n - at) <= CLOSE), max(n for n in kept if abs(n - at) <= CLOSE))
    kept |= set(range(low, high + 1))
    if low - 1 in known and _COMMENT.match(known[low - 1].text):
        kept.add(low - 1)
    ends = known[high].text.rstrip()
    if high == at and (ends.endswith(("(", "[", "{")) or _SECTION.fullmatch(ends)):
        inner = list(
            itertools.takewhile(lambda n: n in known and known[n].text.strip(), range(at + 1, at + MAX_OPENED_LINES))
        )
        close = next(
            (n for n in inner if re.match(r"\s*[)\]}]", known[n].text) or _SECTION.fullmatch(known[n].text)), 0
        )
        kept |= {n for n in inner if not close or n < close or (n == close and not _SECTION.fullmatch(known[n].text))}
    elif high == at and (_COMMENT.match(ends) or ends.endswith((":", ",", "\\", "=>"))):
        kept |= {n for n in (at + 1, at + 2) if n in known and known[n].text.strip()}
    rows: list[FileLine] = []
    for n in sorted(n for n in kept if n in known):
        if rows and n > rows[-1].number + 1:
            rows.append(FileLine(passage.line.path, n - 1, GAP))
        rows.append(known[n])
    return rows


def _clipped(text: str, passage: Passage) -> str:
    """A line for a quotation; where it is too long, the part around the first of the passage's terms."""
    text = clean(text)
    if len(text) <= MAX_QUOTED_CHARS:
        return text
    lower = text.casefold()
    positions = [p for t in passage.matched if (p := lower.find(t[: max(3, len(t) - 2)])) >= 0]
    start = max(0, min(positions, default=0) - 80)
    cut = text[start : start + MAX_QUOTED_CHARS].strip()
    return ("…" if start else "") + cut + ("…" if start + MAX_QUOTED_CHARS < len(text) else "")
