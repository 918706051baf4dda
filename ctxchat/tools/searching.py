"""list_files, glob and grep: finding things in the workspace. The work is done in a process of its own that can be ended."""

from __future__ import annotations

import heapq
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.found_paths import below_folders
from ctxchat.core.patterns import covers_path
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.tools.paths import ResolvedPath, locate, missing, patterns
from ctxchat.tools.search_worker import Answer, FoundPath, GlobJob, GrepJob, Job, ListJob, MatchLine, Skipped
from ctxchat.tools.text import size
from ctxchat.tools.tool import A, Arguments, Pieces, Tool
from ctxchat.tools.walking import wants_hidden
from ctxchat.tools.worker_client import TimeUp, answers

SEARCH_TIMEOUT_S = 30.0
"""What a search may take; then it ends with what it has."""

MAX_LISTED = 1000
MAX_GLOBBED = 500
MAX_HITS = 1000


class ListArguments(Arguments, frozen=True):
    path: str = "."
    depth: Annotated[int, msgspec.Meta(description="Default 2")] = 2


class GlobArguments(Arguments, frozen=True):
    pattern: Annotated[str, msgspec.Meta(description="`*.py` (any depth), `src/**/*.{ts,tsx}`, `.github/**`")]
    path: str = "."


class GrepArguments(Arguments, frozen=True):
    pattern: Annotated[str, msgspec.Meta(description="Python regular expression, by line; over lines with \\n or (?s)")]
    path: Annotated[str, msgspec.Meta(description="Folder or file")] = "."
    glob: Annotated[str, msgspec.Meta(description="Only files matching this, as in glob")] = ""
    ignore_case: bool = False
    context: Annotated[int, msgspec.Meta(description="Lines around hits")] = 0
    max_hits: Annotated[int, msgspec.Meta(description="Default 100")] = 100


class _SearchTool(Tool[A]):
    """`seconds` is what a search may take."""

    reads_only = True

    def __init__(self, seconds: float = SEARCH_TIMEOUT_S) -> None:
        super().__init__()
        self._seconds = seconds

    def _access_request(self, path: str, what: str, context: ToolContext) -> AccessRequest:
        place = locate(path, context)
        where = "" if place.shown == "." else f" in {place.shown}"
        return AccessRequest("read", str(place.path), place.inside, f"{what}{where}", patterns=patterns(place))

    async def _results(self, job: Job, notes: list[str]) -> AsyncGenerator[Answer, None]:
        """Answers; a time-out ends them with a note."""
        try:
            async with aclosing(answers(job, self._seconds)) as found:
                async for answer in found:
                    yield answer
        except TimeUp:
            notes.append(
                f"stopped after {self._seconds:g} s, there may be more; narrow the path or simplify the pattern"
            )


class ListFiles(_SearchTool[ListArguments]):
    name = "list_files"
    about = "List a folder as a tree; respects .gitignore. To find files by name, use glob."
    arguments = ListArguments

    def access_needed(self, arguments: ListArguments, context: ToolContext) -> AccessRequest:
        return self._access_request(arguments.path, "list files", context)

    async def execute(self, arguments: ListArguments, context: ToolContext) -> Pieces:
        place = _folder(arguments.path, context)
        notes: list[str] = []
        lines: list[str] = []
        job = ListJob(str(place.path), min(max(1, arguments.depth), 20))
        async with aclosing(self._results(job, notes)) as found:
            async for entry in found:
                if len(lines) >= MAX_LISTED:
                    notes.append(f"only the first {MAX_LISTED} are shown; list a folder below or less depth")
                    break
                if isinstance(entry, FoundPath):
                    lines.append(_drawn(entry))
        yield ToolOutput(_output_text([f"{place.shown}/", *lines] if lines else [f"{place.shown}/ is empty"], notes))


class Glob(_SearchTool[GlobArguments]):
    name = "glob"
    about = "Find files by name pattern, newest first; respects .gitignore."
    arguments = GlobArguments

    def access_needed(self, arguments: GlobArguments, context: ToolContext) -> AccessRequest:
        _check_pattern(arguments.pattern)
        return self._access_request(arguments.path, f"find {arguments.pattern}", context)

    async def execute(self, arguments: GlobArguments, context: ToolContext) -> Pieces:
        _check_pattern(arguments.pattern)
        place = _folder(arguments.path, context)
        notes: list[str] = []
        job = GlobJob(str(place.path), arguments.pattern, wants_hidden(arguments.pattern))
        newest: list[FoundPath] = []
        many = 0
        async with aclosing(self._results(job, notes)) as results:
            async for entry in results:
                if isinstance(entry, FoundPath):
                    newest.append(entry)
                    many += 1
                if len(newest) > 2 * MAX_GLOBBED:  # a home folder holds millions
                    newest = _newest(newest)
        newest = _newest(newest)
        if newest and newest[0].loosely:
            notes.append(f"none is spelled {arguments.pattern}; these are with other capitals")
        if many > MAX_GLOBBED:
            notes.append(f"the newest {MAX_GLOBBED} of {many} are shown; use a narrower pattern")
        paths = [_path_below(place, entry.path) for entry in newest]
        rows = [row for rows in below_folders(paths) for row in rows]
        yield ToolOutput(_output_text(rows or ["No file matches."], notes))


class Grep(_SearchTool[GrepArguments]):
    name = "grep"
    about = (
        "Search in files; hits stand behind their line number, below their path. Respects .gitignore; skips hidden, binary "
        "and huge files. Prefer it to reading whole files."
    )
    arguments = GrepArguments

    def access_needed(self, arguments: GrepArguments, context: ToolContext) -> AccessRequest:
        return self._access_request(arguments.path, f"search {arguments.pattern!r}", context)

    async def execute(self, arguments: GrepArguments, context: ToolContext) -> Pieces:
        if not arguments.pattern:
            raise ToolError("The pattern is empty.")
        if arguments.glob:
            _check_pattern(arguments.glob)
        place = locate(arguments.path, context)
        if not place.path.exists():
            raise missing(place)
        job = GrepJob(
            str(place.path),
            arguments.pattern,
            arguments.glob,
            arguments.ignore_case,
            min(max(0, arguments.context), 20),
            wants_hidden(arguments.glob),
        )
        notes: list[str] = []
        lines = await self._hits(job, place, min(max(1, arguments.max_hits), MAX_HITS), context, notes)
        yield ToolOutput(_output_text(lines or ["No match."], notes))

    async def _hits(
        self, job: GrepJob, place: ResolvedPath, most: int, context: ToolContext, notes: list[str]
    ) -> list[str]:
        files: dict[str, list[str]] = {}
        lines: list[str] = []
        hits, room = 0, context.max_chars
        last: tuple[str | None, int] = (None, 0)

        @cache
        def forbidden(below: str) -> bool:
            path = str(place.path / below) if below else str(place.path)
            return any(covers_path(one, path, context.workspace, folding=True) for one in context.unreadable)

        try:
            async with aclosing(self._results(job, notes)) as results:
                async for found in results:
                    if isinstance(found, Skipped):
                        notes.append(f"not searched: {_path_below(place, found.path)} ({found.why})")
                    if not isinstance(found, MatchLine) or forbidden(found.path):
                        continue
                    if (found.matches and hits >= most) or room < 0:
                        notes.append(f"only the first {hits} hits are shown")
                        break
                    hits += found.matches
                    if found.path != last[0]:
                        path = _path_below(place, found.path)
                        lines = files.setdefault(path, [])
                        room -= len(path) + 1
                    elif (job.context or not found.matches) and found.number - 1 != last[1]:
                        lines.append("--")
                    lines.append(search_line(found.number, found.text, matches=found.matches))
                    room -= len(lines[-1]) + 1
                    last = (found.path, found.number)
        except ToolError as error:
            hint = "Escape characters that are meant as they are: \\( \\[ \\{ \\. \\* \\+ \\? \\|"
            raise ToolError(f"{error.text.rstrip('.')}: the pattern {job.pattern!r} is not usable.", hint) from error
        heads = below_folders(list(files))
        return [line for head, lines in zip(heads, files.values(), strict=True) for line in (*head, *lines)]


def search_line(number: int, text: str, *, matches: bool) -> str:
    """A hit, or a line around one, as models see it. Behind a blank a word is no token more than without; a tab keeps the blanks
    that are the line's own apart."""
    if not matches:
        return f"{number}-{text}"
    return f"{number}\t{text}" if text[:1].isspace() or not text else f"{number} {text}"


def _newest(found: list[FoundPath]) -> list[FoundPath]:
    return heapq.nsmallest(MAX_GLOBBED, found, key=lambda entry: (-entry.changed, entry.path))


def _folder(path: str, context: ToolContext) -> ResolvedPath:
    place = locate(path, context)
    if not place.path.exists():
        raise missing(place)
    if not place.path.is_dir():
        raise ToolError(f"{place.shown} is a file, not a folder.", "Use read_file for it.")
    return place


def _check_pattern(pattern: str) -> None:
    if not pattern.strip():
        raise ToolError("The pattern is empty.")
    if pattern.startswith(("/", "~")) or ".." in PurePosixPath(pattern).parts:
        raise ToolError(
            f"{pattern} leads out of the folder it counts from.", "Give the folder as path, the pattern below it."
        )


def _path_below(place: ResolvedPath, below: str) -> str:
    """A path below a place as the model may use it again."""
    if not below:
        return place.shown
    return below if place.shown == "." else f"{place.shown.rstrip('/')}/{below}"


def _drawn(entry: FoundPath) -> str:
    name = "  " * entry.depth + PurePosixPath(entry.path).name
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "link":
            return f"{name} (link)"
        case "file":
            return f"{name}  {size(entry.size)}"
        case _:
            return f"{name} (special)"


def _output_text(lines: list[str], notes: list[str]) -> str:
    return "\n".join([*lines, *(f"[{note}]" for note in notes[:10])])
