"""write_file and edit_file: the change is worked out before it is approved, shown as a diff, and written whole or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec

from ctxchat.core.errors import ToolError
from ctxchat.core.guarded import guarded
from ctxchat.core.permissions import Demand
from ctxchat.core.ports import ToolContext, ToolOutput
from ctxchat.tools.diffs import Diff, difference
from ctxchat.tools.edits import only_crlf, replaced, to_crlf
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
    new: Annotated[str, msgspec.Meta(description="What stands there afterwards")]
    replace_all: Annotated[bool, msgspec.Meta(description="Replace every occurrence")] = False


class FileDemand(Demand, frozen=True, omit_defaults=True):
    """A demand that also knows which content it was worked out from, so that a file changed since is noticed."""

    digest: str = ""


class Change(msgspec.Struct, frozen=True):
    """A file before (None: not there) and after, as bytes, and the difference for people."""

    place: Place
    before: bytes | None
    after: bytes
    diff: Diff


class _Writer(Tool[A]):
    reads_only = False

    def __init__(self, seen: SeenFiles | None = None) -> None:
        super().__init__()
        self._seen = seen or SeenFiles()

    def change(self, arguments: A, context: ToolContext) -> Change:
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
        diff, now = change.diff, f"{lines} lines, {size(len(change.after))}"
        text = f"{verb} {change.place.shown}: +{diff.added} −{diff.removed}, now {now}."
        yield ToolOutput(text, diff=diff.text)


class WriteFile(_Writer[WriteArguments]):
    name = "write_file"
    about = "Create a file, or replace all of its content; missing folders are made. To change a part, use edit_file."
    arguments = WriteArguments

    def change(self, arguments: WriteArguments, context: ToolContext) -> Change:
        place = locate(arguments.path, context, spilled=False)
        content = arguments.content
        before = _content(place) if _writable(place) else None
        if before is None:
            after = _encoded(content, Encoding(), place)
            return Change(place, None, after, difference("", content, place.shown))
        self._seen.check(place, before, whole=True)
        if kind := binary_kind(before[:SNIFF]):
            diff = difference("", content, f"{place.shown} ({kind}, {size(len(before))}, replaced by this text)")
            return Change(place, before, _encoded(content, Encoding(), place), diff)
        encoding = encoding_of(before)
        old = encoding.decode(before)
        content = to_crlf(content) if only_crlf(old) else content
        # An encoding that cannot hold the new text gives way: nothing of the old text has to stay.
        after = _encoded(content, encoding if _fits(content, encoding) else Encoding(), place)
        return Change(place, before, after, difference(old, content, place.shown))


class EditFile(_Writer[EditArguments]):
    name = "edit_file"
    about = "Replace an exact piece of a text file. Fails when it is not there, or there more than once without replace_all."
    arguments = EditArguments

    def change(self, arguments: EditArguments, context: ToolContext) -> Change:
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
        return Change(place, before, _encoded(after, encoding, place), difference(text, after, place.shown))


def _writable(place: Place) -> bool:
    """Whether the file is there. Raises ToolError where it cannot be written."""
    if place.path.is_dir():
        raise ToolError(f"{place.shown} is a folder.")
    if not place.path.exists():
        above = next(folder for folder in place.path.parents if folder.exists())
        if not above.is_dir():
            raise ToolError(f"{above} is a file, not a folder.")
        return False
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


def _store(change: Change) -> None:
    """Write beside the file, then put it in its place in one step, with the old mode."""
    path = change.place.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if not unmoved(path):
        raise ToolError(f"{change.place.shown} leads somewhere else than a moment ago; nothing was written.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}.", suffix=".tmp")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(_mode(path))
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The file's mode, or what a new file gets."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0o077)  # there is no way to read it without setting it
        os.umask(mask)
        return 0o666 & ~mask
