"""Work that must be possible to stop (a walk over many files, a regular expression without end, a page of hostile HTML), in a
process of its own: one JSON job on standard input, one JSON value a line on standard output. Started as `own_processes` does.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ctxchat.repository_files import is_at
from ctxchat.tools.encodings import SNIFFED_BYTES, binary_kind, encoding_of
from ctxchat.tools.text import clip, clip_line, line_break
from ctxchat.tools.walking import FolderEntry, matcher, walk

MAX_FILE = 20_000_000
"""Bytes; larger files are not searched."""

MAX_PAGE = 4_000_000
"""Characters of a converted page, twice what is fetched of one."""

MAX_LINE = 160
"""Characters of a line that is shown whole."""

CUT_LINE = 100
"""Characters that are shown of a longer one: most of them are made by programs."""

MAX_HIT_LINES = 30
"""Lines that are shown of one hit over several; of a longer one the first ones and the last."""

_OVER_LINES = re.compile(r"\n|(?<!\\)(?:\\\\)*\\n|\(\?[a-zA-Z]*s")
"""In patterns that mean more than one line: a line break, or `.` that matches one."""


class ListJob(msgspec.Struct, frozen=True, tag="list"):
    """Everything in a folder, `depth` levels deep."""

    top: str
    depth: int
    hidden: bool = False


class GlobJob(msgspec.Struct, frozen=True, tag="glob"):
    """Files whose path below `top` matches; where none does, those that match but for capitals."""

    top: str
    pattern: str
    hidden: bool = False


class GrepJob(msgspec.Struct, frozen=True, tag="grep"):
    """Lines that match, with so many lines around them; over several lines where the pattern has a line break or `(?s)`. `top`
    may be a single file; `glob` empty for all files."""

    top: str
    pattern: str
    glob: str = ""
    ignore_case: bool = False
    context: int = 0
    hidden: bool = False


class HtmlJob(msgspec.Struct, frozen=True, tag="html"):
    """A page as Markdown; links are made absolute with `base`."""

    html: str
    base: str


Job = ListJob | GlobJob | GrepJob | HtmlJob


class FoundPath(msgspec.Struct, frozen=True, tag="found", omit_defaults=True):
    """A path below the top, what it is, its size in bytes and when it was changed (seconds). `loosely`: but for capitals."""

    path: str
    kind: str = "file"
    depth: int = 1
    size: int = 0
    changed: float = 0.0
    loosely: bool = False


class MatchLine(msgspec.Struct, frozen=True, tag="line"):
    """A line of a file, matching (the first one of a hit over several) or beside one."""

    path: str
    number: int
    text: str
    matches: bool = True


class WebPage(msgspec.Struct, frozen=True, tag="page"):
    """A converted page."""

    text: str


class Skipped(msgspec.Struct, frozen=True, tag="skipped"):
    """A file that was not searched, and why."""

    path: str
    why: str


class JobRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The job makes no sense."""

    why: str


Answer = FoundPath | MatchLine | WebPage | Skipped | JobRefused


def perform(job: Job) -> Iterator[Answer]:
    """The answers to a job."""
    try:
        match job:
            case ListJob():
                yield from _list(job)
            case GlobJob():
                yield from _glob(job)
            case GrepJob():
                yield from _grep(job)
            case HtmlJob():
                from ctxchat.tools.markdown import to_markdown

                yield WebPage(clip(to_markdown(job.html, job.base), MAX_PAGE))
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        yield JobRefused(str(error))


def _list(job: ListJob) -> Iterator[FoundPath]:
    for entry in walk(job.top, hidden=job.hidden, depth=job.depth):
        yield FoundPath(_below(entry.path, job.top), entry.kind, entry.depth, entry.size)


def _glob(job: GlobJob) -> Iterator[FoundPath]:
    exactly, loosely = matcher(job.pattern), matcher(job.pattern.lower())
    near: list[FolderEntry] | None = []
    for entry in walk(job.top, hidden=job.hidden):
        path = _below(entry.path, job.top)
        if entry.kind not in {"file", "link"}:
            continue
        if exactly(path):
            near = None
            yield FoundPath(path, entry.kind, size=entry.size, changed=_changed(entry.path))
        elif near is not None and loosely(path.lower()):
            near.append(entry)
    for entry in near or ():
        changed = _changed(entry.path)
        yield FoundPath(_below(entry.path, job.top), entry.kind, size=entry.size, changed=changed, loosely=True)


def _changed(path: str) -> float:
    try:
        return Path(path).lstat().st_mtime
    except OSError:
        return 0.0


def _grep(job: GrepJob) -> Iterator[MatchLine | Skipped]:
    over_lines = bool(_OVER_LINES.search(job.pattern))
    flags = (re.IGNORECASE if job.ignore_case else 0) | (re.MULTILINE if over_lines else 0)
    pattern = re.compile(job.pattern, flags)
    # A pattern without repeats, anchors and classes that is not in a text is in none of its lines; and it is quick to try.
    quick = not re.search(r"[*+?{^$]|\\\w", job.pattern)
    hits_in = _over_lines if over_lines else _line_by_line
    fits = matcher(job.glob) if job.glob else None

    def search(file: str, path: str) -> Iterator[MatchLine | Skipped]:
        found = _text_of(file)
        if isinstance(found, Skipped):
            yield Skipped(path, found.why)
        elif found and not (quick and not over_lines and not pattern.search(found)):
            lines = [line.removesuffix("\r") for line in found.split(line_break(found))]
            yield from _shown(hits_in(pattern, lines), lines, path, job.context)

    if not Path(job.top).is_dir():
        yield from search(job.top, "")
        return
    for entry in walk(job.top, hidden=job.hidden):
        path = _below(entry.path, job.top)
        if entry.kind == "file" and (fits is None or fits(path)):
            yield from search(entry.path, path)


def _text_of(file: str) -> str | Skipped:
    """The text of a file (empty for a binary one), or why it is not searched."""
    try:
        data = _read_content(file)
    except OSError as error:
        return Skipped("", error.strerror or "cannot be read")
    if isinstance(data, str):
        return Skipped("", data)
    return "" if binary_kind(data[:SNIFFED_BYTES]) else encoding_of(data).decode(data)


Hit = tuple[int, int, int]
"""First and last line, from 0, and where in the first one it begins."""


def _line_by_line(pattern: re.Pattern[str], lines: list[str]) -> Iterator[Hit]:
    for at, line in enumerate(lines):
        if (line or at + 1 < len(lines)) and (found := pattern.search(line)):
            yield at, at, found.start()


def _over_lines(pattern: re.Pattern[str], lines: list[str]) -> Iterator[Hit]:
    """Hits of which each begins in a line of its own."""
    text, at, start, before = "\n".join(lines), 0, 0, -1
    for found in pattern.finditer(text):
        if found.end() == found.start():
            continue
        at += text.count("\n", start, found.start())
        start = found.start()
        if at > before:
            last = at + text.count("\n", start, found.end() - 1)
            yield at, last, start - (text.rfind("\n", 0, start) + 1)
            before = last


def _shown(hits: Iterator[Hit], lines: list[str], path: str, around: int) -> Iterator[MatchLine]:
    """The lines of hits, and those around them, each once."""
    shown = -1  # the last line given out
    hit = next(hits, None)
    while hit:
        (first, last, column), hit = hit, next(hits, None)
        until = min(len(lines) - 1, last + around, hit[0] - 1 if hit else len(lines))
        for at in range(max(shown + 1, first - around), until + 1):
            if first + MAX_HIT_LINES - 1 <= at < last:
                continue
            yield MatchLine(path, at + 1, shown_of(lines[at], column if at == first else 0), at == first)
        shown = until


def shown_of(line: str, column: int) -> str:
    """A line as it is shown, around the place of the hit in it."""
    return line if len(line) <= MAX_LINE else clip_line(line, CUT_LINE, column)


def _read_content(file: str) -> bytes | str:
    """The content of a file, or why it is not searched. Never waits for a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(file, flags), "rb") as opened:
        found = os.fstat(opened.fileno())
        if not is_at(opened.fileno(), file):
            return "moved while it was opened"
        if not stat.S_ISREG(found.st_mode):
            return "not a plain file"
        return "too large" if found.st_size > MAX_FILE else opened.read(MAX_FILE + 1)


def _below(path: str, top: str) -> str:
    return path[len(top.rstrip("/")) + 1 :]


def main() -> None:
    """Run one search job, then end."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    encode, write = msgspec.json.Encoder().encode, sys.stdout.buffer.write
    for answer in perform(job):
        write(encode(_writable(answer)) + b"\n")
        sys.stdout.buffer.flush()


def _writable(answer: Answer) -> Answer:
    """File names may hold bytes that are no text."""
    path = getattr(answer, "path", "")
    if path.isascii():
        return answer
    shown = os.fsencode(path).decode("utf-8", "replace")
    return msgspec.structs.replace(answer, path=shown)


if __name__ == "__main__":
    main()
