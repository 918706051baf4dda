"""Files a person names in a message, by `@path` or by pasting: what they are, and what of them goes along.

Text goes along as text where it is short, images as images; of everything else the name stays, and a word says why. A name that
was pasted, and a file outside the workspace, goes along only once the person has agreed to it. Reads files: call `read_mention`
off the event loop.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec

from ctxchat.core.images import MAX_IMAGE_BYTES, MAX_SIDE_PIXELS, fault_of, from_data_url, kind_of, other_kind, size_in
from ctxchat.core.messages import Image, Part, Text
from ctxchat.core.permissions import AccessRequest
from ctxchat.core.sanitize import visible
from ctxchat.repository_files import read_checked
from ctxchat.tools.encodings import SNIFFED_BYTES, binary_kind, encoding_of
from ctxchat.tools.text import line_break, size

MAX_TEXT_CHARS = 32_000
"""Characters of a file that go along whole; of a longer one the agent reads what it needs."""

MAX_NAMED_FILES = 20
"""Files of one message that are looked at."""

IMAGE_NAMES = (".png", ".jpg", ".jpeg", ".gif", ".webp")

_MENTION = re.compile(r"(?:^|(?<=[\s(\[{\"']))@(?:\"((?:[^\"\\]|\\.)+)\"|([^\s\"@][^\s@]*))")
_PLAIN = re.compile(r"[^\s@\"\\]+")
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.S)
_BLANKS = {"n": "\n", "t": "\t", "r": "\r"}
_ENDS = ".,;:!?)]}'\""
_LINES = re.compile(r"(.+?)(?::|#L)(\d{1,9})(?:-L?(\d{1,9}))?")
"""`src/app.py:40-60`, `src/app.py:40`, `src/app.py#L40-L60`."""
MAX_SEARCHED_BYTES = 20_000_000
"""Bytes of a file that lines are looked for in."""
_LIKE_A_FILE = re.compile(r"/|\.\w{1,6}$")


Verdict = Literal["allow", "ask", "deny"]


class MentionedFile(msgspec.Struct, frozen=True):
    """A file that was named: `text` or `data` (an image) where it goes along, else `why` not, as the rest of a sentence."""

    name: str
    kind: Literal["text", "image", "nothing"]
    text: str = ""
    data: bytes = b""
    width: int = 0
    height: int = 0
    why: str = ""
    asks: bool = False
    """It would go along if the person agreed."""


def free_inside(access_request: AccessRequest) -> Verdict:
    """Reading in the workspace is free; all else asks."""
    return "allow" if access_request.inside else "ask"


class MentionRules(msgspec.Struct, frozen=True):
    """The rules for sending files that a message mentions. `judge` returns whether a file may be read, as for `read_file`;
    `pasted` are names that the person did not type, `agreed` those that they agreed to."""

    judge: Callable[[AccessRequest], Verdict] = free_inside
    pasted: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()


UNASKED = MentionRules()


def mention(path: str) -> str:
    """A path as it is mentioned in a message; in quotes where it holds blanks or the like, with what does not show written out:
    a file's name is anybody's, and must do nothing to a terminal."""
    if _PLAIN.fullmatch(path) and path[-1] not in _ENDS and visible(path) == path:
        return f"@{path}"
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'@"{visible(escaped).replace(chr(10), chr(92) + "n")}"'


def mentions(text: str) -> list[str]:
    """The paths mentioned in a message, each once, in their order."""
    found = (_unescaped(m[1]) if m[1] else m[2] for m in _MENTION.finditer(text))
    return list(dict.fromkeys(found))[:MAX_NAMED_FILES]


def look_all(
    text: str, workspace: Path, longest: int = MAX_TEXT_CHARS, rules: MentionRules = UNASKED
) -> list[MentionedFile]:
    """Read what a message mentions, as far as the person agrees. Words with an `@` that resemble no file are left out."""
    looked = (_mentioned(path, workspace, longest, rules) for path in mentions(text))
    return list({named.name: named for named in looked if named}.values())


def read_mention(
    written: str, workspace: Path, longest: int = MAX_TEXT_CHARS, judged: Path | None = None
) -> MentionedFile:
    """A file by its path, relative to the workspace or not, or some lines of it (`src/app.py:40-60`); where it was `judged`, the
    very file that was. Never raises, and waits for no pipe."""
    name, lines = written, _LINES.fullmatch(written)
    if lines and not _is_there(written, workspace):
        written, most = lines[1], MAX_SEARCHED_BYTES
    else:
        lines, most = None, 4 * longest
    try:
        path = judged or workspace / Path(written).expanduser()
        if path.is_dir():
            return MentionedFile(name, "nothing", why="a folder: the agent looks into it")
        path.stat()
    except FileNotFoundError:
        return MentionedFile(name, "nothing", why="there is no such file")
    except (OSError, ValueError, RuntimeError) as problem:
        return MentionedFile(name, "nothing", why=getattr(problem, "strerror", "") or "no usable path")
    unlinked = judged is not None
    head = read_checked(path, None, SNIFFED_BYTES, unlinked=unlinked)
    if head.problem:
        return MentionedFile(name, "nothing", why=head.problem)
    picture = kind_of(head.data)
    if not picture and (kind := binary_kind(head.data)):
        why = (
            "no model is shown one, make a PNG or JPEG of it first"
            if "image" in other_kind(head.data)
            else "only named"
        )
        return MentionedFile(name, "nothing", why=f"{kind}, {size(head.size)}: {why}")
    if head.size > (MAX_IMAGE_BYTES if picture else most):
        return _too_big(name, head.data) if picture else _too_long(name, head.size)
    whole = read_checked(path, None, MAX_IMAGE_BYTES if picture else most, unlinked=unlinked)
    if whole.problem:
        return MentionedFile(name, "nothing", why=whole.problem)
    return image(name, whole.data) if picture else _mentioned_text(name, whole.data, longest, lines)


def image(name: str, data: bytes) -> MentionedFile:
    """An image by its bytes, where every provider would take it."""
    width, height = size_in(data)
    if width and height and (len(data) > MAX_IMAGE_BYTES or max(width, height) > MAX_SIDE_PIXELS):
        return _too_big(name, data)
    if fault := fault_of(data):
        return MentionedFile(name, "nothing", why="a damaged image" if fault == "damaged" else fault)
    return MentionedFile(name, "image", data=data, width=width, height=height)


async def part_of(
    named: MentionedFile, save: Callable[[str, bytes], Awaitable[Image]], mask: Callable[[str], str]
) -> Part | None:
    """The part of the message that it becomes: a text with its secrets masked, an image once it is saved. None where nothing of
    it goes along."""
    if named.kind == "text":
        return Text(await asyncio.to_thread(mask, named.text), named.name)
    return await save(file_name(named.name), named.data) if named.kind == "image" else None


def file_name(path: str) -> str:
    """The last part of a path, whoever wrote it."""
    return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def pasted_images(text: str) -> list[str]:
    """The paths in a paste that is nothing but paths to images, as terminals paste files that are dropped on them: plain, in
    quotes, with escaped blanks, as `file://`; several with blanks or line ends between. Empty for any other text."""
    paths = [_path(word) for word in _split_paste(text.strip())] if 0 < len(text) < 20_000 else []
    good = all(path.lower().endswith(IMAGE_NAMES) for path in paths)
    return paths[:MAX_NAMED_FILES] if good else []


def pasted_path(text: str) -> str:
    """The path in a paste that is nothing but one, from the root or from home; empty for any other text."""
    text = text.strip()
    if not 0 < len(text) < 4_000 or "\n" in text:
        return ""
    plain = text if text[0] in "/~" and "\\" not in text else ""  # some terminals leave blanks as they are
    words = [plain] if plain else [_path(word) for word in _split_paste(text)]
    return words[0] if len(words) == 1 and words[0][:1] in {"/", "~"} else ""


def pasted_data(text: str) -> MentionedFile | None:
    """The image in a paste that is a data URL and nothing else; None for any other text."""
    if not text.startswith("data:image/"):
        return None
    data = from_data_url(text.strip())
    return image(f"pasted.{kind_of(data)}", data) if data else None


def _mentioned(path: str, workspace: Path, longest: int, rules: MentionRules) -> MentionedFile | None:
    lines = _LINES.fullmatch(path)
    file = lines[1] if lines and not _is_there(path, workspace) else path
    if not _is_there(file, workspace):
        shorter = path.rstrip(_ENDS)
        if shorter and shorter != path:
            return _mentioned(shorter, workspace, longest, rules)
        return read_mention(path, workspace, longest) if _LIKE_A_FILE.search(file) else None
    if path in rules.agreed:
        return read_mention(path, workspace, longest)
    real, root = Path(os.path.realpath(workspace / Path(file).expanduser())), Path(os.path.realpath(workspace))
    # Where it leads may change between two looks: what was judged is read, and nothing else.
    return _objection(path, real, real.is_relative_to(root), rules) or read_mention(path, workspace, longest, real)


def _objection(path: str, real: Path, inside: bool, rules: MentionRules) -> MentionedFile | None:
    """Why a file that is there does not go along as it is."""
    verdict = rules.judge(AccessRequest("read", str(real), inside, f"read {real}"))
    if verdict == "deny":
        return MentionedFile(
            path, "nothing", why=f"{'' if inside else 'outside this folder: '}reading it is not allowed"
        )
    if verdict == "ask":
        return MentionedFile(path, "nothing", why=f"outside this folder: {real}", asks=True)
    if path in rules.pasted:
        return MentionedFile(path, "nothing", why="named in pasted text", asks=True)
    return None


def _is_there(path: str, workspace: Path) -> bool:
    try:
        return os.path.lexists(workspace / Path(path).expanduser())
    except (OSError, ValueError, RuntimeError):
        return False


def _mentioned_text(name: str, data: bytes, longest: int, lines: re.Match[str] | None) -> MentionedFile:
    try:
        text = encoding_of(data).decode(data)
    except UnicodeDecodeError:
        return MentionedFile(name, "nothing", why="no text in any known encoding")
    if lines:
        end = line_break(text)  # the lines that read_file counts
        whole, first = text.removesuffix(end).split(end), max(1, int(lines[2]))
        text = end.join((*whole[first - 1 : int(lines[3] or first)], ""))
        if not text:
            return MentionedFile(name, "nothing", why=f"there are no such lines: the file has {len(whole):,}")
    if len(text) > longest:
        return _too_long(name, len(data))
    if not text.strip():
        return MentionedFile(name, "nothing", why="an empty file")
    return MentionedFile(name, "text", text=text.replace("\r\n", "\n").replace("\r", "\n"))


def _too_long(name: str, length: int) -> MentionedFile:
    return MentionedFile(name, "nothing", why=f"{size(length)}: the agent reads what it needs of it")


def _too_big(name: str, data: bytes) -> MentionedFile:
    width, height = size_in(data)
    pixels = f"{width}×{height} pixels, " if width else ""
    limit = f"providers take {size(MAX_IMAGE_BYTES)} and {MAX_SIDE_PIXELS:,} pixels a side"
    return MentionedFile(name, "nothing", why=f"not sent: {pixels}more than {limit}; make it smaller first")


def _split_paste(text: str) -> Iterable[str]:
    """A paste as words; a line that is a path as it stands (terminals differ) is one word."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if Path(line).suffix.lower() in IMAGE_NAMES and "\\" not in line and line[0] not in "'\"" and _alone(line):
            yield line
            continue
        try:
            yield from shlex.split(line)
        except ValueError:
            yield line


def _alone(line: str) -> bool:
    """A line with blanks in it is one path if only its end looks like an image."""
    return not any(word.lower().endswith(IMAGE_NAMES) for word in line.split()[:-1])


def _path(word: str) -> str:
    parts = urlsplit(word) if word.startswith("file://") else None
    return unquote(parts.path) if parts else word


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda m: _sign(m[1] or m[2] or m[3]) or _BLANKS.get(m[4], m[4] or m[0]), text)


def _sign(digits: str) -> str:
    """The character of a code in hexadecimal digits; empty for none."""
    code = int(digits or "110000", 16)
    return chr(code) if code < 0x110000 else ""
