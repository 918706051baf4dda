"""read_file: lines of a text file, numbered where it helps, in the encoding it has, every cut named; and images, to a model that
sees them.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import threading
from collections.abc import Callable
from typing import Annotated, BinaryIO

import msgspec

from ctxchat.core.errors import CtxchatError, ToolError
from ctxchat.core.images import MAX_IMAGE_BYTES, fault_of, kind_of, other_kind, size_in
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.core.working_set import CurrentFile
from ctxchat.tools.editorconfig import agreed_encoding
from ctxchat.tools.encodings import LATIN1, SNIFFED_BYTES, Encoding, binary_kind, encoding_of
from ctxchat.tools.paths import MAX_BYTES, ResolvedPath, locate, open_file, patterns
from ctxchat.tools.seen import SeenFiles
from ctxchat.tools.text import line_break, numbered, size
from ctxchat.tools.tool import Arguments, Pieces, Tool, in_thread
from ctxchat.tools.unsaved import as_edited

MAX_LINES = 2000
MAX_LINE = 2000
"""Characters of one line that are shown."""

NOW_BYTES, NOW_CHARS, NOW_LINES = 1_000_000, 400_000, 20_000
"""The largest file that is shown again after a compaction, and how much of it is looked at: the last edit may be at its end."""

_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]{2,}")

_MAX_COUNTED_CHARS = 50_000_000
"""Characters beside the wanted ones that are still read, to learn how many lines there are and how long one is."""


class ReadArguments(Arguments, frozen=True):
    path: Annotated[str, msgspec.Meta(description="In the workspace, or absolute")]
    start_line: Annotated[int, msgspec.Meta(description="From 1")] = 1
    end_line: Annotated[int, msgspec.Meta(description="Included")] = 0


class ReadFile(Tool[ReadArguments]):
    name = "read_file"
    about = (
        "Read a text file, at most 2000 lines at once, or an image. Lines come behind a tab that is not theirs, every fifth "
        "with its number. Read before you edit. Long results lie in tool-results/."
    )
    arguments = ReadArguments
    reads_only = True

    def __init__(self, seen: SeenFiles | None = None, shows_images: Callable[[], bool] = lambda: False) -> None:
        """`shows_images` says whether the model in use is shown images."""
        super().__init__()
        self._seen = seen or SeenFiles()
        self._shows_images = shows_images

    def access_needed(self, arguments: ReadArguments, context: ToolContext) -> AccessRequest:
        place = locate(arguments.path, context)
        lines = f" {arguments.start_line}–{arguments.end_line or 'end'}" if _partial(arguments) else ""
        return AccessRequest(
            "read", str(place.path), place.inside, f"read {place.shown}{lines}", patterns=patterns(place)
        )

    async def execute(self, arguments: ReadArguments, context: ToolContext) -> Pieces:
        if arguments.end_line and arguments.end_line < arguments.start_line:
            raise ToolError(f"end_line {arguments.end_line} comes before start_line {arguments.start_line}.")
        place = locate(arguments.path, context)
        if (data := await in_thread(_image_in, place)) is not None:
            yield await asyncio.to_thread(self._image, place, data)
            return
        first = max(1, arguments.start_line)
        last = min(arguments.end_line or first + MAX_LINES - 1, first + MAX_LINES - 1)
        asked = arguments.end_line
        text = await in_thread(_read_lines, place, first, last, context, self._seen, asked)
        yield ToolOutput(text)

    def _image(self, place: ResolvedPath, data: bytes) -> ToolOutput:
        """The image itself, where the model sees it. Raises ToolError."""
        what = f"{kind_of(data).upper()} image, {'×'.join(map(str, size_in(data)))}"
        if not self._shows_images():
            raise ToolError(f"{place.shown}: {what}. You are not shown images.", "Ask what is in it, or use a program.")
        if fault := fault_of(data):
            remedy = "Make it smaller with a program, through shell, and read that." if fault != "damaged" else ""
            raise ToolError(f"{place.shown}: {what}, {fault}.", remedy)
        return ToolOutput(f"[{place.shown}: {what}]", images=(data,))


class ReadNow:
    """Fulfils `core.ports.FilesNow` with what read_file would show. `may` says whether that would be allowed without asking."""

    def __init__(
        self, seen: SeenFiles, workspace: str, may: Callable[[AccessRequest], bool], mask: Callable[[str], str]
    ) -> None:
        self._seen = seen
        self._context = ToolContext("", workspace, "", NOW_CHARS, 0)
        self._may = may
        self._mask = mask

    async def __call__(self, path: str) -> CurrentFile | None:
        """See the port. Called in a thread."""
        return await in_thread(self._read_current, path)

    def _read_current(self, stop: threading.Event, path: str) -> CurrentFile | None:
        try:
            place = locate(path, self._context)
            if not self._may(AccessRequest("read", str(place.path), place.inside, patterns=patterns(place))):
                return None
            with open_file(place) as file:
                data = file.read(NOW_BYTES + 1)
            if not data or len(data) > NOW_BYTES or binary_kind(data[:SNIFFED_BYTES]):
                return None
            encoding = encoding_of(data, agreed=agreed_encoding(place))
            excerpt = _excerpt(stop, io.BytesIO(data), encoding, 1, NOW_LINES, NOW_CHARS)
            names = frozenset(_IDENTIFIER.findall(data.decode(encoding.codec, "replace")))
            text = self._mask(_drawn(place, excerpt, encoding, 1))
        except (CtxchatError, OSError, UnicodeError):
            return None  # it cannot be shown; the summary still names it
        return CurrentFile(place.shown, (path,), text, self._seen.changed(place.path, data), names=names)


def size_of(file: BinaryIO) -> int:
    """Bytes of an open file."""
    return os.fstat(file.fileno()).st_size


def _partial(arguments: ReadArguments) -> bool:
    return arguments.start_line > 1 or arguments.end_line > 0


class Excerpt(msgspec.Struct):
    """Lines of a file as they will be shown, the last one among them, and how many there are in all (0: too many to count)."""

    lines: list[str]
    last: int
    total: int
    ends: set[str] = msgspec.field(default_factory=set)


def _image_in(_: threading.Event, place: ResolvedPath) -> bytes | None:
    """An image, as far as it is looked at: one that is too large by a byte more than is allowed. None for anything else."""
    with open_file(place) as file:
        data = file.read(SNIFFED_BYTES)
        if kind_of(data):
            data += file.read(MAX_IMAGE_BYTES + 1 - len(data))
    return data if any(size_in(data)) else None


def _read_lines(
    stop: threading.Event,
    place: ResolvedPath,
    first: int,
    last: int,
    context: ToolContext,
    seen: SeenFiles,
    asked: int,
) -> str:
    max_chars = context.max_chars
    with open_file(place) as file:
        small = size_of(file) <= MAX_BYTES
        data = file.read(MAX_BYTES if small else SNIFFED_BYTES)
        if kind := binary_kind(data[:SNIFFED_BYTES]):
            file.seek(0, io.SEEK_END)
            remedy = (
                "Make a PNG of it with a program, through shell, and read that." if "image" in other_kind(data) else ""
            )
            raise ToolError(
                f"{place.shown} is not text: {kind}, {size(file.tell())}.",
                remedy or "Use a program for it through shell.",
            )
        if small:
            data = as_edited(place, data, context.editor)
            seen.saw(place.path, data)
            encoding = encoding_of(data, agreed=agreed_encoding(place))  # of all of it: an edit will go by that, too
            excerpt = _excerpt(stop, io.BytesIO(data), encoding, first, last, max_chars)
            return _drawn(place, excerpt, encoding, first, asked)
        encoding = encoding_of(data, whole=False, agreed=agreed_encoding(place))
        try:
            excerpt = _excerpt(stop, file, encoding, first, last, max_chars)
        except UnicodeDecodeError:  # further on than we had looked
            encoding = LATIN1
            excerpt = _excerpt(stop, file, encoding, first, last, max_chars)
    return _drawn(place, excerpt, encoding, first, asked)


def _excerpt(
    stop: threading.Event, file: BinaryIO, encoding: Encoding, first: int, last: int, max_chars: int
) -> Excerpt:
    file.seek(0)
    end = line_break(file.read(NOW_BYTES).removeprefix(encoding.bom).decode(encoding.codec, "replace"))
    file.seek(len(encoding.bom))
    text = io.TextIOWrapper(file, encoding.codec, encoding.errors, newline=end)
    try:
        return _excerpt_lines(stop, text, end, first, last, max_chars)
    finally:
        text.detach()


def _excerpt_lines(
    stop: threading.Event, text: io.TextIOWrapper, end: str, first: int, last: int, max_chars: int
) -> Excerpt:
    found = Excerpt([], first - 1, 0)
    number, room, beyond = 0, max_chars, 0
    while not stop.is_set():
        line = text.readline(MAX_LINE + 2)
        if not line:
            found.total = number
            break
        number += 1
        extra = 0 if line.endswith(end) else _skip_line(stop, text, end)
        if first <= number <= last and room > 0:
            if line.endswith(end):
                found.ends.add("CR" if end == "\r" else "CRLF" if line.endswith("\r\n") else "LF")
            shown = numbered(number, first, _cut(line, extra))
            room -= len(shown) + 1
            if room > 0 or not found.lines:
                found.lines.append(shown)
                found.last = number
        beyond += extra + (len(line) if number > last else 0)
        if beyond > _MAX_COUNTED_CHARS:
            break
    return found


def _skip_line(stop: threading.Event, text: io.TextIOWrapper, end: str) -> int:
    """Read on to the end of a long line, or of our patience; how many characters that were."""
    skipped = 0
    while skipped <= _MAX_COUNTED_CHARS and not stop.is_set() and (piece := text.readline(65536)):
        skipped += len(piece)
        if piece.endswith(end):
            return skipped - 1
    return skipped


def _cut(line: str, extra: int) -> str:
    """A line, cut where it is too long by itself or by so many characters that were not read."""
    line = line.removesuffix("\n").removesuffix("\r")
    over = max(0, len(line) - MAX_LINE) + extra
    least = "at least " if extra > _MAX_COUNTED_CHARS else ""
    mark = f" [… {least}{over:,} more characters in this line]" if over else ""
    return f"{line[:MAX_LINE]}{mark}"


def _drawn(place: ResolvedPath, excerpt: Excerpt, encoding: Encoding, first: int, asked: int = 0) -> str:
    """The lines, and what is to be said of them; where they end before the one that was `asked` for, how to go on."""
    total = f"{excerpt.total}" if excerpt.total else "very many"
    if not excerpt.lines:
        if excerpt.total == 0 and first == 1:
            return f"[{place.shown} is empty]"
        raise ToolError(f"{place.shown} has only {total} line{'s' * (total != '1')}; there is no line {first}.")
    notes = [] if encoding == Encoding() else [f"encoding: {encoding.label}"]
    notes += [f"line ends: {' and '.join(sorted(excerpt.ends))}"] if excerpt.ends - {"LF"} else []
    if excerpt.last not in {excerpt.total, asked}:
        notes.append(f"lines {first}-{excerpt.last} of {total}, go on with start_line={excerpt.last + 1}")
    elif first > 1 or excerpt.last != excerpt.total:
        notes.append(f"of {total} lines")
    return "\n".join(excerpt.lines) + (f"\n[{'; '.join(notes)}]" if notes else "")
