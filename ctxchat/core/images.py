"""Reads from an image's bytes its format, its size in pixels and whether it is whole, and prepares images for a request.

Providers count an image's tokens by its pixels, not by the length of its base64 text; and they refuse a whole request for one
damaged image. Reads no file.
"""

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
"""The largest file that every provider accepts: Anthropic's limit of 5 MB counts the base64 text, which is a third longer."""

MAX_SIDE_PIXELS = 8_000
"""The longest side that every provider accepts (Anthropic's limit, the lowest)."""

_MAX_HEAD_CHARS = 256 * 1024
"""Base64 characters that are decoded to find the size: a JPEG may hold a thumbnail and a colour profile before its size."""


_UNPACKED_CHUNK_BYTES = 1 << 20
"""Bytes of a PNG's pixels that are decompressed at a time; only their number matters, so they are not kept."""

_BRANDS: dict[bytes, str] = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1"), "HEIC"),
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
}
"""Formats by the brand that an ISO media file names at byte 8."""

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
"""First bytes and names of further formats that providers do not accept as images."""

_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<[?!s]")
"""Matches the beginning of an SVG: an XML declaration, a doctype or `<svg`."""

_MAX_SEGMENTS = 2_000
"""Segments of a JPEG that are read at most, so that a damaged one ends."""


def size_of(url: str) -> tuple[int, int]:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP in a data URL; (0, 0) for anything else or a damaged image."""
    head, comma, body = url[: _MAX_HEAD_CHARS + 128].partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma):
        return 0, 0
    try:
        return size_in(base64.b64decode(body[: _MAX_HEAD_CHARS // 4 * 4][: len(body) // 4 * 4]))
    except (binascii.Error, ValueError):
        return 0, 0


def size_in(data: bytes) -> tuple[int, int]:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP; (0, 0) for anything else or a damaged image."""
    try:
        return _read_size(data)
    except (ValueError, struct.error):
        return 0, 0


def kind_of(data: bytes) -> str:
    """`png`, `gif`, `jpeg` or `webp`, by the first bytes and not by a file's name; empty for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return "jpeg" if data.startswith(b"\xff\xd8\xff") else ""


def other_kind(data: bytes) -> str:
    """The format, in words (`HEIC image`, `PDF document`), of a file that providers do not accept as an image; empty where it is
    none of those known. By the first bytes."""
    if data[4:8] == b"ftyp" and (named := _BRANDS.get(data[8:12])):
        return f"{named} image"
    if found := next((name for magic, name in _OTHERS if data.startswith(magic)), ""):
        return found
    return "SVG image" if _MARKUP.match(data[:100]) and b"<svg" in data[:4096].lower() else ""


def still(data: bytes) -> bytes:
    """An animated GIF cut to its first frame, since some providers refuse animated ones. Any other image unchanged."""
    try:
        frame_ends = list(_frame_ends(data)) if kind_of(data) == "gif" else []
    except (ValueError, IndexError):  # damaged: attached images were checked, those of an imported session were not
        return data
    return data[: frame_ends[0]] + b"\x3b" if len(frame_ends) > 1 else data


def data_url(data: bytes) -> str:
    """The image as a base64 data URL, the form that every provider accepts."""
    return f"data:image/{kind_of(data) or 'png'};base64,{base64.b64encode(data).decode()}"


def from_data_url(url: str) -> bytes | None:
    """The bytes of an image in a base64 data URL; None for anything else."""
    head, comma, body = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma):
        return None
    try:
        data = base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if kind_of(data) else None


def from_base64(text: str) -> bytes:
    """The bytes that a base64 text stands for; empty where it is not valid."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""


def fault_of(data: bytes) -> str:
    """Why providers would refuse this as an image, in words for a person; empty for a good one.

    Checks the image to its end, since a truncated one begins like a whole one. Decompresses a PNG: up to a second for the
    largest.
    """
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
    """The paths of the message's images that are stored as files in the session's folder."""
    if isinstance(message.content, str):
        return ()
    return tuple(part.url for part in message.content if isinstance(part, Image) and part.stored)


def addressed(
    message: Message, data: Mapping[str, str], *, shown: bool = True, refused: frozenset[str] = frozenset()
) -> Message:
    """The message with its images as they are sent: each stored image as its data URL, from `data` by path.

    A short text takes the place of an image whose file is gone, whose format (`gif`) is in `refused`, or of every image where
    the model takes none (`shown` false).
    """
    if isinstance(message.content, str) or not any(isinstance(part, Image) for part in message.content):
        return message

    def sendable(part: Part) -> Part:
        if not isinstance(part, Image):
            return part
        url = (data.get(part.url, "") if part.stored else part.url) if shown else ""
        kind = url[:16].partition(";")[0].removeprefix("data:image/")
        if kind in refused:
            return Text(f"{part.words[:-1]}: left out, this model is shown no {kind.upper()}]")
        return msgspec.structs.replace(part, url=url) if url else Text(part.words)

    return msgspec.structs.replace(message, content=tuple(sendable(part) for part in message.content))


# ── sizes ──


def _read_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels; (0, 0) for an unknown format. Raises ValueError or struct.error where the file is too short."""
    match kind_of(data):
        case "png":
            return _unpack_pair(">II", data, 16)
        case "gif":
            return _unpack_pair("<HH", data, 6)
        case "webp":
            return _webp_size(data)
        case "jpeg":
            return _jpeg_size(data)
        case _:
            return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    """Width and height in the header of the first chunk: lossy, lossless or extended, each written in its own way (RFC 9649)."""
    match data[12:16]:
        case b"VP8 ":
            width, height = _unpack_pair("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case _:
            return 0, 0


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """The size in the first frame header; the marker segments before it are skipped by their length (ITU T.81, annex B)."""
    for offset in _segment_offsets(data):
        marker = data[offset + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = _unpack_pair(">HH", data, offset + 5)
            return width, height
    return 0, 0


def _segment_offsets(data: bytes) -> Iterator[int]:
    """The offset of each marker segment of a JPEG, up to the first that is damaged."""
    offset = 2
    for _ in range(_MAX_SEGMENTS):
        while data[offset : offset + 2] == b"\xff\xff":  # any number of fill bytes may stand before a marker
            offset += 1
        if offset + 9 > len(data) or data[offset] != 0xFF:
            return
        yield offset
        (length,) = struct.unpack_from(">H", data, offset + 2)
        offset += 2 + length


# ── is it whole? Each of these returns False, or raises ValueError, IndexError, struct.error or zlib.error, where it is not ──


def _whole_png(data: bytes) -> bool:
    """Whether chunks with valid checksums go from `IHDR` to `IEND`, and the pixels decompress to the number of bytes that the
    header demands (ISO/IEC 15948). Stops where they are more: a few bytes can decompress to billions."""
    offset, decompressor, kind, missing = 8, zlib.decompressobj(), b"", _pixel_bytes(data)
    while kind != b"IEND":
        (length,) = struct.unpack_from(">I", data, offset)
        kind, body = data[offset + 4 : offset + 8], data[offset + 8 : offset + 8 + length]
        (checksum,) = struct.unpack_from(">I", data, offset + 8 + length)
        if zlib.crc32(kind + body) != checksum or (offset == 8) != (kind == b"IHDR"):
            return False
        if kind == b"IDAT":
            while body and not decompressor.eof:
                missing -= len(decompressor.decompress(body, _UNPACKED_CHUNK_BYTES))
                body = decompressor.unconsumed_tail
                if missing < -_UNPACKED_CHUNK_BYTES:
                    return False
        offset += 12 + length
    return decompressor.eof and missing <= 0


def _pixel_bytes(data: bytes) -> int:
    """Bytes that the pixels of a PNG decompress to, by its header: each line has one byte more for its filter, and an interlaced
    image comes in seven passes, each an image of its own."""
    width, height = _unpack_pair(">II", data, 16)
    depth, colour, interlaced = data[24], data[25], data[28]
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 0)
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    total = 0
    for x, y, across, down in passes if interlaced else [(0, 0, 1, 1)]:
        columns, lines = -(-(width - x) // across), -(-(height - y) // down)
        total += max(0, lines) * (1 + -(-columns * bits // 8)) if columns > 0 else 0
    return total


def _whole_gif(data: bytes) -> bool:
    """Whether its blocks go on to the trailer, with an image among them."""
    return bool(list(_frame_ends(data)))


def _frame_ends(data: bytes) -> Iterator[int]:
    """The offset behind each image (frame) of a GIF, going through its blocks up to the trailer (GIF89a). Raises ValueError or
    IndexError where a block is damaged."""
    image, extension, trailer = 0x2C, 0x21, 0x3B
    offset = 13 + _colour_table_bytes(data[10])
    while (block := data[offset]) != trailer:
        if block not in {image, extension}:
            raise ValueError(block)
        offset += 2 if block == extension else 11 + _colour_table_bytes(data[offset + 9])
        while data[offset]:  # sub-blocks, each behind its length; an empty one ends them
            offset += 1 + data[offset]
        offset += 1
        if block == image:
            yield offset


def _colour_table_bytes(flags: int) -> int:
    """The length of a GIF's colour table by the flags before it; 0 where there is none."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _whole_webp(data: bytes) -> bool:
    """Whether its chunks fill exactly the length that the header states, with pixels among them (RFC 9649)."""
    end = 8 + int.from_bytes(data[4:8], "little")
    offset, kinds = 12, set[bytes]()
    while offset + 8 <= end <= len(data):
        kinds.add(data[offset : offset + 4])
        length = int.from_bytes(data[offset + 4 : offset + 8], "little")
        offset += 8 + length + length % 2
    return offset == end and bool(kinds & {b"VP8 ", b"VP8L", b"ANMF"})


def _whole_jpeg(data: bytes) -> bool:
    """Whether its segments go on to the pixels, with an end marker behind them (ITU T.81, annex B)."""
    pixels = next((offset for offset in _segment_offsets(data) if data[offset + 1] == 0xDA), 0)
    return pixels > 0 and data.rfind(b"\xff\xd9") > pixels


def _unpack_pair(layout: str, data: bytes, offset: int) -> tuple[int, int]:
    """Two integers at an offset, in `struct`'s notation. Raises struct.error where the data end before."""
    first, second = struct.unpack_from(layout, data, offset)
    return int(first), int(second)
