"""How large an image is, read from the head of its data URL: tokens go by pixels, never by the length of the text."""

from __future__ import annotations

import base64
import binascii
import struct

_HEAD = 256 * 1024
"""Base64 characters looked at: a JPEG may carry a thumbnail and a profile before it says its size."""


def size_of(url: str) -> tuple[int, int]:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP in a data URL; (0, 0) for anything else, and for what is broken."""
    head, comma, body = url[: _HEAD + 128].partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma):
        return 0, 0
    try:
        data = base64.b64decode(body[: _HEAD // 4 * 4][: len(body) // 4 * 4])
        return _read(data)
    except (binascii.Error, ValueError, struct.error):
        return 0, 0


def _read(data: bytes) -> tuple[int, int]:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _pair(">II", data, 16)
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        return _pair("<HH", data, 6)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
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
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = _pair(">HH", data, place + 5)
            return width, height
        (length,) = struct.unpack_from(">H", data, place + 2)
        place += 2 + length
    return 0, 0


def _pair(layout: str, data: bytes, place: int) -> tuple[int, int]:
    first, second = struct.unpack_from(layout, data, place)
    return int(first), int(second)
