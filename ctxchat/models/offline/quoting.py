"""Foreign text as Markdown that stays a quotation: prose in block quotes, code in fences it cannot close, output clipped.

Knows no tools and no topics.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from ctxchat.models.offline.passages import REACH, Line, Passage, is_prose
from ctxchat.models.offline.words import terms

MOST_QUOTED = 420
"""Characters of one quoted line."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\x1b\[[0-9;?]*[A-Za-z]")
_MARKS = re.compile(r"[\\`*<\[]|(?<!\w)_|_(?!\w)|~~")
_COMMENT = re.compile(r"\s*(?:#|//|--|/\*|\*|@|;)\s*\w")
_KINDS = {
    "py": "python", "js": "javascript", "ts": "typescript", "tsx": "tsx", "rs": "rust", "go": "go", "c": "c", "h": "c",
    "cpp": "cpp", "java": "java", "rb": "ruby", "sh": "bash", "toml": "toml", "yaml": "yaml", "yml": "yaml", "json": "json",
    "html": "html", "css": "css", "sql": "sql", "xml": "xml", "ini": "ini", "cfg": "ini", "md": "markdown", "php": "php",
    "kt": "kotlin", "swift": "swift", "cs": "csharp",
}  # fmt: skip


def quote(passage: Passage) -> str:
    """The best line of a passage with the lines it needs to be understood."""
    lines = _paragraph(passage) if is_prose(passage.line.path) else _code_lines(passage)
    if is_prose(passage.line.path):
        return "\n".join(f"> {_clipped(line.text, passage)}" for line in lines)
    return fence("\n".join(_dedented([_clipped(line.text, passage) for line in lines])), passage.line.path)


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


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words one after the other, each marked as quoted."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(ref(clip(w, 60)) for w in words[:most]) + more


def sought(words: Sequence[str], most: int = 8) -> str:
    """Words that were looked for, one after the other. Not as code: what is in code marks is taken for something that exists."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    shown = (_MARKS.sub(r"\\\g<0>", clean(clip(word, 60))).replace("\n", " ") for word in words[:most])
    return ", ".join(f"“{word}”" for word in shown) + more


def _paragraph(passage: Passage) -> list[Line]:
    """The best line and its neighbours up to an empty line or a heading, three at most on either side."""
    known = {line.number: line for line in passage.around}
    at = passage.line.number
    first = last = at
    while (
        at - first < 3
        and _continues(known.get(first - 1))
        and not passage.line.text.lstrip().startswith(("#", "-", "*"))
    ):
        first -= 1
    while (
        last - at < 3 and _continues(known.get(last + 1)) and not known[last + 1].text.lstrip().startswith(("-", "*"))
    ):
        last += 1
    if passage.line.text.startswith("#") and last == at:  # a heading alone says little: what follows belongs to it
        below = [known[n] for n in range(at + 1, at + 7) if n in known and known[n].text.strip()]
        section = itertools.takewhile(lambda line: not line.text.startswith("#"), below)
        return [passage.line, *(line for line in section if "```" not in line.text)][:5]
    return [known[n] for n in range(first, last + 1) if "```" not in known[n].text or n == at]


def _continues(line: Line | None) -> bool:
    return line is not None and bool(line.text.strip()) and not line.text.lstrip().startswith(("#", "```"))


def _code_lines(passage: Passage) -> list[Line]:
    """The best line, lines close by that hold what it lacks, a comment right above, and what it opens, two lines at most."""
    known = {line.number: line for line in passage.around}
    at = passage.line.number
    lacking = passage.matched - set(terms(passage.line.text))
    near = [n for n in range(at - REACH, at + REACH + 1) if n in known and lacking & set(terms(known[n].text))]
    first, last = min([at, *near]), max([at, *near])
    above = known.get(first - 1)
    if above and _COMMENT.match(above.text):
        first -= 1
    ends = known[last].text.rstrip()
    if last == at and (_COMMENT.match(ends) or ends.endswith((":", "{", "(", "[", ",", "\\", "=>"))):
        last = next((n for n in (at, at + 1) if n + 1 not in known or not known[n + 1].text.strip()), at + 2)
    return [known[n] for n in range(first, last + 1) if n in known]


def _dedented(texts: list[str]) -> list[str]:
    margin = min((len(t) - len(t.lstrip()) for t in texts if t.strip()), default=0)
    return [t[margin:] for t in texts]


def _clipped(text: str, passage: Passage) -> str:
    """A line that is too long, cut around the first term it matched."""
    text = clean(text)
    if len(text) <= MOST_QUOTED:
        return text
    low = text.casefold()
    places = [p for t in passage.matched if (p := low.find(t[: max(3, len(t) - 2)])) >= 0]
    start = max(0, min(places, default=0) - 80)
    cut = text[start : start + MOST_QUOTED].strip()
    return ("…" if start else "") + cut + ("…" if start + MOST_QUOTED < len(text) else "")
