"""Images by their first bytes: what they are and how large, for tokens go by pixels and never by the length of the text. And an
image of a session's folder as a provider takes it. Reads no file."""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterator, Mapping

import msgspec

from ctxchat.core.messages import Image, Message, Part, Text

MAX_IMAGE_BYTES = 3_900_000
"""The largest file that every provider takes: Anthropic's 5 MB are counted in base64, which is a third longer."""

MAX_SIDE_PIXELS = 8_000
"""The longest side that every provider takes (Anthropic's limit, the lowest)."""

_MAX_HEAD_CHARS = 256 * 1024
"""Base64 characters looked at: a JPEG may carry a thumbnail and a profile before it says its size."""


_UNPACKED_CHUNK_BYTES = 1 << 20
"""Bytes of pixels that are unpacked at once, and thrown away."""

_BRANDS: dict[bytes, str] = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1"), "HEIC"),
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
}
"""What an image in an ISO media file calls itself."""

_OTHERS = (
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"\0\0\1\0", "ICO image"),
    (b"\xff\x0a", "JPEG XL image"),
    (b"\0\0\0\x0cJXL ", "JPEG XL image"),
    (b"\0\0\0\x0cjP  ", "JPEG 2000 image"),
    (b"8BPS", "Photoshop image"),
    (b"BM", "BMP image"),
    (b"%PDF-", "PDF document"),
)
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[?!s]")
"""How an SVG begins: with what it is, or with `<svg`."""

_MAX_SEGMENTS = 2_000
"""Segments of a JPEG before its size and its pixels."""


def size_of(url: str) -> tuple[int, int]:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP in a data URL; (0, 0) for anything else, and for what is broken."""
    head, comma, body = url[: _MAX_HEAD_CHARS + 128].partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma):
        return 0, 0
    try:
        return size_in(base64.b64decode(body[: _MAX_HEAD_CHARS // 4 * 4][: len(body) // 4 * 4]))
    except (binascii.Error, ValueError):
        return 0, 0


def size_in(data: bytes) -> tuple[int, int]:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP; (0, 0) for anything else, and for what is broken."""
    try:
        return _read_size(data)
    except (ValueError, struct.error):
        return 0, 0


def kind_of(data: bytes) -> str:
    """`png`, `gif`, `jpeg` or `webp` by the first bytes, whatever a file is called; empty for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return "jpeg" if data.startswith(b"\xff\xd8\xff") else ""


def other_kind(data: bytes) -> str:
    """What an image is, by its first bytes, that providers do not take (`HEIC image`), or a PDF; empty for anything else."""
    if data[4:8] == b"ftyp" and (named := _BRANDS.get(data[8:12])):
        return f"{named} image"
    if found := next((name for magic, name in _OTHERS if data.startswith(magic)), ""):
        return found
    return "SVG image" if _MARKUP.match(data[:100]) and b"<svg" in data[:4096].lower() else ""


def still(data: bytes) -> bytes:
    """A GIF with its first frame only: of one that moves some providers take none. Any other image as it is."""
    try:
        frames = list(_frames(data)) if kind_of(data) == "gif" else []
    except (ValueError, IndexError):  # one of a record from elsewhere
        return data
    return data[: frames[0]] + b"\x3b" if len(frames) > 1 else data


def data_url(data: bytes) -> str:
    """The image in the form every provider takes."""
    return f"data:image/{kind_of(data) or 'png'};base64,{base64.b64encode(data).decode()}"


def from_data_url(url: str) -> bytes | None:
    """The image in a data URL; None where there is none."""
    head, comma, body = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma):
        return None
    try:
        data = base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if kind_of(data) else None


def from_base64(text: str) -> bytes:
    """The bytes; none where it is no base64."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""


def fault_of(data: bytes) -> str:
    """Why no provider would take it for an image; empty for one that is whole. It is looked through to its end: what broke off
    begins as well as any. Unpacks a PNG: up to a second for the largest."""
    if not kind_of(data):
        kind = other_kind(data) or "no image"
        return f"{kind}, which no model is shown; PNG, JPEG, GIF and WebP are"
    width, height = size_in(data)
    if not (width and height):
        return "damaged"
    if len(data) > MAX_IMAGE_BYTES or max(width, height) > MAX_SIDE_PIXELS:
        return f"too large ({width}×{height} pixels, {len(data):,} bytes)"
    try:
        whole = {"png": _whole_png, "gif": _whole_gif, "webp": _whole_webp, "jpeg": _whole_jpeg}[kind_of(data)](data)
    except (ValueError, struct.error, zlib.error, IndexError):
        whole = False
    return "" if whole else "damaged"


def stored_in(message: Message) -> tuple[str, ...]:
    """The paths of its images that lie in the session's folder."""
    if isinstance(message.content, str):
        return ()
    return tuple(part.url for part in message.content if isinstance(part, Image) and part.stored)


def addressed(
    message: Message, data: Mapping[str, str], *, shown: bool = True, refused: frozenset[str] = frozenset()
) -> Message:
    """The message as it can leave the machine: images of the session's folder by their data URL (`data`, by path), words in
    place of one whose file is gone, of one whose kind (`gif`) the provider refuses, and of every image where the model is shown
    none."""
    if isinstance(message.content, str) or not any(isinstance(part, Image) for part in message.content):
        return message

    def placed(part: Part) -> Part:
        if not isinstance(part, Image):
            return part
        url = (data.get(part.url, "") if part.stored else part.url) if shown else ""
        kind = url[:16].partition(";")[0].removeprefix("data:image/")
        if kind in refused:
            return Text(f"{part.words[:-1]}: left out, this model is shown no {kind.upper()}]")
        return msgspec.structs.replace(part, url=url) if url else Text(part.words)

    return msgspec.structs.replace(message, content=tuple(placed(part) for part in message.content))


def _read_size(data: bytes) -> tuple[int, int]:
    match kind_of(data):
        case "png":
            return _pair(">II", data, 16)
        case "gif":
            return _pair("<HH", data, 6)
        case "webp":
            return _webp(data)
        case "jpeg":
            return _jpeg(data)
        case _:
            return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8 ":
            width, height = _pair("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case _:
            return 0, 0


def _jpeg(data: bytes) -> tuple[int, int]:
    """The size in the first frame header; the marker segments before it are skipped by their length (ITU T.81, annex B)."""
    for place in _segments(data):
        marker = data[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = _pair(">HH", data, place + 5)
            return width, height
    return 0, 0


def _segments(data: bytes) -> Iterator[int]:
    """Where each marker segment of a JPEG begins."""
    place = 2
    for _ in range(_MAX_SEGMENTS):
        while data[place : place + 2] == b"\xff\xff":  # a marker may be filled up
            place += 1
        if place + 9 > len(data) or data[place] != 0xFF:
            return
        yield place
        (length,) = struct.unpack_from(">H", data, place + 2)
        place += 2 + length


def _whole_png(data: bytes) -> bool:
    """Chunks with right sums from `IHDR` to `IEND`, and pixels that unpack to their end (ISO/IEC 15948), to as many as it says
    and no more: a few bytes may unpack to billions."""
    place, unpacked, kind, left = 8, zlib.decompressobj(), b"", _pixel_bytes(data)
    while kind != b"IEND":
        (length,) = struct.unpack_from(">I", data, place)
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        (summed,) = struct.unpack_from(">I", data, place + 8 + length)
        if zlib.crc32(kind + body) != summed or (place == 8) != (kind == b"IHDR"):
            return False
        if kind == b"IDAT":
            while body and not unpacked.eof:
                left -= len(unpacked.decompress(body, _UNPACKED_CHUNK_BYTES))
                body = unpacked.unconsumed_tail
                if left < -_UNPACKED_CHUNK_BYTES:
                    return False
        place += 12 + length
    return unpacked.eof and left <= 0


def _pixel_bytes(data: bytes) -> int:
    """Bytes that the pixels of a PNG are unpacked, by its header: a line of each of its passes begins with one more."""
    width, height = _pair(">II", data, 16)
    depth, colour, interlaced = data[24], data[25], data[28]
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 0)
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    total = 0
    for x, y, across, down in passes if interlaced else [(0, 0, 1, 1)]:
        columns, lines = -(-(width - x) // across), -(-(height - y) // down)
        total += max(0, lines) * (1 + -(-columns * bits // 8)) if columns > 0 else 0
    return total


def _whole_gif(data: bytes) -> bool:
    """Blocks up to the trailer, an image among them."""
    return bool(list(_frames(data)))


def _frames(data: bytes) -> Iterator[int]:
    """Where each image of a GIF ends, by its blocks up to the trailer (GIF89a). Raises ValueError or IndexError where one is
    broken."""
    place = 13 + _colours(data[10])
    while (block := data[place]) != 0x3B:
        if block not in {0x2C, 0x21}:
            raise ValueError(block)
        place += 2 if block == 0x21 else 11 + _colours(data[place + 9])
        while data[place]:
            place += 1 + data[place]
        place += 1
        if block == 0x2C:
            yield place


def _colours(flags: int) -> int:
    """Bytes of a colour table."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _whole_webp(data: bytes) -> bool:
    """Chunks as long as they say, pixels among them (RFC 9649)."""
    end = 8 + int.from_bytes(data[4:8], "little")
    place, kinds = 12, set[bytes]()
    while place + 8 <= end <= len(data):
        kinds.add(data[place : place + 4])
        length = int.from_bytes(data[place + 4 : place + 8], "little")
        place += 8 + length + length % 2
    return place == end and bool(kinds & {b"VP8 ", b"VP8L", b"ANMF"})


def _whole_jpeg(data: bytes) -> bool:
    """Segments up to the pixels, and an end behind them (ITU T.81, annex B)."""
    pixels = next((place for place in _segments(data) if data[place + 1] == 0xDA), 0)
    return pixels > 0 and data.rfind(b"\xff\xd9") > pixels


def _pair(layout: str, data: bytes, place: int) -> tuple[int, int]:
    first, second = struct.unpack_from(layout, data, place)
    return int(first), int(second)
