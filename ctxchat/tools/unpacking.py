"""Compressed bodies of web pages: no more of them is unpacked than is wanted, however much a few bytes stand for. Pure."""

from __future__ import annotations

import zlib

from ctxchat.core.errors import ToolError

ACCEPTED = "gzip, deflate"

_MEMBERS = 50
"""Parts that a gzip body may come in."""

_PLAIN = {"", "identity"}
_GZIP = {"gzip", "x-gzip"}


def unpacked(data: bytes, encoding: str, most: int) -> bytes:
    """The body behind a Content-Encoding header, at most `most` bytes of it. Each layer is bounded by itself: packed twice, a
    kilobyte is a gigabyte. Raises ToolError."""
    for layer in reversed([name.strip().lower() for name in encoding.split(",")]):
        if layer in _PLAIN:
            continue
        if layer != "deflate" and layer not in _GZIP:
            raise ToolError(f"The page is packed as {layer[:20]}, which was not asked for.")
        try:
            data = _inflated(data, zlib.MAX_WBITS | 32, most)  # either head is taken, whatever the header says
        except zlib.error:
            if layer != "deflate":
                raise ToolError("The page is packed in a way that cannot be read.") from None
            data = _raw(data, most)
    return data[:most]


def _raw(data: bytes, most: int) -> bytes:
    """`deflate` without a head, as some servers send it."""
    try:
        return _inflated(data, -zlib.MAX_WBITS, most)
    except zlib.error as error:
        raise ToolError("The page is packed in a way that cannot be read.") from error


def _inflated(data: bytes, window: int, most: int) -> bytes:
    found = bytearray()
    for _ in range(_MEMBERS):
        part = zlib.decompressobj(window)
        try:
            found += part.decompress(data, most - len(found))
        except zlib.error:
            if not found:
                raise
            break  # what follows a whole body is of no use, as browsers have it
        data = part.unused_data
        if not data or len(found) >= most:
            break
    return bytes(found)
