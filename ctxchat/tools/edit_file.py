"""write_file and edit_file: the change is worked out before it is approved, shown as a diff, and written whole or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from ctxchat import atomic_write
from ctxchat.core.errors import ToolError
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.ports import EditorFiles, ToolContext, ToolOutput
from ctxchat.core.quantities import count
from ctxchat.repository_files import held_folder
from ctxchat.tools.diffs import Diff, difference
from ctxchat.tools.editorconfig import agreed_encoding
from ctxchat.tools.encodings import SNIFFED_BYTES, Encoding, binary_kind, declared, encoding_of
from ctxchat.tools.line_ends import LINE_END, only_crlf, with_line_ends_of
from ctxchat.tools.paths import MAX_BYTES, ResolvedPath, locate, missing, open_file, patterns, unmoved
from ctxchat.tools.resemblance import resemblance
from ctxchat.tools.seen import SeenFiles
from ctxchat.tools.text import clip_line, numbered, size
from ctxchat.tools.tool import A, Arguments, Pieces, Tool
from ctxchat.tools.unsaved import as_edited


class WriteArguments(Arguments, frozen=True):
    path: str
    content: str


class EditArguments(Arguments, frozen=True):
    path: str
    old: Annotated[str, msgspec.Meta(description="Without line numbers, long enough to be unique")]
    new: str
    replace_all: bool = False


class FileDemand(AccessRequest, frozen=True, omit_defaults=True):
    """An access request that also knows which content it was worked out from, so that a file changed since is noticed."""

    digest: str = ""


class Rewrite(msgspec.Struct, frozen=True):
    """A file before (None: not there) and after, as bytes, the `text` that it holds then, and the difference for people."""

    place: ResolvedPath
    before: bytes | None
    after: bytes
    text: str
    diff: Diff
    recoded: str = ""
    """What becomes of the encoding where it does not stay: `cp1252 becomes utf-8`."""
    shown: str = ""
    """The lines around the change as they are after it, so that the model need not read the file again."""


class _WritingTool(Tool[A]):
    """What write_file and edit_file have in common. `change` is worked out twice: for the approval, and anew before it is
    written."""

    reads_only = False

    def __init__(self, seen: SeenFiles | None = None) -> None:
        super().__init__()
        self._seen = seen or SeenFiles()

    def change(self, arguments: A, context: ToolContext) -> Rewrite:
        """The change that a call would make; nothing is written. Raises ToolError or OSError."""
        raise NotImplementedError

    def access_needed(self, arguments: A, context: ToolContext) -> AccessRequest:
        change = self.change(arguments, context)
        place, diff = change.place, change.diff
        verb = "create" if change.before is None else "change"
        return FileDemand(
            "write",
            str(place.path),
            place.inside,
            f"{verb} {place.shown} (+{diff.added} −{diff.removed}){f': {change.recoded}' if change.recoded else ''}",
            preview=diff.text,
            patterns=patterns(place),
            guarded=place.guarded,
            digest=hashlib.sha256(change.before).hexdigest() if change.before is not None else "",
        )

    async def execute(self, arguments: A, context: ToolContext) -> Pieces:
        change = await asyncio.to_thread(self.change, arguments, context)
        await _hand_over(change, context.editor)
        if not context.editor or not await asyncio.to_thread(_is_stored, change):
            await asyncio.to_thread(_store, change)
        await asyncio.to_thread(self._seen.saw, change.place.path, change.after)
        verb = "Created" if change.before is None else "Changed"
        lines = len(LINE_END.split(change.text)) - (
            change.text[-1:] in {"", "\n", "\r"}
        )  # behind the last end there is none
        diff, now = change.diff, f"{count(lines, 'line')}, {size(len(change.after))}"
        text = f"{verb} {change.place.shown}: +{diff.added} −{diff.removed}, now {now}."
        text += f" The encoding has changed: {change.recoded}." if change.recoded else ""
        yield ToolOutput("\n".join(filter(None, (text, change.shown))), diff=diff.text)


class WriteFile(_WritingTool[WriteArguments]):
    name = "write_file"
    about = "Create a file, or replace all of its content; missing folders are made. To change a part, use edit_file."
    arguments = WriteArguments

    def change(self, arguments: WriteArguments, context: ToolContext) -> Rewrite:
        place = locate(arguments.path, context, spilled=False)
        content = arguments.content
        before = _read_bytes(place, context.editor) if _writable(place) else None
        if before is None:
            stated, agreed = declared(_head(content)), agreed_encoding(place)
            by = "it states" if stated else ".editorconfig says"
            fits = agreed == "latin-1" and _can_encode(content, Encoding(agreed))
            encoding = Encoding(stated or (agreed if fits else "utf-8"))
            recoded = "" if encoding == Encoding() else f"{encoding.codec}, as {by}"
            after, diff = _encoded(content, encoding, place), difference("", content, place.shown)
            return Rewrite(place, None, after, content, diff, recoded)
        self._seen.check(place, before, whole=True)
        if kind := binary_kind(before[:SNIFFED_BYTES]):
            diff = difference("", content, f"{place.shown} ({kind}, {size(len(before))}, replaced by this text)")
            return Rewrite(place, before, _encoded(content, Encoding(), place), content, diff)
        encoding = encoding_of(before, agreed=agreed_encoding(place))
        old = encoding.decode(before)
        if "\r" not in content or only_crlf(old):
            content = with_line_ends_of(old, content)
        stated = _restated(before, content, encoding)
        wanted = stated or Encoding(encoding.codec, encoding.bom, encoding.guessed)  # the new text is not damaged
        # Where the file's encoding cannot hold the new text, UTF-8 takes its place, since nothing of the old text has to stay;
        # an encoding that the new text itself states is kept.
        if (
            not stated
            and not declared(_head(content))
            and (_doubtful(content, old, wanted) or not _can_encode(content, wanted))
        ):
            wanted = Encoding()
        after = _encoded(content, wanted, place)
        diff = difference(old, content, place.shown)
        return Rewrite(place, before, after, content, diff, _recoded(encoding, wanted, after))


class EditFile(_WritingTool[EditArguments]):
    name = "edit_file"
    about = "Replace an exact piece of a text file, which must be there, and once only without replace_all."
    arguments = EditArguments

    def change(self, arguments: EditArguments, context: ToolContext) -> Rewrite:
        place = locate(arguments.path, context, spilled=False)
        if not _writable(place):
            raise missing(place)
        before = _read_bytes(place, context.editor)
        if kind := binary_kind(before[:SNIFFED_BYTES]):
            raise ToolError(f"{place.shown} is not text: {kind}, {size(len(before))}.")
        self._seen.check(place, before, whole=False)
        encoding = encoding_of(before, agreed=agreed_encoding(place))
        text = encoding.decode_exactly(before)
        if encoding.encode(text) != before:
            raise ToolError(
                f"{place.shown} seems to be {encoding.label}, but would not come back as it was; nothing was written.",
                "Change it with a program through shell, as bytes.",
            )
        changed, _ = replaced(text, arguments.old, arguments.new, arguments.replace_all)
        wanted = _restated(before, changed, encoding) or encoding
        if sign := _doubtful(arguments.new, text, wanted):
            raise ToolError(
                f"The encoding of {place.shown} is a guess ({wanted.codec}), so {sign!r} could come out as another letter; "
                "nothing was written.",
                "Use no letters beyond ASCII that the file does not have, or convert it to UTF-8 first (iconv).",
            )
        after = _encoded(changed, wanted, place)
        old, new = encoding.decode(before), wanted.decode(after)
        diff = difference(old, new, place.shown)
        return Rewrite(place, before, after, new, diff, _recoded(encoding, wanted, after), lines_now(old, new))


AROUND, MAX_SHOWN_LINES, MAX_SHOWN_CHARS = 2, 10, 200
"""The lines shown before and behind those that an edit changed; the most of the changed ones; the most characters of a line."""

MIN_LEFT_OUT_LINES = 2
"""So many lines are shown rather than left out, since the mark for what is left out would take as much."""


def lines_now(old: str, new: str) -> str:
    """The lines that a change has left and those around them, as read_file shows them; of many the first and the last, of a
    long one the part that has changed."""
    before, after = LINE_END.split(old), LINE_END.split(new)
    first = _alike(before, after)
    last = len(after) - min(_alike(before[::-1], after[::-1]), len(after) - first, len(before) - first)
    end = len(after) - (after[-1] == "")  # behind the last line end there is none
    places = range(max(0, first - AROUND), min(end, last + AROUND))
    if len(places) > MAX_SHOWN_LINES + 2 * AROUND + MIN_LEFT_OUT_LINES:
        half = MAX_SHOWN_LINES // 2 + AROUND
        left_out = f"[… lines {places[half] + 1}–{places[-half]}]"
        return "\n".join([_numbered(before, after, places[:half]), left_out, _numbered(before, after, places[-half:])])
    return _numbered(before, after, places)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many elements are equal at the beginning of both: lines of two texts, or characters of two lines."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _numbered(before: Sequence[str], after: Sequence[str], places: Sequence[int]) -> str:
    """The lines `after` an edit with their numbers; a long line only around what differs from the line before the edit."""

    def shown(place: int) -> str:
        line = after[place]
        kept = _alike(before[place], line) if len(line) > MAX_SHOWN_CHARS and len(before) == len(after) else 0
        return clip_line(line, MAX_SHOWN_CHARS, kept if kept < len(line) else 0)

    return "\n".join(numbered(p + 1, places[0] + 1, shown(p)) for p in places)


def _writable(place: ResolvedPath) -> bool:
    """True where the file is there, False where it can be made. Raises ToolError where it cannot be written."""
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


def _read_bytes(place: ResolvedPath, editor: EditorFiles | None) -> bytes:
    with open_file(place) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ToolError(f"{place.shown} is larger than {size(MAX_BYTES)}.", "Change it with a program through shell.")
    return as_edited(place, data, editor)


def _head(text: str) -> bytes:
    """The beginning of a text as `declared` wants it."""
    return text[:4096].encode("ascii", "replace")


def _restated(before: bytes, after: str, encoding: Encoding) -> Encoding | None:
    """The encoding that a text declares but did not declare before; None where a byte order mark tells it."""
    stated = declared(_head(after))
    return Encoding(stated) if stated and stated != declared(before) and not encoding.bom else None


def _doubtful(new: str, old: str, encoding: Encoding) -> str:
    """The first letter that a guessed encoding may be wrong about: one beyond ASCII that the old text has nowhere."""
    return next((sign for sign in new if sign > "\x7f" and sign not in old), "") if encoding.guessed else ""


def _recoded(was: Encoding, now: Encoding, after: bytes) -> str:
    """The change of encoding in words; empty where there is none, or none that shows."""
    same = (was.codec, was.bom) == (now.codec, now.bom) or (was == Encoding() and after.isascii())
    return "" if same else f"{was.codec} becomes {now.codec}"


def _can_encode(text: str, encoding: Encoding) -> bool:
    try:
        encoding.encode(text)
    except UnicodeEncodeError:
        return False
    return True


def _encoded(text: str, encoding: Encoding, place: ResolvedPath) -> bytes:
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        sign = text[error.start : error.end][:5]
        raise ToolError(
            f"{place.shown} is {encoding.codec} and cannot hold {sign!r}.",
            "Leave such characters out, or write the whole file anew.",
        ) from error


async def _hand_over(change: Rewrite, editor: EditorFiles | None) -> None:
    """Let the editor, where there is one, make a change of text its own."""
    if editor and await asyncio.to_thread(unmoved, change.place.path):
        with suppress(UnicodeDecodeError):
            await editor.write(str(change.place.path), change.after.decode())


def _is_stored(change: Rewrite) -> bool:
    """True where the file has the new content already, as an editor may have written it."""
    try:
        with open_file(change.place) as file:
            return file.read(len(change.after) + 1) == change.after
    except (ToolError, OSError):
        return False


def _store(change: Rewrite) -> None:
    """Put the new content in its place, whole or not at all. All of it in the folder that was judged, held open: a link that is
    put in the way meanwhile leads nowhere."""
    path = change.place.path
    try:
        with held_folder(path.parent, make=True) as folder:
            within = Path() if folder is not None else path.parent  # relative to the folder that is held
            _check_plain(within / path.name, folder, change.place)
            if not unmoved(path):
                raise _moved(change.place)
            atomic_write.write_atomically(within / path.name, change.after, new_mode=0o666 & ~_mask(), folder=folder)
    except NotADirectoryError as error:  # raised for a link where links are not followed
        raise _moved(change.place) from error


def _moved(place: ResolvedPath) -> ToolError:
    return ToolError(f"{place.shown} leads somewhere else than a moment ago; nothing was written.")


def _check_plain(path: Path, folder: int | None, place: ResolvedPath) -> None:
    """Raises ToolError where something stands that is no plain file."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode):
            raise _moved(place)


def _mask() -> int:
    mask = os.umask(0o077)  # only Linux tells it without setting it
    os.umask(mask)
    return mask


def replaced(text: str, old: str, new: str, every: bool = False) -> tuple[str, int]:
    """`text` with `old` replaced by `new`, and how often. A line end of `old` matches any line end, and the lines keep theirs,
    since models are not shown line ends. Raises ToolError where `old` is not there, or there several times and not `every` one
    is meant."""
    if not old:
        raise ToolError("old is empty.", "Give the exact text to replace; write_file makes a new file.")
    if old == new:
        raise ToolError("old and new are the same; there is nothing to change.")
    if LINE_END.sub("\n", old) == LINE_END.sub("\n", new):
        raise ToolError(
            "old and new differ in line ends only, which stay as they are in the file.",
            "Convert them with a program through shell.",
        )
    pattern = re.compile(f"(?:{LINE_END.pattern})".join(map(re.escape, LINE_END.split(old))))
    found = [match.span() for match in pattern.finditer(text)]
    if not found:
        raise ToolError("The text of old is not in the file.", resemblance(text, old))
    if len(found) > 1 and not every:
        raise ToolError(
            f"The text of old is there {len(found)} times, in lines {_places(text, found)}.",
            "Take in more lines around it so that it is unique, or set replace_all.",
        )
    pieces, at = [], 0
    for start, end in found:
        pieces += [text[at:start], with_line_ends_of(text[start:end], new, _line_end_at(text, start))]
        at = end
    return "".join((*pieces, text[at:])), len(found)


def _line_end_at(text: str, at: int) -> str:
    """The end of the line that a place lies in, or of the one before; empty where the text has none."""
    found = LINE_END.search(text, at)
    if not found:
        before = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at))
        found = LINE_END.search(text, max(0, before - 1)) if before >= 0 else None
    return found[0] if found else ""


def _places(text: str, found: Sequence[tuple[int, int]], most: int = 10) -> str:
    """Line numbers where matches begin."""
    numbers = [str(1 + text.count("\n", 0, start)) for start, _ in found[:most]]
    return ", ".join(numbers) + (", …" if len(found) > most else "")
