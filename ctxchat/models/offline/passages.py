"""Lines with their places, which of them answer a question best, and how they are quoted.

Pure arithmetic on words: how rare a word is among what was found, how many fall together, what kind of line and file it is. A
quotation stays one: prose in block quotes, code in fences that their content cannot close.
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
"""Lines above and below that count as the same place, and that still have to do with it."""

MAX_LINES = 20_000
MAX_LINE_CHARS = 2_000
MAX_BARE_DEFINITIONS = 3
"""Definitions at the margin that say little of a program by themselves."""

GAP = "…"
"""Stands for lines between two that are quoted."""
MAX_OPENED_LINES = 10
"""Lines of what a line opens."""

MAX_QUOTED_CHARS = 420
"""Characters of one quoted line."""

DEFINES = (
    r"^\s*(?:export |public |static |async |pub |default )*(?:def|class|function|fn|func|const|let|var|type|struct|interface)\b"
    r"|^\s*[\w.\"'-]+\s*(?::\s*[\w\[\]., |]+)?\s*[:=](?!=)|#define"
)

_HIT = expression(r"^(?P<path>(?:[A-Za-z]:[\\/])?[^:\n]{1,400}):(?P<number>\d{1,8}):(?P<text>.*)$")
_NUMBERED = expression(r"^\s*(\d{1,8})(?:\t|[│|→:] ?| {2})(.*)$|^\s*(\d{1,8})$")
_FEW_NUMBERED = expression(r"^(\d{1,8})?\t(.*)$")
_HIT_BELOW = expression(r"^(?P<number>\d{1,8}):(?P<text>.*)$")
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
_KINDS = {
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
    """What else makes a line fit: a pattern that it matches, the files it is sought in (empty: any), and how much that counts."""

    line: str
    weight: float
    files: str = ""


class Passage(msgspec.Struct, frozen=True):
    """A place worth quoting: its best line, the lines around it that are known, and the terms it holds."""

    line: FileLine
    around: tuple[FileLine, ...]
    score: float
    matched: frozenset[str]

    @property
    def ref(self) -> str:
        """`path:line`."""
        return f"{self.line.path}:{self.line.number}"


def hits(output: str) -> list[FileLine]:
    """The lines of a grep's output that look like `path:line:text`, or like `line:text` below a path."""
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
    """The lines of a file as a tool printed it, numbered by the tool where it did, else from `start`."""
    rows = [row[:MAX_LINE_CHARS].rstrip("\r") for row in output.split("\n")[:MAX_LINES]]
    path = path.removeprefix("./")
    if few := _few_numbers(rows):
        return [FileLine(path, number, text) for number, text in few]
    numbered = [FileLine(path, int(m[1] or m[3]), m[2] or "") for row in rows if (m := _NUMBERED.match(row))]
    rising = all(
        a.number < b.number for a, b in itertools.pairwise(numbered)
    )  # the hours of a log do not rise with each line
    if rising and len(numbered) * 2 > len([r for r in rows if r.strip()]):
        return numbered
    return [FileLine(path, start + i, row) for i, row in enumerate(rows)]


def _few_numbers(rows: Sequence[str]) -> Sequence[tuple[int, str]]:
    """Lines as our own tool writes them, numbers in front of some; nothing where one is not what its place says."""
    found: list[tuple[int, str]] = []
    for row in rows:
        match = _FEW_NUMBERED.match(row)
        if not match and row.startswith("["):
            break
        if not row and found:
            found.append((found[-1][0] + 1, ""))
            continue
        if not match or (match[1] and found and int(match[1]) != found[-1][0] + 1) or not (match[1] or found):
            return ()
        found.append((int(match[1]) if match[1] else found[-1][0] + 1, match[2]))
    return found


# ── which lines answer best ──


class Ranking:
    """The lines of a pool, weighed for a topic. `weights` gives terms of lesser weight (of an earlier question, or synonyms)."""

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
        """The best places, the best first, no two of them close to each other, nor of one file the same line twice."""
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
        """The share of the topic's own weight that a passage holds, 0 to 1."""
        own = self._own or self._wanted.keys()
        whole = sum(self._weight(t) for t in own)
        return sum(self._weight(t) for t in passage.matched & own) / whole if whole else 1.0

    def _weight(self, term: str) -> float:
        return self._wanted[term] * self._rarity[term]

    def _score(self, key: tuple[str, int]) -> float:
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
            score *= 0.4  # only words of an earlier question, or of like meaning
        return (score + (wished > 1)) * wished * self._fitness(line)

    def _words_near(self, key: tuple[str, int], reach: int) -> frozenset[str]:
        path, number = key
        nothing: frozenset[str] = frozenset()
        keys = ((path, n) for n in range(number - reach, number + reach + 1))
        return nothing.union(*(self._terms.get(k, nothing) for k in keys))

    def _count_named(self, key: tuple[str, int]) -> int:
        text = self._lines[key].text.casefold()
        return sum(n in text or n in key[0].casefold() for n in self._names)

    def _wished(self, key: tuple[str, int]) -> float:
        text = self._lines[key].text[:300]
        return math.prod(weight for line, files, weight in self._wishes if files.search(key[0]) and line.search(text))

    def _fitness(self, line: FileLine) -> float:
        factor = 0.3 if _IMPORT.match(line.text) else 1.0
        factor *= 1.15 if _NAMES.match(line.text) else 1.0
        factor *= 0.4 if _GENERATED.search(line.path) else 1.0
        factor *= 0.5 if _NEWS.search(line.path) and "change" not in self._own else 1.0
        factor *= 0.6 if _ASIDE.search(line.path) and "test" not in self._own else 1.0
        factor *= 1.1 if _PROSE.search(line.path) and not self._wishes else 1.0
        return factor * (0.5 if len(line.text) > 400 else 1.0)

    def _passage(self, key: tuple[str, int], score: float) -> Passage:
        path, number = key
        around = [self._lines[k] for n in range(number - REACH, number + REACH + 1) if (k := (path, n)) in self._lines]
        return Passage(self._lines[key], tuple(around), score, self._words_near(key, REACH) | self._paths[path])


# ── how they are quoted ──


def quote(passage: Passage) -> str:
    """The best line of a passage with the lines it needs to be understood."""
    prose = bool(_PROSE.search(passage.line.path))
    texts = [_clipped(line.text, passage) for line in (_paragraph(passage) if prose else _code_lines(passage))]
    if prose:
        return "\n".join(f"> {text}" for text in texts)
    margin = min((len(t) - len(t.lstrip()) for t in texts if t.strip() and t != GAP), default=0)
    return fence("\n".join(t if t == GAP else t[margin:] for t in texts), passage.line.path)


def beginning(path: str, text: str) -> tuple[int, str]:
    """How a file begins, quoted, and in which line: a manifest's description, the first paragraph of prose that says something, a
    program's docstring or first comment. Empty where there is nothing of the kind."""
    lines = file_lines(text, path)
    if path.endswith(".py") and (begun := _docstring(lines)):
        return begun
    if path.endswith((".toml", ".json", ".mod")):
        told = next((line for line in lines if re.match(r"\s*\"?description\"?\s*[:=]|\s*module ", line.text)), None)
        return (told.number, fence(told.text.strip(), path)) if told else (0, "")
    prose = bool(_PROSE.search(path))
    speaks = _SPOKEN if prose else _COMMENTED
    titles = {a.number for a, b in itertools.pairwise(lines) if _UNDERLINE.fullmatch(b.text)}
    told = [line for line in lines if speaks.match(line.text) and line.number not in titles]
    runs = [[line for _, line in run] for _, run in itertools.groupby(enumerate(told), lambda at: at[1].number - at[0])]
    code = min((line.number for line in lines if not prose and _NAMES.match(line.text)), default=len(lines) + 1)
    begun = next((r for r in runs if r[0].number < code and _tells(r)), runs[0] if runs and prose else [])[:8]
    if not begun:
        return 0, ""
    quoted = "\n".join(line.text for line in begun)
    return begun[0].number, said(quoted, 900) if prose else fence(quoted, path)


def _docstring(lines: Sequence[FileLine]) -> tuple[int, str]:
    """What a Python module says of itself, its first paragraphs, and in which line; empty where it says nothing."""
    try:
        module = ast.parse("\n".join(line.text for line in lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 0, ""
    told = ast.get_docstring(module)
    return (lines[0].number + module.body[0].lineno - 1, said(told, 600)) if told else (0, "")


def _tells(lines: Sequence[FileLine]) -> bool:
    """True for words about the matter; not for links and badges in a row, nor for whose it is and by which licence."""
    words = _LINKS.sub(" ", " ".join(line.text for line in lines))
    return len(_WORD.findall(words)) > 3 and not _OWNED.search(words)


def outline(path: str, text: str, most: int = 12) -> str:
    """The headings of a text, what a program defines, the sections of settings, as a quotation; empty where there is none.
    What stands within another definition is shown where there are few at the margin."""
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
    """Words somebody said, as a block quote."""
    return "\n".join(f"> {line}" for line in clean(clip(text.strip(), most)).split("\n"))


def fence(text: str, path: str = "") -> str:
    """A fenced block that its content cannot close, with the language its path tells."""
    text = clean(text)
    ticks = max([3, *(len(run) + 1 for run in re.findall("`{3,}", text))])
    kind = _KINDS.get(path.rsplit(".", 1)[-1].lower(), "") if "." in path else ""
    return f"{'`' * ticks}{kind}\n{text}\n{'`' * ticks}"


def ref(text: str) -> str:
    """A path, a word or a command as inline code."""
    text = clean(text).replace("\n", " ")
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def clean(text: str) -> str:
    """Without control characters and direction marks; lone surrogates become question marks."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def clip(text: str, most: int) -> str:
    """At most about `most` characters, the cut marked."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def head(lines: Sequence[str], most: int, tail: int = 0) -> str:
    """The first `most` lines and the last `tail`, with the number of those left out between them."""
    if len(lines) <= most + tail + 1:
        return "\n".join(clip(line, 1_000) for line in lines)
    gap = f"… {len(lines) - most - tail} more lines …"
    kept = [*lines[:most], gap, *(lines[-tail:] if tail else [])]
    return "\n".join(clip(line, 1_000) for line in kept)


def word_list(words: Sequence[str], most: int = 8) -> str:
    """Paths one after the other, as code."""
    return ", ".join(ref(clip(w, 60)) for w in words[:most]) + _more(words, most)


def sought(words: Sequence[str], most: int = 8) -> str:
    """Words that were looked for, one after the other. Not as code: what is in code marks is taken for something that exists."""
    shown = (_MARKS.sub(r"\\\g<0>", clean(clip(word, 60))).replace("\n", " ") for word in words[:most])
    return ", ".join(f"“{word}”" for word in shown) + _more(words, most)


def _more(words: Sequence[str], most: int) -> str:
    return f" and {len(words) - most} more" if len(words) > most else ""


def _paragraph(passage: Passage) -> list[FileLine]:
    """The best line and its neighbours up to an empty line, a heading or another item of a list, three at most on either side.
    A row of a table stands alone, below the table's head."""
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
    """The best line, lines near it that hold what it lacks, a comment right above, and what it opens: two lines, or of a list
    and a section of settings up to its end."""
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
    """A line that is too long, cut around the first term it matched."""
    text = clean(text)
    if len(text) <= MAX_QUOTED_CHARS:
        return text
    low = text.casefold()
    places = [p for t in passage.matched if (p := low.find(t[: max(3, len(t) - 2)])) >= 0]
    start = max(0, min(places, default=0) - 80)
    cut = text[start : start + MAX_QUOTED_CHARS].strip()
    return ("…" if start else "") + cut + ("…" if start + MAX_QUOTED_CHARS < len(text) else "")
