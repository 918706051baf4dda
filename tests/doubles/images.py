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


def gif(width: int, height: int) -> bytes:
    """The head of one; nobody looks further."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int, height: int) -> bytes:
    """Its start, a comment, and the frame header."""
    comment = b"\xff\xfe" + struct.pack(">H", 6) + b"abcd"
    return b"\xff\xd8" + comment + b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0\xff\xd9"


def webp(width: int, height: int) -> bytes:
    """The extended form, whose head says the size."""
    body = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + _three(width - 1) + _three(height - 1)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def _three(number: int) -> bytes:
    return number.to_bytes(3, "little")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
