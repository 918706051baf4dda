"""Bytes and texts: which encoding, whether it is text at all, and cuts that say how much they left out. Knows no files."""

from __future__ import annotations

import codecs
from collections import deque

import msgspec

SNIFF = 8192
"""Bytes from the start of a file that decide whether it is text."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KINDS = (
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF media (WebP, WAV or AVI)"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive (or an office document, a wheel, a jar)"),
    (b"\x1f\x8b", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ", "xz archive"),
    (b"\x28\xb5\x2f\xfd", "zstandard archive"),
    (b"7z\xbc\xaf", "7-Zip archive"),
    (b"\x7fELF", "ELF program"),
    (b"MZ", "Windows program"),
    (b"\xcf\xfa\xed\xfe", "macOS program"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x00asm", "WebAssembly module"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"


class Encoding(msgspec.Struct, frozen=True):
    """How a file's text is written: the codec and the byte order mark in front of it. Encoding back gives the same bytes."""

    codec: str = "utf-8"
    bom: bytes = b""

    @property
    def label(self) -> str:
        """For people: `utf-8`, `utf-16-le with BOM`, `latin-1`."""
        return f"{self.codec} with BOM" if self.bom else self.codec

    def decode(self, data: bytes) -> str:
        """Raises UnicodeDecodeError."""
        return data.removeprefix(self.bom).decode(self.codec)

    def encode(self, text: str) -> bytes:
        """Raises UnicodeEncodeError."""
        return self.bom + text.encode(self.codec)


LATIN1 = Encoding("latin-1")


def binary_kind(head: bytes) -> str:
    """What a file that is no text seems to be, from its first bytes; empty for text."""
    if any(head.startswith(bom) for bom, _ in _BOMS):
        return ""
    kind = next((kind for magic, kind in _KINDS if head.startswith(magic)), "")
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head or controls * 10 > len(head):
        return kind or "binary data"
    return kind if kind == "PDF document" else ""  # the only one of them that may look like text


def encoding_of(data: bytes, whole: bool = True) -> Encoding:
    """The encoding of a text. `whole` False: this is only its beginning. Latin-1, which takes every byte, comes last."""
    for bom, codec in _BOMS:
        if data.startswith(bom) and _decodes(data[len(bom) :], codec, whole):
            return Encoding(codec, bom)
    return Encoding() if _decodes(data, "utf-8", whole) else LATIN1


def _decodes(data: bytes, codec: str, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(codec)().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True


def size(count: int) -> str:
    """Bytes for people: `512 bytes`, `1.4 MB`."""
    if count < 1000:
        return f"{count} bytes"
    for power, unit in enumerate(("kB", "MB", "GB"), start=1):
        if count < 1000 ** (power + 1) or unit == "GB":
            return f"{count / 1000**power:.1f} {unit}"
    raise AssertionError


def clip(text: str, limit: int) -> str:
    """Head and tail of a text of more than `limit` characters, with a line between them that counts what is missing."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[len(text) - tail :]}"


def clip_line(line: str, limit: int, at: int = 0) -> str:
    """A line of at most about `limit` characters around position `at`, with marks that count what is missing."""
    if len(line) <= limit:
        return line
    start = max(0, min(at - limit // 4, len(line) - limit))
    end = start + limit
    before = f"[{start:,} characters …]" if start else ""
    after = f"[… {len(line) - end:,} characters]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def without_zeros(text: str) -> str:
    """The text with a sign in place of each zero, at which some servers end a text and others refuse it."""
    return text.replace("\0", "\ufffd")


class HeadTail:
    """Bytes that come in without end, of which the first two thirds of `cap` and the last third are kept."""

    def __init__(self, cap: int) -> None:
        self._head = bytearray()
        self._head_cap, self._tail_cap = cap - cap // 3, cap // 3
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take in a piece."""
        self.total += len(data)
        room = self._head_cap - len(self._head)
        self._head += data[:room] if room > 0 else b""
        rest = data[room:] if room > 0 else data
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_cap:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """What was kept, with a line in the middle that says how much was not."""
        tail = b"".join(self._tail)
        if len(self._head) + len(tail) == self.total and len(tail) <= self._tail_cap:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        tail = tail[-self._tail_cap :] if self._tail_cap else b""
        head = bytes(self._head[: boundary(self._head, len(self._head))])
        tail = tail[next_start(tail) :]
        left_out = self.total - len(head) - len(tail)
        return (
            head.decode("utf-8", "replace") + f"\n[… {size(left_out)} left out …]\n" + tail.decode("utf-8", "replace")
        )


def boundary(data: bytes | bytearray, end: int) -> int:
    """The last place at or before `end` where no UTF-8 character is cut in two."""
    for back in range(1, min(4, end) + 1):
        byte = data[end - back]
        if byte & 0xC0 == 0x80:
            continue
        width = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return end if width <= back else end - back
    return end


def next_start(data: bytes) -> int:
    """The first place where a UTF-8 character begins (at most three bytes in)."""
    return next((at for at in range(min(4, len(data))) if data[at] & 0xC0 != 0x80), min(3, len(data)))
