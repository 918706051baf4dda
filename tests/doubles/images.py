"""Small images of any size, made without a library."""

from __future__ import annotations

import struct
import zlib


def png(width: int, height: int, padding: int = 0) -> bytes:
    """A real one, of one colour; `padding` bytes of it are a comment."""
    rows = zlib.compress(b"".join(b"\0" + b"\x20\x60\xa0" * width for _ in range(height)))
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            _chunk(b"tEXt", b"Comment\0" + b"x" * padding) if padding else b"",
            _chunk(b"IDAT", rows),
            _chunk(b"IEND", b""),
        )
    )


def gif(width: int, height: int, frames: int = 1) -> bytes:
    """One with so many frames, whose pixels nobody unpacks."""
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\2\x4c\1\0"
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0" + frame * frames + b";"


def jpeg(width: int, height: int) -> bytes:
    """A comment, the frame header, and pixels that nobody unpacks."""
    comment = b"\xff\xfe" + struct.pack(">H", 6) + b"abcd"
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\1\1\0\0\x3f\0" + b"\x12\x34"
    return b"\xff\xd8" + comment + frame + scan + b"\xff\xd9"


def webp(width: int, height: int) -> bytes:
    """The extended form, whose head says the size, and pixels that nobody unpacks."""
    head = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + _three(width - 1) + _three(height - 1)
    body = head + b"VP8L" + struct.pack("<I", 4) + b"\x2f\0\0\0"
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def _three(number: int) -> bytes:
    return number.to_bytes(3, "little")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
