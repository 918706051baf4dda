"""write_file and edit_file: the change is worked out before it is approved, shown as a diff, and written whole or not at all."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.guarded import guarded
from ctxchat.core.permissions import Demand
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.core.words import count
from ctxchat.tools.diffs import Diff, difference
from ctxchat.tools.paths import MAX_BYTES, Place, locate, missing, open_file, patterns, unmoved
from ctxchat.tools.seen import SeenFiles
from ctxchat.tools.text import SNIFF, Encoding, binary_kind, encoding_of, size
from ctxchat.tools.tool import A, Arguments, Pieces, Tool


class WriteArguments(Arguments, frozen=True):
    path: str
    content: Annotated[str, msgspec.Meta(description="The whole new content")]


class EditArguments(Arguments, frozen=True):
    path: str
    old: Annotated[
        str, msgspec.Meta(description="Exact text to replace, without line numbers, long enough to be unique")
    ]
    new: Annotated[str, msgspec.Meta(description="The new text")]
    replace_all: Annotated[bool, msgspec.Meta(description="Replace every occurrence")] = False


class FileDemand(Demand, frozen=True, omit_defaults=True):
    """A demand that also knows which content it was worked out from, so that a file changed since is noticed."""

    digest: str = ""


class Rewrite(msgspec.Struct, frozen=True):
    """A file before (None: not there) and after, as bytes, and the difference for people."""

    place: Place
    before: bytes | None
    after: bytes
    diff: Diff


class _WritingTool(Tool[A]):
    reads_only = False

    def __init__(self, seen: SeenFiles | None = None) -> None:
        super().__init__()
        self._seen = seen or SeenFiles()

    def change(self, arguments: A, context: ToolContext) -> Rewrite:
        """What would be written. Raises ToolError or OSError."""
        raise NotImplementedError

    def wants(self, arguments: A, context: ToolContext) -> Demand:
        change = self.change(arguments, context)
        place, diff = change.place, change.diff
        verb = "create" if change.before is None else "change"
        return FileDemand(
            "write",
            str(place.path),
            place.inside,
            f"{verb} {place.shown} (+{diff.added} −{diff.removed})",
            preview=diff.text,
            patterns=patterns(place),
            guarded=guarded(place.shown),
            digest=hashlib.sha256(change.before).hexdigest() if change.before is not None else "",
        )

    async def work(self, arguments: A, context: ToolContext) -> Pieces:
        change = await asyncio.to_thread(self.change, arguments, context)
        await asyncio.to_thread(_store, change)
        await asyncio.to_thread(self._seen.saw, change.place.path, change.after)
        verb = "Created" if change.before is None else "Changed"
        lines = change.after.count(b"\n") + (not change.after.endswith(b"\n") and change.after != b"")
        diff, now = change.diff, f"{count(lines, 'line')}, {size(len(change.after))}"
        text = f"{verb} {change.place.shown}: +{diff.added} −{diff.removed}, now {now}."
        yield ToolOutput(text, diff=diff.text)


class WriteFile(_WritingTool[WriteArguments]):
    name = "write_file"
    about = "Create a file, or replace all of its content; missing folders are made. To change a part, use edit_file."
    arguments = WriteArguments

    def change(self, arguments: WriteArguments, context: ToolContext) -> Rewrite:
        place = locate(arguments.path, context, spilled=False)
        content = arguments.content
        before = _content(place) if _writable(place) else None
        if before is None:
            after = _encoded(content, Encoding(), place)
            return Rewrite(place, None, after, difference("", content, place.shown))
        self._seen.check(place, before, whole=True)
        if kind := binary_kind(before[:SNIFF]):
            diff = difference("", content, f"{place.shown} ({kind}, {size(len(before))}, replaced by this text)")
            return Rewrite(place, before, _encoded(content, Encoding(), place), diff)
        encoding = encoding_of(before)
        old = encoding.decode(before)
        content = to_crlf(content) if only_crlf(old) else content
        # An encoding that cannot hold the new text gives way: nothing of the old text has to stay.
        after = _encoded(content, encoding if _fits(content, encoding) else Encoding(), place)
        return Rewrite(place, before, after, difference(old, content, place.shown))


class EditFile(_WritingTool[EditArguments]):
    name = "edit_file"
    about = "Replace an exact piece of a text file. Fails when it is not there, or there more than once without replace_all."
    arguments = EditArguments

    def change(self, arguments: EditArguments, context: ToolContext) -> Rewrite:
        place = locate(arguments.path, context, spilled=False)
        if not _writable(place):
            raise missing(place)
        before = _content(place)
        if kind := binary_kind(before[:SNIFF]):
            raise ToolError(f"{place.shown} is not text: {kind}, {size(len(before))}.")
        self._seen.check(place, before, whole=False)
        encoding = encoding_of(before)
        text = encoding.decode(before)
        after, _ = replaced(text, arguments.old, arguments.new, arguments.replace_all)
        return Rewrite(place, before, _encoded(after, encoding, place), difference(text, after, place.shown))


def _writable(place: Place) -> bool:
    """Whether the file is there. Raises ToolError where it cannot be written."""
    try:
        mode = place.path.stat().st_mode  # `exists` would call a name that is too long a file that is not there
    except (FileNotFoundError, NotADirectoryError):
        above = next(folder for folder in place.path.parents if folder.exists())
        if not above.is_dir():
            raise ToolError(f"{above} is a file, not a folder.") from None
        return False
    if stat.S_ISDIR(mode):
        raise ToolError(f"{place.shown} is a folder.")
    if not os.access(place.path, os.W_OK):
        raise ToolError(f"{place.shown} is write-protected.")
    return True


def _content(place: Place) -> bytes:
    with open_file(place) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolError(f"{place.shown} is larger than {size(MAX_BYTES)}.", "Change it with a program through shell.")
    return data


def _fits(text: str, encoding: Encoding) -> bool:
    try:
        encoding.encode(text)
    except UnicodeEncodeError:
        return False
    return True


def _encoded(text: str, encoding: Encoding, place: Place) -> bytes:
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        sign = text[error.start : error.end][:5]
        raise ToolError(
            f"{place.shown} is {encoding.label} and cannot hold {sign!a}.",
            "Leave such characters out, or write the whole file anew.",
        ) from error


def _store(change: Rewrite) -> None:
    """Write beside the file, then put it in its place in one step, with the old mode. All of it in the folder that was judged,
    held open: a link that is put in the way meanwhile leads nowhere."""
    path = change.place.path
    if not _HOLDS_FOLDERS:  # Windows, where a link takes a right that programs seldom have
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder = _folder(path.parent) if _HOLDS_FOLDERS else None
    except NotADirectoryError as error:  # what a link is, where none is followed
        raise _moved(change.place) from error
    within = Path() if folder is not None else path.parent
    beside = within / f".{path.name[:50]}.{secrets.token_hex(6)}.tmp"
    try:
        mode = _mode(within / path.name, folder, change.place)
        if not unmoved(path):
            raise _moved(change.place)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with os.fdopen(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(change.after)
                file.flush()
                os.fsync(file.fileno())
                if hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
            os.replace(beside, within / path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)
            raise
    finally:
        if folder is not None:
            os.close(folder)


_HOLDS_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


def _folder(folder: Path) -> int:
    """A folder, opened step by step without following a link, made where it is missing."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    at = os.open(folder.anchor, flags)
    for name in folder.parts[1:]:
        try:
            with suppress(FileExistsError):
                if not _there(name, at):
                    os.mkdir(name, dir_fd=at)
            below = os.open(name, flags, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _there(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _moved(place: Place) -> ToolError:
    return ToolError(f"{place.shown} leads somewhere else than a moment ago; nothing was written.")


def _mode(path: Path, folder: int | None, place: Place) -> int:
    """The file's mode, or what a new file gets."""
    try:
        found = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        mask = os.umask(0o077)  # there is no way to read it without setting it
        os.umask(mask)
        return 0o666 & ~mask
    if not stat.S_ISREG(found.st_mode):
        raise _moved(place)
    return found.st_mode & 0o7777


_SEARCHED = 20_000
"""Lines among which a resemblance is looked for."""


def replaced(text: str, old: str, new: str, every: bool = False) -> tuple[str, int]:
    """`text` with `old` replaced by `new`, and how often. A text whose lines all end in CRLF keeps them so, however old and new
    are written. Raises ToolError where `old` is not there, or there several times and not `every` one is meant."""
    if not old:
        raise ToolError("old is empty.", "Give the exact text to replace; write_file makes a new file.")
    if old == new:
        raise ToolError("old and new are the same; there is nothing to change.")
    if only_crlf(text):
        old, new = to_crlf(old), to_crlf(new)
    count = text.count(old)
    if not count:
        raise ToolError("The text of old is not in the file.", _resemblance(text, old))
    if count > 1 and not every:
        raise ToolError(
            f"The text of old is there {count} times, in lines {_places(text, old)}.",
            "Take in more lines around it so that it is unique, or set replace_all.",
        )
    return text.replace(old, new), count


def only_crlf(text: str) -> bool:
    """True when the text has line ends and all are CRLF."""
    return "\n" in text and text.count("\n") == text.count("\r\n")


def to_crlf(text: str) -> str:
    """Every line end as CRLF."""
    return re.sub(r"\r?\n", "\r\n", text)


def _places(text: str, old: str, most: int = 10) -> str:
    """Line numbers where `old` begins."""
    numbers: list[str] = []
    at, line = text.find(old), 1
    seen = 0
    while at >= 0 and len(numbers) < most:
        line += text.count("\n", seen, at)
        seen = at
        numbers.append(str(line))
        at = text.find(old, at + len(old))
    return ", ".join(numbers) + (", …" if at >= 0 else "")


def _resemblance(text: str, old: str) -> str:
    """The lines of the file most like `old`."""
    lines = text.split("\n")[:_SEARCHED]
    wanted = old.strip("\r\n").split("\n")
    bare = [line.strip() for line in lines]
    sought = [line.strip() for line in wanted]
    for at in range(len(lines) - len(sought) + 1):
        if bare[at] == sought[0] and bare[at : at + len(sought)] == sought:
            return "Only the white space differs from these lines:\n" + _numbered(lines, at, at + len(sought))
    first = next((line for line in sought if line), "")
    near = difflib.get_close_matches(first[:300], {line[:300] for line in bare if line}, 1, 0.6)
    if not near:
        return "Nothing there resembles it; read the file again."
    at = next(at for at, line in enumerate(bare) if line[:300] == near[0])
    return "The nearest lines are:\n" + _numbered(lines, at, at + len(sought))


def _numbered(lines: list[str], start: int, end: int) -> str:
    end = min(end, start + 20, len(lines))
    return "\n".join(f"{at + 1:>5}\t{lines[at].rstrip(chr(13))[:500]}" for at in range(start, end))
